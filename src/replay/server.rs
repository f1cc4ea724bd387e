//! The socket: one thread accepts, one thread a connection reads requests, asks [`Play`] for the reply and writes it with all its
//! faults.
//!
//! What the script remembers is behind one lock, taken to decide and never while bytes are written. Stopping is prompt because
//! no thread polls: the flag ends every pause, shutting the sockets down ends every read and write.

use super::http::{self, Fault, Framing, Request};
use super::play::{Play, Recorded, Transcript};
use super::script::{Body, Chunk, End, Exchange, Response, Script};
use serde_json::{Value, json};
use std::io::{self, BufReader, Read};
use std::net::{Ipv4Addr, Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError, Weak};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant, SystemTime};

/// The one model that the server lists; in replies it goes by the name that the client used.
pub const MODEL: &str = "recorded";
/// Milliseconds before a delta that has no `pause_ms`, at [`Pace::Reading`]: some forty words a second.
const READING_MS: u64 = 25;
/// How long a connection that did not speak HTTP is listened to, so that closing it does not swallow the answer.
const LEAVING: Duration = Duration::from_millis(500);

/// How fast replies are played.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Pace {
    /// Without any pause: exams and tests.
    AtOnce,
    /// With the recorded pauses, and where there are none, so that a person can read along.
    Reading,
}

/// The running endpoint; dropping it closes every connection and ends its threads.
pub struct Server {
    address: SocketAddr,
    shared: Arc<Shared>,
    acceptor: Option<JoinHandle<()>>,
}

/// What the threads share.
struct Shared {
    pace: Pace,
    started: Instant,
    state: Mutex<State>,
    stopped: Condvar,
}

struct State {
    play: Play,
    stopping: bool,
}

impl Server {
    /// Listens on a free port of 127.0.0.1 and plays the script's first section. Errors: no port, no thread.
    pub fn start(script: Script, pace: Pace) -> Result<Self, String> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))
            .map_err(|error| format!("listen on loopback: {error}"))?;
        let address = listener
            .local_addr()
            .map_err(|error| format!("listen on loopback: {error}"))?;
        let state = Mutex::new(State {
            play: Play::new(script),
            stopping: false,
        });
        let shared = Arc::new(Shared {
            pace,
            started: Instant::now(),
            state,
            stopped: Condvar::new(),
        });
        let theirs = Arc::clone(&shared);
        let acceptor = thread::Builder::new()
            .name("replay".to_string())
            .spawn(move || theirs.accept(&listener));
        let acceptor = acceptor.map_err(|error| format!("start the replay thread: {error}"))?;
        Ok(Self {
            address,
            shared,
            acceptor: Some(acceptor),
        })
    }

    /// `http://127.0.0.1:PORT/v1`.
    pub fn base_url(&self) -> String {
        format!("http://{}/v1", self.address)
    }

    /// Goes to the start of a section (`"1"` for sample 1). The error names the sections there are.
    pub fn select(&self, section: &str) -> Result<(), String> {
        self.shared.lock().play.select(section)
    }

    /// The person's answers in a section, in order; none for an unknown section.
    pub fn answers(&self, section: &str) -> Vec<String> {
        self.shared.lock().play.script().answers(section).to_vec()
    }

    /// How many connections were opened so far: a client that keeps its connection needs one.
    pub fn connections(&self) -> usize {
        self.transcript().connections
    }

    /// The chat requests so far.
    pub fn requests(&self) -> Vec<Recorded> {
        self.transcript().requests
    }

    /// Everything so far. A request is in it before its response begins.
    pub fn transcript(&self) -> Transcript {
        self.shared.lock().play.transcript()
    }

    /// Stops, and gives everything that happened.
    pub fn finish(mut self) -> Transcript {
        self.stop();
        self.transcript()
    }

    fn stop(&mut self) {
        let Some(acceptor) = self.acceptor.take() else {
            return;
        };
        self.shared.lock().stopping = true;
        self.shared.stopped.notify_all();
        // Wakes the acceptor. If that fails, its thread is left behind rather than waited for.
        if TcpStream::connect(self.address).is_ok() {
            // A panic there has been printed already, and nothing here depends on its end.
            let _ = acceptor.join();
        }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.stop();
    }
}

