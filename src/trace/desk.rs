//! What all agents of a run share: ids, the session, the spans that are over; and what a span keeps of messages.

use super::{Kind, Span, cut};
use serde_json::{Map, Value};

/// So much of the conversation is kept for each request, in characters: the newest messages.
const MOST_SENT: usize = 16_000;

/// What all agents of a run share.
pub(super) struct Desk {
    /// Whether a request's span holds the conversation that was sent, and the reply.
    pub conversation: bool,
    ids: u64,
    opened: u64,
    session: String,
    model: String,
    /// Spans that are over.
    pub closed: Vec<Span>,
}

impl Desk {
    pub fn new(seed: u64) -> Desk {
        let (session, model, closed) = (String::new(), String::new(), Vec::new());
        Desk { conversation: false, ids: seed, opened: 0, session, model, closed }
    }

    /// The `start` event. Without a log, a session still has an id.
    pub fn begin(&mut self, start: &Value) {
        self.session = start["session"].as_str().map_or_else(|| self.id(), str::to_owned);
        self.model = text(&start["model"]).to_owned();
    }

    /// 16 hex digits: splitmix64, which is nobody's secret and never repeats itself within a run.
    fn id(&mut self) -> String {
        self.ids = self.ids.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let z = (self.ids ^ (self.ids >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        format!("{:016x}", z ^ (z >> 31))
    }

    /// The model's name, as `start` gives it.
    pub fn model(&self) -> &str {
        &self.model
    }

    /// Opens a span, as a part of `parent`.
    pub fn open(&mut self, kind: Kind, name: &str, start: u64, parent: Option<&Place>) -> Span {
        self.opened += 1;
        Span {
            trace: parent.map_or_else(|| self.id() + &self.id(), |parent| parent.trace.clone()),
            id: self.id(),
            parent: parent.map(|parent| parent.id.clone()),
            session: self.session.clone(),
            kind,
            name: name.into(),
            start,
            end: start,
            waited: 0,
            error: None,
            usage: None,
            input: String::new(),
            output: String::new(),
            details: Map::new(),
            sent: Vec::new(),
            reply: None,
            opened: self.opened,
        }
    }

    /// Closes a span; it cannot have waited longer than it took.
    pub fn close(&mut self, mut span: Span, at: u64) {
        span.end = at.max(span.start);
        span.waited = span.waited.min(span.end - span.start);
        self.closed.push(span);
    }
}

/// Where a span is.
#[derive(Clone)]
pub(super) struct Place {
    trace: String,
    id: String,
}

impl Place {
    pub fn of(span: &Span) -> Place {
        Place { trace: span.trace.clone(), id: span.id.clone() }
    }
}

/// The text of a member, or nothing.
pub(super) fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

/// A message with its long texts cut.
pub(super) fn trimmed(message: &Value) -> Value {
    let mut message = message.clone();
    let calls = message["tool_calls"].as_array_mut().into_iter().flatten();
    calls.filter_map(|call| call.pointer_mut("/function/arguments")).for_each(trim);
    message.get_mut("content").into_iter().for_each(trim);
    message
}

fn trim(value: &mut Value) {
    if let Value::String(text) = value {
        *text = cut(text);
    }
}

/// The newest messages that fit, at least one.
pub(super) fn newest(messages: &[Value]) -> Vec<Value> {
    let mut room = MOST_SENT;
    let fits = |message: &&Value| {
        let before = room;
        room = room.saturating_sub(text(&message["content"]).chars().count());
        before > 0
    };
    let mut kept: Vec<Value> = messages.iter().rev().take_while(fits).cloned().collect();
    kept.reverse();
    kept
}
