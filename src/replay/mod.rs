//! A scripted OpenAI-compatible endpoint on loopback: it plays replies from a file and checks every
//! request against what the file expects.
//!
//! One mechanism serves four needs: the offline rehearsal of a lab, the exam behind `--check`,
//! `--replay` of a recorded run, and this project's own tests. It speaks real HTTP and SSE over a
//! real socket, because a stub *inside* the client would leave untested exactly what breaks in the
//! field: split reads, cut bodies, silent servers, connections that are reused.
//!
//! Rejected: a mock HTTP crate (a dependency, and none of them resets a connection in mid-stream on
//! request), and one thread that serves one connection after the other (a client that keeps an idle
//! connection and opens a second would wait for ever).
//!
//! | file | its idea |
//! |---|---|
//! | `script` | a script as the program sees it: sections of exchanges, answers and checks |
//! | `parse` | how it is written down: lines of JSON |
//! | `shorthand` | a hand-written reply (`text`, `calls`) becomes the stream a server would send |
//! | `expect`, `difference`, `body` | what a request must look like, what differs, and where to look |
//! | `pattern` | the few pieces of regular expressions that `body_regex` knows |
//! | `check` | what must hold at the end: files, log, exit code |
//! | `request`, `response` | just enough HTTP/1.1 to be read from and written to |
//! | `play` | the position in the script, and everything that is remembered |
//! | `server` | the port and its threads |
//! | `connection` | one socket: request after request, reply after reply, fault after fault |
//! | `record` | the other direction: a run seen on the wire becomes a script line |
//! | `case` | one file of `tests/cases/wire` becomes a script |
//!
//! Nothing here knows the agent: it could test any client.

mod base64;
mod body;
mod case;
mod check;
mod connection;
mod difference;
mod expect;
mod parse;
mod pattern;
mod play;
mod record;
mod request;
mod response;
mod script;
mod server;
mod shorthand;

pub use case::{Case, CaseCall, CaseExpect, CaseOutcome, from_case};
pub use check::{Assertion, Check, FileState, Outcome, Text};
pub use expect::Expect;
pub use play::{Recorded, Transcript};
pub use record::{Seen, line};
pub use script::{Body, Chunk, End, Exchange, KeepAlive, Response, Script, Section};
pub use server::{MODEL, Pace, Server};
pub use shorthand::{Call, Reply};

use std::fmt;

/// One assertion that did not hold, in words for a report.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Failure {
    /// Which exchange of its section, counted from 0; past the last one for a request that the
    /// script has no reply to. `None` for a check on the end.
    pub exchange: Option<usize>,
    /// The line of the script that asserts it, counted from 1; 0 if no line of the script does.
    pub line: usize,
    /// What the author called the line, or what it asserts in words.
    pub name: String,
    /// Which part of it failed: `body /stream`, `tools`, `file greet.sh`.
    pub what: String,
    /// What was wanted.
    pub expected: String,
    /// What there was; long values are cut.
    pub got: String,
}

impl fmt::Display for Failure {
    fn fmt(&self, out: &mut fmt::Formatter) -> fmt::Result {
        write!(out, "{}: {}: expected {}, got {}", self.name, self.what, self.expected, self.got)
    }
}

/// Quotes a text for a report, so that blanks and line breaks can be seen.
fn shown(text: &str) -> String {
    cut(&format!("{text:?}"))
}

/// Cuts a text for a report to 300 characters: a whole request body helps nobody.
fn cut(text: &str) -> String {
    const LONGEST: usize = 300;
    match text.char_indices().nth(LONGEST) {
        None => text.to_string(),
        Some((end, _)) => format!("{} … ({} bytes)", &text[..end], text.len()),
    }
}
