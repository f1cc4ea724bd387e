//! One process group while it runs: its children, the pipes to them, and the ways it can end.

use super::{Flow, Sink};
use crate::sandbox::Sandbox;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{OFlags, fcntl_getfl, fcntl_setfl};
use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, kill_process_group, waitid};
use std::io::{self, ErrorKind, PipeReader, PipeWriter, Read, Write};
use std::os::fd::AsFd;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, ExitStatus};
use std::time::{Duration, Instant};

/// From SIGTERM to SIGKILL: enough to remove a lock file, short enough for a person who pressed Ctrl-C.
pub(super) const GRACE: Duration = Duration::from_millis(80);
/// How long to wait for the end after SIGKILL. Only a process in an uninterruptible system call takes longer.
const REAP: Duration = Duration::from_millis(50);
/// How often a wait for something that is about to happen looks again.
pub(super) const SOON: Duration = Duration::from_millis(2);
/// What one read takes; the capacity of a pipe on Linux.
const CHUNK: usize = 64 * 1024;
/// Read at most so many chunks after the exit: a background child may print for ever.
const DRAIN: usize = 16;

/// A process group that runs.
pub(super) struct Running<'a> {
    /// In the order of the pipeline.
    children: Vec<Child>,
    /// The number of the first child, and of the group.
    pub(super) group: Pid,
    /// Reading ends; `None` once the other side has closed.
    pub(super) outputs: Vec<Option<PipeReader>>,
    /// The writing end of stdin, and what is still to be written.
    input: Option<(PipeWriter, &'a [u8])>,
    buffer: Vec<u8>,
}

/// What a step brought.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Moved {
    /// Neither output nor an end of output.
    Nothing,
    /// Something.
    Something,
    /// The sink wants no more.
    Enough,
}

