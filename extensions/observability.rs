//! What an agent did, for a viewer: every task as a trace, in a file or in a collector.
//!
//! An observer sees events and changes nothing. mini's own [`Tracer`] makes spans out of them (the same that
//! `mini --trace` draws); this file gives the spans the names that viewers know, and sends them.
//!
//! - `--ext observability=trace.jsonl` appends them to a file, a span a line, for `mini --trace trace.jsonl` and awk.
//! - `--ext observability=http://127.0.0.1:6006` sends them to a collector: OpenTelemetry's protocol over HTTP. The
//!   attributes have OpenInference's names, which Arize Phoenix shows well, and the `gen_ai` names of OpenTelemetry.
//!
//! A task's spans go out when it is over, within 2 s or not at all. A collector that is not there is found out at the
//! start, warned of once, and changes no exit code: without a viewer an agent works on.
//!
//! The protocol is binary (protobuf; Phoenix takes no JSON), and needs three kinds of fields: see [`Message`]. Rejected:
//! the opentelemetry crates, which bring an async runtime; in the tests their types decode what is written here.
//!
//! Left out: keys for a collector and proxies (a local viewer needs neither), metrics, and the system text and schemas
//! of tools, which no event holds.

use mini::event::{Event, Observer, Stamp, line};
use mini::setup::Setup;
use mini::trace::{Kind, Span, Tracer};
use serde_json::{Value, json};
use std::fs::{File, OpenOptions};
use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::time::Duration;

/// How long a collector may take.
const PATIENCE: Duration = Duration::from_secs(2);

/// Attaches the observer: `arg` is a file, or the URL of a collector.
pub fn attach(setup: &mut Setup, arg: Option<&str>) -> Result<(), String> {
    let arg = arg.filter(|arg| !arg.is_empty()).ok_or(
        "where shall the trace go? To a file (--ext observability=trace.jsonl), or to a collector such as Phoenix \
         (--ext observability=http://127.0.0.1:6006)",
    )?;
    let watch = match arg.starts_with("http://") || arg.starts_with("https://") {
        true => {
            let tracer = Tracer::unique().with_conversation();
            Watch { tracer, target: Target::Collector(Collector::new(arg, PATIENCE)?) }
        }
        false => Watch { tracer: Tracer::unique(), target: Target::File(open(Path::new(arg))?, arg.to_owned()) },
    };
    setup.observers.push(Box::new(watch));
    Ok(())
}

/// Readable by the user alone: a trace holds the conversation.
fn open(path: &Path) -> Result<File, String> {
    let file = OpenOptions::new().create(true).append(true).mode(0o600).open(path);
    file.map_err(|e| format!("cannot write the trace to {}: {e}", path.display()))
}

/// The observer.
struct Watch {
    tracer: Tracer,
    target: Target,
}

impl Observer for Watch {
    fn event(&mut self, stamp: &Stamp, event: &Event) -> Result<(), String> {
        match event {
            Event::Reasoning { .. } | Event::Text { .. } | Event::Output { .. } => return Ok(()),
            // Nobody there? Better said now than at the end. An empty message is a valid one.
            Event::Start { .. } => self.target.send(&[])?,
            _ => {}
        }
        let event_line: Value = serde_json::from_str(&line(stamp, event)).map_err(|e| format!("no trace: {e}"))?;
        let spans = self.tracer.event(&event_line);
        let sent = if spans.is_empty() { Ok(()) } else { self.target.send(&spans) };
        match (sent, event) {
            // `end` is the last event, so this can be no notice any more.
            (Err(why), Event::End { .. }) => {
                let _ = writeln!(std::io::stderr(), "mini: {why}"); // a closed stderr leaves nobody to tell
                Ok(())
            }
            (sent, _) => sent,
        }
    }
}

/// Where spans go.
enum Target {
    File(File, String),
    Collector(Collector),
}

