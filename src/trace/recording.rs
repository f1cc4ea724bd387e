//! A recording of the wire as events, and so as spans: when each piece of a reply came, what was called, how many tokens
//! it took.
//!
//! A recording is one side of the story. It knows how long the *model* took, by the pauses between the pieces; how long a
//! tool ran or a person thought, it does not. So calls stand there without a time, one after the other. A script written
//! by hand has no pauses either; of its lines that wait for a special request (`when`), none is shown.

use super::{Span, Tracer};
use crate::message::{Assistant, Message, Style};
use crate::replay::{Body, Chunk, Exchange, MODEL, Script, Section};
use crate::reply::Assembly;
use crate::sse;
use serde_json::{Value, json};

/// Every section of a recording is a run.
pub(super) fn spans(script: &Script) -> Vec<Span> {
    let mut tracer = Tracer::new(0);
    script.sections.iter().flat_map(events).flat_map(|event| tracer.event(&event)).collect()
}

/// The events that a section tells of.
fn events(section: &Section) -> Vec<Value> {
    let exchanges: Vec<&Exchange> = section.exchanges.iter().filter(|line| line.when.is_none()).collect();
    let asked = exchanges.first().and_then(|line| line.name.as_deref()).unwrap_or_default();
    let task = asked.strip_prefix("after user: ").unwrap_or(&section.name);
    let mut events = vec![
        json!({"type": "start", "session": "recording", "model": MODEL}),
        json!({"type": "message", "message": {"role": "user", "content": task}}),
    ];
    let (mut at, mut turn, mut attempt, mut last) = (0, 1, 1, "done");
    for (number, exchange) in exchanges.iter().enumerate() {
        let mut happened = |event: Value, at: u64| events.push(with_time(event, at));
        happened(json!({"type": "request", "turn": turn, "attempt": attempt}), at);
        let chunks = chunks(exchange);
        at += chunks.iter().filter_map(|chunk| chunk.pause_ms).fold(0, u64::saturating_add);
        if !(200..300).contains(&exchange.response.status) {
            let reason = format!("HTTP status {}", exchange.response.status);
            happened(json!({"type": "retry", "wait_ms": 0, "reason": reason}), at);
            (attempt, last) = (attempt + 1, "error");
            continue;
        }
        let next = exchanges.get(number + 1).and_then(|line| line.name.as_deref()).unwrap_or_default();
        replied(&chunks, next).into_iter().for_each(|event| happened(event, at));
        (turn, attempt, last) = (turn + 1, 1, "done");
    }
    events.push(with_time(json!({"type": "end", "outcome": last, "reason": "no reply came"}), at));
    events
}

/// What a reply brings: its tokens, its message, its calls. `next` is what the recording says of the request after it.
fn replied(chunks: &[Chunk], next: &str) -> Vec<Value> {
    let reply = assemble(chunks);
    let (mut usage, finish) = (json!(reply.usage()), json!(reply.finish_reason()));
    usage["type"] = "usage".into();
    let mut unnamed = 0;
    let reply: Assistant = reply.into_message(&mut || {
        unnamed += 1;
        format!("call-{unnamed}")
    });
    let calls = reply.calls.clone();
    let message = Message::Assistant(reply).to_json(Style::default());
    let mut events = vec![usage, json!({"type": "message", "message": message, "finish": finish})];
    for (number, call) in (1..).zip(&calls) {
        // The next request is named after its last message: the last call's result.
        let failed = ["after tool: Error:", "after tool: Blocked:"].iter().any(|words| next.starts_with(words));
        let (ok, text) = match number == calls.len() && failed {
            true => (false, next.trim_start_matches("after tool: ")),
            false => (true, ""),
        };
        events.push(json!({"type": "call", "id": call.id, "name": call.name, "raw": call.raw}));
        events.push(json!({"type": "result", "id": call.id, "ok": ok, "text": text}));
    }
    events
}

