//! Whether a reply is the tool call that was asked for, and what to do if it is none.
//!
//! Without tool calls there is no agent, so this is the check that matters most, and the one that people cannot make by
//! chatting with a model. A model without tool support, or a server without a parser for its format, writes the call as
//! text (wire.md B23): it looks right to a person and does nothing.

use super::Finding;
use crate::message::{Assistant, Call};
use crate::reply::call_as_text;

/// The name of the one tool that is offered. It does nothing.
pub const TOOL: &str = "echo";

/// The offer.
pub const OFFER: &str = r#"[{"type":"function","function":{"name":"echo","description":"Returns a text.","parameters":{"type":"object","properties":{"text":{"type":"string","description":"The text."}},"required":["text"]}}}]"#;

/// What is asked. A `tool_choice` would force a call, but not show what the model does by itself.
pub const REQUEST: &str = "Call the tool echo with the text `ready`. Call the tool; do not answer in words.";

/// What a reply turned out to be.
#[derive(Debug, PartialEq, Eq)]
pub enum Made {
    /// A call that can be run.
    Call,
    /// A call whose arguments or name cannot be used; why.
    Unusable(String),
    /// A call written as text.
    AsText,
    /// An answer in words.
    Words,
}

/// What a reply is.
pub fn made(reply: &Assistant) -> Made {
    match reply.calls.first() {
        Some(call) => fault(call).map_or(Made::Call, Made::Unusable),
        None if looks_like_a_call(&reply.text) => Made::AsText,
        None => Made::Words,
    }
}

fn fault(call: &Call) -> Option<String> {
    if call.name != TOOL {
        return Some(format!("it called `{}`, which was not offered", call.name));
    }
    match &call.arguments {
        Err(why) => Some(why.clone()),
        Ok(arguments) if arguments.get("text").is_some_and(|text| text.is_string()) => None,
        Ok(_) => Some("the argument `text` is missing".into()),
    }
}

/// More generous than the loop, which has to be sure: here a wrong guess costs a word in a sentence.
fn looks_like_a_call(text: &str) -> bool {
    let marked = ["{", "<", "[", "echo("].iter().any(|mark| text.contains(mark));
    call_as_text(text, std::iter::once(TOOL)).is_some() || (marked && text.contains(TOOL))
}

/// What to say where no call was made, in spite of a second try.
pub fn missing(made: &Made) -> Finding {
    let what = match made {
        Made::AsText => "the model wrote its call as text: there is no tool support for this model here".to_owned(),
        Made::Unusable(why) => format!("the model's call cannot be used: {why}"),
        _ => "the model answered in words and did not call the tool".to_owned(),
    };
    Finding::fail("tool call", format!("{what}. {WAY_OUT}"))
}

/// What to say where the server refused a request that offers a tool, in its words.
pub fn refused(why: &str) -> Finding {
    Finding::fail("tool call", format!("{why} It answers without tools, and refuses with one. {WAY_OUT}"))
}

const WAY_OUT: &str = "Choose a model made for tool calls (Ollama: `ollama show MODEL` lists `tools`), or let the server \
                       read its calls (llama.cpp: --jinja; vLLM: --enable-auto-tool-choice --tool-call-parser NAME)";

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Map, json};

    fn reply(text: &str, calls: &[(&str, &str)]) -> Assistant {
        let call = |(name, raw): &(&str, &str)| Call {
            id: "1".into(),
            name: (*name).into(),
            raw: (*raw).into(),
            arguments: crate::reply::arguments::read(raw),
            extra: Map::new(),
        };
        Assistant { text: text.into(), calls: calls.iter().map(call).collect(), ..Assistant::default() }
    }

    #[test]
    fn a_call_is_told_from_what_only_looks_like_one() {
        assert_eq!(made(&reply("", &[("echo", r#"{"text":"ready"}"#)])), Made::Call);
        assert!(matches!(made(&reply("", &[("echo", r#"{"text":"#)])), Made::Unusable(_)));
        assert!(matches!(made(&reply("", &[("echo", "{}")])), Made::Unusable(_)));
        assert!(matches!(made(&reply("", &[("print", r#"{"text":"ready"}"#)])), Made::Unusable(_)));
        for text in [
            r#"{"name":"echo","arguments":{"text":"ready"}}"#,
            "Sure!\n```json\n{\"name\": \"echo\", \"arguments\": {\"text\": \"ready\"}}\n```",
            "<function=echo><parameter=text>ready</parameter></function>",
            "[echo(text='ready')]",
        ] {
            assert_eq!(made(&reply(text, &[])), Made::AsText, "{text}");
        }
        assert_eq!(made(&reply("I cannot call echo. Ready!", &[])), Made::Words);
    }

    #[test]
    fn what_is_offered_is_the_tool_that_is_asked_for() {
        let offer: serde_json::Value = serde_json::from_str(OFFER).unwrap();
        assert_eq!(offer[0]["function"]["name"], json!(TOOL));
        assert!(REQUEST.contains(TOOL));
    }
}
