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
const KEPT: [&str; 5] = ["content-type", "location", "retry-after", "retry-after-ms", "x-should-retry"];
/// A server's wish for a pause up to this was granted. A replay need not wait again: the server
/// is not busy any more.
const GRANTED_SECONDS: f64 = 60.0;
/// Characters of the last message in the name of a line.
const NAME: usize = 60;

/// One request and what came back.
#[derive(Debug, Default)]
pub struct Seen {
    /// The body of the request.
    pub request: Vec<u8>,
    /// The HTTP status; 0 where none came.
    pub status: u16,
    /// All headers of the response.
    pub headers: Vec<(String, String)>,
    /// The bytes of the body, each with the pause before them in ms.
    pub chunks: Vec<(Vec<u8>, u64)>,
    /// Whether the response came to its end. One that did not is played as one that is cut.
    pub whole: bool,
}

/// One line of a recording, without its line end. Chunks are kept as text where they are UTF-8,
/// else as base64.
pub fn line(seen: &Seen) -> String {
    let kept: Map<String, Value> = seen
        .headers
        .iter()
        .map(|(name, value)| (name.to_ascii_lowercase(), value))
        .filter(|(name, _)| KEPT.contains(&name.as_str()))
        .map(|(name, value)| (name.clone(), json!(without_wait(&name, value))))
        .collect();
    let chunks: Vec<Value> = seen.chunks.iter().map(|(bytes, pause_ms)| chunk(bytes, *pause_ms)).collect();
    let mut line = json!({});
    let body: Value = serde_json::from_slice(&seen.request).unwrap_or(Value::Null);
    if let Some(last) = body["messages"].as_array().and_then(|messages| messages.last()) {
        line["name"] = json!(name(last));
        line["expect_request"] = json!({"body":{"/messages/-1/role":last["role"]}});
    }
    line["response"] = json!({"status":seen.status,"headers":kept,"chunks":chunks});
    if !seen.whole {
        line["response"]["end"] = json!("truncate");
    }
    line.to_string()
}

/// The first words of the message that a reply answers.
fn name(last: &Value) -> String {
    let words: String = last["content"].as_str().unwrap_or_default().chars().take(NAME).collect();
    format!("after {}: {words}", last["role"].as_str().unwrap_or("?"))
}

fn without_wait<'a>(name: &str, value: &'a str) -> &'a str {
    let unit = match name {
        "retry-after" => 1.0,
        "retry-after-ms" => 1000.0,
        _ => return value,
    };
    let is_granted = value.trim().parse().is_ok_and(|wait: f64| wait / unit <= GRANTED_SECONDS);
    if is_granted { "0" } else { value }
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
    use crate::replay::{Body, Chunk, End, Script};

    fn seen(body: &[u8], headers: &[(&str, &str)]) -> Seen {
        let headers = headers.iter().map(|(name, value)| (name.to_string(), value.to_string())).collect();
        Seen { request: body.to_vec(), status: 200, headers, chunks: vec![], whole: true }
    }

    #[test]
    fn a_recorded_line_is_read_back_and_holds_no_secret() {
        let body =
            json!({"messages":[{"role":"system","content":"s"},{"role":"user","content":"say\nhi"}]}).to_string();
        let headers = [
            ("Content-Type", "text/event-stream"),
            ("Authorization", "Bearer sk-1"),
            ("Set-Cookie", "sk-2"),
            ("content-encoding", "gzip"),
        ];
        let chunks = vec![("data: ü\n".into(), 3), (vec![0xc3], 4)];
        let line = line(&Seen { chunks, ..seen(body.as_bytes(), &headers) });
        assert!(!line.contains('\n') && !line.contains("sk-") && !line.contains("gzip"), "{line}");

        let script = Script::parse(&line).unwrap();
        let exchange = &script.sections[0].exchanges[0];
        assert_eq!(exchange.name.as_deref(), Some("after user: say\nhi"));
        assert_eq!(exchange.response.headers, [("content-type".to_string(), "text/event-stream".to_string())]);
        let Body::Chunks(chunks) = &exchange.response.body else { panic!("not raw") };
        let chunk = |bytes: &[u8], pause_ms| Chunk { bytes: bytes.to_vec(), pause_ms: Some(pause_ms) };
        assert_eq!(chunks[..], [chunk("data: ü\n".as_bytes(), 3), chunk(&[0xc3], 4)]);
        assert_eq!(exchange.response.end, End::Eof);
    }

    #[test]
    fn a_wait_that_was_granted_is_not_waited_for_again() {
        for (name, value, kept) in
            [("Retry-After", "7", "0"), ("retry-after", "3600", "3600"), ("retry-after-ms", "59000", "0")]
        {
            let line: Value = serde_json::from_str(&line(&seen(b"", &[(name, value)]))).unwrap();
            assert_eq!(line["response"]["headers"][name.to_ascii_lowercase()], kept, "{name}: {value}");
        }
    }

    #[test]
    fn what_broke_off_is_cut_and_any_request_body_makes_a_line() {
        for body in [&b""[..], b"\xff", b"[]", b"{\"messages\":[]}", b"{\"messages\":[7]}"] {
            let script = Script::parse(&line(&Seen { whole: false, ..seen(body, &[]) })).unwrap();
            assert_eq!(script.sections[0].exchanges[0].response.end, End::Truncate);
        }
    }
}
