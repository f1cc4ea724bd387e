//! The format of scripts and recordings: lines of JSON become a typed [`Script`].
//!
//! Each line is one of (blank lines are skipped; each may carry `"name"`, what the line asserts, in
//! words):
//!
//! ```json
//! {"sample":1}   or   {"section":"a denied write"}
//! {"answer":"y"}
//! {"expect_request":{…},"when":{…},"response":{…},"repeat":4}
//! {"check":{"file":"greet.sh","contains":"hi"}}
//! ```
//!
//! A `response` is raw (`status`, `headers`, `chunks`, `end`, `keepalive`; a chunk is a string,
//! `{"text":…,"pause_ms":N}` or `{"b64":…,"pause_ms":N}`) or has the shorthand in place of
//! `chunks`:
//!
//! ```json
//! {"text":"I fix it.","reasoning":"…","calls":[{"name":"edit","arguments":{…}},{"name":"read","raw":"{broken"}],"finish":"stop","usage":{…}}
//! {"status":503,"error":"busy"}
//! ```
//!
//! With an `end` other than `eof` the shorthand stops before its finish_reason. The conditions of
//! `expect_request` and `when` are the fields in `expect`, those of `check` in `check`.
//!
//! An unknown key is an error that names the line: a typo in `body_absent` must not become an
//! assertion that always holds. Hence typed structs with `deny_unknown_fields` and no untagged
//! enum, whose errors cannot say which key was wrong.

use super::base64;
use super::check::CheckLine;
use super::expect::{Expect, ExpectLine};
use super::script::{Body, Chunk, End, Exchange, KeepAlive, Response, Script, Section};
use super::shorthand::{Call, Reply};
use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;
use std::collections::BTreeMap;

/// A line as it stands in the file: exactly one kind of it may be there.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Line {
    name: Option<String>,
    sample: Option<u32>,
    section: Option<String>,
    answer: Option<String>,
    check: Option<CheckLine>,
    when: Option<ExpectLine>,
    expect_request: Option<ExpectLine>,
    response: Option<ResponseLine>,
    repeat: Option<usize>,
}

/// A `response` as it stands in the file: raw chunks, or the shorthand.
#[derive(Deserialize, Default)]
#[serde(deny_unknown_fields)]
struct ResponseLine {
    status: Option<u16>,
    headers: Option<BTreeMap<String, String>>,
    chunks: Option<Vec<ChunkLine>>,
    end: Option<String>,
    keepalive: Option<KeepAlive>,
    text: Option<String>,
    reasoning: Option<String>,
    calls: Option<Vec<CallLine>>,
    finish: Option<String>,
    usage: Option<Value>,
    error: Option<String>,
}

/// A call of the shorthand: `arguments` is JSON, kept as it is written (a person watches the keys
/// arrive in that order); `raw` is any text in its place.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct CallLine {
    id: Option<String>,
    name: String,
    arguments: Option<Box<RawValue>>,
    raw: Option<String>,
}

/// A chunk: a string, `{"text":…}` or `{"b64":…}`, the objects with or without `pause_ms`.
#[derive(Deserialize)]
#[serde(try_from = "Value")]
struct ChunkLine(Chunk);

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ChunkObject {
    text: Option<String>,
    b64: Option<String>,
    pause_ms: Option<u64>,
}

impl TryFrom<Value> for ChunkLine {
    type Error = String;

    fn try_from(value: Value) -> Result<Self, String> {
        if let Value::String(text) = value {
            return Ok(Self(Chunk { bytes: text.into_bytes(), pause_ms: None }));
        }
        let object: ChunkObject = serde_json::from_value(value).map_err(|error| format!("chunk: {error}"))?;
        let bytes = match (object.text, object.b64) {
            (Some(text), None) => text.into_bytes(),
            (None, Some(b64)) => base64::decode(&b64)?,
            _ => return Err("chunk: needs either `text` or `b64`".to_string()),
        };
        Ok(Self(Chunk { bytes, pause_ms: object.pause_ms }))
    }
}

/// Collects lines into sections; counts the calls, so that their ids are unique over the script.
#[derive(Default)]
pub(super) struct Builder {
    sections: Vec<Section>,
    calls: usize,
}

