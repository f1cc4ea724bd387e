//! What a tool is: a spec for the model, and a `check` that judges one call.
//!
//! `check` looks and decides; it does not act. What it hands back for later, the *act*, is a closure that holds
//! exactly what was judged and shown (the argv, the bytes to write). It is judged once, and what was approved is
//! what runs: there is no second parse in between for a bypass to live in.
//!
//! Rejected: `run(args)` with a separate `needs_approval(args)`. Two functions read the same arguments, and
//! sooner or later they read them differently.

use crate::cancel::Cancel;
use crate::endpoint::Endpoint;
use crate::event::{Events, Usage};
use crate::kept::Kept;
use crate::prices::Price;
use crate::process::Processes;
use crate::workspace::{Trouble, Workspace};
use serde_json::{Map, Value};

/// A JSON value.
pub type Json = Value;

/// The act of a call: runs once, after every approver has had a say. `Ok` is the result's text.
pub type Act<'a> = Box<dyn FnOnce(&mut Context) -> Result<String, Failure> + 'a>;

/// What a tool says of a call.
pub enum Check<'a> {
    /// May run without a question.
    Run(Act<'a>),
    /// May run if the question is answered with yes.
    Ask(Question, Act<'a>),
    /// May never run; the reason goes to the person and the model, with the way out.
    Refuse(String),
    /// Cannot run as it stands, with what is wrong: nobody is asked.
    Bad(String),
}

/// Something the model can call.
pub trait Tool {
    /// Name, description and parameters, as offered to the model.
    fn spec(&self) -> Spec;
    /// Judges one call. `args` have been checked against the spec: required members are there, of the right type.
    fn check<'a>(&'a mut self, args: &Json, cx: &mut Context) -> Check<'a>;
}

/// How a tool is offered to the model.
#[derive(Clone, Debug)]
pub struct Spec {
    /// Unique among the tools of a run.
    pub name: String,
    /// One or two short sentences.
    pub description: String,
    /// A flat JSON schema: `type`, `properties`, `required`, `description` only (wire.md F11).
    pub parameters: Json,
    /// A call that needs no question changes nothing. Plan mode lets only such calls through.
    pub read_only: bool,
}

impl Spec {
    /// The entry of a request's `tools`.
    pub fn to_json(&self) -> Json {
        serde_json::json!({"type": "function", "function": {
            "name": self.name, "description": self.description, "parameters": self.parameters}})
    }
}

/// Why an act did not end well; decides how the result begins, which is a contract that labs test.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Failure {
    /// A command's own non-zero exit status: the text stands as it is.
    Status(String),
    /// `Error: …`
    Error(String),
    /// `Blocked: …`: outside the workspace, protected, or denied.
    Blocked(String),
}

impl From<String> for Failure {
    fn from(text: String) -> Failure {
        Failure::Error(text)
    }
}

impl From<&str> for Failure {
    fn from(text: &str) -> Failure {
        Failure::Error(text.into())
    }
}

impl From<Trouble> for Failure {
    fn from(trouble: Trouble) -> Failure {
        match trouble {
            Trouble::Blocked(why) => Failure::Blocked(why),
            Trouble::Error(why) => Failure::Error(why),
        }
    }
}

impl From<Trouble> for Check<'_> {
    fn from(trouble: Trouble) -> Self {
        match trouble {
            Trouble::Blocked(why) => Check::Refuse(why),
            Trouble::Error(why) => Check::Bad(why),
        }
    }
}

/// What is put to the person before a call runs.
#[derive(Clone, Debug, PartialEq)]
pub struct Question {
    /// One line: what would happen, such as `edit src/a.rs (+1 −1)`.
    pub text: String,
    /// Why it asks, where that is not plain from the text: "option --output may write a file".
    pub why: Option<String>,
    /// What to look at before answering.
    pub preview: Preview,
    /// What an "always" would cover.
    pub scope: Scope,
}

/// What a person looks at before answering.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Preview {
    /// Nothing beyond the text.
    None,
    /// A unified diff, without colours.
    Diff(String),
    /// The whole command, exactly the bytes that would run.
    Command(String),
}

