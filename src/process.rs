//! Child processes: started without a key in their environment, watched by one thread, and none outlives the run.
//!
//! Three doors, one mechanism (`Processes::watch`): a shell command, a plan of the gate (see `process/plan.rs`), and
//! a program whose output is wanted as bytes (an extension). The loop sleeps in `poll` for at most 20 ms, hands on what
//! was printed, and looks at the flag, the clock and the child.
//!
//! Choices, and what was rejected:
//! - Output goes through a pipe. A temporary file as stdout needs no poll, but `echo x > /dev/stderr` opens that file
//!   again *with truncation* and wipes what was printed before. stdout and stderr of a shell share one pipe, so their
//!   order is the real one.
//! - Reading to the end of the pipe would wait for `server &`, which holds it. So the shell's exit counts, then what
//!   is in the pipe is taken. The reading end is kept, or the server would die of SIGPIPE at its next line.
//! - A thread per pipe would need channels, and could not be stopped. `poll` is all that is wanted of threads here.
//! - Every command is a process group of its own, since a time-out has to reach grandchildren. A session of its own
//!   (setsid) would also take the terminal away, but needs `unsafe`; instead, a group that the terminal driver stops
//!   because it reads from the terminal (ssh asking for a passphrase) is seen to be stopped, and killed.

mod environment;
mod leftovers;
mod plan;
mod running;
mod tail;

pub use environment::environment;
pub use tail::{MAX_BYTES, MAX_LINES, Pieces, Spill, Tail, visible};

use crate::cancel::Cancel;
use crate::sandbox::Sandbox;
use leftovers::Leftovers;
use running::{Moved, Running};
use rustix::process::Signal;
use std::ffi::{OsStr, OsString};
use std::io::{self, ErrorKind};
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::{Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

/// Sleeps grow from this, so that a quick command is seen to end at once, …
const SHORTEST_NAP: Duration = Duration::from_micros(200);
/// … to this, so that a slow one costs nothing, and Ctrl-C is still seen well within 0.3 s.
const LONGEST_NAP: Duration = Duration::from_millis(20);
/// The end of stderr that [`Processes::capture`] keeps, in bytes.
const STDERR_TAIL: usize = 4 * 1024;

/// The children of a run: the environment they get, and those that are still there.
#[derive(Default)]
pub struct Processes {
    environment: Vec<(OsString, OsString)>,
    /// Where shells and plans run. Not [`Processes::capture`]: an extension is the person's own program.
    sandbox: Option<Sandbox>,
    leftovers: Leftovers,
}

/// A command for the shell.
pub struct Shell<'a> {
    /// Handed to `bash -c`, or `sh -c` where there is no bash.
    pub command: &'a str,
    /// Where it starts.
    pub dir: &'a Path,
    /// What it reads; empty means an empty stdin, never the terminal.
    pub stdin: &'a [u8],
    /// The wall-clock time it may take.
    pub limit: Duration,
}

/// A program whose output is wanted as bytes.
pub struct Job<'a> {
    /// An executable; looked up in the children's PATH if it holds no `/`.
    pub program: &'a OsStr,
    /// Its arguments.
    pub args: &'a [OsString],
    /// Where it starts.
    pub dir: &'a Path,
    /// Variables beside the children's base environment.
    pub env: &'a [(OsString, OsString)],
    /// What it reads.
    pub stdin: &'a [u8],
    /// The wall-clock time it may take.
    pub limit: Duration,
    /// Most bytes of stdout; one more and it is killed ([`End::Flooded`]).
    pub max_stdout: usize,
    /// Whether to stop.
    pub cancel: &'a Cancel,
}

/// How a child ended, or was ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// By itself, or by a signal that was not ours.
    Exited,
    /// Killed at the time limit.
    TimedOut,
    /// Killed since the run was told to stop.
    Interrupted,
    /// Killed for printing too much.
    Flooded,
    /// Killed since the system had stopped it: it wanted to read from the terminal.
    Stopped,
}

/// What [`Processes::capture`] saw.
#[derive(Debug)]
pub struct Captured {
    /// `None` only if it could not be killed.
    pub status: Option<ExitStatus>,
    /// At most `max_stdout` bytes.
    pub stdout: Vec<u8>,
    /// The last 4 KiB.
    pub stderr: Vec<u8>,
    /// How it ended.
    pub end: End,
}

/// How a shell command ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ended {
    /// How it ended.
    pub end: End,
    /// `None` only if it could not be killed.
    pub status: Option<ExitStatus>,
    /// Something of it still runs in the background.
    pub leftover: bool,
    /// `bash` or `sh`; `none` for a plan.
    pub shell: &'static str,
}

