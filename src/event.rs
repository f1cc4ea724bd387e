//! Every step of a run is an [`Event`], and whoever wants to watch is an [`Observer`].
//!
//! The terminal, `--json`, the session log and tracing all see the same events in the same order. The names and
//! fields here are public: scripts parse them. Every field is always present, `null` where there is nothing to say.
//!
//! Watching changes nothing: an observer that fails is dropped with one notice, and the run goes on.

use crate::message::{Message, Style};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use std::io::{self, Write};

/// One step of a run.
#[derive(Clone, Debug, Serialize)]
#[serde(tag = "type", rename_all = "lowercase")]
#[allow(missing_docs)] // The fields are listed in the README's table of events, with their units.
pub enum Event {
    /// Always the first event.
    Start {
        version: &'static str,
        model: String,
        base_url: String,
        workspace: String,
        extensions: Vec<String>,
        tools: Vec<String>,
        session: Option<String>,
    },
    /// A request goes out; one for each attempt (a retry sends the same bytes). Turn 0 is a summary's, no turn of the
    /// task.
    Request { turn: u32, attempt: u32, messages: usize, bytes: usize, estimated_tokens: u64 },
    /// The model thinks aloud.
    Reasoning { delta: String },
    /// The model's answer, as it comes.
    Text { delta: String },
    /// A tool call is about to be judged. `arguments` is null if they are unusable.
    Call { id: String, name: String, arguments: Option<Map<String, Value>>, raw: String },
    /// What was decided about a call. None for a call that needed no question and was allowed.
    Approval { id: String, question: Option<String>, decision: Verdict, by: By, reason: Option<String> },
    /// What a running command prints.
    Output { id: String, delta: String },
    /// A tool call's result; `ms` is the time of the act, without a person's time at the question before it.
    Result { id: String, name: String, ok: bool, text: String, ms: u64 },
    /// A message joined the history; `finish` is the server's finish_reason on an assistant message.
    Message { message: Value, finish: Option<String> },
    /// An attempt failed and is made again after `wait_ms`.
    Retry { attempt: u32, wait_ms: u64, reason: String },
    /// An extension's hook said something.
    Hook { extension: String, mount: &'static str, text: String },
    /// The history was shortened: `messages` now stand in place of the dropped ones, `kept` stayed.
    Compacted { tier: u8, before: usize, after: usize, messages: Vec<Value>, kept: usize },
    /// Tokens of one reply.
    Usage(Usage),
    /// Something the person should know.
    Notice { text: String },
    /// Always the last event.
    End {
        outcome: Outcome,
        reason: Option<String>,
        text: String,
        turns: u32,
        usage: Usage,
        cost: Option<f64>,
        changed: Vec<String>,
        exit: u8,
    },
}

/// What was decided about a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Verdict {
    /// It may run.
    Allowed,
    /// Somebody, or nobody, said no.
    Denied,
    /// It may never run: protected, or outside the workspace.
    Refused,
}

/// Who decided about a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum By {
    /// The gate or the workspace.
    Gate,
    /// A permission rule.
    Rule,
    /// Plan mode.
    Plan,
    /// A child agent's read-only limit.
    Child,
    /// The loop guard.
    LoopGuard,
    /// An earlier "always" of the person.
    Always,
    /// `--yes`.
    Yes,
    /// A script's answer, in a recorded lab.
    Script,
    /// The person.
    User,
    /// There was nobody to ask.
    Nobody,
}

/// How a task ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Outcome {
    /// The model stopped, and no hook objected.
    Done,
    /// The endpoint, an extension or mini itself failed.
    Error,
    /// A limit: turns, tokens, cost, time, output length, or the same call again and again.
    Limit,
    /// A call needed an approval that nobody could give.
    Unapproved,
    /// A hook says that the work is not verified.
    Unverified,
    /// Ctrl-C, SIGTERM or SIGHUP.
    Interrupted,
}

impl Outcome {
    /// The exit code of a run that ended so. 130 stands for every signal; `main` dies by the one that came.
    pub fn exit(self) -> u8 {
        match self {
            Outcome::Done => 0,
            Outcome::Error => 1,
            Outcome::Limit => 3,
            Outcome::Unapproved => 4,
            Outcome::Unverified => 5,
            Outcome::Interrupted => 130,
        }
    }
}

/// Tokens, as the server counts them; 0 where it does not say.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Usage {
    /// Tokens of the request.
    pub input: u64,
    /// Those of them that came from the server's prompt cache.
    pub cached: u64,
    /// Tokens of the reply.
    pub output: u64,
    /// Those of them that were reasoning.
    pub reasoning: u64,
}

impl Usage {
    /// Tokens of request and reply together.
    pub fn total(&self) -> u64 {
        self.input.saturating_add(self.output)
    }

    /// Adds another reply's tokens. A server may report any number, so it never overflows.
    pub fn add(&mut self, other: Usage) {
        self.input = self.input.saturating_add(other.input);
        self.cached = self.cached.saturating_add(other.cached);
        self.output = self.output.saturating_add(other.output);
        self.reasoning = self.reasoning.saturating_add(other.reasoning);
    }
}

