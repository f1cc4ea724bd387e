//! What an executable extension says of itself: the answer to `describe`.
//!
//! All fields are optional, and unknown ones are passed over, so that the protocol can grow. A known field of the
//! wrong type is an error that names it: `"confirm": "false"` taken for a question would be a silent surprise.
//!
//! Rejected: a derived deserialiser. Its errors give a line and a column of text that nobody wrote by hand, and not
//! the field.

use crate::tool::Spec;
use serde_json::{Map, Value, json};

/// The answer to `describe`.
#[derive(Debug, Default)]
pub struct Description {
    /// A piece of the system prompt; it stays the same for the whole run.
    pub system_prompt: String,
    /// Its tools.
    pub tools: Vec<Declared>,
    /// Whether it wants to be asked when the model wants to stop.
    pub on_stop: bool,
}

/// A tool as it was declared.
#[derive(Clone, Debug)]
pub struct Declared {
    /// How the model sees it.
    pub spec: Spec,
    /// Whether a call needs a yes.
    pub confirm: Confirm,
}

/// Whether a call needs a yes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Confirm {
    /// It runs at once.
    No,
    /// It asks. This holds for a tool that does not say.
    Yes,
    /// It asks in these words.
    With(String),
}

type Object = Map<String, Value>;

/// Reads the answer to `describe`; the error is the end of a sentence that begins with "describe ".
pub fn parse(text: &str) -> Result<Description, String> {
    let said: Object = serde_json::from_str(text)
        .map_err(|e| format!("did not print a JSON object ({e}); it printed {}", quote(text)))?;
    let tools = field(&said, "tools", "a list", Value::as_array)?.map(Vec::as_slice).unwrap_or_default();
    Ok(Description {
        system_prompt: field(&said, "system_prompt", "a string", Value::as_str)?.unwrap_or_default().trim().into(),
        tools: tools.iter().enumerate().map(|(at, tool)| declared(at, tool)).collect::<Result<_, _>>()?,
        on_stop: field(&said, "on_stop", "true or false", Value::as_bool)?.unwrap_or(false),
    })
}

fn declared(at: usize, tool: &Value) -> Result<Declared, String> {
    let in_tool = |why: String| format!("{why} (in tool {})", at + 1);
    let tool = tool.as_object().ok_or_else(|| in_tool(wrong("tools", "a list of objects", tool)))?;
    spec(tool).and_then(|spec| Ok(Declared { spec, confirm: confirm(tool)? })).map_err(in_tool)
}

fn spec(tool: &Object) -> Result<Spec, String> {
    let wanted = "1 to 64 letters, digits, _ or -";
    let name = field(tool, "name", wanted, |value| value.as_str().filter(|name| is_name(name)))?;
    Ok(Spec {
        name: name.ok_or_else(|| format!("printed a tool without a `name` ({wanted})"))?.into(),
        description: field(tool, "description", "a string", Value::as_str)?.unwrap_or_default().into(),
        parameters: parameters(tool)?,
        read_only: field(tool, "read_only", "true or false", Value::as_bool)?.unwrap_or(false),
    })
}

/// What servers take as a function's name.
fn is_name(name: &str) -> bool {
    (1..=64).contains(&name.len()) && name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_' || b == b'-')
}

/// The schema of a tool's arguments. Servers refuse the whole request for a schema that is no object's, so it is looked
/// at here, where the error can name the extension.
fn parameters(tool: &Object) -> Result<Value, String> {
    let mut schema = field(tool, "parameters", "an object", Value::as_object)?.cloned().unwrap_or_default();
    field(&schema, "type", "\"object\"", |value| value.as_str().filter(|kind| *kind == "object"))?;
    field(&schema, "properties", "an object", Value::as_object)?;
    field(&schema, "required", "a list", Value::as_array)?;
    schema.insert("type".into(), "object".into());
    schema.entry("properties").or_insert_with(|| json!({}));
    Ok(schema.into())
}

fn confirm(tool: &Object) -> Result<Confirm, String> {
    let confirm = field(tool, "confirm", "true, false or a question", |value| match value {
        Value::Bool(true) => Some(Confirm::Yes),
        Value::Bool(false) => Some(Confirm::No),
        Value::String(question) if !question.trim().is_empty() => Some(Confirm::With(question.trim().into())),
        _ => None,
    })?;
    Ok(confirm.unwrap_or(Confirm::Yes))
}

