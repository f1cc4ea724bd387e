//! `--wire`: what really travels, for a person who wants to see it.
//!
//! An agent sends the whole conversation with every request, which is the first thing to learn and the last thing
//! one wants to read each time. So a request is shown as what is *new* in it, with its size; the stream as its lines
//! come, each with the time since the request. A tool call comes in a dozen fragments, in the words of the protocol; what
//! they join into stands behind them as one line (`⇒ edit {"path":…}`), put together by the same [`Assembly`] that the
//! agent trusts.
//!
//! On a terminal each line is cut at its width; where standard error goes to a file (`2>wire.txt`) every line is whole.
//!
//! The wire holds no key: the tap sits above the headers that go out. What a server quotes of it is taken out of each
//! line, and headers of an answer that set a cookie are left out.

use super::console::Console;
use super::folding::{cut, one_line, thousands};
use super::ink::Ink;
use crate::endpoint::{Redactor, Tap, Wire};
use crate::reply::Assembly;
use crate::sse;
use serde_json::Value;
use std::time::Instant;

/// Shows everything that the tap hands on, on the console it shares with the screen (which ends a spinner first).
/// `redact` takes secrets out.
pub fn wire_printer(console: Console, redact: Redactor) -> Tap {
    let (started, joining) = (Instant::now(), Joining::default());
    let mut printer = Printer { console, redact, sent: Vec::new(), started, rest: Vec::new(), joining };
    Box::new(move |wire| match wire {
        Wire::Request { url, body } => printer.request(url, body),
        Wire::Status { code, headers } => printer.status(*code, headers),
        Wire::Bytes(bytes) => printer.bytes(bytes),
        Wire::End { whole } => printer.end(*whole),
    })
}

struct Printer {
    console: Console,
    redact: Redactor,
    /// Messages of the last request. Compared one by one: the history may have been shortened, a child may ask.
    sent: Vec<Value>,
    /// When the last request went out.
    started: Instant,
    /// A line of the stream whose end has not come yet.
    rest: Vec<u8>,
    joining: Joining,
}

/// The reply that the fragments join into.
#[derive(Default)]
struct Joining {
    parser: sse::Parser,
    assembly: Assembly,
}

impl Joining {
    fn feed(&mut self, bytes: &[u8]) {
        let Joining { parser, assembly } = self;
        // What cannot be understood is the endpoint's to complain about; here it joins into nothing.
        let _ = parser.feed(bytes, &mut |event| drop(assembly.take(event, &mut |_| {})));
    }

    /// The calls, each as `name arguments`, and whether the reply is complete and was not cut.
    fn calls(mut self) -> (Vec<String>, bool) {
        let Joining { parser, assembly } = &mut self;
        parser.finish(&mut |event| drop(assembly.take(event, &mut |_| {})));
        let whole = self.assembly.complete() && self.assembly.finish_reason() != Some("length");
        let calls = self.assembly.into_message(&mut String::new).calls;
        (calls.iter().map(|call| format!("{} {}", call.name, call.raw)).collect(), whole)
    }
}

impl Printer {
    fn request(&mut self, url: &str, body: &[u8]) {
        (self.started, self.rest, self.joining) = (Instant::now(), Vec::new(), Joining::default());
        if body.is_empty() {
            return self.line(Ink::Cyan, "→ ", &format!("GET {url}"));
        }
        let mut json: Value = serde_json::from_slice(body).unwrap_or_default();
        let messages = match json.get_mut("messages").map(Value::take) {
            Some(Value::Array(messages)) => messages,
            _ => Vec::new(),
        };
        let known = messages.iter().zip(&self.sent).take_while(|(now, before)| now == before).count();
        let (all, new, size) = (messages.len(), messages.len() - known, thousands(body.len() as u64));
        self.line(Ink::Cyan, "→ ", &format!("POST {url} · {size} bytes · messages: {all}, new: {new}"));
        if known == 0 {
            self.line(Ink::Cyan, "→   ", &without_messages(json));
        }
        for message in &messages[known..] {
            self.line(Ink::Cyan, "→   ", &message.to_string());
        }
        self.sent = messages;
    }

