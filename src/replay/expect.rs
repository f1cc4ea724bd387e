//! What a request must look like, and what differs when it does not.
//!
//! An [`Expect`] is used in two places: as `expect_request`, where a difference is a failure, and as `when`, where it means
//! "skip this line". Two things are asserted of every request, named or not: the body is a chat request in JSON, and its
//! calls and results are paired, because servers refuse anything else and no lab may teach it.

use super::pattern::Pattern;
use super::play::Recorded;
use super::shown;
use serde::Deserialize;
use serde_json::Value;
use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

/// The conditions of one line; an empty one always holds. Built by the parser of scripts.
#[derive(Debug, Clone, Default)]
pub struct Expect {
    line: ExpectLine,
    patterns: Vec<(String, Pattern)>,
}

/// The conditions as they stand in the file. Pointers are JSON pointers in which an array index may be negative.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct ExpectLine {
    path: Option<String>,
    path_any: Option<Vec<String>>,
    query: Option<String>,
    headers: BTreeMap<String, Option<String>>,
    body: BTreeMap<String, Value>,
    body_present: Vec<String>,
    body_absent: Vec<String>,
    body_regex: BTreeMap<String, String>,
    body_json_parses: Vec<String>,
    body_equal_pointers: Vec<(String, String)>,
    body_distinct_pointers: Vec<(String, String)>,
    body_differs: Vec<(String, usize)>,
    body_contains: Texts,
    body_lacks: Texts,
    system_contains: Texts,
    system_lacks: Texts,
    last_contains: Texts,
    last_lacks: Texts,
    tools: Option<Vec<String>>,
    pairs: Option<bool>,
    same_body_as: Option<usize>,
    min_delay_ms: Option<u64>,
    max_delay_ms: Option<u64>,
    tools_run: Option<usize>,
}

/// One text or a list of them.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(from = "OneOrMany")]
struct Texts(Vec<String>);

#[derive(Deserialize)]
#[serde(untagged, expecting = "expected a string or a list of strings")]
enum OneOrMany {
    One(String),
    Many(Vec<String>),
}

impl From<OneOrMany> for Texts {
    fn from(texts: OneOrMany) -> Self {
        match texts {
            OneOrMany::One(text) => Self(vec![text]),
            OneOrMany::Many(texts) => Self(texts),
        }
    }
}

impl ExpectLine {
    /// Checks what can only be wrong by the author's hand.
    pub fn build(self) -> Result<Expect, String> {
        if self.pairs == Some(false) {
            return Err(
                "`pairs` cannot be switched off: it is asserted of every request".to_string(),
            );
        }
        let pointers = self
            .body
            .keys()
            .chain(&self.body_present)
            .chain(&self.body_absent)
            .chain(self.body_regex.keys());
        let pairs = self
            .body_equal_pointers
            .iter()
            .chain(&self.body_distinct_pointers)
            .flat_map(|(a, b)| [a, b]);
        let others = self
            .body_json_parses
            .iter()
            .chain(self.body_differs.iter().map(|(pointer, _)| pointer));
        if let Some(wrong) = pointers
            .chain(pairs)
            .chain(others)
            .find(|pointer| !pointer.starts_with('/'))
        {
            return Err(format!("the pointer {wrong:?} does not begin with /"));
        }
        let parse =
            |(pointer, text): (&String, &String)| Ok((pointer.clone(), Pattern::parse(text)?));
        let patterns = self
            .body_regex
            .iter()
            .map(parse)
            .collect::<Result<_, String>>()?;
        Ok(Expect {
            line: self,
            patterns,
        })
    }
}

/// One condition that did not hold.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Difference {
    pub what: String,
    pub expected: String,
    pub got: String,
}

/// A request and what it can be compared with.
pub(super) struct Seen<'a> {
    pub request: &'a Recorded,
    /// The parsed body; null if it is not JSON.
    pub body: &'a Value,
    /// The requests before it, since its section was selected.
    pub earlier: &'a [Recorded],
    /// Since the previous response ended; `None` for the first request.
    pub delay: Option<Duration>,
}

impl Expect {
    /// Whether it asserts nothing.
    pub fn is_empty(&self) -> bool {
        self.line == ExpectLine::default()
    }

    /// Everything that differs, in the order of the schema.
    pub(super) fn differences(&self, seen: &Seen) -> Vec<Difference> {
        let mut report = Report(vec![]);
        self.compare_target(seen.request, &mut report);
        self.compare_values(seen.body, &mut report);
        self.compare_texts(seen, &mut report);
        self.compare_earlier(seen, &mut report);
        report.0
    }

    fn compare_target(&self, request: &Recorded, report: &mut Report) {
        let line = &self.line;
        if let Some(path) = &line.path {
            report.equal("path", path, &request.path);
        }
        if let Some(paths) = &line.path_any {
            report.hold(paths.contains(&request.path), "path", || {
                (format!("one of {paths:?}"), shown(&request.path))
            });
        }
        if let Some(query) = &line.query {
            report.equal("query", query, &request.query);
        }
        for (name, wanted) in &line.headers {
            let got = request.header(name);
            let say = |value: Option<&str>| value.map_or("no such header".to_string(), shown);
            report.hold(got == wanted.as_deref(), format!("header {name}"), || {
                (say(wanted.as_deref()), say(got))
            });
        }
    }

