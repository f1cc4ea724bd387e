//! `--record FILE`: the wire of a run as a file that `--replay FILE` plays.
//!
//! A recording is a script of the [`replay`](crate::replay) endpoint: lines of JSON, one thing a line, in the order in
//! which it happened. A line is written when its exchange is over, so a run that crashes leaves a usable file.
//!
//! ```json
//! {"name":"after user: fix the test","expect_request":{"body":{"/messages/-1/role":"user"}},
//!  "response":{"status":200,"headers":{"content-type":"text/event-stream"},
//!              "chunks":[{"text":"data: {…}\n\n","pause_ms":210},{"b64":"w6Q=","pause_ms":3}]}}
//! {"answer":"y"}
//! ```
//!
//! (An exchange is one line in the file.) `chunks` are the bytes of the body as they were read, decompressed, each with
//! the pause before it; what came within a millisecond is one chunk. `b64` holds what is not UTF-8, such as half a
//! character. `"end":"truncate"` stands behind the
//! chunks of a response that broke off or was given up. `answer` is what the person said to a question.
//!
//! **To trim one by hand:** delete whole lines from the end, or whole exchanges; join chunks, cut them elsewhere, or
//! change their `pause_ms`; put `{"text":"Done."}` in place of a whole `response`; delete `expect_request` and `name`, which
//! only serve reports and readers. Everything a line can hold is listed at the top of `src/replay/parse.rs`.
//!
//! What a recording does not hold: requests (they would hold the whole conversation again and again, and the replayed
//! run makes its own), headers other than the few that matter, the key, and the pause that a server asked for and got. A
//! stalled server is recorded as one that cut the connection: nobody wants to wait for it again.

use crate::endpoint::{Redactor, Tap, Wire};
use crate::event::{By, Event, Observer, Stamp, Verdict};
use crate::replay::{Seen, line};
use serde_json::json;
use std::cell::RefCell;
use std::fs::{File, OpenOptions};
use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::time::Instant;

/// A recording being made; clones write to the same file.
#[derive(Clone)]
pub struct Recorder(Rc<RefCell<Recording>>);

struct Recording {
    path: PathBuf,
    file: File,
    /// The exchange that is under way.
    seen: Option<Seen>,
    /// When its last bytes came.
    since: Instant,
    is_empty: bool,
    /// Why nothing more is written.
    failure: Option<String>,
}

impl Recorder {
    /// Begins a recording, readable by its owner alone. The file must not exist: a recording is made once, and an older
    /// one is not lost by a slip.
    pub fn create(path: &Path) -> Result<Recorder, String> {
        let file =
            OpenOptions::new().append(true).create_new(true).mode(0o600).open(path).map_err(|e| match e.kind() {
                std::io::ErrorKind::AlreadyExists => {
                    format!("cannot record into {}: it exists; name another file, or remove it", path.display())
                }
                _ => format!("cannot record into {}: {e}", path.display()),
            })?;
        let (seen, since, failure) = (None, Instant::now(), None);
        let recording = Recording { path: path.to_owned(), file, seen, since, is_empty: true, failure };
        Ok(Recorder(Rc::new(RefCell::new(recording))))
    }

    /// What records an endpoint's exchanges; `redact` takes out its secrets.
    pub fn tap(&self, redact: Redactor) -> Tap {
        let recording = Rc::clone(&self.0);
        Box::new(move |wire| recording.borrow_mut().wire(wire, &redact))
    }

    /// What records the person's answers. It also tells when the file cannot be written.
    pub fn observer(&self) -> Box<dyn Observer> {
        Box::new(self.clone())
    }
}

impl Observer for Recorder {
    fn event(&mut self, _: &Stamp, event: &Event) -> Result<(), String> {
        let mut recording = self.0.borrow_mut();
        if let Some(answer) = answer(event) {
            recording.write(&json!({ "answer": answer }).to_string());
        }
        recording.failure.clone().map_or(Ok(()), Err)
    }
}

/// What the person answered, if the event tells. "Always" answers later questions, too: in a replay they are put again.
fn answer(event: &Event) -> Option<String> {
    let Event::Approval { decision, by: By::User | By::Always, reason, .. } = event else { return None };
    let said = reason.as_deref().and_then(|reason| reason.strip_prefix("the person said"));
    match (decision, said) {
        (Verdict::Allowed, _) => Some("y".into()),
        (_, Some(" no")) => Some("n".into()),
        (_, Some(said)) => match said.strip_prefix(" no: ") {
            Some(why) => Some(format!("n {why}")),
            None => Some(said.trim_start_matches(": ").into()),
        },
        _ => None, // interrupted
    }
}

