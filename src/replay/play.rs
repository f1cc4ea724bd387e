//! The position in the script and everything that is remembered: which reply answers a request, and what was wrong with it.
//!
//! No socket and no clock here: a request goes in with its time, an exchange comes out. So the rules of a script can be read,
//! and tested, on one page.

use super::expect::{Expect, Seen, invariants};
use super::http::{self, Request};
use super::script::{Exchange, Script, Section};
use super::{Failure, shown};
use serde_json::Value;
use std::time::Duration;

/// A chat request as it came over the wire.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Recorded {
    /// Without the query.
    pub path: String,
    /// Without the question mark; empty if there is none.
    pub query: String,
    /// Names in lower case, in the order sent.
    pub headers: Vec<(String, String)>,
    /// The bytes of the body.
    pub body: Vec<u8>,
    /// When it was complete, since the server started.
    pub at: Duration,
    /// The line of the script that answered it; `None` past the end of the script.
    pub line: Option<usize>,
}

impl Recorded {
    /// The value of a header, whatever the case of its name.
    pub fn header(&self, name: &str) -> Option<&str> {
        http::find(&self.headers, name)
    }

    /// The body as JSON; null if it is none.
    pub fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap_or(Value::Null)
    }
}

/// Everything that happened so far, over all sections that were selected.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Transcript {
    /// Chat requests in order; requests for the list of models are not among them.
    pub requests: Vec<Recorded>,
    /// Expectations that did not hold, requests past the end, connections that did not speak HTTP.
    pub failures: Vec<Failure>,
    /// Exchanges of the selected section that were never reached; those with a `when` do not count.
    pub unplayed: usize,
    /// Connections that were opened.
    pub connections: usize,
}

/// A script being played.
pub(super) struct Play {
    script: Script,
    section: usize,
    /// The next exchange of the section, and how often it has been played already.
    position: usize,
    played: usize,
    /// The number of requests before this section was selected.
    before: usize,
    /// When the last response ended.
    answered: Option<Duration>,
    transcript: Transcript,
}

impl Play {
    /// Begins with the first section.
    pub fn new(script: Script) -> Self {
        Self {
            script,
            section: 0,
            position: 0,
            played: 0,
            before: 0,
            answered: None,
            transcript: Transcript::default(),
        }
    }

    /// Goes to the start of a section. What was recorded before stays in the transcript.
    pub fn select(&mut self, name: &str) -> Result<(), String> {
        let names = || {
            self.script
                .sections
                .iter()
                .map(|section| section.name.as_str())
                .collect::<Vec<_>>()
                .join(", ")
        };
        let section = self
            .script
            .sections
            .iter()
            .position(|section| section.name == name);
        self.section = section
            .ok_or_else(|| format!("the script has no section {name:?}, only: {}", names()))?;
        (self.position, self.played, self.answered) = (0, 0, None);
        self.before = self.transcript.requests.len();
        Ok(())
    }

    /// Records a request and gives the exchange that answers it; `None` past the end of the section.
    pub fn request(&mut self, request: Request, at: Duration) -> Option<Exchange> {
        let Request {
            path,
            query,
            headers,
            body,
            ..
        } = request;
        let mut request = Recorded {
            path,
            query,
            headers,
            body,
            at,
            line: None,
        };
        let body = request.json();
        let earlier = self
            .transcript
            .requests
            .get(self.before..)
            .unwrap_or_default();
        let delay = self.answered.map(|answered| at.saturating_sub(answered));
        let seen = Seen {
            request: &request,
            body: &body,
            earlier,
            delay,
        };

        let exchange = next(
            self.script.sections.get(self.section)?,
            &mut self.position,
            &mut self.played,
            &seen,
        )
        .cloned();
        let mut differences = invariants(&body);
        differences.extend(
            exchange
                .iter()
                .flat_map(|exchange| exchange.expect.differences(&seen)),
        );
        request.line = exchange.as_ref().map(|exchange| exchange.line);
        let title = exchange.as_ref().and_then(|exchange| exchange.name.clone());
        let title = title.unwrap_or_else(|| format!("request {}", self.position + 1));
        for difference in differences {
            self.fail(
                request.line,
                &title,
                difference.what,
                difference.expected,
                difference.got,
            );
        }
        if exchange.is_none() {
            let last = body["messages"]
                .as_array()
                .and_then(|messages| messages.last());
            let got = last.map_or_else(|| "a request".to_string(), |last| shown(&last.to_string()));
            self.fail(
                None,
                "the end of the script",
                "request".to_string(),
                "no further request".to_string(),
                got,
            );
        }
        self.transcript.requests.push(request);
        exchange
    }

    /// Notes that the current response is about to end; the delay of the next request counts from here.
    pub fn answered(&mut self, at: Duration) {
        self.answered = Some(at);
    }

    /// Notes a connection.
    pub fn connected(&mut self) {
        self.transcript.connections += 1;
    }

    /// Notes bytes that are not a request.
    pub fn malformed(&mut self, what: &str) {
        self.fail(
            None,
            "HTTP",
            "request".to_string(),
            "a request".to_string(),
            what.to_string(),
        );
    }

    /// The script.
    pub fn script(&self) -> &Script {
        &self.script
    }

    /// Everything so far.
    pub fn transcript(&self) -> Transcript {
        let reached = self.position + usize::from(self.played > 0);
        let section = self.script.sections.get(self.section);
        let ahead = section
            .and_then(|section| section.exchanges.get(reached..))
            .unwrap_or_default();
        Transcript {
            unplayed: ahead
                .iter()
                .filter(|exchange| exchange.when.is_none())
                .count(),
            ..self.transcript.clone()
        }
    }

    fn fail(
        &mut self,
        line: Option<usize>,
        name: &str,
        what: String,
        expected: String,
        got: String,
    ) {
        let (exchange, line, name) = (Some(self.position), line.unwrap_or(0), name.to_string());
        self.transcript.failures.push(Failure {
            exchange,
            line,
            name,
            what,
            expected,
            got,
        });
    }
}

/// Moves on to the exchange that answers a request: past those that were played as often as they shall be, and past conditional
/// ones that do not match.
fn next<'a>(
    section: &'a Section,
    position: &mut usize,
    played: &mut usize,
    seen: &Seen,
) -> Option<&'a Exchange> {
    let matches = |when: &Expect| when.differences(seen).is_empty();
    while let Some(exchange) = section.exchanges.get(*position) {
        if *played < exchange.repeat && exchange.when.as_ref().is_none_or(matches) {
            *played += 1;
            return Some(exchange);
        }
        (*position, *played) = (*position + 1, 0);
    }
    None
}
