//! Compaction: random histories keep what must be kept, and the binary gives up what the tier says and no more.

use crate::support::Test;
use mini::cancel::Cancel;
use mini::endpoint::{Endpoint, Settings};
use mini::event::{Event, Observer, Stamp};
use mini::message::{Assistant, Call, History, Message, Style, check_pairs};
use mini::process::Processes;
use mini::replay::{Pace, Script, Server};
use mini::rundir::RunDir;
use mini::setup::Setup;
use mini::tool::Context;
use mini::window::Window;
use mini::workspace::Workspace;
use proptest::prelude::*;
use serde_json::{Value, json};
use std::cell::RefCell;
use std::rc::Rc;

/// One step of a random history.
#[derive(Clone, Debug)]
enum Step {
    Says(usize, Kind),
    Answers(usize, Kind),
    /// A reply with calls, and the length of each result.
    Calls(Vec<usize>, Kind),
}

#[derive(Clone, Copy, Debug)]
enum Kind {
    Prose,
    Code,
    Chinese,
    OneLine,
}

fn text(length: usize, kind: Kind) -> String {
    let piece = match kind {
        Kind::Prose => "a line of plain words\n",
        Kind::Code => "if (a[i] == b) { error(\"x\"); }\n",
        Kind::Chinese => "目录里的文件都已经读过了。\n",
        Kind::OneLine => "</summary> ",
    };
    piece.chars().cycle().take(length).collect()
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let kind = prop_oneof![Just(Kind::Prose), Just(Kind::Code), Just(Kind::Chinese), Just(Kind::OneLine)].boxed();
    let step = prop_oneof![
        1 => (0..400usize, kind.clone()).prop_map(|(n, kind)| Step::Says(n, kind)),
        2 => (0..900usize, kind.clone()).prop_map(|(n, kind)| Step::Answers(n, kind)),
        5 => (prop::collection::vec(prop_oneof![0..100usize, 1400..4000usize], 1..6), kind).prop_map(|(n, kind)| Step::Calls(n, kind)),
    ];
    prop::collection::vec(step, 0..25)
}

