//! Looking into the body of a chat request: pointers, texts, offered tools, pairs.
//!
//! A body may be any JSON: what is not there is `None` or empty, and never a panic.

use serde_json::Value;
use std::collections::VecDeque;

/// JSON pointer in which an array index may be negative: `/messages/-1` is the last message.
pub fn at<'a>(value: &'a Value, pointer: &str) -> Option<&'a Value> {
    pointer.split('/').skip(1).try_fold(value, |value, part| match value {
        Value::Array(items) => match part.strip_prefix('-') {
            Some(back) => items.len().checked_sub(back.parse().ok()?).and_then(|place| items.get(place)),
            None => items.get(part.parse::<usize>().ok()?),
        },
        Value::Object(map) => map.get(&part.replace("~1", "/").replace("~0", "~")),
        _ => None,
    })
}

pub fn messages(body: &Value) -> &[Value] {
    body["messages"].as_array().map_or(&[], Vec::as_slice)
}

/// All system messages: some clients send one, some one for each source.
pub fn system_text(body: &Value) -> String {
    let system = messages(body).iter().filter(|message| message["role"] == "system" || message["role"] == "developer");
    system.map(|message| text_of(&message["content"])).collect::<Vec<_>>().join("\n")
}

/// The names of the offered tools, in order.
pub fn offered(body: &Value) -> Vec<String> {
    let tools = body["tools"].as_array().into_iter().flatten();
    tools.map(|tool| tool["function"]["name"].as_str().unwrap_or("?").to_string()).collect()
}

/// The text of a content: a string, or a list of parts.
pub fn text_of(content: &Value) -> String {
    match content {
        Value::String(text) => text.clone(),
        Value::Array(parts) => parts.iter().filter_map(|part| part["text"].as_str()).collect(),
        _ => String::new(),
    }
}

pub fn any_string(value: &Value, found: &dyn Fn(&str) -> bool) -> bool {
    match value {
        Value::String(text) => found(text),
        Value::Array(items) => items.iter().any(|item| any_string(item, found)),
        Value::Object(map) => map.iter().any(|(key, item)| found(key) || any_string(item, found)),
        _ => false,
    }
}

/// Walks the messages; the error says which call or result has no partner.
pub fn paired(messages: &[Value]) -> Result<(), String> {
    let mut open: VecDeque<&Value> = VecDeque::new();
    for (place, message) in messages.iter().enumerate() {
        if message["role"] == "tool" {
            let id = &message["tool_call_id"];
            match open.pop_front() {
                Some(call) if call == id => continue,
                Some(call) => {
                    return Err(format!("message {place} answers {id}, but {call} is next"));
                }
                None => return Err(format!("message {place} answers {id}, but no call is open")),
            }
        }
        if let Some(call) = open.front() {
            return Err(format!("call {call} has no result before message {place}"));
        }
        open = message["tool_calls"].as_array().into_iter().flatten().map(|call| &call["id"]).collect();
    }
    open.front().map_or(Ok(()), |call| Err(format!("call {call} has no result")))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn pointers_may_count_from_the_end() {
        let value = json!({"a/b":{"~":[1,2,3]},"m":[]});
        assert_eq!(at(&value, "/a~1b/~0/-1"), Some(&json!(3)));
        assert_eq!(at(&value, "/a~1b/~0/0"), Some(&json!(1)));
        for nowhere in ["/a~1b/~0/-4", "/a~1b/~0/-0", "/a~1b/~0/3", "/a~1b/~0/x", "/m/-1", "/m/0/x", "/x"] {
            assert_eq!(at(&value, nowhere), None, "{nowhere}");
        }
    }

    #[test]
    fn pairs_are_complete_and_in_order() {
        let calls = |ids: &[&str]| json!({"role":"assistant","tool_calls":ids.iter().map(|id| json!({"id":id})).collect::<Value>()});
        let result = |id: &str| json!({"role":"tool","tool_call_id":id});
        let user = json!({"role":"user"});
        for (messages, words) in [
            (
                vec![
                    user.clone(),
                    calls(&["a", "b"]),
                    result("a"),
                    result("b"),
                    calls(&["a"]),
                    result("a"),
                    user.clone(),
                ],
                None,
            ),
            (vec![calls(&["a", "b"]), result("b"), result("a")], Some("message 1 answers \"b\", but \"a\" is next")),
            (vec![calls(&["a"]), user.clone(), result("a")], Some("call \"a\" has no result before message 1")),
            (vec![calls(&["a", "b"]), result("a")], Some("call \"b\" has no result")),
            (vec![calls(&["a"]), result("a"), result("a")], Some("message 2 answers \"a\", but no call is open")),
            (vec![user, result("x")], Some("no call is open")),
        ] {
            let error = paired(&messages).err();
            assert_eq!(error.is_some(), words.is_some(), "{messages:?}: {error:?}");
            assert!(error.unwrap_or_default().contains(words.unwrap_or_default()), "{messages:?}");
        }
    }
}
