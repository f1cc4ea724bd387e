//! What a model meant by the arguments of a call.
//!
//! They come as text that should be one JSON object. A plain parse comes first, always: a repair that looks for `}{`
//! breaks valid arguments that hold code (B17). What then fails is accepted only where one reading is possible: nothing
//! for a tool without parameters, the object in a string, the same object again, a template token behind it. Everything
//! else is an error that quotes the place, for the model to read. Cut or broken JSON is never completed: nobody asked for
//! half a file.

use serde_json::{Deserializer, Map, Value};

/// The arguments as an object, or why they cannot be used.
pub fn read(raw: &str) -> Result<Map<String, Value>, String> {
    if raw.trim().is_empty() {
        return Ok(Map::new()); // a tool without parameters (B12)
    }
    match serde_json::from_str::<Value>(raw) {
        Ok(value) => from_value(value),
        Err(error) => repeated(raw).or_else(|| before_a_token(raw)).ok_or_else(|| says_where(raw, &error)),
    }
}

fn from_value(value: Value) -> Result<Map<String, Value>, String> {
    match value {
        Value::Object(members) => Ok(members),
        Value::Null => Ok(Map::new()),
        // Encoded twice (B13).
        Value::String(text) => match serde_json::from_str(&text) {
            Ok(Value::Object(members)) => Ok(members),
            _ => Err(format!("they must be a JSON object, not the string {:?}", crate::complaint::cut(&text, 60))),
        },
        other => Err(format!("they must be a JSON object, not {}", crate::complaint::cut(&other.to_string(), 60))),
    }
}

/// The whole object behind its own beginning: some parsers of vLLM send it again in the last chunk (B14). The same
/// object twice is the case where the beginning is all of it.
fn repeated(raw: &str) -> Option<Map<String, Value>> {
    let raw = raw.trim();
    let parts = raw.match_indices('{').skip(1).map(|(at, _)| raw.split_at(at));
    let wholes = parts.filter(|(head, whole)| whole.starts_with(head.trim_end()));
    // A model that writes `{{{{{…` for ever would make each of them a candidate.
    wholes.take(16).find_map(|(_, whole)| serde_json::from_str(whole).ok())
}

/// An object with nothing behind it but a token of the model's template, such as `<|endoftext|>` (B18).
fn before_a_token(raw: &str) -> Option<Map<String, Value>> {
    let mut values = Deserializer::from_str(raw).into_iter::<Map<String, Value>>();
    let members = values.next()?.ok()?;
    let rest = raw[values.byte_offset()..].trim();
    let token = rest.starts_with('<') && rest.ends_with('>') && !rest.contains(['{', '"', ' ', '\n']);
    (token && rest.len() <= 60).then_some(members)
}

/// The parser's words, with the text in front of the place.
fn says_where(raw: &str, error: &serde_json::Error) -> String {
    let (line, column) = (error.line(), error.column());
    let line_start: usize = raw.split_inclusive('\n').take(line.saturating_sub(1)).map(str::len).sum();
    let before = String::from_utf8_lossy(&raw.as_bytes()[..(line_start + column).min(raw.len())]).into_owned();
    let far = before.char_indices().rev().nth(39).map_or(0, |(at, _)| at);
    let dots = if far > 0 { "…" } else { "" };
    let what = error.to_string();
    let what = what.split(" at line ").next().unwrap_or_default();
    format!("they are not one JSON object: {what} (line {line}, column {column}, after `{dots}{}`)", &before[far..])
}

/// The name of the offered tool that a text calls, if the text is a JSON block that does nothing else. Models without
/// tool support write calls this way (B23); they are never run.
pub fn call_as_text<'a>(text: &str, names: impl Iterator<Item = &'a str>) -> Option<String> {
    let bare = MARKS.iter().fold(text.to_owned(), |text, mark| text.replace(mark, " "));
    let values = Deserializer::from_str(&bare).into_iter::<Value>();
    let values: Vec<Value> = values.collect::<Result<_, _>>().ok()?;
    let calls: Vec<&str> = values.iter().map(called).collect::<Option<_>>()?;
    let first = calls.first()?;
    names.into_iter().find(|name| name == first).map(str::to_owned)
}