/// What an "always" at a question covers for the rest of the session.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Scope {
    /// This exact command. `parts` are the words of those parts of the chain that would ask by themselves; `None`
    /// where it is not a chain of simple commands, and only the exact command can be meant.
    Command {
        /// The command as the model wrote it.
        text: String,
        /// Words of the asking parts.
        parts: Option<Vec<Vec<String>>>,
    },
    /// Every write and edit in the workspace.
    Files,
    /// Every call of this tool.
    Tool(String),
}

/// What acts and hooks are lent while they run. There is one for a run; a child agent gets the same.
pub struct Context {
    /// Where files are.
    pub workspace: Workspace,
    /// The model.
    pub endpoint: Endpoint,
    /// Who watches.
    pub events: Events,
    /// Whether to stop.
    pub cancel: Cancel,
    /// Limits, and what has been used of them.
    pub budget: Budget,
    /// Child processes: their environment, and those that are still there.
    pub processes: Processes,
    /// The id of the call that acts at the moment.
    pub call: String,
    /// Paths that write and edit changed, in order of first change, relative to the workspace.
    pub changed: Vec<String>,
    /// What write and edit replace, so that it can be taken back.
    pub kept: Kept,
}

impl Context {
    /// Remembers that a file was changed, for the `end` event and for `--diff`.
    pub fn changed(&mut self, path: &str) {
        if !self.changed.iter().any(|known| known == path) {
            self.changed.push(path.into());
        }
    }
}

/// The limits of a run, and what has been used of them. `None` is no limit.
#[derive(Clone, Copy, Debug)]
pub struct Budget {
    /// Turns (requests with a usable reply) a task may take.
    pub max_turns: u32,
    /// Input and output tokens of all requests together.
    pub max_tokens: Option<u64>,
    /// US dollars for all requests together; counts only with a known price.
    pub max_cost: Option<f64>,
    /// What the model's tokens cost, if that is known.
    pub price: Option<Price>,
    /// What the server reported so far, children included.
    pub used: Usage,
}

impl Default for Budget {
    fn default() -> Budget {
        Budget { max_turns: 100, max_tokens: None, max_cost: None, price: None, used: Usage::default() }
    }
}

impl Budget {
    /// The reason to stop before the next request, if there is one.
    pub fn exhausted(&self) -> Option<String> {
        let used = self.used.total();
        if let Some(limit) = self.max_tokens.filter(|limit| used >= *limit) {
            return Some(format!("the token budget of {limit} is used up ({used} tokens)"));
        }
        let (limit, cost) = (self.max_cost?, self.cost()?);
        (cost >= limit).then(|| format!("the cost limit of ${limit} is reached (${cost:.4})"))
    }

    /// What has been used so far costs, in US dollars; `None` if the price is unknown.
    pub fn cost(&self) -> Option<f64> {
        self.price.map(|price| price.of(&self.used))
    }

    /// Whether something that only the server's figures can count is limited.
    pub fn counts_tokens(&self) -> bool {
        self.max_tokens.is_some() || self.max_cost.is_some()
    }
}

/// Fits the model's arguments to a tool's parameters. Models write `"2"` for 2 and `"true"` for true; where the
/// meaning is plain it is taken, elsewhere the error names the field, what was wanted, what came, and the smallest
/// valid example. Members that the parameters do not name are left in place.
pub fn fit(mut args: Map<String, Value>, spec: &Spec) -> Result<Json, String> {
    let none = Map::new();
    let properties = spec.parameters["properties"].as_object().unwrap_or(&none);
    for (name, property) in properties {
        let wanted = property["type"].as_str().unwrap_or_default();
        match args.remove(name).filter(|value| !value.is_null()) {
            Some(value) => {
                let fitted = coerce(value, wanted).map_err(|value| {
                    format!("`{name}` must be {}, not {}. {}", article(wanted), quote(&value), example(spec))
                })?;
                args.insert(name.clone(), fitted);
            }
            None if required(spec, name) => return Err(format!("`{name}` is missing ({wanted}). {}", example(spec))),
            None => {}
        }
    }
    Ok(args.into())
}

fn required(spec: &Spec, name: &str) -> bool {
    spec.parameters["required"].as_array().is_some_and(|names| names.iter().any(|n| n == name))
}