    fn compare_values(&self, body: &Value, report: &mut Report) {
        let line = &self.line;
        let value = |pointer: &str| at(body, pointer);
        let json = |value: Option<&Value>| {
            value.map_or("nothing there".to_string(), |value| {
                shown(&value.to_string())
            })
        };
        for (pointer, wanted) in &line.body {
            report.hold(
                value(pointer) == Some(wanted),
                format!("body {pointer}"),
                || (json(Some(wanted)), json(value(pointer))),
            );
        }
        for pointer in &line.body_present {
            report.hold(value(pointer).is_some(), format!("body {pointer}"), || {
                ("a value".to_string(), json(None))
            });
        }
        for pointer in &line.body_absent {
            report.hold(value(pointer).is_none(), format!("body {pointer}"), || {
                (json(None), json(value(pointer)))
            });
        }
        for (pointer, pattern) in &self.patterns {
            let wanted = || {
                format!(
                    "a text like {:?}",
                    line.body_regex.get(pointer).map_or("", String::as_str)
                )
            };
            let matches = value(pointer).is_some_and(|value| pattern.matches(&text_of(value)));
            report.hold(matches, format!("body {pointer}"), || {
                (wanted(), json(value(pointer)))
            });
        }
        for pointer in &line.body_json_parses {
            let parses = value(pointer)
                .and_then(Value::as_str)
                .is_some_and(|text| serde_json::from_str::<Value>(text).is_ok());
            report.hold(parses, format!("body {pointer}"), || {
                ("a string that holds JSON".to_string(), json(value(pointer)))
            });
        }
        for (a, b) in &line.body_equal_pointers {
            let same = value(a).is_some() && value(a) == value(b);
            report.hold(same, format!("body {a} and {b}"), || {
                (
                    "the same value".to_string(),
                    format!("{} and {}", json(value(a)), json(value(b))),
                )
            });
        }
        for (a, b) in &line.body_distinct_pointers {
            report.hold(value(a) != value(b), format!("body {a} and {b}"), || {
                ("two values".to_string(), json(value(a)))
            });
        }
    }

    fn compare_texts(&self, seen: &Seen, report: &mut Report) {
        let line = &self.line;
        let raw = String::from_utf8_lossy(&seen.request.body);
        // Looked for in the bytes and in every decoded string: a quote or a line break looks different in the bytes, and a
        // secret must be found however it is spelled.
        let in_body = |text: &str| {
            raw.contains(text) || any_string(seen.body, &|string| string.contains(text))
        };
        report.contain("body", &line.body_contains, &line.body_lacks, &raw, in_body);
        let system = system_text(seen.body);
        report.contain(
            "system text",
            &line.system_contains,
            &line.system_lacks,
            &system,
            |text| system.contains(text),
        );
        let last = at(seen.body, "/messages/-1/content")
            .map(text_of)
            .unwrap_or_default();
        report.contain(
            "last message",
            &line.last_contains,
            &line.last_lacks,
            &last,
            |text| last.contains(text),
        );
        if let Some(wanted) = &line.tools {
            let got = offered(seen.body);
            report.hold(&got == wanted, "tools", || {
                (format!("{wanted:?}"), format!("{got:?}"))
            });
        }
        if let Some(wanted) = line.tools_run {
            // Counted on the wire, where a tool that ran is a tool message.
            let got = messages(seen.body)
                .iter()
                .filter(|message| message["role"] == "tool")
                .count();
            report.hold(got == wanted, "tools run", || {
                (wanted.to_string(), got.to_string())
            });
        }
    }

    fn compare_earlier(&self, seen: &Seen, report: &mut Report) {
        let line = &self.line;
        if let Some(n) = line.same_body_as {
            let other = seen
                .earlier
                .get(n)
                .map(|other| String::from_utf8_lossy(&other.body));
            let body = String::from_utf8_lossy(&seen.request.body);
            let wanted = || {
                other
                    .as_deref()
                    .map_or(format!("request {n}, which was never made"), shown)
            };
            report.hold(
                other.as_deref() == Some(&*body),
                format!("same body as request {n}"),
                || (wanted(), shown(&body)),
            );
        }
        for (pointer, n) in &line.body_differs {
            let other = seen
                .earlier
                .get(*n)
                .and_then(|other| serde_json::from_slice::<Value>(&other.body).ok());
            let differs = other.is_some_and(|other| at(&other, pointer) != at(seen.body, pointer));
            report.hold(differs, format!("body {pointer}"), || {
                (format!("a change since request {n}"), "none".to_string())
            });
        }
        if let Some(least) = line.min_delay_ms {
            let waited = seen
                .delay
                .is_some_and(|delay| delay >= Duration::from_millis(least));
            report.hold(waited, "delay", || {
                (
                    format!("at least {least} ms"),
                    format!("{:?}", seen.delay.unwrap_or_default()),
                )
            });
        }
        if let Some(most) = line.max_delay_ms {
            let prompt = seen
                .delay
                .is_none_or(|delay| delay <= Duration::from_millis(most));
            report.hold(prompt, "delay", || {
                (
                    format!("at most {most} ms"),
                    format!("{:?}", seen.delay.unwrap_or_default()),
                )
            });
        }
    }
}