impl Target {
    fn send(&mut self, spans: &[Span]) -> Result<(), String> {
        match self {
            Target::Collector(collector) => collector.post(&request(spans)),
            Target::File(file, path) => {
                let lines: String = spans.iter().map(|span| json!(span).to_string() + "\n").collect();
                file.write_all(lines.as_bytes()).map_err(|e| format!("the trace ends here: cannot write {path}: {e}"))
            }
        }
    }
}

/// A collector of OpenTelemetry's.
struct Collector {
    agent: ureq::Agent,
    url: String,
}

impl Collector {
    fn new(url: &str, patience: Duration) -> Result<Collector, String> {
        let uri: ureq::http::Uri = url.parse().map_err(|e| format!("{url} is not a URL: {e}"))?;
        if uri.authority().is_some_and(|place| place.as_str().contains('@')) {
            return Err("a collector's URL with a name or key in it is not taken: it would be shown".into());
        }
        let config = ureq::Agent::config_builder().timeout_global(Some(patience)).http_status_as_error(false);
        let agent = config.max_redirects(0).proxy(None).build().new_agent();
        let path = if matches!(uri.path(), "" | "/") { "/v1/traces" } else { "" };
        Ok(Collector { agent, url: url.trim_end_matches('/').to_owned() + path })
    }

    fn post(&self, body: &[u8]) -> Result<(), String> {
        // Exactly this type: Phoenix refuses it with a charset behind it, and JSON altogether.
        let sent = self.agent.post(&self.url).header("content-type", "application/x-protobuf").send(body);
        let why = match sent {
            Ok(reply) if reply.status().is_success() => return Ok(()),
            Ok(reply) => format!("it answers with HTTP status {}", reply.status().as_u16()),
            Err(e) => e.to_string(),
        };
        Err(format!("no more tracing: the collector {} does not take the spans: {why}", self.url))
    }
}

/// A message of protobuf: its fields in order, each with its number and kind. Repeating a field makes a list.
#[derive(Default)]
struct Message(Vec<u8>);

impl Message {
    /// Seven bits a byte, the low ones first; the high bit says that more follow.
    fn raw(&mut self, mut value: u64) {
        while value > 0x7f {
            self.0.push(value as u8 | 0x80);
            value >>= 7;
        }
        self.0.push(value as u8);
    }

    fn varint(mut self, field: u64, value: u64) -> Message {
        self.raw(field << 3);
        self.raw(value);
        self
    }

    fn fixed64(mut self, field: u64, value: u64) -> Message {
        self.raw(field << 3 | 1);
        self.0.extend(value.to_le_bytes());
        self
    }

    fn bytes(mut self, field: u64, bytes: &[u8]) -> Message {
        self.raw(field << 3 | 2);
        self.raw(bytes.len() as u64);
        self.0.extend(bytes);
        self
    }

    fn all(self, field: u64, messages: impl IntoIterator<Item = Message>) -> Message {
        messages.into_iter().fold(self, |whole, part| whole.bytes(field, &part.0))
    }
}

/// The request that hands spans over. The numbers are those of opentelemetry/proto/trace/v1/trace.proto.
fn request(spans: &[Span]) -> Vec<u8> {
    if spans.is_empty() {
        return Vec::new();
    }
    let names = [("service.name", "mini"), ("openinference.project.name", "mini")];
    let resource = Message::default().all(1, names.map(|(name, value)| attribute(name, &value.into())));
    let scope = Message::default().bytes(1, b"mini").bytes(2, env!("CARGO_PKG_VERSION").as_bytes());
    let scope_spans = Message::default().all(1, [scope]).all(2, spans.iter().map(encode));
    Message::default().all(1, [Message::default().all(1, [resource]).all(2, [scope_spans])]).0
}

