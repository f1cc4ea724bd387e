//! A hand-written reply becomes what a server would send for it: a stream of small deltas, or one
//! JSON object for a client that did not ask for a stream.
//!
//! Text is split word by word, so that an audience can watch it arrive, and arguments in fragments,
//! so that no client gets away with parsing them before they are whole. The figures of `usage` grow
//! with the request: a prompt that grows while its reported tokens stand still means a server that
//! cuts the prompt, and clients may say so.

use super::script::Chunk;
use serde_json::{Value, json};

/// The meaning of a reply; [`super::Body::Chunks`] is for everything that this cannot say.
#[derive(Debug, Clone, PartialEq)]
pub struct Reply {
    /// The answer; may be empty beside calls.
    pub text: String,
    /// Sent as `reasoning_content`, before the text; none if empty.
    pub reasoning: String,
    /// Tool calls, in order.
    pub calls: Vec<Call>,
    /// The finish_reason; by default `tool_calls` if there are calls, else `stop`.
    pub finish: Option<String>,
    /// The usage object; by default counted from the request and the reply, four bytes a token.
    pub usage: Option<Value>,
}

/// One tool call of a [`Reply`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Call {
    /// As given, or `call_1`, `call_2` … over the whole script.
    pub id: String,
    /// The tool.
    pub name: String,
    /// The text of the arguments: usually a JSON object, on purpose sometimes not.
    pub arguments: String,
}

/// Bytes of arguments in one delta.
const FRAGMENT: usize = 12;
/// For everything that is not a delta of the answer: no pace makes an audience wait for it.
const AT_ONCE: Option<u64> = Some(0);
/// Any fixed time: the same script always gives the same bytes.
const CREATED: u64 = 1_700_000_000;

impl Reply {
    /// The reply as SSE chunks. `request_bytes` is the size of the request, for the usage. A reply
    /// that is not `whole` stops before its finish_reason: the stream that a fault cuts.
    pub fn stream(&self, model: &str, request_bytes: usize, whole: bool) -> Vec<Chunk> {
        let choice = |delta: Value, finish: Option<&str>| json!([{"index":0,"delta":delta,"finish_reason":finish}]);
        let event = |choices: Value| event(model, choices, None);
        let mut chunks = vec![event(choice(json!({"role":"assistant","content":""}), None))];
        for delta in self.deltas() {
            chunks.push(Chunk { pause_ms: None, ..event(choice(delta, None)) });
        }
        if whole {
            chunks.push(event(choice(json!({}), Some(self.finish()))));
            chunks.push(self::event(model, json!([]), Some(self.usage(request_bytes))));
            chunks.push(Chunk { bytes: b"data: [DONE]\n\n".to_vec(), pause_ms: AT_ONCE });
        }
        chunks
    }

    /// The reply as one JSON object.
    pub fn object(&self, model: &str, request_bytes: usize) -> Value {
        let mut message = json!({"role":"assistant","content":self.text});
        if !self.reasoning.is_empty() {
            message["reasoning_content"] = json!(self.reasoning);
        }
        if !self.calls.is_empty() {
            message["tool_calls"] = self.calls.iter().map(Call::whole).collect();
        }
        let choices = json!([{"index":0,"message":message,"finish_reason":self.finish()}]);
        let mut body = json!({"id":"chatcmpl-replay","object":"chat.completion","created":CREATED});
        body["model"] = json!(model);
        body["choices"] = choices;
        body["usage"] = self.usage(request_bytes);
        body
    }

    fn deltas(&self) -> Vec<Value> {
        let reasoning = words(&self.reasoning).map(|word| json!({"reasoning_content":word}));
        let text = words(&self.text).map(|word| json!({"content":word}));
        let calls = self.calls.iter().enumerate().flat_map(|(index, call)| call.deltas(index));
        reasoning.chain(text).chain(calls).collect()
    }

    fn finish(&self) -> &str {
        let usual = if self.calls.is_empty() { "stop" } else { "tool_calls" };
        self.finish.as_deref().unwrap_or(usual)
    }

    fn usage(&self, request_bytes: usize) -> Value {
        let arguments: usize = self.calls.iter().map(|call| call.name.len() + call.arguments.len()).sum();
        let (input, output) =
            (request_bytes.div_ceil(4), (self.text.len() + self.reasoning.len() + arguments).div_ceil(4));
        let counted = || json!({"prompt_tokens":input,"completion_tokens":output,"total_tokens":input + output});
        self.usage.clone().unwrap_or_else(counted)
    }
}

impl Call {
    fn whole(&self) -> Value {
        json!({"id":self.id,"type":"function","function":{"name":self.name,"arguments":self.arguments}})
    }

