//! `--doctor` against servers that are as they should be, and servers that are not.

use crate::support::{KEY, Ran, Test};
use serde_json::{Value, json};

/// A server where all is well: it answers, calls the tool, and takes the result.
fn good() -> Test {
    Test::new()
        .script(
            r#"{"expect_request":{"body_absent":["/tools"]},"response":{"text":"Hello to you.","reasoning":"A greeting."}}"#,
        )
        .call("echo", json!({"text": "ready"}))
        .script(r#"{"expect_request":{"body":{"/messages/-1/role":"tool"}},"response":{"text":"Ready."}}"#)
        .env("MINI_MODEL", "recorded")
        .args(["--doctor"])
}

/// What was found about one thing: its verdict and its text.
#[track_caller]
fn found(ran: &Ran, check: &str) -> (String, String) {
    let stdout = String::from_utf8_lossy(&ran.output.stdout);
    let mut lines = stdout.lines().filter(|line| line.get(6..16).is_some_and(|name| name.trim_end() == check));
    let (verdict, text) = lines.next_back().unwrap_or_else(|| panic!("nothing about {check}\n{ran}")).split_at(6);
    (verdict.trim().to_owned(), text.get(11..).unwrap_or_default().to_owned())
}

#[track_caller]
fn says(ran: &Ran, verdict: &str, check: &str, parts: &[&str]) {
    let (got, text) = found(ran, check);
    assert_eq!(got, verdict, "{check}: {text}\n{ran}");
    for part in parts {
        assert!(text.contains(part), "{check} lacks {part:?}: {text}\n{ran}");
    }
}

/// A response that is not made of deltas.
fn raw(status: u16, kind: &str, body: impl ToString) -> String {
    json!({"response": {"status": status, "headers": {"Content-Type": kind}, "chunks": [body.to_string()]}}).to_string()
}

#[test]
fn all_is_well() {
    let ran = good().env("OPENAI_API_KEY", "sk-another-0123456789").run().exit(0);
    let settings = "MINI_BASE_URL, MINI_API_KEY, MINI_MODEL in the environment; set, and not used: OPENAI_API_KEY";
    says(&ran, "ok", "settings", &[settings]);
    says(&ran, "ok", "server", &["http://127.0.0.1:", "models: 1"]);
    says(&ran, "ok", "model", &["recorded, which the server lists"]);
    says(&ran, "ok", "key", &["accepted (MINI_API_KEY in the environment)"]);
    says(&ran, "ok", "answer", &["`Hello to you.` after"]);
    says(&ran, "ok", "streaming", &["pieces"]);
    says(&ran, "ok", "usage", &["tokens in"]);
    says(&ran, "ok", "reasoning", &["`reasoning_content`"]);
    says(&ran, "ok", "tool call", &["went on with its result"]);
    says(&ran, "ok", "shell", &["sh"]);
    says(&ran, "ok", "workspace", &["can be written"]);
    assert!(String::from_utf8_lossy(&ran.output.stdout).ends_with("Ready: all that is needed works.\n"), "{ran}");
    assert!(ran.log.is_empty(), "the doctor is no session");
}

#[test]
fn without_an_endpoint_the_machine_is_looked_at_and_that_is_no_failure() {
    let ran = Test::new().without_endpoint().args(["--doctor"]).run().exit(0);
    says(&ran, "note", "settings", &["no endpoint is set up", "Labs need none"]);
    says(&ran, "ok", "shell", &[]);
    assert!(ran.requests.is_empty() && !String::from_utf8_lossy(&ran.output.stdout).contains("FAIL"), "{ran}");
}

#[test]
fn json_is_one_object_a_line_and_nothing_else() {
    let ran = good().args(["--json"]).run().exit(0);
    for finding in ran.events() {
        assert!(matches!(finding["verdict"].as_str(), Some("ok" | "note" | "fail")), "{finding}");
        assert!(finding["check"].is_string() && finding["text"].is_string(), "{finding}");
    }
    assert!(ran.events().iter().any(|finding| finding["check"] == "tool call" && finding["verdict"] == "ok"), "{ran}");
}

#[test]
fn settings_that_cannot_be_used_are_a_failure() {
    let ran = Test::new().env("MINI_TEMPERATURE", "hot").args(["--doctor"]).run().exit(1);
    says(&ran, "FAIL", "settings", &["MINI_TEMPERATURE=hot"]);
    let ran = Test::new().env("MINI_BASE_URL", "localhost:8080").args(["--doctor"]).run().exit(1);
    says(&ran, "FAIL", "server", &["must begin with http://"]);
    says(&ran, "ok", "shell", &[]);
}

#[test]
fn nobody_is_there() {
    let ran = Test::new().env("MINI_BASE_URL", "http://127.0.0.1:9/v1").args(["--doctor"]).run().exit(1);
    says(&ran, "FAIL", "server", &["http://127.0.0.1:9/v1", "connection refused", "port"]);
    assert!(ran.took.as_secs() < 5, "{ran}");
}

#[test]
fn a_key_that_is_refused_is_named_and_not_shown() {
    let ran = Test::new().script(&json!({"response": {"status": 401, "error": format!("bad key {KEY}")}}).to_string());
    let ran = ran.args(["--doctor"]).run().exit(1);
    says(&ran, "FAIL", "key", &["401", "[secret]", "MINI_API_KEY in the environment"]);
}

#[test]
fn a_model_that_is_not_known_is_answered_with_those_that_are() {
    let missing = json!({"response": {"status": 404, "error": "model `recordet` not found"}}).to_string();
    let ran = Test::new().env("MINI_MODEL", "recordet").script(&missing).args(["--doctor"]).run().exit(1);
    says(&ran, "FAIL", "model", &["not found", "--model", "Did you mean recorded?", "lists: recorded"]);
}

#[test]
fn a_base_url_that_leads_elsewhere() {
    let ran = Test::new().script(&raw(404, "text/plain", "404 page not found")).args(["--doctor"]).run().exit(1);
    says(&ran, "FAIL", "answer", &["404", "/chat/completions is appended"]);
    let page = raw(200, "text/html", "<!DOCTYPE html><html><body>Welcome</body></html>");
    let ran = Test::new().script(&page).args(["--doctor"]).run().exit(1);
    says(&ran, "FAIL", "answer", &["HTML page", "base URL"]);
    assert!(!String::from_utf8_lossy(&ran.output.stdout).contains("Welcome"), "{ran}");
}

#[test]
fn a_model_that_calls_no_tool_is_no_model_for_this() {
    let way_out = ["Choose a model", "--jinja"];
    let ran = Test::new().text("Hello.").text("Ready.").text("ready!").args(["--doctor"]).run().exit(1);
    says(&ran, "FAIL", "tool call", &[&["answered in words"], way_out.as_slice()].concat());

    let text = "```json\n{\"name\": \"echo\", \"arguments\": {\"text\": \"ready\"}}\n```";
    let ran = Test::new().text("Hello.").text(text).text(text).args(["--doctor"]).run().exit(1);
    says(&ran, "FAIL", "tool call", &[&["no tool support for this model"], way_out.as_slice()].concat());

    let refusal = json!({"response": {"status": 400, "error": "m-test does not support tools"}}).to_string();
    let ran = Test::new().text("Hello.").script(&refusal).args(["--doctor"]).run().exit(1);
    says(&ran, "ok", "answer", &[]);
    says(&ran, "FAIL", "tool call", &[&["does not support tools"], way_out.as_slice()].concat());
}

#[test]
fn a_second_try_is_enough_for_a_tool_call() {
    let call = json!({"text": "ready"});
    let ran = Test::new().text("Hi.").text("Ready.").call("echo", call).text("Done.").args(["--doctor"]).run().exit(0);
    says(&ran, "ok", "tool call", &[]);
}

#[test]
fn a_result_that_the_server_does_not_take() {
    let refusal = json!({"response": {"status": 422, "error": "tool messages are not supported"}}).to_string();
    let ran = Test::new().text("Hi.").call("echo", json!({"text": "ready"})).script(&refusal);
    says(&ran.args(["--doctor"]).run().exit(1), "FAIL", "tool call", &["its result is refused", "tool messages"]);
}

#[test]
fn no_streaming_and_no_usage_are_notes() {
    let whole = |message: Value| {
        let reply = json!({"choices": [{"index": 0, "message": message, "finish_reason": "stop"}]});
        raw(200, "application/json", reply)
    };
    let call =
        json!({"id": "c1", "type": "function", "function": {"name": "echo", "arguments": "{\"text\":\"ready\"}"}});
    let ran = Test::new()
        .script(&whole(json!({"role": "assistant", "content": "Hello."})))
        .script(&whole(json!({"role": "assistant", "content": null, "tool_calls": [call]})))
        .script(&whole(json!({"role": "assistant", "content": "Ready."})))
        .args(["--doctor"])
        .run()
        .exit(0);
    says(&ran, "note", "model", &["m-test answers, and the server does not list it", "It lists: recorded"]);
    says(&ran, "note", "streaming", &["in one piece"]);
    says(&ran, "note", "usage", &["counts no tokens"]);
    says(&ran, "ok", "tool call", &[]);
}

#[test]
fn a_prompt_that_is_cut_is_seen_by_its_count() {
    let usage = json!({"prompt_tokens": 64, "completion_tokens": 1, "total_tokens": 65});
    let call = json!([{"name": "echo", "arguments": {"text": "ready"}}]);
    let ran = Test::new()
        .text("Hi.")
        .script(&json!({"response": {"calls": call, "usage": usage}}).to_string())
        .script(&json!({"response": {"text": "Ready.", "usage": usage}}).to_string())
        .args(["--doctor"])
        .run()
        .exit(1);
    says(&ran, "FAIL", "window", &["64 prompt tokens", "it cuts it"]);
}

#[test]
fn what_is_adapted_on_the_way_is_told() {
    let refusal = json!({"response": {"status": 400, "error": "stream_options is not supported"}}).to_string();
    let ran = Test::new().script(&refusal).text("Hi.").call("echo", json!({"text": "ready"})).text("Done.");
    says(&ran.args(["--doctor"]).run().exit(0), "note", "on the way", &["stream_options"]);
}

#[test]
fn a_server_that_never_answers_ends_by_time() {
    let stall = r#"{"response":{"chunks":["data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"He\"}}]}\n\n"],"end":"stall"}}"#;
    let ran = Test::new().script(stall).args(["--doctor", "--timeout", "1"]).run().exit(1);
    says(&ran, "FAIL", "answer", &["no whole reply within 1 s"]);
    says(&ran, "ok", "shell", &[]);
    assert!(ran.took.as_secs() < 8, "{ran}");
}

#[test]
fn ctrl_c_ends_it() {
    let stall = r#"{"response":{"chunks":[": wait\n\n"],"end":"stall"}}"#;
    let running = Test::new().script(stall).args(["--doctor"]).start();
    running.until_request(1);
    running.signal("INT");
    let ran = running.wait();
    assert_eq!(std::os::unix::process::ExitStatusExt::signal(&ran.output.status), Some(2), "{ran}");
    assert!(!String::from_utf8_lossy(&ran.output.stdout).contains("Ready"), "{ran}");
}

#[test]
fn words_that_do_not_go_with_it() {
    Test::new().args(["--doctor", "fix", "it"]).run().exit(2).stderr_has("takes no task");
    Test::new().args(["--doctor", "--lab", "05"]).run().exit(2).stderr_has("--doctor");
    Test::new().args(["--doctor", "--offline"]).run().exit(2).stderr_has("the real endpoint");
}