/// The reply out of its bytes; of one that is broken, what came.
fn assemble(chunks: &[Chunk]) -> Assembly {
    let (mut parser, mut reply) = (sse::Parser::new(), Assembly::default());
    let mut take = |event: sse::Event| drop(reply.take(event, &mut |_| {}));
    for chunk in chunks {
        if parser.feed(&chunk.bytes, &mut take).is_err() {
            break;
        }
    }
    parser.finish(&mut take);
    reply
}

fn chunks(exchange: &Exchange) -> Vec<Chunk> {
    match &exchange.response.body {
        Body::Chunks(chunks) => chunks.clone(),
        Body::Reply(reply) => reply.stream(MODEL, 0, true),
    }
}

fn with_time(mut event: Value, at: u64) -> Value {
    event["at"] = at.into();
    event
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::replay::{Seen, line};
    use crate::trace::Kind;

    /// A recorded exchange: a request that ends with this message, a reply with these deltas, each after 500 ms.
    fn recorded(role: &str, content: &str, deltas: &[Value], finish: &str) -> String {
        let body = json!({"messages": [{"role": role, "content": content}]}).to_string();
        let event = |choices: Value| format!("data: {}\n\n", json!({"choices": choices}));
        let mut chunks: Vec<String> = deltas.iter().map(|delta| event(json!([{"index": 0, "delta": delta}]))).collect();
        chunks.push(event(json!([{"index": 0, "delta": {}, "finish_reason": finish}])));
        let usage = json!({"choices": [], "usage": {"prompt_tokens": 812, "completion_tokens": 40}});
        chunks.push(format!("data: {usage}\n\ndata: [DONE]\n\n"));
        let chunks: Vec<(Vec<u8>, u64)> = chunks.into_iter().map(|chunk| (chunk.into_bytes(), 500)).collect();
        let (request, headers) = (body.into_bytes(), vec![("content-type".into(), "text/event-stream".into())]);
        line(&Seen { request, status: 200, headers, chunks, whole: true })
    }

    #[test]
    fn a_recording_shows_the_models_time_its_calls_and_its_tokens() {
        let call = json!({"tool_calls": [{"index": 0, "id": "c1", "function": {"name": "read", "arguments": "{\"path\":\"x\"}"}}]});
        let text = [
            recorded("user", "what is in x?", &[call], "tool_calls"),
            line(&Seen {
                request: b"{}".to_vec(),
                status: 503,
                headers: Vec::new(),
                chunks: vec![(b"busy".to_vec(), 100)],
                whole: true,
            }),
            recorded("tool", "Error: there is no file x", &[json!({"content": "Nothing."})], "stop"),
        ];
        // What stands between a reply and its result is an attempt that failed: the result is named only behind it.
        let spans = super::spans(&Script::parse(&text.join("\n")).unwrap());
        let of = |kind: Kind| spans.iter().filter(|span| span.kind == kind).collect::<Vec<_>>();
        let models: Vec<(u64, u64, u64)> =
            of(Kind::Model).iter().map(|span| (span.start, span.end, span.usage.unwrap().input)).collect();
        assert_eq!(models, [(0, 1_500, 812), (1_500, 3_100, 812)]);
        assert_eq!(of(Kind::Model)[1].details["retries"], json!(["HTTP status 503"]));
        assert_eq!((of(Kind::Tool)[0].name.as_str(), of(Kind::Run)[0].input.as_str()), ("read", "what is in x?"));
        assert_eq!(of(Kind::Run)[0].error, None);
    }

    #[test]
    fn a_call_whose_result_is_an_error_is_marked() {
        let call = json!({"tool_calls": [{"index": 0, "id": "c1", "function": {"name": "read", "arguments": "{}"}}]});
        let text = [
            recorded("user", "go", &[call], "tool_calls"),
            recorded("tool", "Error: there is no file x", &[json!({"content": "Nothing."})], "stop"),
        ];
        let spans = super::spans(&Script::parse(&text.join("\n")).unwrap());
        let tool = spans.iter().find(|span| span.kind == Kind::Tool).unwrap();
        assert_eq!(tool.error.as_deref(), Some("Error: there is no file x"));
    }
}
