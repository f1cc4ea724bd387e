//! What carries messages to a server and back: the seam between the conversation (`session`) and its two ways (`stdio`,
//! `http`).
//!
//! It is a seam of requests with a deadline, since that is all there is to wait for: one call at a time, by a loop with
//! one thread. Whoever waits looks at the flag of Ctrl-C as well.

use super::content::cut;
use mini::cancel::Cancel;
use mini::process::visible;
use serde_json::Value;
use std::time::Instant;

/// So much is shown of what is no message, in characters.
const MOST_NOISE: usize = 200;

/// Carries messages.
pub trait Transport {
    /// Sends one message. If it is a request, what [`next`](Transport::next) gives may be part of its answer.
    fn send(&mut self, message: &Value, wait: &Wait) -> Result<(), Lost>;
    /// Waits for the server's next message.
    fn next(&mut self, wait: &Wait) -> Result<Heard, Lost>;
    /// What came while nobody waited for anything, if this way has room for it.
    fn unasked(&mut self) -> Option<Heard> {
        None
    }
    /// Which version of the protocol was agreed on.
    fn agreed(&mut self, _version: &str) {}
}

/// How long to wait, and whether to stop before.
pub struct Wait<'a> {
    /// No longer than until then.
    pub until: Instant,
    /// Nor when this is raised.
    pub cancel: &'a Cancel,
}

impl Wait<'_> {
    /// Why to wait no longer, if there is a reason.
    pub fn over(&self) -> Option<Lost> {
        match (self.cancel.is_raised(), Instant::now() >= self.until) {
            (true, _) => Some(Lost::Interrupted),
            (_, true) => Some(Lost::TimedOut),
            _ => None,
        }
    }
}

/// What came from a server.
#[derive(Debug)]
pub enum Heard {
    /// A message.
    Message(Value),
    /// Something that is no message: a `print` in the wrong place. It is shown, and does no harm.
    Noise(String),
}

impl Heard {
    /// What is in a line, a body or an event: one message, several (a batch, as the version of March 2025 had it), or
    /// none.
    pub fn all_in(bytes: &[u8]) -> Vec<Heard> {
        match serde_json::from_slice(bytes) {
            Ok(message @ Value::Object(_)) => vec![Heard::Message(message)],
            Ok(Value::Array(batch)) => batch.into_iter().map(Heard::Message).collect(),
            _ if bytes.trim_ascii().is_empty() => Vec::new(),
            _ => vec![Heard::Noise(cut(visible(bytes).trim(), MOST_NOISE))],
        }
    }
}

/// Why no message came.
#[derive(Debug, PartialEq, Eq)]
pub enum Lost {
    /// It took too long.
    TimedOut,
    /// The run was told to stop.
    Interrupted,
    /// This request failed; the next may not.
    Failed(String),
    /// The server has forgotten the session.
    Forgotten,
    /// The server is no more.
    Gone(String),
}
