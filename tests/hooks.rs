//! `on-stop` of executables through the loop: a scripted model over real HTTP, and what each answer ends as.

use mini::agent::End;
use mini::approve::Yes;
use mini::attach::attach;
use mini::cancel::Cancel;
use mini::endpoint::{Endpoint, Settings};
use mini::event::Outcome;
use mini::message::Message;
use mini::process::{Processes, environment};
use mini::replay::{Pace, Script, Server};
use mini::rundir::RunDir;
use mini::setup::Setup;
use mini::workspace::Workspace;
use tempfile::TempDir;

const CASES: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/cases/extensions");

/// Runs a task against `script` with one executable attached; how it ended, and the user messages.
fn run(extension: &str, task: &str, script: &str) -> (End, Vec<String>) {
    let dir = TempDir::new().unwrap();
    let server = Server::start(Script::parse(script).unwrap(), Pace::AtOnce).unwrap();
    let workspace = Workspace::open(dir.path(), RunDir::create(&dir.path().join("state")).unwrap()).unwrap();
    let settings = Settings { base_url: server.base_url(), model: "recorded".into(), ..Settings::default() };
    let processes = Processes::new(environment(std::env::vars_os(), &[], &[]));
    let mut setup = Setup::new(workspace, Endpoint::new(settings).unwrap(), Cancel::new(), processes);
    attach(&mut setup, &format!("{CASES}/{extension}"), &[]).unwrap();
    setup.approvers.push(Box::new(Yes));
    let (mut agent, mut cx) = setup.build().unwrap();
    let end = agent.run(task, &mut cx);
    let said = agent.history().messages().iter().filter_map(|message| match message {
        Message::User(text) => Some(text.clone()),
        _ => None,
    });
    (end, said.collect())
}

#[test]
fn a_tool_of_an_executable_is_offered_called_and_answered() {
    let script = r#"{"expect_request":{"last_contains":"Greet Ada"},"response":{"calls":[{"name":"greet","arguments":{"name":"Ada"}}]}}
        {"expect_request":{"last_contains":"Hello, Ada!"},"response":{"text":"Done."}}"#;
    let (end, _) = run("hello", "Greet Ada", script);
    assert_eq!((end.outcome, end.text.as_str(), end.turns), (Outcome::Done, "Done.", 2));
}

#[test]
fn each_answer_of_on_stop_has_its_own_end() {
    let said = r#"{"response":{"text":"I am done."},"repeat":9}"#;
    let (end, _) = run("verbs.sh", "done", said);
    assert_eq!((end.outcome, end.turns), (Outcome::Done, 1));
    let (end, _) = run("verbs.sh", "fail", said);
    assert_eq!((end.outcome, end.reason.as_deref()), (Outcome::Unverified, Some("two tests fail")));
    let (end, _) = run("verbs.sh", "crash", said);
    let why = "extension verbs: on-stop ended with exit status 1 (0 means done, or go on with what was printed; 3 \
               means not verified; others are faults); its last words on stderr: oops";
    assert_eq!((end.outcome, end.reason.as_deref()), (Outcome::Error, Some(why)));
}

#[test]
fn what_on_stop_says_goes_to_the_model_as_a_message() {
    let script = r#"{"response":{"text":"I am done."}}
        {"expect_request":{"last_contains":"and now the tests"},"response":{"text":"They pass."}}"#;
    let (end, said) = run("verbs.sh", "once", script);
    assert_eq!((end.outcome, end.text.as_str()), (Outcome::Done, "They pass."));
    assert_eq!(said, ["once", "and now the tests"]);
}