impl Recording {
    fn wire(&mut self, wire: &Wire, redact: &Redactor) {
        match (wire, &mut self.seen) {
            // The list of models: the replay has its own.
            (Wire::Request { body: [], .. }, _) => self.seen = None,
            (Wire::Request { body, .. }, _) => {
                self.since = Instant::now();
                self.seen = Some(Seen { request: body.to_vec(), ..Seen::default() });
            }
            (Wire::Status { code, headers }, Some(seen)) => (seen.status, seen.headers) = (*code, headers.clone()),
            (Wire::Bytes(bytes), Some(seen)) => {
                let pause_ms = self.since.elapsed().as_millis() as u64;
                self.since = Instant::now();
                match seen.chunks.last_mut() {
                    Some((chunk, _)) if pause_ms == 0 => chunk.extend_from_slice(bytes),
                    _ => seen.chunks.push((bytes.to_vec(), pause_ms)),
                }
            }
            (Wire::End { whole }, _) => {
                if let Some(seen) = self.seen.take() {
                    let seen = without_secrets(Seen { whole: *whole, ..seen }, redact);
                    self.write(&redact(line(&seen)));
                }
            }
            (_, None) => {}
        }
    }

    fn write(&mut self, line: &str) {
        if self.failure.is_some() {
            return;
        }
        match self.file.write_all(format!("{line}\n").as_bytes()) {
            Ok(()) => self.is_empty = false,
            Err(e) => self.failure = Some(format!("cannot record into {}: {e}", self.path.display())),
        }
    }
}

/// A run that made no request leaves no file, which would be in the way of the next.
impl Drop for Recording {
    fn drop(&mut self) {
        if self.is_empty {
            let _ = std::fs::remove_file(&self.path); // an empty file that stays is a small nuisance, and says so
        }
    }
}

/// A body that quotes a secret becomes one chunk: the secret may have been spread over several, or hidden in base64.
fn without_secrets(mut seen: Seen, redact: &Redactor) -> Seen {
    let bytes: Vec<u8> = seen.chunks.iter().flat_map(|(bytes, _)| bytes).copied().collect();
    let body = String::from_utf8_lossy(&bytes).into_owned();
    let clean = redact(body.clone());
    if clean != body {
        let pause_ms = seen.chunks.first().map_or(0, |(_, pause_ms)| *pause_ms);
        seen.chunks = vec![(clean.into_bytes(), pause_ms)];
    }
    seen
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::replay::{Body, Script};
    use tempfile::TempDir;

    fn recorded(wires: &[Wire]) -> (TempDir, PathBuf) {
        let dir = TempDir::new().unwrap();
        let path = dir.path().join("run.jsonl");
        let recorder = Recorder::create(&path).unwrap();
        wires.iter().for_each(recorder.tap(Box::new(|text| text.replace("sk-canary", "[secret]"))));
        (dir, path)
    }

    fn approval(decision: Verdict, by: By, reason: Option<&str>) -> Event {
        Event::Approval { id: "c".into(), question: None, decision, by, reason: reason.map(str::to_owned) }
    }

    #[test]
    fn an_exchange_is_a_line_and_a_secret_spread_over_chunks_is_not_in_it() {
        let request = Wire::Request { url: "http://h", body: b"{}" };
        let (_dir, path) = recorded(&[
            Wire::Request { url: "http://h/models", body: b"" },
            Wire::Bytes(b"[]"),
            Wire::End { whole: true },
            request,
            Wire::Status { code: 401, headers: vec![] },
            Wire::Bytes(b"your key sk-can"),
            Wire::Bytes(b"ary is \xff wrong"),
            Wire::End { whole: true },
        ]);
        let text = std::fs::read_to_string(path).unwrap();
        assert_eq!((text.lines().count(), text.contains("canary")), (1, false), "{text}");
        let response = &Script::parse(&text).unwrap().sections[0].exchanges[0].response;
        let Body::Chunks(chunks) = &response.body else { panic!("{response:?}") };
        assert_eq!(chunks[0].bytes, "your key [secret] is \u{fffd} wrong".as_bytes());
        assert_eq!((response.status, chunks.len()), (401, 1));
    }

    #[test]
    fn a_run_without_a_request_leaves_no_file_and_an_old_one_is_kept() {
        let (_dir, path) = recorded(&[]);
        assert!(!path.exists());
        std::fs::write(&path, "old").unwrap();
        let why = Recorder::create(&path).map(drop).unwrap_err();
        assert!(why.ends_with("run.jsonl: it exists; name another file, or remove it"), "{why}");
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "old");
        assert!(Recorder::create(Path::new("/nowhere/run.jsonl")).is_err());
    }

    #[test]
    fn answers_are_what_the_person_typed() {
        let no = |reason| answer(&approval(Verdict::Denied, By::User, Some(reason)));
        assert_eq!(no("the person said no").as_deref(), Some("n"));
        assert_eq!(no("the person said no: too long").as_deref(), Some("n too long"));
        assert_eq!(no("the person said: use make").as_deref(), Some("use make"));
        assert_eq!(no("interrupted"), None);
        assert_eq!(answer(&approval(Verdict::Allowed, By::Always, None)).as_deref(), Some("y"));
        assert_eq!(answer(&approval(Verdict::Allowed, By::Yes, None)), None);
    }
}
