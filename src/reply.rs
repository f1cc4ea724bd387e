//! One reply out of deltas.
//!
//! A reply arrives as hundreds of small JSON objects. Most are plain; what makes this file necessary is that servers
//! disagree about everything around them: which field names a call, whether it has an index, how often its name comes,
//! what ends a reply. The rules are the rows of sections B, C and D of the wire notes, named where they apply. Arguments
//! of calls are made sense of in [`arguments`].
//!
//! Each delta is read into borrowed parts, and only the text is copied. Rejected: `serde_json::Value` for each delta,
//! which allocates for every member of every chunk; and one typed struct for all, because a wrong type in a member that
//! nobody needs (`"created": "now"`) must not cost the reply.
//!
//! Left out on purpose: `<think>` tags inside the text (servers have a parser for that), log probabilities, audio, and
//! more than one choice.

pub mod arguments;

use crate::complaint::Complaint;
use crate::event::Usage;
use crate::message::{Assistant, Call};
use crate::sse;
use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Map, Value};
use std::borrow::Cow;
use std::collections::BTreeMap;

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
    calls: Vec<Building>,
    finish: Option<String>,
    done: bool,
    usage: Usage,
    /// Bytes taken so far.
    size: usize,
}

/// One call so far.
#[derive(Debug, Default)]
struct Building {
    /// A key, not a position (B6).
    index: Option<u64>,
    id: String,
    name: String,
    arguments: String,
    extra: Map<String, Value>,
}

type Raw<'a> = Option<&'a RawValue>;

/// One chunk; every field is optional (C13, C14), and unknown ones are ignored.
#[derive(Deserialize)]
struct Chunk<'a> {
    #[serde(borrow, default)]
    choices: Option<Vec<Choice<'a>>>,
    #[serde(borrow, default)]
    usage: Raw<'a>,
    #[serde(borrow, default)]
    error: Raw<'a>,
    #[serde(borrow, default)]
    errors: Raw<'a>,
    #[serde(borrow, default)]
    object: Raw<'a>,
}

#[derive(Deserialize)]
struct Choice<'a> {
    #[serde(borrow, default)]
    delta: Option<Delta<'a>>,
    /// The whole message, in a body that is no stream or in a last chunk (B20).
    #[serde(borrow, default)]
    message: Option<Delta<'a>>,
    #[serde(borrow, default)]
    finish_reason: Raw<'a>,
    #[serde(borrow, default)]
    usage: Raw<'a>,
    #[serde(borrow, default)]
    error: Raw<'a>,
}

#[derive(Deserialize)]
struct Delta<'a> {
    #[serde(borrow, default)]
    content: Raw<'a>,
    #[serde(borrow, default)]
    refusal: Raw<'a>,
    #[serde(borrow, default)]
    reasoning_content: Raw<'a>,
    #[serde(borrow, default)]
    reasoning: Raw<'a>,
    #[serde(borrow, default)]
    reasoning_details: Raw<'a>,
    #[serde(borrow, default)]
    tool_calls: Option<Vec<Fragment<'a>>>,
    #[serde(borrow, default)]
    function_call: Option<Function<'a>>,
}

/// A piece of a call: all its members, since the unknown ones are kept (D8).
type Fragment<'a> = BTreeMap<String, Raw<'a>>;

