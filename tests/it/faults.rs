//! A streamed reply with three calls that is ended, cut, reset or stalled over a socket, at every boundary between its
//! events and one byte to either side: once, and again and again. The tools keep count. (At every byte, without a socket:
//! `src/endpoint/tests.rs`.)

use mini::cancel::Cancel;
use mini::endpoint::{Endpoint, Settings};
use mini::event::{Event, Observer, Outcome, Stamp};
use mini::process::Processes;
use mini::replay::{Pace, Script, Server};
use mini::rundir::RunDir;
use mini::setup::Setup;
use mini::tool::{Check, Context, Json, Spec, Tool};
use mini::workspace::Workspace;
use serde_json::{Value, json};
use std::cell::RefCell;
use std::collections::VecDeque;
use std::rc::Rc;
use std::sync::Mutex;

/// Where, how and how often the reply fails.
#[derive(Clone, Copy, Debug)]
struct Fault {
    at: usize,
    end: &'static str,
    always: bool,
}

/// The events of the reply: a text, three calls in two fragments each, a finish_reason, `[DONE]`.
fn reply() -> Vec<String> {
    let event = |delta: Value, finish: Value| {
        format!("data: {}\n\n", json!({"choices": [{"index": 0, "delta": delta, "finish_reason": finish}]}))
    };
    let mut events = vec![event(json!({"role": "assistant", "content": "Three changes."}), Value::Null)];
    for n in 0..3 {
        let start = json!({"index": n, "id": format!("call-{n}"), "function": {"name": "act", "arguments": "{\"n\":"}});
        let rest = json!({"index": n, "function": {"arguments": format!("{n}}}")}});
        events.extend([start, rest].map(|call| event(json!({"tool_calls": [call]}), Value::Null)));
    }
    events.extend([event(json!({}), json!("tool_calls")), "data: [DONE]\n\n".into()]);
    events
}

/// Notes its argument.
struct Act(Rc<RefCell<Vec<u64>>>);

impl Tool for Act {
    fn spec(&self) -> Spec {
        let parameters = json!({"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]});
        Spec { name: "act".into(), description: "acts".into(), parameters, read_only: false }
    }
    fn check<'a>(&'a mut self, args: &Json, _: &mut Context) -> Check<'a> {
        let n = args["n"].as_u64().unwrap_or(99);
        Check::Run(Box::new(move |_| {
            self.0.borrow_mut().push(n);
            Ok("acted".into())
        }))
    }
}

#[derive(Clone, Default)]
struct Notices(Rc<RefCell<String>>);

impl Observer for Notices {
    fn event(&mut self, _: &Stamp, event: &Event) -> Result<(), String> {
        if let Event::Notice { text } = event {
            self.0.borrow_mut().push_str(text);
        }
        Ok(())
    }
}

/// The script: the faulty reply once or always, the whole one, and the end behind its results.
fn script(fault: Fault) -> Script {
    let body = reply().concat();
    let first = json!({"last_contains": "go"});
    let faulty = json!({"chunks": [body[..fault.at]], "end": fault.end});
    let lines = [
        json!({"when": first, "response": faulty, "repeat": if fault.always { 16 } else { 1 }}),
        // Several times: on a busy machine a healthy reply can come too late as well.
        json!({"when": first, "response": {"chunks": [body]}, "repeat": 4}),
        json!({"when": {"last_contains": "acted"}, "response": {"text": "Done."}, "repeat": 4}),
    ];
    Script::parse(&lines.map(|line| line.to_string()).join("\n")).unwrap()
}

/// What is wrong with the run, if anything.
fn play(fault: Fault, complete: usize) -> Result<(), String> {
    let server = Server::start(script(fault), Pace::AtOnce).unwrap();
    let settings = Settings {
        base_url: server.base_url(),
        model: "m".into(),
        retry_base_ms: 1,
        idle_ms: 400,
        ..Settings::default()
    };
    let dir = tempfile::tempdir().unwrap();
    let workspace = Workspace::open(dir.path(), RunDir::create(&dir.path().join(".state")).unwrap()).unwrap();
    let endpoint = Endpoint::within(settings, |_| None).unwrap();
    let mut setup = Setup::new(workspace, endpoint, Cancel::new(), Processes::new(Vec::new()));
    let (ran, notices) = (Rc::default(), Notices::default());
    setup.tools = vec![Box::new(Act(Rc::clone(&ran)))];
    setup.observers.push(Box::new(notices.clone()));
    let (mut agent, mut cx) = setup.build().unwrap();
    let end = agent.run("go", &mut cx);
    let (ran, reason, notices) = (ran.borrow().clone(), end.reason.unwrap_or_default(), notices.0.borrow().clone());
    let is_right = match (end.outcome, fault.always && fault.at < complete) {
        (Outcome::Done, false) => ran == [0, 1, 2] && end.text == "Done.",
        (Outcome::Done, true) => ran.is_empty() && fault.end == "eof" && notices.contains("taken as the answer"),
        (Outcome::Error, true) => ran.is_empty() && reason.starts_with("gave up after 4 attempts. http://"),
        _ => false,
    };
    let failures = server.finish().failures;
    match is_right && failures.is_empty() {
        true => Ok(()),
        false => Err(format!("{fault:?}: {:?}, ran {ran:?}, {reason:?}, {failures:?}", end.outcome)),
    }
}

#[test]
fn no_fault_of_the_connection_runs_a_tool_of_an_incomplete_reply_or_one_twice() {
    let (events, mut faults, mut end) = (reply(), VecDeque::new(), 0);
    let whole = events.concat().len();
    let complete = whole - "data: [DONE]\n\n".len() - "\n\n".len();
    for event in std::iter::once("").chain(events.iter().map(String::as_str)) {
        end += event.len();
        for at in [end.saturating_sub(1), end, (end + 1).min(whole)] {
            for fault in ["eof", "truncate", "reset", "stall"] {
                faults.extend([false, true].map(|always| Fault { at, end: fault, always }));
            }
        }
    }
    let (queue, wrong) = (Mutex::new(faults), Mutex::new(Vec::new()));
    std::thread::scope(|scope| {
        for _ in 0..16 {
            scope.spawn(|| {
                while let Some(fault) = { queue.lock().unwrap().pop_front() } {
                    let found = play(fault, complete).err();
                    wrong.lock().unwrap().extend(found);
                }
            });
        }
    });
    let wrong = wrong.into_inner().unwrap();
    assert!(wrong.is_empty(), "{} wrong:\n{}", wrong.len(), wrong.join("\n"));
}
