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
mod models;
mod request;
mod retry;
mod secrets;
mod settings;
mod transport;
mod url;
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
use std::time::{Duration, Instant};
use transport::Transport;
use url::{Place, models_url, page_url};

pub use attempt::{Tap, Wire};
pub use settings::Settings;
pub use url::chat_url;

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

/// Why there is no model's name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Unnamed {
    /// The server has several, or says that it has none: the person has to choose. Lists up to 20.
    Choose(String),
    /// The server's list cannot be read.
    Unknown(String),
}

/// Takes secrets out of a text; see [`Endpoint::redact`].
pub type Redactor = Box<dyn Fn(String) -> String>;

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
    pub fn within(settings: Settings, env: impl Fn(&str) -> Option<String>) -> Result<Endpoint, String> {
        let settings = settings.cleaned();
        let url = chat_url(&settings.base_url)?;
        let place = Place::of(&url);
        let transport = Transport::new(&place, settings.http_headers()?, settings.idle_ms, env)?;
        let secrets = settings.secrets();
        let (idle_ms, progress_ms) = (settings.idle_ms, settings.progress_ms);
        let line = Line { transport, place, idle_ms, progress_ms, taps: Vec::new(), kept: false };
        Ok(Endpoint { settings, url, line, dialect: Dialect::default(), request: Request::default(), secrets })
    }

    /// Asks once, with retries and adaptions; emits request, retry, reasoning, text, usage and notice events.
    pub fn ask(&mut self, mut ask: Ask, events: &mut Events, cancel: &Cancel) -> Result<Reply, Failure> {
        if let Err(Unnamed::Choose(why) | Unnamed::Unknown(why)) = self.resolve_model(cancel) {
            return Err(if cancel.is_raised() { Failure::Interrupted } else { Failure::Failed(why) });
        }
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

    /// The model's name; where none is configured, the only one that the server lists.
    pub fn resolve_model(&mut self, cancel: &Cancel) -> Result<&str, Unnamed> {
        if self.settings.model.is_empty() {
            let names = self.models(cancel).map_err(|why| Unnamed::Unknown(format!("no model is named, and {why}")))?;
            self.settings.model = models::only(names).map_err(Unnamed::Choose)?;
        }
        Ok(&self.settings.model)
    }

    /// The models that the server lists. The error is in words for the person.
    pub fn models(&mut self, cancel: &Cancel) -> Result<Vec<String>, String> {
        let url = models_url(&self.url);
        let list = match self.line.get(&url, cancel) {
            Ok(body) => models::names(&body).map_err(|error| format!("{url} is not a list: {error}")),
            Err(fault) => Err(self.describe(&fault, &url)),
        };
        list.map_err(|why| self.redact(format!("the server's list of models cannot be read: {why}")))
    }

    /// A page of the same server beside its OpenAI-compatible part, such as Ollama's `/api/ps`. The error is in words.
    pub fn page(&mut self, path: &str, cancel: &Cancel) -> Result<Vec<u8>, String> {
        let url = page_url(&self.url, path);
        self.line.get(&url, cancel).map_err(|fault| self.redact(self.describe(&fault, &url)))
    }

    /// Shows what passes over the wire to one more tap.
    pub fn tap(&mut self, tap: Tap) {
        self.line.taps.push(tap);
    }

    /// Replaces the key and the values of configured headers (of 8 bytes or more) in a text by `[secret]`.
    pub fn redact(&self, text: String) -> String {
        self.secrets.redact(text)
    }

    /// The same for text that comes in pieces; `held` is what has to wait for the next one.
    pub fn redact_piece(&self, held: &mut String, piece: &str) -> String {
        self.secrets.redact_piece(held, piece)
    }

    /// The same for texts that are seen where the endpoint is not at hand, such as in a [`Tap`].
    pub fn redactor(&self) -> Redactor {
        let secrets = self.secrets.clone();
        Box::new(move |text| secrets.redact(text))
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
        match fault {
            Fault::Unfinished(assembly) if retries >= most && !assembly.is_empty() && !assembly.has_calls() => {
                Next::Accept(assembly)
            }
            _ if retries < most => self.again(&fault, retries),
            fault => {
                let tried =
                    if retries > 0 { format!("gave up after {} attempts. ", retries + 1) } else { String::new() };
                Next::Stop(Failure::Failed(tried + &self.describe(&fault, &self.url)))
            }
        }
    }

    fn again(&self, fault: &Fault, retries: u32) -> Next {
        let asked_ms = if let Fault::Refused { asked_ms, .. } = fault { *asked_ms } else { None };
        match retry::pause(retries + 1, self.settings.retry_base_ms, asked_ms) {
            Ok(wait_ms) => Next::Again { wait_ms, reason: fault.to_string() },
            Err(asked) => {
                let (why, time) = (self.describe(fault, &self.url), retry::human(asked));
                Next::Stop(Failure::Failed(format!("{why} The server wants a pause of {time}; try again then.")))
            }
        }
    }

    /// A fault in words: what, where (the full URL), and what can be done.
    fn describe(&self, fault: &Fault, url: &str) -> String {
        let advice = match fault {
            Fault::Refused { complaint, .. } => advice::on(complaint, &self.line.place, &self.settings),
            _ => String::new(),
        };
        let what = fault.to_string();
        let stop = if what.ends_with(['.', '?', '!']) { "" } else { "." };
        format!("{url}: {what}{stop} {advice}").trim_end().to_owned()
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

/// The reasons to finish that the protocol has. Others are accepted and shown (wire.md, S7): what a server calls its end
/// matters less than what it sent.
const KNOWN_REASONS: [&str; 5] = ["stop", "length", "tool_calls", "function_call", "content_filter"];

/// A complete reply becomes the loop's.
fn accept(assembly: Assembly, history: &History, events: &mut Events) -> Reply {
    let (usage, finish) = (assembly.usage(), assembly.finish_reason().map(str::to_owned));
    if usage != Usage::default() {
        events.emit(Event::Usage(usage));
    }
    if let Some(reason) = finish.as_deref().filter(|reason| !KNOWN_REASONS.contains(reason)) {
        events.notice(format!(
            "the reply ended with finish_reason {reason:?}, which the protocol does not know; it is taken as complete"
        ));
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

#[cfg(test)]
mod tests;
