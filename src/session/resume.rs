//! From the log back to the conversation.
//!
//! Only a few types of lines matter: `message` joins, `compacted` replaces, `result` is what an answer would have been
//! whose `message` was never written. All other lines are passed over, so a log of a later version, with types
//! unknown here, opens as well; so does one whose lines are torn, lost or damaged: what can be read is never given up for
//! what cannot. A call that has no answer gets the text of its result if that is on disk, else it is answered as
//! interrupted. Those answers are for the caller to log, like every message; so the next resume finds nothing to add.
//!
//! Rejected: writing the conversation to a file of its own at the end of each turn. Two files can contradict each other,
//! and the one that a crash leaves behind would be the wrong one.

use crate::jsonl;
use crate::message::{History, INTERRUPTED, Message};
use serde::Deserialize;
use serde_json::Value;
use std::borrow::Cow;
use std::collections::HashMap;
use std::fs::File;
use std::path::Path;

/// A conversation that goes on.
#[derive(Default)]
pub struct Resumed {
    /// Valid, with no call open.
    pub history: History,
    /// How many messages at its end are new: answers to calls that the log has none for.
    pub added: usize,
    /// Lines that could not be used: torn by a crash at the end of the log, or damaged.
    pub unusable: usize,
    /// The person's answers to questions, so far.
    pub answers: usize,
}

/// What of a line matters. Other members are skipped without being built.
#[derive(Deserialize)]
struct Line<'a> {
    #[serde(rename = "type", borrow)]
    kind: Cow<'a, str>,
    /// A child agent's lines belong to a conversation of its own.
    #[serde(default)]
    agent: Value,
    #[serde(default)]
    message: Value,
    #[serde(default)]
    messages: Value,
    #[serde(default)]
    kept: Value,
    #[serde(default)]
    id: Value,
    #[serde(default)]
    text: Value,
    #[serde(default)]
    by: Value,
}

/// Reads a log. The error is the file system's; nothing that stands in a log is one.
pub fn resume(log: &Path) -> Result<Resumed, String> {
    let mut projection = Projection::default();
    let read = File::open(log).and_then(|file| jsonl::each_line(file, |line| projection.line(line)));
    read.map_err(|e| format!("cannot read {}: {e}", log.display()))?;
    Ok(projection.finish())
}

#[derive(Default)]
struct Projection {
    resumed: Resumed,
    /// Texts of results by call id, since the newest reply.
    results: HashMap<String, String>,
    /// The last line could not be used. If a `start` follows, a crash tore it, and an earlier resume has said so.
    torn: bool,
}

impl Projection {
    fn line(&mut self, bytes: &[u8]) {
        let torn = std::mem::take(&mut self.torn);
        let Ok(line) = serde_json::from_slice::<Line>(bytes) else {
            self.torn = true;
            self.resumed.unusable += 1;
            return;
        };
        if !line.agent.is_null() {
            return;
        }
        match &*line.kind {
            "start" => self.resumed.unusable -= usize::from(torn),
            "message" => match Message::from_json(&line.message) {
                Ok(message) => self.message(message),
                Err(_) => self.resumed.unusable += 1,
            },
            "compacted" => self.compacted(&line),
            "result" => self.result(line),
            "approval" => self.resumed.answers += usize::from(matches!(line.by.as_str(), Some("user" | "script"))),
            _ => {}
        }
    }

    fn message(&mut self, message: Message) {
        match message {
            Message::User(text) => {
                self.answer_open_calls();
                self.resumed.history.user(text);
            }
            Message::Assistant(reply) => {
                self.answer_open_calls();
                self.results.clear();
                self.resumed.history.assistant(reply);
            }
            Message::Tool { id, text } => self.answer(&id, text),
        }
    }

    /// An answer that fits no open call has lost its call, and cannot be sent.
    fn answer(&mut self, id: &str, text: String) {
        let history = &mut self.resumed.history;
        let Some(before) = history.open_calls().position(|open| open == id) else {
            self.resumed.unusable += 1;
            return;
        };
        for _ in 0..before {
            self.answer_next();
        }
        self.resumed.history.answer(text);
    }

    /// Answers the oldest open call; false if there is none.
    fn answer_next(&mut self) -> bool {
        let known = self.resumed.history.open_calls().next().and_then(|id| self.results.remove(id));
        self.resumed.history.answer(known.unwrap_or_else(|| INTERRUPTED.into())).is_some()
    }

