//! The line editor of a talk: history, pasted lines, long lines, all of it rustyline's.
//!
//! The editor runs on a thread of its own. While it waits for a key nothing can be asked of it, but a SIGTERM or a
//! SIGHUP must end the program then, too, with the log written and the terminal as it was. So the main thread waits
//! on a channel instead, looks at [`Cancel`] twenty times a second, and puts the terminal back itself where the editor
//! cannot. (Ctrl-C is a key here, not a signal.)
//!
//! Ctrl-Z stops the process, and a shell leaves its own terminal mode behind. A stop signal takes effect in whichever
//! thread gets it, so the editor's thread may have gone back to its mode too early; the waiting thread sees to it
//! when the process goes on.
//!
//! History is a file of JSON strings, one entry a line, 0600, appended to: sessions side by side lose nothing, and a
//! pasted entry keeps its lines. An entry that begins with a blank is not written down, as in a shell. The file is
//! never shortened here; the newest [`ENTRIES`] are loaded.

use crate::cancel::Cancel;
use rustix::termios::{LocalModes, OptionalActions, Termios, tcgetattr, tcsetattr};
use rustyline::completion::Completer;
use rustyline::config::{Behavior, Config};
use rustyline::error::ReadlineError;
use rustyline::highlight::Highlighter;
use rustyline::hint::Hinter;
use rustyline::history::{History, MemHistory};
use rustyline::validate::{ValidationContext, ValidationResult, Validator};
use rustyline::{Editor, Helper};
use signal_hook::consts::{SIGCONT, SIGWINCH};
use std::fs::{DirBuilder, OpenOptions};
use std::io::{IsTerminal, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::time::Duration;

/// How many entries of the history are loaded.
const ENTRIES: usize = 1000;

/// The longest wait between two looks at the flag.
const SLICE: Duration = Duration::from_millis(50);

/// What a person did at the prompt.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Entry {
    /// Something was entered; may be several lines.
    Text(String),
    /// Ctrl-C.
    Interrupt,
    /// Ctrl-D, or the flag was raised: nothing more will come.
    End,
    /// The editor failed; the words say how.
    Failed(String),
}

/// The line editor. Only for an input that is a terminal; a talk over a pipe reads [`Lines`](super::Lines).
pub struct Prompt {
    asks: Sender<String>,
    entries: Receiver<Entry>,
    /// How the terminal was before; `None` where it would not say.
    before: Option<Termios>,
    /// How the terminal is while the editor reads, once it has.
    editing: Option<Termios>,
    /// Set when the process goes on after having been stopped.
    resumed: Arc<AtomicBool>,
    history: Option<PathBuf>,
    /// A wait was given up, and the editor's thread still reads.
    given_up: bool,
}

impl Prompt {
    /// Starts the editor. `history` is the file of past entries; it need not be there yet, and without one the
    /// history lasts as long as the talk. Fails where there is no usable terminal.
    pub fn new(history: Option<PathBuf>) -> Result<Prompt, String> {
        let before = tcgetattr(std::io::stdin()).ok();
        let past = history.as_ref().map(load).unwrap_or_default();
        let (asks, asked) = channel::<String>();
        let (enter, entries) = channel();
        let mut editor = editor(past).map_err(|e| format!("cannot start the line editor: {e}"))?;
        let work = move || {
            while let Ok(prompt) = asked.recv()
                && enter.send(edit(&mut editor, &prompt)).is_ok()
            {}
        };
        let thread = std::thread::Builder::new().spawn(work);
        thread.map_err(|e| format!("cannot start the line editor: {e}"))?;
        let resumed = Arc::new(AtomicBool::new(false));
        signal_hook::flag::register(SIGCONT, Arc::clone(&resumed))
            .map_err(|e| format!("cannot start the line editor: {e}"))?;
        Ok(Prompt { asks, entries, before, editing: None, resumed, history, given_up: false })
    }

    /// Waits for an entry. When the flag is raised meanwhile the terminal is put back, and this and every later call
    /// is the end.
    pub fn read(&mut self, prompt: &str, cancel: &Cancel) -> Entry {
        if self.given_up || self.asks.send(prompt.into()).is_err() {
            return Entry::End;
        }
        loop {
            match self.entries.recv_timeout(SLICE) {
                Ok(entry) => return entry,
                Err(RecvTimeoutError::Disconnected) => return Entry::Failed("the line editor has stopped".into()),
                Err(RecvTimeoutError::Timeout) if cancel.is_raised() => return self.give_up(),
                Err(RecvTimeoutError::Timeout) => self.keep_editing(),
            }
        }
    }

    /// Puts the editor's mode back after the process was stopped, and has the editor draw its line again.
    fn keep_editing(&mut self) {
        let Ok(now) = tcgetattr(std::io::stdin()) else { return };
        if !now.local_modes.contains(LocalModes::ICANON) {
            self.editing = Some(now);
        } else if let Some(editing) = &self.editing
            && self.resumed.swap(false, Ordering::Relaxed)
            && tcsetattr(std::io::stdin(), OptionalActions::Now, editing).is_ok()
        {
            // As if the window had changed. Should it fail, the next key draws the line.
            let _ = signal_hook::low_level::raise(SIGWINCH);
        }
    }

    /// Writes an entry down for later talks. Call it for what is worth finding again; fails with the file's name.
    pub fn remember(&self, entry: &str) -> Result<(), String> {
        let Some(path) = &self.history else { return Ok(()) };
        if entry.starts_with(' ') || entry.trim().is_empty() {
            return Ok(());
        }
        let line = format!("{}\n", serde_json::Value::from(entry));
        if let Some(dir) = path.parent() {
            // The first words of a new user come before the first log. What cannot be made is told when it is opened.
            let _ = DirBuilder::new().recursive(true).mode(0o700).create(dir);
        }
        let file = OpenOptions::new().append(true).create(true).mode(0o600).open(path);
        file.and_then(|mut file| file.write_all(line.as_bytes()))
            .map_err(|e| format!("cannot write the history {}: {e}", path.display()))
    }

