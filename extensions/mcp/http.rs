//! A server that is reached by HTTP, in the way called "streamable HTTP": each message is a POST to one URL, and the
//! answer to a request is a JSON body, or a stream of events that ends with it.
//!
//! What real servers insist on: an Accept header with both kinds (else 406), the session's id and the agreed version in
//! every request after the handshake (else 400). A stream can end before its answer: then it is taken up again by a GET
//! that names the last event seen, after the pause that the server asked for. A stream whose events carry no id cannot
//! be. A server that has forgotten the session says 404; then a new one begins.
//!
//! Left out: the stream that a GET opens for what the server says between calls; proxies; OAuth (a token goes into
//! `headers`).

use super::content::cut;
use super::servers::Address;
use super::transport::{Heard, Lost, Transport, Wait};
use mini::cancel::Cancel;
use serde_json::Value;
use std::collections::VecDeque;
use std::io::{self, BufRead, BufReader, Read};
use std::time::{Duration, Instant};
use ureq::http::{HeaderMap, Response};
use ureq::{Agent, Body};

/// What we take as an answer; servers refuse a request that does not take both.
const ACCEPT: &str = "application/json, text/event-stream";
/// An idle connection is not used again after this: many servers close theirs after five seconds.
const IDLE: Duration = Duration::from_secs(3);
/// The longest body, and the longest line of a stream, in bytes; of a refusal only the beginning is read.
const LONGEST: u64 = 16 << 20;
const REFUSAL: u64 = 4 << 10;
/// How often a broken stream is taken up, and after which pause where the server does not say.
const RESUMES: u32 = 5;
const PAUSE: Duration = Duration::from_secs(1);
/// How long the end of the session may take.
const FAREWELL: Duration = Duration::from_millis(500);

/// A server somewhere.
pub struct Http {
    agent: Agent,
    url: String,
    headers: Vec<(String, String)>,
    /// Given by the server with the answer to `initialize`, if it has sessions.
    session: Option<String>,
    version: Option<String>,
    heard: VecDeque<Heard>,
    /// The stream in which the answer will come.
    stream: Option<Stream>,
    cancel: Cancel,
}

/// A stream of events.
struct Stream {
    reader: Box<dyn BufRead>,
    resume: Resume,
}

/// What it takes to take up a stream that ended too early.
#[derive(Clone, Default)]
struct Resume {
    last_id: Option<String>,
    pause: Option<Duration>,
    times: u32,
}

impl Http {
    /// Nothing is sent yet.
    pub fn new(address: &Address, cancel: &Cancel) -> Http {
        let config = Agent::config_builder()
            .http_status_as_error(false)
            .max_redirects(0)
            .user_agent(concat!("mini/", env!("CARGO_PKG_VERSION")))
            .max_idle_age(IDLE)
            .proxy(None)
            .build();
        Http {
            agent: config.new_agent(),
            url: address.url.clone(),
            headers: address.headers.clone(),
            session: None,
            version: None,
            heard: VecDeque::new(),
            stream: None,
            cancel: cancel.clone(),
        }
    }

    /// The headers of every request.
    fn all_headers(&self) -> Vec<(&str, &str)> {
        let session = self.session.as_deref().map(|id| ("mcp-session-id", id));
        let version = self.version.as_deref().map(|version| ("mcp-protocol-version", version));
        let own = self.headers.iter().map(|(name, value)| (name.as_str(), value.as_str()));
        own.chain(session).chain(version).collect()
    }

    fn post(&self, message: &Value, left: Duration) -> Result<Response<Body>, ureq::Error> {
        let request = self.agent.post(&self.url).header("accept", ACCEPT).header("content-type", "application/json");
        let request =
            self.all_headers().into_iter().fold(request, |request, (name, value)| request.header(name, value));
        request.config().timeout_global(Some(left)).build().send(message.to_string().as_bytes())
    }

    /// Takes a stream up where it ended.
    fn get(&self, last_id: &str, left: Duration) -> Result<Response<Body>, ureq::Error> {
        let request = self.agent.get(&self.url).header("accept", "text/event-stream").header("last-event-id", last_id);
        let request =
            self.all_headers().into_iter().fold(request, |request, (name, value)| request.header(name, value));
        request.config().timeout_global(Some(left)).build().call()
    }

    /// Does something that blocks; Ctrl-C closes the connection under it.
    fn blocking<T, E: Into<ureq::Error>>(
        &mut self,
        wait: &Wait,
        work: impl FnOnce(&mut Http, Duration) -> Result<T, E>,
    ) -> Result<T, Lost> {
        if let Some(lost) = wait.over() {
            return Err(lost);
        }
        let agent = self.agent.clone();
        let blocked = wait.cancel.while_blocked(move || agent.clone().shutdown());
        let result = work(self, wait.until.saturating_duration_since(Instant::now()));
        drop(blocked);
        // The flag first: a connection that was closed under us fails in many ways, or looks like one that ended.
        if wait.cancel.is_raised() {
            self.agent = self.agent.config().new_agent();
            return Err(Lost::Interrupted);
        }
        result.map_err(|error| match error.into() {
            ureq::Error::Timeout(_) => Lost::TimedOut,
            ureq::Error::Io(error) if error.kind() == io::ErrorKind::TimedOut => Lost::TimedOut,
            error => Lost::Failed(format!("{}: {error}", self.url)),
        })
    }