/// A member of the wanted type; `None` if it is missing or null.
fn field<'a, T>(
    of: &'a Object,
    name: &str,
    wanted: &str,
    read: impl Fn(&'a Value) -> Option<T>,
) -> Result<Option<T>, String> {
    match of.get(name).filter(|value| !value.is_null()) {
        None => Ok(None),
        Some(value) => read(value).map(Some).ok_or_else(|| wrong(name, wanted, value)),
    }
}

fn wrong(name: &str, wanted: &str, value: &Value) -> String {
    format!("printed a wrong field: `{name}` must be {wanted}, not {}", quote(&value.to_string()))
}

/// The beginning of what was printed, on one line.
pub fn quote(text: &str) -> String {
    let text = text.trim();
    match text.char_indices().nth(80) {
        _ if text.is_empty() => "nothing".into(),
        Some((cut, _)) => format!("`{}…`", text[..cut].escape_debug()),
        None => format!("`{}`", text.replace('\n', "\\n")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_empty_object_is_an_extension_that_does_nothing() {
        let said = parse("{}").unwrap();
        assert_eq!((said.system_prompt.as_str(), said.tools.len(), said.on_stop), ("", 0, false));
    }

    #[test]
    fn a_tool_needs_a_name_and_nothing_else_and_then_asks() {
        let said = parse(r#"{"tools":[{"name":"greet"}], "later": 7}"#).unwrap();
        let Declared { spec, confirm } = &said.tools[0];
        assert_eq!(*confirm, Confirm::Yes);
        assert_eq!(spec.parameters, json!({"type": "object", "properties": {}}));
        assert!(!spec.read_only);
    }

    #[test]
    fn every_field_is_read() {
        let said = parse(
            r#"{"system_prompt":" Be kind. ","on_stop":true,"tools":[
            {"name":"a","description":"A.","confirm":false,"read_only":true,"parameters":{"properties":{"n":{"type":"integer"}}}},
            {"name":"b","confirm":" Really? "}]}"#,
        )
        .unwrap();
        assert_eq!((said.system_prompt.as_str(), said.on_stop), ("Be kind.", true));
        assert_eq!(said.tools[0].confirm, Confirm::No);
        assert!(said.tools[0].spec.read_only);
        assert_eq!(said.tools[0].spec.parameters, json!({"type": "object", "properties": {"n": {"type": "integer"}}}));
        assert_eq!(said.tools[1].confirm, Confirm::With("Really?".into()));
    }

    #[test]
    fn a_wrong_type_is_an_error_that_names_the_field_what_was_wanted_and_what_came() {
        let cases = [
            (r#"{"on_stop":"yes"}"#, "printed a wrong field: `on_stop` must be true or false, not `\"yes\"`"),
            (r#"{"system_prompt":7}"#, "printed a wrong field: `system_prompt` must be a string, not `7`"),
            (r#"{"tools":{}}"#, "printed a wrong field: `tools` must be a list, not `{}`"),
            (
                r#"{"tools":["greet"]}"#,
                "printed a wrong field: `tools` must be a list of objects, not `\"greet\"` (in tool 1)",
            ),
            (r#"{"tools":[{}]}"#, "printed a tool without a `name` (1 to 64 letters, digits, _ or -) (in tool 1)"),
            (
                r#"{"tools":[{"name":"a b"}]}"#,
                "printed a wrong field: `name` must be 1 to 64 letters, digits, _ or -, not `\"a b\"` (in tool 1)",
            ),
            (
                r#"{"tools":[{"name":"a"},{"name":"b","confirm":1}]}"#,
                "printed a wrong field: `confirm` must be true, false or a question, not `1` (in tool 2)",
            ),
            (
                r#"{"tools":[{"name":"a","parameters":{"type":"array"}}]}"#,
                "printed a wrong field: `type` must be \"object\", not `\"array\"` (in tool 1)",
            ),
            (
                "[1]",
                "did not print a JSON object (invalid type: sequence, expected a map at line 1 column 0); it printed `[1]`",
            ),
            ("", "did not print a JSON object (EOF while parsing a value at line 1 column 0); it printed nothing"),
        ];
        for (text, why) in cases {
            assert_eq!(parse(text).unwrap_err(), why, "{text}");
        }
    }
}