fn encode(span: &Span) -> Message {
    let ns = |ms: u64| ms.saturating_mul(1_000_000);
    let kind = if span.kind == Kind::Model { 3 } else { 1 }; // client, internal
    let (code, why) = span.error.as_deref().map_or((1, ""), |why| (2, why)); // ok, error
    Message::default()
        .bytes(1, &unhex(&span.trace))
        .bytes(2, &unhex(&span.id))
        .bytes(4, &unhex(span.parent.as_deref().unwrap_or_default())) // empty: none, as everywhere in protobuf
        .bytes(5, span.name.as_bytes())
        .varint(6, kind)
        .fixed64(7, ns(span.start))
        .fixed64(8, ns(span.end))
        .all(9, attributes(span).iter().map(|(name, value)| attribute(name, value)))
        .all(15, [Message::default().bytes(2, why.as_bytes()).varint(3, code)])
}

/// An attribute: its name and a value.
fn attribute(name: &str, value: &Value) -> Message {
    Message::default().bytes(1, name.as_bytes()).all(2, [any(value)])
}

fn any(value: &Value) -> Message {
    match value {
        Value::Bool(yes) => Message::default().varint(2, u64::from(*yes)),
        Value::Number(number) => Message::default().varint(3, number.as_u64().unwrap_or_default()),
        Value::Array(values) => Message::default().all(5, [Message::default().all(1, values.iter().map(any))]),
        Value::String(text) => Message::default().bytes(1, text.as_bytes()),
        value => Message::default().bytes(1, value.to_string().as_bytes()),
    }
}

fn unhex(hex: &str) -> Vec<u8> {
    let pairs = hex.as_bytes().chunks(2).filter_map(|pair| std::str::from_utf8(pair).ok());
    pairs.filter_map(|pair| u8::from_str_radix(pair, 16).ok()).collect()
}

/// A span's attributes, by the names of OpenInference and OpenTelemetry.
fn attributes(span: &Span) -> Vec<(String, Value)> {
    let mut all = Attributes(Vec::new());
    let (kind, operation) = match span.kind {
        Kind::Run => ("AGENT", "invoke_agent"),
        Kind::Turn | Kind::Hook => ("CHAIN", ""),
        Kind::Model => ("LLM", "chat"),
        Kind::Tool => ("TOOL", "execute_tool"),
    };
    all.add("openinference.span.kind", kind);
    all.add("session.id", span.session.as_str());
    all.add("gen_ai.conversation.id", span.session.as_str());
    all.add("gen_ai.operation.name", operation);
    all.add("input.value", span.input.as_str());
    all.add("output.value", span.output.as_str());
    all.add("mini.waited_ms", span.waited);
    match span.kind {
        Kind::Run => all.add("gen_ai.agent.name", "mini"),
        Kind::Model => all.model(span),
        Kind::Tool => all.tool(span),
        Kind::Turn | Kind::Hook => {}
    }
    for (name, value) in &span.details {
        all.add(&format!("mini.{name}"), value.clone());
    }
    all.0
}

struct Attributes(Vec<(String, Value)>);

impl Attributes {
    /// Adds one, unless it says nothing.
    fn add(&mut self, name: &str, value: impl Into<Value>) {
        let value = value.into();
        if !value.is_null() && value != "" {
            self.0.push((name.into(), value));
        }
    }

    fn model(&mut self, span: &Span) {
        let model = &span.details.get("model").cloned().unwrap_or_default();
        self.add("llm.model_name", model.clone());
        self.add("gen_ai.request.model", model.clone());
        self.add("gen_ai.response.finish_reasons", span.details.get("finish").map(|finish| json!([finish])));
        if let Some(usage) = span.usage {
            self.add("llm.token_count.prompt", usage.input);
            self.add("llm.token_count.completion", usage.output);
            self.add("llm.token_count.total", usage.total());
            self.add("llm.token_count.prompt_details.cache_read", usage.cached);
            self.add("llm.token_count.completion_details.reasoning", usage.reasoning);
            self.add("gen_ai.usage.input_tokens", usage.input);
            self.add("gen_ai.usage.output_tokens", usage.output);
        }
        for (number, message) in span.sent.iter().enumerate() {
            self.message(&format!("llm.input_messages.{number}.message"), message);
        }
        span.reply.iter().for_each(|reply| self.message("llm.output_messages.0.message", reply));
    }

