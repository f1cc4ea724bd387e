//! One reply out of deltas.
//!
//! A reply arrives as hundreds of small JSON objects. Most are plain; what makes this file necessary is that servers
//! disagree about everything around them: which field names a call, whether it has an index, how often its name comes,
//! what ends a reply. The rules are the rows of sections B, C and D of wire.md, named where they apply. Arguments
//! of calls are made sense of in [`arguments`].
//!
//! Each delta is read into borrowed parts, and only the text is copied. Rejected: `serde_json::Value` for each delta,
//! which allocates for every member of every chunk; and one typed struct for all, because a wrong type in a member that
//! nobody needs (`"created": "now"`) must not cost the reply.
//!
//! Left out on purpose: `<think>` tags inside the text (servers have a parser for that), log probabilities, audio, and
//! more than one choice.

pub mod arguments;
mod calls;
mod chunk;

use crate::complaint::{Complaint, cut};
use crate::event::Usage;
use crate::message::Assistant;
use crate::sse;
use calls::Calls;
use chunk::{Choice, Chunk, Delta, Raw, present, string};
use serde_json::value::RawValue;
use serde_json::{Map, Value};

pub use arguments::call_as_text;

/// Longest reply, in bytes of text, reasoning and arguments together.
pub const MAX_REPLY: usize = 64 << 20;

