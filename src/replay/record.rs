//! The other direction: an exchange seen on the wire becomes a line that [`super::Script::parse`] reads.
//!
//! A recording is made to be kept and handed on, so it holds of the headers only what a replay needs, by name: no key, cookie or
//! account can slip in. Of the request it keeps the role of the last message as expectation and its first words as name: a
//! recording should fail when it no longer fits the run, and not because a path or a time in a tool result differs.

use super::base64;
use serde_json::{Map, Value, json};

/// The headers of a response that a recording keeps. No Content-Encoding: the recorder sees decoded bytes.
const KEPT: [&str; 3] = ["content-type", "location", "retry-after"];
/// Characters of the last message in the name of a line.
const NAME: usize = 60;

/// One line of a recording, without its line end: the response with its `headers`, and its `chunks` as (bytes, pause before them
/// in ms). Chunks are kept as text where they are UTF-8, else as base64.
pub fn line(
    request_body: &[u8],
    status: u16,
    headers: &[(String, String)],
    chunks: &[(Vec<u8>, u64)],
) -> String {
    let kept: Map<String, Value> = headers
        .iter()
        .map(|(name, value)| (name.to_ascii_lowercase(), json!(value)))
        .filter(|(name, _)| KEPT.contains(&name.as_str()))
        .collect();
    let chunks: Vec<Value> = chunks
        .iter()
        .map(|(bytes, pause_ms)| chunk(bytes, *pause_ms))
        .collect();
    let mut line = json!({"response":{"status":status,"headers":kept,"chunks":chunks}});
    let body: Value = serde_json::from_slice(request_body).unwrap_or(Value::Null);
    if let Some(last) = body["messages"]
        .as_array()
        .and_then(|messages| messages.last())
    {
        line["expect_request"] = json!({"body":{"/messages/-1/role":last["role"]}});
        let words: String = last["content"]
            .as_str()
            .unwrap_or_default()
            .chars()
            .take(NAME)
            .collect();
        line["name"] = json!(format!(
            "after {}: {words}",
            last["role"].as_str().unwrap_or("?")
        ));
    }
    line.to_string()
}

fn chunk(bytes: &[u8], pause_ms: u64) -> Value {
    match std::str::from_utf8(bytes) {
        Ok(text) => json!({"text":text,"pause_ms":pause_ms}),
        Err(_) => json!({"b64":base64::encode(bytes),"pause_ms":pause_ms}),
    }
}
