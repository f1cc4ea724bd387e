//! What the model sees of a server: a schema that model servers take, and a result as text.

use serde_json::{Map, Value, json};

/// The members of a schema that the model is shown. Whole schemas are refused by some model servers (`$schema`,
/// `additionalProperties`, `anyOf`: wire.md F11), and a refusal costs the whole run.
const KEPT: [&str; 4] = ["type", "description", "enum", "required"];
/// Deeper parts are left open: anything goes there, and the server says what is wrong.
const DEPTH: usize = 6;

/// A tool's parameters: an object, in the small part of JSON Schema that every model server knows.
pub fn parameters(schema: &Value) -> Value {
    let Value::Object(mut slim) = slim(schema, DEPTH) else { return json!({"type": "object", "properties": {}}) };
    slim.insert("type".into(), "object".into());
    slim.entry("properties").or_insert_with(|| json!({}));
    slim.into()
}

fn slim(schema: &Value, depth: usize) -> Value {
    let Some(all) = schema.as_object().filter(|_| depth > 0) else { return json!({}) };
    let all = one_of_several(all);
    let mut slim = Map::new();
    for (name, value) in &all {
        match (name.as_str(), value) {
            ("properties", Value::Object(parts)) => {
                let parts = parts.iter().map(|(name, part)| (name.clone(), self::slim(part, depth - 1)));
                slim.insert(name.clone(), parts.collect::<Map<_, _>>().into());
            }
            ("items", part) => drop(slim.insert(name.clone(), self::slim(part, depth - 1))),
            // ["string", "null"]: what is optional is not required anyway.
            ("type", Value::Array(types)) => {
                let first = types.iter().find(|one| *one != "null");
                first.map(|one| slim.insert(name.clone(), one.clone()));
            }
            (kept, value) if KEPT.contains(&kept) => drop(slim.insert(name.clone(), value.clone())),
            _ => {}
        }
    }
    slim.into()
}

/// `anyOf: [string, null]` is how Python servers write an optional string: the first that is something stands for all.
fn one_of_several(schema: &Map<String, Value>) -> Map<String, Value> {
    let mut schema = schema.clone();
    let several = schema.remove("anyOf").or_else(|| schema.remove("oneOf"));
    let parts = several.as_ref().and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_object);
    if let Some(first) = parts.into_iter().find(|part| part.get("type").is_some_and(|kind| kind != "null")) {
        for (name, value) in first {
            schema.entry(name.clone()).or_insert_with(|| value.clone());
        }
    }
    schema
}

/// A result as text. What is not text is named, with its kind and size: the model should know that there was a picture.
pub fn text_of(result: &Value) -> String {
    let parts = result["content"].as_array().map(Vec::as_slice).unwrap_or_default();
    let text = parts.iter().map(part).collect::<Vec<_>>().join("\n");
    match (text.is_empty(), &result["structuredContent"]) {
        (false, _) => text,
        (true, Value::Null) => "(the result is empty)".into(),
        (true, structured) => structured.to_string(),
    }
}

fn part(part: &Value) -> String {
    let word = |pointer: &str| part.pointer(pointer).and_then(Value::as_str).unwrap_or("?");
    match word("/type") {
        "text" => word("/text").into(),
        kind @ ("image" | "audio") => {
            format!("({kind} left out: {}, {} bytes of base64)", word("/mimeType"), word("/data").len())
        }
        "resource_link" => format!("(a resource: {} {})", word("/name"), word("/uri")),
        "resource" => match part["resource"]["text"].as_str() {
            Some(text) => format!("(the resource {})\n{text}", word("/resource/uri")),
            None => format!("(the resource {} left out: {})", word("/resource/uri"), word("/resource/mimeType")),
        },
        kind => format!("({kind} left out)"),
    }
}

/// At most so many characters.
pub fn cut(text: &str, most: usize) -> String {
    match text.char_indices().nth(most) {
        Some((at, _)) => format!("{}…", &text[..at]),
        None => text.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_schema_keeps_what_every_model_server_knows() {
        let schema = json!({"$schema": "x", "type": "object", "additionalProperties": false, "required": ["path"],
            "properties": {
                "path": {"type": "string", "minLength": 1, "description": "where"},
                "lines": {"anyOf": [{"type": "null"}, {"type": "array", "items": {"type": ["integer", "null"]}}], "default": null},
                "kind": {"enum": ["a", "b"], "title": "Kind"}}});
        assert_eq!(
            parameters(&schema),
            json!({"type": "object", "required": ["path"], "properties": {
                "path": {"type": "string", "description": "where"},
                "lines": {"type": "array", "items": {"type": "integer"}},
                "kind": {"enum": ["a", "b"]}}})
        );
        for broken in [json!(null), json!("x"), json!([])] {
            assert_eq!(parameters(&broken), json!({"type": "object", "properties": {}}));
        }
    }

    #[test]
    fn what_is_no_text_is_named() {
        let result = json!({"content": [{"type": "text", "text": "one"}, {"type": "image", "mimeType": "image/png", "data": "AAAA"},
            {"type": "resource_link", "name": "log", "uri": "file:///l"}, {"type": "resource", "resource": {"uri": "a:b", "text": "two"}},
            {"type": "hologram"}]});
        let text = "one\n(image left out: image/png, 4 bytes of base64)\n(a resource: log file:///l)\n(the resource a:b)\ntwo\n(hologram left out)";
        assert_eq!(text_of(&result), text);
        assert_eq!(text_of(&json!({"content": [], "structuredContent": {"sum": 3}})), r#"{"sum":3}"#);
        assert_eq!(text_of(&json!({})), "(the result is empty)");
    }
}
