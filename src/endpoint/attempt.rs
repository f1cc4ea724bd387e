//! One request and what comes back: sent, read, watched, put together. Whether to try again is decided in
//! [`endpoint`](crate::endpoint).
//!
//! Three things can end a read from outside: Ctrl-C, no progress for too long, and a server that says nothing more after
//! the reply is complete. All three close the connection under it. The order of questions afterwards matters: a body
//! without a length that was closed under us looks like one that ended, so the flags are asked before the result.

use crate::cancel::Cancel;
use crate::complaint::{self, Complaint, Meaning};
use crate::endpoint::retry;
use crate::endpoint::transport::{Failure, Transport};
use crate::endpoint::url::Place;
use crate::endpoint::watchdog::Watchdog;
use crate::event::{Event, Events};
use crate::reply::{Assembly, Piece, Trouble};
use crate::sse;
use std::fmt;
use std::io::Read;
use ureq::http::{HeaderMap, Response};

/// Silence after `[DONE]` before the connection is cut, in ms.
const AFTER_DONE_MS: u64 = 500;
/// Silence after a finish_reason (usage or `[DONE]` may follow), in ms.
const AFTER_FINISH_MS: u64 = 5_000;
/// Longest body of an error, and of a list of models, in bytes.
const MOST_OF_AN_ERROR: u64 = 64 << 10;
const MOST_OF_A_LIST: u64 = 4 << 20;

/// What passes over the wire, for `--wire` and `--record`. Headers of the request are not shown: they hold the key.
#[derive(Debug)]
pub enum Wire<'a> {
    /// A request goes out.
    Request {
        /// The full URL.
        url: &'a str,
        /// The body; empty for a GET.
        body: &'a [u8],
    },
    /// A response begins.
    Status {
        /// The HTTP status.
        code: u16,
        /// All headers.
        headers: Vec<(String, String)>,
    },
    /// Bytes of the body, as they were read (decompressed).
    Bytes(&'a [u8]),
    /// The exchange is over.
    End {
        /// Whether the response came to its end; else the connection failed, or was given up.
        whole: bool,
    },
}

/// Sees what passes over the wire.
pub type Tap = Box<dyn FnMut(&Wire)>;

/// Why an attempt gave no reply.
#[derive(Debug)]
pub enum Fault {
    /// The cancel flag was raised.
    Interrupted,
    /// The server complains, in a status or in the stream.
    Refused {
        /// What it says.
        complaint: Complaint,
        /// How long it wants us to wait, in ms.
        asked_ms: Option<u64>,
        /// Whether it says itself that a retry makes sense (`x-should-retry`).
        again: Option<bool>,
    },
    /// The connection failed.
    Failed(Failure),
    /// The stream ended properly, but nothing said that the reply is complete. What there is of it is handed over.
    Unfinished(Box<Assembly>),
    /// A complete reply without text and without calls.
    Empty,
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        match self {
            Fault::Interrupted => write!(f, "interrupted"),
            Fault::Failed(failure) => write!(f, "{}", failure.words),
            Fault::Unfinished(_) => write!(f, "the stream ended without a finish_reason and without [DONE]"),
            Fault::Empty => write!(f, "empty response: neither text nor a tool call"),
            Fault::Refused { complaint, .. } => write!(f, "{complaint}"),
        }
    }
}

/// One server, as an attempt needs it.
pub struct Line {
    /// The connection.
    pub transport: Transport,
    /// Where it leads.
    pub place: Place,
    /// Longest silence between two reads, in ms.
    pub idle_ms: u64,
    /// Longest time between two data events, in ms.
    pub progress_ms: u64,
    /// Who sees the bytes.
    pub taps: Vec<Tap>,
    /// Whether a request has been answered on the connection: then it may have been closed meanwhile.
    pub kept: bool,
}

impl Line {
    /// Asks for a reply; text and reasoning are events as they come.
    pub fn ask(&mut self, url: &str, body: &[u8], events: &mut Events, cancel: &Cancel) -> Result<Assembly, Fault> {
        self.watched(url, Some(body), cancel, |line, response, dog| {
            line.stream(response.into_body().into_reader(), dog, events)
        })
    }

