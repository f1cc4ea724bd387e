//! Asking one OpenAI-compatible server: what is tried again, what is changed, what is given up.
//!
//! ```text
//! request   the bytes            attempt   sent, read, put together (sse → reply)
//! dialect   what to change       retry     when to send again
//! complaint what the server says advice    what the person can do
//! ```
//!
//! Until a reply is complete no tool has run, so an attempt can always be thrown away and the same bytes sent again. An
//! incomplete reply is never handed on with calls in it. Every attempt and every change is an event.
//!
//! Left out on purpose: other protocols (`/v1/responses`, Anthropic's), several servers at a time, and a cache of
//! replies. One protocol that everybody speaks is what makes this small.

mod advice;
mod attempt;
mod request;
mod retry;
mod secrets;
mod transport;
pub mod url;
mod watchdog;

use crate::cancel::Cancel;
use crate::complaint::Meaning;
use crate::dialect::{Dialect, Sent};
use crate::event::{Event, Events, Usage};
use crate::message::{Assistant, History, Message};
use crate::reply::Assembly;
use attempt::{Fault, Line};
use request::{Parts, Request};
use secrets::Secrets;
use std::fmt;
use std::time::{Duration, Instant};
use transport::Transport;
use ureq::http::{HeaderName, HeaderValue};
use url::{Place, models_url};

pub use attempt::{Tap, Wire};
pub use url::chat_url;

/// Where and how to ask a model.
#[derive(Clone)]
pub struct Settings {
    /// Base URL as configured, such as `https://api.openai.com/v1`.
    pub base_url: String,
    /// Model name; empty means: ask `/models` and use the only one.
    pub model: String,
    /// The key; `None` or blank sends no Authorization header.
    pub key: Option<String>,
    /// Where the key comes from, for errors: `OPENAI_API_KEY`.
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

impl Default for Settings {
    fn default() -> Settings {
        Settings {
            base_url: String::new(),
            model: String::new(),
            key: None,
            key_source: String::new(),
            headers: Vec::new(),
            retry_base_ms: 500,
            idle_ms: 300_000,
            progress_ms: 900_000,
            max_output_tokens: None,
            temperature: None,
        }
    }
}

/// Without the key and the headers' values.
impl fmt::Debug for Settings {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        let names: Vec<&String> = self.headers.iter().map(|(name, _)| name).collect();
        let key = self.key.as_ref().map(|_| "[secret]");
        write!(
            f,
            "Settings {{ base_url: {:?}, model: {:?}, key: {key:?}, headers: {names:?} }}",
            self.base_url, self.model
        )
    }
}

/// A usable reply.
#[derive(Debug)]
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
pub struct Endpoint {
    settings: Settings,
    url: String,
    line: Line,
    dialect: Dialect,
    request: Request,
    secrets: Secrets,
}

impl Endpoint {
    /// An endpoint; no network yet. Fails, with words for the person, on a base URL, key, header, proxy or certificate
    /// file that cannot be used.
    pub fn new(settings: Settings) -> Result<Endpoint, String> {
        Endpoint::within(settings, |name| std::env::var(name).ok())
    }

    /// The same with another environment: proxies and SSL_CERT_FILE are looked up there.
    pub fn within(mut settings: Settings, env: impl Fn(&str) -> Option<String>) -> Result<Endpoint, String> {
        settings.key = settings.key.map(|key| key.trim().to_owned()).filter(|key| !key.is_empty());
        let url = chat_url(&settings.base_url)?;
        let place = Place::of(&url);
        let transport = Transport::new(&place, headers(&settings)?, settings.idle_ms, env)?;
        let secrets = settings.key.iter().chain(settings.headers.iter().map(|(_, value)| value));
        let secrets = Secrets::new(secrets.map(String::as_str));
        let (idle_ms, progress_ms) = (settings.idle_ms, settings.progress_ms);
        let line = Line { transport, place, idle_ms, progress_ms, taps: Vec::new() };
        Ok(Endpoint { settings, url, line, dialect: Dialect::default(), request: Request::default(), secrets })
    }

