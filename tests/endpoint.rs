//! Plays every case of `tests/cases/wire` and `tests/cases/wire-own` through [`Endpoint::ask`], with tools that return
//! fixed texts.
//!
//! The server is real (the replay server on loopback), the loop is not: here only the endpoint is tested. Cases run in
//! parallel, since several of them wait for a time limit.

use mini::cancel::Cancel;
use mini::endpoint::{Ask, Endpoint, Failure, Reply, Settings};
use mini::event::{Event, Events, Observer, Stamp};
use mini::message::{Call, History, check_pairs};
use mini::replay::{Case, CaseCall, CaseOutcome, Pace, Script, Server, from_case};
use serde_json::{Value, json};
use std::cell::RefCell;
use std::collections::VecDeque;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::sync::Mutex;

/// What one run of a case gave.
struct Run {
    result: Result<Reply, Failure>,
    events: Vec<Event>,
    tools_run: usize,
    requests: usize,
    /// Requests that were not as the case wants them.
    complaints: Vec<String>,
}

#[derive(Clone, Default)]
struct Log(Rc<RefCell<Vec<Event>>>);

impl Observer for Log {
    fn event(&mut self, _: &Stamp, event: &Event) -> Result<(), String> {
        self.0.borrow_mut().push(event.clone());
        Ok(())
    }
}