    /// Takes the answer to a POST or a GET: a refusal is an error; a body is messages; a stream is to be read.
    fn take(&mut self, response: Response<Body>, resume: Resume, wait: &Wait) -> Result<(), Lost> {
        let status = response.status().as_u16();
        let kind = header(response.headers(), "content-type").unwrap_or_default();
        if let Some(id) = header(response.headers(), "mcp-session-id") {
            self.session = Some(id);
        }
        let reader = response.into_body().into_reader();
        if !(200..300).contains(&status) {
            let mut words = Vec::new();
            self.blocking(wait, |_, _| reader.take(REFUSAL).read_to_end(&mut words))?;
            if status == 404 && self.session.take().is_some() {
                self.version = None;
                return Err(Lost::Forgotten);
            }
            return Err(Lost::Failed(refusal(status, &words)));
        }
        if kind.starts_with("text/event-stream") {
            self.stream = Some(Stream { reader: Box::new(BufReader::new(reader)), resume });
            return Ok(());
        }
        let mut body = Vec::new();
        self.blocking(wait, |_, _| reader.take(LONGEST).read_to_end(&mut body))?;
        self.heard.extend(Heard::all_in(&body));
        Ok(())
    }

    /// The stream ended, or broke, before the answer came.
    fn take_up(&mut self, mut resume: Resume, wait: &Wait) -> Result<(), Lost> {
        let Some(id) = resume.last_id.clone().filter(|_| resume.times < RESUMES) else {
            return Err(Lost::Failed("the server ended its stream without an answer".into()));
        };
        let pause = Instant::now() + resume.pause.unwrap_or(PAUSE);
        while Instant::now() < pause {
            if let Some(lost) = wait.over() {
                return Err(lost);
            }
            std::thread::sleep(Duration::from_millis(10));
        }
        resume.times += 1;
        let response = self.blocking(wait, |http, left| http.get(&id, left))?;
        self.take(response, resume, wait)
    }
}

impl Transport for Http {
    fn send(&mut self, message: &Value, wait: &Wait) -> Result<(), Lost> {
        let response = self.blocking(wait, |http, left| http.post(message, left))?;
        if message.get("id").is_some() && message.get("method").is_some() {
            (self.stream, self.heard) = (None, VecDeque::new());
            return self.take(response, Resume::default(), wait);
        }
        // An answer of ours, or a notification: the server takes it (202), and the stream that we read goes on.
        let stream = self.stream.take();
        let taken = self.take(response, Resume::default(), wait);
        self.stream = stream;
        taken
    }

    fn next(&mut self, wait: &Wait) -> Result<Heard, Lost> {
        loop {
            if let Some(heard) = self.heard.pop_front() {
                return Ok(heard);
            }
            let Some(mut stream) = self.stream.take() else {
                return Err(Lost::Failed("the server answered without an answer".into()));
            };
            let event = self.blocking(wait, |_, _| stream.event());
            match event {
                Ok(Some(data)) => {
                    self.heard.extend(Heard::all_in(data.as_bytes()));
                    self.stream = Some(stream);
                }
                Ok(None) | Err(Lost::Failed(_)) => self.take_up(stream.resume, wait)?,
                Err(lost) => return Err(lost),
            }
        }
    }

    fn agreed(&mut self, version: &str) {
        self.version = Some(version.to_owned());
    }
}

/// Ends the session. Servers need not allow it, and one that is gone has none: nobody cares about the answer.
impl Drop for Http {
    fn drop(&mut self) {
        if self.session.is_none() || self.cancel.is_raised() {
            return;
        }
        let request = self.agent.delete(&self.url);
        let request =
            self.all_headers().into_iter().fold(request, |request, (name, value)| request.header(name, value));
        let _ = request.config().timeout_global(Some(FAREWELL)).build().call();
    }
}

impl Stream {
    /// The data of the next event that has some; `None` at the end. Notes ids and the pause on the way: a server's
    /// first event often carries only them, so that the stream can be taken up even if nothing else came.
    fn event(&mut self) -> io::Result<Option<String>> {
        let mut data = String::new();
        loop {
            let mut line = Vec::new();
            let n = (&mut self.reader).take(LONGEST).read_until(b'\n', &mut line)?;
            if n == 0 || data.len() as u64 > LONGEST {
                return Ok(None);
            }
            let line = String::from_utf8_lossy(&line);
            let line = line.trim_end_matches(['\n', '\r']);
            if line.is_empty() && !data.trim().is_empty() {
                return Ok(Some(data));
            }
            let (field, value) = line.split_once(':').unwrap_or((line, ""));
            let value = value.strip_prefix(' ').unwrap_or(value);
            match field {
                "data" => data.push_str(value),
                "id" => self.resume.last_id = Some(value.to_owned()),
                "retry" => self.resume.pause = value.parse().ok().map(Duration::from_millis),
                _ => {} // a comment, a kind of event, a blank line
            }
        }
    }
}

/// Why the server refused, with its own words and what may help.
fn refusal(status: u16, body: &[u8]) -> String {
    let json: Value = serde_json::from_slice(body).unwrap_or_default();
    let words = json["error"]["message"].as_str().or_else(|| json["error"].as_str()).map(str::to_owned);
    let words = words.unwrap_or_else(|| cut(String::from_utf8_lossy(body).trim(), 200));
    // An HTML page says nothing that the status does not.
    let words = if words.is_empty() || words.starts_with('<') { String::new() } else { format!(": {words}") };
    let help = match status {
        401 | 403 => "; it wants to know who asks: give it a header, \"headers\": {\"Authorization\": \"$NAME\"}",
        404 | 405 => "; is the url that of an MCP server (most end in /mcp)?",
        300..=399 => "; redirects are not followed",
        _ => "",
    };
    format!("HTTP {status}{words}{help}")
}

fn header(headers: &HeaderMap, name: &str) -> Option<String> {
    Some(headers.get(name)?.to_str().ok()?.to_owned())
}

#[cfg(test)]
pub(super) mod tests;