    /// Answers every open call; returns how many there were.
    fn answer_open_calls(&mut self) -> usize {
        let mut answered = 0;
        while self.answer_next() {
            answered += 1;
        }
        answered
    }

    fn result(&mut self, line: Line) {
        if let (Value::String(id), Value::String(text)) = (line.id, line.text) {
            self.results.insert(id, text);
        }
    }

    /// The newest `kept` messages stay, and `messages` stand in place of all before. One that would break pairs is
    /// passed over: a history that is too long can still be sent.
    fn compacted(&mut self, line: &Line) {
        self.answer_open_calls();
        let read =
            line.messages.as_array().map(|all| all.iter().map(Message::from_json).collect::<Result<Vec<_>, _>>());
        let (Some(Ok(mut messages)), Some(kept)) = (read, line.kept.as_u64()) else {
            self.resumed.unusable += 1;
            return;
        };
        let now = self.resumed.history.messages();
        messages.extend_from_slice(&now[now.len().saturating_sub(usize::try_from(kept).unwrap_or(usize::MAX))..]);
        self.resumed.unusable += usize::from(self.resumed.history.replace(messages).is_err());
    }

    fn finish(mut self) -> Resumed {
        self.resumed.added = self.answer_open_calls();
        self.resumed
    }
}

impl Resumed {
    /// What the person is told: how much there is, and what a crash has cost.
    pub fn words(&self, id: &str) -> String {
        let messages = self.history.messages().len() - self.added;
        let mut words = format!("session {id} goes on with {}", count(messages, "message"));
        if self.unusable > 0 {
            words += &format!("; {} of its log cannot be read", count(self.unusable, "line"));
        }
        if self.added > 0 {
            words += &format!("; {} had no result and got one", count(self.added, "call"));
        }
        words
    }
}

