//! The socket: one thread accepts, one thread a connection reads requests, asks [`Play`] for the
//! reply and writes it with all its faults.
//!
//! What the script remembers is behind one lock, taken to decide and never while bytes are written.
//! Stopping is prompt because no thread polls: the flag ends every pause, shutting the sockets down
//! ends every read and write.

use super::play::{Play, Recorded, Transcript};
use super::request::{Fault, Request, find};
use super::response::{self, Framing};
use super::script::{Body, Chunk, End, Exchange, Response, Script};
use serde_json::{Value, json};
use std::io::{self, BufReader, Read};
use std::net::{Ipv4Addr, Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError, Weak};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant, SystemTime};

/// The one model that the server lists; in replies it goes by the name that the client used.
pub const MODEL: &str = "recorded";
/// Milliseconds before a delta that has no `pause_ms`, at [`Pace::Reading`]: some forty words a
/// second.
const READING_MS: u64 = 25;
/// How long a connection that did not speak HTTP is listened to, so that closing it does not
/// swallow the answer.
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
    /// Listens on a free port of 127.0.0.1 and plays the script's first section. Errors: no port,
    /// no thread.
    pub fn start(script: Script, pace: Pace) -> Result<Self, String> {
        let listener =
            TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).map_err(|error| format!("listen on loopback: {error}"))?;
        let address = listener.local_addr().map_err(|error| format!("listen on loopback: {error}"))?;
        let state = Mutex::new(State { play: Play::new(script), stopping: false });
        let shared = Arc::new(Shared { pace, started: Instant::now(), state, stopped: Condvar::new() });
        let theirs = Arc::clone(&shared);
        let acceptor = thread::Builder::new().name("replay".to_string()).spawn(move || theirs.accept(&listener));
        let acceptor = acceptor.map_err(|error| format!("start the replay thread: {error}"))?;
        Ok(Self { address, shared, acceptor: Some(acceptor) })
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
        self.shared.lock().play.recorded().connections
    }

    /// The chat requests so far.
    pub fn requests(&self) -> Vec<Recorded> {
        self.shared.lock().play.recorded().requests.clone()
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

    /// Starts the thread of a connection. The thread alone owns the socket, so that its end closes
    /// it.
    fn connect(self: &Arc<Self>, stream: TcpStream) -> io::Result<(Weak<TcpStream>, JoinHandle<()>)> {
        stream.set_nodelay(true)?;
        self.lock().play.connected();
        let stream = Arc::new(stream);
        let (weak, shared) = (Arc::downgrade(&stream), Arc::clone(self));
        let thread =
            thread::Builder::new().name("replay connection".to_string()).spawn(move || shared.serve(&stream))?;
        Ok((weak, thread))
    }

    /// Answers one request after the other until either side closes.
    fn serve(&self, stream: &TcpStream) {
        let mut reader = BufReader::new(stream);
        loop {
            match Request::read(&mut reader, &mut &*stream) {
                Ok(request) => {
                    let last = request.header("connection").is_some_and(|value| value.eq_ignore_ascii_case("close"));
                    // An error here means that the client left or that the script wants the
                    // connection gone.
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
    fn answer(&self, request: Request, mut stream: &TcpStream, reader: &mut impl Read) -> io::Result<()> {
        if request.method != "POST" {
            let (status, body) = list(&request);
            return response::write_json(&mut stream, status, &body.to_string());
        }
        let (bytes, body) = (request.body.len(), serde_json::from_slice(&request.body).unwrap_or(Value::Null));
        let at = self.started.elapsed();
        let exchange = self.lock().play.request(request, at);
        match exchange {
            Some(exchange) => self.play(expanded(exchange, &body, bytes), stream, reader),
            None => {
                self.lock().play.answered(self.started.elapsed());
                let message = "the script has no further reply: it was made for another run, or the task is not one of its samples";
                let error = json!({"error":{"message":message,"type":"replay","code":"end_of_script"}});
                response::write_json(&mut stream, 400, &error.to_string())
            }
        }
    }

    fn play(&self, response: Expanded, mut stream: &TcpStream, reader: &mut impl Read) -> io::Result<()> {
        let Expanded { status, headers, chunks, end } = response;
        if status == 0 {
            self.lock().play.answered(self.started.elapsed());
            return close(stream, &end);
        }
        let framing = response::write_head(&mut stream, status, &headers, SystemTime::now())?;
        for chunk in &chunks {
            self.pause(chunk.pause_ms)?;
            response::write_chunk(&mut stream, framing, &chunk.bytes)?;
        }
        self.lock().play.answered(self.started.elapsed());
        match end {
            End::Eof => {
                response::write_end(&mut stream, framing)?;
                let sent: usize = chunks.iter().map(|chunk| chunk.bytes.len()).sum();
                let promised = find(&headers, "content-length").and_then(|length| length.parse().ok());
                let closes = find(&headers, "connection").is_some_and(|value| value.eq_ignore_ascii_case("close"));
                if closes || (framing == Framing::Length && promised != Some(sent)) {
                    close(stream, &End::Eof)
                } else {
                    Ok(())
                }
            }
            End::Stall => io::copy(reader, &mut io::sink()).and_then(|_| gone()),
            End::KeepAlive(keepalive) => loop {
                self.rest(keepalive.every_ms)?;
                response::write_chunk(&mut stream, framing, keepalive.chunk.as_bytes())?;
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
        let waited = self.stopped.wait_timeout_while(self.lock(), wait, |state| !state.stopping);
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
            vec![Chunk { bytes: reply.object(model, request_bytes).to_string().into_bytes(), pause_ms: None }]
        }
    };
    Expanded { status, headers, chunks, end }
}

/// What is not a chat request: the list of models, or an error.
fn list(request: &Request) -> (u16, Value) {
    if request.method == "GET" && request.path.ends_with("/models") {
        return (200, json!({"object":"list","data":[{"id":MODEL,"object":"model","owned_by":"replay"}]}));
    }
    let message = format!("{} {} is not served here", request.method, request.path);
    (404, json!({"error":{"message":message,"type":"replay","code":"not_found"}}))
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

/// Answers what is not HTTP, and waits a moment for the client to read it: closing with unread
/// input resets the connection.
fn refuse(mut stream: &TcpStream, what: &str) {
    let error = json!({"error":{"message":what,"type":"replay","code":"malformed"}});
    let said = response::write_json(&mut stream, 400, &error.to_string());
    let said =
        said.and_then(|()| stream.shutdown(Shutdown::Write)).and_then(|()| stream.set_read_timeout(Some(LEAVING)));
    if said.is_ok() {
        // Ends at the client's end, at the time-out, or with an error: all three mean that it is
        // over.
        let _ = io::copy(&mut stream, &mut io::sink());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;

    const CHAT: &str = r#"{"model":"m","stream":true,"messages":[{"role":"user","content":"hi"}]}"#;
    /// How a chunked body ends.
    const END: &str = "\r\n0\r\n\r\n";

    fn server(script: &str) -> Server {
        Server::start(Script::parse(script).unwrap(), Pace::AtOnce).unwrap()
    }

    fn connect(server: &Server) -> TcpStream {
        let stream = TcpStream::connect(server.address).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(10))).unwrap();
        stream
    }

    fn post(mut stream: &TcpStream, body: &str) {
        let head = format!("POST /v1/chat/completions HTTP/1.1\r\nHost: x\r\nContent-Length: {}\r\n\r\n", body.len());
        stream.write_all(format!("{head}{body}").as_bytes()).unwrap();
    }

    /// Everything up to and including `mark`.
    fn read_until(mut stream: &TcpStream, mark: &str) -> String {
        let (mut text, mut byte) = (vec![], [0]);
        while !text.ends_with(mark.as_bytes()) {
            assert_eq!(stream.read(&mut byte).unwrap(), 1, "closed after {:?}", String::from_utf8_lossy(&text));
            text.push(byte[0]);
        }
        String::from_utf8(text).unwrap()
    }

    /// Everything until the server closes, and how it does.
    fn read_all(mut stream: &TcpStream) -> (String, io::Result<usize>) {
        let mut bytes = vec![];
        let end = stream.read_to_end(&mut bytes);
        (String::from_utf8_lossy(&bytes).to_string(), end)
    }

    #[test]
    fn one_connection_serves_several_requests_and_is_counted_once() {
        let server = server("{\"response\":{\"text\":\"first\"}}\n{\"response\":{\"text\":\"second\"}}");
        let stream = connect(&server);
        post(&stream, CHAT);
        let first = read_until(&stream, END);
        assert!(
            first.starts_with("HTTP/1.1 200 OK\r\n")
                && first.contains("\"content\":\"first\"")
                && first.contains("\"model\":\"m\"")
        );
        post(&stream, CHAT);
        assert!(read_until(&stream, END).contains("\"content\":\"second\""));
        let transcript = server.finish();
        assert_eq!((transcript.connections, transcript.requests.len(), transcript.unplayed), (1, 2, 0));
        assert_eq!(transcript.failures, []);
        assert_eq!(transcript.requests[1].body, CHAT.as_bytes());
    }

    #[test]
    fn an_idle_connection_does_not_hold_up_another() {
        let server = server(r#"{"response":{"text":"hi"}}"#);
        let _idle = connect(&server);
        let stream = connect(&server);
        post(&stream, CHAT);
        read_until(&stream, END);
        assert_eq!(server.connections(), 2);
    }

    #[test]
    fn a_request_past_the_end_is_told_so_in_words() {
        let server = server(r#"{"response":{"text":"hi"}}"#);
        let stream = connect(&server);
        post(&stream, CHAT);
        read_until(&stream, END);
        post(&stream, CHAT);
        let answer = read_until(&stream, "}}");
        assert!(answer.starts_with("HTTP/1.1 400") && answer.contains("no further reply"), "{answer}");
        assert_eq!(server.finish().failures.len(), 1);
    }

    #[test]
    fn models_are_listed_and_other_requests_refused_without_moving_the_script() {
        let server = server(r#"{"response":{"text":"hi"}}"#);
        let mut stream = connect(&server);
        stream.write_all(b"GET /v1/models HTTP/1.1\r\n\r\nGET /v1/x HTTP/1.1\r\n\r\n").unwrap();
        assert!(read_until(&stream, "]").contains(MODEL));
        assert!(read_until(&stream, "}}").contains("404 Not Found"));
        let transcript = server.finish();
        assert_eq!((transcript.requests.len(), transcript.unplayed), (0, 1));
    }

    #[test]
    fn a_client_that_does_not_stream_gets_one_object() {
        let server = server(r#"{"response":{"text":"hi","calls":[{"name":"read","arguments":{}}]}}"#);
        let stream = connect(&server);
        post(&stream, &CHAT.replace("true", "false"));
        let answer = read_until(&stream, END);
        assert!(
            answer.contains("Content-Type: application/json") && answer.contains("\"object\":\"chat.completion\""),
            "{answer}"
        );
    }

    #[test]
    fn a_cut_stream_ends_without_its_last_chunk() {
        let server = server(r#"{"response":{"text":"half of it","end":"truncate"}}"#);
        let stream = connect(&server);
        post(&stream, CHAT);
        let (text, end) = read_all(&stream);
        assert!(end.is_ok() && text.contains("half") && !text.contains("[DONE]") && !text.ends_with(END), "{text}");
    }

    #[test]
    fn a_reset_is_a_reset_and_a_closed_connection_is_not() {
        let server = server(
            r#"
            {"response":{"status":0,"end":"reset"}}
            {"response":{"status":0}}
            {"response":{"chunks":["a"],"end":"reset"}}"#,
        );
        let ends = [(); 3].map(|()| {
            let stream = connect(&server);
            post(&stream, CHAT);
            read_all(&stream).1.map_err(|error| error.kind())
        });
        assert_eq!(ends, [Err(io::ErrorKind::ConnectionReset), Ok(0), Err(io::ErrorKind::ConnectionReset)]);
    }

    #[test]
    fn a_stalled_stream_stays_open_until_the_server_goes() {
        let server = server(r#"{"response":{"chunks":["data: x\n\n"],"end":"stall"}}"#);
        let stream = connect(&server);
        post(&stream, CHAT);
        read_until(&stream, "data: x\n\n\r\n");
        stream.set_read_timeout(Some(Duration::from_millis(50))).unwrap();
        let silent = (&stream).read(&mut [0]).map_err(|error| error.kind());
        assert!(matches!(silent, Err(io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut)), "{silent:?}");
        let before = Instant::now();
        drop(server);
        assert!(before.elapsed() < Duration::from_secs(1));
        assert_eq!((&stream).read(&mut [0]).unwrap(), 0);
    }

    #[test]
    fn keepalives_repeat_until_the_server_goes() {
        let server = server(r#"{"response":{"end":"keepalive","keepalive":{"chunk":": ping\n\n","every_ms":1}}}"#);
        let stream = connect(&server);
        post(&stream, CHAT);
        for _ in 0..3 {
            read_until(&stream, ": ping\n\n\r\n");
        }
        drop(server);
        assert!(!read_all(&stream).0.ends_with(END));
    }

    #[test]
    fn a_content_length_is_kept_and_a_short_body_shown_by_closing() {
        let server = server(
            r#"
            {"response":{"status":308,"headers":{"Content-Length":"0","Location":"/x"}}}
            {"response":{"headers":{"Content-Length":"9"},"chunks":["abc"]}}"#,
        );
        let stream = connect(&server);
        post(&stream, CHAT);
        assert!(!read_until(&stream, "\r\n\r\n").contains("chunked"));
        post(&stream, CHAT);
        assert!(read_all(&stream).0.ends_with("\r\n\r\nabc"));
    }

    #[test]
    fn reading_pace_waits_before_deltas() {
        let script = r#"{"response":{"chunks":[{"text":"a","pause_ms":0},{"text":"b","pause_ms":60},"c"]}}"#;
        let server = Server::start(Script::parse(script).unwrap(), Pace::Reading).unwrap();
        let (stream, before) = (connect(&server), Instant::now());
        post(&stream, CHAT);
        read_until(&stream, END);
        assert!(before.elapsed() >= Duration::from_millis(60 + READING_MS));
    }

    #[test]
    fn what_is_not_http_is_refused_recorded_and_survived() {
        let server = server(r#"{"response":{"text":"hi"}}"#);
        for garbage in
            [&b"\x16\x03\x01\x02\x00\x01\xfc\n"[..], b"POST / HTTP/1.1\r\nContent-Length: x\r\n\r\n", b"\r\n\r\n\r\n"]
        {
            let mut stream = connect(&server);
            stream.write_all(garbage).unwrap();
            stream.shutdown(Shutdown::Write).unwrap();
            assert!(read_all(&stream).0.starts_with("HTTP/1.1 400"));
        }
        let mut half = connect(&server);
        half.write_all(b"POST /v1/chat/completions HTTP/1.1\r\nContent-Length: 50\r\n\r\n{").unwrap();
        let stream = connect(&server);
        post(&stream, "not JSON");
        assert!(read_until(&stream, END).contains("\"object\":\"chat.completion\""));
        let failures: Vec<String> = server.finish().failures.into_iter().map(|failure| failure.name).collect();
        assert_eq!(failures, ["HTTP", "HTTP", "HTTP", "request 1"]);
    }

    #[test]
    fn dropping_ends_a_paused_reply_at_once() {
        let script = r#"{"response":{"chunks":[{"text":"a","pause_ms":60000}]}}"#;
        let server = Server::start(Script::parse(script).unwrap(), Pace::Reading).unwrap();
        let stream = connect(&server);
        post(&stream, CHAT);
        read_until(&stream, "\r\n\r\n");
        let before = Instant::now();
        drop(server);
        assert!(before.elapsed() < Duration::from_secs(1));
    }
}
