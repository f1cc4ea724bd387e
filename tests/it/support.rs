//! One builder for every test that drives the real binary: a scratch workspace, a script that the replay endpoint
//! plays, arguments, stdin; then what came out.
//!
//! ```text
//! Test::new().file("a.txt", "hello\n").text("hi").args(["--yes", "say hi"]).run().exit(0).stdout("hi\n");
//! ```
//!
//! Every test has its own home, state and configuration directories, and none of the developer's keys.

use mini::replay::{Pace, Recorded, Script, Server};
use serde_json::{Value, json};
use std::ffi::OsString;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

/// The key that every test's environment holds; it must never come out anywhere.
pub const KEY: &str = "sk-canary-0123456789";

#[must_use]
pub struct Test {
    dir: tempfile::TempDir,
    script: String,
    args: Vec<OsString>,
    env: Vec<(String, String)>,
    stdin: Option<Vec<u8>>,
    endpoint: bool,
}

impl Test {
    pub fn new() -> Test {
        let dir = tempfile::tempdir().expect("a scratch directory");
        std::fs::create_dir(dir.path().join("ws")).expect("a workspace");
        let (script, args, env) = (String::new(), Vec::new(), Vec::new());
        Test { dir, script, args, env, stdin: None, endpoint: true }
    }

    /// A file of the workspace.
    pub fn file(self, path: &str, content: impl AsRef<[u8]>) -> Test {
        let path = self.workspace().join(path);
        std::fs::create_dir_all(path.parent().expect("a parent")).expect("parents");
        std::fs::write(path, content).expect("a file");
        self
    }

    /// A file of the user's own configuration.
    pub fn config(self, name: &str, content: &str) -> Test {
        let path = self.config_file(name);
        std::fs::create_dir_all(path.parent().expect("a parent")).expect("parents");
        std::fs::write(path, content).expect("a file");
        self
    }

    pub fn config_file(&self, name: &str) -> PathBuf {
        self.dir.path().join("home/.config/mini").join(name)
    }

    /// Raw lines of a script.
    pub fn script(mut self, lines: &str) -> Test {
        self.script.push_str(lines);
        self.script.push('\n');
        self
    }

    /// The next reply: a text.
    pub fn text(self, text: &str) -> Test {
        self.script(&json!({"response": {"text": text}}).to_string())
    }

    /// The next reply: one tool call.
    pub fn call(self, name: &str, arguments: Value) -> Test {
        self.calls(json!([{"name": name, "arguments": arguments}]))
    }

    /// The next reply: several tool calls, in the replay's shorthand.
    pub fn calls(self, calls: Value) -> Test {
        self.script(&json!({"response": {"calls": calls}}).to_string())
    }

    /// Another run in the same places: the script, the arguments and stdin begin anew.
    pub fn then(mut self) -> Test {
        (self.script, self.args, self.stdin, self.endpoint) = (String::new(), Vec::new(), None, true);
        self
    }

    pub fn args<S: Into<OsString>>(mut self, args: impl IntoIterator<Item = S>) -> Test {
        self.args.extend(args.into_iter().map(Into::into));
        self
    }

    pub fn env(mut self, name: &str, value: &str) -> Test {
        self.env.push((name.into(), value.into()));
        self
    }

    pub fn stdin(mut self, bytes: impl Into<Vec<u8>>) -> Test {
        self.stdin = Some(bytes.into());
        self
    }

    /// No endpoint in the environment.
    pub fn without_endpoint(mut self) -> Test {
        self.endpoint = false;
        self
    }

    pub fn workspace(&self) -> PathBuf {
        self.dir.path().join("ws")
    }