    fn message(&mut self, at: &str, message: &Value) {
        for name in ["role", "content", "tool_call_id"] {
            self.add(&format!("{at}.{name}"), message[name].clone());
        }
        let calls = message["tool_calls"].as_array().into_iter().flatten();
        for (number, call) in calls.enumerate() {
            let at = format!("{at}.tool_calls.{number}.tool_call");
            self.add(&format!("{at}.id"), call["id"].clone());
            self.add(&format!("{at}.function.name"), call["function"]["name"].clone());
            self.add(&format!("{at}.function.arguments"), call["function"]["arguments"].clone());
        }
    }

    fn tool(&mut self, span: &Span) {
        let call = span.details.get("call").cloned().unwrap_or_default();
        self.add("input.mime_type", "application/json");
        self.add("tool.name", span.name.as_str());
        self.add("gen_ai.tool.name", span.name.as_str());
        self.add("tool_call.id", call.clone());
        self.add("gen_ai.tool.call.id", call);
        self.add("tool.parameters", span.input.as_str());
        self.add("gen_ai.tool.call.arguments", span.input.as_str());
        self.add("gen_ai.tool.call.result", span.output.as_str());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use opentelemetry_proto::tonic::collector::trace::v1::ExportTraceServiceRequest;
    use opentelemetry_proto::tonic::common::v1::any_value::Value as Any;
    use opentelemetry_proto::tonic::trace::v1::Span as Official;
    use prost::Message as _;
    use std::io::Read;
    use std::net::TcpListener;
    use std::sync::mpsc::{Receiver, channel};

    const RUN: &str = include_str!("../tests/cases/trace/waiting.jsonl");

    fn spans() -> Vec<Span> {
        let mut tracer = Tracer::new(1).with_conversation();
        RUN.lines().flat_map(|line| tracer.event(&serde_json::from_str(line).unwrap())).collect()
    }

    /// What the official types make of our bytes.
    fn decoded(bytes: &[u8]) -> Vec<Official> {
        let request = ExportTraceServiceRequest::decode(bytes).unwrap();
        let [resource] = &request.resource_spans[..] else { panic!("{request:?}") };
        let names: Vec<&str> =
            resource.resource.as_ref().unwrap().attributes.iter().map(|pair| pair.key.as_str()).collect();
        assert_eq!(names, ["service.name", "openinference.project.name"]);
        assert_eq!(resource.scope_spans[0].scope.as_ref().unwrap().name, "mini");
        resource.scope_spans[0].spans.clone()
    }

    /// An attribute as text.
    fn value(span: &Official, name: &str) -> Option<String> {
        let pair = span.attributes.iter().find(|pair| pair.key == name)?;
        match pair.value.as_ref()?.value.as_ref()? {
            Any::StringValue(text) => Some(text.clone()),
            Any::IntValue(number) => Some(number.to_string()),
            other => Some(format!("{other:?}")),
        }
    }

    #[test]
    fn the_official_types_read_every_span_as_it_was() {
        let (ours, theirs) = (spans(), decoded(&request(&spans())));
        assert_eq!(ours.len(), theirs.len());
        let hex = |bytes: &[u8]| bytes.iter().map(|byte| format!("{byte:02x}")).collect::<String>();
        for (ours, theirs) in ours.iter().zip(&theirs) {
            assert_eq!((hex(&theirs.trace_id), hex(&theirs.span_id)), (ours.trace.clone(), ours.id.clone()));
            assert_eq!(hex(&theirs.parent_span_id), ours.parent.clone().unwrap_or_default());
            assert_eq!((theirs.trace_id.len(), theirs.span_id.len()), (16, 8));
            assert_eq!(theirs.start_time_unix_nano, ours.start * 1_000_000);
            assert_eq!(theirs.end_time_unix_nano, ours.end * 1_000_000);
            assert_eq!(theirs.name, ours.name);
            let status = theirs.status.as_ref().unwrap();
            assert_eq!(
                (status.code, &status.message),
                (1 + i32::from(ours.error.is_some()), ours.error.as_ref().unwrap_or(&String::new()))
            );
            assert_eq!(value(theirs, "session.id").as_ref(), Some(&ours.session));
        }
    }

    #[test]
    fn models_and_tools_have_the_names_that_viewers_know() {
        let theirs = decoded(&request(&spans()));
        let of = |kind: &str| {
            theirs.iter().find(|span| value(span, "openinference.span.kind").as_deref() == Some(kind)).unwrap()
        };
        for (kind, name, wanted) in [
            ("AGENT", "gen_ai.operation.name", "invoke_agent"),
            ("LLM", "llm.model_name", "m"),
            ("LLM", "llm.token_count.prompt", "812"),
            ("LLM", "llm.token_count.total", "852"),
            ("LLM", "gen_ai.usage.output_tokens", "40"),
            ("LLM", "llm.input_messages.0.message.role", "user"),
            ("LLM", "mini.waited_ms", "500"),
            ("TOOL", "tool.name", "edit"),
            ("TOOL", "gen_ai.tool.call.id", "c1"),
            ("TOOL", "tool.parameters", r#"{"path": "calc.sh", "old_text": "a"}"#),
            ("TOOL", "mini.by", "user"),
            ("TOOL", "mini.waited_ms", "8000"),
        ] {
            assert_eq!(value(of(kind), name).as_deref(), Some(wanted), "{kind} {name}");
        }
    }

    proptest::proptest! {
        #[test]
        fn any_text_and_number_survives(text in ".*", number in 0..=i64::MAX as u64, at in 0u64..1 << 40, yes: bool) {
            let mut span = spans().remove(0);
            (span.start, span.end, span.name, span.error) = (at, at + 1, text.clone(), Some(text.clone()));
            span.details = [("a".to_owned(), json!(text)), ("n".to_owned(), json!(number)), ("b".into(), json!(yes))].into_iter().collect();
            let theirs = decoded(&request(&[span])).remove(0);
            proptest::prop_assert_eq!(&theirs.name, &text);
            proptest::prop_assert_eq!(theirs.start_time_unix_nano, at * 1_000_000);
            proptest::prop_assert_eq!(value(&theirs, "mini.n"), Some(number.to_string()));
            proptest::prop_assert_eq!(value(&theirs, "mini.a").unwrap_or_default(), text);
            let said = format!("BoolValue({yes})");
            proptest::prop_assert_eq!(value(&theirs, "mini.b"), Some(said));
        }
    }

    /// A collector that answers every request like this; the heads and bodies that came.
    fn collector(answer: &'static str) -> (String, Receiver<(String, Vec<u8>)>) {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let (url, (tell, told)) = (format!("http://{}", listener.local_addr().unwrap()), channel());
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                let (mut stream, mut head) = (stream.unwrap(), Vec::new());
                while !head.ends_with(b"\r\n\r\n") {
                    let mut byte = [0];
                    stream.read_exact(&mut byte).unwrap();
                    head.push(byte[0]);
                }
                let head = String::from_utf8(head).unwrap().to_lowercase();
                let length = head.split("content-length: ").nth(1).and_then(|rest| rest.lines().next()?.parse().ok());
                let mut body = vec![0; length.unwrap_or_default()];
                stream.read_exact(&mut body).unwrap();
                if tell.send((head, body)).is_err() || answer.is_empty() {
                    std::thread::sleep(Duration::from_secs(1));
                    return;
                }
                stream.write_all(answer.as_bytes()).unwrap();
            }
        });
        (url, told)
    }

    /// Lets an observer see a small run; what it says of `start` and of `end`.
    fn watched(target: Target) -> (Result<(), String>, Result<(), String>) {
        let mut watch = Watch { tracer: Tracer::new(1), target };
        let mut see = |at: u64, event: Event| watch.event(&Stamp { at, agent: None }, &event);
        let (model, none) = ("m".to_owned(), Vec::new);
        let start = Event::Start {
            version: "0",
            model,
            base_url: "u".into(),
            workspace: "w".into(),
            extensions: none(),
            tools: none(),
            session: None,
        };
        let said = see(1, start);
        if said.is_ok() {
            let message = json!({"role": "user", "content": "hi"});
            see(2, Event::Message { message, finish: None }).unwrap();
            see(3, Event::Request { turn: 1, attempt: 1, messages: 1, bytes: 1, estimated_tokens: 1 }).unwrap();
        }
        let (outcome, usage) = (mini::event::Outcome::Interrupted, Default::default());
        let end = Event::End {
            outcome,
            reason: Some("interrupted".into()),
            text: String::new(),
            turns: 1,
            usage,
            cost: None,
            changed: vec![],
            exit: 130,
        };
        (said, see(9, end))
    }

    #[test]
    fn a_task_is_sent_when_it_is_over_and_as_protobuf_exactly() {
        let (url, told) = collector("HTTP/1.1 200 OK\r\ncontent-length: 0\r\nconnection: close\r\n\r\n");
        assert_eq!(watched(Target::Collector(Collector::new(&url, PATIENCE).unwrap())), (Ok(()), Ok(())));
        assert!(told.recv().unwrap().1.is_empty(), "is anybody there?");
        let (head, body) = told.recv().unwrap();
        assert!(head.starts_with("post /v1/traces http/1.1\r\n"), "{head}");
        assert!(head.contains("\r\ncontent-type: application/x-protobuf\r\n"), "{head}");
        let spans = decoded(&body);
        assert_eq!(spans.iter().map(|span| span.name.as_str()).collect::<Vec<_>>(), ["agent.run", "turn 1", "model"]);
        assert!(spans.iter().all(|span| span.end_time_unix_nano == 9_000_000), "an interrupt closes every span");
    }

    #[test]
    fn a_collector_that_is_not_there_refuses_or_hangs_is_one_error_at_the_start() {
        let gone = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
        let (refuses, _told) = collector("HTTP/1.1 415 No\r\ncontent-length: 0\r\nconnection: close\r\n\r\n");
        let (hangs, _held) = collector("");
        for (url, words) in [(format!("http://{gone}/"), "refused"), (refuses, "HTTP status 415"), (hangs, "timeout")] {
            let target = Target::Collector(Collector::new(&url, Duration::from_millis(300)).unwrap());
            let (start, _) = watched(target);
            let why = start.unwrap_err();
            assert!(why.contains("/v1/traces does not take the spans: ") && why.contains(words), "{why}");
        }
    }

    #[test]
    fn a_file_gets_a_span_a_line_for_the_user_alone() {
        use std::os::unix::fs::PermissionsExt;
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("trace.jsonl");
        for _ in 0..2 {
            let target = Target::File(open(&path).unwrap(), "trace.jsonl".into());
            assert_eq!(watched(target), (Ok(()), Ok(())));
        }
        let text = std::fs::read_to_string(&path).unwrap();
        assert_eq!(text.lines().count(), 6, "the second run is appended");
        assert_eq!(mini::trace::read(&text).unwrap().0[2].error.as_deref(), Some("interrupted"));
        assert_eq!(std::fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
    }

    #[test]
    fn only_a_url_without_a_path_gets_the_usual_one_and_none_may_hold_a_key() {
        let url = |text: &str| Collector::new(text, PATIENCE).map(|collector| collector.url);
        assert_eq!(url("http://h:6006/").unwrap(), "http://h:6006/v1/traces");
        assert_eq!(url("https://h/otlp/v1/traces").unwrap(), "https://h/otlp/v1/traces");
        assert!(url("http://me:secret@h").unwrap_err().contains("not taken"));
        assert!(url("http://a b").unwrap_err().contains("is not a URL"));
    }
}
