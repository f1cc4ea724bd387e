//! The pairing invariant over random runs: faults, denials, interrupts, broken arguments, unknown tools, hooks.
//! The replay endpoint checks the pairs of every request it gets; the history is checked at the end of each run.

use mini::agent::Agent;
use mini::approve::{Approver, Decision, Rank, Request};
use mini::cancel::{Cancel, Cause};
use mini::endpoint::{Endpoint, Settings};
use mini::event::By;
use mini::extension::{Extension, Next, Stop};
use mini::message::check_pairs;
use mini::process::Processes;
use mini::replay::{Pace, Script, Server};
use mini::rundir::RunDir;
use mini::setup::Setup;
use mini::tool::{Check, Context, Failure, Json, Preview, Question, Scope, Spec, Tool};
use mini::workspace::Workspace;
use proptest::prelude::*;
use serde_json::json;

/// What one reply of the random model holds.
#[derive(Clone, Debug)]
enum Reply {
    Text,
    Calls(Vec<Act>),
    /// Ends before it is complete, after a call: retried, and nothing of it runs.
    Cut(&'static str),
    Busy,
    /// Cut at the output limit, in the middle of a call.
    Length,
}

/// What one call comes to.
#[derive(Clone, Copy, Debug)]
enum Act {
    Fine,
    Fails,
    Asks,
    Refused,
    Bad,
    Interrupts,
    Broken,
    Unknown,
}

fn replies() -> impl Strategy<Value = Vec<Reply>> {
    use Act::*;
    let act = prop_oneof![4 => Just(Fine), 1 => Just(Fails), 2 => Just(Asks), 1 => Just(Refused), 1 => Just(Bad), 1 => Just(Interrupts), 1 => Just(Broken), 1 => Just(Unknown)];
    let end = prop_oneof![Just("truncate"), Just("reset"), Just("eof")];
    let reply = prop_oneof![
        2 => Just(Reply::Text),
        6 => prop::collection::vec(act, 1..4).prop_map(Reply::Calls),
        1 => end.prop_map(Reply::Cut),
        1 => Just(Reply::Busy),
        1 => Just(Reply::Length),
    ];
    prop::collection::vec(reply, 1..12)
}

/// The script's line for a reply; ids are unique by `at`.
fn line(at: usize, reply: &Reply) -> String {
    let call = |n: usize, act: &Act| {
        let id = format!("c{at}-{n}");
        match act {
            Act::Broken => json!({"id": id, "name": "act", "raw": "{\"what\": \"Fi"}),
            Act::Unknown => json!({"id": id, "name": "teleport", "arguments": {}}),
            act => json!({"id": id, "name": "act", "arguments": {"what": format!("{act:?}"), "n": at * 10 + n}}),
        }
    };
    let partial = json!({"choices": [{"index": 0, "delta": {"tool_calls": [{"index": 0, "id": format!("torn{at}"), "function": {"name": "act", "arguments": "{\"what\":\"Fine\"}"}}]}}]});
    let response = match reply {
        Reply::Text => json!({"text": "Done."}),
        Reply::Calls(acts) => {
            json!({"text": "On it.", "calls": acts.iter().enumerate().map(|(n, act)| call(n, act)).collect::<Vec<_>>()})
        }
        Reply::Cut(end) => json!({"chunks": [format!("data: {partial}\n\n")], "end": end}),
        Reply::Busy => json!({"status": 503, "chunks": ["busy"]}),
        Reply::Length => {
            json!({"calls": [{"id": format!("l{at}"), "name": "act", "raw": "{\"what\": \"Fine\""}], "finish": "length"})
        }
    };
    json!({ "response": response }).to_string()
}

/// A tool that comes to whatever its argument says.
struct Does(Cancel);

impl Tool for Does {
    fn spec(&self) -> Spec {
        let parameters = json!({"type": "object", "properties": {"what": {"type": "string"}}, "required": ["what"]});
        Spec { name: "act".into(), description: "acts".into(), parameters, read_only: true }
    }
    fn check<'a>(&'a mut self, args: &Json, _: &mut Context) -> Check<'a> {
        let question =
            || Question { text: "act?".into(), why: None, preview: Preview::None, scope: Scope::Tool("act".into()) };
        match args["what"].as_str() {
            Some("Fails") => Check::Run(Box::new(|_| Err(Failure::Error("it failed".into())))),
            Some("Asks") => Check::Ask(question(), Box::new(|_| Ok("asked".into()))),
            Some("Refused") => Check::Refuse("never".into()),
            Some("Bad") => Check::Bad("not so".into()),
            Some("Interrupts") => {
                let cancel = self.0.clone();
                Check::Run(Box::new(move |_| {
                    cancel.raise(Cause::Interrupt);
                    Ok("half".into())
                }))
            }
            _ => Check::Run(Box::new(|_| Ok("fine".into()))),
        }
    }
}

/// Says no to every second question.
struct Moody(bool);

impl Approver for Moody {
    fn rank(&self) -> Rank {
        Rank::Person
    }
    fn by(&self) -> By {
        By::User
    }
    fn decide(&mut self, request: &Request) -> Option<Decision> {
        request.question?;
        self.0 = !self.0;
        Some(if self.0 { Decision::Allow } else { Decision::Deny("not now".into()) })
    }
}

/// Sends the loop on once a task.
struct Again;

impl Extension for Again {
    fn name(&self) -> &str {
        "again"
    }
    fn on_stop(&mut self, stop: &mut Stop, _: &mut Context) -> Next {
        if stop.attempt == 0 { Next::Continue("once more".into()) } else { Next::Done }
    }
}

fn agent(server: &Server, dir: &std::path::Path) -> (Agent, Context) {
    let settings = Settings {
        base_url: server.base_url(),
        model: "m".into(),
        retry_base_ms: 1,
        idle_ms: 5_000,
        progress_ms: 5_000,
        ..Settings::default()
    };
    let workspace = Workspace::open(dir, RunDir::create(&dir.join(".state")).unwrap()).unwrap();
    let cancel = Cancel::new();
    let mut setup = Setup::new(workspace, Endpoint::new(settings).unwrap(), cancel.clone(), Processes::new(Vec::new()));
    setup.tools = vec![Box::new(Does(cancel))];
    setup.approvers.push(Box::new(Moody(false)));
    setup.extensions.push(Box::new(Again));
    setup.build().unwrap()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 60, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn every_request_of_every_random_run_has_its_calls_answered_in_order(replies in replies()) {
        let script: String = replies.iter().enumerate().map(|(at, reply)| line(at, reply) + "\n").collect();
        let server = Server::start(Script::parse(&script).unwrap(), Pace::AtOnce).unwrap();
        let dir = tempfile::tempdir().unwrap();
        let (mut agent, mut cx) = agent(&server, dir.path());
        for task in 0..4 {
            agent.run(&format!("task {task}"), &mut cx);
            prop_assert_eq!(check_pairs(agent.history().messages()), Ok(()));
            cx.cancel.clear();
        }
        let transcript = server.finish();
        let broken: Vec<String> = transcript.failures.iter().filter(|f| f.line != 0 || f.what.contains("pair")).map(|f| f.to_string()).collect();
        prop_assert!(broken.is_empty(), "{:?}\n{}", broken, script);
        prop_assert!(transcript.requests.iter().all(|request| !String::from_utf8_lossy(&request.body).contains("torn")));
    }
}