#[derive(Default, Deserialize)]
struct Function<'a> {
    #[serde(borrow, default)]
    name: Raw<'a>,
    #[serde(borrow, default)]
    arguments: Raw<'a>,
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
        let calls = self.calls.into_iter().map(|call| call.build(cut, new_id)).collect();
        Assistant { text: self.text, calls, reasoning: self.reasoning, extra }
    }

    fn json(&mut self, text: &[u8], say: &mut impl FnMut(Piece)) -> Result<(), Trouble> {
        self.size += text.len();
        if self.size > 4 * MAX_REPLY {
            return Err(Trouble::TooLong); // in a stream of small deltas the frame is most of it
        }
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
        let held = self.calls.iter().map(|call| call.arguments.len()).sum::<usize>() + self.text.len();
        if held > MAX_REPLY { Err(Trouble::TooLong) } else { Ok(()) }
    }

    fn delta(&mut self, delta: Delta, say: &mut impl FnMut(Piece)) {
        self.think(&delta, say);
        if let Some(content) = delta.content {
            self.content(content, say);
        }
        if let Some(refusal) = delta.refusal.and_then(string) {
            self.say(&refusal, say);
        }
        let together = delta.tool_calls.as_ref().map_or(0, Vec::len);
        for (position, fragment) in delta.tool_calls.into_iter().flatten().enumerate() {
            self.fragment(fragment, position, together);
        }
        if let Some(function) = delta.function_call {
            self.legacy(function);
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
        if let Some(Ok(details)) = delta.reasoning_details.map(|raw| serde_json::from_str::<Vec<Value>>(raw.get())) {
            self.details.extend(details);
        }
    }

    fn reason(&mut self, name: &str, text: &str, say: &mut impl FnMut(Piece)) {
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
            self.text.push_str(text);
            say(Piece::Text(text));
        }
    }

    /// A piece of a call: finds the call it belongs to, and adds to it.
    fn fragment(&mut self, mut fragment: Fragment, position: usize, together: usize) {
        let mut member = |name: &str| fragment.remove(name).flatten();
        let function: Function = match member("function").map(|raw| serde_json::from_str(raw.get())) {
            Some(Ok(function)) => function,
            _ => Function::default(),
        };
        let key = Key {
            id: member("id").and_then(string).unwrap_or_default(),
            index: member("index").and_then(|raw| raw.get().parse().ok()),
            name: function.name.and_then(string).unwrap_or_default(),
            alone: together == 1,
            position,
        };
        member("type");
        let at = self.route(&key);
        let call = &mut self.calls[at];
        call.index = call.index.or(key.index);
        call.set(&key);
        if let Some(arguments) = function.arguments {
            // An object instead of a string is serialised (B11).
            call.arguments.push_str(&string(arguments).unwrap_or_else(|| object(arguments)));
        }
        for (name, raw) in fragment {
            if let Some(Ok(value)) = raw.map(|raw| serde_json::from_str(raw.get())) {
                call.extra.insert(name, value);
            }
        }
    }

    /// Where a fragment belongs: by id, then by index, then by position; a new call where none fits.
    fn route(&mut self, key: &Key) -> usize {
        let found = match (key.id.is_empty(), key.index) {
            (false, index) => self.by_id(&key.id).or_else(|| {
                // A new id on an occupied index is a new call (B2), unless the call there still waits for its id.
                let at = index.and_then(|index| self.by_index(index))?;
                self.calls[at].id.is_empty().then_some(at)
            }),
            (true, Some(index)) => self.by_index(index).filter(|at| {
                let call = &self.calls[*at];
                !(call.is_whole() && key.names_another(call))
            }),
            (true, None) if !key.alone && key.position < self.calls.len() && key.name.is_empty() => Some(key.position),
            (true, None) => self.calls.len().checked_sub(1).filter(|at| {
                let call = &self.calls[*at];
                key.name.is_empty() || !(call.is_whole() || key.names_another(call))
            }),
        };
        found.unwrap_or_else(|| {
            self.calls.push(Building::default());
            self.calls.len() - 1
        })
    }

    fn by_id(&self, id: &str) -> Option<usize> {
        self.calls.iter().rposition(|call| call.id == id)
    }

    fn by_index(&self, index: u64) -> Option<usize> {
        self.calls.iter().rposition(|call| call.index == Some(index))
    }

    /// The deprecated form, without id and index: all its pieces are one call.
    fn legacy(&mut self, function: Function) {
        if self.calls.is_empty() {
            self.calls.push(Building::default());
        }
        let name = function.name.and_then(string).unwrap_or_default();
        if let Some(call) = self.calls.last_mut() {
            call.set(&Key { name, ..Key::default() });
            call.arguments.push_str(&function.arguments.and_then(string).unwrap_or_default());
        }
    }

    /// The last object wins (C15).
    fn count(&mut self, raw: Raw) {
        let Some(Ok(usage)) = raw.map(|raw| serde_json::from_str::<Value>(raw.get())) else { return };
        if usage.is_object() {
            self.usage = read_usage(&usage);
        }
    }
}