/// Whether whoever takes the output wants more of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Flow {
    /// Go on.
    More,
    /// Enough: kill it.
    Stop,
}

/// Takes output: which pipe it came from, and the bytes.
type Sink<'a> = &'a mut dyn FnMut(usize, &[u8]) -> Flow;

impl Processes {
    /// Children will get exactly this environment; make it with [`environment`].
    pub fn new(environment: Vec<(OsString, OsString)>) -> Processes {
        Processes { environment, ..Processes::default() }
    }

    /// From now on commands start in this sandbox, with its TMPDIR.
    pub fn confine(&mut self, sandbox: Sandbox) {
        self.sandbox = Some(sandbox);
    }

    /// The sandbox, if commands start in one.
    pub fn sandbox(&self) -> Option<&Sandbox> {
        self.sandbox.as_ref()
    }

    /// Runs a shell command; `sink` gets stdout and stderr in the order they were printed. What it leaves in the
    /// background lives on until the run ends. `Err` if no shell could be started.
    pub fn shell(
        &mut self,
        shell: &Shell,
        cancel: &Cancel,
        sink: &mut dyn FnMut(&[u8]) -> Flow,
    ) -> Result<Ended, String> {
        let until = Instant::now() + shell.limit;
        let (name, running) = match self.start_shell("bash", shell) {
            Err(e) if e.kind() == ErrorKind::NotFound => ("sh", self.start_shell("sh", shell)),
            started => ("bash", started),
        };
        let mut running =
            running.map_err(|e| format!("cannot start a shell ({name}) in {}: {e}", shell.dir.display()))?;
        let end = self.watch(&mut running, until, cancel, &mut |_, bytes| sink(bytes));
        let status = running.status();
        let leftover = end == End::Exited && self.leftovers.keep(running); // else all of it has been killed
        Ok(Ended { end, status, leftover, shell: name })
    }

    /// Runs a program to its end, and ends its whole group with it. `Err` if it could not be started.
    pub fn capture(&mut self, job: Job) -> Result<Captured, String> {
        let until = Instant::now() + job.limit;
        let (mut stdout, mut stderr) = (Vec::new(), Vec::new());
        let mut running =
            self.start_job(&job).map_err(|e| format!("cannot start {}: {e}", Path::new(job.program).display()))?;
        let end = self.watch(&mut running, until, job.cancel, &mut |output, bytes| match output {
            0 => {
                let room = job.max_stdout - stdout.len();
                stdout.extend_from_slice(&bytes[..bytes.len().min(room)]);
                if bytes.len() > room { Flow::Stop } else { Flow::More }
            }
            _ => {
                stderr.extend_from_slice(bytes);
                stderr.drain(..stderr.len().saturating_sub(STDERR_TAIL));
                Flow::More
            }
        });
        running.signal(Signal::KILL);
        Ok(Captured { status: running.status(), stdout, stderr, end })
    }

    /// Ends everything that commands of this run have left in the background. Dropping does the same.
    pub fn end_all(&mut self) {
        self.leftovers.end();
    }

    /// Starts `bash -c COMMAND`, both outputs in one pipe.
    fn start_shell<'a>(&self, name: &str, shell: &Shell<'a>) -> io::Result<Running<'a>> {
        let (reader, writer) = io::pipe()?;
        let mut command = self.command(OsStr::new(name), shell.dir);
        command.arg("-c").arg(shell.command).stdout(writer.try_clone()?).stderr(writer);
        command.envs(self.sandbox.iter().flat_map(Sandbox::variables));
        Running::start(vec![command], shell.stdin, vec![reader], self.sandbox.as_ref())
    }

    /// Starts a program, each output in a pipe of its own.
    fn start_job<'a>(&self, job: &Job<'a>) -> io::Result<Running<'a>> {
        let ((out_reader, out), (err_reader, err)) = (io::pipe()?, io::pipe()?);
        let mut command = self.command(job.program, job.dir);
        command.args(job.args).envs(job.env.iter().cloned()).stdout(out).stderr(err);
        Running::start(vec![command], job.stdin, vec![out_reader, err_reader], None)
    }

    /// A command in the base environment, with an empty stdin: for who keeps a process of his own, and ends it himself.
    pub fn command(&self, program: &OsStr, dir: &Path) -> Command {
        let mut command = Command::new(program);
        command.current_dir(dir).env_clear().envs(self.environment.iter().cloned());
        command.stdin(Stdio::null());
        command
    }

    /// THE MECHANISM: hands on output until the children exit, or one of the reasons to kill them comes up.
    fn watch(&mut self, running: &mut Running, until: Instant, cancel: &Cancel, sink: Sink) -> End {
        let mut nap = SHORTEST_NAP;
        let end = loop {
            let moved = running.step(nap.min(until.saturating_duration_since(Instant::now())), sink);
            self.leftovers.look_after();
            match moved {
                Moved::Enough => break End::Flooded,
                _ if running.exited() => break End::Exited,
                _ if cancel.is_raised() => break End::Interrupted,
                _ if Instant::now() >= until => break End::TimedOut,
                Moved::Nothing if running.stopped() => break End::Stopped,
                Moved::Nothing => nap = (nap * 2).min(LONGEST_NAP),
                Moved::Something => nap = SHORTEST_NAP,
            }
        };
        let end = match end {
            End::Exited if running.drain(sink) == Moved::Enough => End::Flooded,
            end => end,
        };
        if end != End::Exited {
            running.kill(sink);
        }
        end
    }
}

