//! A streamed reply with three calls that ends, breaks or stalls at every byte, up to the decision what to do about it.
//! (The same over a socket, at the boundaries of events, is `tests/it/faults.rs`.)

use super::*;
use crate::endpoint::watchdog::Watchdog;
use crate::event::Events;
use serde_json::{Value, json};
use std::io::{self, Read};
use std::sync::mpsc::{Receiver, channel};

/// A text, three calls in two fragments each, and a finish_reason. Also how long it must be to be complete.
fn body() -> (Vec<u8>, usize) {
    let event = |delta: Value, finish: Value| {
        format!("data: {}\n\n", json!({"choices": [{"index": 0, "delta": delta, "finish_reason": finish}]}))
    };
    let mut body = event(json!({"role": "assistant", "content": "Drei Änderungen."}), Value::Null);
    for n in 0..3 {
        let start = json!({"index": n, "id": format!("call-{n}"), "function": {"name": "act", "arguments": "{\"n\":"}});
        let rest = json!({"index": n, "function": {"arguments": format!("{n}}}")}});
        body += &event(json!({"tool_calls": [start]}), Value::Null);
        body += &event(json!({"tool_calls": [rest]}), Value::Null);
    }
    body += &event(json!({}), json!("tool_calls"));
    let complete = body.len() - "\n\n".len();
    (format!("{body}data: [DONE]\n\n").into_bytes(), complete)
}

/// What happens behind the bytes.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Then {
    /// The body ends, as if it were whole.
    Ends,
    /// The connection is reset.
    Breaks,
    /// No byte comes for the time that a read may take.
    Stalls,
    /// Nothing that counts comes, until the watchdog closes the connection.
    IsClosed,
}

struct Faulty<'a> {
    bytes: &'a [u8],
    then: Then,
    bitten: Receiver<()>,
}

impl Read for Faulty<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if !self.bytes.is_empty() {
            return self.bytes.read(buffer);
        }
        match self.then {
            Then::Ends => Ok(0),
            Then::Breaks => Err(io::ErrorKind::ConnectionReset.into()),
            Then::Stalls => Err(ureq::Error::Timeout(ureq::Timeout::RecvBody).into_io()),
            Then::IsClosed => {
                let _ = self.bitten.recv();
                Err(io::ErrorKind::ConnectionAborted.into())
            }
        }
    }
}

fn endpoint() -> Endpoint {
    let base_url = "http://127.0.0.1:9/v1".into();
    let mut endpoint =
        Endpoint::within(Settings { base_url, model: "m".into(), ..Settings::default() }, |_| None).unwrap();
    endpoint.line.progress_ms = 1;
    endpoint
}

fn attempt(endpoint: &mut Endpoint, bytes: &[u8], then: Then) -> Result<Assembly, Fault> {
    let (bite, bitten) = channel();
    let first_ms = if then == Then::IsClosed { 1 } else { 60_000 };
    endpoint.line.progress_ms = first_ms;
    let dog = Watchdog::new(first_ms, move || bite.send(()).unwrap_or_default());
    endpoint.line.stream(Faulty { bytes, then, bitten }, &dog, &mut Events::new(Vec::new()))
}

/// What would follow after so many retries, in a word.
fn next(endpoint: &mut Endpoint, fault: Fault, retries: u32) -> &'static str {
    let mut history = History::new();
    let ask = Ask { turn: 1, system: "", history: &mut history, tools: "[]" };
    match endpoint.next(fault, retries, &ask) {
        Next::Again { .. } => "again",
        Next::Stop(Failure::Failed(why)) if why.contains("http://127.0.0.1:9/v1/chat/completions: ") => "error",
        Next::Accept(assembly) if !assembly.has_calls() && !assembly.is_empty() => "accept text",
        _ => "something else",
    }
}

#[test]
fn a_reply_that_ends_breaks_or_stalls_at_any_byte_is_tried_again_and_no_call_of_it_is_handed_on() {
    let ((body, complete), mut endpoint) = (body(), endpoint());
    let arguments = |call: &crate::message::Call| Value::from(call.arguments.clone().unwrap_or_default());
    for at in 0..=body.len() {
        for then in [Then::Ends, Then::Breaks, Then::Stalls, Then::IsClosed] {
            if then == Then::IsClosed && at >= complete {
                continue; // the dog waits for seconds behind a finish_reason
            }
            let result = attempt(&mut endpoint, &body[..at], then);
            if at >= complete {
                let message = result.unwrap().into_message(&mut String::new);
                let calls: Vec<Value> = message.calls.iter().map(arguments).collect();
                assert_eq!(calls, [json!({"n": 0}), json!({"n": 1}), json!({"n": 2})], "{then:?} at {at}");
                continue;
            }
            let fault = result.map(|_| ()).expect_err("an incomplete reply");
            assert_eq!(next(&mut endpoint, fault, 0), "again", "{then:?} at {at}");
            let fault = attempt(&mut endpoint, &body[..at], then).unwrap_err();
            let is_text =
                matches!(&fault, Fault::Unfinished(assembly) if !assembly.is_empty() && !assembly.has_calls());
            let wanted = if is_text { "accept text" } else { "error" };
            assert_eq!(next(&mut endpoint, fault, retry::MOST), wanted, "{then:?} at {at}");
            assert!(!is_text || then == Then::Ends, "{then:?} at {at}");
        }
    }
}