    fn status(&self, code: u16, headers: &[(String, String)]) {
        let shown = headers.iter().filter(|(name, _)| !name.eq_ignore_ascii_case("set-cookie"));
        let headers: Vec<String> = shown.map(|(name, value)| format!("{name}: {value}")).collect();
        let ink = if code < 400 { Ink::Green } else { Ink::Red };
        self.line(ink, &self.since(), &format!("{code} · {}", headers.join(" · ")));
    }

    /// Whole lines at once; the blank ones between events are not worth a line.
    fn bytes(&mut self, bytes: &[u8]) {
        self.joining.feed(bytes);
        self.rest.extend_from_slice(bytes);
        let Some(end) = self.rest.iter().rposition(|byte| *byte == b'\n') else { return };
        let whole: Vec<u8> = self.rest.drain(..=end).collect();
        for line in String::from_utf8_lossy(&whole).lines().filter(|line| !line.trim().is_empty()) {
            self.line(Ink::Dim, &self.since(), line);
        }
    }

    fn end(&mut self, whole: bool) {
        let rest = std::mem::take(&mut self.rest);
        if !rest.is_empty() {
            self.line(Ink::Dim, &self.since(), &String::from_utf8_lossy(&rest));
        }
        let (calls, complete) = std::mem::take(&mut self.joining).calls();
        let mark = if complete { "⇒ " } else { "⇏ incomplete, never run: " };
        calls.iter().for_each(|call| self.line(Ink::Yellow, mark, call));
        let words = if whole { "end of the answer" } else { "the answer broke off" };
        self.line(Ink::Dim, &self.since(), words);
    }

    fn since(&self) -> String {
        format!("← +{:.2} s ", self.started.elapsed().as_secs_f64())
    }

    fn line(&self, ink: Ink, before: &str, text: &str) {
        let text = one_line(&(self.redact)(text.to_owned()));
        let shown = match self.console.columns() {
            Some(columns) => cut(&text, columns.saturating_sub(before.chars().count() + 1)),
            None => text,
        };
        self.console.say(&[(ink, before), (Ink::Plain, &shown)]);
    }
}

/// The other members of a request, and of the tools only the names.
fn without_messages(mut request: Value) -> String {
    let Some(members) = request.as_object_mut() else { return "(not a JSON object)".into() };
    members.shift_remove("messages");
    if let Some(Value::Array(tools)) = members.get_mut("tools") {
        let name = |tool: &mut Value| tool.pointer_mut("/function/name").map(Value::take).unwrap_or_default();
        tools.iter_mut().for_each(|tool| *tool = name(tool));
    }
    request.to_string()
}

#[cfg(test)]
mod tests {
    use super::super::console::Answers;
    use super::super::console::tests::{Sink, console};
    use super::super::ink::Paint;
    use super::*;

    /// What the printer shows, with the times taken out.
    fn show(wires: Vec<Wire>) -> Vec<String> {
        show_in(|| None, wires)
    }

    fn show_in(columns: fn() -> Option<usize>, wires: Vec<Wire>) -> Vec<String> {
        let (_, err, console) = console(Answers::Once, Paint::Plain);
        console.set_columns(columns);
        let mut printer = wire_printer(console, Box::new(|text| text.replace("sk-canary", "[secret]")));
        wires.iter().for_each(&mut printer);
        let without_time = |line: &str| match line.split_once(" s ") {
            Some((_, rest)) if line.starts_with('←') => format!("← {rest}"),
            _ => line.to_owned(),
        };
        Sink::text(&err).lines().map(without_time).collect()
    }