    fn give_up(&mut self) -> Entry {
        self.given_up = true;
        // The terminal may be what went away; then there is nothing to put back.
        if let Some(before) = &self.before {
            let _ = tcsetattr(std::io::stdin(), OptionalActions::Now, before);
        }
        let _ = std::io::stdout().write_all(PASTE_OFF).and_then(|()| std::io::stdout().flush());
        Entry::End
    }
}

/// The editor marks pasted text while it reads; afterwards the terminal must not. Then a line of its own.
const PASTE_OFF: &[u8] = b"\x1b[?2004l\r\n";

/// `/word rest`: a command of the talk, with its argument. A path such as `/usr/bin/env` is none.
pub fn slash(entry: &str) -> Option<(&str, &str)> {
    let entry = entry.trim().strip_prefix('/')?;
    let (word, rest) = entry.split_once(char::is_whitespace).unwrap_or((entry, ""));
    let is_word = !word.is_empty() && word.chars().all(|c| c.is_ascii_alphabetic());
    is_word.then_some((word, rest.trim()))
}

fn editor(past: Vec<String>) -> rustyline::Result<Editor<Continuation, MemHistory>> {
    // Without a terminal as output the editor would show nothing; then it finds the terminal by itself.
    let behavior = if std::io::stdout().is_terminal() { Behavior::Stdio } else { Behavior::PreferTerm };
    let config = Config::builder().behavior(behavior).max_history_size(ENTRIES)?.history_ignore_space(true).build();
    let history = MemHistory::with_config(&config);
    let mut editor = Editor::with_history(config, history)?;
    editor.set_helper(Some(Continuation));
    for entry in past {
        editor.history_mut().add_owned(entry)?;
    }
    Ok(editor)
}

fn edit(editor: &mut Editor<Continuation, MemHistory>, prompt: &str) -> Entry {
    loop {
        match editor.readline(prompt) {
            Ok(text) => {
                // In memory it cannot fail.
                let _ = editor.add_history_entry(text.as_str());
                return Entry::Text(text.replace("\\\n", "\n"));
            }
            Err(ReadlineError::Interrupted) => return Entry::Interrupt,
            Err(ReadlineError::Eof) => return Entry::End,
            // A key that is not UTF-8 costs the entry, not the talk.
            Err(ReadlineError::Io(e)) if e.kind() == std::io::ErrorKind::InvalidData => {}
            Err(e) => return Entry::Failed(format!("the line editor failed: {e}")),
        }
    }
}

/// The newest entries of the history file. What cannot be read is no history: a talk does not fail for it.
fn load(path: &PathBuf) -> Vec<String> {
    let text = std::fs::read(path).unwrap_or_default();
    let text = String::from_utf8_lossy(&text);
    let mut newest: Vec<String> =
        text.lines().rev().filter_map(|line| serde_json::from_str(line).ok()).take(ENTRIES).collect();
    newest.reverse();
    newest
}

/// A line that ends in a backslash goes on in the next one.
struct Continuation;

impl Validator for Continuation {
    fn validate(&self, entry: &mut ValidationContext) -> rustyline::Result<ValidationResult> {
        Ok(match entry.input().ends_with('\\') {
            true => ValidationResult::Incomplete,
            false => ValidationResult::Valid(None),
        })
    }
}

impl Completer for Continuation {
    type Candidate = String;
}
impl Hinter for Continuation {
    type Hint = String;
}
impl Highlighter for Continuation {}
impl Helper for Continuation {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slash_commands_are_words_and_paths_are_not() {
        for (entry, command) in [
            ("/help", Some(("help", ""))),
            (" /plan  the work \n", Some(("plan", "the work"))),
            ("/usr/bin/env is missing", None),
            ("/", None),
            ("why /help", None),
        ] {
            assert_eq!(slash(entry), command, "{entry:?}");
        }
    }

    /// A prompt whose editor is not there.
    fn prompt(history: &str) -> Prompt {
        let (asks, _) = channel();
        let (_, entries) = channel();
        let (history, resumed) = (Some(PathBuf::from(history)), Arc::default());
        Prompt { asks, entries, before: None, editing: None, resumed, history, given_up: false }
    }

    #[test]
    fn history_keeps_the_lines_of_an_entry_and_leaves_out_what_begins_with_a_blank() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("history");
        let prompt = prompt(path.to_str().unwrap());
        for entry in ["one", "two\nlines", " secret", ""] {
            prompt.remember(entry).unwrap();
        }
        std::fs::OpenOptions::new().append(true).open(&path).unwrap().write_all(b"not json\n\xff\n").unwrap();
        assert_eq!(load(&path), ["one", "two\nlines"]);
        let mode = std::os::unix::fs::PermissionsExt::mode(&std::fs::metadata(&path).unwrap().permissions());
        assert_eq!(mode & 0o777, 0o600);
    }

    #[test]
    fn a_history_that_cannot_be_written_names_its_file() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let below = file.path().join("history"); // a file is no directory
        let prompt = prompt(below.to_str().unwrap());
        assert!(prompt.remember("x").unwrap_err().contains(below.to_str().unwrap()));
        assert!(load(&below).is_empty());
    }

    #[test]
    fn the_first_entry_of_a_new_user_makes_the_directory() {
        let home = tempfile::tempdir().unwrap();
        let path = home.path().join("state/mini/history");
        prompt(path.to_str().unwrap()).remember("x").unwrap();
        assert_eq!(load(&path), ["x"]);
    }
}