impl Shared {
    /// Waits for connections until the server stops, then ends them.
    fn accept(self: &Arc<Self>, listener: &TcpListener) {
        let mut open: Vec<(Weak<TcpStream>, JoinHandle<()>)> = vec![];
        for stream in listener.incoming() {
            if self.lock().stopping {
                break;
            }
            open.retain(|(_, thread)| !thread.is_finished());
            match stream.and_then(|stream| self.connect(stream)) {
                Ok(connection) => open.push(connection),
                Err(_) => thread::sleep(Duration::from_millis(10)), // Out of files or threads: others may end.
            }
        }
        for (stream, thread) in open {
            if let Some(stream) = stream.upgrade() {
                let _ = stream.shutdown(Shutdown::Both); // Fails only if the client was faster.
            }
            let _ = thread.join();
        }
    }

    /// Starts the thread of a connection. The thread alone owns the socket, so that its end closes it.
    fn connect(
        self: &Arc<Self>,
        stream: TcpStream,
    ) -> io::Result<(Weak<TcpStream>, JoinHandle<()>)> {
        stream.set_nodelay(true)?;
        self.lock().play.connected();
        let stream = Arc::new(stream);
        let (weak, shared) = (Arc::downgrade(&stream), Arc::clone(self));
        let thread = thread::Builder::new()
            .name("replay connection".to_string())
            .spawn(move || shared.serve(&stream))?;
        Ok((weak, thread))
    }

    /// Answers one request after the other until either side closes.
    fn serve(&self, stream: &TcpStream) {
        let mut reader = BufReader::new(stream);
        loop {
            match Request::read(&mut reader, &mut &*stream) {
                Ok(request) => {
                    let last = request
                        .header("connection")
                        .is_some_and(|value| value.eq_ignore_ascii_case("close"));
                    // An error here means that the client left or that the script wants the connection gone.
                    if self.answer(request, stream, &mut reader).is_err() || last {
                        return;
                    }
                }
                Err(Fault::Gone) => return,
                Err(Fault::Bad(what)) => {
                    self.lock().play.malformed(&what);
                    return refuse(stream, &what);
                }
            }
        }
    }

    /// Answers one request; an error ends the connection.
    fn answer(
        &self,
        request: Request,
        mut stream: &TcpStream,
        reader: &mut impl Read,
    ) -> io::Result<()> {
        if request.method != "POST" {
            let (status, body) = list(&request);
            return http::write_json(&mut stream, status, &body.to_string());
        }
        let (bytes, body) = (
            request.body.len(),
            serde_json::from_slice(&request.body).unwrap_or(Value::Null),
        );
        let at = self.started.elapsed();
        let exchange = self.lock().play.request(request, at);
        match exchange {
            Some(exchange) => self.play(expanded(exchange, &body, bytes), stream, reader),
            None => {
                self.lock().play.answered(self.started.elapsed());
                let message = "the script has no further reply: it was made for another run, or the task is not one of its samples";
                let error =
                    json!({"error":{"message":message,"type":"replay","code":"end_of_script"}});
                http::write_json(&mut stream, 400, &error.to_string())
            }
        }
    }

    fn play(
        &self,
        response: Expanded,
        mut stream: &TcpStream,
        reader: &mut impl Read,
    ) -> io::Result<()> {
        let Expanded {
            status,
            headers,
            chunks,
            end,
        } = response;
        if status == 0 {
            self.lock().play.answered(self.started.elapsed());
            return close(stream, &end);
        }
        let framing = http::write_head(&mut stream, status, &headers, SystemTime::now())?;
        for chunk in &chunks {
            self.pause(chunk.pause_ms)?;
            http::write_chunk(&mut stream, framing, &chunk.bytes)?;
        }
        self.lock().play.answered(self.started.elapsed());
        match end {
            End::Eof => {
                http::write_end(&mut stream, framing)?;
                let sent: usize = chunks.iter().map(|chunk| chunk.bytes.len()).sum();
                let promised =
                    http::find(&headers, "content-length").and_then(|length| length.parse().ok());
                let closes = http::find(&headers, "connection")
                    .is_some_and(|value| value.eq_ignore_ascii_case("close"));
                if closes || (framing == Framing::Length && promised != Some(sent)) {
                    close(stream, &End::Eof)
                } else {
                    Ok(())
                }
            }
            End::Stall => io::copy(reader, &mut io::sink()).and_then(|_| gone()),
            End::KeepAlive(keepalive) => loop {
                self.rest(keepalive.every_ms)?;
                http::write_chunk(&mut stream, framing, keepalive.chunk.as_bytes())?;
            },
            End::Truncate | End::Reset => close(stream, &end),
        }
    }

