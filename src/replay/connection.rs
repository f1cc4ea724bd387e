//! One connection: request after request is read, the script is asked, the reply is written with
//! all its faults.
//!
//! Every step gives an `io::Result`, and every error ends the connection: the client left, the
//! server stops, or the script wants the connection gone. None of them is worth a word, since what
//! matters was recorded before the reply began.

use super::request::{Fault, Request, find};
use super::response::{self, Framing};
use super::script::{Body, Chunk, End, Exchange, Response};
use super::server::{MODEL, Pace, Shared};
use serde_json::{Value, json};
use std::io::{self, BufReader};
use std::net::{Shutdown, TcpStream};
use std::time::{Duration, SystemTime};

/// Milliseconds before a delta that has no `pause_ms`, at [`Pace::Reading`]: some forty words a
/// second.
pub const READING_MS: u64 = 25;
/// Longest pause at [`Pace::Reading`], in ms: a recorded server may have thought for a minute, and the audience knows that
/// by now.
const LONGEST_MS: u64 = 2_000;
/// How long a connection that did not speak HTTP is listened to, so that closing it does not
/// swallow the answer.
const LEAVING: Duration = Duration::from_millis(500);
const END_OF_SCRIPT: &str =
    "the script has no further reply: it was made for another run, or the task is not one of its samples";

/// A connection and what it needs.
pub struct Connection<'a> {
    shared: &'a Shared,
    stream: &'a TcpStream,
    reader: BufReader<&'a TcpStream>,
}

/// A response in the form that this client gets.
struct Expanded {
    status: u16,
    headers: Vec<(String, String)>,
    chunks: Vec<Chunk>,
    end: End,
}

impl<'a> Connection<'a> {
    /// A connection that was just accepted.
    pub fn new(shared: &'a Shared, stream: &'a TcpStream) -> Self {
        Self { shared, stream, reader: BufReader::new(stream) }
    }

    /// Answers one request after the other until either side closes.
    pub fn serve(mut self) {
        loop {
            match Request::read(&mut self.reader, &mut self.stream) {
                Ok(request) => {
                    let last = closes(&request.headers);
                    if self.answer(request).is_err() || last {
                        return;
                    }
                }
                Err(Fault::Gone) => return,
                Err(Fault::Bad(what)) => {
                    self.shared.lock().play.malformed(&what);
                    return self.refuse(&what);
                }
            }
        }
    }

    fn answer(&mut self, request: Request) -> io::Result<()> {
        if request.method != "POST" {
            let (status, body) = list(&request);
            return response::write_json(&mut self.stream, status, &body.to_string());
        }
        let bytes = request.body.len();
        let body = serde_json::from_slice(&request.body).unwrap_or(Value::Null);
        let at = self.shared.started.elapsed();
        let exchange = self.shared.lock().play.request(request, at);
        match exchange {
            Some(exchange) => self.play(expanded(exchange, &body, bytes)),
            None => {
                self.answered();
                response::write_json(&mut self.stream, 400, &error(END_OF_SCRIPT, "end_of_script").to_string())
            }
        }
    }

    fn play(&mut self, response: Expanded) -> io::Result<()> {
        if response.status == 0 {
            self.answered();
            return self.close(&response.end);
        }
        let Expanded { status, headers, chunks, .. } = &response;
        let framing = response::write_head(&mut self.stream, *status, headers, SystemTime::now())?;
        for chunk in chunks {
            if self.shared.pace == Pace::Reading {
                self.shared.rest(chunk.pause_ms.unwrap_or(READING_MS).min(LONGEST_MS))?;
            }
            response::write_chunk(&mut self.stream, framing, &chunk.bytes)?;
        }
        self.answered();
        self.end(&response, framing)
    }

    fn end(&mut self, response: &Expanded, framing: Framing) -> io::Result<()> {
        match &response.end {
            End::Eof => {
                response::write_end(&mut self.stream, framing)?;
                if closes(&response.headers) || is_short(response) { gone() } else { Ok(()) }
            }
            End::Truncate | End::Reset => self.close(&response.end),
            // Ends when the client leaves or the server stops.
            End::Stall => io::copy(&mut self.reader, &mut io::sink()).and_then(|_| gone()),
            End::KeepAlive(keepalive) => loop {
                self.shared.rest(keepalive.every_ms)?;
                response::write_chunk(&mut self.stream, framing, keepalive.chunk.as_bytes())?;
            },
        }
    }

    /// From here on counts the delay of the next request. Noted before the last bytes are out, or
    /// the client might be faster.
    fn answered(&self) {
        self.shared.lock().play.answered(self.shared.started.elapsed());
    }

    /// Closes without another byte.
    fn close(&self, end: &End) -> io::Result<()> {
        if *end == End::Reset {
            // Closing a socket that does not linger sends RST in place of FIN. std cannot set this
            // yet.
            rustix::net::sockopt::set_socket_linger(self.stream, Some(Duration::ZERO))?;
        }
        gone()
    }

    /// Answers what is not HTTP, and waits a moment for the client to read it: closing with unread
    /// input resets the connection.
    fn refuse(mut self, what: &str) {
        let body = error(what, "malformed").to_string();
        let said = response::write_json(&mut self.stream, 400, &body);
        let said = said.and_then(|()| self.stream.shutdown(Shutdown::Write));
        if said.and_then(|()| self.stream.set_read_timeout(Some(LEAVING))).is_ok() {
            // Ends with the client, at the time-out, or with an error: all three mean that it is
            // over.
            let _ = io::copy(&mut self.reader, &mut io::sink());
        }
    }
}

/// Turns the shorthand into a stream, or into one object for a client that did not ask for a
/// stream.
fn expanded(exchange: Exchange, request: &Value, request_bytes: usize) -> Expanded {
    let Response { status, mut headers, body, end } = exchange.response;
    let model = request["model"].as_str().unwrap_or(MODEL);
    let chunks = match body {
        Body::Chunks(chunks) => chunks,
        Body::Reply(reply) if request["stream"] == true => reply.stream(model, request_bytes, end == End::Eof),
        Body::Reply(reply) => {
            headers.retain(|(name, _)| !name.eq_ignore_ascii_case("content-type"));
            headers.push(("Content-Type".to_string(), "application/json".to_string()));
            let bytes = reply.object(model, request_bytes).to_string().into_bytes();
            vec![Chunk { bytes, pause_ms: None }]
        }
    };
    Expanded { status, headers, chunks, end }
}

/// What is not a chat request: the list of models, or an error.
fn list(request: &Request) -> (u16, Value) {
    if request.method == "GET" && request.path.ends_with("/models") {
        let model = json!({"id":MODEL,"object":"model","owned_by":"replay"});
        return (200, json!({"object":"list","data":[model]}));
    }
    let message = format!("{} {} is not served here", request.method, request.path);
    (404, error(&message, "not_found"))
}

fn error(message: &str, code: &str) -> Value {
    json!({"error":{"message":message,"type":"replay","code":code}})
}

fn closes(headers: &[(String, String)]) -> bool {
    find(headers, "connection").is_some_and(|value| value.eq_ignore_ascii_case("close"))
}

/// Whether the body is not as long as its Content-Length says.
fn is_short(response: &Expanded) -> bool {
    let sent: usize = response.chunks.iter().map(|chunk| chunk.bytes.len()).sum();
    find(&response.headers, "content-length").is_some_and(|length| length.parse() != Ok(sent))
}

fn gone() -> io::Result<()> {
    Err(io::ErrorKind::ConnectionAborted.into())
}