/// What models put around such a block. Inside a JSON string it is blanked as well, which changes nothing here.
const MARKS: [&str; 5] = ["```json", "```tool_call", "```", "<tool_call>", "</tool_call>"];

/// The name in a value that looks like a call.
fn called(value: &Value) -> Option<&str> {
    let call = if value["function"].is_object() { &value["function"] } else { value };
    let has_arguments = ["arguments", "parameters", "args", "input"].iter().any(|name| call.get(name).is_some());
    call["name"].as_str().filter(|_| has_arguments)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use serde_json::json;

    #[test]
    fn what_has_one_reading_is_read() {
        let path = json!({"path": "a"});
        let rows = [
            ("", json!({})),
            ("null", json!({})),
            ("{}", json!({})),
            (r#"{"path":"a"}"#, path.clone()),
            (r#""{\"path\":\"a\"}""#, path.clone()),
            (r#"{"path":"a"}{"path":"a"}"#, path.clone()),
            (r#"{"path":"a"} {"path":"a"}"#, path.clone()),
            (r#"{"pa{"path":"a"}"#, path.clone()),
            (r#"{"path":"a"}<|endoftext|>"#, path),
            (r#"{"a":"fn(){}{\"}{\\"}"#, json!({"a": "fn(){}{\"}{\\"})),
        ];
        for (raw, wanted) in rows {
            assert_eq!(read(raw).map(Value::from), Ok(wanted), "{raw}");
        }
    }

    #[test]
    fn what_has_not_is_an_error_that_quotes_the_place() {
        let rows = [
            (
                r#"{"path":"big.txt","content":"lorem ips"#,
                "they are not one JSON object: EOF while parsing a string (line 1, column 38, after \
                 `{\"path\":\"big.txt\",\"content\":\"lorem ips`)",
            ),
            (
                r#"{"c":"rm a"}{"c":"rm b"}"#,
                "they are not one JSON object: trailing characters (line 1, column 13, after `{\"c\":\"rm a\"}{`)",
            ),
            ("[1]", "they must be a JSON object, not [1]"),
            ("\"ls\"", "they must be a JSON object, not the string \"ls\""),
        ];
        for (raw, wanted) in rows {
            assert_eq!(read(raw), Err(wanted.into()), "{raw}");
        }
        assert!(read("{\"a\":1} rm -rf <x>").is_err());
    }

    #[test]
    fn a_call_written_as_text_is_recognised_only_if_it_is_all_there_is() {
        let called = |text: &str| call_as_text(text, ["read", "bash"].into_iter());
        let call = r#"{"name": "read", "arguments": {"path": "a"}}"#;
        for text in [
            call.to_owned(),
            format!("```json\n{call}\n```"),
            format!("<tool_call>\n{call}\n</tool_call>"),
            format!("{call}\n{call}"),
            format!("```json\n{call}\n```\n\n```json\n{call}\n```\n\n\n"),
            r#"{"type":"function","function":{"name":"read","parameters":{}}}"#.into(),
        ] {
            assert_eq!(called(&text).as_deref(), Some("read"), "{text}");
        }
        for text in
            ["", "[]", "read", r#"{"name":"read"}"#, r#"{"name":"other","arguments":{}}"#, &format!("Use {call}")]
        {
            assert_eq!(called(text), None, "{text}");
        }
    }

    proptest! {
        #[test]
        fn a_cut_object_is_never_read(path in ".{0,20}", content in ".{0,40}", cut in 1usize..200) {
            let whole = json!({"path": path, "content": content}).to_string();
            let end = (1..=cut.min(whole.len() - 1)).rev().find(|end| whole.is_char_boundary(*end)).unwrap_or(1);
            prop_assert!(read(&whole[..end]).is_err());
        }
    }
}
