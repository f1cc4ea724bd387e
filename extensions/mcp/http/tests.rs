//! Against small servers on loopback that say what they are told to.

use super::*;
use std::io::{Cursor, Write};
use std::net::{TcpListener, TcpStream};
use std::thread::JoinHandle;

fn stream(text: &'static str) -> Stream {
    Stream { reader: Box::new(Cursor::new(text)), resume: Resume::default() }
}

#[test]
fn events_come_with_their_ids_and_the_first_may_be_empty() {
    let mut stream = stream(
        "id: p\r\nretry: 70\r\ndata: \r\n\r\n: hello\n\nevent: message\nid: q\ndata: {\"a\":\ndata: 1}\n\nid: r\n",
    );
    assert_eq!(stream.event().unwrap(), Some("{\"a\":1}".into()));
    assert_eq!((stream.resume.last_id.as_deref(), stream.resume.pause), (Some("q"), Some(Duration::from_millis(70))));
    assert_eq!(stream.event().unwrap(), None);
    assert_eq!(stream.resume.last_id.as_deref(), Some("r"));
}

#[test]
fn a_refusal_is_told_with_words_and_help() {
    assert_eq!(refusal(400, br#"{"error":{"message":"Bad Request"}}"#), "HTTP 400: Bad Request");
    assert_eq!(
        refusal(404, b"nothing here"),
        "HTTP 404: nothing here; is the url that of an MCP server (most end in /mcp)?"
    );
    assert_eq!(refusal(500, b"<!doctype html>"), "HTTP 500");
    assert!(refusal(401, b"{\"error\":\"who?\"}").starts_with("HTTP 401: who?; it wants to know who asks"));
}

/// Answers one request on each connection with the next of these, and returns what was asked.
pub fn server(answers: Vec<String>) -> (String, JoinHandle<Vec<String>>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/mcp", listener.local_addr().unwrap());
    let serve = move || {
        let asked = answers.into_iter().map(|answer| {
            let (mut connection, _) = listener.accept().unwrap();
            let mut request = String::new();
            let mut reader = BufReader::new(connection.try_clone().unwrap());
            while !request.ends_with("\r\n\r\n") {
                reader.read_line(&mut request).unwrap();
            }
            let length = request.lines().find_map(|line| line.strip_prefix("content-length: ")?.parse().ok());
            let mut body = vec![0; length.unwrap_or(0)];
            reader.read_exact(&mut body).unwrap();
            connection.write_all(answer.as_bytes()).unwrap();
            request + &String::from_utf8(body).unwrap()
        });
        asked.collect()
    };
    (url, std::thread::spawn(serve))
}

pub fn response(status: &str, headers: &str, body: &str) -> String {
    format!("HTTP/1.1 {status}\r\n{headers}connection: close\r\ncontent-length: {}\r\n\r\n{body}", body.len())
}

fn http(url: String) -> Http {
    Http::new(&Address { url, headers: vec![("x-own".into(), "yes".into())] }, &Cancel::new())
}

#[test]
fn session_and_version_travel_and_a_stream_that_ended_is_taken_up() {
    let events = "content-type: text/event-stream\r\n";
    let (url, asked) = server(vec![
        response("200 OK", "content-type: application/json\r\nmcp-session-id: s1\r\n", "{\"id\":1}"),
        response("200 OK", events, "id: e1\nretry: 1\ndata: \n\n"),
        response("200 OK", events, "id: e2\ndata: {\"id\":2}\n\n"),
        response("202 Accepted", "", ""),
        response("200 OK", "", ""),
    ]);
    let (mut http, cancel) = (http(url), Cancel::new());
    let wait = Wait { until: Instant::now() + Duration::from_secs(10), cancel: &cancel };
    let mut ask = |id: u64| {
        http.send(&serde_json::json!({"id": id, "method": "m"}), &wait).unwrap();
        let Ok(Heard::Message(message)) = http.next(&wait) else { panic!("no message") };
        assert_eq!(message["id"], id);
    };
    ask(1);
    ask(2);
    http.agreed("2025-11-25");
    http.send(&serde_json::json!({"method": "n"}), &wait).unwrap();
    drop(http);
    let asked = asked.join().unwrap();
    assert!(asked[0].starts_with("POST /mcp") && asked[0].contains("accept: application/json, text/event-stream\r\n"));
    assert!(asked[0].contains("x-own: yes") && !asked[0].contains("mcp-session-id"), "{}", asked[0]);
    assert!(asked[2].starts_with("GET /mcp") && asked[2].contains("last-event-id: e1\r\n"), "{}", asked[2]);
    assert!(asked[3].contains("mcp-session-id: s1\r\n") && asked[3].contains("mcp-protocol-version: 2025-11-25\r\n"));
    assert!(asked[4].starts_with("DELETE /mcp") && asked[4].contains("mcp-session-id: s1\r\n"), "{}", asked[4]);
}

#[test]
fn a_stream_without_ids_that_ends_early_is_an_error_and_so_is_silence() {
    let (url, asked) = server(vec![response("200 OK", "content-type: text/event-stream\r\n", ": nothing\n\n")]);
    let (mut client, cancel) = (http(url), Cancel::new());
    let wait = Wait { until: Instant::now() + Duration::from_secs(10), cancel: &cancel };
    let ask = serde_json::json!({"id": 1, "method": "m"});
    client.send(&ask, &wait).unwrap();
    assert_eq!(client.next(&wait).unwrap_err(), Lost::Failed("the server ended its stream without an answer".into()));
    asked.join().unwrap();
    let silent = TcpListener::bind("127.0.0.1:0").unwrap();
    let mut client = http(format!("http://{}/mcp", silent.local_addr().unwrap()));
    let wait = Wait { until: Instant::now() + Duration::from_millis(200), cancel: &cancel };
    assert_eq!(client.send(&ask, &wait), Err(Lost::TimedOut));
}

/// Begins a stream, says nothing more, and keeps the connection.
fn stalls() -> (String, JoinHandle<TcpStream>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/mcp", listener.local_addr().unwrap());
    let serve = move || {
        let (mut connection, _) = listener.accept().unwrap();
        connection.read_exact(&mut [0; 64]).unwrap();
        connection.write_all(b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n\r\nid: 1\n").unwrap();
        connection
    };
    (url, std::thread::spawn(serve))
}

#[test]
fn a_stream_that_stalls_ends_at_the_time_limit_and_at_ctrl_c() {
    let ask = serde_json::json!({"id": 1, "method": "m"});
    for (limit, lost) in [(300, Lost::TimedOut), (60_000, Lost::Interrupted)] {
        let (url, server) = stalls();
        let (mut client, cancel, started) = (http(url), Cancel::new(), Instant::now());
        let wait = Wait { until: started + Duration::from_millis(limit), cancel: &cancel };
        client.send(&ask, &wait).unwrap();
        let raiser = cancel.clone();
        let raise = std::thread::spawn(move || {
            std::thread::sleep(Duration::from_millis(600));
            raiser.raise(mini::cancel::Cause::Interrupt);
        });
        assert_eq!(client.next(&wait).unwrap_err(), lost);
        assert!(started.elapsed() < Duration::from_secs(5), "{lost:?} after {:?}", started.elapsed());
        drop(server.join().unwrap());
        raise.join().unwrap();
    }
}
