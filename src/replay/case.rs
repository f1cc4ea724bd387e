//! One file of `tests/cases/wire` becomes a script and what the client should make of it.
//!
//! Only the runner in tests/ uses it; it is here because the parser of exchanges is, and a second
//! one would drift.

use super::parse::Builder;
use super::script::Script;
use serde::Deserialize;
use serde_json::{Map, Value, json};

/// How often a single response is played when the client is expected to throw it away and ask
/// again: more often than any client retries.
const RETRIES: usize = 16;

/// A wire case; the fields of the schema beside the exchanges.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Case {
    /// The file name without `.json`.
    pub id: String,
    /// Where the shape was seen.
    pub source: String,
    /// What goes wrong, and what is wanted.
    pub why: String,
    /// How far clients agree on it.
    pub consensus: String,
    /// The client's settings: `max_tokens`, `base_url_any`, `idle_timeout_ms` … (see the schema).
    #[serde(default)]
    pub config: Map<String, Value>,
    /// Tool name to the text that the stub returns.
    #[serde(default)]
    pub stub_tools: Map<String, Value>,
    /// What the client should make of it.
    pub expect: CaseExpect,
    /// The case only makes sense if the client does this.
    pub requires: Option<String>,
    /// A feature that the client may lack.
    #[serde(default)]
    pub optional: bool,
    response: Option<Value>,
    #[serde(default)]
    exchange: Vec<Map<String, Value>>,
}

/// What the client should make of a case.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CaseExpect {
    /// The text of the last answer.
    pub text: String,
    /// The reasoning, if any.
    pub reasoning: Option<String>,
    /// The calls of the answer.
    pub tool_calls: Vec<CaseCall>,
    /// What becomes of the message.
    pub outcome: CaseOutcome,
    /// Parts of the final message, whatever their case.
    #[serde(default)]
    pub error_mentions: Vec<String>,
    /// What the final message must not hold.
    #[serde(default)]
    pub error_lacks: Vec<String>,
    /// The exact number of requests.
    pub requests: Option<usize>,
    /// The exact number of tools run.
    pub tools_run: Option<usize>,
    /// The server's finish_reason.
    pub finish: Option<String>,
    /// Token counts.
    pub usage: Option<Value>,
    /// What may already be on the screen when the attempt fails.
    pub partial_text: Option<String>,
}

/// A call that the client should see.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CaseCall {
    /// The tool.
    pub name: String,
    /// The parsed arguments, if they are usable.
    pub arguments: Option<Value>,
    /// Must not be run, and is answered with an error.
    #[serde(default)]
    pub invalid: bool,
    /// The id, where it matters.
    pub id: Option<String>,
    /// The text of the arguments, where it matters.
    pub raw: Option<String>,
}

/// What becomes of a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum CaseOutcome {
    /// It is usable.
    Ok,
    /// The attempt is thrown away and the same request is sent again, a few times.
    Retry,
    /// Stop and show a message.
    Error,
}

/// Parses a case file. A single `response` is played once, or again and again where a retry is
/// expected.
pub fn from_case(json: &str) -> Result<(Script, Case), String> {
    let case: Case = serde_json::from_str(json).map_err(|error| error.to_string())?;
    let mut builder = Builder::default();
    match (&case.response, case.exchange.is_empty()) {
        (Some(response), true) => {
            let repeat = if case.expect.outcome == CaseOutcome::Retry { RETRIES } else { 1 };
            builder.add(0, &json!({"response":response,"repeat":repeat}).to_string())?;
        }
        (None, false) => {
            for (place, exchange) in case.exchange.iter().enumerate() {
                builder.add(0, &json!(exchange).to_string()).map_err(|error| format!("exchange {place}: {error}"))?;
            }
        }
        _ => {
            return Err(format!("{}: needs either `response` or `exchange`", case.id));
        }
    }
    Ok((builder.finish()?, case))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::Path;

    #[test]
    fn every_wire_case_parses() {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/cases/wire");
        let paths = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
        let mut count = 0;
        for path in paths.filter(|path| path.extension().is_some_and(|extension| extension == "json")) {
            let parsed = from_case(&std::fs::read_to_string(&path).unwrap());
            let (script, case) = parsed.unwrap_or_else(|error| panic!("{}: {error}", path.display()));
            assert_eq!(path.file_stem().unwrap().to_str(), Some(case.id.as_str()));
            assert!(!script.sections[0].exchanges.is_empty());
            count += 1;
        }
        assert!(count >= 87, "only {count} cases were found");
    }

    #[test]
    fn a_single_response_outlasts_the_retries_only_where_they_are_expected() {
        for (outcome, repeat) in [("ok", 1), ("error", 1), ("retry", RETRIES)] {
            let case = json!({"id":"x","source":"","why":"","consensus":"","response":{"end":"stall"},
                "expect":{"text":"","reasoning":null,"tool_calls":[],"outcome":outcome}});
            let (script, _) = from_case(&case.to_string()).unwrap();
            assert_eq!(script.sections[0].exchanges[0].repeat, repeat);
        }
    }

    #[test]
    fn a_typo_in_a_case_is_an_error() {
        let error = from_case(r#"{"id":"x","expct":{}}"#).err().unwrap_or_default();
        assert!(error.contains("expct"), "{error}");
    }
}
