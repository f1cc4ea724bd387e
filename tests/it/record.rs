//! `--record` and `--replay`: what was recorded from a server, however oddly it framed its bytes, plays as the same run.

use crate::support::{KEY, Ran, Test};
use serde_json::{Value, json};
use std::io::Write;

/// What a run says, without what may differ: times, the session, the model and where it is asked, the sizes that
/// follow from its name, and how long a pause before a retry was.
fn said(ran: &Ran) -> Vec<Value> {
    let mut events = ran.events();
    for event in &mut events {
        let members = event.as_object_mut().unwrap();
        for name in ["at", "session", "model", "base_url", "workspace", "bytes", "estimated_tokens", "ms", "wait_ms"] {
            members.remove(name);
        }
        if members["type"] == "usage" || members["type"] == "end" {
            members.remove("usage");
        }
    }
    // Deltas are joined: a chunk boundary is not part of what was said.
    let mut joined: Vec<Value> = Vec::new();
    for event in events {
        match joined.last_mut() {
            Some(last) if last["type"] == event["type"] && event["delta"].is_string() && event["id"].is_null() => {
                let delta = format!("{}{}", last["delta"].as_str().unwrap(), event["delta"].as_str().unwrap());
                last["delta"] = delta.into();
            }
            _ => joined.push(event),
        }
    }
    joined
}

fn line(response: Value) -> String {
    json!({ "response": response }).to_string()
}

/// A response whose body comes in pieces of this size.
fn stream(body: &[u8], piece: usize, headers: Value, end: &str) -> String {
    let chunks: Vec<Value> = body.chunks(piece).map(|bytes| json!({"b64": base64(bytes)})).collect();
    line(json!({"headers": headers, "chunks": chunks, "end": end}))
}

/// The crate's own is not public.
fn base64(bytes: &[u8]) -> String {
    const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut text = String::new();
    for three in bytes.chunks(3) {
        let bits = (0..3).fold(0, |bits, i| bits << 8 | u32::from(three.get(i).copied().unwrap_or(0)));
        for place in 0..4 {
            let six = (bits >> (18 - 6 * place)) as usize & 63;
            text.push(if place <= three.len() { char::from(ALPHABET[six]) } else { '=' });
        }
    }
    text
}

fn events(deltas: &[Value], finish: Option<&str>, line_end: &str) -> Vec<u8> {
    let event = |choice: Value| format!("data: {}{line_end}{line_end}", json!({"choices": [choice]}));
    let mut body: String = deltas.iter().map(|delta| event(json!({"delta": delta}))).collect();
    if let Some(finish) = finish {
        body += &event(json!({"delta": {}, "finish_reason": finish}));
        body += &format!("data: [DONE]{line_end}{line_end}");
    }
    body.into_bytes()
}

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut child = std::process::Command::new("gzip")
        .arg("-c")
        .stdin(std::process::Stdio::piped())
        .stdout(std::process::Stdio::piped())
        .spawn()
        .expect("gzip");
    child.stdin.take().unwrap().write_all(bytes).unwrap();
    child.wait_with_output().unwrap().stdout
}

/// Records a run of this script, and plays the recording in a fresh workspace.
fn twice(script: &str, args: &[&str], stdin: Option<&str>) -> (Ran, Ran, String) {
    let test = |extra: [&str; 2]| {
        let test = Test::new().file("grüße.txt", "Grüße\n").args(extra).args(["--json"]).args(args.iter().copied());
        match stdin {
            Some(text) => test.stdin(text),
            None => test,
        }
    };
    let recorded = test(["--record", "../run.jsonl"]).script(script).run();
    let path = recorded.test.workspace().with_file_name("run.jsonl");
    let recording = std::fs::read_to_string(&path).unwrap();
    let replayed = test(["--replay", path.to_str().unwrap()]).without_endpoint().run();
    (recorded, replayed, recording)
}

