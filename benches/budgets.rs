//! The budgets of the design, measured on the built binary against the replay endpoint: `cargo bench`.
//!
//! One table comes out, and exit status 1 if a budget is missed. It is a bench and never a test: a test that looks at
//! a clock fails on a busy machine, and then nobody believes it. Where it can, it looks at CPU time, which other
//! programs disturb little; the two figures that are waited for (start, a turn) are medians. Run it on a quiet machine.
//!
//! Peak memory is that of the agent's own process; a command's is its own affair. MB is 1,000,000 bytes.
//!
//! CPU time and peak memory come from `/proc`, so this runs on Linux only. Rejected: criterion and divan (they repeat
//! a function in this process; what counts here is a whole process, and its memory), and `wait4` (needs `unsafe`).
//!
//! Measured by hand, because they need a build of their own (cpu-seconds are user + sys of `time`):
//!
//! ```text
//! time cargo build           --target-dir /tmp/clean       clean dev build       130 cpu-s
//! time cargo build --release --target-dir /tmp/clean       clean release build   240 cpu-s
//! touch src/agent.rs; time cargo build --target-dir /tmp/clean      one line         3 cpu-s
//! cargo test --no-run; time cargo test                     the tests             120 s
//! ```

// Throw-away workspaces and the gate's corpus; the tests use more of it.
#[allow(dead_code)]
#[path = "../tests/gate/fixture.rs"]
mod fixture;

use mini::gate;
use mini::replay::{
    Body, Call, Chunk, End, Exchange, Expect, Pace, Recorded, Reply, Response, Script, Section, Server,
};
use serde_json::{Value, json};
use std::fs::{self, File};
use std::hint::black_box;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitCode, Stdio};
use std::thread;
use std::time::{Duration, Instant};

const BINARY: &str = env!("CARGO_BIN_EXE_mini");
const MB: usize = 1_000_000;
/// Runs whose median is the time to the first request.
const STARTS: usize = 30;
/// Runs of each length; their CPU times are summed, since the kernel reports them in steps of 10 ms.
const LONG_RUNS: usize = 20;
/// Turns of the shorter and of the longer run: what the longer one takes more is the cost of the turns around the 50th.
const TURNS: (usize, usize) = (40, 60);
/// Bytes of text in a delta: a few words, as servers send them.
const DELTA: usize = 20;
/// Events in one write of the server, so that it is never the slower side.
const EVENTS_IN_A_WRITE: usize = 200;

