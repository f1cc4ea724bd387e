//! Extensions as a stranger's crate sees them: attached to a `Setup`, called through the one door.

use mini::agent::{Agent, End};
use mini::approve::Yes;
use mini::attach::{Known, attach};
use mini::cancel::Cancel;
use mini::endpoint::{Endpoint, Settings};
use mini::event::Outcome;
use mini::process::{Processes, environment};
use mini::rundir::RunDir;
use mini::setup::Setup;
use mini::tool::Context;
use mini::workspace::Workspace;
use std::path::Path;
use tempfile::TempDir;

const CASES: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/cases/extensions");

/// One known extension; it wants an argument.
const KNOWN: &[Known] = &[("sums", |_, arg| arg.map(|_| ()).ok_or("give it an argument".into()), "adds")];

fn setup(dir: &TempDir) -> Setup {
    let workspace = Workspace::open(dir.path(), RunDir::create(&dir.path().join("state")).unwrap()).unwrap();
    let nobody = Settings { base_url: "http://127.0.0.1:0/v1".into(), model: "none".into(), ..Settings::default() };
    let secret = ("OPENAI_API_KEY".into(), "sk-canary".into());
    let variables = environment(std::env::vars_os().chain([secret]), &[], &[]);
    Setup::new(workspace, Endpoint::new(nobody).unwrap(), Cancel::new(), Processes::new(variables))
}

fn agent_with(dir: &TempDir, word: &str, yes: bool) -> Result<(Agent, Context), String> {
    let mut setup = setup(dir);
    attach(&mut setup, word, KNOWN)?;
    if yes {
        setup.approvers.push(Box::new(Yes));
    }
    setup.build()
}

fn call(extension: &str, yes: bool, tool: &str, arguments: &str) -> End {
    let dir = TempDir::new().unwrap();
    let (mut agent, mut cx) = agent_with(&dir, &format!("{CASES}/{extension}"), yes).unwrap();
    agent.call(tool, arguments, &mut cx)
}

fn refused(word: &str) -> String {
    agent_with(&TempDir::new().unwrap(), word, false).err().unwrap()
}

#[test]
fn a_tool_is_tried_through_the_one_door() {
    let end = call("hello", false, "greet", r#"{"name": "Ada"}"#);
    assert_eq!((end.outcome, end.text.as_str()), (Outcome::Done, "Hello, Ada!"));
    let end = call("hello", false, "greet", "{}");
    let why = r#"Error: bad arguments: `name` is missing (string). Smallest valid call: greet {"name":"…"}"#;
    assert_eq!((end.outcome, end.text.as_str()), (Outcome::Error, why));
    let end = call("hello", false, "greet", "Ada");
    assert!(end.text.starts_with("Error: nothing was run, the arguments cannot be used: "), "{}", end.text);
    let end = call("hello", false, "great", "{}");
    assert!(end.text.starts_with("Error: there is no tool `great`. The tools are: "), "{}", end.text);
}

#[test]
fn a_tool_that_asks_runs_only_if_somebody_says_yes() {
    let end = call("verbs.sh", false, "echo", r#"{"a":1}"#);
    assert_eq!(end.outcome, Outcome::Unapproved);
    assert!(end.text.starts_with("Blocked: "), "{}", end.text);
    let end = call("verbs.sh", true, "echo", r#"{"a":1}"#);
    assert_eq!((end.outcome, end.text.as_str()), (Outcome::Done, r#"{"a":1}"#));
}

#[test]
fn an_executable_gets_no_key() {
    let end = call("verbs.sh", true, "env", "{}");
    assert!(end.text.contains("MINI_PROTOCOL=1") && end.text.contains("MINI_WORKSPACE="), "{}", end.text);
    assert!(!end.text.contains("canary"), "{}", end.text);
}

#[test]
fn a_word_is_a_known_name_with_its_argument_or_a_path() {
    let dir = TempDir::new().unwrap();
    assert!(agent_with(&dir, "sums=1", false).is_ok());
    assert_eq!(refused("sums"), "extension sums: give it an argument");
    assert!(refused("sms").starts_with("there is no extension `sms`; did you mean `sums`?"));
    assert_eq!(refused("./no/such"), "extension ./no/such: there is no such file");
    let why = refused(concat!(env!("CARGO_MANIFEST_DIR"), "/Cargo.toml=1"));
    assert!(why.contains("is an executable, and those take no =ARG"), "{why}");
    assert!(refused(CASES).contains("is a directory, not an executable"));
}

#[test]
fn the_same_tool_twice_names_both_owners() {
    let dir = TempDir::new().unwrap();
    let mut setup = setup(&dir);
    let hello = Path::new(CASES).join("hello");
    let other = dir.path().join("salute");
    std::os::unix::fs::symlink(&hello, &other).unwrap();
    for path in [&hello, &other] {
        attach(&mut setup, path.to_str().unwrap(), KNOWN).unwrap();
    }
    let why = setup.build().err().unwrap();
    assert_eq!(why, "two tools are named `greet`: one of hello, one of salute");
}
