//! What a server complains about, in its own words.
//!
//! The same complaint comes as an HTTP status with a body, as an event in a stream that began with 200, or inside a
//! choice of it; and every vendor spells the body differently (wire.md, E1-E11). So there is one tolerant extractor,
//! and one reading of what the complaint means, and neither asks where it came from.
//!
//! Rejected: a type per vendor. The fields are few, and a gateway in front of a vendor mixes them anyway.

use serde_json::Value;
use std::fmt;

/// Longest excerpt of a body in which no words were found, and of words that are a page, in characters.
const MOST_OF_A_BODY: usize = 300;
/// Longest words of a server that are passed on, in characters: some gateways put the whole request into them.
const MOST_WORDS: usize = 600;

/// What is said in place of a web page, which is never shown.
pub const HTML: &str = "an HTML page came back instead of an answer";

/// One complaint.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Complaint {
    /// The HTTP status, or what a stream says instead; `None` if it does not.
    pub status: Option<u16>,
    /// Structured codes, types and parameter names, joined with blanks.
    pub codes: String,
    /// The server's words.
    pub words: String,
}

/// What a complaint means for the request that caused it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Meaning {
    /// The same request may succeed later.
    Passing,
    /// The conversation does not fit into the model's window.
    Overflow,
    /// The account is exhausted; waiting a minute changes nothing.
    Quota,
    /// Everything else: the same request fails again.
    Final,
}

impl fmt::Display for Complaint {
    /// `429: slow down`.
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        if let Some(status) = self.status {
            write!(f, "{status}: ")?;
        }
        if self.meaning() == Meaning::Overflow {
            write!(f, "the conversation is too long for the model's context window: ")?;
        }
        write!(f, "{}", self.words)
    }
}

impl Complaint {
    /// From an HTTP response that is no success.
    pub fn from_response(status: u16, body: &[u8]) -> Complaint {
        let text = String::from_utf8_lossy(body);
        let text = text.trim();
        let mut complaint = match serde_json::from_str::<Value>(text) {
            Ok(value) => Complaint::from_json(&value),
            Err(_) if text.starts_with('<') => Complaint::of(HTML),
            Err(_) if text.is_empty() => Complaint::of("(the server gave no reason)"),
            Err(_) => Complaint::of(&cut(text, MOST_OF_A_BODY)),
        };
        complaint.status = Some(status);
        complaint
    }

    /// From an error event: JSON, or plain text.
    pub fn from_event(text: &[u8]) -> Complaint {
        let text = String::from_utf8_lossy(text);
        match serde_json::from_str::<Value>(&text) {
            Ok(value) => Complaint::from_json(&value),
            Err(_) => Complaint::of(&cut(text.trim(), MOST_OF_A_BODY)),
        }
    }

    /// From a JSON text: a whole body, or what stands under its `error`.
    pub fn from_json(value: &Value) -> Complaint {
        let words = words(value).unwrap_or_else(|| cut(&value.to_string(), MOST_OF_A_BODY));
        let words: Vec<&str> = words.split_whitespace().collect(); // one line, however many the server sent
        let mut complaint = Complaint::of(&cut(&words.join(" "), MOST_WORDS));
        complaint.note_codes(value);
        complaint
    }

    /// In words of our own.
    pub fn of(words: &str) -> Complaint {
        Complaint { words: words.into(), ..Complaint::default() }
    }

    /// What it means.
    pub fn meaning(&self) -> Meaning {
        let said = self.said();
        let says_one_of = |list: &[&str]| list.iter().any(|part| said.contains(part));
        if says_one_of(QUOTA_CODES) {
            return Meaning::Quota;
        }
        if self.is_about_size() && says_one_of(OVERFLOW_WORDS) {
            return Meaning::Overflow;
        }
        match self.status {
            _ if said.contains("tool_use_failed") => Meaning::Passing, // the model's own fault: Groq, E3
            Some(501 | 505) => Meaning::Final, // "not implemented": whoever answers there is no such server
            Some(408 | 409 | 425 | 429 | 500..=599) | None => Meaning::Passing,
            Some(_) => Meaning::Final,
        }
    }

    /// Words, codes and parameter names in lower case, to search in.
    pub fn said(&self) -> String {
        format!("{} {}", self.words, self.codes).to_lowercase()
    }

    /// Whether the complaint can be about a too long request: "tokens" in a 429 is about a rate.
    fn is_about_size(&self) -> bool {
        matches!(self.status, None | Some(400 | 413 | 422 | 500))
    }

    /// Collects codes, and a status if one of them looks like one.
    fn note_codes(&mut self, value: &Value) {
        let inner = [&value["error"], &value["errors"][0], &value[0]["error"], &value["message"], value];
        for object in inner.into_iter().filter(|v| v.is_object()) {
            for name in ["status_code", "code", "type", "param", "status"] {
                let code = match &object[name] {
                    Value::String(text) => text.clone(),
                    Value::Number(number) => number.to_string(),
                    _ => continue,
                };
                if self.status.is_none() && name != "param" {
                    self.status = code.parse().ok().filter(|code| (400..600).contains(code));
                }
                self.codes.push_str(&code);
                self.codes.push(' ');
            }
        }
    }
}

/// Structured codes of an exhausted account. The bare word "quota" is not among them: DashScope, Gemini and Azure say it
/// when they only throttle (E9).
const QUOTA_CODES: &[&str] = &["insufficient_quota", "credit_balance_exhausted", "billing_hard_limit_reached"];

