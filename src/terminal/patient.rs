//! Writing to a reader that may have stopped reading.
//!
//! A write to a full pipe blocks until somebody reads, and in a blocked write nobody sees Ctrl-C: `mini --json | less`
//! could not be ended. So it is asked first whether there is room, the flag is looked at in between, and after a signal
//! a reader gets a moment more and then nothing. Rejected: a non-blocking descriptor. It is shared with whoever started
//! us, and his shell would find its terminal non-blocking afterwards.

use crate::cancel::Cancel;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use std::io::{Error, ErrorKind, Result, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::time::{Duration, Instant};

/// A pipe that says "writable" takes this much without blocking, in bytes (POSIX's PIPE_BUF on Linux).
const PIECE: usize = 4096;
/// How long a reader may take after a signal.
const GRACE: Duration = Duration::from_millis(150);
/// How often the flag is looked at, in ns.
const SLICE: i64 = 20_000_000;

/// A stream written to with patience, until the flag is raised.
pub struct Patient {
    stream: OwnedFd,
    cancel: Cancel,
    given_up: bool,
}

impl Patient {
    /// For this stream of the process. Unbuffered: write whole lines.
    pub fn new(stream: impl AsFd, cancel: &Cancel) -> Result<Patient> {
        Ok(Patient { stream: stream.as_fd().try_clone_to_owned()?, cancel: cancel.clone(), given_up: false })
    }

    fn has_room(&self) -> bool {
        let slice = Timespec { tv_sec: 0, tv_nsec: SLICE };
        match poll(&mut [PollFd::new(&self.stream, PollFlags::OUT)], Some(&slice)) {
            Ok(ready) => ready > 0,
            Err(e) => e != rustix::io::Errno::INTR, // let the write itself say what is wrong
        }
    }
}

impl Write for Patient {
    fn write(&mut self, bytes: &[u8]) -> Result<usize> {
        let mut told = None;
        while !self.given_up && !self.has_room() {
            if self.cancel.is_raised() {
                self.given_up = told.get_or_insert_with(Instant::now).elapsed() > GRACE;
            }
        }
        if self.given_up {
            return Err(Error::new(ErrorKind::BrokenPipe, "nobody reads it"));
        }
        Ok(rustix::io::write(&self.stream, &bytes[..bytes.len().min(PIECE)])?)
    }

    fn flush(&mut self) -> Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cancel::Cause;
    use std::io::Read;

    #[test]
    fn everything_arrives_where_somebody_reads() {
        let (mut reader, writer) = std::io::pipe().unwrap();
        let mut patient = Patient::new(&writer, &Cancel::new()).unwrap();
        drop(writer);
        let text = "line\n".repeat(100_000);
        let sent = text.clone();
        let thread = std::thread::spawn(move || patient.write_all(sent.as_bytes()));
        let mut got = String::new();
        reader.read_to_string(&mut got).unwrap();
        thread.join().unwrap().unwrap();
        assert!(got == text);
    }

    #[test]
    fn where_nobody_reads_a_signal_ends_the_wait_for_good() {
        let (_reader, writer) = std::io::pipe().unwrap();
        let cancel = Cancel::new();
        let mut patient = Patient::new(&writer, &cancel).unwrap();
        let raised = cancel.clone();
        let thread = std::thread::spawn(move || {
            std::thread::sleep(Duration::from_millis(50));
            raised.raise(Cause::Terminate);
        });
        let error = patient.write_all(&[b'x'; 1 << 20]).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::BrokenPipe);
        let started = Instant::now();
        assert!(patient.write_all(b"more").is_err() && started.elapsed() < Duration::from_millis(50));
        thread.join().unwrap();
    }
}