fn count(number: usize, what: &str) -> String {
    format!("{number} {what}{}", if number == 1 { "" } else { "s" })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::event::{Event, Stamp, line};
    use crate::message::{Style, check_pairs};
    use proptest::prelude::*;
    use serde_json::json;

    fn read(log: &[u8]) -> Resumed {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("log");
        std::fs::write(&path, log).unwrap();
        resume(&path).unwrap()
    }

    fn message(value: Value) -> String {
        line(&Stamp { at: 1, agent: None }, &Event::Message { message: value, finish: None }) + "\n"
    }

    fn user(text: &str) -> String {
        message(json!({"role": "user", "content": text}))
    }

    fn calls(ids: &[&str]) -> String {
        let call = |id: &&str| json!({"id": id, "type": "function", "function": {"name": "read", "arguments": "{}"}});
        let calls: Vec<Value> = ids.iter().map(call).collect();
        message(json!({"role": "assistant", "content": null, "tool_calls": calls}))
    }

    fn tool(id: &str, text: &str) -> String {
        message(json!({"role": "tool", "tool_call_id": id, "content": text}))
    }

    fn texts(resumed: &Resumed) -> Vec<String> {
        let text = |message: &Message| match message {
            Message::User(text) | Message::Tool { text, .. } => text.clone(),
            Message::Assistant(reply) => format!("{} calls", reply.calls.len()),
        };
        resumed.history.messages().iter().map(text).collect()
    }

    #[test]
    fn an_unanswered_call_is_answered_as_interrupted_or_with_the_result_that_is_on_disk() {
        let result = Event::Result { id: "b".into(), name: "read".into(), ok: true, text: "was read".into(), ms: 1 };
        let result = line(&Stamp { at: 1, agent: None }, &result) + "\n";
        let resumed = read([user("go"), calls(&["a", "b", "c"]), tool("a", "one"), result].concat().as_bytes());
        assert_eq!(texts(&resumed), ["go", "3 calls", "one", "was read", INTERRUPTED]);
        assert_eq!((resumed.added, resumed.unusable), (2, 0));
        assert!(resumed.words("7").ends_with("3 messages; 2 calls had no result and got one"));
    }

    #[test]
    fn unknown_types_children_and_torn_lines_are_passed_over() {
        let child = line(
            &Stamp { at: 1, agent: Some("c1".into()) },
            &Event::Message { message: json!({"role": "user", "content": "child"}), finish: None },
        );
        let later = r#"{"type":"later","message":7,"kept":"x","at":1,"agent":null}"#;
        let log = [user("go"), child + "\n", later.into(), "\n".into(), r#"{"type":"mess"#.into()].concat();
        let resumed = read(log.as_bytes());
        assert_eq!((texts(&resumed), resumed.unusable), (vec!["go".to_owned()], 1));
        let start = "\n{\"type\":\"start\",\"at\":1,\"agent\":null}\n";
        assert_eq!(read((log + start).as_bytes()).unusable, 0);
    }

    #[test]
    fn what_has_lost_its_other_half_keeps_the_rest_sendable() {
        let log = [user("go"), tool("x", "stray"), calls(&["a", "b"]), tool("b", "two"), user("on")].concat();
        let resumed = read(log.as_bytes());
        assert_eq!(texts(&resumed), ["go", "2 calls", INTERRUPTED, "two", "on"]);
        assert_eq!(resumed.unusable, 1);
    }

    #[test]
    fn a_compacted_event_replaces_all_but_the_kept() {
        let compacted = Event::Compacted {
            tier: 2,
            before: 3,
            after: 2,
            messages: vec![json!({"role": "user", "content": "sum"})],
            kept: 1,
        };
        let compacted = line(&Stamp { at: 1, agent: None }, &compacted) + "\n";
        let resumed = read([user("a"), user("b"), user("c"), compacted, user("d")].concat().as_bytes());
        assert_eq!(texts(&resumed), ["sum", "c", "d"]);
    }

    /// A log as mini writes it: tasks, replies with calls, results.
    fn log() -> impl Strategy<Value = Vec<String>> {
        let turn = (0..4usize, any::<bool>()).prop_map(|(calls_made, task)| {
            let ids: Vec<String> = (0..calls_made).map(|n| format!("call_{n}")).collect();
            let names: Vec<&str> = ids.iter().map(String::as_str).collect();
            let mut lines = if task { vec![user("grüße")] } else { Vec::new() };
            lines.push(calls(&names));
            lines.extend(names.iter().map(|id| tool(id, "ok")));
            lines
        });
        proptest::collection::vec(turn, 1..6)
            .prop_map(|turns| [vec![user("first")], turns.into_iter().flatten().collect()].concat())
    }

    #[test]
    fn a_long_log_opens_in_a_moment() {
        let turn = [user("go"), calls(&["a"]), tool("a", &"text ".repeat(40))].concat();
        let log = turn.repeat(50_000 / 3 + 1);
        let started = std::time::Instant::now();
        let resumed = read(log.as_bytes());
        let (took, most) = (started.elapsed().as_millis(), if cfg!(debug_assertions) { 10_000 } else { 1_000 });
        assert_eq!((resumed.history.messages().len(), resumed.added), (50_001, 0));
        assert!(took < most, "{took} ms");
        println!("{took} ms");
    }

    proptest! {
        /// Cut at any byte: what was whole is there, in order, and the rest is valid. Written back, nothing is added.
        #[test]
        fn a_crash_at_any_byte_resumes_with_valid_pairs(lines in log(), cut in any::<prop::sample::Index>()) {
            let bytes = lines.concat().into_bytes();
            let cut = cut.index(bytes.len() + 1);
            let resumed = read(&bytes[..cut]);
            prop_assert_eq!(check_pairs(resumed.history.messages()), Ok(()));
            let whole = bytes[..cut].iter().filter(|byte| **byte == b'\n').count();
            let kept = resumed.history.messages().len() - resumed.added;
            prop_assert!(kept == whole || kept == whole + 1, "{} of {}", kept, whole);
            let mut again = bytes[..cut].to_vec();
            again.push(b'\n');
            let new = &resumed.history.messages()[kept..];
            new.iter().for_each(|new| again.extend(message(new.to_json(Style::default())).into_bytes()));
            let twice = read(&again);
            prop_assert_eq!(twice.added, 0);
            prop_assert_eq!(twice.history.messages(), resumed.history.messages());
        }

        /// Any lines missing, in any order, any bytes between: never a panic, always sendable.
        #[test]
        fn a_damaged_log_is_still_sendable(
            lines in log(),
            picks in proptest::collection::vec((any::<prop::sample::Index>(), any::<bool>()), 0..30),
        ) {
            let mut damaged = Vec::new();
            for (pick, noise) in picks {
                damaged.extend(pick.get(&lines).as_bytes());
                if noise {
                    damaged.extend(b"\xff{]\n");
                }
            }
            prop_assert_eq!(check_pairs(read(&damaged).history.messages()), Ok(()));
        }
    }
}