    /// Asks once, with retries and adaptions; emits request, retry, reasoning, text, usage and notice events.
    pub fn ask(&mut self, mut ask: Ask, events: &mut Events, cancel: &Cancel) -> Result<Reply, Failure> {
        self.resolve_model(cancel)
            .map_err(|why| if cancel.is_raised() { Failure::Interrupted } else { Failure::Failed(why) })?;
        let (mut attempt, mut retries) = (0, 0);
        loop {
            attempt += 1;
            self.write(&mut ask, attempt, events);
            let fault = match self.line.ask(&self.url, &self.request.body, events, cancel) {
                Ok(assembly) => return Ok(accept(assembly, ask.history, events)),
                Err(fault) => fault,
            };
            match self.next(fault, retries, &ask) {
                Next::Changed(notice) => events.notice(format!("{notice}; asking again")),
                Next::Again { wait_ms, reason } => {
                    retries += 1;
                    events.emit(Event::Retry { attempt, wait_ms, reason: self.redact(reason) });
                    pause(wait_ms, cancel)?;
                }
                Next::Accept(assembly) => {
                    events.notice("the server ended the stream without a finish_reason, again; the text so far is taken as the answer");
                    return Ok(accept(*assembly, ask.history, events));
                }
                Next::Stop(failure) => return Err(self.redacted(failure)),
            }
        }
    }

    /// The configured or found model name.
    pub fn model(&self) -> &str {
        &self.settings.model
    }

    /// The full URL that is asked.
    pub fn url(&self) -> &str {
        &self.url
    }

    /// The model's name; where none is configured, the only one that the server lists. The error lists up to 20.
    pub fn resolve_model(&mut self, cancel: &Cancel) -> Result<&str, String> {
        if self.settings.model.is_empty() {
            let mut names = self.models(cancel)?;
            match (names.pop(), names.len()) {
                (Some(only), 0) => self.settings.model = only,
                (None, _) => return Err(format!("{} lists no models: choose one with --model", self.models_url())),
                (Some(last), _) => {
                    names.push(last);
                    return Err(choose(&names));
                }
            }
        }
        Ok(&self.settings.model)
    }

    /// The models that the server lists.
    pub fn models(&mut self, cancel: &Cancel) -> Result<Vec<String>, String> {
        let url = self.models_url();
        let body = match self.line.get(&url, cancel) {
            Ok(body) => body,
            Err(fault) => {
                let why = self.describe(&fault, &url);
                return Err(self.redact(format!("no model is configured, and the server's list cannot be read. {why}")));
            }
        };
        let list: serde_json::Value = serde_json::from_slice(&body).map_err(|error| {
            format!("{url} did not answer with a list of models ({error}): choose one with --model")
        })?;
        let models = [&list["data"], &list["models"], &list].into_iter().find_map(|list| list.as_array());
        let name = |model: &serde_json::Value| {
            ["id", "name"].iter().find_map(|member| model[*member].as_str()).map(str::to_owned)
        };
        Ok(models.into_iter().flatten().filter_map(name).collect())
    }

    /// Shows what passes over the wire to one more tap.
    pub fn tap(&mut self, tap: Tap) {
        self.line.taps.push(tap);
    }

    /// Replaces the key and the values of configured headers (of 8 bytes or more) in a text by `[secret]`.
    pub fn redact(&self, text: String) -> String {
        self.secrets.redact(text)
    }

    fn models_url(&self) -> String {
        models_url(&self.url)
    }