#[test]
fn every_wire_case() {
    let folders = ["tests/cases/wire", "tests/cases/wire-own"].map(|folder| std::fs::read_dir(folder).unwrap());
    let mut files: Vec<PathBuf> = folders.into_iter().flatten().map(|entry| entry.unwrap().path()).collect();
    files.retain(|file| file.extension().is_some_and(|end| end == "json"));
    files.sort();
    assert!(files.len() > 50, "only {} cases found", files.len());
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

fn play_file(file: &Path) -> Vec<String> {
    let text = std::fs::read_to_string(file).unwrap();
    let (_, case) = from_case(&text).unwrap();
    let any = case.config.get("base_url_any").and_then(Value::as_array).cloned();
    let base = case.config.get("base_url").cloned().unwrap_or("http://HOST/v1".into());
    let mut failures = Vec::new();
    for base in any.unwrap_or_else(|| vec![base]) {
        let (script, case) = from_case(&text).unwrap();
        let run = play(script, &case, base.as_str().unwrap());
        failures.extend(judge(&case, &run).into_iter().map(|what| format!("{} ({base}): {what}", case.id)));
    }
    failures
}

fn play(script: Script, case: &Case, base: &str) -> Run {
    let server = Server::start(script, Pace::AtOnce).unwrap();
    let host = server.base_url().replace("http://", "").replace("/v1", "");
    let variables = case.config.get("env").cloned().unwrap_or_default();
    let env = |name: &str| variables[name].as_str().map(str::to_owned);
    let mut endpoint = Endpoint::within(settings(case, base.replace("HOST", &host)), env).unwrap();
    let log = Log::default();
    let mut events = Events::new(vec![Box::new(log.clone())]);
    let mut history = History::new();
    history.user("Do what is to be done.");
    let mut tools_run = 0;
    let result = loop {
        let ask = Ask { turn: 1, system: "You are a test.", history: &mut history, tools: TOOLS };
        let reply = match endpoint.ask(ask, &mut events, &Cancel::new()) {
            Ok(reply) => reply,
            failure => break failure,
        };
        // A case with one response is about that reply; one with an exchange goes on until there are no calls.
        if reply.message.calls.is_empty() || server.transcript().unplayed == 0 {
            break Ok(reply);
        }
        history.assistant(reply.message.clone());
        for call in &reply.message.calls {
            let stub = case.stub_tools.get(&call.name).and_then(Value::as_str);
            tools_run += usize::from(stub.is_some() && call.arguments.is_ok());
            history.answer(answer(call, stub));
        }
        assert_eq!(check_pairs(history.messages()), Ok(()));
    };
    let events = log.0.borrow().clone();
    let transcript = server.finish();
    let complaints = transcript.failures.iter().map(ToString::to_string).collect();
    Run { result, events, tools_run, requests: transcript.requests.len(), complaints }
}

fn answer(call: &Call, stub: Option<&str>) -> String {
    match (&call.arguments, stub) {
        (Err(why), _) => format!("Error: {why}"),
        (Ok(_), None) => format!("Error: there is no tool {}", call.name),
        (Ok(_), Some(text)) => text.to_owned(),
    }
}

const TOOLS: &str = r#"[{"type":"function","function":{"name":"read_file","description":"Reads.","parameters":{"type":"object","properties":{"path":{"type":"string"}},"required":["path"]}}}]"#;

fn settings(case: &Case, base_url: String) -> Settings {
    let number = |name: &str| case.config.get(name).and_then(Value::as_u64);
    Settings {
        base_url,
        model: "m-test".into(),
        key: Some(case.config.get("api_key").and_then(Value::as_str).unwrap_or("test-key").into()),
        key_source: "OPENAI_API_KEY".into(),
        retry_base_ms: 250,
        idle_ms: number("idle_timeout_ms").unwrap_or(20_000),
        progress_ms: number("progress_timeout_ms").unwrap_or(60_000),
        max_output_tokens: number("max_tokens"),
        temperature: case.config.get("temperature").and_then(Value::as_f64),
        ..Settings::default()
    }
}

/// What is not as the case wants it.
fn judge(case: &Case, run: &Run) -> Vec<String> {
    let mut wrong = run.complaints.clone();
    let mut check = |holds: bool, what: String| {
        if !holds {
            wrong.push(what);
        }
    };
    let wanted = &case.expect;
    match (&run.result, wanted.outcome) {
        (Ok(reply), CaseOutcome::Ok) => {
            let text = &reply.message.text;
            let last = run.events.iter().rposition(|event| matches!(event, Event::Request { .. })).unwrap_or_default();
            let shown = shown(&run.events[last..], |_| true);
            check(*text == wanted.text, format!("text {text:?}, not {:?}", wanted.text));
            check(shown.1 == wanted.reasoning.clone().unwrap_or_default(), format!("reasoning {:?}", shown.1));
            check(wanted.finish.is_none() || reply.finish == wanted.finish, format!("finish {:?}", reply.finish));
            let calls = &reply.message.calls;
            check(calls.len() == wanted.tool_calls.len(), format!("{} calls", calls.len()));
            for (call, wanted) in calls.iter().zip(&wanted.tool_calls) {
                check(is_call(call, wanted), format!("call {call:?}, not {wanted:?}"));
            }
            let usage = json!({"prompt_tokens": reply.usage.input, "completion_tokens": reply.usage.output});
            check(wanted.usage.as_ref().is_none_or(|wanted| *wanted == usage), format!("usage {usage}"));
        }
        (Err(Failure::Failed(_) | Failure::Overflow(_)), CaseOutcome::Retry | CaseOutcome::Error) => {}
        // Text without an end, again and again, is accepted at last (067).
        (Ok(_), CaseOutcome::Retry) if wanted.error_mentions.is_empty() => {}
        (result, outcome) => check(false, format!("{result:?}, not {outcome:?}")),
    }
    let said = said(run).to_lowercase();
    for part in &wanted.error_mentions {
        check(said.contains(&part.to_lowercase()), format!("{part:?} is not said in {said:?}"));
    }
    for part in &wanted.error_lacks {
        check(!said.contains(part), format!("{part:?} is said in {said:?}"));
    }
    if let Some(partial) = &wanted.partial_text {
        let first = shown(&run.events, |event| !matches!(event, Event::Retry { .. })).0;
        check(first == *partial, format!("partial text {first:?}"));
    }
    let retries = run.events.iter().filter(|event| matches!(event, Event::Retry { .. })).count();
    if wanted.outcome == CaseOutcome::Retry {
        check((1..=3).contains(&retries) && run.requests == retries + 1, format!("{} requests", run.requests));
    }
    check(wanted.requests.is_none_or(|wanted| wanted == run.requests), format!("{} requests", run.requests));
    check(wanted.tools_run.is_none_or(|wanted| wanted == run.tools_run), format!("{} tools run", run.tools_run));
    wrong
}

fn is_call(call: &Call, wanted: &CaseCall) -> bool {
    let arguments = call.arguments.as_ref().ok().map(|arguments| Value::from(arguments.clone()));
    call.name == wanted.name
        && arguments == wanted.arguments
        && call.arguments.is_err() == wanted.invalid
        && wanted.id.as_ref().is_none_or(|id| *id == call.id)
        && wanted.raw.as_ref().is_none_or(|raw| *raw == call.raw)
}

/// Text and reasoning as they were shown, while `going_on` holds.
fn shown(events: &[Event], going_on: impl Fn(&Event) -> bool) -> (String, String) {
    let (mut text, mut reasoning) = (String::new(), String::new());
    for event in events.iter().take_while(|event| going_on(event)) {
        match event {
            Event::Text { delta } => text.push_str(delta),
            Event::Reasoning { delta } => reasoning.push_str(delta),
            _ => {}
        }
    }
    (text, reasoning)
}

/// The failure's words and all notices.
fn said(run: &Run) -> String {
    let failure = match &run.result {
        Err(Failure::Failed(why) | Failure::Overflow(why)) => why.as_str(),
        _ => "",
    };
    let notices = run.events.iter().filter_map(|event| match event {
        Event::Notice { text } => Some(text.as_str()),
        _ => None,
    });
    std::iter::once(failure).chain(notices).collect::<Vec<_>>().join("\n")
}
