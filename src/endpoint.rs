//! Skeleton: the signatures that others code against. Being written.
use crate::cancel::Cancel;
use crate::event::{Events, Usage};
use crate::message::{Assistant, History};

/// Where and how to ask a model.
#[derive(Clone, Debug, Default)]
pub struct Settings {
    /// Base URL as configured, such as `https://api.openai.com/v1`.
    pub base_url: String,
    /// Model name; empty means: ask `/models` and use the only one.
    pub model: String,
    /// The key; `None` sends no Authorization header.
    pub key: Option<String>,
    /// Where the key came from, in words, for errors.
    pub key_source: String,
    /// Further headers; values are secrets.
    pub headers: Vec<(String, String)>,
    /// First pause before a retry, in ms (doubles; never shortens a Retry-After).
    pub retry_base_ms: u64,
    /// Longest silence between two reads, in ms.
    pub idle_ms: u64,
    /// Longest time since the last data event, in ms.
    pub progress_ms: u64,
    /// Limit of output tokens; not sent unless set.
    pub max_output_tokens: Option<u64>,
    /// Not sent unless set.
    pub temperature: Option<f64>,
}

/// A usable reply.
pub struct Reply {
    /// What joins the history.
    pub message: Assistant,
    /// The server's finish_reason, as it came.
    pub finish: Option<String>,
    /// Tokens.
    pub usage: Usage,
}

/// Why there is no reply.
#[derive(Debug)]
pub enum Failure {
    /// The cancel flag was raised.
    Interrupted,
    /// The conversation does not fit into the model's window; the server's words.
    Overflow(String),
    /// Everything else: what, where (full URL), and what to do next. Never a key, never an HTML page.
    Failed(String),
}

/// One request's parts.
pub struct Ask<'a> {
    /// The turn, from 1, for the `request` event.
    pub turn: u32,
    /// The system text.
    pub system: &'a str,
    /// The conversation; no call is open.
    pub history: &'a mut History,
    /// The offered tools as a JSON array, serialised once.
    pub tools: &'a str,
}

/// One OpenAI-compatible server.
pub struct Endpoint;

impl Endpoint {
    /// An endpoint; no network yet.
    pub fn new(_settings: Settings) -> Result<Endpoint, String> {
        Ok(Endpoint)
    }
    /// Asks once, with retries and adaptions; emits request, retry, reasoning, text, usage and notice events.
    pub fn ask(&mut self, _ask: Ask, _events: &mut Events, _cancel: &Cancel) -> Result<Reply, Failure> {
        Err(Failure::Interrupted)
    }
    /// The configured or found model name.
    pub fn model(&self) -> &str {
        ""
    }
    /// Takes secrets out of a text.
    pub fn redact(&self, text: String) -> String {
        text
    }
}
