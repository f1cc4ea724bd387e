//! A script as the program sees it: sections of exchanges, answers and checks. How it is written
//! down is `parse`.

use super::check::Check;
use super::expect::Expect;
use super::parse::Builder;
use super::shorthand::Reply;
use serde::Deserialize;

/// A whole script: at least one section, each with its own name.
#[derive(Debug, Clone)]
pub struct Script {
    /// In the order of the file. A script without `sample` or `section` lines is one section named
    /// "".
    pub sections: Vec<Section>,
}

/// What belongs to one sample or one exam case.
#[derive(Debug, Clone, Default)]
pub struct Section {
    /// The name given, or the number of the sample (`"1"`).
    pub name: String,
    /// Requests and replies, in order.
    pub exchanges: Vec<Exchange>,
    /// The person's answers, in order.
    pub answers: Vec<String>,
    /// What must hold at the end.
    pub checks: Vec<Check>,
}

/// One request of the client and the reply to it.
#[derive(Debug, Clone)]
pub struct Exchange {
    /// Its line in the script, from 1 (0 where there is no script file).
    pub line: usize,
    /// What the author says this line asserts.
    pub name: Option<String>,
    /// The line is skipped unless the request matches all of this. So a recording carries a reply
    /// for a denied question.
    pub when: Option<Expect>,
    /// What the request must look like; the reply is played whether it does or not.
    pub expect: Expect,
    /// What is played. A line without `response` says `Done.`
    pub response: Response,
    /// How many requests in a row it answers: 1, unless a fault shall outlast the client's retries.
    pub repeat: usize,
}

/// A reply with all its faults.
#[derive(Debug, Clone)]
pub struct Response {
    /// The HTTP status; 0 closes the connection without answering.
    pub status: u16,
    /// In alphabetical order. `{{http_date:+N}}` in a value becomes now + N seconds as an HTTP
    /// date.
    pub headers: Vec<(String, String)>,
    /// What follows the headers.
    pub body: Body,
    /// How it ends.
    pub end: End,
}

/// The body, as bytes or as what they mean.
#[derive(Debug, Clone)]
pub enum Body {
    /// Exactly these bytes, each chunk written and flushed on its own.
    Chunks(Vec<Chunk>),
    /// The shorthand: becomes a stream, or one JSON object for a client that did not ask for a
    /// stream.
    Reply(Reply),
}

/// Bytes that are written in one go.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Chunk {
    /// Any bytes, also parts of a UTF-8 character.
    pub bytes: Vec<u8>,
    /// How long the sender waits before it; `None` leaves that to the pace.
    pub pause_ms: Option<u64>,
}

/// How a response ends.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum End {
    /// Properly: the last chunk, and the connection stays usable.
    Eof,
    /// The connection closes without the last chunk.
    Truncate,
    /// The connection is reset (TCP RST).
    Reset,
    /// The connection stays open and nothing more comes.
    Stall,
    /// A chunk is repeated until the client leaves.
    KeepAlive(KeepAlive),
}

/// What [`End::KeepAlive`] repeats.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct KeepAlive {
    /// Usually a comment line of SSE.
    pub chunk: String,
    /// The pause between two of them.
    pub every_ms: u64,
}

impl Script {
    /// Parses the JSON lines of a script or recording. The error names line and key.
    pub fn parse(text: &str) -> Result<Self, String> {
        let mut builder = Builder::default();
        for (number, line) in (1..).zip(text.lines()).filter(|(_, line)| !line.trim().is_empty()) {
            builder.add(number, line).map_err(|error| format!("line {number}: {error}"))?;
        }
        builder.finish()
    }

    /// What is left of it after so many replies. Conditional lines among those are passed over with them.
    pub fn after(mut self, replies: usize) -> Self {
        for section in &mut self.sections {
            let plain = section.exchanges.iter().enumerate().filter(|(_, exchange)| exchange.when.is_none());
            let next = plain.map(|(at, _)| at).nth(replies).unwrap_or(section.exchanges.len());
            section.exchanges.drain(..next);
        }
        self
    }

    /// The section of that name.
    pub fn section(&self, name: &str) -> Option<&Section> {
        self.sections.iter().find(|section| section.name == name)
    }

    /// A section's checks on the end; none for an unknown section.
    pub fn checks(&self, section: &str) -> &[Check] {
        self.section(section).map_or(&[], |section| &section.checks)
    }

    /// The person's answers in a section; none for an unknown section.
    pub fn answers(&self, section: &str) -> &[String] {
        self.section(section).map_or(&[], |section| &section.answers)
    }
}

impl Section {
    /// What a report calls an exchange: its name, or the number of the request, from 1.
    pub fn title(&self, exchange: usize) -> String {
        let named = self.exchanges.get(exchange).and_then(|exchange| exchange.name.clone());
        named.unwrap_or_else(|| format!("request {}", exchange + 1))
    }
}