    /// Gets a JSON document.
    pub fn get(&mut self, url: &str, cancel: &Cancel) -> Result<Vec<u8>, Fault> {
        self.watched(url, None, cancel, |line, response, dog| {
            let mut body = Vec::new();
            let mut reader = response.into_body().into_reader().take(MOST_OF_A_LIST);
            let read = reader.read_to_end(&mut body);
            line.tap(&Wire::Bytes(&body));
            read.map_err(|error| line.fault(error.into(), true, dog))?;
            Ok(body)
        })
    }

    /// Sends, and lets `read` take the response if it is a success.
    ///
    /// A connection that was kept may be closed by the time it is used again, and neither side is to blame: the same
    /// request goes out once more on a new one, at once and without a word. llama.cpp makes this frequent: it promises to
    /// keep the connection, and closes it behind every streamed reply, often just while the next request is written.
    fn watched<T>(
        &mut self,
        url: &str,
        body: Option<&[u8]>,
        cancel: &Cancel,
        mut read: impl FnMut(&mut Line, Response<ureq::Body>, &Watchdog) -> Result<T, Fault>,
    ) -> Result<T, Fault> {
        let was_kept = std::mem::replace(&mut self.kept, false);
        let result = match self.once(url, body, cancel, &mut read) {
            Err(Fault::Failed(Failure { unanswered: true, .. })) if was_kept => self.once(url, body, cancel, &mut read),
            result => result,
        };
        self.kept = !matches!(result, Err(Fault::Failed(_)));
        result
    }

    /// Sends once, with everything in place that can end a blocked read.
    fn once<T>(
        &mut self,
        url: &str,
        body: Option<&[u8]>,
        cancel: &Cancel,
        read: &mut impl FnMut(&mut Line, Response<ureq::Body>, &Watchdog) -> Result<T, Fault>,
    ) -> Result<T, Fault> {
        let (on_cancel, on_deadline) = (self.transport.handle(), self.transport.handle());
        let blocked = cancel.while_blocked(move || on_cancel.clone().shutdown());
        let dog = Watchdog::new(self.progress_ms, move || on_deadline.shutdown());
        self.tap(&Wire::Request { url, body: body.unwrap_or_default() });
        let result = self.exchange(url, body, &dog).and_then(|response| read(self, response, &dog));
        self.tap(&Wire::End { whole: !matches!(result, Err(Fault::Failed(_))) && !cancel.is_raised() });
        drop(blocked);
        let closed = dog.call_off() || cancel.is_raised();
        if closed || matches!(result, Err(Fault::Failed(_))) {
            self.transport.renew();
        }
        if cancel.is_raised() { Err(Fault::Interrupted) } else { result }
    }

    /// A successful response, or the server's complaint.
    fn exchange(&mut self, url: &str, body: Option<&[u8]>, dog: &Watchdog) -> Result<Response<ureq::Body>, Fault> {
        let response = self.transport.send(url, body).map_err(|error| self.fault(error, false, dog))?;
        let code = response.status().as_u16();
        self.tap(&Wire::Status { code, headers: listed(response.headers()) });
        if (200..300).contains(&code) { Ok(response) } else { Err(self.refusal(code, response)) }
    }

    fn refusal(&mut self, status: u16, response: Response<ureq::Body>) -> Fault {
        let (parts, body) = response.into_parts();
        let header = |name: &str| parts.headers.get(name).and_then(|value| value.to_str().ok());
        let mut text = Vec::new();
        // A body that breaks off still has words; the status alone has been received safely.
        let _ = body.into_reader().take(MOST_OF_AN_ERROR).read_to_end(&mut text);
        self.tap(&Wire::Bytes(&text));
        let mut complaint = Complaint::from_response(status, &text);
        if (300..400).contains(&status) {
            complaint = Complaint::of(&format!("a redirect to {}", header("location").unwrap_or("nowhere")));
            complaint.status = Some(status);
        }
        let again = header("x-should-retry").and_then(|value| value.parse().ok());
        Fault::Refused { complaint, asked_ms: retry::asked(header, crate::event::unix_ms()), again }
    }

    /// Reads a stream to its end.
    pub fn stream(&mut self, mut reader: impl Read, dog: &Watchdog, events: &mut Events) -> Result<Assembly, Fault> {
        let mut reading = Reading { progress_ms: self.progress_ms, ..Reading::default() };
        let mut parser = sse::Parser::new();
        let mut buffer = [0; 16 << 10];
        let ended = loop {
            match reader.read(&mut buffer) {
                Ok(0) => break Ok(()),
                Ok(n) => {
                    self.tap(&Wire::Bytes(&buffer[..n]));
                    let fed = parser.feed(&buffer[..n], &mut |event| reading.take(event, dog, events));
                    reading.trouble(fed)?;
                }
                Err(error) => break Err(self.fault(error.into(), true, dog)),
            }
        };
        parser.finish(&mut |event| reading.take(event, dog, events));
        reading.trouble(Ok(()))?;
        let bitten = dog.has_bitten().then(|| self.no_progress());
        conclude(reading.assembly, bitten.map_or(ended, Err))
    }