    /// The command, in the workspace, with nothing of the developer's environment but PATH.
    pub fn command(&self, server: &Server) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_mini"));
        let home = self.dir.path().join("home");
        command.args(&self.args).current_dir(self.workspace()).env_clear();
        command.env("PATH", std::env::var_os("PATH").unwrap_or_default()).env("HOME", home).env("LANG", "C.UTF-8");
        command.env("XDG_STATE_HOME", self.state()).env("MINI_RETRY_BASE_MS", "1");
        if self.endpoint {
            command.env("MINI_BASE_URL", server.base_url()).env("MINI_API_KEY", KEY).env("MINI_MODEL", "m-test");
        }
        command.envs(self.env.iter().map(|(name, value)| (name, value)));
        command
    }

    pub fn state(&self) -> PathBuf {
        self.dir.path().join("state")
    }

    pub fn server(&self) -> Server {
        // A test that expects no request gets a server that has only a word of surprise to say.
        let lines =
            if self.script.is_empty() { r#"{"response":{"text":"I was not expected."}}"# } else { &self.script };
        let script = Script::parse(lines).unwrap_or_else(|why| panic!("the test's script: {why}"));
        Server::start(script, Pace::AtOnce).expect("the replay endpoint")
    }

    /// Runs to the end. Fails on any broken expectation of the script, and if the key came out anywhere.
    pub fn run(self) -> Ran {
        let running = self.start();
        running.wait()
    }

    /// Starts, and leaves it running.
    pub fn start(self) -> Running {
        let mut running = self.start_with_open_stdin();
        if let (Some(bytes), Some(mut pipe)) = (&running.test.stdin, running.child.stdin.take()) {
            let _ = pipe.write_all(bytes); // it may have ended without reading
        }
        running
    }

    /// The same, and the pipe to its stdin stays open if there is one.
    pub fn start_with_open_stdin(self) -> Running {
        let server = self.server();
        let mut command = self.command(&server);
        let stdin = if self.stdin.is_some() { Stdio::piped() } else { Stdio::null() };
        let child = command.stdin(stdin).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("the binary");
        Running { test: self, server, child, started: Instant::now() }
    }
}

pub struct Running {
    pub test: Test,
    pub server: Server,
    pub child: Child,
    started: Instant,
}

impl Running {
    /// Waits until `seen` holds, at most 10 s.
    pub fn until(&self, what: &str, seen: impl Fn(&Running) -> bool) {
        let start = Instant::now();
        while !seen(self) {
            assert!(start.elapsed() < Duration::from_secs(10), "waited 10 s for {what}");
            std::thread::sleep(Duration::from_micros(500));
        }
    }

    pub fn until_request(&self, count: usize) {
        self.until("a request", |run| run.server.requests().len() >= count);
    }

    /// The session log so far.
    pub fn log(&self) -> String {
        log_of(&self.test.state())
    }

    pub fn signal(&self, signal: &str) {
        let pid = self.child.id().to_string();
        let sent = Command::new("kill").args(["-s", signal, &pid]).status().expect("kill");
        assert!(sent.success(), "kill -s {signal}");
    }

    pub fn wait(self) -> Ran {
        let output = self.child.wait_with_output().expect("its output");
        let took = self.started.elapsed();
        let transcript = self.server.finish();
        let log = log_of(&self.test.state());
        let ran = Ran {
            output,
            log,
            requests: transcript.requests,
            connections: transcript.connections,
            took,
            test: self.test,
        };
        assert!(transcript.failures.is_empty(), "the script: {}\n{ran}", transcript.failures[0]);
        ran.keeps_the_key();
        ran
    }
}

/// The names in a directory, sorted; none if there is none.
fn names(dir: &Path) -> Vec<String> {
    let Ok(dir) = std::fs::read_dir(dir) else { return Vec::new() };
    let mut names: Vec<String> = dir.filter_map(|entry| entry.ok()?.file_name().into_string().ok()).collect();
    names.sort();
    names
}

/// All session logs of a state directory, joined.
fn log_of(state: &Path) -> String {
    let Ok(dir) = std::fs::read_dir(state.join("mini/sessions")) else { return String::new() };
    let mut paths: Vec<_> = dir.filter_map(|entry| Some(entry.ok()?.path())).collect();
    paths.sort();
    paths.iter().map(|path| std::fs::read_to_string(path).unwrap_or_default()).collect()
}

