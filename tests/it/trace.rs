//! A run watched and read afterwards: `--trace`, and the observer that writes traces.

use crate::support::Test;
use serde_json::{Value, json};
use std::io::{Read, Write};
use std::net::TcpListener;
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::{Command, Stdio};

/// What `mini --trace FILE` prints: exit code, stdout, stderr.
fn traced(file: &Path) -> (Option<i32>, String, String) {
    let output = Command::new(env!("CARGO_BIN_EXE_mini")).arg("--trace").arg(file).output().expect("the binary");
    let text = |bytes: Vec<u8>| String::from_utf8_lossy(&bytes).into_owned();
    (output.status.code(), text(output.stdout), text(output.stderr))
}

#[test]
fn the_log_of_a_session_is_drawn_as_a_tree() {
    let ran = Test::new().call("read", json!({"path": "gone.txt"})).text("Gone.").args(["look"]).run().exit(0);
    let file = ran.test.workspace().join("log.jsonl");
    std::fs::write(&file, &ran.log).expect("a file");
    let (exit, tree, said) = traced(&file);
    assert_eq!((exit, said.as_str()), (Some(0), ""), "{tree}");
    let steps: Vec<&str> = tree.lines().filter(|line| line.contains(" |")).map(|line| line[48..].trim()).collect();
    assert_eq!(
        steps,
        ["agent.run: look", "turn 1", "request 1", "ERROR read gone.txt", "turn 2", "request 2"],
        "{tree}"
    );
    assert!(tree.contains("! Error: read \"gone.txt\": not found") && !tree.contains('\u{1b}'), "{tree}");
    assert!(tree.lines().all(|line| line.chars().count() <= 80), "{tree}");
}

#[test]
fn a_log_that_was_torn_is_drawn_as_far_as_it_goes_and_said() {
    let ran = Test::new().text("Hello.").args(["hi"]).run().exit(0);
    let file = ran.test.workspace().join("log.jsonl");
    std::fs::write(&file, &ran.log[..ran.log.len() - 20]).expect("a file");
    let (exit, tree, said) = traced(&file);
    assert!(exit == Some(0) && tree.contains("agent.run: hi"), "{tree}");
    assert!(said.contains("is not whole, and is left out"), "{said}");
}

#[test]
fn what_is_no_run_is_one_sentence() {
    let dir = tempfile::tempdir().expect("a directory");
    let file = dir.path().join("notes.md");
    for (text, words) in
        [("# Notes\n", "line 1 is not JSON"), ("", "it is empty"), ("{\"type\":\"x\"}\n", "no request")]
    {
        std::fs::write(&file, text).expect("a file");
        let (exit, tree, said) = traced(&file);
        assert!(exit == Some(2) && tree.is_empty() && said.contains(words) && said.lines().count() == 1, "{said}");
    }
    assert_eq!(traced(&dir.path().join("gone")).0, Some(2));
    assert_eq!(traced(dir.path()).0, Some(2));
}

#[test]
fn a_reader_that_leaves_is_no_failure() {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/cases/trace/waiting.jsonl");
    let mut child = Command::new(env!("CARGO_BIN_EXE_mini"));
    let mut child = child.arg("--trace").arg(file).stdout(Stdio::piped()).spawn().expect("the binary");
    drop(child.stdout.take());
    assert_eq!(child.wait().expect("an end").code(), Some(0));
}

/// The spans of a trace that a run has written into its workspace.
fn spans(dir: &Path) -> Vec<Value> {
    let text = std::fs::read_to_string(dir.join("trace.jsonl")).expect("a trace");
    text.lines().map(|line| serde_json::from_str(line).expect("a span")).collect()
}

#[test]
fn an_interrupt_closes_every_span() {
    let stall = r#"{"response":{"chunks":["data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"half \"}}]}\n\n"],"end":"stall"}}"#;
    let running = Test::new()
        .call("read", json!({"path": "gone.txt"}))
        .script(stall)
        .args(["--ext", "observability=trace.jsonl", "hi"])
        .start();
    running.until_request(2);
    running.signal("INT");
    let ran = running.wait();
    assert_eq!(ran.output.status.signal(), Some(2), "{ran}");
    let spans = spans(&ran.test.workspace());
    let errors: Vec<_> = spans.iter().map(|span| (span["name"].as_str().unwrap(), span["error"].as_str())).collect();
    let gone = spans[3]["error"].as_str();
    assert!(gone.is_some_and(|error| error.starts_with("Error: ")), "{errors:?}");
    assert_eq!(
        errors,
        [
            ("agent.run", Some("interrupted")),
            ("turn 1", None),
            ("model", None),
            ("read", gone),
            ("turn 2", None),
            ("model", Some("interrupted")),
        ]
    );
}

#[test]
fn a_collector_that_is_not_there_is_said_once_and_the_run_ends_well() {
    let gone = TcpListener::bind("127.0.0.1:0").and_then(|it| it.local_addr()).expect("a port");
    let ran = Test::new()
        .text("One.")
        .text("Two.")
        .args(["--ext", &format!("observability=http://{gone}"), "--talk"])
        .stdin("one\ntwo\n")
        .run()
        .exit(0);
    let said = String::from_utf8_lossy(&ran.output.stderr).into_owned();
    assert_eq!(said.matches("no more tracing").count(), 1, "{said}");
}

#[test]
fn a_collector_that_goes_away_is_said_after_the_last_event_and_in_none() {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let place = listener.local_addr().expect("an address");
    let once = std::thread::spawn(move || {
        let (mut stream, _) = listener.accept().expect("the question whether anybody is there");
        let mut head = [0; 4096];
        let read = stream.read(&mut head).expect("a request");
        stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\nconnection: close\r\n\r\n").expect("an answer");
        String::from_utf8_lossy(&head[..read]).to_lowercase()
    });
    let ran = Test::new()
        .text("One.")
        .args(["--json", "--ext", &format!("observability=http://{place}/"), "one"])
        .run()
        .exit(0)
        .stderr_has("no more tracing");
    assert!(once.join().expect("a head").starts_with("post /v1/traces "));
    let lines = String::from_utf8_lossy(&ran.output.stdout).into_owned();
    let last: Value = serde_json::from_str(lines.lines().last().unwrap_or_default()).expect("JSON");
    assert!(last["type"] == "end" && !lines.contains("no more tracing"), "{lines}");
}

#[test]
fn a_trace_without_a_place_or_with_one_that_cannot_be_written_is_a_sentence_at_start() {
    let told = |arg: &str, words: &str| {
        Test::new().args(["--ext", arg, "hi"]).run().exit(2).stderr_has(words);
    };
    told("observability", "where shall the trace go?");
    told("observability=gone/trace.jsonl", "cannot write the trace to gone/trace.jsonl");
    told("observability=http://me:secret@h", "is not taken");
}
