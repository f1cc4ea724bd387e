//! Talking over a pipe: plain lines, a question takes the next line, end of input is nobody.

use crate::support::Test;
use serde_json::json;

#[test]
fn each_line_is_a_task_of_one_conversation() {
    let ran = Test::new()
        .stdin("one\n\ntwo\n")
        .text("First.")
        .text("Second.")
        .args(["--talk"])
        .run()
        .exit(0)
        .stdout("First.\nSecond.\n");
    let messages = ran.requests[1].json()["messages"].as_array().cloned().unwrap_or_default();
    let texts: Vec<&str> = messages.iter().skip(1).filter_map(|m| m["content"].as_str()).collect();
    assert_eq!(texts, ["one", "First.", "two"]);
}

#[test]
fn a_question_takes_the_next_line_and_other_words_deny_and_are_told() {
    let write = |path: &str| json!({"path": path, "content": "x\n"});
    let ran = Test::new()
        .stdin("go\ny\nrather not there\n")
        .call("write", write("a.txt"))
        .call("write", write("b.txt"))
        .text("Ok.")
        .args(["--talk"])
        .run()
        .exit(0)
        .file("a.txt", "x\n")
        .result_has(1, "Blocked: the person said: rather not there");
    assert!(!ran.test.workspace().join("b.txt").exists());
}

#[test]
fn at_the_end_of_input_nobody_is_there() {
    let test = Test::new().stdin("go\n").call("write", json!({"path": "a.txt", "content": "x\n"})).text("Ok.");
    test.args(["--talk"]).run().exit(4).result_has(0, "Blocked: ");
}

#[test]
fn always_covers_every_file_of_the_session() {
    let write = |path: &str| json!({"path": path, "content": "x\n"});
    let test = Test::new().stdin("go\na\n").call("write", write("a.txt")).call("write", write("b.txt")).text("Ok.");
    test.args(["--talk"]).run().exit(0).file("a.txt", "x\n").file("b.txt", "x\n");
}

#[test]
fn slash_commands_are_not_tasks() {
    let ran = Test::new()
        .stdin("/help\n/hlep\nhi\n/new\nagain\n/quit\nnever\n")
        .text("Hi.")
        .text("Anew.")
        .args(["--talk"])
        .run()
        .exit(0);
    let ran = ran.stderr_has("/help").stderr_has("did you mean /help?");
    assert_eq!(ran.requests.len(), 2);
    assert_eq!(
        ran.requests[1].json()["messages"].as_array().map(Vec::len),
        Some(2),
        "/new starts an empty conversation\n{ran}"
    );
}

#[test]
fn a_plan_is_made_approved_and_carried_out() {
    let write = json!({"path": "a.txt", "content": "x\n"});
    let ran = Test::new()
        .stdin("/plan\ngo\n/approve\ny\n")
        .call("write", write.clone())
        .text("1. Write a.txt")
        .call("write", write)
        .text("Done.")
        .args(["--talk"])
        .run()
        .exit(0)
        .file("a.txt", "x\n");
    let system = |at: usize| {
        ran.requests[at].json()["messages"][0]["content"].as_str().unwrap_or_default().contains("Plan mode is on")
    };
    assert_eq!([system(0), system(1), system(2)], [true, true, false]);
}