    /// Writes the request in the present dialect, and announces it.
    fn write(&mut self, ask: &mut Ask, attempt: u32, events: &mut Events) {
        let messages = ask.history.messages().len() + usize::from(!ask.system.is_empty());
        let parts = Parts {
            model: &self.settings.model,
            system: ask.system,
            tools: ask.tools,
            messages: ask.history.render(self.dialect.style()),
            max_tokens: self.settings.max_output_tokens,
            temperature: self.settings.temperature,
        };
        self.request.write(&parts, &self.dialect);
        let (bytes, estimated_tokens) = (self.request.body.len(), self.request.estimated_tokens);
        events.emit(Event::Request { turn: ask.turn, attempt, messages, bytes, estimated_tokens });
    }

    /// What to do about a fault, after so many retries.
    fn next(&mut self, fault: Fault, retries: u32, ask: &Ask) -> Next {
        if let Fault::Refused { complaint, .. } = &fault {
            if complaint.meaning() == Meaning::Overflow {
                return Next::Stop(Failure::Overflow(self.describe(&fault, &self.url)));
            }
            let (max_tokens, temperature) =
                (self.settings.max_output_tokens.is_some(), self.settings.temperature.is_some());
            let sent = Sent { max_tokens, temperature, calls: Sent::has_calls(ask.history) };
            if let Some(notice) = self.dialect.learn(complaint, sent) {
                return Next::Changed(notice);
            }
        }
        let most = match &fault {
            Fault::Interrupted => return Next::Stop(Failure::Interrupted),
            fault if !may_pass(fault) => 0,
            Fault::Empty => 1,
            _ => retry::MOST,
        };
        let reason = self.describe(&fault, &self.url);
        match fault {
            Fault::Unfinished(assembly) if retries >= most && !assembly.is_empty() && !assembly.has_calls() => {
                Next::Accept(assembly)
            }
            _ if retries < most => self.again(&fault, retries, reason),
            _ if most > 0 => Next::Stop(Failure::Failed(format!("gave up after {} attempts. {reason}", retries + 1))),
            _ => Next::Stop(Failure::Failed(reason)),
        }
    }

    fn again(&self, fault: &Fault, retries: u32, reason: String) -> Next {
        let asked_ms = if let Fault::Refused { asked_ms, .. } = fault { *asked_ms } else { None };
        match retry::pause(retries + 1, self.settings.retry_base_ms, asked_ms) {
            Ok(wait_ms) => Next::Again { wait_ms, reason },
            Err(asked) => {
                let time = retry::human(asked);
                Next::Stop(Failure::Failed(format!(
                    "{reason} The server wants {time} of waiting, which is too long here."
                )))
            }
        }
    }

    /// A fault in words: what, where, and what can be done.
    fn describe(&self, fault: &Fault, url: &str) -> String {
        let (what, advice) = match fault {
            Fault::Interrupted => ("interrupted".into(), String::new()),
            Fault::Failed(failure) => (failure.words.clone(), String::new()),
            Fault::Unfinished(_) => {
                ("the stream ended without a finish_reason and without [DONE]".into(), String::new())
            }
            Fault::Empty => ("empty response: neither text nor a tool call".into(), String::new()),
            Fault::Refused { complaint, .. } => {
                let key = self.settings.key.as_ref().map_or("", |_| self.settings.key_source.as_str());
                let status = complaint.status.map_or(String::new(), |status| format!("{status}: "));
                (format!("{status}{}", complaint.words), advice::on(complaint, &self.line.place, key))
            }
        };
        let overflow = match fault {
            Fault::Refused { complaint, .. } if complaint.meaning() == Meaning::Overflow => {
                "the conversation is too long for the model's context window: "
            }
            _ => "",
        };
        let stop = if what.ends_with(['.', '!', '?']) { "" } else { "." };
        format!("{url}: {overflow}{what}{stop} {advice}").trim_end().to_owned()
    }

    fn redacted(&self, failure: Failure) -> Failure {
        match failure {
            Failure::Interrupted => Failure::Interrupted,
            Failure::Overflow(why) => Failure::Overflow(self.redact(why)),
            Failure::Failed(why) => Failure::Failed(self.redact(why)),
        }
    }
}