/// What a fragment says about the call it belongs to.
#[derive(Default)]
struct Key<'a> {
    id: Cow<'a, str>,
    index: Option<u64>,
    name: Cow<'a, str>,
    /// The only fragment of its chunk.
    alone: bool,
    position: usize,
}

impl Key<'_> {
    fn names_another(&self, call: &Building) -> bool {
        !self.name.is_empty() && !call.name.is_empty() && self.name != call.name
    }
}

impl Building {
    /// Sets id and name once: later ones are empty (B4, B8) or the same again (B7), never a continuation.
    fn set(&mut self, key: &Key) {
        if self.id.is_empty() {
            self.id.push_str(&key.id);
        }
        if self.name.is_empty() {
            self.name.push_str(&key.name);
        }
    }

    /// Whether its arguments are a whole object already.
    fn is_whole(&self) -> bool {
        !self.name.is_empty()
            && self.arguments.trim_end().ends_with('}')
            && serde_json::from_str::<serde::de::IgnoredAny>(&self.arguments).is_ok()
    }

    fn build(self, cut: bool, new_id: &mut dyn FnMut() -> String) -> Call {
        let arguments = if cut { Err(CUT.into()) } else { arguments::read(&self.arguments) };
        let id = if self.id.is_empty() { new_id() } else { self.id };
        Call { id, name: self.name, raw: self.arguments, arguments, extra: self.extra }
    }
}

/// Why no call of a cut reply is run, not even one that happens to parse (B21).
const CUT: &str = "the reply was cut at the output limit (finish_reason length), so nothing of it was run. \
                   Do it in smaller steps, for example write a long file in several parts";

fn broken(text: &[u8]) -> Trouble {
    Trouble::Broken(crate::complaint::cut(&String::from_utf8_lossy(text), 80))
}

/// `"error": null` is no error (C16), and neither is `""` or `false`.
fn present(raw: Raw) -> bool {
    raw.is_some_and(|raw| !matches!(raw.get(), "null" | "\"\"" | "false" | "{}" | "[]"))
}

/// A JSON string; borrowed where it holds no escapes. `None` for everything else.
fn string(raw: &RawValue) -> Option<Cow<'_, str>> {
    let inner = raw.get().strip_prefix('"')?.strip_suffix('"')?;
    if inner.contains('\\') { serde_json::from_str(raw.get()).ok().map(Cow::Owned) } else { Some(inner.into()) }
}

/// The text of a JSON value that should have been a string; nothing for null.
fn object(raw: &RawValue) -> Cow<'_, str> {
    if raw.get() == "null" { "".into() } else { raw.get().into() }
}

fn read_usage(usage: &Value) -> Usage {
    let first = |places: &[&str]| {
        places.iter().find_map(|place| usage.pointer(place).and_then(Value::as_f64)).map_or(0, |count| count as u64)
    };
    Usage {
        input: first(&["/prompt_tokens", "/input_tokens"]),
        cached: first(&["/prompt_tokens_details/cached_tokens", "/prompt_cache_hit_tokens", "/cached_tokens"]),
        output: first(&["/completion_tokens", "/output_tokens"]),
        reasoning: first(&["/completion_tokens_details/reasoning_tokens", "/reasoning_tokens"]),
    }
}

#[cfg(test)]
mod tests;
