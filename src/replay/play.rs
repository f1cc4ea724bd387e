//! The position in the script and everything that is remembered: which reply answers a request, and
//! what was wrong with it.
//!
//! No socket and no clock here: a request goes in with its time, an exchange comes out. So the
//! rules of a script can be read, and tested, on one page.

use super::difference::Difference;
use super::expect::{Expect, Seen, invariants};
use super::request::{self, Request};
use super::script::{Exchange, Script, Section};
use super::{Failure, cut};
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
        request::find(&self.headers, name)
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
        let names = || self.script.sections.iter().map(|section| section.name.as_str()).collect::<Vec<_>>().join(", ");
        let section = self.script.sections.iter().position(|section| section.name == name);
        self.section = section.ok_or_else(|| format!("the script has no section {name:?}, only: {}", names()))?;
        (self.position, self.played, self.answered) = (0, 0, None);
        self.before = self.transcript.requests.len();
        Ok(())
    }

    /// Records a request and gives the exchange that answers it; `None` past the end of the
    /// section.
    pub fn request(&mut self, request: Request, at: Duration) -> Option<Exchange> {
        let Request { path, query, headers, body, .. } = request;
        let mut request = Recorded { path, query, headers, body, at, line: None };
        let body = request.json();
        let (exchange, mut differences) = self.judge(&request, &body);
        let mut name = self.title();
        if exchange.is_none() {
            name = "the end of the script".to_string();
            let got = body["messages"].as_array().and_then(|messages| messages.last());
            let got = cut(&got.unwrap_or(&Value::Null).to_string());
            differences.push(Difference { what: "request".to_string(), expected: "none".to_string(), got });
        }
        request.line = exchange.as_ref().map(|exchange| exchange.line);
        for difference in differences {
            self.fail(&name, request.line, difference);
        }
        self.transcript.requests.push(request);
        exchange
    }

    /// Finds the exchange that answers a request, and everything that is wrong with the request.
    fn judge(&mut self, request: &Recorded, body: &Value) -> (Option<Exchange>, Vec<Difference>) {
        let earlier = self.transcript.requests.get(self.before..).unwrap_or_default();
        let delay = self.answered.map(|answered| request.at.saturating_sub(answered));
        let seen = Seen { request, body, earlier, delay };
        let section = self.script.sections.get(self.section);
        let exchange = section.and_then(|section| next(section, &mut self.position, &mut self.played, &seen));
        let mut differences = invariants(body);
        differences.extend(exchange.iter().flat_map(|exchange| exchange.expect.differences(&seen)));
        (exchange.cloned(), differences)
    }

    fn title(&self) -> String {
        let section = self.script.sections.get(self.section);
        section.map_or_else(String::new, |section| section.title(self.position))
    }

    /// Notes that the current response is about to end; the delay of the next request counts from
    /// here.
    pub fn answered(&mut self, at: Duration) {
        self.answered = Some(at);
    }

    /// Notes a connection.
    pub fn connected(&mut self) {
        self.transcript.connections += 1;
    }

    /// Notes bytes that are not a request.
    pub fn malformed(&mut self, what: &str) {
        let (expected, got) = ("a request".to_string(), what.to_string());
        self.fail("HTTP", None, Difference { what: "request".to_string(), expected, got });
    }

    /// The script.
    pub fn script(&self) -> &Script {
        &self.script
    }

    /// What was recorded so far, without a copy; `unplayed` is not counted in it.
    pub fn recorded(&self) -> &Transcript {
        &self.transcript
    }

    /// Everything so far.
    pub fn transcript(&self) -> Transcript {
        let reached = self.position + usize::from(self.played > 0);
        let section = self.script.sections.get(self.section);
        let ahead = section.and_then(|section| section.exchanges.get(reached..)).unwrap_or_default();
        Transcript {
            unplayed: ahead.iter().filter(|exchange| exchange.when.is_none()).count(),
            ..self.transcript.clone()
        }
    }

    fn fail(&mut self, name: &str, line: Option<usize>, difference: Difference) {
        let Difference { what, expected, got } = difference;
        let (exchange, line, name) = (Some(self.position), line.unwrap_or(0), name.to_string());
        self.transcript.failures.push(Failure { exchange, line, name, what, expected, got });
    }
}

/// Moves on to the exchange that answers a request: past those that were played as often as they
/// shall be, and past conditional ones that do not match.
fn next<'a>(section: &'a Section, position: &mut usize, played: &mut usize, seen: &Seen) -> Option<&'a Exchange> {
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

#[cfg(test)]
mod tests {
    use super::*;

