//! What a request must look like, and what differs when it does not.
//!
//! An [`Expect`] is used in two places: as `expect_request`, where a difference is a failure, and
//! as `when`, where it means "skip this line". Two things are asserted of every request, named or
//! not: the body is a chat request in JSON, and its calls and results are paired, because servers
//! refuse anything else and no lab may teach it.

use super::body::{any_string, at, messages, offered, paired, system_text, text_of};
use super::pattern::Pattern;
use super::play::Recorded;
use super::{cut, shown};
use serde::Deserialize;
use serde_json::Value;
use std::collections::BTreeMap;
use std::time::Duration;

/// The conditions of one line; an empty one always holds. Built by the parser of scripts.
#[derive(Debug, Clone, Default)]
pub struct Expect {
    line: ExpectLine,
    patterns: Vec<(String, Pattern)>,
}

/// The conditions as they stand in the file. Pointers are JSON pointers in which an array index may
/// be negative.
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
            return Err("`pairs` cannot be switched off: it is asserted of every request".to_string());
        }
        let pointers =
            self.body.keys().chain(&self.body_present).chain(&self.body_absent).chain(self.body_regex.keys());
        let pairs = self.body_equal_pointers.iter().chain(&self.body_distinct_pointers).flat_map(|(a, b)| [a, b]);
        let others = self.body_json_parses.iter().chain(self.body_differs.iter().map(|(pointer, _)| pointer));
        if let Some(wrong) = pointers.chain(pairs).chain(others).find(|pointer| !pointer.starts_with('/')) {
            return Err(format!("the pointer {wrong:?} does not begin with /"));
        }
        let parse = |(pointer, text): (&String, &String)| Ok((pointer.clone(), Pattern::parse(text)?));
        let patterns = self.body_regex.iter().map(parse).collect::<Result<_, String>>()?;
        Ok(Expect { line: self, patterns })
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
            report.hold(paths.contains(&request.path), "path", || (format!("one of {paths:?}"), shown(&request.path)));
        }
        if let Some(query) = &line.query {
            report.equal("query", query, &request.query);
        }
        for (name, wanted) in &line.headers {
            let got = request.header(name);
            let say = |value: Option<&str>| value.map_or("no such header".to_string(), shown);
            report.hold(got == wanted.as_deref(), format!("header {name}"), || (say(wanted.as_deref()), say(got)));
        }
    }

    fn compare_values(&self, body: &Value, report: &mut Report) {
        let line = &self.line;
        let value = |pointer: &str| at(body, pointer);
        let json = |value: Option<&Value>| value.map_or("nothing there".to_string(), |value| cut(&value.to_string()));
        for (pointer, wanted) in &line.body {
            report.hold(value(pointer) == Some(wanted), format!("body {pointer}"), || {
                (json(Some(wanted)), json(value(pointer)))
            });
        }
        for pointer in &line.body_present {
            report.hold(value(pointer).is_some(), format!("body {pointer}"), || ("a value".to_string(), json(None)));
        }
        for pointer in &line.body_absent {
            report.hold(value(pointer).is_none(), format!("body {pointer}"), || (json(None), json(value(pointer))));
        }
        for (pointer, pattern) in &self.patterns {
            let wanted = || format!("a text like {:?}", line.body_regex.get(pointer).map_or("", String::as_str));
            let matches = value(pointer).is_some_and(|value| pattern.matches(&text_of(value)));
            report.hold(matches, format!("body {pointer}"), || (wanted(), json(value(pointer))));
        }
        for pointer in &line.body_json_parses {
            let parses =
                value(pointer).and_then(Value::as_str).is_some_and(|text| serde_json::from_str::<Value>(text).is_ok());
            report.hold(parses, format!("body {pointer}"), || {
                ("a string that holds JSON".to_string(), json(value(pointer)))
            });
        }
        for (a, b) in &line.body_equal_pointers {
            let same = value(a).is_some() && value(a) == value(b);
            report.hold(same, format!("body {a} and {b}"), || {
                ("the same value".to_string(), format!("{} and {}", json(value(a)), json(value(b))))
            });
        }
        for (a, b) in &line.body_distinct_pointers {
            report
                .hold(value(a) != value(b), format!("body {a} and {b}"), || ("two values".to_string(), json(value(a))));
        }
    }

    fn compare_texts(&self, seen: &Seen, report: &mut Report) {
        let line = &self.line;
        let raw = String::from_utf8_lossy(&seen.request.body);
        // Looked for in the bytes and in every decoded string: a quote or a line break looks
        // different in the bytes, and a secret must be found however it is spelled.
        let in_body = |text: &str| raw.contains(text) || any_string(seen.body, &|string| string.contains(text));
        report.contain("body", &line.body_contains, &line.body_lacks, &raw, in_body);
        let system = system_text(seen.body);
        report.contain("system text", &line.system_contains, &line.system_lacks, &system, |text| system.contains(text));
        let last = at(seen.body, "/messages/-1/content").map(text_of).unwrap_or_default();
        report.contain("last message", &line.last_contains, &line.last_lacks, &last, |text| last.contains(text));
        if let Some(wanted) = &line.tools {
            let got = offered(seen.body);
            report.hold(&got == wanted, "tools", || (format!("{wanted:?}"), format!("{got:?}")));
        }
        if let Some(wanted) = line.tools_run {
            // Counted on the wire, where a tool that ran is a tool message.
            let got = messages(seen.body).iter().filter(|message| message["role"] == "tool").count();
            report.hold(got == wanted, "tools run", || (wanted.to_string(), got.to_string()));
        }
    }

    fn compare_earlier(&self, seen: &Seen, report: &mut Report) {
        let line = &self.line;
        if let Some(n) = line.same_body_as {
            let other = seen.earlier.get(n).map(|other| String::from_utf8_lossy(&other.body));
            let body = String::from_utf8_lossy(&seen.request.body);
            let wanted = || other.as_deref().map_or(format!("request {n}, which was never made"), shown);
            report.hold(other.as_deref() == Some(&*body), format!("same body as request {n}"), || {
                (wanted(), shown(&body))
            });
        }
        for (pointer, n) in &line.body_differs {
            let other = seen.earlier.get(*n).and_then(|other| serde_json::from_slice::<Value>(&other.body).ok());
            let differs = other.is_some_and(|other| at(&other, pointer) != at(seen.body, pointer));
            report.hold(differs, format!("body {pointer}"), || {
                (format!("a change since request {n}"), "none".to_string())
            });
        }
        if let Some(least) = line.min_delay_ms {
            let waited = seen.delay.is_some_and(|delay| delay >= Duration::from_millis(least));
            report.hold(waited, "delay", || {
                (format!("at least {least} ms"), format!("{:?}", seen.delay.unwrap_or_default()))
            });
        }
        if let Some(most) = line.max_delay_ms {
            let prompt = seen.delay.is_none_or(|delay| delay <= Duration::from_millis(most));
            report.hold(prompt, "delay", || {
                (format!("at most {most} ms"), format!("{:?}", seen.delay.unwrap_or_default()))
            });
        }
    }
}

