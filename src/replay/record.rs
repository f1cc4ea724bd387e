//! The other direction: an exchange seen on the wire becomes a line that [`super::Script::parse`]
//! reads.
//!
//! A recording is made to be kept and handed on, so it holds of the headers only what a replay
//! needs, by name: no key, cookie or account can slip in. Of the request it keeps the role of the
//! last message as expectation and its first words as name: a recording should fail when it no
//! longer fits the run, and not because a path or a time in a tool result differs.

use super::base64;
use serde_json::{Map, Value, json};

/// The headers of a response that a recording keeps. No Content-Encoding: the recorder sees decoded
/// bytes.
const KEPT: [&str; 3] = ["content-type", "location", "retry-after"];
/// Characters of the last message in the name of a line.
const NAME: usize = 60;

/// One line of a recording, without its line end: the response with its `headers`, and its `chunks`
/// as (bytes, pause before them in ms). Chunks are kept as text where they are UTF-8, else as
/// base64.
pub fn line(request_body: &[u8], status: u16, headers: &[(String, String)], chunks: &[(Vec<u8>, u64)]) -> String {
    let kept: Map<String, Value> = headers
        .iter()
        .map(|(name, value)| (name.to_ascii_lowercase(), json!(value)))
        .filter(|(name, _)| KEPT.contains(&name.as_str()))
        .collect();
    let chunks: Vec<Value> = chunks.iter().map(|(bytes, pause_ms)| chunk(bytes, *pause_ms)).collect();
    let mut line = json!({"response":{"status":status,"headers":kept,"chunks":chunks}});
    let body: Value = serde_json::from_slice(request_body).unwrap_or(Value::Null);
    if let Some(last) = body["messages"].as_array().and_then(|messages| messages.last()) {
        line["expect_request"] = json!({"body":{"/messages/-1/role":last["role"]}});
        line["name"] = json!(name(last));
    }
    line.to_string()
}

/// The first words of the message that a reply answers.
fn name(last: &Value) -> String {
    let words: String = last["content"].as_str().unwrap_or_default().chars().take(NAME).collect();
    format!("after {}: {words}", last["role"].as_str().unwrap_or("?"))
}

fn chunk(bytes: &[u8], pause_ms: u64) -> Value {
    match std::str::from_utf8(bytes) {
        Ok(text) => json!({"text":text,"pause_ms":pause_ms}),
        Err(_) => json!({"b64":base64::encode(bytes),"pause_ms":pause_ms}),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::replay::{Body, Chunk, Script};

    #[test]
    fn a_recorded_line_is_read_back_and_holds_no_secret() {
        let body =
            json!({"messages":[{"role":"system","content":"s"},{"role":"user","content":"say\nhi"}]}).to_string();
        let pairs = [
            ("Content-Type", "text/event-stream"),
            ("Authorization", "Bearer sk-1"),
            ("Set-Cookie", "sk-2"),
            ("content-encoding", "gzip"),
        ];
        let headers = pairs.map(|(name, value)| (name.to_string(), value.to_string()));
        let line = line(body.as_bytes(), 200, &headers, &[("data: ü\n".into(), 3), (vec![0xc3], 4)]);
        assert!(!line.contains('\n') && !line.contains("sk-") && !line.contains("gzip"), "{line}");

        let script = Script::parse(&line).unwrap();
        let exchange = &script.sections[0].exchanges[0];
        assert_eq!(exchange.name.as_deref(), Some("after user: say\nhi"));
        assert_eq!(exchange.response.headers, [("content-type".to_string(), "text/event-stream".to_string())]);
        let Body::Chunks(chunks) = &exchange.response.body else { panic!("not raw") };
        let chunk = |bytes: &[u8], pause_ms| Chunk { bytes: bytes.to_vec(), pause_ms: Some(pause_ms) };
        assert_eq!(chunks[..], [chunk("data: ü\n".as_bytes(), 3), chunk(&[0xc3], 4)]);
    }

    #[test]
    fn any_request_body_makes_a_line() {
        for body in [&b""[..], b"\xff", b"[]", b"{\"messages\":[]}", b"{\"messages\":[7]}"] {
            Script::parse(&line(body, 0, &[], &[])).unwrap();
        }
    }
}