/// What follows a fault.
enum Next {
    /// The dialect was changed; what to tell the person.
    Changed(&'static str),
    Again {
        wait_ms: u64,
        reason: String,
    },
    Accept(Box<Assembly>),
    Stop(Failure),
}

/// Whether the same request can succeed later.
fn may_pass(fault: &Fault) -> bool {
    match fault {
        Fault::Refused { complaint, again, .. } => match complaint.meaning() {
            Meaning::Passing => again.unwrap_or(true),
            Meaning::Final => again.unwrap_or(false),
            Meaning::Overflow | Meaning::Quota => false,
        },
        Fault::Failed(failure) => failure.again,
        Fault::Unfinished(_) | Fault::Empty => true,
        Fault::Interrupted => false,
    }
}

/// A complete reply becomes the loop's.
fn accept(assembly: Assembly, history: &History, events: &mut Events) -> Reply {
    let (usage, finish) = (assembly.usage(), assembly.finish_reason().map(str::to_owned));
    if usage != Usage::default() {
        events.emit(Event::Usage(usage));
    }
    if finish.as_deref() == Some("length") && assembly.has_calls() {
        events.notice("the reply was cut at the output limit (finish_reason length): none of its calls is run");
    }
    let mut number = history.messages().len();
    let message = assembly.into_message(&mut || new_id(history, &mut number));
    Reply { message, finish, usage }
}

/// An id for a call that came without one: nine letters and digits, which is what Mistral insists on, and every other
/// server takes. Counted, not random, so that a replayed run sends the same bytes.
fn new_id(history: &History, number: &mut usize) -> String {
    loop {
        *number += 1;
        let id = format!("call{:05}", *number % 100_000);
        let taken =
            history.messages().iter().any(|message| matches!(message, Message::Tool { id: known, .. } if *known == id));
        if !taken {
            return id;
        }
    }
}

/// The headers of every request. A configured Authorization header takes the place of the key's.
fn headers(settings: &Settings) -> Result<Vec<(HeaderName, HeaderValue)>, String> {
    let mut headers = Vec::new();
    for (name, value) in &settings.headers {
        let header: HeaderName =
            name.trim().parse().map_err(|_| format!("`{}` is not the name of a header", name.trim()))?;
        headers.push((header, secret(value, &format!("the value of the header {}", name.trim()))?));
    }
    if let Some(key) = &settings.key
        && !headers.iter().any(|(name, _)| name == "authorization")
    {
        let what =
            if settings.key_source.is_empty() { "the key" } else { &format!("the key from {}", settings.key_source) };
        headers.push((HeaderName::from_static("authorization"), secret(&format!("Bearer {key}"), what)?));
    }
    Ok(headers)
}

/// A header's value that no debug output shows. The error does not hold it either.
fn secret(value: &str, what: &str) -> Result<HeaderValue, String> {
    let mut header = HeaderValue::from_str(value.trim()).map_err(|_| {
        format!("{what} holds a line break or another character that a header cannot hold; was it pasted whole?")
    })?;
    header.set_sensitive(true);
    Ok(header)
}

fn choose(names: &[String]) -> String {
    let shown: Vec<&str> = names.iter().take(20).map(String::as_str).collect();
    let more = names.len().saturating_sub(shown.len());
    let more = if more > 0 { format!(" and {more} more") } else { String::new() };
    format!("the server has {} models, choose one with --model: {}{more}", names.len(), shown.join(", "))
}

/// Waits, unless told to stop.
fn pause(ms: u64, cancel: &Cancel) -> Result<(), Failure> {
    let until = Instant::now() + Duration::from_millis(ms);
    while let Some(left) = until.checked_duration_since(Instant::now()).filter(|left| !left.is_zero()) {
        if cancel.is_raised() {
            return Err(Failure::Interrupted);
        }
        std::thread::sleep(left.min(Duration::from_millis(20)));
    }
    Ok(())
}