impl Builder {
    /// Adds one line of the file.
    pub fn add(&mut self, number: usize, text: &str) -> Result<(), String> {
        // serde_json counts lines of what it is given, which is always one.
        let line: Line = serde_json::from_str(text)
            .map_err(|error| error.to_string().replace(" at line 1 column ", " at column "))?;
        let heading = match (&line.sample, &line.section) {
            (None, None) => None,
            (Some(sample), None) => Some(sample.to_string()),
            (None, Some(section)) => Some(section.clone()),
            (Some(_), Some(_)) => return Err("`sample` and `section` on one line".to_string()),
        };
        let is_exchange =
            line.expect_request.is_some() || line.response.is_some() || line.when.is_some() || line.repeat.is_some();
        match (heading, &line.answer, line.check.is_some(), is_exchange) {
            (Some(name), None, false, false) => self.begin(name),
            (None, Some(answer), false, false) => self.section().map(|section| section.answers.push(answer.clone())),
            (None, None, true, false) => self.add_check(number, line),
            (None, None, false, true) => self.add_exchange(number, line),
            (None, None, false, false) => {
                Err("says nothing: needs `expect_request`, `response`, `answer`, `check`, `sample` or `section`"
                    .to_string())
            }
            _ => {
                Err("does more than one thing: an exchange, an answer, a check and a section each have their own line"
                    .to_string())
            }
        }
    }

    /// The script, if it plays anything.
    pub fn finish(self) -> Result<Script, String> {
        if self.sections.is_empty() {
            return Err("the script is empty".to_string());
        }
        Ok(Script { sections: self.sections })
    }

    fn begin(&mut self, name: String) -> Result<(), String> {
        if self.sections.first().is_some_and(|first| first.name.is_empty()) {
            return Err("the first section begins after other lines; put its line on top".to_string());
        }
        if name.is_empty() || self.sections.iter().any(|section| section.name == name) {
            return Err(format!("the section name {name:?} is empty or used twice"));
        }
        self.sections.push(Section { name, ..Section::default() });
        Ok(())
    }

    /// The section that lines go to; without any heading, the unnamed one.
    fn section(&mut self) -> Result<&mut Section, String> {
        if self.sections.is_empty() {
            self.sections.push(Section::default());
        }
        self.sections.last_mut().ok_or_else(|| "no section".to_string())
    }

    fn add_check(&mut self, number: usize, line: Line) -> Result<(), String> {
        if let Some(check) = line.check {
            let check = check.build(number, line.name)?;
            self.section()?.checks.push(check);
        }
        Ok(())
    }

    fn add_exchange(&mut self, number: usize, line: Line) -> Result<(), String> {
        let exchange = Exchange {
            line: number,
            name: line.name,
            when: line.when.map(ExpectLine::build).transpose()?,
            expect: line.expect_request.unwrap_or_default().build()?,
            response: self.response(line.response.unwrap_or_else(ResponseLine::done))?,
            repeat: line.repeat.unwrap_or(1),
        };
        if exchange.when.as_ref().is_some_and(Expect::is_empty) {
            return Err("`when` names no condition".to_string());
        }
        if exchange.repeat == 0 {
            return Err("`repeat` counts the requests that the line answers, at least 1".to_string());
        }
        self.section()?.exchanges.push(exchange);
        Ok(())
    }

    fn response(&mut self, line: ResponseLine) -> Result<Response, String> {
        let status = line.status.unwrap_or(200);
        let end = end(line.end.as_deref(), line.keepalive.clone())?;
        let default_type = if line.error.is_some() { "application/json" } else { "text/event-stream" };
        let headers = match line.headers.clone() {
            Some(headers) => headers.into_iter().collect(),
            None => vec![("Content-Type".to_string(), default_type.to_string())],
        };
        if let Some((name, _)) = headers.iter().find(|(name, value)| format!("{name}{value}").contains(['\r', '\n'])) {
            return Err(format!("header {name:?} holds a line break"));
        }
        Ok(Response { status, headers, body: self.body(line)?, end })
    }

