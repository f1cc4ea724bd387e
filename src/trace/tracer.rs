//! Events become spans: who speaks, and when a task is over. What an event does to the agent that speaks is in
//! [`super::voice`].
//!
//! A tracer reads events as the lines of `--json` and of the session log have them, so that the same code serves a run
//! that goes on and a log of last week.
//!
//! Rejected: matching on [`Event`](crate::event::Event). A file would have to be read back into that type, and old logs
//! with it; a reader of a public format takes what is there.

use super::Span;
use super::desk::Desk;
use super::voice::Voice;
use serde_json::Value;
use std::collections::hash_map::RandomState;
use std::hash::BuildHasher;

/// Makes spans out of events. Whatever happens, a span that was opened is closed.
pub struct Tracer {
    desk: Desk,
    main: Voice,
    /// Child agents that are at work.
    children: Vec<Voice>,
}

impl Tracer {
    /// A tracer whose ids follow from `seed`.
    pub fn new(seed: u64) -> Tracer {
        Tracer { desk: Desk::new(seed), main: Voice::default(), children: Vec::new() }
    }

    /// A tracer whose ids nobody else has.
    pub fn unique() -> Tracer {
        // The standard library's hasher is seeded by the system: enough for an id, and no crate for it.
        Tracer::new(RandomState::new().hash_one(crate::event::unix_ms()))
    }

    /// Each request's span holds the end of the conversation that was sent, and the reply: for a viewer that shows them.
    #[must_use]
    pub fn with_conversation(mut self) -> Tracer {
        self.desk.conversation = true;
        self
    }

    /// Takes the next event. Returns spans when a task is over: all of it, in the order of the beginnings.
    pub fn event(&mut self, event: &Value) -> Vec<Span> {
        let at = event["at"].as_u64().unwrap_or_default();
        let over = match event["type"].as_str().unwrap_or_default() {
            "start" => {
                let cut_short = self.finish(); // a log that goes on after a crash
                self.desk.begin(event);
                cut_short
            }
            "request" if event["agent"].is_null() && self.main.begins(event) => self.over(None),
            "end" => {
                self.main.end(event, at);
                self.over(event["reason"].as_str().filter(|_| event["outcome"] != "done"))
            }
            _ => Vec::new(),
        };
        if event["type"] == "result" {
            self.dismiss(event["id"].as_str());
        }
        let (voice, desk) = match event["agent"].as_str() {
            None => (&mut self.main, &mut self.desk),
            Some(call) => child(&mut self.children, &self.main, &mut self.desk, call),
        };
        voice.event(event, at, desk);
        over
    }

    /// Closes what is open, as after an end that nobody wrote down.
    pub fn finish(&mut self) -> Vec<Span> {
        let spans = self.over(None);
        self.main = Voice::default();
        spans
    }

    /// The task is over: its spans. `why`: what ended it, if it was cut short.
    fn over(&mut self, why: Option<&str>) -> Vec<Span> {
        self.children.drain(..).for_each(|mut child| child.close(why, &mut self.desk));
        self.main.close(why, &mut self.desk);
        let mut spans = std::mem::take(&mut self.desk.closed);
        spans.sort_by_key(|span| span.opened);
        spans
    }

    /// A call has its result, so the child agent that it started is done.
    fn dismiss(&mut self, call: Option<&str>) {
        let done = self.children.iter().position(|child| child.call() == call);
        if let Some(mut child) = done.map(|at| self.children.remove(at)) {
            child.close(None, &mut self.desk);
        }
    }
}

/// The child agent of a call; one that speaks for the first time is new.
fn child<'a>(
    children: &'a mut Vec<Voice>,
    main: &Voice,
    desk: &'a mut Desk,
    call: &str,
) -> (&'a mut Voice, &'a mut Desk) {
    let at = children.iter().position(|child| child.call() == Some(call)).unwrap_or_else(|| {
        let parent = children.iter().chain([main]).find_map(|voice| voice.open_call(call));
        children.push(Voice::child(call, parent));
        children.len() - 1
    });
    (&mut children[at], desk)
}

#[cfg(test)]
#[path = "tests.rs"]
mod tests;
