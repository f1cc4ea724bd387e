//! `--json`: every event, every field, one start and one end.

use crate::support::Test;
use serde_json::{Value, json};

/// The fields of every type, as design and README list them; `at` and `agent` come with each.
fn fields(kind: &str) -> &'static [&'static str] {
    match kind {
        "start" => &["version", "model", "base_url", "workspace", "extensions", "tools", "session"],
        "request" => &["turn", "attempt", "messages", "bytes", "estimated_tokens"],
        "reasoning" | "text" => &["delta"],
        "call" => &["id", "name", "arguments", "raw"],
        "approval" => &["id", "question", "decision", "by", "reason"],
        "output" => &["id", "delta"],
        "result" => &["id", "name", "ok", "text", "ms"],
        "message" => &["message", "finish"],
        "retry" => &["attempt", "wait_ms", "reason"],
        "hook" => &["extension", "mount", "text"],
        "compacted" => &["tier", "before", "after", "messages", "kept"],
        "usage" => &["input", "cached", "output", "reasoning"],
        "notice" => &["text"],
        "end" => &["outcome", "reason", "text", "turns", "usage", "cost", "changed", "exit"],
        other => panic!("an event of unknown type {other}"),
    }
}

fn kinds(events: &[Value]) -> Vec<&str> {
    events.iter().map(|event| event["type"].as_str().unwrap_or_default()).collect()
}

#[test]
fn every_event_has_exactly_its_public_fields() {
    let ran = Test::new()
        .script(r#"{"response":{"status":503,"headers":{},"chunks":["busy"]}}"#)
        .script(&json!({"response": {"reasoning": "hm", "text": "Look.", "calls": [{"name": "bash", "arguments": {"command": "echo hi"}}]}}).to_string())
        .call("bash", json!({"command": "cat .env"}))
        .call("write", json!({"path": "a.txt", "content": "x\n"}))
        .text("Done.")
        .args(["--json", "--yes", "--ext", "verify=true", "go"])
        .run()
        .exit(0);
    let events = ran.events();
    for event in &events {
        let kind = event["type"].as_str().unwrap_or_default();
        let mut wanted: Vec<&str> = fields(kind).iter().copied().chain(["type", "at", "agent"]).collect();
        let mut got: Vec<&str> = event.as_object().map(|o| o.keys().map(String::as_str).collect()).unwrap_or_default();
        wanted.sort_unstable();
        got.sort_unstable();
        assert_eq!(got, wanted, "{kind}: {event}");
    }
    let kinds = kinds(&events);
    assert_eq!((kinds.first(), kinds.last()), (Some(&"start"), Some(&"end")));
    assert_eq!(kinds.iter().filter(|kind| ["start", "end"].contains(kind)).count(), 2);
    for kind in
        ["request", "retry", "reasoning", "text", "call", "approval", "output", "result", "message", "usage", "notice"]
    {
        assert!(kinds.contains(&kind), "no {kind} event in {kinds:?}");
    }
    let end = &events[events.len() - 1];
    assert_eq!((&end["outcome"], &end["exit"], &end["changed"]), (&json!("done"), &json!(0), &json!(["a.txt"])));
}

#[test]
fn decisions_say_who_made_them() {
    let ran = Test::new()
        .calls(json!([
            {"name": "bash", "arguments": {"command": "ls"}},
            {"name": "bash", "arguments": {"command": "cat .env"}},
            {"name": "bash", "arguments": {"command": "make"}},
        ]))
        .text("Done.")
        .args(["--json", "go"])
        .run()
        .exit(4);
    let decided: Vec<String> =
        ran.events_of("approval").iter().map(|e| format!("{} {}", e["decision"], e["by"])).collect();
    assert_eq!(decided, [r#""refused" "gate""#, r#""denied" "nobody""#]);
}

#[test]
fn the_log_holds_the_same_events_without_deltas() {
    let ran = Test::new().text("Hello.").args(["--json", "hi"]).run().exit(0);
    let deltas = ["text", "reasoning", "output"];
    let printed: Vec<Value> =
        ran.events().into_iter().filter(|e| !deltas.contains(&e["type"].as_str().unwrap_or_default())).collect();
    let logged: Vec<Value> = ran.log.lines().map(|line| serde_json::from_str(line).unwrap_or_default()).collect();
    assert_eq!(printed, logged);
}

#[test]
fn no_session_keeps_no_log_and_an_unwritable_state_directory_is_a_notice() {
    let ran = Test::new().text("Hello.").args(["--no-session", "hi"]).run().exit(0);
    assert_eq!(ran.log, "");
    let test = Test::new().text("Hello.");
    std::fs::write(test.state(), "a file, not a directory").unwrap();
    test.args(["hi"]).run().exit(0).stdout("Hello.\n").stderr_has("no session log");
}
