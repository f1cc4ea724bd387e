//! Messages, and the history that keeps them sendable.
//!
//! **The pairing invariant**: in every request each tool call of an assistant message is followed by exactly one
//! tool result, in call order, with the call's id. Servers answer anything else with an error for the rest of the
//! session. So it is not left to callers' care: [`History`] has no way to break it. A call is *open* from the
//! assistant message that makes it until its result; whoever goes on without answering (an interrupt, a crash on
//! resume) has the open calls answered for him.
//!
//! **The kept bytes**: a message is serialised once, when it joins, and the bytes stay. Each request is therefore a
//! byte-extension of the last (which is what makes a server's prompt cache hit), and a turn's cost does not grow
//! with the history.
//!
//! Left out on purpose: the system text (put together anew for every request, see `agent.rs`), images, and message
//! content as an array of parts (some models imitate it, wire.md F14): content is always a string.

use serde::de::IgnoredAny;
use serde_json::{Map, Value, json};
use std::borrow::Cow;
use std::collections::HashMap;

/// What an open call is answered with when the run was interrupted before it could be executed.
pub const INTERRUPTED: &str =
    "Error: [interrupted] this call was not run to its end; what it would have done is unknown";

/// One message of the conversation.
#[derive(Clone, Debug, PartialEq)]
pub enum Message {
    /// What the person, a hook or a lab says.
    User(String),
    /// One reply of the model.
    Assistant(Assistant),
    /// The result of one tool call.
    Tool {
        /// The call's id, as the server gave it.
        id: String,
        /// The text the model reads.
        text: String,
    },
}

/// A reply of the model: text, tool calls, or both.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Assistant {
    /// The answer's text; may be empty when there are calls.
    pub text: String,
    /// The tool calls, in order.
    pub calls: Vec<Call>,
    /// The field name reasoning came in (`reasoning_content`, `reasoning`) and its text: DeepSeek and Kimi want it
    /// back with every message that has calls, others use another name (wire.md D1, D5).
    pub reasoning: Option<(String, String)>,
    /// Further members to send back verbatim, such as OpenRouter's `reasoning_details` (wire.md D9).
    pub extra: Map<String, Value>,
}

/// One tool call that the model asks for.
#[derive(Clone, Debug, PartialEq)]
pub struct Call {
    /// The server's id, never rewritten (wire.md F10).
    pub id: String,
    /// The tool's name.
    pub name: String,
    /// The arguments as they came, for the person and for quoting.
    pub raw: String,
    /// The arguments understood, or why they cannot be used (in words that quote where).
    pub arguments: Result<Map<String, Value>, String>,
    /// Unknown members, to be sent back verbatim: Gemini's `extra_content` holds a signature it insists on (wire.md D8).
    pub extra: Map<String, Value>,
}

/// What a server wants of messages; one [`History`] is rendered in one style at a time. The table of what servers
/// refuse is `dialect.rs`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Style {
    /// What to do with kept reasoning.
    pub reasoning: Reasoning,
    /// Send `""` where an assistant message has calls and no text; `null` otherwise (wire.md F6).
    pub empty_content: bool,
}

/// What to do with reasoning on assistant messages that have calls.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Reasoning {
    /// Send it back under the name it came in.
    #[default]
    Echo,
    /// The server refuses the field (wire.md D4).
    Strip,
    /// The server misses it where there was none: send one blank (wire.md D7).
    Blank,
}

impl Message {
    /// The message as a server takes it.
    pub fn to_json(&self, style: Style) -> Value {
        match self {
            Message::User(text) => json!({"role": "user", "content": text}),
            Message::Tool { id, text } => json!({"role": "tool", "tool_call_id": id, "content": filled(text)}),
            Message::Assistant(reply) => reply.to_json(style),
        }
    }

