//! A server that is started: one JSON message a line, on its standard input and output.
//!
//! Nothing here may block for good: a server that does not read its input while we do not read its output would stand
//! still for ever. So all three pipes are polled together, for at most 20 ms, between looks at the clock and the flag.
//! What a server prints while nobody asks it anything waits in the pipe until the next call.
//!
//! The end has an order: close its input, which is how it is asked to leave; a grace; SIGTERM; a grace; SIGKILL. Real
//! servers need all of it (one waits for ever for an answer to a question of its own). Its whole group goes with it:
//! `npx` is a chain of three processes.

use super::servers::Command;
use super::transport::{Heard, Lost, Transport, Wait};
use mini::cancel::Cancel;
use mini::process::{Processes, describe, visible};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{OFlags, fcntl_getfl, fcntl_setfl};
use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, kill_process_group, waitid};
use serde_json::Value;
use std::collections::VecDeque;
use std::io::{ErrorKind, Read, Write};
use std::os::fd::AsFd;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, ChildStderr, ChildStdin, ChildStdout, Stdio as Pipe};
use std::time::{Duration, Instant};

/// The longest sleep: Ctrl-C is seen within it.
const NAP: Duration = Duration::from_millis(20);
/// The longest message, in bytes. A server that never ends a line must not fill the memory.
const LONGEST_LINE: usize = 16 << 20;
/// So many lines that are no messages may come: a program that prints and prints is no server.
const MOST_NOISE: usize = 1_000;
/// The end of stderr that is kept, in bytes.
const STDERR_TAIL: usize = 4 << 10;
/// How long it may take to leave after its input was closed, and again after SIGTERM; and both if the person waits.
const GRACE: Duration = Duration::from_millis(1000);
const SHORT_GRACE: Duration = Duration::from_millis(100);

/// A server and its pipes. `Err` is why there is none.
pub struct Stdio {
    server: Result<Running, String>,
}

struct Running {
    child: Child,
    stdin: Option<ChildStdin>,
    stdout: Option<ChildStdout>,
    stderr: Option<ChildStderr>,
    /// What its input has not taken yet.
    outgoing: Vec<u8>,
    /// A line whose end has not come yet.
    line: Vec<u8>,
    heard: VecDeque<Heard>,
    /// How many lines were no messages.
    noise: usize,
    /// Why we listen no more, if it was our decision.
    given_up: Option<&'static str>,
    /// The end of what it printed on stderr.
    last_words: Vec<u8>,
    /// Its end has been seen to.
    buried: bool,
    /// If this is raised at its end, a person waits.
    cancel: Cancel,
}

impl Stdio {
    /// Starts a server in `root`. That it cannot be started is told by the first message.
    pub fn start(command: &Command, processes: &Processes, root: &Path, cancel: &Cancel) -> Stdio {
        let mut start = processes.command(command.program.as_os_str(), root);
        start.args(&command.args).envs(command.env.iter().map(|(name, value)| (name, value)));
        start.stdin(Pipe::piped()).stdout(Pipe::piped()).stderr(Pipe::piped()).process_group(0);
        let running = start.spawn().map_err(|e| e.to_string()).and_then(|child| Running::of(child, cancel));
        Stdio { server: running.map_err(|why| format!("cannot start {}: {why}", command.program.display())) }
    }

    fn running(&mut self) -> Result<&mut Running, Lost> {
        self.server.as_mut().map_err(|why| Lost::Gone(why.clone()))
    }
}

impl Transport for Stdio {
    fn send(&mut self, message: &Value, wait: &Wait) -> Result<(), Lost> {
        let server = self.running()?;
        server.outgoing.extend_from_slice(message.to_string().as_bytes());
        server.outgoing.push(b'\n');
        while !server.outgoing.is_empty() && server.stdin.is_some() {
            if let Some(lost) = wait.over() {
                return Err(lost);
            }
            server.step();
        }
        Ok(()) // if it has closed its input it has ended, or its answer is still in the pipe: `next` finds out
    }

    fn next(&mut self, wait: &Wait) -> Result<Heard, Lost> {
        let server = self.running()?;
        loop {
            match (server.heard.pop_front(), wait.over()) {
                (Some(heard), _) => return Ok(heard),
                (None, _) if server.stdout.is_none() => return Err(Lost::Gone(server.obituary())),
                (None, Some(lost)) => return Err(lost),
                (None, None) => server.step(),
            }
        }
    }

    fn unasked(&mut self) -> Option<Heard> {
        let server = self.server.as_mut().ok()?;
        server.listen();
        server.heard.pop_front()
    }
}

impl Running {
    fn of(mut child: Child, cancel: &Cancel) -> Result<Running, String> {
        let (stdin, stdout, stderr) = (child.stdin.take(), child.stdout.take(), child.stderr.take());
        let server = Running {
            child,
            stdin,
            stdout,
            stderr,
            outgoing: Vec::new(),
            line: Vec::new(),
            heard: VecDeque::new(),
            noise: 0,
            given_up: None,
            last_words: Vec::new(),
            buried: false,
            cancel: cancel.clone(),
        };
        let pipes = [
            server.stdin.as_ref().map(nonblocking),
            server.stdout.as_ref().map(nonblocking),
            server.stderr.as_ref().map(nonblocking),
        ];
        pipes.into_iter().flatten().collect::<Result<(), String>>()?;
        Ok(server)
    }