/// Something to show while the reply comes.
#[derive(Debug, PartialEq, Eq)]
pub enum Piece<'a> {
    /// Of the answer.
    Text(&'a str),
    /// Of the model's reasoning.
    Reasoning(&'a str),
}

/// Why a stream cannot become a reply.
#[derive(Clone, Debug, PartialEq)]
pub enum Trouble {
    /// The server said so.
    Complaint(Complaint),
    /// The body is a web page.
    Html,
    /// Something that should be JSON is not; an excerpt.
    Broken(String),
    /// It does not end.
    TooLong,
}

/// The reply so far.
#[derive(Debug, Default)]
pub struct Assembly {
    text: String,
    /// The field name reasoning came in, and its text.
    reasoning: Option<(String, String)>,
    /// OpenRouter's `reasoning_details`, in order (D9).
    details: Vec<Value>,
    calls: Calls,
    finish: Option<String>,
    done: bool,
    usage: Usage,
    /// Bytes of text, reasoning and arguments so far.
    held: usize,
}

impl Assembly {
    /// Takes one event of the stream, and says what is new to show.
    pub fn take(&mut self, event: sse::Event, say: &mut impl FnMut(Piece)) -> Result<(), Trouble> {
        if self.done {
            return Ok(()); // A15
        }
        let taken = match event {
            sse::Event::Done => {
                self.done = true;
                Ok(())
            }
            sse::Event::Json(text) => self.json(text, say),
            sse::Event::Error(text) => Err(Trouble::Complaint(Complaint::from_event(text))),
            sse::Event::Broken(text) => Err(broken(text)),
            sse::Event::Html => Err(Trouble::Html),
        };
        match taken {
            Err(_) if self.complete() && !self.failed() => Ok(()), // only the tail is bad: the answer stands (E13)
            taken => taken,
        }
    }

    /// Whether the server has said that the reply is whole.
    pub fn complete(&self) -> bool {
        self.done || self.finish.is_some()
    }

    /// Whether `[DONE]` has come.
    pub fn done(&self) -> bool {
        self.done
    }

    /// The finish_reason, as it came.
    pub fn finish_reason(&self) -> Option<&str> {
        self.finish.as_deref()
    }

    /// Whether the server gives a reason to finish that is its own failure (C7).
    pub fn failed(&self) -> bool {
        matches!(self.finish.as_deref(), Some("network_error" | "insufficient_system_resource" | "error"))
    }

    /// Neither text nor calls.
    pub fn is_empty(&self) -> bool {
        self.text.trim().is_empty() && self.calls.is_empty()
    }

    /// Whether a call has begun.
    pub fn has_calls(&self) -> bool {
        !self.calls.is_empty()
    }

    /// The tokens, as far as the server said.
    pub fn usage(&self) -> Usage {
        self.usage
    }

    /// The message. `new_id` invents an id for a call without one.
    pub fn into_message(self, new_id: &mut dyn FnMut() -> String) -> Assistant {
        let mut extra = Map::new();
        if !self.details.is_empty() {
            extra.insert("reasoning_details".into(), self.details.into());
        }
        let cut = self.finish.as_deref() == Some("length");
        let calls = self.calls.finish(cut, new_id);
        Assistant { text: self.text, calls, reasoning: self.reasoning, extra }
    }

    fn json(&mut self, text: &[u8], say: &mut impl FnMut(Piece)) -> Result<(), Trouble> {
        let text = String::from_utf8_lossy(text);
        if text.starts_with('[') {
            // Gemini's errors are arrays (E5); no chunk is.
            return Err(Trouble::Complaint(Complaint::from_event(text.as_bytes())));
        }
        let chunk: Chunk = serde_json::from_str(&text).map_err(|_| broken(text.as_bytes()))?;
        self.count(chunk.usage);
        let is_error = chunk.object.and_then(string).is_some_and(|object| object == "error");
        if is_error || present(chunk.error) || (present(chunk.errors) && chunk.choices.is_none()) {
            return Err(Trouble::Complaint(Complaint::from_event(text.as_bytes())));
        }
        match chunk.choices.unwrap_or_default().into_iter().next() {
            Some(choice) => self.choice(choice, say),
            None => Ok(()),
        }
    }

    fn choice(&mut self, choice: Choice, say: &mut impl FnMut(Piece)) -> Result<(), Trouble> {
        if let Some(error) = choice.error.filter(|error| present(Some(error))) {
            return Err(Trouble::Complaint(Complaint::from_event(error.get().as_bytes())));
        }
        self.count(choice.usage);
        if let Some(delta) = choice.delta {
            self.delta(delta, say);
        }
        if let Some(message) = choice.message {
            self.whole(message, say);
        }
        // After the delta: vLLM puts the reason into the chunk of the last delta (C4).
        if let Some(reason) = choice.finish_reason.and_then(string).filter(|reason| !reason.is_empty()) {
            self.finish = Some(reason.into_owned());
        }
        if self.held > MAX_REPLY { Err(Trouble::TooLong) } else { Ok(()) }
    }

    fn delta(&mut self, delta: Delta, say: &mut impl FnMut(Piece)) {
        self.think(&delta, say);
        if let Some(content) = delta.content {
            self.content(content, say);
        }
        if let Some(refusal) = delta.refusal.and_then(string) {
            self.say(&refusal, say);
        }
        let alone = delta.tool_calls.as_ref().is_some_and(|fragments| fragments.len() == 1);
        for (position, fragment) in delta.tool_calls.into_iter().flatten().enumerate() {
            self.held += self.calls.add(fragment, position, alone);
        }
        if let Some(function) = delta.function_call {
            self.held += self.calls.add_legacy(function);
        }
    }

    /// A whole message: only what the deltas did not bring.
    fn whole(&mut self, mut message: Delta, say: &mut impl FnMut(Piece)) {
        if !self.text.is_empty() {
            (message.content, message.refusal) = (None, None);
        }
        if self.reasoning.is_some() {
            (message.reasoning, message.reasoning_content, message.reasoning_details) = (None, None, None);
        }
        if !self.calls.is_empty() {
            (message.tool_calls, message.function_call) = (None, None);
        }
        self.delta(message, say);
    }

    /// Reasoning: two names are in use (D5); where a server sends both, they say the same (D6).
    fn think(&mut self, delta: &Delta, say: &mut impl FnMut(Piece)) {
        for (name, raw) in [("reasoning_content", delta.reasoning_content), ("reasoning", delta.reasoning)] {
            if let Some(text) = raw.and_then(string).filter(|text| !text.is_empty()) {
                self.reason(name, &text, say);
                break;
            }
        }
        self.held += delta.reasoning_details.map_or(0, |raw| raw.get().len());
        if let Some(Ok(details)) = delta.reasoning_details.map(|raw| serde_json::from_str::<Vec<Value>>(raw.get())) {
            self.details.extend(details);
        }
    }

    fn reason(&mut self, name: &str, text: &str, say: &mut impl FnMut(Piece)) {
        self.held += text.len();
        self.reasoning.get_or_insert_with(|| (name.into(), String::new())).1.push_str(text);
        say(Piece::Reasoning(text));
    }

    /// A string, or an array of parts (Mistral: C17).
    fn content(&mut self, content: &RawValue, say: &mut impl FnMut(Piece)) {
        if let Some(text) = string(content) {
            return self.say(&text, say);
        }
        for part in serde_json::from_str::<Vec<Value>>(content.get()).unwrap_or_default() {
            match (&part["thinking"], &part["text"], &part) {
                (Value::Array(thoughts), _, _) => {
                    let text: String = thoughts.iter().filter_map(|thought| thought["text"].as_str()).collect();
                    self.shown_only(&text, say);
                }
                (Value::String(text), _, _) => self.shown_only(text, say),
                (_, Value::String(text), _) | (_, _, Value::String(text)) => self.say(text, say),
                _ => {}
            }
        }
    }

    /// Reasoning that came without a field of its own is not sent back: Mistral refuses it (D4).
    fn shown_only(&mut self, text: &str, say: &mut impl FnMut(Piece)) {
        if !text.is_empty() {
            say(Piece::Reasoning(text));
        }
    }

    fn say(&mut self, text: &str, say: &mut impl FnMut(Piece)) {
        if !text.is_empty() {
            self.held += text.len();
            self.text.push_str(text);
            say(Piece::Text(text));
        }
    }

    /// The last object wins (C15).
    fn count(&mut self, raw: Raw) {
        let Some(Ok(usage)) = raw.map(|raw| serde_json::from_str::<Value>(raw.get())) else { return };
        if usage.is_object() {
            self.usage = chunk::read_usage(&usage);
        }
    }
}

fn broken(text: &[u8]) -> Trouble {
    Trouble::Broken(cut(&String::from_utf8_lossy(text), 80))
}

#[cfg(test)]
mod tests;