    fn body(&mut self, line: ResponseLine) -> Result<Body, String> {
        let means = line.text.is_some()
            || line.reasoning.is_some()
            || line.calls.is_some()
            || line.finish.is_some()
            || line.usage.is_some();
        match (line.chunks, line.error, means) {
            (Some(chunks), None, false) => Ok(Body::Chunks(chunks.into_iter().map(|chunk| chunk.0).collect())),
            (None, Some(error), false) => {
                let bytes = serde_json::json!({"error":{"message":error}}).to_string().into_bytes();
                Ok(Body::Chunks(vec![Chunk { bytes, pause_ms: None }]))
            }
            (None, None, true) => Ok(Body::Reply(Reply {
                text: line.text.unwrap_or_default(),
                reasoning: line.reasoning.unwrap_or_default(),
                calls: line.calls.unwrap_or_default().into_iter().map(|call| self.call(call)).collect::<Result<_, _>>()?,
                finish: line.finish,
                usage: line.usage,
            })),
            // A fault needs no body: {"status":0}, {"end":"stall"}.
            (None, None, false) => Ok(Body::Chunks(vec![])),
            _ => Err("`chunks`, `error` and the shorthand (`text`, `reasoning`, `calls`, `finish`, `usage`) exclude each other".to_string()),
        }
    }

    fn call(&mut self, line: CallLine) -> Result<Call, String> {
        self.calls += 1;
        let arguments = match (line.arguments, line.raw) {
            (Some(arguments), None) => arguments.get().to_string(),
            (None, Some(raw)) => raw,
            _ => {
                return Err(format!("the call of {:?} needs either `arguments` or `raw`", line.name));
            }
        };
        let id = line.id.unwrap_or_else(|| format!("call_{}", self.calls));
        Ok(Call { id, name: line.name, arguments })
    }
}

impl ResponseLine {
    /// The reply of a line that only has expectations: it ends the turn.
    fn done() -> Self {
        Self { text: Some("Done.".to_string()), ..Self::default() }
    }
}