    /// Sleeps until a pipe moves, a short nap at most; then moves what can be moved.
    fn step(&mut self) {
        let outputs = [self.stdout.as_ref().map(AsFd::as_fd), self.stderr.as_ref().map(AsFd::as_fd)];
        let input = self.stdin.as_ref().filter(|_| !self.outgoing.is_empty()).map(AsFd::as_fd);
        let mut fds: Vec<PollFd> =
            outputs.into_iter().flatten().map(|fd| PollFd::from_borrowed_fd(fd, PollFlags::IN)).collect();
        fds.extend(input.map(|fd| PollFd::from_borrowed_fd(fd, PollFlags::OUT)));
        let nap = Timespec { tv_sec: 0, tv_nsec: NAP.subsec_nanos().into() };
        let quiet = matches!(poll(&mut fds, Some(&nap)), Ok(0));
        drop(fds);
        self.feed();
        self.listen();
        // A grandchild may hold the pipe of a server that is dead.
        if quiet && self.has_ended() {
            self.stdout = None;
        }
    }

    fn feed(&mut self) {
        let Some(pipe) = self.stdin.as_mut().filter(|_| !self.outgoing.is_empty()) else { return };
        match pipe.write(&self.outgoing) {
            Ok(n) => drop(self.outgoing.drain(..n)),
            Err(e) if matches!(e.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted) => {}
            Err(_) => self.stdin = None,
        }
    }

    fn listen(&mut self) {
        let mut buffer = [0; 16 << 10];
        if let Some(n) = read(&mut self.stderr, &mut buffer) {
            self.last_words.extend_from_slice(&buffer[..n]);
            self.last_words.drain(..self.last_words.len().saturating_sub(STDERR_TAIL));
        }
        let Some(n) = read(&mut self.stdout, &mut buffer) else { return };
        for piece in buffer[..n].split_inclusive(|byte| *byte == b'\n') {
            self.line.extend_from_slice(piece);
            if piece.ends_with(b"\n") {
                let line = std::mem::take(&mut self.line);
                let heard = Heard::all_in(&line);
                self.noise += heard.iter().filter(|heard| matches!(heard, Heard::Noise(_))).count();
                self.heard.extend(heard);
            }
        }
        self.given_up = match (self.line.len() > LONGEST_LINE, self.noise > MOST_NOISE) {
            (true, _) => Some("it printed a line of more than 16 MiB"),
            (_, true) => Some("it printed more than 1,000 lines that are no messages"),
            _ => return,
        };
        self.stdout = None;
    }

    /// Whether it has ended; it is not reaped yet, so its number, and that of its group, still belong to it.
    fn has_ended(&self) -> bool {
        let look = WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
        !waitid(WaitId::Pid(Pid::from_child(&self.child)), look).is_ok_and(|status| status.is_none())
    }

    /// Why there will be no more of it. It is ended for good: a server without an output is of no use.
    fn obituary(&mut self) -> String {
        let left_alone = self.wait(SHORT_GRACE);
        (0..4).for_each(|_| self.listen()); // the last words may be more than one read
        let how = match (self.given_up, left_alone, self.bury()) {
            (Some(why), ..) => format!("was given up: {why}"),
            (_, true, Some(status)) => format!("has ended ({})", describe(status)),
            _ => "has closed its output".into(),
        };
        let words = visible(&self.last_words);
        let lines: Vec<&str> = words.trim().lines().collect();
        let last = lines[lines.len().saturating_sub(3)..].join(" / ");
        if last.is_empty() { how } else { format!("{how}; its last words on stderr: {last}") }
    }

    /// Waits for its end, and takes what it prints meanwhile: it may have to get rid of it before it can leave.
    fn wait(&mut self, grace: Duration) -> bool {
        let until = Instant::now() + grace;
        while !self.has_ended() {
            if Instant::now() >= until {
                return false;
            }
            // With its outputs closed a poll of nothing sleeps, too, and as long.
            self.outgoing.clear();
            self.step();
            self.heard.clear();
        }
        true
    }

    /// Ends what is left of its group, then takes its status: in this order the group's number is still its own.
    fn bury(&mut self) -> Option<std::process::ExitStatus> {
        self.signal(Signal::KILL);
        self.buried = true;
        self.child.wait().ok()
    }

    /// That it has ended already is no error.
    fn signal(&self, signal: Signal) {
        let _ = kill_process_group(Pid::from_child(&self.child), signal);
    }
}

/// Asks it to leave, and sees to it.
impl Drop for Running {
    fn drop(&mut self) {
        if self.buried {
            return;
        }
        let grace = if self.cancel.is_raised() { SHORT_GRACE } else { GRACE };
        self.stdin = None;
        if !self.wait(grace) {
            self.signal(Signal::TERM);
            self.wait(grace);
        }
        self.bury();
    }
}

/// Reads what there is; a pipe that has ended is dropped.
fn read(pipe: &mut Option<impl Read>, buffer: &mut [u8]) -> Option<usize> {
    match pipe.as_mut()?.read(buffer) {
        Ok(0) => *pipe = None,
        Ok(n) => return Some(n),
        Err(e) if matches!(e.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted) => {}
        Err(_) => *pipe = None,
    }
    None
}

fn nonblocking(pipe: &impl AsFd) -> Result<(), String> {
    let set = fcntl_getfl(pipe).and_then(|flags| fcntl_setfl(pipe, flags | OFlags::NONBLOCK));
    set.map_err(|e| format!("cannot set up its pipes: {e}"))
}
