//! What servers refuse, and what is changed for them: one table.
//!
//! A request starts out plain: model, messages, tools, `stream`, `stream_options`. That is what most servers take. Where
//! one refuses a part of it (a 400 or 422 that names the part), the row with those words says what to change; the request
//! is sent again, and the change is remembered for the run. Each change is made at most once, so a server that refuses
//! both ways ends in its own error.
//!
//! Rejected: a table by vendor or model name. A gateway speaks for many models, names change every month, and a list of
//! them in a client is wrong on the day it is released. The refusal itself is always up to date.

use crate::complaint::Complaint;
use crate::message::{History, Message, Reasoning, Style};

/// One change to a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Change {
    /// Call the output limit `max_completion_tokens` (F1).
    RenameMaxTokens,
    /// Leave `temperature` out (F3).
    DropTemperature,
    /// Leave `stream_options` out (F4).
    DropStreamOptions,
    /// Send `reasoning_effort: "none"`: newer OpenAI models refuse tools otherwise (F2).
    NoReasoningEffort,
    /// Send one blank as reasoning where there was none (D7).
    BlankReasoning,
    /// Do not send reasoning back (D4, D11).
    StripReasoning,
    /// The other of `null` and `""` for an assistant message without text (F6).
    FlipEmptyContent,
}

struct Row {
    /// All of these stand in the complaint, in lower case.
    says: &'static [&'static str],
    /// And one of these.
    also: &'static [&'static str],
    change: Change,
    /// What the person is told.
    notice: &'static str,
}

/// From the most to the least specific words.
const ROWS: &[Row] = &[
    Row {
        says: &["max_tokens", "max_completion_tokens"],
        also: &[""],
        change: Change::RenameMaxTokens,
        notice: "the server wants the output limit as max_completion_tokens",
    },
    Row {
        says: &["reasoning_effort", "tools"],
        also: &["none"],
        change: Change::NoReasoningEffort,
        notice: "the server takes tools only without reasoning: reasoning_effort is now \"none\"",
    },
    Row {
        says: &["reasoning_content"],
        also: &["missing", "passed back", "required", "must be provided"],
        change: Change::BlankReasoning,
        notice: "the server wants reasoning on every message with calls: a blank is sent where there was none",
    },
    Row {
        says: &["reasoning"],
        also: &[
            "unknown",
            "unsupported",
            "not supported",
            "unexpected",
            "unrecognized",
            "not permitted",
            "extra",
            "property",
        ],
        change: Change::StripReasoning,
        notice: "the server refuses reasoning in the conversation: it is no longer sent back",
    },
    Row {
        says: &["content and thinking"],
        also: &[""],
        change: Change::StripReasoning,
        notice: "the server refuses text and reasoning in one message: reasoning is no longer sent back",
    },
    Row {
        says: &["temperature"],
        also: &[""],
        change: Change::DropTemperature,
        notice: "the server refuses this temperature: it is no longer sent",
    },
    Row {
        says: &[],
        also: &["stream_options", "include_usage"],
        change: Change::DropStreamOptions,
        notice: "the server refuses stream_options: they are no longer sent, so it may not report tokens",
    },
    Row {
        says: &["content"],
        also: &["null", "none", "empty", "blank", "invalid", "required", "string", "must be", "non-empty"],
        change: Change::FlipEmptyContent,
        notice: "the server refuses how an empty message was written: it is now written the other way",
    },
];

/// How one server wants its requests; starts out plain and learns.
#[derive(Clone, Debug, Default)]
pub struct Dialect {
    made: Vec<Change>,
}

/// What the refused request held: only what was sent can be changed.
#[derive(Clone, Copy, Debug, Default)]
pub struct Sent {
    /// An output limit.
    pub max_tokens: bool,
    /// A temperature.
    pub temperature: bool,
    /// Assistant messages with calls.
    pub calls: bool,
}

impl Sent {
    /// Whether the conversation holds calls.
    pub fn has_calls(history: &History) -> bool {
        history.messages().iter().any(|message| matches!(message, Message::Assistant(reply) if !reply.calls.is_empty()))
    }
}

