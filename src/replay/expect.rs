//! What a request must look like, and what differs when it does not.
//!
//! An [`Expect`] is used in two places: as `expect_request`, where a difference is a failure, and
//! as `when`, where it means "skip this line". Two things are asserted of every request, named or
//! not: the body is a chat request in JSON, and its calls and results are paired, because servers
//! refuse anything else and no lab may teach it.

use super::body::{any_string, at, messages, offered, paired, system_text, text_of};
use super::difference::{Difference, Report};
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
    /// The patterns of `body_regex`, parsed.
    patterns: Vec<(String, Pattern)>,
}

/// The conditions as they stand in the file. Pointers are JSON pointers in which an array index may
/// be negative.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct ExpectLine {
    /// The path of the request, without the query.
    path: Option<String>,
    /// The path is one of these.
    path_any: Option<Vec<String>>,
    /// The whole query, without the question mark.
    query: Option<String>,
    /// Header values; null: the header is absent.
    headers: BTreeMap<String, Option<String>>,
    /// Pointer to the value there.
    body: BTreeMap<String, Value>,
    /// Something is there, if only null.
    body_present: Vec<String>,
    /// Nothing is there, not even null.
    body_absent: Vec<String>,
    /// Pointer to a pattern (see `pattern`) that the text there matches somewhere.
    body_regex: BTreeMap<String, String>,
    /// A string is there that is JSON itself.
    body_json_parses: Vec<String>,
    /// Both lead to the same value.
    body_equal_pointers: Vec<(String, String)>,
    /// They lead to two values.
    body_distinct_pointers: Vec<(String, String)>,
    /// The value is another than in request n of the section, counted from 0.
    body_differs: Vec<(String, usize)>,
    /// Found anywhere in the body, or nowhere.
    body_contains: Texts,
    body_lacks: Texts,
    /// Found in the system messages, or not.
    system_contains: Texts,
    system_lacks: Texts,
    /// Found in the content of the last message, or not.
    last_contains: Texts,
    last_lacks: Texts,
    /// The names of the offered tools, all of them, in order.
    tools: Option<Vec<String>>,
    /// Only true: asserted anyway, and named for the reader.
    pairs: Option<bool>,
    /// Byte for byte the body of request n of the section.
    same_body_as: Option<usize>,
    /// Time since the previous response ended.
    min_delay_ms: Option<u64>,
    max_delay_ms: Option<u64>,
    /// How many tool messages the request holds.
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
            return Err("`pairs` cannot be switched off: it holds for every request".to_string());
        }
        if let Some(wrong) = self.pointers().find(|pointer| !pointer.starts_with('/')) {
            return Err(format!("the pointer {wrong:?} does not begin with /"));
        }
        let parsed = |(pointer, text): (&String, &String)| Ok((pointer.clone(), Pattern::parse(text)?));
        let patterns = self.body_regex.iter().map(parsed).collect::<Result<_, String>>()?;
        Ok(Expect { line: self, patterns })
    }

    fn pointers(&self) -> impl Iterator<Item = &String> {
        let keys = self.body.keys().chain(self.body_regex.keys());
        let lists = [&self.body_present, &self.body_absent, &self.body_json_parses];
        let pairs = [&self.body_equal_pointers, &self.body_distinct_pointers];
        let differing = self.body_differs.iter().map(|(pointer, _)| pointer);
        keys.chain(lists.into_iter().flatten())
            .chain(pairs.into_iter().flatten().flat_map(|(a, b)| [a, b]))
            .chain(differing)
    }
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
        let mut report = Report::default();
        self.compare_target(seen.request, &mut report);
        self.compare_values(seen.body, &mut report);
        self.compare_texts(seen, &mut report);
        self.compare_tools(seen.body, &mut report);
        self.compare_earlier(seen, &mut report);
        self.compare_delay(seen.delay, &mut report);
        report.0
    }

    fn compare_target(&self, request: &Recorded, report: &mut Report) {
        if let Some(path) = &self.line.path {
            report.equal("path", path, &request.path);
        }
        if let Some(paths) = &self.line.path_any {
            let expected = format!("one of {paths:?}");
            report.hold(paths.contains(&request.path), "path", expected, shown(&request.path));
        }
        if let Some(query) = &self.line.query {
            report.equal("query", query, &request.query);
        }
        for (name, wanted) in &self.line.headers {
            let (wanted, got) = (wanted.as_deref(), request.header(name));
            let say = |value: Option<&str>| value.map_or("no such header".to_string(), shown);
            report.hold(got == wanted, &format!("header {name}"), say(wanted), say(got));
        }
    }

    fn compare_values(&self, body: &Value, report: &mut Report) {
        for (pointer, wanted) in &self.line.body {
            report.value(body, pointer, &cut(&wanted.to_string()), |got| got == Some(wanted));
        }
        for pointer in &self.line.body_present {
            report.value(body, pointer, "a value", |got| got.is_some());
        }
        for pointer in &self.line.body_absent {
            report.value(body, pointer, "nothing", |got| got.is_none());
        }
        for (pointer, pattern) in &self.patterns {
            let matches = |value: &Value| pattern.matches(&text_of(value));
            report.value(body, pointer, &format!("a text like {pattern}"), |got| got.is_some_and(matches));
        }
        for pointer in &self.line.body_json_parses {
            let parses = |value: &Value| value.as_str().is_some_and(|text| serde_json::from_str::<Value>(text).is_ok());
            report.value(body, pointer, "a string that holds JSON", |got| got.is_some_and(parses));
        }
        for pair in &self.line.body_equal_pointers {
            report.values(body, pair, "the same value", |a, b| a.is_some() && a == b);
        }
        for pair in &self.line.body_distinct_pointers {
            report.values(body, pair, "two values", |a, b| a != b);
        }
    }

    fn compare_texts(&self, seen: &Seen, report: &mut Report) {
        let line = &self.line;
        let raw = String::from_utf8_lossy(&seen.request.body);
        // Looked for in the bytes and in every decoded string: a quote or a line break looks
        // different in the bytes, and a secret must be found however it is spelled.
        let in_body = |text: &str| raw.contains(text) || any_string(seen.body, &|string| string.contains(text));
        report.contain("body", &line.body_contains.0, &line.body_lacks.0, &raw, in_body);
        let system = system_text(seen.body);
        let in_system = |text: &str| system.contains(text);
        report.contain("system text", &line.system_contains.0, &line.system_lacks.0, &system, in_system);
        let last = at(seen.body, "/messages/-1/content").map(text_of).unwrap_or_default();
        let in_last = |text: &str| last.contains(text);
        report.contain("last message", &line.last_contains.0, &line.last_lacks.0, &last, in_last);
    }

    fn compare_tools(&self, body: &Value, report: &mut Report) {
        if let Some(wanted) = &self.line.tools {
            let got = offered(body);
            report.hold(&got == wanted, "tools", format!("{wanted:?}"), format!("{got:?}"));
        }
        if let Some(wanted) = self.line.tools_run {
            // Counted on the wire, where a tool that ran is a tool message.
            let got = messages(body).iter().filter(|message| message["role"] == "tool").count();
            report.hold(got == wanted, "tools run", wanted.to_string(), got.to_string());
        }
    }

    fn compare_earlier(&self, seen: &Seen, report: &mut Report) {
        let text = |request: &Recorded| shown(&String::from_utf8_lossy(&request.body));
        if let Some(n) = self.line.same_body_as {
            let other = seen.earlier.get(n);
            let same = other.is_some_and(|other| other.body == seen.request.body);
            let expected = other.map_or("a request that was never made".to_string(), text);
            report.hold(same, &format!("same body as request {n}"), expected, text(seen.request));
        }
        for (pointer, n) in &self.line.body_differs {
            let other = seen.earlier.get(*n).map(Recorded::json);
            let expected = format!("a change since request {n}");
            report.value(seen.body, pointer, &expected, |got| {
                other.as_ref().is_some_and(|other| at(other, pointer) != got)
            });
        }
    }

    fn compare_delay(&self, delay: Option<Duration>, report: &mut Report) {
        let got = delay.map_or("the first request".to_string(), |delay| format!("{delay:?}"));
        if let Some(least) = self.line.min_delay_ms {
            let waited = delay.is_some_and(|delay| delay >= Duration::from_millis(least));
            report.hold(waited, "delay", format!("at least {least} ms"), &got);
        }
        if let Some(most) = self.line.max_delay_ms {
            let prompt = delay.is_none_or(|delay| delay <= Duration::from_millis(most));
            report.hold(prompt, "delay", format!("at most {most} ms"), &got);
        }
    }
}

/// What holds for every request: JSON with messages, and each call followed by exactly one result,
/// in call order.
pub(super) fn invariants(body: &Value) -> Vec<Difference> {
    let mut report = Report::default();
    match body["messages"].as_array().map(|messages| paired(messages)) {
        Some(Ok(())) => {}
        Some(Err(broken)) => report.hold(false, "pairs", "after each call exactly one result, in call order", broken),
        None => report.hold(false, "body", "JSON with a list of messages", cut(&body.to_string())),
    }
    report.0
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
