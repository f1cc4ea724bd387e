//! Bytes that real servers sent, from the socket up to the reply: llama.cpp, LiteLLM in front of it, and two mock servers
//! that inject faults. The files hold whole HTTP responses as they came, chunked coding included; what each becomes is a
//! line of `expected.tsv`.

use mini::cancel::Cancel;
use mini::endpoint::{Ask, Endpoint, Failure, Reply, Settings};
use mini::event::Events;
use mini::message::History;
use std::collections::BTreeSet;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::Mutex;
use std::thread::JoinHandle;

/// Answers each of up to four connections with the same bytes, then closes it.
fn serve(response: Vec<u8>) -> (String, JoinHandle<()>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/v1", listener.local_addr().unwrap());
    let server = std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            if !request(&stream) {
                return;
            }
            let _ = (&stream).write_all(&response);
        }
    });
    (url, server)
}

/// Reads one request; false if there is none, which ends the server.
fn request(stream: &TcpStream) -> bool {
    let mut reader = BufReader::new(stream);
    let (mut line, mut length) = (String::new(), 0);
    while reader.read_line(&mut line).unwrap_or(0) > 2 {
        if let Some(value) = line.to_ascii_lowercase().strip_prefix("content-length:") {
            length = value.trim().parse().unwrap_or(0);
        }
        line.clear();
    }
    std::io::copy(&mut reader.take(length), &mut std::io::sink()).is_ok_and(|n| n > 0)
}

/// What a capture becomes, in one line.
fn play(name: &str) -> String {
    let (base_url, server) = serve(std::fs::read(format!("tests/cases/captures/{name}.txt")).unwrap());
    let address = base_url.replace("http://", "").replace("/v1", "");
    let settings = Settings { base_url, model: "m".into(), retry_base_ms: 1, ..Settings::default() };
    let mut endpoint = Endpoint::within(settings, |_| None).unwrap();
    let mut history = History::new();
    history.user("go");
    let ask = Ask { turn: 1, system: "s", history: &mut history, tools: "[]" };
    let result = endpoint.ask(ask, &mut Events::new(Vec::new()), &Cancel::new());
    drop(endpoint);
    drop(TcpStream::connect(&address));
    server.join().unwrap();
    match result {
        Ok(reply) => show(&reply),
        Err(Failure::Overflow(why)) => format!("overflow: {}", why.replace(&address, "HOST")),
        Err(Failure::Failed(why)) => format!("failed: {}", why.replace(&address, "HOST")),
        Err(Failure::Interrupted) => "interrupted".into(),
    }
}

fn show(reply: &Reply) -> String {
    let calls: Vec<String> = reply
        .message
        .calls
        .iter()
        .map(|call| match &call.arguments {
            Ok(arguments) => format!("{} {}", call.name, serde_json::Value::from(arguments.clone())),
            Err(_) => format!("{} unusable {:?}", call.name, call.raw),
        })
        .collect();
    let text: String = reply.message.text.chars().take(24).collect();
    format!("{:?} {text:?} {} {}/{}", reply.finish, calls.join(", "), reply.usage.input, reply.usage.output)
}

/// The captures by name, and what each becomes.
fn expected() -> Vec<(String, String)> {
    let text = std::fs::read_to_string("tests/cases/captures/expected.tsv").unwrap();
    let rows = text.lines().map(|line| line.split_once('\t').unwrap());
    rows.map(|(name, becomes)| (name.to_owned(), becomes.to_owned())).collect()
}

#[test]
fn captures_of_real_servers() {
    let queue = Mutex::new(expected());
    let wrong = Mutex::new(Vec::new());
    std::thread::scope(|scope| {
        for _ in 0..8 {
            scope.spawn(|| {
                while let Some((name, wanted)) = { queue.lock().unwrap().pop() } {
                    let got = play(&name);
                    if got != wanted {
                        wrong.lock().unwrap().push(format!("{name}\n  wanted {wanted}\n  got    {got}"));
                    }
                }
            });
        }
    });
    let wrong = wrong.into_inner().unwrap();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn every_capture_is_played() {
    let files = std::fs::read_dir("tests/cases/captures").unwrap().map(|entry| entry.unwrap().path());
    let files = files.filter(|path| path.extension().is_some_and(|end| end == "txt"));
    let files: BTreeSet<String> = files.map(|path| path.file_stem().unwrap().to_str().unwrap().to_owned()).collect();
    let rows: BTreeSet<String> = expected().into_iter().map(|(name, _)| name).collect();
    assert_eq!(files, rows);
    assert!(rows.len() > 60, "only {} captures", rows.len());
}