    /// A message out of what [`to_json`](Message::to_json) wrote in the default style. The error says what is missing.
    pub fn from_json(value: &Value) -> Result<Message, String> {
        let text = |name: &str| {
            let found = value[name].as_str().map(String::from);
            found.ok_or_else(|| format!("a message without `{name}`: {value}"))
        };
        match value["role"].as_str() {
            Some("user") => Ok(Message::User(text("content")?)),
            Some("tool") => Ok(Message::Tool { id: text("tool_call_id")?, text: text("content")? }),
            Some("assistant") => Assistant::from_json(value).map(Message::Assistant),
            _ => Err(format!("a message of no known role: {value}")),
        }
    }
}

impl Message {
    /// A reply with neither text nor calls (all of its tokens went into reasoning): it stays in the history, but
    /// several servers refuse to be sent one (wire.md F7).
    fn is_blank(&self) -> bool {
        matches!(self, Message::Assistant(reply) if reply.text.trim().is_empty() && reply.calls.is_empty())
    }
}

/// Blank content of a tool result is refused by several servers (wire.md F7).
fn filled(text: &str) -> &str {
    if text.trim().is_empty() { "(no output)" } else { text }
}

impl Assistant {
    fn to_json(&self, style: Style) -> Value {
        let mut message = self.extra.clone();
        message.insert("role".into(), "assistant".into());
        message.insert("content".into(), self.content(style));
        if self.calls.is_empty() {
            return message.into();
        }
        message.insert("tool_calls".into(), self.calls.iter().map(Call::to_json).collect());
        match (&self.reasoning, style.reasoning) {
            (_, Reasoning::Strip) => message.retain(|name, _| !name.starts_with("reasoning")),
            (Some((name, text)), _) => drop(message.insert(name.clone(), text.as_str().into())),
            (None, Reasoning::Blank) => drop(message.insert("reasoning_content".into(), " ".into())),
            (None, Reasoning::Echo) => {}
        }
        message.into()
    }

    fn from_json(value: &Value) -> Result<Assistant, String> {
        let mut extra = value.as_object().cloned().unwrap_or_default();
        extra.remove("role");
        let text = extra.remove("content").and_then(|text| text.as_str().map(String::from)).unwrap_or_default();
        let calls = extra.remove("tool_calls").and_then(|calls| calls.as_array().cloned()).unwrap_or_default();
        let calls = calls.iter().map(Call::from_json).collect::<Result<Vec<_>, _>>()?;
        let said = extra.iter().find(|(name, value)| name.starts_with("reasoning") && value.is_string());
        let reasoning = said.map(|(name, text)| (name.clone(), text.as_str().unwrap_or_default().to_owned()));
        if let Some((name, _)) = &reasoning {
            extra.remove(name);
        }
        Ok(Assistant { text, calls, reasoning, extra })
    }

    fn content(&self, style: Style) -> Value {
        if self.text.is_empty() && !self.calls.is_empty() && !style.empty_content {
            return Value::Null;
        }
        self.text.as_str().into()
    }
}

impl Call {
    fn to_json(&self) -> Value {
        let mut call = self.extra.clone();
        call.insert("id".into(), self.id.as_str().into());
        call.insert("type".into(), "function".into());
        call.insert("function".into(), json!({"name": self.name, "arguments": self.sendable()}));
        call.into()
    }

    fn from_json(value: &Value) -> Result<Call, String> {
        let text = |value: &Value| value.as_str().map(String::from).ok_or_else(|| format!("a broken call: {value}"));
        let raw = text(&value["function"]["arguments"])?;
        let mut extra = value.as_object().cloned().unwrap_or_default();
        extra.retain(|name, _| !matches!(name.as_str(), "id" | "type" | "function"));
        let arguments = serde_json::from_str(&raw).map_err(|e| format!("not a JSON object: {e}"));
        Ok(Call { id: text(&value["id"])?, name: text(&value["function"]["name"])?, raw, arguments, extra })
    }

    /// The arguments as they travel back. llama.cpp answers 500 for a history with broken JSON in it, so what could
    /// not be used becomes `{}` (the result quotes it); what parses plainly keeps its bytes.
    fn sendable(&self) -> Cow<'_, str> {
        match &self.arguments {
            Err(_) => "{}".into(),
            Ok(_) if is_object(&self.raw) => self.raw.as_str().into(),
            Ok(arguments) => json!(arguments).to_string().into(),
        }
    }
}

