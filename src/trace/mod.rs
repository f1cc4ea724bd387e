//! Reading a run afterwards: which step took how long, who waited, what went wrong.
//!
//! A run is a tree of [`Span`]s, each with a beginning and an end:
//!
//! ```text
//! agent.run          a task, from the person's words to the last answer
//! └ turn             one round of the loop
//!   ├ model          a request and its reply
//!   ├ tool           a call; beside the model, not below it: the program executes it, the model only asked
//!   │ └ agent.run    a child agent, where the call is one
//!   └ hook           what an extension said when the model wanted to stop
//! ```
//!
//! | file | its idea |
//! |---|---|
//! | `tracer`, `voice`, `desk` | events become spans: who speaks, what happens, what all share |
//! | `recording` | so does a recording of the wire, as far as it goes |
//! | `draw` | spans become a tree with a time bar (`--trace`) |
//!
//! Left out on purpose: sending spans anywhere, and the names that viewers want. That is an extension's, which watches
//! the same events through a [`Tracer`] of its own. Also left out: following a run while it goes on (`--json` does).

mod desk;
mod draw;
mod recording;
mod tracer;
mod voice;

pub use draw::draw;
pub use tracer::Tracer;

use crate::event::Usage;
use crate::replay::Script;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// Longest text in a span, in characters; what is longer is cut, and the cut is marked.
pub const LONGEST: usize = 8_000;

/// What a step is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Kind {
    /// A task of an agent.
    Run,
    /// A round of the loop.
    Turn,
    /// A request to the model, with all its attempts, and the reply.
    Model,
    /// A tool call.
    Tool,
    /// An extension that said something when the model wanted to stop.
    Hook,
}

/// One step of a run. As a line of JSON it is the form of a `trace.jsonl`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Span {
    /// 32 hex digits; one a task, shared with its child agents.
    pub trace: String,
    /// 16 hex digits.
    pub id: String,
    /// The span that it is a part of.
    pub parent: Option<String>,
    /// The session: the same from the start of a conversation to `/new`.
    pub session: String,
    /// What it is.
    pub kind: Kind,
    /// `agent.run`, `turn 3`, `model`, the tool's name, the extension's.
    pub name: String,
    /// Unix time in ms.
    pub start: u64,
    /// Unix time in ms; never before `start`.
    pub end: u64,
    /// How much of it was waiting, in ms: for a person at a question, or for the next attempt of a request. A run and
    /// a turn have none of their own.
    pub waited: u64,
    /// What went wrong; `None` if nothing did. A failed call is the tool's error and not the run's: the model reads it
    /// and goes on.
    pub error: Option<String>,
    /// Tokens, of a request.
    pub usage: Option<Usage>,
    /// The task, the newest message of a request, a call's arguments.
    pub input: String,
    /// The answer, the reply's text, the result.
    pub output: String,
    /// What only this kind has: `request` (its number), `model` and `finish` (model), `attempts` and `retries` if there was more than one;
    /// `call`, `question`, `decision` and `by` (tool); `outcome` (run, if its end is known).
    pub details: Map<String, Value>,
    /// The conversation that a request sent, newest last, as far as it was kept: only with
    /// [`Tracer::with_conversation`], and not in a `trace.jsonl`. The session log has it once, and this has it again in
    /// every request.
    #[serde(skip)]
    pub sent: Vec<Value>,
    /// The assistant message that came; also only then.
    #[serde(skip)]
    pub reply: Option<Value>,
    /// In which order it was opened: much can begin within one millisecond.
    #[serde(skip)]
    opened: u64,
}

impl Span {
    /// Milliseconds of work: without the waiting.
    pub fn worked(&self) -> u64 {
        self.end.saturating_sub(self.start).saturating_sub(self.waited)
    }
}

/// A text as a span keeps it: at most [`LONGEST`] characters of it, and how many are missing.
pub fn cut(text: &str) -> String {
    match text.char_indices().nth(LONGEST) {
        None => text.to_owned(),
        Some((at, _)) => format!("{} [cut: {} more characters]", &text[..at], text[at..].chars().count()),
    }
}