#[test]
fn a_recording_plays_as_the_same_run_however_its_bytes_were_framed() {
    let call = json!({"tool_calls": [{"index": 0, "id": "c1", "type": "function",
        "function": {"name": "read", "arguments": "{\"path\":\"grüße.txt\"}"}}]});
    let half = events(&[json!({"content": "Die Datei grüßt"})], None, "\n");
    let cut = half.iter().position(|byte| *byte == 0xc3).unwrap() + 1;
    let sse = json!({"Content-Type": "text/event-stream"});
    let script = [
        line(json!({"status": 503, "headers": {"Retry-After": "1"}, "chunks": ["busy"]})),
        // One byte a read, so every character is split; CRLF.
        stream(
            &events(&[json!({"content": "Schön, ich lese: "}), call], Some("tool_calls"), "\r\n"),
            1,
            sse.clone(),
            "eof",
        ),
        // Cut in the middle of a character.
        stream(&half[..cut], 7, sse.clone(), "truncate"),
        // Compressed, although nobody asked for it.
        stream(
            &gzip(&events(
                &[json!({"reasoning_content": "Aha…"}), json!({"content": "Sie grüßt."})],
                Some("stop"),
                "\n",
            )),
            11,
            json!({"Content-Type": "text/event-stream", "Content-Encoding": "gzip"}),
            "eof",
        ),
    ]
    .join("\n");
    let (recorded, replayed, recording) = twice(&script, &["lies grüße.txt"], None);
    let (recorded, replayed) = (recorded.exit(0), replayed.exit(0));
    assert_eq!(recording.lines().count(), 4, "{recording}");
    assert!(!recording.contains(KEY) && recording.contains("b64") && recording.contains("truncate"), "{recording}");
    assert_eq!(said(&recorded), said(&replayed));
    assert_eq!(replayed.events_of("retry").len(), 2);
}

#[test]
fn a_failure_plays_as_the_same_failure() {
    let refused = json!({"status": 401, "headers": {"Content-Type": "application/json"},
        "chunks": [json!({"error": {"message": format!("Incorrect API key provided: {KEY}")}}).to_string()]});
    let (recorded, replayed, recording) = twice(&line(refused), &["hi"], None);
    assert!(recording.contains("[secret]") && !recording.contains(KEY), "{recording}");
    let reason = |ran: &Ran| ran.events_of("end")[0]["reason"].as_str().unwrap().to_owned();
    for ran in [recorded.exit(1), replayed.exit(1)] {
        assert!(reason(&ran).contains("401: Incorrect API key provided: [secret]."), "{}", reason(&ran));
    }
}

#[test]
fn what_the_person_answered_is_kept_and_given_again() {
    let script = [
        line(json!({"calls": [{"name": "write", "arguments": {"path": "a.txt", "content": "1\n"}}]})),
        line(json!({"calls": [{"name": "bash", "arguments": {"command": "rm a.txt"}}]})),
        line(json!({"text": "I leave it there."})),
    ]
    .join("\n");
    let talk = "make a file\ny\nno, keep it\n/quit\n";
    let test = Test::new().script(&script).args(["--talk", "--json", "--record", "../run.jsonl"]).stdin(talk);
    let recorded = test.run().exit(0).file("a.txt", "1\n");
    let path = recorded.test.workspace().with_file_name("run.jsonl");
    let recording = std::fs::read_to_string(&path).unwrap();
    let answers: Vec<&str> = recording.lines().filter(|line| line.starts_with("{\"answer\"")).collect();
    assert_eq!(answers, [r#"{"answer":"y"}"#, r#"{"answer":"no, keep it"}"#]);

    let replayed = Test::new()
        .without_endpoint()
        .args(["--json", "--replay", path.to_str().unwrap(), "make a file"])
        .run()
        .exit(0)
        .file("a.txt", "1\n");
    let by: Vec<Value> = replayed.events_of("approval").iter().map(|event| event["by"].clone()).collect();
    assert_eq!(by, ["script", "script"]);
    assert!(replayed.events_of("result")[1]["text"].as_str().unwrap().contains("no, keep it"));
}

#[test]
fn an_older_recording_is_not_overwritten() {
    let ran = Test::new().file("run.jsonl", "old").args(["--record", "run.jsonl", "hi"]).run();
    ran.exit(2).stderr_has("run.jsonl: it exists; name another file, or remove it").file("run.jsonl", "old");
    let ran = Test::new().without_endpoint().args(["--record", "run.jsonl", "hi"]).run().exit(2);
    assert!(!ran.test.workspace().join("run.jsonl").exists(), "a run without a request leaves no file");
}

#[test]
fn the_wire_shows_what_fragments_join_into_and_no_secret() {
    let refused = json!({"status": 401, "chunks": [format!("Incorrect API key: {KEY}")]});
    let test = Test::new().file("a.txt", "x\n").call("read", json!({"path": "a.txt"})).script(&line(refused));
    let ran = test.args(["--wire", "read a.txt"]).run().exit(1);
    ran.stderr_has("⇒ read {\"path\":\"a.txt\"}")
        .stderr_has("messages: 4, new: 2")
        .stderr_has("Incorrect API key: [secret]");
}