/// Whether a text is one JSON object. Its values are skipped and not built: they can be whole files.
fn is_object(text: &str) -> bool {
    serde_json::from_str::<HashMap<String, IgnoredAny>>(text).is_ok()
}

/// The conversation so far. It only grows, except through [`replace`](History::replace).
#[derive(Default)]
pub struct History {
    messages: Vec<Message>,
    /// Ids of calls without a result yet, in call order.
    open: std::collections::VecDeque<String>,
    kept: Kept,
    replaced: u64,
}

/// The messages serialised, joined with commas; valid for one style.
#[derive(Default)]
struct Kept {
    style: Style,
    bytes: Vec<u8>,
    /// How many messages are in `bytes`.
    messages: usize,
}

impl History {
    /// No messages yet.
    pub fn new() -> History {
        History::default()
    }

    /// All messages, oldest first.
    pub fn messages(&self) -> &[Message] {
        &self.messages
    }

    /// Adds a user message. Open calls are answered first, as interrupted.
    pub fn user(&mut self, text: impl Into<String>) -> &Message {
        self.close(INTERRUPTED);
        self.push(Message::User(text.into()))
    }

    /// Adds a reply; its calls are open from here. Open calls of an earlier one are answered first, as interrupted.
    pub fn assistant(&mut self, reply: Assistant) -> &Message {
        self.close(INTERRUPTED);
        self.open.extend(reply.calls.iter().map(|call| call.id.clone()));
        self.push(Message::Assistant(reply))
    }

    /// Answers the oldest open call. `None`, and nothing joins, when no call is open.
    pub fn answer(&mut self, text: impl Into<String>) -> Option<&Message> {
        let id = self.open.pop_front()?;
        Some(self.push(Message::Tool { id, text: text.into() }))
    }

    /// The ids of calls without a result yet, in call order.
    pub fn open_calls(&self) -> impl Iterator<Item = &str> {
        self.open.iter().map(String::as_str)
    }

    /// Answers every open call with `text`; returns the results that joined.
    pub fn close(&mut self, text: &str) -> &[Message] {
        let before = self.messages.len();
        while self.answer(text).is_some() {}
        &self.messages[before..]
    }

    /// Puts other messages in place of all: for compaction and for hooks. Refused, and nothing changes, when they
    /// break the pairing invariant.
    pub fn replace(&mut self, messages: Vec<Message>) -> Result<(), String> {
        check_pairs(&messages)?;
        *self = History { messages, replaced: self.replaced + 1, ..History::default() };
        Ok(())
    }

    /// How often the messages were replaced: whoever counts along knows when to begin anew.
    pub fn replaced(&self) -> u64 {
        self.replaced
    }

    /// The messages as JSON objects joined with commas, without brackets. Call it with no call open.
    pub fn render(&mut self, style: Style) -> &[u8] {
        if style != self.kept.style {
            self.kept = Kept { style, ..Kept::default() };
        }
        for message in self.messages[self.kept.messages..].iter().filter(|message| !message.is_blank()) {
            if !self.kept.bytes.is_empty() {
                self.kept.bytes.push(b',');
            }
            self.kept.bytes.extend_from_slice(message.to_json(style).to_string().as_bytes());
        }
        self.kept.messages = self.messages.len();
        &self.kept.bytes
    }

    fn push(&mut self, message: Message) -> &Message {
        self.messages.push(message);
        &self.messages[self.messages.len() - 1]
    }
}

