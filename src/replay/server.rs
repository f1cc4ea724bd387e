//! The port: one thread accepts, and each connection has its own.
//!
//! What the script remembers is behind one lock, taken to decide and never while bytes are written.
//! Stopping is prompt because no thread polls: the flag ends every pause, shutting the sockets down
//! ends every read and write.

use super::connection::Connection;
use super::play::{Play, Recorded, Transcript};
use super::script::Script;
use std::io;
use std::net::{Ipv4Addr, Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError, Weak};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

/// The one model that the server lists; in replies it goes by the name that the client used.
pub const MODEL: &str = "recorded";
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
pub(super) struct Shared {
    pub pace: Pace,
    pub started: Instant,
    state: Mutex<State>,
    stopped: Condvar,
}

pub(super) struct State {
    pub play: Play,
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
        let thread = thread::Builder::new()
            .name("replay connection".to_string())
            .spawn(move || Connection::new(&shared, &stream).serve())?;
        Ok((weak, thread))
    }

    /// Waits; an error if the server stops meanwhile.
    pub fn rest(&self, ms: u64) -> io::Result<()> {
        let wait = Duration::from_millis(ms);
        let waited = self.stopped.wait_timeout_while(self.lock(), wait, |state| !state.stopping);
        let (state, _) = waited.unwrap_or_else(PoisonError::into_inner);
        if state.stopping {
            return Err(io::ErrorKind::ConnectionAborted.into());
        }
        Ok(())
    }

    /// A thread that panicked leaves the state whole: nothing in it is changed half.
    pub fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::replay::connection::READING_MS;
    use std::io::{Read, Write};

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