    #[test]
    fn a_request_is_shown_as_what_is_new_in_it() {
        let first =
            br#"{"messages":[{"role":"user","content":"go"}],"model":"m","tools":[{"function":{"name":"read"}}]}"#;
        let second = br#"{"messages":[{"role":"user","content":"go"},{"role":"assistant","content":"ok"}]}"#;
        let request = |body| Wire::Request { url: "http://h/v1/chat/completions", body };
        assert_eq!(
            show(vec![
                request(first),
                request(second),
                request(second),
                request(b""),
                request(b"[\"not ours\"]"),
                request(first)
            ]),
            [
                "→ POST http://h/v1/chat/completions · 96 bytes · messages: 1, new: 1",
                "→   {\"model\":\"m\",\"tools\":[\"read\"]}",
                "→   {\"role\":\"user\",\"content\":\"go\"}",
                "→ POST http://h/v1/chat/completions · 81 bytes · messages: 2, new: 1",
                "→   {\"role\":\"assistant\",\"content\":\"ok\"}",
                "→ POST http://h/v1/chat/completions · 81 bytes · messages: 2, new: 0",
                "→ GET http://h/v1/chat/completions",
                "→ POST http://h/v1/chat/completions · 12 bytes · messages: 0, new: 0",
                "→   (not a JSON object)",
                "→ POST http://h/v1/chat/completions · 96 bytes · messages: 1, new: 1",
                "→   {\"model\":\"m\",\"tools\":[\"read\"]}",
                "→   {\"role\":\"user\",\"content\":\"go\"}",
            ]
        );
    }

    #[test]
    fn a_stream_is_shown_line_by_line_made_safe_and_without_cookies() {
        let header = |name: &str, value: &str| (name.to_string(), value.to_string());
        let headers = vec![header("content-type", "text/event-stream"), header("Set-Cookie", "session=1")];
        let wires = vec![
            Wire::Status { code: 200, headers },
            Wire::Bytes(b"data: {\"a\""),
            Wire::Bytes(b":1}\n\ndata: \x1b[2J\n"),
            Wire::Bytes(b"data: your key sk-ca"),
            Wire::Bytes(b"nary\ndata: [DONE]"),
            Wire::End { whole: true },
        ];
        assert_eq!(
            show(wires),
            [
                "← 200 · content-type: text/event-stream",
                "← data: {\"a\":1}",
                "← data: \\u{1b}[2J",
                "← data: your key [secret]",
                "← data: [DONE]",
                "← end of the answer"
            ]
        );
    }

    #[test]
    fn fragments_join_into_a_call_that_only_a_complete_reply_makes_whole() {
        let fragment = |call: &str| format!("data: {{\"choices\":[{{\"delta\":{{\"tool_calls\":[{call}]}}}}]}}\n\n");
        let body = fragment(r#"{"index":0,"id":"a","function":{"name":"read","arguments":"{\"path\":"}}"#)
            + &fragment(r#"{"index":0,"function":{"arguments":"\"a.txt\"}"}}"#);
        let joined = |end: &[u8], whole| {
            let shown = show(vec![Wire::Bytes(body.as_bytes()), Wire::Bytes(end), Wire::End { whole }]);
            shown[shown.len() - 2..].to_vec()
        };
        assert_eq!(joined(b"data: [DONE]\n\n", true), ["⇒ read {\"path\":\"a.txt\"}", "← end of the answer"]);
        let cut = ["⇏ incomplete, never run: read {\"path\":\"a.txt\"}", "← the answer broke off"];
        assert_eq!(joined(b"", false), cut);
    }

    #[test]
    fn long_lines_are_cut_at_a_terminals_width_and_whole_in_a_file() {
        let line = format!("data: {}\n", "x".repeat(10_000));
        let shown = show_in(|| Some(80), vec![Wire::Bytes(line.as_bytes())]);
        assert!(shown[0].ends_with('…') && shown[0].chars().count() <= 80, "{}", shown[0].len());
        assert_eq!(show(vec![Wire::Bytes(line.as_bytes())]), [format!("← {}", line.trim_end())]);
    }
}