/// What holds for every request: JSON with messages, and each call followed by exactly one result,
/// in call order.
pub(super) fn invariants(body: &Value) -> Vec<Difference> {
    let mut report = Report(vec![]);
    let Some(messages) = body["messages"].as_array() else {
        report.hold(false, "body", || ("JSON with a list of messages".to_string(), cut(&body.to_string())));
        return report.0;
    };
    if let Err(broken) = paired(messages) {
        report.hold(false, "pairs", || ("after each call exactly one result, in call order".to_string(), broken));
    }
    report.0
}

/// Collects differences.
struct Report(Vec<Difference>);

impl Report {
    fn hold(&mut self, holds: bool, what: impl Into<String>, words: impl FnOnce() -> (String, String)) {
        if !holds {
            let (expected, got) = words();
            self.0.push(Difference { what: what.into(), expected, got });
        }
    }

    fn equal(&mut self, what: &str, wanted: &str, got: &str) {
        self.hold(wanted == got, what, || (shown(wanted), shown(got)));
    }

    fn contain(&mut self, what: &str, wanted: &Texts, unwanted: &Texts, got: &str, holds: impl Fn(&str) -> bool) {
        for text in &wanted.0 {
            self.hold(holds(text), what, || (format!("something with {}", shown(text)), shown(got)));
        }
        for text in &unwanted.0 {
            self.hold(!holds(text), what, || (format!("nothing with {}", shown(text)), shown(got)));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn recorded(body: &[u8]) -> Recorded {
        Recorded {
            path: "/v1/chat/completions".to_string(),
            query: "api-version=1".to_string(),
            headers: vec![("authorization".to_string(), "Bearer k".to_string())],
            body: body.to_vec(),
            at: Duration::ZERO,
            line: None,
        }
    }

    fn body() -> Value {
        json!({
            "stream": true,
            "temperature": 0.5,
            "tools": [{"type":"function","function":{"name":"read"}}, {"type":"function","function":{"name":"bash"}}],
            "messages": [
                {"role":"system","content":"Be short.\n\"Rules\""},
                {"role":"user","content":[{"type":"text","text":"go "},{"type":"text","text":"on"}]},
                {"role":"assistant","content":null,"tool_calls":[
                    {"id":"a","type":"function","function":{"name":"read","arguments":"{\"path\":1}"}},
                    {"id":"b","type":"function","function":{"name":"read","arguments":"{"}}]},
                {"role":"tool","tool_call_id":"a","content":"seven"},
                {"role":"tool","tool_call_id":"b","content":"Error: not JSON"},
            ],
        })
    }

    /// What differs between the body above, as the third request, and a condition.
    fn differences(expect: &str) -> Vec<String> {
        let expect = serde_json::from_str::<ExpectLine>(expect).unwrap().build().unwrap();
        let body = body();
        let request = recorded(body.to_string().as_bytes());
        let mut first = body.clone();
        first["messages"][0]["content"] = json!("Be long.");
        let earlier = [recorded(first.to_string().as_bytes()), request.clone()];
        let delay = Some(Duration::from_millis(50));
        let seen = Seen { request: &request, body: &body, earlier: &earlier, delay };
        expect.differences(&seen).into_iter().map(|difference| difference.what).collect()
    }

    #[test]
    fn each_condition_holds_where_it_should_and_fails_where_it_should() {
        for (holds, fails, what) in [
            (r#"{"path":"/v1/chat/completions"}"#, r#"{"path":"/v1"}"#, "path"),
            (r#"{"path_any":["/x","/v1/chat/completions"]}"#, r#"{"path_any":["/x"]}"#, "path"),
            (r#"{"query":"api-version=1"}"#, r#"{"query":""}"#, "query"),
            (
                r#"{"headers":{"Authorization":"Bearer k","x":null}}"#,
                r#"{"headers":{"authorization":null}}"#,
                "header authorization",
            ),
            (
                r#"{"body":{"/stream":true,"/messages/-1/role":"tool"}}"#,
                r#"{"body":{"/messages/-6/role":"x"}}"#,
                "body /messages/-6/role",
            ),
            (r#"{"body_present":["/messages/2/content"]}"#, r#"{"body_present":["/top_p"]}"#, "body /top_p"),
            (r#"{"body_absent":["/top_p","/messages/5"]}"#, r#"{"body_absent":["/temperature"]}"#, "body /temperature"),
            (
                r#"{"body_regex":{"/messages/-2/content":"^s.*n$"}}"#,
                r#"{"body_regex":{"/stream":"true"}}"#,
                "body /stream",
            ),
            (
                r#"{"body_json_parses":["/messages/2/tool_calls/0/function/arguments"]}"#,
                r#"{"body_json_parses":["/messages/2/tool_calls/-1/function/arguments"]}"#,
                "body /messages/2/tool_calls/-1/function/arguments",
            ),
            (
                r#"{"body_equal_pointers":[["/messages/2/tool_calls/0/id","/messages/3/tool_call_id"]]}"#,
                r#"{"body_equal_pointers":[["/nothing","/nowhere"]]}"#,
                "body /nothing and /nowhere",
            ),
            (
                r#"{"body_distinct_pointers":[["/messages/3/tool_call_id","/messages/4/tool_call_id"]]}"#,
                r#"{"body_distinct_pointers":[["/messages/3/role","/messages/4/role"]]}"#,
                "body /messages/3/role and /messages/4/role",
            ),
            (r#"{"body_differs":[["/messages/0/content",0]]}"#, r#"{"body_differs":[["/stream",0]]}"#, "body /stream"),
            (r#"{"same_body_as":1}"#, r#"{"same_body_as":0}"#, "same body as request 0"),
            (r#"{"same_body_as":1}"#, r#"{"same_body_as":7}"#, "same body as request 7"),
            (r#"{"min_delay_ms":50,"max_delay_ms":50}"#, r#"{"min_delay_ms":51}"#, "delay"),
            (r#"{}"#, r#"{"max_delay_ms":49}"#, "delay"),
            (r#"{"tools_run":2}"#, r#"{"tools_run":1}"#, "tools run"),
            (r#"{"tools":["read","bash"]}"#, r#"{"tools":["bash","read"]}"#, "tools"),
            (r#"{"body_contains":["\"Rules\"","seven"]}"#, r#"{"body_contains":"eight"}"#, "body"),
            (r#"{"body_lacks":"eight"}"#, r#"{"body_lacks":"short.\n\"Rules"}"#, "body"),
            (r#"{"system_contains":"Be short."}"#, r#"{"system_contains":"seven"}"#, "system text"),
            (r#"{"system_lacks":"seven"}"#, r#"{"system_lacks":"Rules"}"#, "system text"),
            (r#"{"last_contains":"Error:"}"#, r#"{"last_contains":"Blocked:"}"#, "last message"),
            (r#"{"last_lacks":"Blocked:"}"#, r#"{"last_lacks":["Error:"]}"#, "last message"),
        ] {
            assert_eq!(differences(holds), [""; 0], "{holds}");
            assert_eq!(differences(fails), [what], "{fails}");
        }
    }

    #[test]
    fn a_body_that_is_not_a_chat_request_fails_whatever_was_expected() {
        for body in [Value::Null, json!([]), json!({"messages":"x"})] {
            assert_eq!(invariants(&body)[0].what, "body");
        }
        assert_eq!(invariants(&body()), []);
    }
}
