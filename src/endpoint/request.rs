//! The bytes of a request.
//!
//! The members stand in an order of our choice, with the messages last. So each request is the last one plus what was
//! added, byte for byte, which is what a server's prompt cache needs; and what was serialised once is only copied.
//! Only what nearly every server takes is sent (F12): no `tool_choice`, `parallel_tool_calls`, `store` or `strict`.

use crate::dialect::{Change, Dialect};
use crate::tokens;
use serde_json::{Value, json};

/// What a request is made of.
pub struct Parts<'a> {
    /// The model's name.
    pub model: &'a str,
    /// The system text; empty for none.
    pub system: &'a str,
    /// The tools as a JSON array.
    pub tools: &'a str,
    /// The messages as JSON objects, joined with commas.
    pub messages: &'a [u8],
    /// Limit of output tokens.
    pub max_tokens: Option<u64>,
    /// Temperature.
    pub temperature: Option<f64>,
}

/// The newest request.
#[derive(Default)]
pub struct Request {
    /// The body; its memory is used again.
    pub body: Vec<u8>,
    /// An estimate of its tokens.
    pub estimated_tokens: u64,
    history: tokens::Running,
}

impl Request {
    /// Writes a request in a dialect.
    pub fn write(&mut self, parts: &Parts, dialect: &Dialect) {
        let body = &mut self.body;
        body.clear();
        body.extend_from_slice(b"{\"model\":");
        put(body, &parts.model.into());
        body.extend_from_slice(b",\"stream\":true");
        for (name, value) in options(parts, dialect) {
            body.extend_from_slice(format!(",\"{name}\":").as_bytes());
            put(body, &value);
        }
        if !matches!(parts.tools, "" | "[]") {
            body.extend_from_slice(b",\"tools\":");
            body.extend_from_slice(parts.tools.as_bytes());
        }
        body.extend_from_slice(b",\"messages\":[");
        if !parts.system.is_empty() {
            put(body, &json!({"role": "system", "content": parts.system}));
            body.extend_from_slice(if parts.messages.is_empty() { b"" } else { b"," });
        }
        let head = tokens::hundredths(body) / 100;
        body.extend_from_slice(parts.messages);
        body.extend_from_slice(b"]}");
        self.estimated_tokens = head + self.history.of(parts.messages);
    }
}

/// The members that depend on settings and dialect.
fn options(parts: &Parts, dialect: &Dialect) -> Vec<(&'static str, Value)> {
    let limit_name = if dialect.has(Change::RenameMaxTokens) { "max_completion_tokens" } else { "max_tokens" };
    let temperature = parts.temperature.filter(|_| !dialect.has(Change::DropTemperature));
    let options = [
        ("stream_options", (!dialect.has(Change::DropStreamOptions)).then(|| json!({"include_usage": true}))),
        (limit_name, parts.max_tokens.map(Value::from)),
        ("temperature", temperature.map(Value::from)),
        ("reasoning_effort", dialect.has(Change::NoReasoningEffort).then(|| "none".into())),
    ];
    options.into_iter().filter_map(|(name, value)| Some((name, value?))).collect()
}

fn put(body: &mut Vec<u8>, value: &Value) {
    body.extend_from_slice(value.to_string().as_bytes());
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parts<'a>(messages: &'a [u8]) -> Parts<'a> {
        Parts { model: "m", system: "s", tools: "[]", messages, max_tokens: None, temperature: None }
    }

    #[test]
    fn a_request_holds_only_what_is_needed_and_messages_come_last() {
        let mut request = Request::default();
        request.write(&parts(b"{\"role\":\"user\"}"), &Dialect::default());
        assert_eq!(
            String::from_utf8_lossy(&request.body),
            r#"{"model":"m","stream":true,"stream_options":{"include_usage":true},"messages":[{"role":"system","content":"s"},{"role":"user"}]}"#
        );
        assert!(request.estimated_tokens > 10);
    }

    #[test]
    fn settings_are_sent_only_if_set() {
        let mut request = Request::default();
        let set = Parts { max_tokens: Some(9), temperature: Some(0.2), tools: "[{}]", ..parts(b"") };
        request.write(&set, &Dialect::default());
        let body: Value = serde_json::from_slice(&request.body).unwrap();
        assert_eq!((&body["max_tokens"], &body["temperature"], &body["tools"]), (&json!(9), &json!(0.2), &json!([{}])));
    }

    #[test]
    fn the_next_request_extends_this_one() {
        let mut request = Request::default();
        request.write(&parts(b"{\"a\":1}"), &Dialect::default());
        let first = request.body.clone();
        request.write(&parts(b"{\"a\":1},{\"b\":2}"), &Dialect::default());
        assert!(request.body.starts_with(&first[..first.len() - 2]));
    }
}
