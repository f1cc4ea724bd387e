//! The one place that writes.
//!
//! Answers go to standard output, everything else to standard error, and on a terminal both share one screen. The
//! console therefore remembers how the last line was left: in the middle of a streamed text, or as the line of a
//! call that is drawn once more when its result is there. Whoever writes next gets a line of his own.
//!
//! Every text is made safe here ([`sanitize`]), so no caller can forget it. Only standard output that is not a
//! terminal gets the bytes as they are: a script wants the answer, not our picture of it.
//!
//! What cannot be written to standard error is lost without a word: there is nobody left to tell. Standard output is
//! what a script waits for, so its state is kept ([`Console::stdout`]).

use super::folding::{breaks, columns, cut, one_line};
use super::ink::{Ink, Paint};
use super::lines::{Line, SharedLines};
use super::patient::Patient;
use super::sanitize::{sanitize, sanitize_behind};
use super::spinner::{ERASE, Spinner};
use crate::cancel::Cancel;
use std::cell::RefCell;
use std::io::{ErrorKind, IsTerminal, Write};
use std::os::fd::AsFd;
use std::rc::Rc;
use std::time::{Duration, Instant};

/// Columns of a call's line where no terminal says its width.
const COLUMNS: usize = 200;

/// Columns of a tool's name: a model can make up a long one.
const NAME_COLUMNS: usize = 40;

/// So long after the last text of a reply something is to be seen again, if more of the reply comes that is no text.
const SILENCE: Duration = Duration::from_secs(1);

/// How answers reach standard output.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Answers {
    /// As they come: it is a terminal.
    Streamed,
    /// The last answer once, when it is finished.
    Once,
}

/// Whether standard output could be written to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Stdout {
    /// So far it could.
    Fine,
    /// Its reader went away (`| head`): no failure, and nothing more is written.
    Closed,
    /// It failed in another way, such as a full disk; the words name it.
    Failed(String),
}

/// A handle on the console; clones are the same one.
#[derive(Clone)]
pub struct Console(Rc<RefCell<Inner>>);

struct Inner {
    out: Box<dyn Write>,
    err: Box<dyn Write>,
    answers: Answers,
    /// Standard output is a terminal: only what is safe to show goes there.
    is_screen: bool,
    /// Both streams go to one place (`2>&1`): what was said on one need not be said on the other.
    is_joined: bool,
    paint: Paint,
    left: Left,
    stdout: Stdout,
    spinner: Option<Spinner>,
    /// Where a spinner may write; `None` where there is none.
    spins_on: Option<fn() -> Box<dyn Write + Send>>,
    may_spin: bool,
    /// How wide standard error is at the moment; `None` where it is no terminal.
    columns: fn() -> Option<usize>,
    /// When the last text of a reply was streamed, until something else is written.
    streamed: Option<Instant>,
    /// Bytes of the reply have come since then.
    more_came: bool,
}

/// How the last line was left.
enum Left {
    /// At its start.
    Fresh,
    /// Behind this character on standard output, in the middle of a line.
    Text(char),
    /// Behind the line of a call on standard error, which may be drawn again.
    Call(CallLine),
    /// Behind words on standard error that the next ones replace.
    Passing,
}

/// The line of a call: a dot, the tool in its colour, and what it is about.
struct CallLine {
    indent: &'static str,
    ink: Ink,
    name: String,
    about: String,
    /// Behind it, dim: who allowed it.
    note: String,
}

impl CallLine {
    /// Columns that it takes where nothing is cut.
    fn columns(&self) -> usize {
        columns(self.indent) + columns(&self.name) + columns(&one_line(&self.about)) + 3
    }
}

impl Console {
    /// The process's own streams, with what they can show.
    pub fn stdio(cancel: &Cancel) -> Result<Console, String> {
        let answers = if std::io::stdout().is_terminal() { Answers::Streamed } else { Answers::Once };
        let paint = Paint::of_stderr();
        let failed = |e: std::io::Error| format!("cannot use the standard streams: {e}");
        let out = Patient::new(std::io::stdout(), cancel).map_err(failed)?;
        let err = Patient::new(std::io::stderr(), cancel).map_err(failed)?;
        let console = Console::new(Box::new(out), Box::new(err), answers, paint);
        console.0.borrow_mut().spins_on = (paint == Paint::Colour).then_some(|| Box::new(std::io::stderr()));
        console.0.borrow_mut().is_joined = is_one_place();
        console.set_columns(|| width(std::io::stderr()));
        Ok(console)
    }