    fn play(script: &str) -> Play {
        Play::new(Script::parse(script).unwrap())
    }

    /// Sends a request whose last message is `last`, and gives the line that answers it.
    fn ask(play: &mut Play, last: &str, at_ms: u64) -> Option<usize> {
        let body =
            serde_json::json!({"stream":true,"messages":[{"role":"user","content":last}]}).to_string().into_bytes();
        let path = "/v1/chat/completions".to_string();
        let request = Request { method: "POST".to_string(), path, query: String::new(), headers: vec![], body };
        play.request(request, Duration::from_millis(at_ms)).map(|exchange| exchange.line)
    }

    #[test]
    fn a_conditional_line_is_played_only_where_it_matches() {
        let script = r#"
            {"response":{"text":"one"}}
            {"when":{"last_contains":"Blocked:"},"response":{"text":"as you wish"}}
            {"response":{"text":"two"}}"#;
        let mut allowed = play(script);
        assert_eq!([ask(&mut allowed, "go", 0), ask(&mut allowed, "done", 1)], [Some(2), Some(4)]);
        assert_eq!(allowed.transcript().unplayed, 0);
        let mut denied = play(script);
        assert_eq!([ask(&mut denied, "go", 0), ask(&mut denied, "Blocked: no", 1)], [Some(2), Some(3)]);
        assert_eq!(denied.transcript().unplayed, 1);
        assert_eq!(ask(&mut denied, "more", 2), Some(4));
        assert_eq!(denied.transcript().failures, []);
    }

    #[test]
    fn a_line_may_answer_several_requests() {
        let mut play = play("{\"repeat\":2,\"response\":{\"status\":500}}\n{\"response\":{\"text\":\"ok\"}}");
        let lines: Vec<_> = (0..4).map(|n| ask(&mut play, "x", n)).collect();
        assert_eq!(lines, [Some(1), Some(1), Some(2), None]);
    }

    #[test]
    fn a_request_past_the_end_is_a_failure_and_recorded() {
        let mut play = play(r#"{"response":{"text":"one"}}"#);
        ask(&mut play, "x", 0);
        assert_eq!(ask(&mut play, "y", 1), None);
        let transcript = play.transcript();
        assert_eq!(transcript.requests.len(), 2);
        assert_eq!(transcript.failures.len(), 1);
        assert_eq!(transcript.failures[0].exchange, Some(1));
        assert!(transcript.failures[0].got.contains('y'));
    }

    #[test]
    fn a_failed_expectation_names_line_and_author_and_is_still_played() {
        let mut play = play(r#"{"name":"asks for no stream","expect_request":{"body":{"/stream":false}}}"#);
        assert_eq!(ask(&mut play, "x", 0), Some(1));
        let failures = play.transcript().failures;
        let text: Vec<String> = failures.iter().map(Failure::to_string).collect();
        assert_eq!(text, [r#"asks for no stream: body /stream: expected false, got true"#]);
        assert_eq!((failures[0].exchange, failures[0].line), (Some(0), 1));
    }

    #[test]
    fn selecting_rewinds_and_counts_requests_anew() {
        let script = r#"
            {"sample":1}
            {"response":{"text":"one"}}
            {"answer":"y"}
            {"section":"denied"}
            {"response":{"status":503}}
            {"expect_request":{"same_body_as":0}}"#;
        let mut play = play(script);
        assert_eq!(play.script().answers("1"), ["y"]);
        assert_eq!(ask(&mut play, "first", 0), Some(3));
        play.select("denied").unwrap();
        assert_eq!([ask(&mut play, "x", 1), ask(&mut play, "x", 2)], [Some(6), Some(7)]);
        play.select("1").unwrap();
        assert_eq!(ask(&mut play, "again", 3), Some(3));
        assert_eq!(play.transcript().failures, []);
        assert_eq!(play.select("2"), Err("the script has no section \"2\", only: 1, denied".to_string()));
    }

    #[test]
    fn the_delay_counts_from_the_end_of_the_previous_response() {
        let mut play = play(
            r#"
            {"response":{"status":429}}
            {"expect_request":{"min_delay_ms":100,"max_delay_ms":200}}
            {"expect_request":{"min_delay_ms":100}}"#,
        );
        ask(&mut play, "x", 0);
        play.answered(Duration::from_millis(1000));
        ask(&mut play, "x", 1150);
        assert_eq!(play.transcript().failures, []);
        play.answered(Duration::from_millis(2000));
        ask(&mut play, "x", 2050);
        let failures = play.transcript().failures;
        assert_eq!((failures.len(), failures[0].got.as_str()), (1, "50ms"));
    }
}
