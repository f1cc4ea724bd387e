//! Every case of `tests/cases/wire` and `tests/cases/wire-own`, played over a socket against the built binary, and
//! judged by what its user sees: the events of `--json`, standard error, the exit code, and what the tools did.
//!
//! The cases' tools are an executable extension (`stub-tools`) that keeps count. Cases run in parallel, since several of
//! them wait for a time limit. A case with one response is about that reply: one more, [`END`], lets the run go on behind
//! its calls.

use crate::support::Test;
use mini::replay::{Body, Case, CaseCall, CaseOutcome, Exchange, Pace, Reply, Script, Server, Transcript, from_case};
use serde_json::{Value, json};
use std::collections::VecDeque;
use std::path::{Path, PathBuf};
use std::process::{Output, Stdio};
use std::sync::Mutex;

const STUB_TOOLS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/cases/extensions/stub-tools");

/// The line number of the reply behind the last one of a case.
const END: usize = usize::MAX;

/// What one run of a case gave.
struct Run {
    output: Output,
    events: Vec<Value>,
    /// The names of the tools that ran, in order.
    ran: Vec<String>,
    transcript: Transcript,
}

#[test]
fn every_wire_case() {
    let folders = ["tests/cases/wire", "tests/cases/wire-own"].map(|folder| std::fs::read_dir(folder).unwrap());
    let mut files: Vec<PathBuf> = folders.into_iter().flatten().map(|entry| entry.unwrap().path()).collect();
    files.retain(|file| file.extension().is_some_and(|end| end == "json"));
    files.sort();
    assert!(files.len() > 100, "only {} cases found", files.len());
    let (queue, failures) = (Mutex::new(VecDeque::from(files)), Mutex::new(Vec::new()));
    std::thread::scope(|scope| {
        for _ in 0..24 {
            scope.spawn(|| {
                while let Some(file) = { queue.lock().unwrap().pop_front() } {
                    let found = play_file(&file);
                    failures.lock().unwrap().extend(found);
                }
            });
        }
    });
    let failures = failures.into_inner().unwrap();
    assert!(failures.is_empty(), "{} failures:\n{}", failures.len(), failures.join("\n"));
}

/// A case, once for each base URL that it names.
fn play_file(file: &Path) -> Vec<String> {
    let text = std::fs::read_to_string(file).unwrap();
    let (script, case) = from_case(&text).unwrap();
    let any = case.config.get("base_url_any").and_then(Value::as_array).cloned();
    let base = case.config.get("base_url").cloned().unwrap_or("http://HOST/v1".into());
    let mut failures = Vec::new();
    for base in any.unwrap_or_else(|| vec![base]) {
        let run = play(script.clone(), &case, base.as_str().unwrap());
        failures.extend(judge(&case, &run).into_iter().map(|what| format!("{} ({base}): {what}", case.id)));
    }
    failures
}

fn play(mut script: Script, case: &Case, base: &str) -> Run {
    let last = script.sections[0].exchanges.last().unwrap().clone();
    script.sections[0].exchanges.push(end(last));
    let server = Server::start(script, Pace::AtOnce).unwrap();
    let host = server.base_url().replace("http://", "").replace("/v1", "");
    let test = Test::new();
    let stubs = test.workspace().with_file_name("stubs");
    std::fs::create_dir(&stubs).unwrap();
    for (name, text) in &case.stub_tools {
        std::fs::write(stubs.join(name), text.as_str().unwrap()).unwrap();
    }
    let mut command = test.command(&server);
    command.env("MINI_BASE_URL", base.replace("HOST", &host)).envs(settings(case));
    command.args(["--json", "--no-session", "--ext", STUB_TOOLS, "Do what is to be done."]);
    let output = command.stdin(Stdio::null()).output().unwrap();
    let stdout = String::from_utf8_lossy(&output.stdout).into_owned();
    let events = stdout.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let ran = std::fs::read_to_string(test.workspace().with_file_name("ran")).unwrap_or_default();
    let ran = ran.lines().map(str::to_owned).collect();
    Run { output, events, ran, transcript: server.finish() }
}