/// A status in words: `exit status 1`, `killed by signal 9`.
pub fn describe(status: ExitStatus) -> String {
    match (status.code(), status.signal()) {
        (Some(code), _) => format!("exit status {code}"),
        (None, Some(signal)) => format!("killed by signal {signal}"),
        (None, None) => status.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cancel::Cause;
    use std::thread;

    fn processes() -> Processes {
        Processes::new(environment(std::env::vars_os(), &[], &[]))
    }

    /// Runs a command; what it printed, and how it ended.
    fn run(processes: &mut Processes, command: &str, ms: u64, cancel: &Cancel) -> (String, Ended) {
        let mut printed = Vec::new();
        let shell = Shell { command, dir: Path::new("/"), stdin: b"", limit: Duration::from_millis(ms) };
        let ended = processes.shell(&shell, cancel, &mut |bytes| {
            printed.extend_from_slice(bytes);
            Flow::More
        });
        (String::from_utf8(printed).unwrap(), ended.unwrap())
    }

    fn capture(program: &str, args: &[&str], stdin: &[u8], ms: u64) -> Captured {
        let args: Vec<OsString> = args.iter().map(OsString::from).collect();
        let job = Job {
            program: OsStr::new(program),
            args: &args,
            dir: Path::new("/"),
            env: &[("EXTRA".into(), "yes".into())],
            stdin,
            limit: Duration::from_millis(ms),
            max_stdout: 1 << 20,
            cancel: &Cancel::new(),
        };
        processes().capture(job).unwrap()
    }

    /// Whether a process is there, zombies (of a container without an init) not counted.
    fn alive(pid: &str) -> bool {
        let output = Command::new("ps").args(["-o", "stat=", "-p", pid.trim()]).output().unwrap();
        let stat = String::from_utf8(output.stdout).unwrap();
        !stat.trim().is_empty() && !stat.starts_with('Z')
    }

    fn dies_soon(pid: &str) -> bool {
        (0..100).any(|_| {
            thread::sleep(Duration::from_millis(10));
            !alive(pid)
        })
    }

    #[test]
    fn both_outputs_come_in_the_order_they_were_printed() {
        let (printed, ended) =
            run(&mut processes(), "echo a; echo b >&2; echo c; echo d > /dev/stderr; exit 3", 5000, &Cancel::new());
        assert_eq!(printed, "a\nb\nc\nd\n");
        assert_eq!((ended.end, ended.status.unwrap().code(), ended.leftover), (End::Exited, Some(3), false));
    }

    #[test]
    fn a_background_process_does_not_hold_the_command_and_does_not_outlive_the_run() {
        let (mut processes, started) = (processes(), Instant::now());
        let (printed, ended) = run(&mut processes, "sleep 300 & echo $!", 5000, &Cancel::new());
        assert!(started.elapsed() < Duration::from_secs(2));
        assert!(ended.leftover && ended.end == End::Exited && alive(&printed));
        run(&mut processes, "true", 5000, &Cancel::new());
        assert!(alive(&printed), "it lives until the run ends");
        processes.end_all();
        assert!(dies_soon(&printed));
    }

    #[test]
    fn an_orphan_that_has_ended_is_no_background_process() {
        let (_, ended) = run(&mut processes(), "(sleep 0.02 &); sleep 0.2", 5000, &Cancel::new());
        assert!(!ended.leftover);
    }

    #[test]
    fn a_background_process_that_prints_is_not_killed_by_its_pipe() {
        let mut processes = processes();
        let (printed, _) = run(&mut processes, "(while echo x; do sleep 0.01; done) & echo $!", 5000, &Cancel::new());
        let pid = printed.lines().find(|line| *line != "x").unwrap();
        thread::sleep(Duration::from_millis(100));
        assert!(alive(pid));
        drop(processes);
        assert!(dies_soon(pid));
    }

    #[test]
    fn a_time_out_kills_grandchildren_and_keeps_what_was_printed() {
        let started = Instant::now();
        let command = "sh -c 'trap \"\" TERM; sleep 300 & echo $!; wait'; echo never";
        let (printed, ended) = run(&mut processes(), command, 200, &Cancel::new());
        assert_eq!(ended.end, End::TimedOut);
        assert!(started.elapsed() < Duration::from_millis(1000));
        assert_eq!(printed.lines().count(), 1);
        assert!(dies_soon(&printed));
    }

    #[test]
    fn ctrl_c_ends_a_command_within_300_ms() {
        let cancel = Cancel::new();
        let raiser = cancel.clone();
        let raised = thread::spawn(move || {
            thread::sleep(Duration::from_millis(150));
            raiser.raise(Cause::Interrupt);
            Instant::now()
        });
        let (_, ended) = run(&mut processes(), "trap '' TERM INT; while :; do sleep 1; done", 60_000, &cancel);
        let since = raised.join().unwrap().elapsed();
        assert_eq!(ended.end, End::Interrupted);
        assert!(since < Duration::from_millis(300), "{since:?}");
    }

    #[test]
    fn where_there_is_no_bash_sh_runs_it() {
        let path = tempfile::tempdir().unwrap();
        std::os::unix::fs::symlink("/bin/sh", path.path().join("sh")).unwrap();
        let mut processes = Processes::new(vec![("PATH".into(), path.path().into())]);
        let (printed, ended) = run(&mut processes, "echo $((1 + 1))", 5000, &Cancel::new());
        assert_eq!((printed.as_str(), ended.shell), ("2\n", "sh"));
    }

    #[test]
    fn a_stopped_command_is_ended_at_once() {
        let started = Instant::now();
        let (_, ended) = run(&mut processes(), "kill -STOP $$", 60_000, &Cancel::new());
        assert_eq!(ended.end, End::Stopped);
        assert!(started.elapsed() < Duration::from_secs(5));
    }

    #[test]
    fn stdin_is_empty_and_the_environment_is_what_was_given() {
        let mut processes = Processes::new(environment(
            [("OPENAI_API_KEY".into(), "sk-1".into()), ("PATH".into(), "/usr/bin:/bin".into())].into_iter(),
            &[],
            &[],
        ));
        let (printed, _) = run(&mut processes, "cat; env", 5000, &Cancel::new());
        assert!(printed.contains("GIT_TERMINAL_PROMPT=0") && !printed.contains("sk-1"), "{printed}");
    }

    #[test]
    fn capture_keeps_the_outputs_apart_and_feeds_stdin() {
        let input = "x".repeat(300_000);
        let script = "cat; echo $EXTRA >&2; exit 2";
        let captured = capture("sh", &["-c", script], input.as_bytes(), 5000);
        assert_eq!(captured.stdout, input.as_bytes());
        assert_eq!(captured.stderr, b"yes\n");
        assert_eq!((captured.end, captured.status.unwrap().code()), (End::Exited, Some(2)));
    }

    #[test]
    fn capture_survives_a_program_that_does_not_read() {
        let captured = capture("true", &[], &[b'x'; 1_000_000], 5000);
        assert!(captured.status.unwrap().success());
    }

    #[test]
    fn capture_stops_a_flood_and_ends_the_group() {
        let captured = capture("yes", &[], b"", 5000);
        assert_eq!((captured.end, captured.stdout.len()), (End::Flooded, 1 << 20));
        let quick = capture("sh", &["-c", "head -c 1048577 /dev/zero"], b"", 5000);
        assert_eq!((quick.end, quick.stdout.len()), (End::Flooded, 1 << 20));
        let left = capture("sh", &["-c", "sleep 300 & echo $!"], b"", 5000);
        assert!(dies_soon(std::str::from_utf8(&left.stdout).unwrap()));
    }

    #[test]
    fn a_program_that_cannot_be_started_is_named() {
        let job = Job {
            program: OsStr::new("/no/such"),
            args: &[],
            dir: Path::new("/"),
            env: &[],
            stdin: b"",
            limit: Duration::from_secs(1),
            max_stdout: 1,
            cancel: &Cancel::new(),
        };
        let why = processes().capture(job).unwrap_err();
        assert!(why.starts_with("cannot start /no/such: No such file"), "{why}");
    }
}
