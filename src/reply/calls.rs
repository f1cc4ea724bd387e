//! Which call a fragment belongs to.
//!
//! By the protocol each fragment has an `index`, and the first of a call has `id` and `name`. In the field any of the
//! three is missing, empty, repeated or wrong, each in some server (section B of wire.md). The order of trust is:
//! a known id, then the index, then the position; and a new call begins where none fits.

use super::arguments;
use super::chunk::{Fragment, Function, Raw, string};
use crate::message::Call;
use serde_json::value::RawValue;
use serde_json::{Map, Value};
use std::borrow::Cow;

/// What a call counts as, in bytes, beside its arguments: so a reply that begins calls for ever comes to its end, too, at
/// about a thousand.
const A_CALL: usize = 64 << 10;

/// The calls so far, in the order they began.
#[derive(Debug, Default)]
pub struct Calls(Vec<Building>);

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

impl Calls {
    /// Whether none has begun.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The calls, finished. If the reply was `cut`, none of them can be used. `new_id` invents an id where none came.
    pub fn finish(self, cut: bool, new_id: &mut dyn FnMut() -> String) -> Vec<Call> {
        let mut calls: Vec<Call> = self.0.into_iter().map(|call| call.build(cut, new_id)).collect();
        for at in 1..calls.len() {
            // An id given twice could not be answered twice.
            if calls[..at].iter().any(|earlier| earlier.id == calls[at].id) {
                calls[at].id = new_id();
            }
        }
        calls
    }

    /// Takes one piece of a call; `position` is its place in its chunk, `alone` whether it is the only one there.
    /// Returns how many bytes it is to count as.
    pub fn add(&mut self, raw: &RawValue, position: usize, alone: bool) -> usize {
        let (fragment, begun) = (Fragment::read(raw), self.0.len());
        let function = fragment.function.and_then(|raw| serde_json::from_str(raw.get()).ok());
        let Function { name, arguments } = function.unwrap_or_default();
        let key = Key {
            id: fragment.id.and_then(string).unwrap_or_default(),
            index: fragment.index.and_then(|raw| raw.get().parse().ok()),
            name: name.and_then(string).unwrap_or_default(),
            alone,
            position,
        };
        let at = self.route(&key);
        let call = &mut self.0[at];
        call.set(&key);
        let extra = if fragment.extra.is_empty() { 0 } else { raw.get().len() };
        call.extra.extend(fragment.extra);
        let brought = call.push(arguments) + extra;
        brought + (self.0.len() - begun) * A_CALL
    }

    /// The deprecated form, without id and index: all its pieces are one call (B20).
    pub fn add_legacy(&mut self, function: Function) -> usize {
        if self.0.is_empty() {
            self.0.push(Building::default());
        }
        let Some(call) = self.0.last_mut() else { return 0 };
        call.set(&Key { name: function.name.and_then(string).unwrap_or_default(), ..Key::default() });
        call.push(function.arguments)
    }

    /// Where a fragment belongs: by id, then by index, then by position; a new call where none fits.
    fn route(&mut self, key: &Key) -> usize {
        let found = match (key.id.is_empty(), key.index) {
            (false, index) => self.by_id(key).or_else(|| {
                // A new id on an occupied index is a new call (B2), unless the call there still waits for its id.
                let waiting = match index {
                    Some(index) => self.by_index(index),
                    None => self.last().filter(|_| key.name.is_empty()),
                };
                waiting.filter(|at| self.0[*at].id.is_empty())
            }),
            (true, Some(index)) => self.by_index(index).filter(|at| {
                let call = &self.0[*at];
                !(call.is_whole() && key.names_another(call))
            }),
            (true, None) if !key.alone && key.name.is_empty() && key.position < self.0.len() => Some(key.position),
            (true, None) => self.last().filter(|at| {
                let call = &self.0[*at];
                key.name.is_empty() || !(call.is_whole() || key.names_another(call))
            }),
        };
        found.unwrap_or_else(|| {
            self.0.push(Building::default());
            self.0.len() - 1
        })
    }

    fn last(&self) -> Option<usize> {
        self.0.len().checked_sub(1)
    }

    /// A known id continues its call (B3), unless a name begins another one elsewhere under the same id.
    fn by_id(&self, key: &Key) -> Option<usize> {
        let both = self.0.iter().rposition(|call| call.id == key.id && call.index == key.index);
        both.or_else(|| self.0.iter().rposition(|call| call.id == key.id && !key.begins_elsewhere(call)))
    }

    fn by_index(&self, index: u64) -> Option<usize> {
        self.0.iter().rposition(|call| call.index == Some(index))
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
    fn begins_elsewhere(&self, call: &Building) -> bool {
        !self.name.is_empty() && call.index.is_some() && self.index.is_some() && call.index != self.index
    }

    fn names_another(&self, call: &Building) -> bool {
        !self.name.is_empty() && !call.name.is_empty() && self.name != call.name
    }
}

impl Building {
    /// Sets index, id and name once: later ones are empty (B4, B8) or the same again (B7), never a continuation.
    fn set(&mut self, key: &Key) {
        self.index = self.index.or(key.index);
        if self.id.is_empty() {
            self.id.push_str(&key.id);
        }
        if self.name.is_empty() {
            self.name.push_str(&key.name);
        }
    }

    /// Adds to the arguments: a string, or what should have been one (B11); nothing for null. Returns the bytes.
    fn push(&mut self, arguments: Raw) -> usize {
        let Some(raw) = arguments else { return 0 };
        let text = string(raw).unwrap_or_else(|| raw.get().into());
        self.arguments.push_str(&text);
        text.len()
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