/// The spans of a file: a session log or the output of `--json`, a `trace.jsonl`, or a recording; which of them it is,
/// its first line says. Also what is wrong with the file and does no harm. The error names the line.
pub fn read(text: &str) -> Result<(Vec<Span>, Option<String>), String> {
    let first = text.lines().find(|line| !line.trim().is_empty()).ok_or("it is empty")?;
    let first: Value = serde_json::from_str(first).map_err(|e| format!("line 1 is not JSON: {e}"))?;
    let mut spans = Vec::new();
    if first.get("type").is_some() {
        let mut tracer = Tracer::new(0);
        let notice = lines(text, |event: Value| spans.extend(tracer.event(&event)))?;
        spans.extend(tracer.finish());
        return Ok((spans, notice));
    }
    if first.get("trace").is_some() {
        let notice = lines(text, |span| spans.push(span))?;
        return Ok((spans, notice));
    }
    let script = Script::parse(text).map_err(|why| {
        format!("it is no session log and no trace.jsonl (no `type` and no `trace` in its first line), and as a recording: {why}")
    })?;
    Ok((recording::spans(&script), None))
}

/// Every line as JSON. A line that is not whole is a run that was killed while it wrote, whether another went on behind it
/// or not: it is left out, and that is the notice.
fn lines<T: for<'a> Deserialize<'a>>(text: &str, mut each: impl FnMut(T)) -> Result<Option<String>, String> {
    let mut notice = None;
    for (number, line) in (1..).zip(text.lines()).filter(|(_, line)| !line.trim().is_empty()) {
        match serde_json::from_str(line) {
            Ok(value) => each(value),
            Err(e) if e.is_eof() => notice = Some(format!("line {number} is not whole, and is left out")),
            Err(e) => return Err(format!("line {number}: {e}")),
        }
    }
    Ok(notice)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_text_is_cut_at_a_character_and_marked() {
        assert_eq!(cut(&"ü".repeat(LONGEST)), "ü".repeat(LONGEST));
        assert_eq!(cut(&"ü".repeat(LONGEST + 7)), "ü".repeat(LONGEST) + " [cut: 7 more characters]");
    }

    #[test]
    fn the_first_line_says_what_a_file_is() {
        let log = r#"{"type":"start","session":"s","model":"m","at":1,"agent":null}
{"type":"message","message":{"role":"user","content":"hi"},"finish":null,"at":2,"agent":null}
{"type":"request","turn":1,"attempt":1,"at":3,"agent":null}"#;
        let (spans, notice) = read(log).unwrap();
        assert_eq!((spans.len(), notice), (3, None));
        let trace: String = spans.iter().map(|span| serde_json::to_string(span).unwrap() + "\n").collect();
        assert_eq!(read(&trace).unwrap().0.len(), 3);
        assert_eq!(read(r#"{"response":{"text":"hi"}}"#).unwrap().0.len(), 3);
    }

    #[test]
    fn a_torn_line_is_left_out_and_said_and_any_other_broken_line_is_an_error() {
        let (spans, notice) = read("{\"type\":\"notice\",\"at\":1}\n{\"type\":\"req").unwrap();
        assert_eq!((spans.len(), notice.as_deref()), (0, Some("line 2 is not whole, and is left out")));
        let (_, notice) =
            read("{\"type\":\"notice\",\"at\":1}\n{\"type\":\"req\n{\"type\":\"notice\",\"at\":2}\n").unwrap();
        assert_eq!(notice.as_deref(), Some("line 2 is not whole, and is left out"));
        assert!(read("{\"type\":\"notice\"}\nx\n{}\n").unwrap_err().starts_with("line 2: "));
        assert!(read("").unwrap_err().contains("empty"));
        assert!(read("# Notes\n").unwrap_err().starts_with("line 1 is not JSON"));
        assert!(read("{\"a\":1}\n").unwrap_err().contains("unknown field `a`"));
    }
}