fn history(steps: &[Step]) -> History {
    let mut history = History::new();
    history.user("THE FIRST TASK");
    for (at, step) in steps.iter().enumerate() {
        match step {
            Step::Says(n, kind) => drop(history.user(text(*n, *kind)).clone()),
            Step::Answers(n, kind) => {
                history.assistant(Assistant { text: text(*n, *kind), ..Assistant::default() });
            }
            Step::Calls(results, kind) => {
                let call = |n: usize| {
                    let (id, raw) = (format!("c{at}-{n}"), r#"{"path":"src/a.rs"}"#.to_owned());
                    let arguments = Ok(serde_json::from_str(&raw).unwrap());
                    Call { id, name: "read".into(), raw, arguments, extra: Default::default() }
                };
                let calls = (0..results.len()).map(call).collect();
                history.assistant(Assistant { calls, ..Assistant::default() });
                results.iter().for_each(|n| drop(history.answer(text(*n, *kind)).cloned()));
            }
        }
    }
    history
}

/// The newest turn: from the last message that is no tool result on.
fn newest_turn(messages: &[Message]) -> &[Message] {
    let at = messages.iter().rposition(|message| !matches!(message, Message::Tool { .. })).unwrap_or(0);
    &messages[at..]
}

fn size(messages: &[Message]) -> usize {
    messages.iter().map(|message| message.to_json(Style::default()).to_string().len()).sum()
}

/// Keeps the `compacted` events: messages and kept.
#[derive(Clone, Default)]
struct Seen(Rc<RefCell<Vec<Compacted>>>);

type Compacted = (Vec<Value>, usize);

impl Observer for Seen {
    fn event(&mut self, _: &Stamp, event: &Event) -> Result<(), String> {
        if let Event::Compacted { messages, kept, .. } = event {
            self.0.borrow_mut().push((messages.clone(), *kept));
        }
        Ok(())
    }
}

fn context(server: &Server, dir: &std::path::Path, seen: &Seen) -> Context {
    let settings = Settings { base_url: server.base_url(), model: "m".into(), retry_base_ms: 1, ..Settings::default() };
    let workspace = Workspace::open(dir, RunDir::create(&dir.join(".state")).unwrap()).unwrap();
    let endpoint = Endpoint::new(settings).unwrap();
    let mut setup = Setup::new(workspace, endpoint, Cancel::new(), Processes::new(Vec::new()));
    setup.observers.push(Box::new(seen.clone()));
    setup.build().unwrap().1
}

/// What the model makes of the request for a summary.
fn summaries() -> impl Strategy<Value = Value> {
    prop_oneof![
        Just(json!({"text": "Files were read."})),
        Just(json!({"text": "very long ".repeat(600)})),
        Just(json!({"text": " "})),
        Just(json!({"status": 400, "error": "no"})),
        Just(json!({"calls": [{"name": "read", "arguments": {}}]})),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 80, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn compaction_keeps_pairs_the_first_task_and_the_newest_turn_and_never_grows(
        steps in steps(), window in prop_oneof![Just(None), (300..12_000u64).prop_map(Some)],
        most in any::<bool>(), summary in summaries(),
    ) {
        let script = json!({"response": summary, "repeat": 9}).to_string();
        let server = Server::start(Script::parse(&script).unwrap(), Pace::AtOnce).unwrap();
        let (dir, seen) = (tempfile::tempdir().unwrap(), Seen::default());
        let mut cx = context(&server, dir.path(), &seen);
        let (mut history, mut window) = (history(&steps), Window::new(window));
        for _ in 0..2 {
            let old = history.messages().to_vec();
            let bytes = history.render(Style::default()).to_vec();
            if most { window.compact(&mut history, &mut cx); } else { window.fit(&mut history, ["", ""], &mut cx); }
            let new = history.messages();
            prop_assert_eq!(check_pairs(new), Ok(()));
            prop_assert_eq!(&new[0], &Message::User("THE FIRST TASK".into()));
            prop_assert_eq!(newest_turn(new), newest_turn(&old));
            match seen.0.borrow_mut().pop() {
                // Whoever reads the log comes to the same history.
                Some((messages, kept)) => {
                    prop_assert!(size(new) < size(&old) && new.len() <= old.len());
                    let sent = |messages: &[Message]| messages.iter().map(|m| m.to_json(Style::default())).collect();
                    let projected: Vec<Value> = [messages, sent(&old[old.len() - kept..])].concat();
                    prop_assert!(projected.iter().all(|message| Message::from_json(message).is_ok()));
                    prop_assert_eq!(sent(new), projected);
                }
                None => prop_assert_eq!(history.render(Style::default()), bytes),
            }
        }
    }
}

/// A file that takes about 900 tokens of prose and is long enough to be cut.
fn page() -> String {
    "Nothing happened at the station today, and nobody came.\n".repeat(55)
}

/// So many turns that read the page, and an answer.
fn reads(test: Test, turns: usize) -> Test {
    (0..turns)
        .fold(test.file("page.txt", page()), |test, n| {
            test.script(&json!({"response": {"calls": [{"name": "read", "arguments": {"path": "page.txt", "offset": n + 1}}], "usage": {"prompt_tokens": 0}}}).to_string())
        })
}

fn run(turns: usize, window: u64) -> crate::support::Ran {
    let summary =
        json!({"when": {"body_contains": "You shorten the history"}, "response": {"text": "The page is dull."}});
    let test = (0..3).fold(reads(Test::new(), turns), |test, _| test.script(&summary.to_string()));
    test.text("Read.").args(["--json", "--context-window", &window.to_string(), "read it"]).run()
}

#[test]
fn below_half_of_the_window_each_request_extends_the_last() {
    let ran = run(6, 40_000).exit(0);
    assert_eq!(ran.events_of("compacted"), Vec::<Value>::new());
    for pair in ran.requests.windows(2) {
        let messages = |at: usize| pair[at].json()["messages"].as_array().cloned().unwrap_or_default();
        assert!(messages(1).starts_with(&messages(0)));
    }
}

#[test]
fn from_half_on_old_results_are_cut_and_the_newest_stay() {
    let ran = run(6, 10_000).exit(0);
    let compacted = ran.events_of("compacted");
    assert!(!compacted.is_empty() && compacted.iter().all(|event| event["tier"] == 50), "{compacted:?}");
    let results = ran.results();
    assert!(results[0].contains("lines left out to save room"), "{}", results[0]);
    assert!(!results[5].contains("left out to save room") && results[5].len() > 2000, "{}", results[5]);
}

/// A reply of the shape that fills the window without a long result, after a server that asks for a summary.
#[test]
fn a_summary_stands_in_place_of_old_turns_and_its_tokens_count() {
    let prose = "We looked at the station again and again. ".repeat(30); // 370 tokens
    let talk = (0..7).map(|n| format!("task {n}\n")).collect::<String>();
    let mut test = Test::new().stdin(talk);
    for _ in 0..5 {
        test = test.script(&json!({"response": {"text": prose, "usage": {"prompt_tokens": 0}}}).to_string());
    }
    let summary = json!({"expect_request": {"body_contains": ["You shorten the history", "USER: task 1", "do not follow instructions"],
        "body_absent": ["/tools"]}, "response": {"text": "The station was looked at.", "usage": {"prompt_tokens": 77, "completion_tokens": 3}}});
    test = test.script(&summary.to_string());
    for _ in 0..2 {
        test = test.script(&json!({"response": {"text": "Done.", "usage": {"prompt_tokens": 0}}}).to_string());
    }
    let ran = test.args(["--json", "--talk", "--context-window", "3100"]).run().exit(0);
    let compacted = ran.events_of("compacted");
    assert_eq!(compacted.len(), 1, "{ran}");
    assert_eq!((&compacted[0]["tier"], &compacted[0]["kept"]), (&json!(70), &json!(8)), "{ran}");
    let told = compacted[0]["messages"][1]["content"].as_str().unwrap_or_default();
    assert!(told.contains("not an instruction") && told.contains("The station was looked at."), "{told}");
    assert_eq!(ran.events_of("end")[0]["usage"]["input"], 77, "{ran}");
    let texts = ran.events_of("text");
    assert!(!texts.iter().any(|text| text.to_string().contains("looked at.\"")), "the summary is no answer: {texts:?}");
}

const OVERFLOW: &str = r#"{"response":{"status":400,"error":"This model's maximum context length is 4096 tokens. Please reduce the length"}}"#;

#[test]
fn an_overflow_is_answered_by_compacting_once_and_asking_again() {
    let ran = Test::new()
        .stdin("one\ntwo\n")
        .text(&"A long answer. ".repeat(200))
        .script(OVERFLOW)
        .text("It was about one.")
        .text("Two is done.")
        .args(["--talk"])
        .run()
        .exit(0)
        .stderr_has("history shortened (90 %): 3 messages became 3");
    let last = ran.requests[3].json().to_string();
    assert!(last.contains("It was about one.") && !last.contains("A long answer"), "{last}");
    let twice = Test::new().stdin("one\ntwo\n").text(&"A long answer. ".repeat(200)).script(OVERFLOW);
    let ran = twice.text("It was.").script(OVERFLOW).args(["--talk"]).run().exit(1);
    assert_eq!(ran.requests.len(), 4);
}

#[test]
fn an_overflow_with_nothing_to_give_up_is_the_error_at_once() {
    let ran = Test::new().script(OVERFLOW).args(["one"]).run().exit(1).stderr_has("maximum context length");
    assert_eq!(ran.requests.len(), 1);
}

#[test]
fn a_summary_that_fails_leaves_paths_and_errors() {
    let ran = Test::new()
        .file("page.txt", page())
        .stdin("one\n/compact\n/compact\ntwo\n")
        .call("read", json!({"path": "page.txt"}))
        .call("read", json!({"path": "gone.txt"}))
        .text(&"A long answer. ".repeat(100))
        .script(r#"{"response":{"status":401,"error":"no"}}"#)
        .text("Done.")
        .args(["--talk"])
        .run()
        .exit(0)
        .stderr_has("could not be summarised")
        .stderr_has("there is nothing to shorten");
    let last = ran.requests.last().map(|request| request.json().to_string()).unwrap_or_default();
    assert!(last.contains("page.txt\\ngone.txt") || last.contains("gone.txt\\npage.txt"), "{last}");
    assert!(last.contains("Error: ") && !last.contains("nothing happened at the station"), "{last}");
}

mod exempt {
    use mini::message::{Assistant, Call, Message};

    include!("../../labs/13-compaction/solution/exempt.rs");

    #[test]
    fn the_solution_of_a_lab_finds_the_results_of_skills() {
        let call = |id: &str, name: &str| {
            let (id, name, raw) = (id.into(), name.into(), "{}".into());
            Call { id, name, raw, arguments: Ok(Default::default()), extra: Default::default() }
        };
        let calls = vec![call("a", "read"), call("b", "load_skill")];
        let reply = Message::Assistant(Assistant { calls, ..Assistant::default() });
        assert_eq!(exempt(&[Message::User("go".into()), reply]), ["b"]);
    }
}
