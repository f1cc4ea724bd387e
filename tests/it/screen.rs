//! What a person or a script sees of a run: where each thing is said, and that it is said once.

use crate::support::{Ran, Test};
use serde_json::json;
use std::process::Stdio;

#[track_caller]
fn stderr(ran: Ran, text: &str) {
    assert_eq!(String::from_utf8_lossy(&ran.output.stderr), text, "stderr\n{ran}");
}

#[test]
fn a_single_calls_result_is_the_answer_once_and_there_is_no_account() {
    let test = Test::new().file("a.txt", "x\ny\n").args(["--call", "read", r#"{"path":"a.txt"}"#]);
    stderr(test.run().exit(0).stdout("1\tx\n2\ty\n"), "● read a.txt\n");
}

#[test]
fn a_limit_of_one_turn_is_one_turn() {
    let test = Test::new().file("a", "x\n").call("read", json!({"path": "a"}));
    test.args(["--max-turns", "1", "go"]).run().exit(3).stderr_has("the limit of 1 turn is reached");
}

#[test]
fn quiet_says_nothing_but_the_answer_even_if_a_check_ran() {
    let test = Test::new().call("write", json!({"path": "a.txt", "content": "x\n"})).text("Done.");
    stderr(test.args(["-q", "--yes", "--ext", "verify=true", "go"]).run().exit(0).stdout("Done.\n"), "");
}

#[test]
fn where_stdout_and_stderr_are_one_file_the_answer_stands_in_it_once() {
    let test = Test::new().call("write", json!({"path": "a.txt", "content": "x\n"})).text("Written.");
    let test = test.args(["--yes", "--ext", "verify=true", "go"]);
    let server = test.server();
    let both = tempfile::tempfile().unwrap();
    let mut command = test.command(&server);
    command.stdin(Stdio::null()).stdout(both.try_clone().unwrap()).stderr(both.try_clone().unwrap());
    assert!(command.status().unwrap().success());
    let mut text = String::new();
    std::io::Seek::rewind(&mut &both).unwrap();
    std::io::Read::read_to_string(&mut &both, &mut text).unwrap();
    assert!(text.matches("Written.").count() == 1 && text.contains("Written.\nnote: verify: running true\n"), "{text}");
}
