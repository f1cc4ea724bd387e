//! Standard input as lines, with an eye on [`Cancel`].
//!
//! There is one for a process: questions, `--step` and a talk over a pipe read the same input, and a buffer of each
//! would swallow the others' lines. It polls, so that Ctrl-C is seen within [`SLICE`]; `std::io::stdin()` would block
//! until the next Enter.
//!
//! On a terminal the kernel's own line editing is at work here (Backspace, Ctrl-U, Ctrl-D), which is enough for an
//! answer. It cuts a line at 4,095 bytes; tasks are written at the [`Prompt`](super::Prompt), which does not.

use crate::cancel::Cancel;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::termios::{QueueSelector, isatty, tcflush};
use std::cell::RefCell;
use std::os::fd::{AsFd, OwnedFd};
use std::rc::Rc;

/// The longest wait between two looks at the flag, in ms.
const SLICE: i64 = 50;

/// What reading a line came to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Line {
    /// A line, without its ending. Invalid UTF-8 is shown lossily.
    Text(String),
    /// Nobody is there any more; on a terminal, Ctrl-D.
    End,
    /// The flag was raised.
    Cancelled,
}

/// The front end's lines, shared by those who read them (all on one thread).
pub type SharedLines = Rc<RefCell<Lines>>;

/// Lines of a file descriptor.
pub struct Lines {
    input: OwnedFd,
    buffer: Vec<u8>,
    /// There is no line end before this byte of the buffer.
    searched: usize,
}

impl Lines {
    /// Lines of standard input; the error says why it cannot be used.
    pub fn stdin() -> Result<SharedLines, String> {
        let input = std::io::stdin().as_fd().try_clone_to_owned();
        let input = input.map_err(|e| format!("cannot use standard input: {e}"))?;
        Ok(Rc::new(RefCell::new(Lines::new(input))))
    }

    /// Lines of any descriptor.
    pub fn new(input: OwnedFd) -> Lines {
        Lines { input, buffer: Vec::new(), searched: 0 }
    }

    /// Whether a person types them.
    pub fn is_terminal(&self) -> bool {
        isatty(&self.input)
    }

    /// The next line; waits for it.
    pub fn next_line(&mut self, cancel: &Cancel) -> Line {
        loop {
            if cancel.is_raised() {
                return Line::Cancelled;
            }
            // A long line comes in many pieces: what has been searched is not searched again.
            if let Some(end) = self.buffer[self.searched..].iter().position(|byte| *byte == b'\n') {
                let line: Vec<u8> = self.buffer.drain(..=self.searched + end).collect();
                self.searched = 0;
                return Line::Text(text(&line));
            }
            self.searched = self.buffer.len();
            if self.is_ready() && !self.fill() {
                self.searched = 0;
                return match std::mem::take(&mut self.buffer) {
                    rest if rest.is_empty() => Line::End,
                    rest => Line::Text(text(&rest)),
                };
            }
        }
    }

    /// Throws away what was typed ahead on a terminal: it was not typed at what is asked now. Lines that come
    /// through a pipe were all written ahead, and stay.
    pub fn forget(&mut self) {
        if self.is_terminal() {
            self.buffer.clear();
            self.searched = 0;
            // Where the terminal refuses, the person still sees what is answered.
            let _ = tcflush(&self.input, QueueSelector::IFlush);
        }
    }

    /// Waits for input, at most one slice. An error counts as ready: reading then says what is wrong.
    fn is_ready(&self) -> bool {
        let slice = Timespec { tv_sec: 0, tv_nsec: SLICE * 1_000_000 };
        match poll(&mut [PollFd::new(&self.input, PollFlags::IN)], Some(&slice)) {
            Ok(ready) => ready > 0,
            Err(e) => e != rustix::io::Errno::INTR,
        }
    }

    /// Reads what is there. `false` at the end of input, which includes a terminal that went away.
    fn fill(&mut self) -> bool {
        let mut chunk = [0; 64 << 10];
        match rustix::io::read(&self.input, &mut chunk) {
            Ok(0) => false,
            Ok(count) => {
                self.buffer.extend_from_slice(&chunk[..count]);
                true
            }
            Err(e) => matches!(e, rustix::io::Errno::INTR | rustix::io::Errno::AGAIN),
        }
    }
}

/// Without the line's ending, `\n` or `\r\n`.
fn text(line: &[u8]) -> String {
    let line = line.strip_suffix(b"\n").unwrap_or(line);
    String::from_utf8_lossy(line.strip_suffix(b"\r").unwrap_or(line)).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cancel::Cause;
    use std::io::Write;

    #[test]
    fn lines_come_one_by_one_and_the_last_needs_no_newline() {
        let (input, mut output) = std::io::pipe().unwrap();
        let (mut lines, cancel) = (Lines::new(input.into()), Cancel::new());
        output.write_all(b"one\r\n\ntw\xffo\nend").unwrap();
        drop(output);
        let mut next = || lines.next_line(&cancel);
        assert_eq!([next(), next()], [Line::Text("one".into()), Line::Text(String::new())]);
        assert_eq!([next(), next()], [Line::Text("tw\u{fffd}o".into()), Line::Text("end".into())]);
        assert_eq!(next(), Line::End);
    }

    #[test]
    fn a_raised_flag_ends_the_wait_at_once() {
        let (input, _output) = std::io::pipe().unwrap();
        let (mut lines, cancel) = (Lines::new(input.into()), Cancel::new());
        let raised = cancel.clone();
        let thread = std::thread::spawn(move || {
            std::thread::sleep(std::time::Duration::from_millis(20));
            raised.raise(Cause::Interrupt);
        });
        let started = std::time::Instant::now();
        assert_eq!(lines.next_line(&cancel), Line::Cancelled);
        assert!(started.elapsed().as_millis() < 500);
        thread.join().unwrap();
    }

    #[test]
    fn lines_written_ahead_through_a_pipe_stay() {
        let (input, mut output) = std::io::pipe().unwrap();
        let mut lines = Lines::new(input.into());
        output.write_all(b"y\n").unwrap();
        lines.forget();
        assert_eq!(lines.next_line(&Cancel::new()), Line::Text("y".into()));
    }
}
