//! Sessions: a run that ended, or was killed, goes on; what its tasks did to files is taken back.

use crate::support::{Ran, Test};
use serde_json::{Value, json};
use std::time::Duration;

const START: &str = "\"type\":\"start\"";

/// Kills in this suite; `MINI_KILLS=200` for the full count.
fn rounds() -> u64 {
    std::env::var("MINI_KILLS").ok().and_then(|n| n.parse().ok()).unwrap_or(10)
}

/// The texts of a request's messages, but for the system text.
fn texts(ran: &Ran, request: usize) -> Vec<String> {
    let messages = ran.requests[request].json()["messages"].as_array().cloned().unwrap_or_default();
    let text = |message: &Value| message["content"].as_str().unwrap_or("(calls)").to_owned();
    messages.iter().skip(1).map(text).collect()
}

fn write(path: &str, content: &str) -> Value {
    json!({"path": path, "content": content})
}

/// One task that writes a file, to its end.
fn wrote(test: Test, task: &str, path: &str, content: &str) -> Test {
    test.then().call("write", write(path, content)).text("Done.").args(["--yes", task]).run().exit(0).test
}

#[test]
fn the_first_events_are_on_disk_before_the_first_request_and_a_call_before_its_execution() {
    let test = Test::new().call("bash", json!({"command": "sleep 5"})).args(["--yes", "go"]);
    let running = test.start();
    running.until_request(1);
    let log = running.log();
    assert!(log.contains(START) && log.contains(r#"{"role":"user","content":"go"}"#), "{log}");
    running.until("a call", |run| run.log().contains("\"type\":\"call\""));
    assert!(!running.log().contains("\"type\":\"result\""));
    running.signal("KILL");
    running.wait();
}

#[test]
fn a_session_goes_on_in_the_same_log() {
    let first = Test::new().text("Hello.").args(["hi"]).run().exit(0);
    let before = first.log.clone();
    let second = first.test.then().text("Again.").args(["--continue", "and", "again"]).run().exit(0);
    assert_eq!(texts(&second, 0), ["hi", "Hello.", "and again"]);
    assert!(second.log.starts_with(&before), "the log was changed");
    assert_eq!([second.log.matches(START).count(), second.log.matches("\"type\":\"end\"").count()], [2, 2]);
    let second = second.stderr_has("goes on with 2 messages");
    let id =
        second.log.split("\"session\":\"").nth(1).and_then(|rest| rest.split('"').next()).expect("an id").to_owned();
    let third = second.test.then().text("Third.").args(["--resume", &id[..id.len() - 1], "more"]).run().exit(0);
    assert_eq!(texts(&third, 0).len(), 5);
    assert_eq!(third.log.matches(&format!("\"session\":\"{id}\"")).count(), 3);
}

#[test]
fn json_has_one_start_and_one_end_a_process() {
    let test = Test::new().text("Hello.").args(["hi"]).run().exit(0).test;
    let ran = test.then().text("Again.").args(["--json", "--continue", "on"]).run().exit(0);
    assert_eq!([ran.events_of("start").len(), ran.events_of("end").len(), ran.events_of("message").len()], [1, 1, 2]);
}

#[test]
fn a_kill_in_a_tool_leaves_a_call_that_is_answered_once() {
    let running = Test::new().call("bash", json!({"command": "sleep 9"})).args(["--yes", "go"]).start();
    running.until("a call", |run| run.log().contains("\"type\":\"call\""));
    running.signal("KILL");
    let killed = running.wait();
    let before = killed.log.clone();
    let second = killed.test.then().text("I see.").args(["--continue", "go on"]).run().exit(0);
    assert!(texts(&second, 0)[2].starts_with("Error: [interrupted]"), "{second}");
    assert!(second.log.starts_with(&before));
    let second = second.stderr_has("1 call had no result and got one");
    let third = second.test.then().text("Fine.").args(["--continue", "once more"]).run().exit(0);
    assert_eq!(third.log.matches("[interrupted]").count(), 1, "resuming twice adds nothing");
}

#[test]
fn a_kill_at_the_prompt_loses_nothing() {
    let running = Test::new().stdin("").text("First.").args(["--talk"]).start_with_open_stdin();
    let mut running = running;
    std::io::Write::write_all(running.child.stdin.as_mut().expect("a pipe"), b"one\n").expect("it reads");
    running.until("an answer", |run| run.log().contains("\"content\":\"First.\""));
    running.signal("KILL");
    let ran = running.wait().test.then().stdin("two\n").text("Second.").args(["--talk", "--continue"]).run().exit(0);
    assert_eq!(texts(&ran, 0), ["one", "First.", "two"]);
    ran.stderr_has("--continue goes on from here");
}

#[test]
fn two_processes_cannot_write_one_log() {
    let running = Test::new().call("bash", json!({"command": "sleep 5"})).args(["--yes", "go"]).start();
    running.until("a call", |run| run.log().contains("\"type\":\"call\""));
    let server = running.test.server();
    let mut second = running.test.command(&server);
    let second = second.args(["--continue"]).output().expect("the binary");
    let words = String::from_utf8_lossy(&second.stderr).into_owned();
    assert!(second.status.code() == Some(2) && words.contains("is in use by another mini"), "{words}");
    running.signal("KILL");
    running.wait();
}

#[test]
fn an_id_that_is_none_and_a_session_that_is_not_there_are_words() {
    for (args, words) in [
        (["--resume", "../../x"], "there is no session `../../x`"),
        (["--resume", "20"], "there is no session `20`"),
        (["--continue", "--no-session"], "give one"),
        (["--continue", "x"], "there is no session of /"),
    ] {
        let ran = Test::new().args(args).args(["go"]).run().exit(2).stderr_has(words);
        assert!(ran.requests.is_empty());
    }
}

#[test]
fn an_interrupted_run_says_how_to_go_on_and_sessions_lists_it() {
    let running = Test::new().call("bash", json!({"command": "sleep 9"})).args(["--yes", "fix the bug"]).start();
    running.until("a call", |run| run.log().contains("\"type\":\"call\""));
    running.signal("INT");
    let ran = running.wait().stderr_has("mini --continue goes on from here");
    let ran = ran.test.then().without_endpoint().args(["--sessions"]).run().exit(0);
    let out = String::from_utf8_lossy(&ran.output.stdout).into_owned();
    assert!(out.contains("interrupted  fix the bug") && out.starts_with("In /"), "{out}");
}

#[test]
fn no_session_keeps_none() {
    let ran =
        Test::new().call("write", write("a", "x")).text("Hi.").args(["--no-session", "--yes", "go"]).run().exit(0);
    assert!(ran.log.is_empty() && !ran.test.state().join("mini/sessions").exists());
    let ran = ran.test.then().stdin("/undo\n").args(["--talk", "--no-session"]).run().exit(0);
    ran.stderr_has("nothing can be taken back: there is no session");
}

#[test]
fn undo_steps_back_over_sessions_and_the_model_is_told() {
    let test = Test::new().file("a.txt", "0\n");
    let test = wrote(test, "first", "a.txt", "1\n");
    let test = wrote(test, "second", "b/new.txt", "n\n");
    let undo = |test: Test| test.then().without_endpoint().args(["--undo"]).run();
    let ran = test.then().without_endpoint().args(["--diff"]).run().exit(0);
    assert!(String::from_utf8_lossy(&ran.output.stdout).ends_with("+n\n"), "{ran}");
    let ran = undo(ran.test).exit(0);
    assert!(!ran.test.workspace().join("b/new.txt").exists());
    let ran = undo(ran.test).exit(0).file("a.txt", "0\n");
    let said = String::from_utf8_lossy(&ran.output.stdout).into_owned();
    assert!(said.starts_with("took back the task \"first\": a.txt is as before"), "{said}");
    let ran = undo(ran.test).exit(1).stderr_has("no task in");
    let ran = ran.test.then().text("I see.").args(["--continue", "go on"]).run().exit(0);
    let told = texts(&ran, 0);
    assert!(told.iter().any(|text| text.starts_with("<undo>") && text.contains("NOT from the user")), "{told:?}");
}

#[test]
fn undo_refuses_where_a_file_has_changed_since() {
    let test = wrote(Test::new().file("a.txt", "0\n"), "first", "a.txt", "1\n").file("a.txt", "mine\n");
    let ran = test.then().without_endpoint().args(["--undo"]).run().exit(1).stderr_has("a.txt changed since");
    ran.file("a.txt", "mine\n");
}

#[test]
fn undo_in_a_talk_tells_the_model_with_the_next_task() {
    let ran = Test::new()
        .file("a.txt", "0\n")
        .stdin("go\n/undo\n/undo\nand now?\n/sessions\n")
        .call("edit", json!({"path": "a.txt", "old_text": "0", "new_text": "1"}))
        .text("Done.")
        .text("I know.")
        .args(["--talk", "--yes"])
        .run()
        .exit(0)
        .file("a.txt", "0\n")
        .stderr_has("a.txt is as before. What bash changed is not covered.")
        .stderr_has("no task of this session")
        .stderr_has("in use");
    assert!(texts(&ran, 2)[4].starts_with("<undo>"), "{ran}");
}

/// A run that streams, reads, writes and runs commands for about 200 ms.
fn busy() -> Test {
    let chunk = |delta: Value| format!("data: {}\n\n", json!({"choices": [{"index": 0, "delta": delta}]}));
    let text = |n: usize| json!({"text": chunk(json!({"content": format!("word {n} ")}))});
    let call = json!({"index": 0, "id": "c0", "function": {"name": "read", "arguments": "{\"path\":\"a.txt\"}"}});
    let mut chunks: Vec<Value> = (0..10).map(text).collect();
    chunks.push(json!({"text": chunk(json!({"tool_calls": [call]}))}));
    chunks.push(json!({"text": "data: {\"choices\":[{\"index\":0,\"delta\":{},\"finish_reason\":\"tool_calls\"}]}\n\ndata: [DONE]\n\n"}));
    let mut test = Test::new().file("a.txt", "one\n");
    for n in 0..3 {
        test = test.script(&json!({"response": {"chunks": chunks}}).to_string()).calls(json!([
            {"name": "write", "arguments": write("b.txt", &format!("{n}\n"))},
            {"name": "bash", "arguments": {"command": "sleep 0.02"}},
            {"name": "read", "arguments": {"path": "b.txt"}},
        ]));
    }
    test.text("Done.")
}

#[test]
fn kill_9_at_any_moment_then_continue_is_always_a_valid_request() {
    let mut caught = 0;
    for round in 0..rounds() {
        let running = busy().args(["--yes", "go"]).start();
        std::thread::sleep(Duration::from_micros(3_000 + (round * 23_917) % 220_000));
        running.signal("KILL");
        let killed = running.wait();
        let (before, has_task) = (killed.log.clone(), killed.log.contains(r#""role":"user""#));
        caught += usize::from(!killed.log.contains("\"type\":\"end\""));
        // The replay checks the pairs of every request, and `run` fails where they are broken.
        let ran = killed.test.then().text("Going on.").args(["--continue", "go on"]).run();
        let ran = ran.exit(if has_task { 0 } else { 2 });
        assert!(ran.log.starts_with(&before), "the log was changed\n{ran}");
        if has_task {
            assert_eq!(texts(&ran, 0).first().map(String::as_str), Some("go"), "{ran}");
            let replies = |log: &str| log.matches(r#""role":"assistant""#).count();
            assert_eq!(replies(&ran.log), replies(&before) + 1);
        }
    }
    println!("{caught} of {} kills came before the end", rounds());
}