/// A reply that ends the run, in place of this one.
fn end(like: Exchange) -> Exchange {
    let mut end = Exchange { line: END, name: None, when: None, expect: Default::default(), repeat: 1, ..like };
    (end.response.status, end.response.end) = (200, mini::replay::End::Eof);
    end.response.headers = vec![("Content-Type".into(), "text/event-stream".into())];
    end.response.body =
        Body::Reply(Reply { text: "END".into(), reasoning: String::new(), calls: vec![], finish: None, usage: None });
    end
}

/// What a case configures, as variables.
fn settings(case: &Case) -> Vec<(String, String)> {
    let names = [
        ("api_key", "MINI_API_KEY"),
        ("max_tokens", "MINI_MAX_OUTPUT_TOKENS"),
        ("temperature", "MINI_TEMPERATURE"),
        ("idle_timeout_ms", "MINI_IDLE_TIMEOUT_MS"),
        ("progress_timeout_ms", "MINI_PROGRESS_TIMEOUT_MS"),
    ];
    let own = [("MINI_API_KEY", "test-key"), ("MINI_RETRY_BASE_MS", "250"), ("MINI_IDLE_TIMEOUT_MS", "20000")];
    let text = |value: &Value| value.as_str().map_or_else(|| value.to_string(), str::to_owned);
    let configured = names.iter().filter_map(|(key, name)| Some(((*name).to_owned(), text(case.config.get(*key)?))));
    let env = case.config.get("env").and_then(Value::as_object).into_iter().flatten();
    let env = env.filter(|(_, value)| value.is_string()).map(|(name, value)| (name.clone(), text(value)));
    own.map(|(name, value)| (name.to_owned(), value.to_owned())).into_iter().chain(configured).chain(env).collect()
}

/// What is not as the case wants it.
fn judge(case: &Case, run: &Run) -> Vec<String> {
    let mut wrong: Vec<String> = run.transcript.failures.iter().map(ToString::to_string).collect();
    wrong.extend(judge_end(case, run));
    wrong.extend(judge_words(case, run));
    wrong.extend(judge_counts(case, run));
    if case.expect.outcome == CaseOutcome::Ok {
        wrong.extend(judge_reply(case, run));
    }
    wrong
}

/// The outcome, and the exit code that says it.
fn judge_end(case: &Case, run: &Run) -> Vec<String> {
    let end = run.events.last().cloned().unwrap_or_default();
    let length = case.expect.finish.as_deref() == Some("length") && case.expect.tool_calls.is_empty();
    let wanted = match case.expect.outcome {
        CaseOutcome::Ok if length => ("limit", 3),
        CaseOutcome::Ok => ("done", 0),
        // Text without an end, again and again, is accepted at last (067).
        CaseOutcome::Retry if case.expect.error_mentions.is_empty() && end["outcome"] == "done" => ("done", 0),
        CaseOutcome::Retry | CaseOutcome::Error => ("error", 1),
    };
    let code = run.output.status.code().unwrap_or(-1);
    let is_right = end["type"] == "end" && end["outcome"] == wanted.0 && code == wanted.1 && end["exit"] == code;
    if is_right { vec![] } else { vec![format!("ended with {code} and {end}, not with {wanted:?}")] }
}

/// The words for the person: the reason of the end, which standard error holds as well, and the notices.
fn judge_words(case: &Case, run: &Run) -> Vec<String> {
    let end = run.events.last().cloned().unwrap_or_default();
    let reason = end["reason"].as_str().unwrap_or_default();
    let notices = of(&run.events, "notice").filter_map(|event| event["text"].as_str());
    let said = std::iter::once(reason).chain(notices).collect::<Vec<_>>().join("\n");
    let stderr = String::from_utf8_lossy(&run.output.stderr);
    let mut wrong = Vec::new();
    if !stderr.contains(reason) {
        wrong.push(format!("stderr does not say {reason:?}: {stderr:?}"));
    }
    for part in case.expect.error_mentions.iter().filter(|part| !said.to_lowercase().contains(&part.to_lowercase())) {
        wrong.push(format!("{part:?} is not said in {said:?}"));
    }
    for part in case.expect.error_lacks.iter().filter(|part| said.contains(*part) || stderr.contains(*part)) {
        wrong.push(format!("{part:?} is said in {said:?} or {stderr:?}"));
    }
    wrong
}