fn main() -> ExitCode {
    // `cargo test --benches` runs it too, on a debug binary: `cargo bench` alone says `--bench`.
    if !std::env::args().any(|arg| arg == "--bench") {
        return ExitCode::SUCCESS;
    }
    let mut table = Table::default();
    let size = fs::metadata(BINARY).expect("the binary").len();
    table.add("stripped binary, MB", megabytes(size), Some(5.0));
    starts(&mut table);
    turns(&mut table);
    memory(&mut table);
    deltas(&mut table);
    gate(&mut table);
    if table.kept { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

// What is measured

/// From the start of a process to its first request, complete at the server.
fn starts(table: &mut Table) {
    let place = Place::new();
    let first = |ran: &Ran| ran.requests[0].at;
    let run = || place.run(vec![says("Hello.")], &["hello"]);
    let hello = run().requests.remove(0).body;
    place.file("body.json", &hello);
    // By turns, so that a busy machine is equally busy for both.
    let (runs, curls): (Vec<Ran>, Vec<Option<Ran>>) = (0..STARTS).map(|_| (run(), place.curl("@body.json"))).unzip();
    let ours = milliseconds(median(runs.iter().map(first)));
    table.add("first request, bytes", hello.len() as f64, Some(3000.0));
    table.add("first request out, ms (median of 30)", ours, Some(10.0));
    match curls.iter().flatten().map(first).collect::<Vec<_>>() {
        none if none.is_empty() => println!("curl is not here to be compared with"),
        curls => table.add("  the same, at most curl's", ours, Some(milliseconds(median(curls)))),
    }
    let peak = runs.iter().map(|ran| ran.peak).max().unwrap_or_default();
    table.add("peak memory of a hello, MB", megabytes(peak), Some(12.0));
}

/// Turn 50 of a run that reads a piece of a file in every turn. Included: the request, the reply's stream, the read, the
/// session log, the screen. Not included: the server's work.
fn turns(table: &mut Table) {
    let place = Place::new();
    place.file("notes.txt", "one line of the file that is read again and again\n".repeat(500));
    let run = |turns: usize| {
        let reads = (1..turns).map(|turn| calls("read", &json!({"path": "notes.txt", "offset": turn, "limit": 20})));
        place.run(reads.chain([says("Done.")]).collect(), &["go"]).did("one line of the file")
    };
    let (short, long): (Vec<Ran>, Vec<Ran>) = (0..LONG_RUNS).map(|_| (run(TURNS.0), run(TURNS.1))).unzip();
    let cpu = |runs: &[Ran]| runs.iter().map(|ran| ran.cpu).sum::<Duration>();
    let more = cpu(&long).saturating_sub(cpu(&short)) / (LONG_RUNS * (TURNS.1 - TURNS.0)) as u32;
    table.add("own work a turn at turn 50, CPU ms", milliseconds(more), Some(1.0));

    let gaps = |at: &[Duration]| at.windows(2).map(|two| two[1] - two[0]).collect::<Vec<_>>();
    let around_50 = |at: &[Duration]| gaps(&at[TURNS.0..TURNS.1]);
    let at = |ran: &Ran| ran.requests.iter().map(|request| request.at).collect::<Vec<_>>();
    let wall = median(long.iter().flat_map(|ran| around_50(&at(ran))));
    // What a client that does nothing needs for the same bodies is the server's work and the kernel's.
    let bare = median((0..LONG_RUNS).flat_map(|_| around_50(&bare_client(&long[0].requests))));
    table.add("  from request to request, ms", milliseconds(wall), None);
    table.add("  less a bare client's, ms", milliseconds(wall.saturating_sub(bare)), Some(1.0));
}

/// Peak memory where something large passes through. The large answer and argument are measured with their deltas.
fn memory(table: &mut Table) {
    let place = Place::new();
    let line = "a line of a large file, and of no interest to anybody\n";
    place.file("large.txt", line.repeat(200 * MB / line.len() + 1));
    let replies = vec![calls("read", &json!({"path": "large.txt"})), says("Done.")];
    let ran = place.run(replies, &["go"]).did("a line of a large file");
    table.add("peak memory, a 200 MB file, MB", megabytes(ran.peak), Some(40.0));
    table.add("  seconds", ran.wall.as_secs_f64(), None);

    let command = "yes 'a line of the output of a command' | head -c 100000000";
    let replies = vec![calls("bash", &json!({"command": command})), says("Done.")];
    let ran = place.run(replies, &["--yes", "go"]).did("a line of the output");
    table.add("peak memory, 100 MB of command output, MB", megabytes(ran.peak), Some(40.0));
    table.add("  seconds", ran.wall.as_secs_f64(), None);
}

/// Replies in deltas of 20 bytes. Everything the process does is counted, its start and end too.
fn deltas(table: &mut Table) {
    let place = Place::new();
    let answer = |bytes: usize| {
        let ran = place.run(vec![streamed(text_deltas(bytes), "stop")], &["go"]);
        (microseconds(ran.cpu) / (bytes / DELTA) as f64, ran)
    };
    let ((short, _), (long, ran)) = (answer(2 * MB), answer(10 * MB));
    table.add("CPU a delta, 10 MB answer, µs", long, Some(3.0));
    table.add("  2 MB answer, µs", short, Some(3.0));
    table.add("  the longer against the shorter", long / short, Some(1.3));
    table.add("peak memory, a 10 MB answer, MB", megabytes(ran.peak), Some(64.0));

    let deltas = argument_deltas(4 * MB);
    let count = deltas.len() as f64;
    let ran = place.run(vec![streamed(deltas, "tool_calls"), says("Done.")], &["--yes", "go"]);
    let written = fs::metadata(place.workspace().join("large.txt")).expect("what was written").len();
    assert_eq!(written as usize, 4 * MB);
    table.add("CPU a delta, 4 MB argument, µs (with the write)", microseconds(ran.cpu) / count, Some(3.0));
    table.add("peak memory, a 4 MB argument, MB", megabytes(ran.peak), Some(40.0));
}

/// Judging the corpus, all but git: that starts git. CPU time outside the kernel is the gate's own work; what finds
/// paths and programs is inside.
fn gate(table: &mut Table) {
    let fixture = fixture::gate_fixture();
    let workspace = fixture.workspace();
    let rows = fixture::cases(include_str!("../tests/cases/gate.jsonl"));
    let commands: Vec<String> =
        rows.iter().filter_map(|row| row["command"].as_str()).map(|command| fixture.fill(command)).collect();
    let commands: Vec<&String> = commands.iter().filter(|command| !command.contains("git")).collect();
    let (begun, user) = (Instant::now(), own_user_time());
    let mut judged = 0;
    while begun.elapsed() < Duration::from_secs(3) {
        commands.iter().for_each(|command| drop(black_box(gate::decide(command, &workspace))));
        judged += commands.len() as u32;
    }
    let (wall, own) = (begun.elapsed() / judged, (own_user_time() - user) / judged);
    table.add("gate, own work a command, user µs", microseconds(own), Some(20.0));
    table.add("  with all calls to the file system, µs", microseconds(wall), None);
}

// One run of the program

/// A workspace, a home and a state directory.
struct Place(tempfile::TempDir);

/// What a run took.
struct Ran {
    requests: Vec<Recorded>,
    /// User and system time of the process and what it waited for.
    cpu: Duration,
    wall: Duration,
    /// Peak of the resident memory of the process, in bytes.
    peak: u64,
}

impl Place {
    fn new() -> Place {
        let place = Place(tempfile::tempdir().expect("a scratch directory"));
        fs::create_dir(place.workspace()).expect("a workspace");
        place
    }

    fn workspace(&self) -> PathBuf {
        self.0.path().join("ws")
    }

    fn file(&self, name: &str, content: impl AsRef<[u8]>) {
        fs::write(self.workspace().join(name), content).expect("a file");
    }

    fn command(&self, program: &str) -> Command {
        let mut command = Command::new(program);
        command.current_dir(self.workspace()).env_clear().env("PATH", std::env::var_os("PATH").unwrap_or_default());
        command.env("HOME", self.0.path()).env("XDG_STATE_HOME", self.0.path().join("state"));
        command.env("MINI_MODEL", "m").env("MINI_API_KEY", "k").stdin(Stdio::null()).stdout(Stdio::null());
        command
    }

    fn run(&self, replies: Vec<Exchange>, args: &[&str]) -> Ran {
        let mut command = self.command(BINARY);
        let server = serve(replies);
        command.args(args).env("MINI_BASE_URL", server.base_url());
        self.watch(command, server)
    }

    /// A POST of the same bytes by curl; none without curl.
    fn curl(&self, body: &str) -> Option<Ran> {
        let mut command = self.command("curl");
        self.command("curl").arg("--version").status().ok()?;
        let server = serve(vec![says("Hello.")]);
        command.args(["-sN", "-H", "Content-Type: application/json", "--data-binary", body]);
        command.arg(format!("{}/chat/completions", server.base_url()));
        Some(self.watch(command, server))
    }

    /// Runs the client to its end. The server has only just been started, so the time of a request is the time since the
    /// client's start and some tens of µs more.
    fn watch(&self, mut client: Command, server: Server) -> Ran {
        let stderr = self.0.path().join("stderr");
        client.stderr(File::create(&stderr).expect("a file for stderr"));
        let (cpu, begun) = (children_cpu(), Instant::now());
        let (status, peak) = watched(client.spawn().expect("the program"));
        let wall = begun.elapsed();
        let transcript = server.finish();
        let said = || fs::read_to_string(&stderr).unwrap_or_default();
        assert!(status.success() && transcript.unplayed == 0, "{status}: {}", said());
        Ran { requests: transcript.requests, cpu: children_cpu() - cpu, wall, peak }
    }
}

impl Ran {
    /// Fails unless the newest tool result holds this: a call that was refused costs nothing.
    fn did(self, what: &str) -> Ran {
        let body = self.requests.last().map(Recorded::json).unwrap_or_default();
        let newest = body["messages"].as_array().and_then(|messages| messages.last());
        let text = newest.map(|message| message["content"].to_string()).unwrap_or_default();
        assert!(text.contains(what), "no {what:?} in {text}");
        self
    }
}

fn serve(replies: Vec<Exchange>) -> Server {
    let section = Section { exchanges: replies, ..Section::default() };
    Server::start(Script { sections: vec![section] }, Pace::AtOnce).expect("the replay endpoint")
}

/// Waits for a child, and gives the peak of its resident memory in bytes: the kernel keeps the mark, so looking every
/// millisecond misses only what is new in the last one.
fn watched(mut child: Child) -> (std::process::ExitStatus, u64) {
    let path = format!("/proc/{}/status", child.id());
    let mut peak = 0;
    loop {
        peak = peak.max(high_water(Path::new(&path)));
        if let Some(status) = child.try_wait().expect("the child") {
            return (status, peak);
        }
        thread::sleep(Duration::from_millis(1));
    }
}

/// `VmHWM` in bytes; 0 once the process is gone.
fn high_water(status: &Path) -> u64 {
    let text = fs::read_to_string(status).unwrap_or_default();
    let line = text.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    line.and_then(|line| line.trim().strip_suffix(" kB")?.parse::<u64>().ok()).unwrap_or(0) * 1024
}

/// User time of this process.
fn own_user_time() -> Duration {
    stat()[11]
}

/// User and system time of all children that were waited for.
fn children_cpu() -> Duration {
    let stat = stat();
    stat[13] + stat[14]
}

/// The fields of `/proc/self/stat` behind the name, read as clock ticks, of which Linux shows 100 a second.
fn stat() -> Vec<Duration> {
    let text = fs::read_to_string("/proc/self/stat").expect("/proc");
    let (_, fields) = text.rsplit_once(')').expect("a name in parentheses");
    fields.split_whitespace().map(|field| Duration::from_millis(10 * field.parse().unwrap_or(0))).collect()
}

/// Posts the bodies one after the other and throws the replies away; when each was complete at the server.
fn bare_client(requests: &[Recorded]) -> Vec<Duration> {
    let exchanges = requests.iter().map(|_| calls("read", &json!({"path": "notes.txt", "offset": 50, "limit": 20})));
    let server = serve(exchanges.collect());
    let url = server.base_url();
    let host = url.trim_start_matches("http://").trim_end_matches("/v1");
    let mut stream = TcpStream::connect(host).expect("the replay endpoint");
    stream.set_nodelay(true).expect("a socket");
    let (mut reply, mut buffer) = (Vec::new(), [0; 16 << 10]);
    for request in requests {
        let head = format!("POST /v1/chat/completions HTTP/1.1\r\nContent-Length: {}\r\n\r\n", request.body.len());
        stream.write_all(&[head.as_bytes(), &request.body].concat()).expect("a request");
        reply.clear();
        while !reply.ends_with(b"\r\n0\r\n\r\n") {
            let read = stream.read(&mut buffer).expect("a reply");
            assert!(read > 0, "the server closed the connection");
            reply.extend_from_slice(&buffer[..read]);
        }
    }
    server.finish().requests.iter().map(|request| request.at).collect()
}

// Replies

fn exchange(body: Body, headers: &[(&str, &str)]) -> Exchange {
    let headers = headers.iter().map(|(name, value)| (name.to_string(), value.to_string())).collect();
    let response = Response { status: 200, headers, body, end: End::Eof };
    Exchange { line: 0, name: None, when: None, expect: Expect::default(), response, repeat: 1 }
}

fn reply(text: &str, calls: Vec<Call>) -> Exchange {
    let (text, reasoning) = (text.to_owned(), String::new());
    exchange(Body::Reply(Reply { text, reasoning, calls, finish: None, usage: None }), &STREAM)
}

const STREAM: [(&str, &str); 1] = [("Content-Type", "text/event-stream")];

fn says(text: &str) -> Exchange {
    reply(text, Vec::new())
}

fn calls(name: &str, arguments: &Value) -> Exchange {
    reply("", vec![Call { id: "call_1".into(), name: name.into(), arguments: arguments.to_string() }])
}

/// A stream of many deltas, many of them in one write.
fn streamed(deltas: Vec<Value>, finish: &str) -> Exchange {
    let event = |delta: &Value, finish: Option<&str>| {
        let choice = json!({"index": 0, "delta": delta, "finish_reason": finish});
        let object = "chat.completion.chunk";
        let event = json!({"id": "c-1", "object": object, "created": 1_700_000_000, "model": "m", "choices": [choice]});
        format!("data: {event}\n\n")
    };
    let write = |text: String| Chunk { bytes: text.into_bytes(), pause_ms: None };
    let chunks = deltas.chunks(EVENTS_IN_A_WRITE).map(|deltas| deltas.iter().map(|delta| event(delta, None)).collect());
    let end = event(&json!({}), Some(finish)) + "data: [DONE]\n\n";
    exchange(Body::Chunks(chunks.chain([end]).map(write).collect()), &STREAM)
}

fn text_deltas(bytes: usize) -> Vec<Value> {
    let texts = ["twenty bytes of text", "nineteen bytes here\n"];
    (0..bytes / DELTA).map(|at| json!({"content": texts[usize::from(at % 5 == 4)]})).collect()
}

/// The deltas of a `write` of so many bytes.
fn argument_deltas(bytes: usize) -> Vec<Value> {
    let content = "a line of forty bytes, in a large file.\n".repeat(bytes / 40);
    let arguments = json!({"path": "large.txt", "content": content}).to_string();
    let function = json!({"name": "write", "arguments": ""});
    let first = json!({"tool_calls": [{"index": 0, "id": "call_1", "type": "function", "function": function}]});
    let parts = arguments.as_bytes().chunks(DELTA).map(|part| String::from_utf8_lossy(part).into_owned());
    let more = parts.map(|part| json!({"tool_calls": [{"index": 0, "function": {"arguments": part}}]}));
    [first].into_iter().chain(more).collect()
}

// The table

struct Table {
    /// No budget has been missed.
    kept: bool,
}

impl Default for Table {
    fn default() -> Table {
        println!("{:<50} {:>10} {:>10}", "what", "measured", "budget");
        Table { kept: true }
    }
}

impl Table {
    /// A line; without a budget only for the record.
    fn add(&mut self, what: &str, measured: f64, budget: Option<f64>) {
        let (shown, verdict) = match budget {
            None => (String::new(), ""),
            Some(budget) if measured <= budget => (format!("{budget:.2}"), "ok"),
            Some(budget) => {
                self.kept = false;
                (format!("{budget:.2}"), "OVER")
            }
        };
        println!("{what:<50} {measured:>10.2} {shown:>10} {verdict}");
    }
}

fn median(times: impl IntoIterator<Item = Duration>) -> Duration {
    let mut times: Vec<Duration> = times.into_iter().collect();
    times.sort();
    times[times.len() / 2]
}

fn megabytes(bytes: u64) -> f64 {
    bytes as f64 / MB as f64
}

fn milliseconds(time: Duration) -> f64 {
    time.as_secs_f64() * 1e3
}

fn microseconds(time: Duration) -> f64 {
    time.as_secs_f64() * 1e6
}