    /// A console on any two sinks, without a spinner.
    pub fn new(out: Box<dyn Write>, err: Box<dyn Write>, answers: Answers, paint: Paint) -> Console {
        Console(Rc::new(RefCell::new(Inner {
            out,
            err,
            answers,
            is_screen: answers == Answers::Streamed,
            is_joined: false,
            paint,
            left: Left::Fresh,
            stdout: Stdout::Fine,
            spinner: None,
            spins_on: None,
            may_spin: true,
            columns: || None,
            streamed: None,
            more_came: false,
        })))
    }

    /// Where the width of standard error is asked.
    pub(super) fn set_columns(&self, columns: fn() -> Option<usize>) {
        self.0.borrow_mut().columns = columns;
    }

    /// Both streams go to one place.
    #[cfg(test)]
    pub(super) fn join(&self) {
        self.0.borrow_mut().is_joined = true;
    }

    /// Whether standard output and standard error go to one place, such as a file behind `2>&1`.
    pub(super) fn is_joined(&self) -> bool {
        self.0.borrow().is_joined
    }

    /// How answers reach standard output.
    pub fn answers(&self) -> Answers {
        self.0.borrow().answers
    }

    /// Answers only once, also on a terminal (`--quiet`).
    pub fn answer_once(&self) {
        self.0.borrow_mut().answers = Answers::Once;
    }

    /// Whether there may be a spinner: not under `--quiet`, and not beside the lines of `--wire`.
    pub fn may_spin(&self, may: bool) {
        self.0.borrow_mut().may_spin = may;
    }

    /// What standard error can show.
    pub fn paint(&self) -> Paint {
        self.0.borrow().paint
    }

    /// How wide standard error is; `None` where it is no terminal, and lines may be as long as they are.
    pub fn columns(&self) -> Option<usize> {
        (self.0.borrow().columns)()
    }

    /// Whether standard output could be written to so far.
    pub fn stdout(&self) -> Stdout {
        self.0.borrow().stdout.clone()
    }

    /// Text of an answer on standard output, as it comes.
    pub fn stream(&self, text: &str) {
        let Some(last) = text.chars().next_back() else { return };
        let mut inner = self.0.borrow_mut();
        inner.spinner = None;
        let before = match inner.left {
            Left::Text(before) => before,
            _ => {
                inner.fresh_line();
                ' '
            }
        };
        inner.write_out(&sanitize_behind(before, text));
        inner.left = if last == '\n' { Left::Fresh } else { Left::Text(last) };
        (inner.streamed, inner.more_came) = (Some(Instant::now()), false);
    }

    /// More of the reply has come. Behind text that may be the arguments of a long call, which nobody sees: after a
    /// second of them the text's line is ended, and the spinner is back. What came just now may be text, so it takes
    /// a second piece; a model that only pauses gets no broken line.
    pub fn more_came(&self) {
        let mut inner = self.0.borrow_mut();
        let silent = inner.streamed.is_some_and(|at| at.elapsed() > SILENCE);
        if std::mem::replace(&mut inner.more_came, true) && silent {
            drop(inner);
            self.spin();
        }
    }

    /// A whole answer on standard output.
    pub fn answer(&self, text: &str) {
        let mut inner = self.0.borrow_mut();
        inner.fresh_line();
        let shown = if inner.is_screen { sanitize(text) } else { text.into() };
        inner.write_out(&shown);
        if !shown.ends_with('\n') {
            inner.write_out("\n");
        }
    }

    /// A line of its own on standard error, made of pieces. On a terminal it goes on between words where it is too
    /// long; what must not be wrapped so, such as code, is cut or wrapped before.
    pub fn say(&self, pieces: &[(Ink, &str)]) {
        let mut inner = self.0.borrow_mut();
        inner.fresh_line();
        inner.write_prose(pieces, "\n");
    }