    /// Id and name come first and once, then fragments of the arguments under the index alone, as
    /// most servers send them.
    fn deltas(&self, index: usize) -> Vec<Value> {
        let first = json!({"index":index,"id":self.id,"type":"function","function":{"name":self.name,"arguments":""}});
        let more =
            fragments(&self.arguments).into_iter().map(|part| json!({"index":index,"function":{"arguments":part}}));
        std::iter::once(first).chain(more).map(|call| json!({"tool_calls":[call]})).collect()
    }
}

/// One event of the stream, as OpenAI's API reference gives it; the usage stands beside empty
/// choices.
fn event(model: &str, choices: Value, usage: Option<Value>) -> Chunk {
    let mut body = json!({"id":"chatcmpl-replay","object":"chat.completion.chunk","created":CREATED});
    body["model"] = json!(model);
    body["choices"] = choices;
    if let Some(usage) = usage {
        body["usage"] = usage;
    }
    Chunk { bytes: format!("data: {body}\n\n").into_bytes(), pause_ms: AT_ONCE }
}

/// The words of a text, each with the blanks after it; joined they are the text.
fn words(text: &str) -> impl Iterator<Item = &str> {
    text.split_inclusive(char::is_whitespace)
}

/// Parts of at most [`FRAGMENT`] bytes that never cut a character.
fn fragments(mut text: &str) -> Vec<&str> {
    let mut parts = vec![];
    while !text.is_empty() {
        // The last boundary within reach; str::floor_char_boundary is newer than this crate's Rust.
        let end = (1..=FRAGMENT).rev().find(|&end| text.is_char_boundary(end)).unwrap_or(text.len());
        let (part, rest) = text.split_at(end);
        parts.push(part);
        text = rest;
    }
    parts
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reply() -> Reply {
        let call = |id: &str, arguments: &str| Call {
            id: id.to_string(),
            name: "edit".to_string(),
            arguments: arguments.to_string(),
        };
        Reply {
            text: "I change  it.\nNow.".to_string(),
            reasoning: "Hm, well.".to_string(),
            calls: vec![
                call("call_1", r#"{"path":"grüße.txt","old_text":"ä","new_text":"ö"}"#),
                call("call_2", "{broken"),
            ],
            finish: None,
            usage: None,
        }
    }

    /// The data of the events, without `[DONE]`.
    fn events(chunks: &[Chunk]) -> Vec<Value> {
        let texts = chunks.iter().map(|chunk| std::str::from_utf8(&chunk.bytes).unwrap());
        let data = texts.map(|text| text.strip_prefix("data: ").unwrap().strip_suffix("\n\n").unwrap());
        data.filter(|data| *data != "[DONE]").map(|data| serde_json::from_str(data).unwrap()).collect()
    }

    #[test]
    fn the_deltas_joined_are_the_reply() {
        let reply = reply();
        let events = events(&reply.stream("m", 400, true));
        let join =
            |pointer: &str| events.iter().filter_map(|event| event.pointer(pointer)?.as_str()).collect::<String>();
        assert_eq!(join("/choices/0/delta/content"), reply.text);
        assert_eq!(join("/choices/0/delta/reasoning_content"), reply.reasoning);
        assert_eq!(join("/choices/0/finish_reason"), "tool_calls");
        for (index, call) in reply.calls.iter().enumerate() {
            let of_call = events
                .iter()
                .filter_map(|event| event.pointer("/choices/0/delta/tool_calls/0"))
                .filter(|call| call["index"] == index);
            let arguments: Vec<&str> = of_call.filter_map(|call| call["function"]["arguments"].as_str()).collect();
            assert_eq!(arguments.concat(), call.arguments);
            assert!(arguments.iter().all(|part| part.len() <= FRAGMENT));
        }
        assert_eq!(join("/choices/0/delta/tool_calls/0/id"), "call_1call_2");
    }

    #[test]
    fn the_role_comes_first_and_the_usage_before_done() {
        let chunks = reply().stream("m", 400, true);
        let events = events(&chunks);
        assert_eq!(events[0]["choices"][0]["delta"]["role"], "assistant");
        assert_eq!(events[events.len() - 1]["usage"]["prompt_tokens"], 100);
        assert_eq!(events[events.len() - 1]["choices"], json!([]));
        assert_eq!(chunks[chunks.len() - 1].bytes, b"data: [DONE]\n\n");
    }

    #[test]
    fn a_cut_reply_has_no_finish_reason() {
        let chunks = reply().stream("m", 400, false);
        assert!(events(&chunks).iter().all(|event| event["choices"][0]["finish_reason"].is_null()));
        assert!(chunks.iter().all(|chunk| !chunk.bytes.starts_with(b"data: [DONE]")));
    }

    #[test]
    fn a_client_without_streaming_gets_one_object() {
        let object = reply().object("m", 400);
        assert_eq!(object["choices"][0]["message"]["tool_calls"][1]["function"]["arguments"], "{broken");
        assert_eq!(object["choices"][0]["finish_reason"], "tool_calls");
    }
}