/// When, and in whose run, an event happened.
#[derive(Clone, Debug, Serialize)]
pub struct Stamp {
    /// Unix time in ms.
    pub at: u64,
    /// `None`, or the id of the call whose child agent speaks.
    pub agent: Option<String>,
}

/// Watches a run.
pub trait Observer {
    /// Sees one event. An error becomes one notice, and this observer sees no more.
    fn event(&mut self, stamp: &Stamp, event: &Event) -> Result<(), String>;
}

/// One event as a line of JSON, without a line end: the form of `--json` and of the session log.
pub fn line(stamp: &Stamp, event: &Event) -> String {
    // A value of our own types cannot fail to serialise; should it, the line says so instead of vanishing.
    serde_json::to_string(&Line { event, stamp }).unwrap_or_else(|e| {
        format!("{{\"type\":\"notice\",\"text\":\"event lost: {e}\",\"at\":{},\"agent\":null}}", stamp.at)
    })
}

/// The same written out with its line end, piece by piece: a call can hold a whole file, which need not be in memory once
/// more. The error is the writer's.
pub fn write_line(mut out: impl Write, stamp: &Stamp, event: &Event) -> io::Result<()> {
    serde_json::to_writer(&mut out, &Line { event, stamp })?;
    out.write_all(b"\n")
}

#[derive(Serialize)]
struct Line<'a> {
    #[serde(flatten)]
    event: &'a Event,
    #[serde(flatten)]
    stamp: &'a Stamp,
}

/// Hands every event to every observer.
pub struct Events {
    observers: Vec<Box<dyn Observer>>,
    /// The id of the call whose child agent speaks at the moment.
    pub agent: Option<String>,
    /// A reply is coming that is no answer, such as a summary: nobody is told its text.
    pub silent: bool,
    clock: fn() -> u64,
}

impl Events {
    /// A fan-out to these observers, in order.
    pub fn new(observers: Vec<Box<dyn Observer>>) -> Events {
        Events { observers, agent: None, silent: false, clock: unix_ms }
    }

    /// One more observer, behind the others.
    pub fn watch(&mut self, observer: Box<dyn Observer>) {
        self.observers.push(observer);
    }

    /// Tells everybody. Observers that fail are dropped, each with one notice to the rest.
    pub fn emit(&mut self, event: Event) {
        if self.silent && matches!(event, Event::Text { .. } | Event::Reasoning { .. }) {
            return;
        }
        let stamp = Stamp { at: (self.clock)(), agent: self.agent.clone() };
        let mut failures = Vec::new();
        self.observers.retain_mut(|observer| match observer.event(&stamp, &event) {
            Ok(()) => true,
            Err(why) => {
                failures.push(why);
                false
            }
        });
        for why in failures {
            self.notice(why);
        }
    }

    /// Something the person should know.
    pub fn notice(&mut self, text: impl Into<String>) {
        self.emit(Event::Notice { text: text.into() });
    }

    /// A message joined the history.
    pub fn message(&mut self, message: &Message, finish: Option<String>) {
        self.emit(Event::Message { message: message.to_json(Style::default()), finish });
    }
}

/// Now, as Unix time in ms.
pub fn unix_ms() -> u64 {
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    since.map_or(0, |d| d.as_millis() as u64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::{cell::RefCell, rc::Rc};

    struct Seen(Rc<RefCell<Vec<String>>>, bool);
    impl Observer for Seen {
        fn event(&mut self, stamp: &Stamp, event: &Event) -> Result<(), String> {
            self.0.borrow_mut().push(line(stamp, event));
            if self.1 { Err("the log is full".into()) } else { Ok(()) }
        }
    }

    #[test]
    fn a_failing_observer_costs_one_notice_and_is_dropped() {
        let (good, bad) = (Rc::default(), Rc::default());
        let mut events =
            Events::new(vec![Box::new(Seen(Rc::clone(&bad), true)), Box::new(Seen(Rc::clone(&good), false))]);
        events.notice("one");
        events.notice("two");
        assert_eq!(bad.borrow().len(), 1);
        let texts: Vec<bool> = good.borrow().iter().map(|l: &String| l.contains("the log is full")).collect();
        assert_eq!(texts, [false, true, false]);
    }

    #[test]
    fn every_field_is_present_and_null_where_there_is_nothing_to_say() {
        let stamp = Stamp { at: 7, agent: None };
        let event = Event::Approval {
            id: "c1".into(),
            question: None,
            decision: Verdict::Denied,
            by: By::LoopGuard,
            reason: None,
        };
        assert_eq!(
            line(&stamp, &event),
            r#"{"type":"approval","id":"c1","question":null,"decision":"denied","by":"loop-guard","reason":null,"at":7,"agent":null}"#
        );
        assert!(line(&stamp, &Event::Usage(Usage::default())).starts_with(r#"{"type":"usage","input":0,"#));
    }
}