impl Dialect {
    /// Whether a change has been made.
    pub fn has(&self, change: Change) -> bool {
        self.made.contains(&change)
    }

    /// How messages are written.
    pub fn style(&self) -> Style {
        let reasoning = match (self.has(Change::StripReasoning), self.has(Change::BlankReasoning)) {
            (true, _) => Reasoning::Strip,
            (false, true) => Reasoning::Blank,
            (false, false) => Reasoning::Echo,
        };
        Style { reasoning, empty_content: self.has(Change::FlipEmptyContent) }
    }

    /// Learns from a refusal. `Some` is what to tell the person; the request is then worth sending again.
    pub fn learn(&mut self, complaint: &Complaint, sent: Sent) -> Option<&'static str> {
        if !matches!(complaint.status, Some(400 | 422 | 500)) {
            return None;
        }
        let said = complaint.said();
        let fits = |row: &&Row| {
            row.says.iter().all(|part| said.contains(part)) && row.also.iter().any(|part| said.contains(part))
        };
        let row = ROWS.iter().filter(fits).find(|row| !self.has(row.change) && row.change.applies(sent))?;
        self.made.push(row.change);
        Some(row.notice)
    }
}

impl Change {
    fn applies(self, sent: Sent) -> bool {
        match self {
            Change::RenameMaxTokens => sent.max_tokens,
            Change::DropTemperature => sent.temperature,
            Change::DropStreamOptions | Change::NoReasoningEffort => true,
            Change::BlankReasoning | Change::StripReasoning | Change::FlipEmptyContent => sent.calls,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ALL: Sent = Sent { max_tokens: true, temperature: true, calls: true };

    fn refused(words: &str) -> Complaint {
        Complaint { status: Some(400), words: words.into(), codes: String::new() }
    }

    #[test]
    fn words_of_real_servers_and_what_is_changed() {
        let rows = [
            (
                "Unsupported parameter: 'max_tokens' is not supported with this model. Use 'max_completion_tokens' instead.",
                Change::RenameMaxTokens,
            ),
            ("invalid temperature: only 1 is allowed for this model", Change::DropTemperature),
            (
                "Function tools with reasoning_effort are not supported for gpt in /v1/chat/completions. To use function \
                 tools, use /v1/responses or set reasoning_effort to 'none'.",
                Change::NoReasoningEffort,
            ),
            ("body.stream_options: extra fields not permitted", Change::DropStreamOptions),
            ("messages.2.reasoning_content: Extra inputs are not permitted", Change::StripReasoning),
            ("property 'reasoning' is unsupported", Change::StripReasoning),
            ("Cannot pass both content and thinking in an assistant message with tool calls!", Change::StripReasoning),
            ("thinking is enabled but reasoning_content is missing in message 3", Change::BlankReasoning),
            ("The reasoning_content in the thinking mode must be passed back to the API.", Change::BlankReasoning),
            ("invalid message content in messages[2]", Change::FlipEmptyContent),
        ];
        for (words, change) in rows {
            let mut dialect = Dialect::default();
            assert!(dialect.learn(&refused(words), ALL).is_some(), "{words}");
            assert_eq!(dialect.made, [change], "{words}");
        }
    }

    #[test]
    fn a_change_is_made_once_and_only_to_what_was_sent() {
        let mut dialect = Dialect::default();
        let words = refused("temperature is not supported");
        assert!(dialect.learn(&words, Sent::default()).is_none());
        assert!(dialect.learn(&words, ALL).is_some());
        assert!(dialect.learn(&words, ALL).is_none());
    }

    #[test]
    fn other_refusals_change_nothing() {
        let mut dialect = Dialect::default();
        assert!(dialect.learn(&refused("messages is missing"), ALL).is_none());
        let denied = Complaint { status: Some(401), ..refused("temperature") };
        assert!(dialect.learn(&denied, ALL).is_none());
    }
}