/// What holds for every request: JSON with messages, and each call followed by exactly one result, in call order.
pub(super) fn invariants(body: &Value) -> Vec<Difference> {
    let mut report = Report(vec![]);
    let Some(messages) = body["messages"].as_array() else {
        report.hold(false, "body", || {
            (
                "JSON with a list of messages".to_string(),
                shown(&body.to_string()),
            )
        });
        return report.0;
    };
    if let Err(broken) = paired(messages) {
        report.hold(false, "pairs", || {
            (
                "after each call exactly one result, in call order".to_string(),
                broken,
            )
        });
    }
    report.0
}

/// Walks the messages; the error says which call or result has no partner.
fn paired(messages: &[Value]) -> Result<(), String> {
    let mut open: VecDeque<&Value> = VecDeque::new();
    for (place, message) in messages.iter().enumerate() {
        if message["role"] == "tool" {
            let id = &message["tool_call_id"];
            match open.pop_front() {
                Some(call) if call == id => continue,
                Some(call) => {
                    return Err(format!("message {place} answers {id}, but {call} is next"));
                }
                None => return Err(format!("message {place} answers {id}, but no call is open")),
            }
        }
        if let Some(call) = open.front() {
            return Err(format!("call {call} has no result before message {place}"));
        }
        open = message["tool_calls"]
            .as_array()
            .into_iter()
            .flatten()
            .map(|call| &call["id"])
            .collect();
    }
    open.front()
        .map_or(Ok(()), |call| Err(format!("call {call} has no result")))
}

/// Collects differences.
struct Report(Vec<Difference>);

impl Report {
    fn hold(
        &mut self,
        holds: bool,
        what: impl Into<String>,
        words: impl FnOnce() -> (String, String),
    ) {
        if !holds {
            let (expected, got) = words();
            self.0.push(Difference {
                what: what.into(),
                expected,
                got,
            });
        }
    }

    fn equal(&mut self, what: &str, wanted: &str, got: &str) {
        self.hold(wanted == got, what, || (shown(wanted), shown(got)));
    }

    fn contain(
        &mut self,
        what: &str,
        wanted: &Texts,
        unwanted: &Texts,
        got: &str,
        holds: impl Fn(&str) -> bool,
    ) {
        for text in &wanted.0 {
            self.hold(holds(text), what, || {
                (format!("something with {}", shown(text)), shown(got))
            });
        }
        for text in &unwanted.0 {
            self.hold(!holds(text), what, || {
                (format!("nothing with {}", shown(text)), shown(got))
            });
        }
    }
}

/// JSON pointer in which an array index may be negative: `/messages/-1` is the last message.
fn at<'a>(value: &'a Value, pointer: &str) -> Option<&'a Value> {
    pointer
        .split('/')
        .skip(1)
        .try_fold(value, |value, part| match value {
            Value::Array(items) => match part.strip_prefix('-') {
                Some(back) => items
                    .len()
                    .checked_sub(back.parse().ok()?)
                    .and_then(|place| items.get(place)),
                None => items.get(part.parse::<usize>().ok()?),
            },
            Value::Object(map) => map.get(&part.replace("~1", "/").replace("~0", "~")),
            _ => None,
        })
}

fn messages(body: &Value) -> &[Value] {
    body["messages"].as_array().map_or(&[], Vec::as_slice)
}

/// All system messages: some clients send one, some one for each source.
fn system_text(body: &Value) -> String {
    let system = messages(body)
        .iter()
        .filter(|message| message["role"] == "system" || message["role"] == "developer");
    system
        .map(|message| text_of(&message["content"]))
        .collect::<Vec<_>>()
        .join("\n")
}

/// The names of the offered tools, in order.
fn offered(body: &Value) -> Vec<String> {
    let tools = body["tools"].as_array().into_iter().flatten();
    tools
        .map(|tool| tool["function"]["name"].as_str().unwrap_or("?").to_string())
        .collect()
}

/// The text of a content: a string, or a list of parts.
fn text_of(content: &Value) -> String {
    match content {
        Value::String(text) => text.clone(),
        Value::Array(parts) => parts
            .iter()
            .filter_map(|part| part["text"].as_str())
            .collect(),
        _ => String::new(),
    }
}

fn any_string(value: &Value, found: &dyn Fn(&str) -> bool) -> bool {
    match value {
        Value::String(text) => found(text),
        Value::Array(items) => items.iter().any(|item| any_string(item, found)),
        Value::Object(map) => map
            .iter()
            .any(|(key, item)| found(key) || any_string(item, found)),
        _ => false,
    }
}