/// Whether every call has exactly one result, directly behind its message, in call order; the error names the first
/// place where that is not so.
pub fn check_pairs(messages: &[Message]) -> Result<(), String> {
    let mut open = std::collections::VecDeque::new();
    for (at, message) in messages.iter().enumerate() {
        match message {
            Message::Tool { id, .. } if open.front() == Some(&id) => drop(open.pop_front()),
            Message::Tool { id, .. } => {
                return Err(format!("message {at}: a result for `{id}`, which is not the next open call"));
            }
            _ if !open.is_empty() => {
                return Err(format!("message {at}: comes before the result of call `{}`", open[0]));
            }
            Message::Assistant(reply) => open.extend(reply.calls.iter().map(|call| &call.id)),
            Message::User(_) => {}
        }
    }
    match open.front() {
        Some(id) => Err(format!("call `{id}` has no result")),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn call(id: &str, raw: &str) -> Call {
        let arguments = serde_json::from_str(raw).map_err(|e| e.to_string());
        Call { id: id.into(), name: "read".into(), raw: raw.into(), arguments, extra: Map::new() }
    }

    fn reply(calls: &[&str]) -> Assistant {
        Assistant { calls: calls.iter().map(|id| call(id, "{}")).collect(), ..Assistant::default() }
    }

    #[test]
    fn going_on_without_answers_answers_open_calls_as_interrupted() {
        let mut history = History::new();
        history.user("go");
        history.assistant(reply(&["a", "b"]));
        history.answer("done");
        history.user("next");
        assert_eq!(check_pairs(history.messages()), Ok(()));
        assert_eq!(history.messages()[3], Message::Tool { id: "b".into(), text: INTERRUPTED.into() });
    }

    #[test]
    fn a_result_without_an_open_call_does_not_join() {
        let mut history = History::new();
        history.user("go");
        assert!(history.answer("stray").is_none());
        assert_eq!(history.messages().len(), 1);
    }

    #[test]
    fn a_replacement_that_breaks_pairs_is_refused_and_changes_nothing() {
        let mut history = History::new();
        history.user("go");
        assert!(history.replace(vec![Message::Assistant(reply(&["a"]))]).is_err());
        assert_eq!(history.messages().len(), 1);
    }

    #[test]
    fn rendered_bytes_only_grow() {
        let mut history = History::new();
        history.user("go");
        let first = history.render(Style::default()).to_vec();
        history.assistant(reply(&["a"]));
        history.answer("text");
        let second = history.render(Style::default());
        assert!(second.starts_with(&first) && second.len() > first.len());
    }

    #[test]
    fn a_blank_reply_is_not_sent() {
        let mut history = History::new();
        history.user("go");
        history.assistant(Assistant::default());
        history.user("again");
        let sent = String::from_utf8_lossy(history.render(Style::default())).into_owned();
        assert_eq!(sent, r#"{"role":"user","content":"go"},{"role":"user","content":"again"}"#);
    }

    #[test]
    fn unusable_arguments_travel_as_an_empty_object() {
        assert_eq!(call("a", "{\"path\": \"").to_json()["function"]["arguments"], "{}");
        assert_eq!(call("a", "{ \"path\":\"x\"}").to_json()["function"]["arguments"], "{ \"path\":\"x\"}");
    }

    #[test]
    fn a_message_survives_being_written_and_read() {
        let mut with = reply(&["a", "b"]);
        with.text = "so".into();
        with.reasoning = Some(("reasoning_content".into(), "because".into()));
        with.extra.insert("reasoning_details".into(), json!([1]));
        with.calls[0].extra.insert("extra_content".into(), json!({"signature": "s"}));
        let result = Message::Tool { id: "a".into(), text: "out".into() };
        for message in [Message::User("go".into()), Message::Assistant(with), result] {
            assert_eq!(Message::from_json(&message.to_json(Style::default())), Ok(message));
        }
        assert!(Message::from_json(&json!({"role": "system", "content": ""})).is_err());
        assert!(Message::from_json(&json!({"role": "user"})).is_err());
    }

    #[test]
    fn styles_decide_on_reasoning_and_empty_content() {
        let mut with = reply(&["a"]);
        with.reasoning = Some(("reasoning".into(), "because".into()));
        let style = |reasoning, empty_content| Style { reasoning, empty_content };
        assert_eq!(with.to_json(Style::default())["reasoning"], "because");
        assert_eq!(with.to_json(Style::default())["content"], Value::Null);
        assert_eq!(with.to_json(style(Reasoning::Strip, true)).get("reasoning"), None);
        assert_eq!(with.to_json(style(Reasoning::Strip, true))["content"], "");
        assert_eq!(reply(&["a"]).to_json(style(Reasoning::Blank, false))["reasoning_content"], " ");
    }
}