/// How servers say that the conversation is too long (E11).
const OVERFLOW_WORDS: &[&str] = &[
    "context length",
    "context_length_exceeded",
    "context size",
    "exceed_context_size",
    "context window",
    "contextwindowexceeded",
    "model_context_window_exceeded",
    "maximum context",
    "prompt is too long",
    "prompt too long",
    "input is too long",
    "input length and `max_tokens` exceed",
    "maximum prompt length",
    "reduce the length of the messages",
    "exceeds the maximum number of tokens",
    "too many input tokens",
    "exceeded model token limit", // Moonshot
    "prompt exceeds max length",  // z.ai
    "too large for model with",   // Mistral
    "input tokens exceed",        // OpenAI-compatible gateways
];

/// The words of an error, wherever the vendor keeps them.
fn words(value: &Value) -> Option<String> {
    let text = match value {
        Value::String(text) => text.trim().to_owned(),
        Value::Array(items) => items.iter().filter_map(words).collect::<Vec<_>>().join("; "),
        Value::Object(members) => {
            let found = ["error", "message", "detail", "errors", "msg", "error_description", "title"]
                .iter()
                .find_map(|name| members.get(*name).filter(|v| !v.is_null()).and_then(words))?;
            with_details(found, value)
        }
        _ => return None,
    };
    Some(text).filter(|text| !text.is_empty())
}

/// Adds where a field was refused (FastAPI's `loc`), and what a gateway's own upstream said (OpenRouter's `raw`).
fn with_details(words: String, value: &Value) -> String {
    let place: Vec<&str> = value["loc"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
    match (place.is_empty(), value["metadata"]["raw"].as_str()) {
        (false, _) => format!("{}: {words}", place.join(".")),
        (true, Some(raw)) => format!("{words} ({})", cut(raw.trim(), MOST_OF_A_BODY)),
        (true, None) => words,
    }
}

/// The first `most` characters, with a mark where something is missing.
pub fn cut(text: &str, most: usize) -> String {
    match text.char_indices().nth(most) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Vendors' bodies, each as (status, body, words, meaning).
    const BODIES: &[(u16, &str, &str, Meaning)] = &[
        (
            401,
            r#"{"error":{"message":"Invalid API Key","type":"authentication_error","code":401}}"#,
            "Invalid API Key",
            Meaning::Final,
        ),
        (404, r#"{"error":"model \"m\" not found"}"#, "model \"m\" not found", Meaning::Final),
        (400, r#"[{"error":{"code":400,"message":"bad schema"}}]"#, "bad schema", Meaning::Final),
        (
            422,
            r#"{"detail":[{"loc":["body","stream_options"],"msg":"extra fields not permitted"}]}"#,
            "body.stream_options: extra fields not permitted",
            Meaning::Final,
        ),
        (422, r#"{"message":{"detail":[{"loc":["body"],"msg":"no"}]}}"#, "body: no", Meaning::Final),
        (
            403,
            r#"{"result":null,"success":false,"errors":[{"code":10000,"message":"Authentication error"}]}"#,
            "Authentication error",
            Meaning::Final,
        ),
        (502, "<html><body>502</body></html>", "an HTML page came back instead of an answer", Meaning::Passing),
        (500, "", "(the server gave no reason)", Meaning::Passing),
        (
            429,
            r#"{"error":{"message":"You exceeded your quota","code":"insufficient_quota"}}"#,
            "You exceeded your quota",
            Meaning::Quota,
        ),
        (
            429,
            r#"{"error":{"message":"Allocated quota exceeded","code":"Throttling"}}"#,
            "Allocated quota exceeded",
            Meaning::Passing,
        ),
        (
            400,
            r#"{"error":{"code":400,"message":"request (9030 tokens) exceeds","type":"exceed_context_size_error"}}"#,
            "request (9030 tokens) exceeds",
            Meaning::Overflow,
        ),
        (
            502,
            r#"{"error":{"message":"Provider returned error","code":502,"metadata":{"raw":"boom"}}}"#,
            "Provider returned error (boom)",
            Meaning::Passing,
        ),
        (
            429,
            r#"{"error":{"message":"Rate limit: too many input tokens per minute"}}"#,
            "Rate limit: too many input tokens per minute",
            Meaning::Passing,
        ),
        (
            400,
            r#"{"error":{"message":"Prompt contains 99 tokens, too large for model with 32 maximum context"}}"#,
            "Prompt contains 99 tokens, too large for model with 32 maximum context",
            Meaning::Overflow,
        ),
        (418, r#"{"no":"words"}"#, r#"{"no":"words"}"#, Meaning::Final),
    ];

    #[test]
    fn words_and_meaning_of_vendors_bodies() {
        for (status, body, words, meaning) in BODIES {
            let complaint = Complaint::from_response(*status, body.as_bytes());
            assert_eq!((complaint.words.as_str(), complaint.meaning()), (*words, *meaning), "{body}");
        }
    }

    #[test]
    fn in_a_stream_the_code_stands_for_the_status() {
        let of = |text: &str| Complaint::from_event(text.as_bytes()).meaning();
        assert_eq!(of(r#"{"code":400,"message":"bad"}"#), Meaning::Final);
        assert_eq!(of(r#"{"error":{"code":"429","message":"slow"}}"#), Meaning::Passing);
        assert_eq!(of(r#"{"error":{"message":"x","code":"tool_use_failed","status_code":400}}"#), Meaning::Passing);
        assert_eq!(of(r#"{"error":"model runner has stopped"}"#), Meaning::Passing);
        assert_eq!(of("upstream died"), Meaning::Passing);
    }

    #[test]
    fn a_long_body_without_words_is_cut() {
        let complaint = Complaint::from_response(500, "é".repeat(5000).as_bytes());
        assert_eq!(complaint.words.chars().count(), MOST_OF_A_BODY + 1);
    }
}
