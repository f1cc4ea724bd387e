//! The shape of one chunk, as loosely as possible.
//!
//! Every member may be missing, null or of a wrong type (C13, C14); unknown ones are ignored. So members stay raw JSON
//! until somebody wants them, which is also what makes a delta cheap: most of a chunk is never looked at.

use crate::event::Usage;
use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Map, Value};
use std::borrow::Cow;
use std::collections::BTreeMap;

/// A member, if it is there and not null.
pub type Raw<'a> = Option<&'a RawValue>;

/// One chunk; every field is optional (C13, C14), and unknown ones are ignored.
#[derive(Deserialize)]
pub struct Chunk<'a> {
    #[serde(borrow, default)]
    pub choices: Option<Vec<Choice<'a>>>,
    #[serde(borrow, default)]
    pub usage: Raw<'a>,
    #[serde(borrow, default)]
    pub error: Raw<'a>,
    #[serde(borrow, default)]
    pub errors: Raw<'a>,
    #[serde(borrow, default)]
    pub object: Raw<'a>,
}

#[derive(Deserialize)]
pub struct Choice<'a> {
    #[serde(borrow, default)]
    pub delta: Option<Delta<'a>>,
    /// The whole message, in a body that is no stream or in a last chunk (B20).
    #[serde(borrow, default)]
    pub message: Option<Delta<'a>>,
    #[serde(borrow, default)]
    pub finish_reason: Raw<'a>,
    #[serde(borrow, default)]
    pub usage: Raw<'a>,
    #[serde(borrow, default)]
    pub error: Raw<'a>,
}

#[derive(Deserialize)]
pub struct Delta<'a> {
    #[serde(borrow, default)]
    pub content: Raw<'a>,
    #[serde(borrow, default)]
    pub refusal: Raw<'a>,
    #[serde(borrow, default)]
    pub reasoning_content: Raw<'a>,
    #[serde(borrow, default)]
    pub reasoning: Raw<'a>,
    #[serde(borrow, default)]
    pub reasoning_details: Raw<'a>,
    #[serde(borrow, default)]
    pub tool_calls: Option<Vec<&'a RawValue>>,
    #[serde(borrow, default)]
    pub function_call: Option<Function<'a>>,
}

/// A piece of a call.
#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Fragment<'a> {
    #[serde(borrow, default)]
    pub index: Raw<'a>,
    #[serde(borrow, default)]
    pub id: Raw<'a>,
    /// Always `function`; not looked at.
    #[serde(rename = "type", borrow, default)]
    _type: Raw<'a>,
    #[serde(borrow, default)]
    pub function: Raw<'a>,
    /// All other members: they are kept (D8).
    #[serde(skip)]
    pub extra: Map<String, Value>,
}

impl<'a> Fragment<'a> {
    /// Most fragments hold nothing unknown and are read at once. The few others are read again as a map; serde's
    /// `flatten` would do that to all of them.
    pub fn read(raw: &'a RawValue) -> Fragment<'a> {
        serde_json::from_str(raw.get()).unwrap_or_else(|_| Fragment::with_extra(raw))
    }

    fn with_extra(raw: &'a RawValue) -> Fragment<'a> {
        let mut members: BTreeMap<String, Raw> = serde_json::from_str(raw.get()).unwrap_or_default();
        let mut known = |name: &str| members.remove(name).flatten();
        let (index, id, _type, function) = (known("index"), known("id"), known("type"), known("function"));
        let value = |raw: &RawValue| serde_json::from_str(raw.get()).ok();
        let extra = members.into_iter().filter_map(|(name, raw)| Some((name, value(raw?)?))).collect();
        Fragment { index, id, _type, function, extra }
    }
}

#[derive(Default, Deserialize)]
pub struct Function<'a> {
    #[serde(borrow, default)]
    pub name: Raw<'a>,
    #[serde(borrow, default)]
    pub arguments: Raw<'a>,
}

/// `"error": null` is no error (C16), and neither is `""` or `false`.
pub fn present(raw: Raw) -> bool {
    raw.is_some_and(|raw| !matches!(raw.get(), "null" | "\"\"" | "false" | "{}" | "[]"))
}

/// A JSON string; borrowed where it holds no escapes. `None` for everything else.
pub fn string(raw: &RawValue) -> Option<Cow<'_, str>> {
    let inner = raw.get().strip_prefix('"')?.strip_suffix('"')?;
    if inner.contains('\\') { serde_json::from_str(raw.get()).ok().map(Cow::Owned) } else { Some(inner.into()) }
}

/// Token counts, under all the names in use (C15).
pub fn read_usage(usage: &Value) -> Usage {
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