    /// What a failed read means: an expired deadline looks like any closed connection.
    fn fault(&self, error: ureq::Error, answering: bool, dog: &Watchdog) -> Fault {
        if dog.has_bitten() {
            return self.no_progress();
        }
        let mut failure = Failure::of(&error, &self.place, self.idle_ms, answering);
        if let (false, Some(name)) = (answering, self.transport.proxied_by) {
            failure.words += &format!(" (This goes through the proxy that {name} names.)");
        }
        Fault::Failed(failure)
    }

    fn no_progress(&self) -> Fault {
        let words = format!("timed out: nothing but keep-alives for {}", retry::human(self.progress_ms));
        Fault::Failed(Failure { words, again: true, unanswered: false })
    }

    fn tap(&mut self, wire: &Wire) {
        self.taps.iter_mut().for_each(|tap| tap(wire));
    }
}

fn listed(headers: &HeaderMap) -> Vec<(String, String)> {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    headers.iter().map(|(name, value)| (name.to_string(), text(value.as_bytes()))).collect()
}

/// A stream being read.
#[derive(Default)]
struct Reading {
    assembly: Assembly,
    trouble: Option<Trouble>,
    progress_ms: u64,
}

impl Reading {
    fn take(&mut self, event: sse::Event, dog: &Watchdog, events: &mut Events) {
        let was_done = self.assembly.done();
        let taken = self.assembly.take(event, &mut |piece| {
            events.emit(match piece {
                Piece::Text(text) => Event::Text { delta: text.into() },
                Piece::Reasoning(text) => Event::Reasoning { delta: text.into() },
            });
        });
        match taken {
            // A half-written event is often followed by the error that explains it.
            Err(trouble) if matches!(self.trouble, None | Some(Trouble::Broken(_))) => self.trouble = Some(trouble),
            _ => {}
        }
        if !was_done {
            dog.within(match (self.assembly.done(), self.assembly.complete()) {
                (true, _) => AFTER_DONE_MS,
                (false, true) => AFTER_FINISH_MS,
                (false, false) => self.progress_ms,
            });
        }
    }

    fn trouble(&mut self, fed: Result<(), String>) -> Result<(), Fault> {
        let failed = |words, again| Err(Fault::Failed(Failure { words, again, unanswered: false }));
        if let Err(words) = fed {
            return failed(words, false);
        }
        match self.trouble.take() {
            None => Ok(()),
            Some(Trouble::Complaint(complaint)) => Err(refused(complaint)),
            Some(Trouble::Html) => Err(refused(Complaint { status: Some(200), ..Complaint::of(complaint::HTML) })),
            Some(Trouble::Broken(text)) => failed(format!("the server sent broken JSON: {text}"), true),
            Some(Trouble::TooLong) => {
                failed(format!("the reply is longer than {} MiB", crate::reply::MAX_REPLY >> 20), false)
            }
        }
    }
}

fn refused(complaint: Complaint) -> Fault {
    Fault::Refused { complaint, asked_ms: None, again: None }
}

/// What a stream that has ended is worth.
fn conclude(assembly: Assembly, ended: Result<(), Fault>) -> Result<Assembly, Fault> {
    let finish = assembly.finish_reason();
    let reason =
        || Complaint::of(&format!("the server ended the reply with finish_reason {}", finish.unwrap_or("none")));
    if assembly.failed() || reason().meaning() == Meaning::Overflow {
        return Err(refused(reason()));
    }
    if finish == Some("content_filter") {
        return Err(Fault::Refused { complaint: reason(), asked_ms: None, again: Some(false) });
    }
    match ended {
        _ if assembly.complete() && assembly.is_empty() && finish != Some("length") => Err(Fault::Empty),
        _ if assembly.complete() => Ok(assembly), // whatever became of the tail (E13)
        Err(fault) => Err(fault),
        Ok(()) => Err(Fault::Unfinished(Box::new(assembly))),
    }
}