    /// Words that are answered on the same line; waits for the answer. The person's Enter ends that line. Where nobody
    /// types, and behind Ctrl-C and Ctrl-D, it is ended here.
    pub fn ask(&self, pieces: &[(Ink, &str)], lines: &SharedLines, cancel: &Cancel) -> Line {
        let mut lines = lines.borrow_mut();
        self.0.borrow_mut().fresh_line();
        self.0.borrow_mut().write_prose(pieces, if lines.is_terminal() { "" } else { "\n" });
        let answer = lines.next_line(cancel);
        if lines.is_terminal() && !matches!(answer, Line::Text(_)) {
            self.0.borrow_mut().write_err("", &[], "\n");
        }
        answer
    }

    /// Ends any open line, so that others may write (a line editor, a child with the terminal).
    pub fn fresh_line(&self) {
        self.0.borrow_mut().fresh_line();
    }

    /// The line of a call. On a terminal it stays open, for [`dot`](Self::dot).
    pub fn call(&self, indent: &'static str, ink: Ink, name: &str, about: &str) {
        let mut inner = self.0.borrow_mut();
        inner.fresh_line();
        let line = CallLine { indent, ink, name: name.into(), about: about.into(), note: String::new() };
        inner.draw_call(Ink::Dim, &line, "");
        inner.left = Left::Call(line);
        if inner.paint == Paint::Plain {
            inner.fresh_line();
        }
    }

    /// Draws the open call line once more with a dot of this colour; nothing where the line is no longer open.
    pub fn dot(&self, dot: Ink) {
        let mut inner = self.0.borrow_mut();
        match std::mem::replace(&mut inner.left, Left::Fresh) {
            Left::Call(line) => {
                inner.draw_call(dot, &line, ERASE);
                inner.left = Left::Call(line);
            }
            other => inner.left = other,
        }
    }

    /// Some words about the open call, behind it on its line; on a line of their own where it is no longer open, or
    /// where they would cut short what the call is about.
    pub fn note(&self, words: &str) {
        let mut inner = self.0.borrow_mut();
        let width = (inner.columns)().unwrap_or(COLUMNS);
        let joins = match &mut inner.left {
            Left::Call(line) if line.columns() + columns(words) + 2 < width => {
                line.note = format!("  {words}");
                true
            }
            _ => false,
        };
        drop(inner);
        match joins {
            true => self.dot(Ink::Dim),
            false => self.say(&[(Ink::Dim, "  "), (Ink::Dim, words)]),
        }
    }

    /// Shows that time passes, until the next thing is written.
    pub fn spin(&self) {
        let mut inner = self.0.borrow_mut();
        if let Some(out) = inner.spins_on.filter(|_| inner.may_spin) {
            inner.fresh_line();
            inner.spinner = Some(Spinner::start(out(), Duration::from_millis(100)));
        }
    }

    /// So many more bytes have come from the model; the spinner shows them.
    pub fn count(&self, bytes: usize) {
        if let Some(spinner) = &self.0.borrow().spinner {
            spinner.count(bytes);
        }
    }

    /// A line that the next one replaces; nothing where lines cannot be replaced.
    pub fn passing(&self, text: &str) {
        let mut inner = self.0.borrow_mut();
        if inner.paint == Paint::Colour {
            inner.fresh_line();
            inner.write_err("", &[(Ink::Dim, text)], "");
            inner.left = Left::Passing;
        }
    }
}

impl Inner {
    fn fresh_line(&mut self) {
        self.spinner = None;
        self.streamed = None;
        match self.left {
            Left::Fresh => {}
            Left::Text(_) => self.write_out("\n"),
            Left::Call(_) => self.write_err("", &[], "\n"),
            Left::Passing => self.write_err(ERASE, &[], ""),
        }
        self.left = Left::Fresh;
    }

    fn draw_call(&mut self, dot: Ink, line: &CallLine, before: &str) {
        let name = cut(&one_line(&line.name), NAME_COLUMNS);
        // A line that wraps cannot be drawn again.
        let taken = columns(line.indent) + columns(&name) + columns(&line.note) + 4;
        let room = (self.columns)().unwrap_or(COLUMNS).saturating_sub(taken);
        let about = format!(" {}", cut(&one_line(&line.about), room));
        let words = [(line.ink, name.as_str()), (Ink::Plain, &about), (Ink::Dim, &line.note)];
        self.write_err(before, &[&[(Ink::Plain, line.indent), (dot, "● ")], words.as_slice()].concat(), "");
    }

