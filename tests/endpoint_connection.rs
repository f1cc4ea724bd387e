//! What the endpoint does with its connection: keeps it, ends it, and tells about it without telling a secret.

use mini::cancel::{Cancel, Cause};
use mini::endpoint::{Ask, Endpoint, Failure, Reply, Settings, Wire};
use mini::event::{Event, Events, Observer, Stamp};
use mini::message::History;
use mini::replay::{Pace, Script, Server};
use serde_json::{Value, json};
use std::cell::RefCell;
use std::io::{Read, Write};
use std::net::TcpListener;
use std::rc::Rc;
use std::time::{Duration, Instant};

/// A server that plays these responses, one a request.
fn server(responses: &[Value]) -> Server {
    let lines: Vec<String> = responses.iter().map(|response| json!({ "response": response }).to_string()).collect();
    Server::start(Script::parse(&lines.join("\n")).unwrap(), Pace::AtOnce).unwrap()
}

/// A response of these events, ended in this way.
fn stream(events: &[&str], end: &str) -> Value {
    let chunks: Vec<String> = events.iter().map(|event| format!("data: {event}\n\n")).collect();
    json!({"status": 200, "headers": {"Content-Type": "text/event-stream"}, "chunks": chunks, "end": end})
}

const HELLO: &str = r#"{"choices":[{"delta":{"content":"hello"}}]}"#;
const STOP: &str = r#"{"choices":[{"delta":{},"finish_reason":"stop"}]}"#;
const DONE: &str = "[DONE]";

fn error(status: u16, headers: Value, body: &str) -> Value {
    json!({"status": status, "headers": headers, "chunks": [body]})
}

fn endpoint(base_url: String) -> Endpoint {
    let settings = Settings {
        base_url,
        model: "m".into(),
        key: Some("sk-0123456789\n".into()),
        key_source: "OPENAI_API_KEY".into(),
        retry_base_ms: 1,
        ..Settings::default()
    };
    Endpoint::within(settings, |_| None).unwrap()
}

#[derive(Clone, Default)]
struct Log(Rc<RefCell<Vec<String>>>);

impl Observer for Log {
    fn event(&mut self, _: &Stamp, event: &Event) -> Result<(), String> {
        self.0.borrow_mut().push(format!("{event:?}"));
        Ok(())
    }
}

fn ask(endpoint: &mut Endpoint, cancel: &Cancel) -> Result<Reply, Failure> {
    let mut history = History::new();
    history.user("go");
    let ask = Ask { turn: 1, system: "s", history: &mut history, tools: "[]" };
    endpoint.ask(ask, &mut Events::new(Vec::new()), cancel)
}

