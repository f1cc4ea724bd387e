//! How much of a conversation the server keeps: the context window, from what the server says of itself.
//!
//! Nobody agreed on where to say it. vLLM and several hosted services put it into the list of models, llama.cpp has
//! `/props`, Ollama `/api/ps`. Ollama matters most: it cuts a longer prompt without a word (wire.md C18), and with the
//! start of the prompt go the tools, so that a good model seems to have forgotten how to work.

use super::Finding;
use serde_json::Value;

/// Below this many tokens an agent forgets too soon: one long file can fill a third of it.
const COMFORTABLE: u64 = 16_000;

/// Who answers, as far as that can be told from its list of models.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Ollama: `/api/ps` knows the window.
    Ollama,
    /// llama.cpp: `/props` knows it.
    LlamaCpp,
    /// Any other.
    Other,
}

impl Kind {
    /// Where the window is told, below the server's root.
    pub fn page(self) -> Option<&'static str> {
        match self {
            Kind::Ollama => Some("/api/ps"),
            Kind::LlamaCpp => Some("/props"),
            Kind::Other => None,
        }
    }

    /// How it is widened.
    fn widen(self) -> &'static str {
        match self {
            Kind::Ollama => "start Ollama with OLLAMA_CONTEXT_LENGTH=32768",
            Kind::LlamaCpp => "start llama.cpp with -c 32768",
            Kind::Other => "choose a model with a wider one, or widen it on the server",
        }
    }
}

/// Who made this list of models.
pub fn kind(list: &[u8]) -> Kind {
    let list: Value = serde_json::from_slice(list).unwrap_or_default();
    match list["data"][0]["owned_by"].as_str() {
        Some("library") => Kind::Ollama,
        Some("llamacpp") => Kind::LlamaCpp,
        _ => Kind::Other,
    }
}

/// The window of a model, in tokens, if a document tells it: a list of models, or the page of its [`Kind`].
pub fn tokens(document: &[u8], model: &str) -> Option<u64> {
    let document: Value = serde_json::from_slice(document).ok()?;
    let own = |entry: &&Value| ["id", "name", "model"].iter().any(|name| entry[*name] == model);
    let lists = [&document["data"], &document["models"]];
    let entry = lists.into_iter().filter_map(Value::as_array).flatten().find(own).unwrap_or(&document);
    let places =
        ["/max_model_len", "/context_length", "/context_window", "/meta/n_ctx", "/default_generation_settings/n_ctx"];
    places.iter().find_map(|place| entry.pointer(place)?.as_u64()).filter(|tokens| *tokens > 0)
}

/// What to say about a window.
pub fn finding(tokens: Option<u64>, kind: Kind) -> Finding {
    match tokens {
        Some(tokens) if tokens >= COMFORTABLE => Finding::ok("window", format!("{tokens} tokens")),
        Some(tokens) => Finding::note(
            "window",
            format!("only {tokens} tokens: a conversation with a few files in it does not fit; {}", kind.widen()),
        ),
        None if kind == Kind::Ollama => Finding::note(
            "window",
            format!("not told; Ollama cuts longer prompts without a word, and the tools with them: {}", kind.widen()),
        ),
        None => Finding::note("window", "the server does not tell it; name it with --context-window N if you know it"),
    }
}

/// What to say where the count of prompt tokens did not grow with the prompt.
pub fn cut(tokens: u64, kind: Kind) -> Finding {
    let words = format!("the server counts {tokens} prompt tokens, however long the prompt is: it cuts it");
    Finding::fail("window", format!("{words}; {}", kind.widen()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::doctor::Verdict;

    #[test]
    fn windows_are_found_where_servers_tell_them() {
        let rows = [
            (r#"{"data":[{"id":"a","max_model_len":1},{"id":"m","max_model_len":32768}]}"#, Some(32768)), // vLLM
            (r#"{"data":[{"id":"m","context_length":200000}]}"#, Some(200_000)),                          // OpenRouter
            (r#"{"models":[{"name":"m","model":"m","context_length":4096}]}"#, Some(4096)),               // Ollama
            (r#"{"default_generation_settings":{"n_ctx":8192}}"#, Some(8192)),                            // llama.cpp
            (r#"{"data":[{"id":"m","meta":{"n_ctx":4096,"n_ctx_train":8192}}]}"#, Some(4096)), // llama.cpp, newer
            (r#"{"data":[{"id":"other","max_model_len":5}]}"#, None),
            ("<html>", None),
        ];
        for (document, wanted) in rows {
            assert_eq!(tokens(document.as_bytes(), "m"), wanted, "{document}");
        }
    }

    #[test]
    fn a_narrow_window_is_a_note_that_says_how_to_widen_it() {
        let kind = kind(br#"{"object":"list","data":[{"id":"m","owned_by":"library"}]}"#);
        let narrow = finding(Some(4096), kind);
        assert_eq!(narrow.verdict, Verdict::Note);
        assert!(narrow.text.contains("4096") && narrow.text.contains("OLLAMA_CONTEXT_LENGTH"), "{}", narrow.text);
        assert_eq!(finding(Some(131_072), kind).verdict, Verdict::Ok);
        assert_eq!(super::kind(b"{}"), Kind::Other);
    }
}