/// `value` as what is `wanted` if its meaning is plain; else gives it back.
fn coerce(value: Value, wanted: &str) -> Result<Value, Value> {
    let meant = match (wanted, &value) {
        ("integer", Value::Number(n)) if n.is_f64() => n.as_f64().and_then(whole),
        ("integer", Value::String(s)) => s.trim().parse::<i64>().ok().map(Value::from),
        ("number", Value::String(s)) => s.trim().parse::<f64>().ok().map(Value::from),
        ("boolean", Value::String(s)) => s.trim().parse::<bool>().ok().map(Value::from),
        ("string", Value::Number(_) | Value::Bool(_)) => Some(value.to_string().into()),
        ("array" | "object", Value::String(s)) => serde_json::from_str(s).ok().filter(|v| is_a(v, wanted)),
        ("array", Value::Number(_) | Value::Bool(_)) => Some(vec![value.clone()].into()),
        _ if is_a(&value, wanted) => return Ok(value),
        _ => None,
    };
    meant.ok_or(value)
}

fn is_a(value: &Value, wanted: &str) -> bool {
    match wanted {
        "integer" => value.is_i64() || value.is_u64(),
        "number" => value.is_number(),
        "boolean" => value.is_boolean(),
        "string" => value.is_string(),
        "array" => value.is_array(),
        "object" => value.is_object(),
        _ => true, // a schema without a type takes anything
    }
}

/// 2.0 means 2; 2.5 means nothing whole.
fn whole(number: f64) -> Option<Value> {
    (number.fract() == 0.0 && number.abs() < 9e15).then(|| Value::from(number as i64))
}

fn article(wanted: &str) -> String {
    let an = wanted.starts_with(['a', 'e', 'i', 'o', 'u']);
    format!("{} {wanted}", if an { "an" } else { "a" })
}

/// A value for an error message: at most 60 characters of its JSON.
fn quote(value: &Value) -> String {
    let text = value.to_string();
    match text.char_indices().nth(60) {
        Some((cut, _)) => format!("{}…", &text[..cut]),
        None => text,
    }
}

/// The smallest valid call, for error messages.
fn example(spec: &Spec) -> String {
    format!("Smallest valid call: {} {}", spec.name, smallest(spec))
}

/// The smallest valid arguments: every required member with a plain value.
pub fn smallest(spec: &Spec) -> Json {
    let mut members = Map::new();
    for name in spec.parameters["required"].as_array().into_iter().flatten().filter_map(Value::as_str) {
        let value = match spec.parameters["properties"][name]["type"].as_str() {
            Some("integer" | "number") => 1.into(),
            Some("boolean") => true.into(),
            Some("array") => Value::Array(Vec::new()),
            Some("object") => Value::Object(Map::new()),
            _ => "…".into(),
        };
        members.insert(name.into(), value);
    }
    members.into()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn spec() -> Spec {
        let parameters = json!({"type": "object", "required": ["path"], "properties": {
            "path": {"type": "string"}, "offset": {"type": "integer"}, "all": {"type": "boolean"}, "names": {"type": "array"}}});
        Spec { name: "read".into(), description: String::new(), parameters, read_only: true }
    }

    fn fitted(args: Value) -> Result<Json, String> {
        fit(args.as_object().cloned().unwrap_or_default(), &spec())
    }

    #[test]
    fn plain_meanings_are_taken() {
        let args = json!({"path": 7, "offset": " 2", "all": "true", "names": "[\"a\"]"});
        assert_eq!(fitted(args), Ok(json!({"path": "7", "offset": 2, "all": true, "names": ["a"]})));
        assert_eq!(fitted(json!({"path": "a", "offset": 2.0})), Ok(json!({"path": "a", "offset": 2})));
        assert_eq!(fitted(json!({"path": "a", "offset": null})), Ok(json!({"path": "a"})));
    }

    #[test]
    fn an_error_names_field_want_value_and_example() {
        let error = fitted(json!({"path": "a", "offset": "ten"})).unwrap_err();
        assert_eq!(error, "`offset` must be an integer, not \"ten\". Smallest valid call: read {\"path\":\"…\"}");
        let error = fitted(json!({})).unwrap_err();
        assert_eq!(error, "`path` is missing (string). Smallest valid call: read {\"path\":\"…\"}");
    }

    #[test]
    fn fractions_and_objects_are_not_guessed() {
        assert!(fitted(json!({"path": "a", "offset": 2.5})).is_err());
        assert!(fitted(json!({"path": {"file": "a"}})).is_err());
    }
}