    fn write_out(&mut self, text: &str) {
        if self.stdout != Stdout::Fine {
            return;
        }
        if let Err(e) = self.out.write_all(text.as_bytes()).and_then(|()| self.out.flush()) {
            self.stdout = match e.kind() {
                ErrorKind::BrokenPipe => Stdout::Closed,
                _ => Stdout::Failed(format!("cannot write the answer to standard output: {e}")),
            };
        }
    }

    fn write_prose(&mut self, pieces: &[(Ink, &str)], after: &str) {
        match (self.columns)() {
            Some(columns) => {
                let wrapped = wrapped(pieces, columns);
                let pieces: Vec<_> = wrapped.iter().map(|(ink, text)| (*ink, text.as_str())).collect();
                self.write_err("", &pieces, after);
            }
            None => self.write_err("", pieces, after),
        }
    }

    /// `before` and `after` are ours, and go out as they are.
    fn write_err(&mut self, before: &str, pieces: &[(Ink, &str)], after: &str) {
        let mut bytes = Vec::from(before);
        bytes.extend(self.paint.bytes(pieces.iter().map(|(ink, text)| (*ink, sanitize(text)))));
        bytes.extend_from_slice(after.as_bytes());
        let _ = self.err.write_all(&bytes).and_then(|()| self.err.flush());
    }
}

/// Pieces, made safe, with line breaks where prose has to be wrapped.
fn wrapped(pieces: &[(Ink, &str)], columns: usize) -> Vec<(Ink, String)> {
    let mut pieces: Vec<(Ink, String)> = pieces.iter().map(|(ink, text)| (*ink, sanitize(text).into_owned())).collect();
    let text: String = pieces.iter().map(|(_, text)| text.as_str()).collect();
    for found in breaks(&text, columns).iter().rev() {
        let mut start = 0;
        for (_, piece) in &mut pieces {
            let at = found.at.wrapping_sub(start);
            start += piece.len();
            if at < piece.len() {
                found.make(piece, at);
                break;
            }
        }
    }
    pieces
}

/// Whether standard output and standard error are the same file, pipe or terminal.
fn is_one_place() -> bool {
    let [out, err] = [rustix::fs::fstat(std::io::stdout()), rustix::fs::fstat(std::io::stderr())];
    matches!((out, err), (Ok(out), Ok(err)) if (out.st_dev, out.st_ino) == (err.st_dev, err.st_ino))
}