/// How many requests came, and which tools ran.
fn judge_counts(case: &Case, run: &Run) -> Vec<String> {
    let wanted = &case.expect;
    let requests = run.transcript.requests.iter().filter(|request| request.line != Some(END)).count();
    let retries = of(&run.events, "retry").count();
    let calls: Vec<&str> = of(&run.events, "call").filter_map(|event| event["name"].as_str()).collect();
    // A case with one response says exactly which calls are to be run.
    let valid = wanted.tool_calls.iter().filter(|call| !call.invalid).count();
    let runs = wanted.tools_run.or((!wanted.tool_calls.is_empty()).then_some(valid));
    let mut wrong = Vec::new();
    if wanted.requests.is_some_and(|wanted| wanted != requests) {
        wrong.push(format!("{requests} requests"));
    }
    if wanted.outcome == CaseOutcome::Retry && !((1..=3).contains(&retries) && requests == retries + 1) {
        wrong.push(format!("{requests} requests, {retries} retries"));
    }
    if runs.is_some_and(|runs| runs != run.ran.len()) || run.ran.len() > calls.len() {
        wrong.push(format!("the tools {:?} ran, of the calls {calls:?}", run.ran));
    }
    if let Some(partial) = &wanted.partial_text {
        let first = run.events.split(|event| event["type"] == "retry").next().unwrap_or_default();
        let shown = deltas(first, "text");
        if shown != *partial {
            wrong.push(format!("partial text {shown:?}"));
        }
    }
    wrong
}

/// The reply that the case is about: the last one before [`END`].
fn judge_reply(case: &Case, run: &Run) -> Vec<String> {
    let went_on = run.transcript.requests.last().is_some_and(|request| request.line == Some(END));
    let replies: Vec<&[Value]> = run.events.split(|event| event["type"] == "request").collect();
    let reply = replies.iter().rev().nth(usize::from(went_on)).copied().unwrap_or_default();
    let message =
        of(reply, "message").find(|event| event["message"]["role"] == "assistant").cloned().unwrap_or_default();
    let calls: Vec<&Value> = of(reply, "call").collect();
    let usage = of(reply, "usage")
        .next()
        .map(|usage| json!({"prompt_tokens": usage["input"], "completion_tokens": usage["output"]}));
    let wanted = &case.expect;
    let mut wrong = Vec::new();
    let mut check = |holds: bool, what: String| wrong.extend((!holds).then_some(what));
    for text in [deltas(reply, "text"), message["message"]["content"].as_str().unwrap_or_default().to_owned()] {
        check(text == wanted.text, format!("text {text:?}, not {:?}", wanted.text));
    }
    let reasoning = deltas(reply, "reasoning");
    check(reasoning == wanted.reasoning.clone().unwrap_or_default(), format!("reasoning {reasoning:?}"));
    check(
        wanted.finish.is_none() || message["finish"] == json!(wanted.finish),
        format!("finish {}", message["finish"]),
    );
    check(wanted.usage.is_none() || usage == wanted.usage, format!("usage {usage:?}"));
    check(calls.len() == wanted.tool_calls.len(), format!("{} calls", calls.len()));
    for (call, wanted) in calls.iter().zip(&wanted.tool_calls) {
        check(is_call(call, wanted), format!("call {call}, not {wanted:?}"));
    }
    wrong
}

fn is_call(call: &Value, wanted: &CaseCall) -> bool {
    call["name"] == wanted.name
        && call["arguments"] == json!(wanted.arguments)
        && call["arguments"].is_null() == wanted.invalid
        && wanted.id.as_ref().is_none_or(|id| call["id"] == *id)
        && wanted.raw.as_ref().is_none_or(|raw| call["raw"] == *raw)
}

/// The events of one type.
fn of<'a>(events: &'a [Value], kind: &'a str) -> impl Iterator<Item = &'a Value> {
    events.iter().filter(move |event| event["type"] == kind)
}

/// The deltas of one type, joined.
fn deltas(events: &[Value], kind: &str) -> String {
    of(events, kind).filter_map(|event| event["delta"].as_str()).collect()
}