impl<'a> Running<'a> {
    /// Starts the commands as one group, in the sandbox if there is one. They hold the writing ends that belong to
    /// `outputs`; a command is dropped once it runs, since as long as we hold a writing end there is no end of output.
    pub(super) fn start(
        mut commands: Vec<Command>,
        stdin: &'a [u8],
        outputs: Vec<PipeReader>,
        sandbox: Option<&Sandbox>,
    ) -> io::Result<Running<'a>> {
        let mut input = None;
        if let Some(first) = commands.first_mut().filter(|_| !stdin.is_empty()) {
            let (reader, writer) = io::pipe()?;
            nonblocking(&writer)?;
            first.stdin(reader);
            input = Some((writer, stdin));
        }
        outputs.iter().try_for_each(nonblocking)?;
        let (group, children) = match sandbox {
            Some(sandbox) => sandbox.within(|| spawn(commands))?,
            None => spawn(commands),
        }?;
        let outputs = outputs.into_iter().map(Some).collect();
        Ok(Running { children, group, outputs, input, buffer: vec![0; CHUNK] })
    }

    /// Sleeps until there is output, stdin takes more, or `nap` is over; then moves one chunk each.
    pub(super) fn step(&mut self, nap: Duration, sink: Sink) -> Moved {
        let mut fds: Vec<PollFd> = self.outputs.iter().flatten().map(|pipe| PollFd::new(pipe, PollFlags::IN)).collect();
        fds.extend(self.input.iter().map(|(pipe, _)| PollFd::new(pipe, PollFlags::OUT)));
        let nap = Timespec { tv_sec: nap.as_secs() as i64, tv_nsec: nap.subsec_nanos().into() };
        let _ = poll(&mut fds, Some(&nap)); // interrupted or not: the reads below find out what there is
        drop(fds);
        self.feed();
        self.read(sink)
    }

    /// Writes what stdin takes. A program that does not read its input (EPIPE) is its own affair.
    fn feed(&mut self) {
        let Some((pipe, rest)) = &mut self.input else { return };
        match pipe.write(rest) {
            Ok(n) => *rest = rest.get(n..).unwrap_or_default(),
            Err(e) if matches!(e.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted) => {}
            Err(_) => *rest = &[],
        }
        if rest.is_empty() {
            self.input = None;
        }
    }

    /// One chunk from each output.
    fn read(&mut self, sink: Sink) -> Moved {
        let mut moved = Moved::Nothing;
        for (i, output) in self.outputs.iter_mut().enumerate() {
            let Some(pipe) = output else { continue };
            match pipe.read(&mut self.buffer) {
                Ok(0) => *output = None,
                Ok(n) if sink(i, &self.buffer[..n]) == Flow::Stop => return Moved::Enough,
                Ok(_) => {}
                Err(e) if matches!(e.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted) => continue,
                Err(_) => *output = None,
            }
            moved = Moved::Something;
        }
        moved
    }

    /// Takes what is in the pipes, without waiting for more.
    pub(super) fn drain(&mut self, sink: Sink) -> Moved {
        for _ in 0..DRAIN {
            match self.read(sink) {
                Moved::Something => {}
                end => return end,
            }
        }
        Moved::Nothing
    }

    /// Whether every child has ended. Reaps them.
    pub(super) fn exited(&mut self) -> bool {
        // An error would mean that somebody else has reaped it; then it has ended, too.
        self.children.iter_mut().all(|child| !matches!(child.try_wait(), Ok(None)))
    }

    /// Whether the group was stopped: by the terminal, when one of it tried to read from there in the background.
    pub(super) fn stopped(&self) -> bool {
        self.all(WaitIdOptions::STOPPED)
    }

    /// Ends the group: SIGTERM, a short grace, SIGKILL; goes on handing out what it prints. No child is reaped before
    /// the last signal is sent, so until then the number cannot belong to anybody else.
    pub(super) fn kill(&mut self, sink: Sink) {
        self.signal(Signal::TERM);
        self.signal(Signal::CONT); // a stopped process takes no other signal
        let until = Instant::now() + GRACE;
        while Instant::now() < until && !self.silent_and_ended() {
            self.step(SOON, sink);
        }
        self.signal(Signal::KILL);
        let until = Instant::now() + REAP;
        while !self.exited() && Instant::now() < until {
            self.step(SOON, sink);
        }
        self.drain(sink);
    }

    /// Whether the outputs are closed and every child has ended. Reaps none.
    fn silent_and_ended(&self) -> bool {
        self.outputs.iter().all(Option::is_none) && self.all(WaitIdOptions::EXITED)
    }

    /// Whether each child is in this state; the state stays to be seen again (NOWAIT).
    fn all(&self, state: WaitIdOptions) -> bool {
        let look = state | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
        let mut pids = self.children.iter().map(Pid::from_child);
        pids.all(|pid| waitid(WaitId::Pid(pid), look).is_ok_and(|status| status.is_some()))
    }

    /// Bounds what each child may take of the machine (Linux): processor time, memory, file sizes, no core file. Set
    /// from outside right after the start, since setting it inside needs `unsafe`: a child has run for some
    /// microseconds by then, which is too short to matter for time and memory. The wall clock holds on every system.
    #[cfg(target_os = "linux")]
    pub(super) fn limit(&self, wall: Duration) {
        use crate::gate::plan::{CORE_BYTES, CPU_SECONDS, FILE_BYTES, MEMORY_BYTES};
        use rustix::process::{Resource, Rlimit, prlimit};
        let limits = [
            (Resource::Cpu, CPU_SECONDS.max(wall.as_secs())),
            (Resource::As, MEMORY_BYTES),
            (Resource::Fsize, FILE_BYTES),
            (Resource::Core, CORE_BYTES),
        ];
        for (child, (resource, most)) in self.children.iter().flat_map(|child| limits.map(|limit| (child, limit))) {
            // A child that has ended already needs no limit, and it may have lower ones of its own.
            let _ =
                prlimit(Some(Pid::from_child(child)), resource, Rlimit { current: Some(most), maximum: Some(most) });
        }
    }

    /// Elsewhere there is no way to do it from outside; the time limit and the bounded output have to do.
    #[cfg(not(target_os = "linux"))]
    pub(super) fn limit(&self, _wall: Duration) {}

    /// Signals the group; that it has ended already is no error.
    pub(super) fn signal(&self, signal: Signal) {
        let _ = kill_process_group(self.group, signal);
    }

    /// The status of the last child; `None` while it runs.
    pub(super) fn status(&mut self) -> Option<ExitStatus> {
        self.children.last_mut().and_then(|child| child.try_wait().ok().flatten())
    }
}

/// A panic on the way (in an observer, say) leaves no child behind.
impl Drop for Running<'_> {
    fn drop(&mut self) {
        if !self.exited() {
            self.signal(Signal::KILL);
            self.exited();
        }
    }
}

/// Starts all of them in the group of the first. None is reaped before all are started, so the group is there for each.
fn spawn(commands: Vec<Command>) -> io::Result<(Pid, Vec<Child>)> {
    let mut children: Vec<Child> = Vec::new();
    for mut command in commands {
        let group = children.first().map_or(0, |leader| Pid::from_child(leader).as_raw_nonzero().get());
        match command.process_group(group).spawn() {
            Ok(child) => children.push(child),
            Err(e) => {
                if let Some(leader) = children.first() {
                    let _ = kill_process_group(Pid::from_child(leader), Signal::KILL);
                }
                children.iter_mut().for_each(|child| drop(child.wait()));
                return Err(e);
            }
        }
    }
    let leader = children.first().ok_or_else(|| io::Error::other("no command to start"))?;
    Ok((Pid::from_child(leader), children))
}

/// Our end only: the child's end of a pipe is an open file of its own, and stays blocking.
fn nonblocking(pipe: &impl AsFd) -> io::Result<()> {
    Ok(fcntl_setfl(pipe, fcntl_getfl(pipe)? | OFlags::NONBLOCK)?)
}