    fn pause(&self, recorded: Option<u64>) -> io::Result<()> {
        match self.pace {
            Pace::AtOnce => Ok(()),
            Pace::Reading => self.rest(recorded.unwrap_or(READING_MS)),
        }
    }

    /// Waits; an error if the server stops meanwhile.
    fn rest(&self, ms: u64) -> io::Result<()> {
        let wait = Duration::from_millis(ms);
        let waited = self
            .stopped
            .wait_timeout_while(self.lock(), wait, |state| !state.stopping);
        let (state, _) = waited.unwrap_or_else(PoisonError::into_inner);
        if state.stopping { gone() } else { Ok(()) }
    }

    /// A thread that panicked leaves the state whole: nothing in it is changed half.
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A response in the form that this client gets.
struct Expanded {
    status: u16,
    headers: Vec<(String, String)>,
    chunks: Vec<Chunk>,
    end: End,
}

/// Turns the shorthand into a stream, or into one object for a client that did not ask for a stream.
fn expanded(exchange: Exchange, request: &Value, request_bytes: usize) -> Expanded {
    let Response {
        status,
        mut headers,
        body,
        end,
    } = exchange.response;
    let model = request["model"].as_str().unwrap_or(MODEL);
    let chunks = match body {
        Body::Chunks(chunks) => chunks,
        Body::Reply(reply) if request["stream"] == true => {
            reply.stream(model, request_bytes, end == End::Eof)
        }
        Body::Reply(reply) => {
            headers.retain(|(name, _)| !name.eq_ignore_ascii_case("content-type"));
            headers.push(("Content-Type".to_string(), "application/json".to_string()));
            vec![Chunk {
                bytes: reply.object(model, request_bytes).to_string().into_bytes(),
                pause_ms: None,
            }]
        }
    };
    Expanded {
        status,
        headers,
        chunks,
        end,
    }
}

/// What is not a chat request: the list of models, or an error.
fn list(request: &Request) -> (u16, Value) {
    if request.method == "GET" && request.path.ends_with("/models") {
        return (
            200,
            json!({"object":"list","data":[{"id":MODEL,"object":"model","owned_by":"replay"}]}),
        );
    }
    let message = format!("{} {} is not served here", request.method, request.path);
    (
        404,
        json!({"error":{"message":message,"type":"replay","code":"not_found"}}),
    )
}

/// Closes without another byte; the error ends the connection's loop.
fn close(stream: &TcpStream, end: &End) -> io::Result<()> {
    if *end == End::Reset {
        // Closing a socket that does not linger sends RST in place of FIN. std cannot set this yet.
        rustix::net::sockopt::set_socket_linger(stream, Some(Duration::ZERO))?;
    }
    gone()
}

fn gone() -> io::Result<()> {
    Err(io::ErrorKind::ConnectionAborted.into())
}

/// Answers what is not HTTP, and waits a moment for the client to read it: closing with unread input resets the connection.
fn refuse(mut stream: &TcpStream, what: &str) {
    let error = json!({"error":{"message":what,"type":"replay","code":"malformed"}});
    let said = http::write_json(&mut stream, 400, &error.to_string());
    let said = said
        .and_then(|()| stream.shutdown(Shutdown::Write))
        .and_then(|()| stream.set_read_timeout(Some(LEAVING)));
    if said.is_ok() {
        // Ends at the client's end, at the time-out, or with an error: all three mean that it is over.
        let _ = io::copy(&mut stream, &mut io::sink());
    }
}