/// Columns of a terminal; `None` where it is none.
pub fn width(of: impl AsFd) -> Option<usize> {
    let size = rustix::termios::tcgetwinsize(of).ok()?;
    // A terminal that says 0 does not know.
    Some(usize::from(size.ws_col)).filter(|columns| *columns > 0).map(|columns| columns.max(20))
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    /// A sink whose text can be looked at afterwards; `broken` is the error it fails with.
    #[derive(Clone, Default)]
    pub struct Sink {
        bytes: Rc<RefCell<Vec<u8>>>,
        broken: Option<ErrorKind>,
    }

    impl Sink {
        pub fn text(sink: &Sink) -> String {
            String::from_utf8(sink.bytes.borrow().clone()).unwrap()
        }
    }

    impl Write for Sink {
        fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
            match self.broken {
                Some(kind) => Err(kind.into()),
                None => self.bytes.borrow_mut().write(bytes),
            }
        }
        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }

    /// Standard output, standard error, and a console that writes on them.
    pub fn console(answers: Answers, paint: Paint) -> (Sink, Sink, Console) {
        let (out, err) = (Sink::default(), Sink::default());
        let console = Console::new(Box::new(out.clone()), Box::new(err.clone()), answers, paint);
        (out, err, console)
    }

    #[test]
    fn plain_has_no_colours_and_no_spinner() {
        let (_, err, console) = console(Answers::Streamed, Paint::Plain);
        console.spin();
        console.call("", Ink::Yellow, "read", "a.rs");
        console.dot(Ink::Green);
        console.passing("… 3 more lines");
        console.say(&[(Ink::Red, "red")]);
        assert_eq!(Sink::text(&err), "● read a.rs\nred\n");
    }

    #[test]
    fn a_call_line_is_drawn_again_until_something_follows_it() {
        let (_, err, console) = console(Answers::Streamed, Paint::Colour);
        console.call("", Ink::Yellow, "read", "a.rs");
        console.dot(Ink::Green);
        console.say(&[(Ink::Plain, "next")]);
        console.dot(Ink::Red);
        let text = Sink::text(&err);
        assert_eq!(text.matches("a.rs").count(), 2, "{text:?}");
        assert!(text.contains("\r\x1b[K") && text.ends_with("a.rs\nnext\n"), "{text:?}");
    }

    #[test]
    fn a_note_joins_the_open_call_and_has_a_line_of_its_own_elsewhere() {
        let shown = |paint| {
            let (_, err, console) = console(Answers::Once, paint);
            console.call("", Ink::Yellow, "read", "a.rs");
            console.note("allowed by a rule");
            Sink::text(&err)
        };
        assert_eq!(shown(Paint::Plain), "● read a.rs\n  allowed by a rule\n");
        let (_, err, narrow) = console(Answers::Once, Paint::Colour);
        narrow.set_columns(|| Some(20));
        narrow.call("", Ink::Yellow, "read", "a.rs");
        narrow.note("allowed by a rule");
        assert!(Sink::text(&err).contains("a.rs\n"), "{:?}", Sink::text(&err));
        let drawn_again = shown(Paint::Colour);
        assert!(drawn_again.contains("  allowed by a rule") && !drawn_again.contains('\n'), "{drawn_again:?}");
    }

    #[test]
    fn words_behind_streamed_text_get_a_line_of_their_own() {
        let (out, err, console) = console(Answers::Streamed, Paint::Plain);
        console.stream("half a li");
        console.say(&[(Ink::Plain, "note")]);
        console.stream("whole\n");
        console.say(&[(Ink::Plain, "note")]);
        assert_eq!(Sink::text(&out), "half a li\nwhole\n");
        assert_eq!(Sink::text(&err), "note\nnote\n");
    }

    #[test]
    fn prose_goes_on_between_words_whatever_its_pieces() {
        let (_, err, console) = console(Answers::Once, Paint::Plain);
        console.set_columns(|| Some(20));
        console.say(&[
            (Ink::Yellow, "note: "),
            (Ink::Plain, "a long notice about "),
            (Ink::Dim, "the\nserver's window"),
        ]);
        assert_eq!(Sink::text(&err), "note: a long notice\nabout the\nserver's window\n");
    }

    #[test]
    fn more_of_a_reply_behind_text_brings_the_spinner_back_after_a_second() {
        let (out, _, console) = console(Answers::Streamed, Paint::Colour);
        console.0.borrow_mut().spins_on = Some(|| Box::new(std::io::sink()));
        let spins = || console.0.borrow().spinner.is_some();
        let long_ago = || console.0.borrow_mut().streamed = Instant::now().checked_sub(SILENCE * 2);
        console.stream("I write");
        console.more_came();
        console.more_came();
        assert!(!spins(), "too early");
        console.stream(" it");
        long_ago();
        console.more_came();
        assert!(!spins(), "what came may be text");
        console.more_came();
        assert!(spins() && Sink::text(&out) == "I write it\n");
        console.stream("again");
        assert!(!spins());
    }

    #[test]
    fn foreign_text_is_made_safe_except_for_a_script() {
        let shown = |answers| {
            let (out, err, console) = console(answers, Paint::Plain);
            console.say(&[(Ink::Plain, "\x1b[2J")]);
            console.call("", Ink::Cyan, "t\x1b", "\x1b[1A");
            console.answer("\x1b[31m");
            (Sink::text(&out), Sink::text(&err))
        };
        let err = "\\u{1b}[2J\n● t\\u{1b} \\u{1b}[1A\n";
        assert_eq!(shown(Answers::Streamed), ("\\u{1b}[31m\n".into(), err.into()));
        assert_eq!(shown(Answers::Once), ("\x1b[31m\n".into(), err.into()));
    }

    #[test]
    fn a_reader_that_went_away_is_no_failure_and_a_full_disk_is() {
        let state = |kind| {
            let out = Sink { broken: Some(kind), ..Sink::default() };
            let console = Console::new(Box::new(out), Box::new(Sink::default()), Answers::Once, Paint::Plain);
            console.answer("text");
            console.stdout()
        };
        assert_eq!(state(ErrorKind::BrokenPipe), Stdout::Closed);
        assert!(matches!(state(ErrorKind::StorageFull), Stdout::Failed(why) if why.contains("standard output")));
    }
}