pub struct Ran {
    pub output: Output,
    pub log: String,
    pub requests: Vec<Recorded>,
    pub connections: usize,
    pub took: Duration,
    pub test: Test,
}

impl Ran {
    #[track_caller]
    pub fn exit(self, code: i32) -> Ran {
        assert_eq!(self.output.status.code(), Some(code), "exit code\n{self}");
        self
    }

    #[track_caller]
    pub fn stdout(self, text: &str) -> Ran {
        assert_eq!(String::from_utf8_lossy(&self.output.stdout), text, "stdout\n{self}");
        self
    }

    #[track_caller]
    pub fn stderr_has(self, text: &str) -> Ran {
        assert!(String::from_utf8_lossy(&self.output.stderr).contains(text), "stderr lacks {text:?}\n{self}");
        self
    }

    #[track_caller]
    pub fn file(self, path: &str, content: impl AsRef<[u8]>) -> Ran {
        let got = std::fs::read(self.test.workspace().join(path)).unwrap_or_default();
        assert_eq!(String::from_utf8_lossy(&got), String::from_utf8_lossy(content.as_ref()), "{path}\n{self}");
        self
    }

    /// Starts the binary once more in the same places, with a greeting; then the workspace holds these files only, and
    /// no private directory of a run is left.
    #[track_caller]
    pub fn next_run_leaves_only(self, files: &[&str]) {
        let script = Script::parse(&json!({"response": {"text": "Hello."}}).to_string()).expect("a script");
        let server = Server::start(script, Pace::AtOnce).expect("the replay endpoint");
        let status = self.test.command(&server).stdin(Stdio::null()).output().expect("the binary").status;
        assert_eq!(status.code(), Some(0), "{self}");
        assert_eq!(names(&self.test.workspace()), files, "what the workspace holds");
        assert_eq!(names(&self.test.state().join("mini/runs")), [""; 0], "private directories of dead runs");
    }

    /// The text of the tool results, in order, as the last request carried them.
    pub fn results(&self) -> Vec<String> {
        let body = self.requests.last().map(Recorded::json).unwrap_or_default();
        let messages = body["messages"].as_array().cloned().unwrap_or_default();
        let tools = messages.iter().filter(|message| message["role"] == "tool");
        tools.map(|message| message["content"].as_str().unwrap_or_default().to_owned()).collect()
    }

    #[track_caller]
    pub fn result_has(self, at: usize, text: &str) -> Ran {
        let results = self.results();
        assert!(
            results.get(at).is_some_and(|result| result.contains(text)),
            "result {at} lacks {text:?}: {results:#?}\n{self}"
        );
        self
    }

    /// The events of `--json`.
    pub fn events(&self) -> Vec<Value> {
        let stdout = String::from_utf8_lossy(&self.output.stdout);
        stdout
            .lines()
            .map(|line| serde_json::from_str(line).unwrap_or_else(|e| panic!("not JSON: {line}: {e}")))
            .collect()
    }

    /// The events of one type.
    pub fn events_of(&self, kind: &str) -> Vec<Value> {
        self.events().into_iter().filter(|event| event["type"] == kind).collect()
    }

    fn keeps_the_key(&self) {
        let bodies = self.requests.iter().map(|request| String::from_utf8_lossy(&request.body));
        let places = [String::from_utf8_lossy(&self.output.stdout), String::from_utf8_lossy(&self.output.stderr)];
        for text in bodies.chain(places).chain([self.log.as_str().into()]) {
            assert!(!text.contains(KEY), "the key came out\n{text}");
        }
    }
}

impl std::fmt::Display for Ran {
    fn fmt(&self, out: &mut std::fmt::Formatter) -> std::fmt::Result {
        let Output { status, stdout, stderr } = &self.output;
        let (stdout, stderr) = (String::from_utf8_lossy(stdout), String::from_utf8_lossy(stderr));
        writeln!(out, "{status} after {:?}\n--- stdout\n{stdout}\n--- stderr\n{stderr}\n--- requests", self.took)?;
        self.requests.iter().try_for_each(|request| writeln!(out, "{}", String::from_utf8_lossy(&request.body)))
    }
}