fn end(word: Option<&str>, keepalive: Option<KeepAlive>) -> Result<End, String> {
    match (word, keepalive) {
        (None | Some("eof"), None) => Ok(End::Eof),
        (Some("truncate"), None) => Ok(End::Truncate),
        (Some("reset"), None) => Ok(End::Reset),
        (Some("stall"), None) => Ok(End::Stall),
        (Some("keepalive"), Some(keepalive)) => Ok(End::KeepAlive(keepalive)),
        (Some("keepalive"), None) => {
            Err("end `keepalive` needs {\"keepalive\":{\"chunk\":…,\"every_ms\":…}}".to_string())
        }
        (_, Some(_)) => Err("`keepalive` without \"end\":\"keepalive\"".to_string()),
        (Some(other), None) => Err(format!("unknown end {other:?}: eof, truncate, reset, stall or keepalive")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn error(script: &str) -> String {
        Script::parse(script).err().unwrap_or_default()
    }

    #[test]
    fn a_mistake_of_the_author_names_line_and_key() {
        for (line, words) in [
            (r#"{"expect_request":{"body_absnet":["/x"]}}"#, "unknown field `body_absnet`"),
            (r#"{"expect":{}}"#, "unknown field `expect`"),
            (r#"{"response":{"txt":"hi"}}"#, "unknown field `txt`"),
            (r#"{"response":{"chunks":[{"txt":"hi"}]}}"#, "unknown field `txt`"),
            (r#"{"response":{"calls":[{"name":"read","argument":{}}]}}"#, "unknown field `argument`"),
            (r#"{"response":{"calls":[{"name":"read"}]}}"#, "either `arguments` or `raw`"),
            (r#"{"response":{"chunks":["a"],"text":"b"}}"#, "exclude each other"),
            (r#"{"response":{"chunks":[{"b64":"!!!!"}]}}"#, "base64"),
            (r#"{"response":{"end":"cut"}}"#, "unknown end \"cut\""),
            (r#"{"response":{"end":"keepalive"}}"#, "every_ms"),
            (r#"{"response":{"headers":{"A":"b\r\nC: d"}}}"#, "line break"),
            (r#"{"check":{"file":"a","containz":"b"}}"#, "unknown field `containz`"),
            (r#"{"check":{"file":"a"}}"#, "`file` needs one of `equals`"),
            (r#"{"check":{"contains":"a"}}"#, "needs a `file`"),
            (r#"{"check":{"exit":0,"log_contains":"x"}}"#, "more than one thing"),
            (r#"{"check":{}}"#, "asserts nothing"),
            (r#"{"check":{"file":"../x","exists":true}}"#, "out of the workspace"),
            (r#"{"check":{"file":"/etc/passwd","exists":true}}"#, "out of the workspace"),
            (r#"{"name":"only a name"}"#, "says nothing"),
            (r#"{"answer":"y","check":{"exit":0}}"#, "more than one thing"),
            (r#"{"sample":1,"section":"a"}"#, "on one line"),
            (r#"{"sample":1}"#, "used twice"),
            (r#"{"when":{},"response":{"text":"x"}}"#, "no condition"),
            (r#"{"repeat":0}"#, "at least 1"),
            (r#"{"expect_request":{"pairs":false}}"#, "switched off"),
            (r#"{"expect_request":{"body":{"stream":true}}}"#, "does not begin with /"),
            (r#"{"expect_request":{"body_regex":{"/x":"a|b"}}}"#, "not supported"),
            (r#"{"expect_request":{"body_contains":7}}"#, "a string or a list of strings"),
            (r#"{"answer":"y""#, "EOF while parsing"),
            ("hello", "expected value"),
        ] {
            let error = error(&format!("{{\"sample\":1}}\n\n{line}"));
            assert!(error.starts_with("line 3: ") && error.contains(words), "{line}\n  {error}");
        }
        assert_eq!(error(" \n"), "the script is empty");
        assert!(error("{\"answer\":\"y\"}\n{\"sample\":1}").starts_with("line 2: the first section begins after"));
    }

    #[test]
    fn call_ids_are_unique_over_the_script_unless_given() {
        let script = r#"
            {"section":"a"}
            {"response":{"calls":[{"name":"read","arguments":{"b":1, "a":2}},{"name":"edit","raw":"{broken"}]}}
            {"section":"b"}
            {"response":{"calls":[{"name":"read","arguments":{},"id":"mine"},{"name":"bash","arguments":{}}]}}"#;
        let script = Script::parse(script).unwrap();
        let calls = |exchange: &Exchange| match &exchange.response.body {
            Body::Reply(reply) => reply.calls.clone(),
            Body::Chunks(_) => vec![],
        };
        let calls: Vec<Call> = script.sections.iter().flat_map(|section| &section.exchanges).flat_map(calls).collect();
        let ids: Vec<&str> = calls.iter().map(|call| call.id.as_str()).collect();
        assert_eq!(ids, ["call_1", "call_2", "mine", "call_4"]);
        assert_eq!((calls[0].arguments.as_str(), calls[1].arguments.as_str()), (r#"{"b":1, "a":2}"#, "{broken"));
    }

    #[test]
    fn raw_chunks_keep_their_bytes_and_pauses() {
        let script = r#"{"response":{"chunks":["a",{"text":"ü","pause_ms":7},{"b64":"/w=="}]}}"#;
        let script = Script::parse(script).unwrap();
        let Body::Chunks(chunks) = &script.sections[0].exchanges[0].response.body else { panic!("not raw") };
        let plain: Vec<_> = chunks.iter().map(|chunk| (chunk.bytes.as_slice(), chunk.pause_ms)).collect();
        assert_eq!(plain, [(&b"a"[..], None), ("ü".as_bytes(), Some(7)), (&[255][..], None)]);
    }

    #[test]
    fn an_error_is_json_and_a_line_without_response_says_done() {
        let script = r#"
            {"response":{"status":500,"error":"busy"}}
            {"expect_request":{"path":"/v1/chat/completions"}}"#;
        let script = Script::parse(script).unwrap();
        let [broken, plain] = &script.sections[0].exchanges[..] else { panic!("not two") };
        let Body::Chunks(chunks) = &broken.response.body else { panic!("not raw") };
        assert_eq!(chunks[0].bytes, br#"{"error":{"message":"busy"}}"#);
        assert_eq!(broken.response.headers[0].1, "application/json");
        assert!(matches!(&plain.response.body, Body::Reply(reply) if reply.text == "Done."));
    }

    proptest::proptest! {
        #[test]
        fn no_text_makes_the_parser_panic(text in "(\\{\"(check|response|answer|when)\":[\\[{\"a-z:}\\]]{0,20}\\}?\n?){0,3}") {
            let _ = Script::parse(&text);
        }
    }
}