fn failure(endpoint: &mut Endpoint) -> String {
    match ask(endpoint, &Cancel::new()) {
        Err(Failure::Failed(why) | Failure::Overflow(why)) => why,
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_run_is_one_connection() {
    let server = server(&[
        stream(&[HELLO, STOP, DONE], "eof"),
        error(503, json!({}), "busy"),
        stream(&[HELLO, STOP, DONE], "eof"),
        stream(&[HELLO, STOP], "eof"),
    ]);
    let mut endpoint = endpoint(server.base_url());
    for _ in 0..3 {
        assert_eq!(ask(&mut endpoint, &Cancel::new()).unwrap().message.text, "hello");
    }
    assert_eq!(server.requests().len(), 4);
    assert_eq!(server.connections(), 1);
}

/// Answers the first request of each connection, and closes it unanswered at the second: what llama.cpp's closing of
/// kept connections looks like when it crosses the next request. `most` connections are taken.
fn closes_what_it_promised_to_keep(most: usize) -> (String, std::thread::JoinHandle<usize>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/v1", listener.local_addr().unwrap());
    let body = format!("data: {HELLO}\n\ndata: {STOP}\n\ndata: {DONE}\n\n");
    let reply = format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\nKeep-Alive: timeout=5\r\n\r\n{body}", body.len());
    let server = std::thread::spawn(move || {
        let mut requests = 0;
        for mut stream in listener.incoming().take(most).flatten() {
            let mut buffer = [0; 4096];
            for answer in [reply.as_str(), ""] {
                let mut got = Vec::new();
                while !got.ends_with(b"]}") {
                    match stream.read(&mut buffer) {
                        Ok(n @ 1..) => got.extend_from_slice(&buffer[..n]),
                        _ => break,
                    }
                }
                requests += usize::from(!got.is_empty());
                stream.write_all(answer.as_bytes()).unwrap();
            }
        }
        requests
    });
    (url, server)
}

#[test]
fn a_kept_connection_that_was_closed_meanwhile_costs_no_attempt() {
    let (url, server) = closes_what_it_promised_to_keep(3);
    let (mut endpoint, log) = (endpoint(url), Log::default());
    let (mut events, mut history) = (Events::new(vec![Box::new(log.clone())]), History::new());
    history.user("go");
    for turn in 1..=3 {
        let ask = Ask { turn, system: "s", history: &mut history, tools: "[]" };
        assert_eq!(endpoint.ask(ask, &mut events, &Cancel::new()).unwrap().message.text, "hello");
    }
    drop(endpoint);
    assert_eq!(server.join().unwrap(), 5);
    let retries = log.0.borrow().iter().filter(|event| event.starts_with("Retry")).count();
    assert_eq!(retries, 0, "{:?}", log.0.borrow());
}

#[test]
fn a_server_silent_after_done_is_cut_and_the_reply_kept() {
    let server = server(&[stream(&[HELLO, STOP, DONE], "stall"), stream(&[HELLO, STOP, DONE], "eof")]);
    let mut endpoint = endpoint(server.base_url());
    let started = Instant::now();
    assert_eq!(ask(&mut endpoint, &Cancel::new()).unwrap().message.text, "hello");
    let took = started.elapsed();
    assert!(took >= Duration::from_millis(450) && took < Duration::from_secs(4), "{took:?}");
    assert_eq!(ask(&mut endpoint, &Cancel::new()).unwrap().message.text, "hello");
}

#[test]
fn ctrl_c_ends_a_stalled_read_at_once_and_the_next_request_works() {
    let server = server(&[stream(&[HELLO], "stall"), stream(&[HELLO, STOP, DONE], "eof")]);
    let mut endpoint = endpoint(server.base_url());
    let (cancel, started) = (Cancel::new(), Instant::now());
    let theirs = cancel.clone();
    let signal = std::thread::spawn(move || {
        std::thread::sleep(Duration::from_millis(200));
        theirs.raise(Cause::Interrupt);
    });
    assert!(matches!(ask(&mut endpoint, &cancel), Err(Failure::Interrupted)));
    assert!(started.elapsed() < Duration::from_secs(2), "{:?}", started.elapsed());
    signal.join().unwrap();
    cancel.clear();
    assert_eq!(ask(&mut endpoint, &cancel).unwrap().message.text, "hello");
}

#[test]
fn ctrl_c_ends_a_pause_before_a_retry() {
    let server = server(&[error(429, json!({"Retry-After": "50"}), "slow down")]);
    let mut endpoint = endpoint(server.base_url());
    let (cancel, started) = (Cancel::new(), Instant::now());
    let theirs = cancel.clone();
    let signal = std::thread::spawn(move || {
        std::thread::sleep(Duration::from_millis(200));
        theirs.raise(Cause::Terminate);
    });
    assert!(matches!(ask(&mut endpoint, &cancel), Err(Failure::Interrupted)));
    assert!(started.elapsed() < Duration::from_secs(2));
    signal.join().unwrap();
}

#[test]
fn errors_name_the_url_the_words_and_the_next_step_and_never_the_key() {
    let rows = [
        (
            error(401, json!({}), r#"{"error":{"message":"Incorrect API key provided: sk-0123456789"}}"#),
            "401: Incorrect API key provided: [secret]. The key came from OPENAI_API_KEY.",
        ),
        (
            error(404, json!({}), ""),
            "404: (the server gave no reason). Check the base URL: /chat/completions is appended to it.",
        ),
        (
            error(429, json!({"Retry-After": "3600"}), r#"{"error":"daily limit reached"}"#),
            "429: daily limit reached. The server wants a pause of 60 min; try again then.",
        ),
        (
            error(429, json!({}), r#"{"error":{"message":"Pay!","code":"insufficient_quota"}}"#),
            "429: Pay! Check the account's credit.",
        ),
        (
            error(301, json!({"Location": "https://other.example/v1"}), ""),
            "301: a redirect to https://other.example/v1. It was not followed: correct the base URL.",
        ),
        (
            error(200, json!({"Content-Type": "text/html"}), "<html><body>Welcome</body></html>"),
            "200: an HTML page came back instead of an answer. Check the base URL: it leads to a web page.",
        ),
        (
            error(400, json!({}), r#"{"error":{"message":"prompt is too long"}}"#),
            "400: the conversation is too long for the model's context window: prompt is too long. Start a new one (/new), give a smaller task, or let the server have a larger window.",
        ),
        (stream(&[r#"{"error":{"code":400,"message":"no"}}"#], "eof"), "400: no."),
    ];
    for (response, wanted) in rows {
        let server = server(&[response]);
        let mut endpoint = endpoint(server.base_url());
        assert_eq!(failure(&mut endpoint), format!("{}/chat/completions: {wanted}", server.base_url()));
        assert_eq!(server.requests().len(), 1, "{wanted}");
    }
}

#[test]
fn what_passes_is_tried_four_times_and_each_retry_is_an_event() {
    let busy = error(503, json!({}), r#"{"error":"overloaded"}"#);
    let server = server(&[busy.clone(), busy.clone(), busy.clone(), busy]);
    let mut endpoint = endpoint(server.base_url());
    let (log, mut history) = (Log::default(), History::new());
    history.user("go");
    let ask = Ask { turn: 1, system: "s", history: &mut history, tools: "[]" };
    let result = endpoint.ask(ask, &mut Events::new(vec![Box::new(log.clone())]), &Cancel::new());
    let Err(Failure::Failed(why)) = result else { panic!("{result:?}") };
    assert!(why.starts_with("gave up after 4 attempts. ") && why.contains("503: overloaded"), "{why}");
    let log = log.0.borrow();
    let retries: Vec<&String> = log.iter().filter(|event| event.starts_with("Retry")).collect();
    assert_eq!(retries[2], "Retry { attempt: 3, wait_ms: 4, reason: \"503: overloaded\" }");
    assert_eq!(log.iter().filter(|event| event.starts_with("Request")).count(), 4);
}

#[test]
fn an_unfinished_reply_with_a_call_is_never_accepted() {
    let call =
        r#"{"choices":[{"delta":{"tool_calls":[{"index":0,"id":"a","function":{"name":"f","arguments":"{}"}}]}}]}"#;
    let cut = stream(&[HELLO, call], "eof");
    let server = server(&[cut.clone(), cut.clone(), cut.clone(), cut]);
    let why = failure(&mut endpoint(server.base_url()));
    assert!(why.contains("without a finish_reason"), "{why}");
}

#[test]
fn nobody_listens() {
    let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let why = failure(&mut endpoint(format!("http://127.0.0.1:{port}/v1")));
    assert!(why.ends_with("connection refused: is the server running, and is the port right?"), "{why}");
}

#[test]
fn a_wrong_scheme_is_suspected() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let mut stream = stream;
            let _ = stream.read(&mut [0; 1024]);
            let _ = stream.write_all(b"HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n");
        }
    });
    let why = failure(&mut endpoint(format!("https://127.0.0.1:{port}/v1")));
    assert!(why.contains("should the base URL begin with http://?"), "{why}");
}

#[test]
fn the_only_model_is_found_and_taps_see_the_bytes() {
    let server = server(&[stream(&[HELLO, STOP, DONE], "eof")]);
    let mut endpoint =
        Endpoint::within(Settings { base_url: server.base_url(), ..Settings::default() }, |_| None).unwrap();
    let seen = Rc::new(RefCell::new(Vec::new()));
    let theirs = Rc::clone(&seen);
    endpoint.tap(Box::new(move |wire: &Wire| {
        theirs.borrow_mut().push(match wire {
            Wire::Request { url, body } => format!("request {} {}", url.rsplit('/').next().unwrap(), body.len().min(1)),
            Wire::Status { code, .. } => format!("status {code}"),
            Wire::Bytes(bytes) => format!("bytes {}", bytes.len().min(1)),
            Wire::End { whole } => format!("end {whole}"),
        });
    }));
    assert_eq!(endpoint.resolve_model(&Cancel::new()), Ok("recorded"));
    assert_eq!(ask(&mut endpoint, &Cancel::new()).unwrap().message.text, "hello");
    let mut seen = seen.borrow().clone();
    seen.dedup();
    let wanted = [
        "request models 0",
        "status 200",
        "bytes 1",
        "end true",
        "request completions 1",
        "status 200",
        "bytes 1",
        "end true",
    ];
    assert_eq!(seen, wanted);
}

#[test]
fn settings_that_cannot_work_are_errors_in_words() {
    let with = |change: fn(&mut Settings)| {
        let mut settings =
            Settings { base_url: "http://h/v1".into(), key_source: "OPENAI_API_KEY".into(), ..Settings::default() };
        change(&mut settings);
        Endpoint::within(settings, |_| None).map(drop).unwrap_err()
    };
    let why = with(|settings| settings.key = Some("sk-secret\nsk-secret".into()));
    assert!(why.starts_with("the key from OPENAI_API_KEY holds a line break") && !why.contains("sk-secret"), "{why}");
    let why = with(|settings| settings.headers = vec![("api-key".into(), "se\ncret".into())]);
    assert!(why.starts_with("the value of the header api-key") && !why.contains("cret;"), "{why}");
    let why = with(|settings| settings.headers = vec![("api key".into(), "x".into())]);
    assert_eq!(why, "`api key` is not the name of a header");
    let why = with(|settings| settings.base_url = "localhost:8080".into());
    assert_eq!(why, "the base URL `localhost:8080` must begin with http:// or https://");
}
