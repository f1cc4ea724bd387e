//! What write and edit replace, kept so that it can be taken back.
//!
//! Before a task's first change of a file, the file is copied into the session's store (`sessions/ID.files/`, for the
//! user alone), and a line of the store's index says which copy belongs to which path, and what the file is about to
//! become. In that order, so that a crash leaves a copy too many and never a change that cannot be taken back.
//!
//! What a file *becomes* is remembered as its length and a hash: enough to tell whether somebody has changed it since. The
//! hash guards against accidents and not against an attacker, who could change the file and the index alike.
//!
//! Left out on purpose: what bash changes. A command can change anything anywhere, and a promise that holds for some of
//! it would be worse than none. Taking back itself is [`session::undo`](crate::session::undo).

use crate::event::unix_ms;
use crate::jsonl;
use crate::workspace::{Place, Workspace};
use serde::{Deserialize, Serialize};
use std::collections::HashSet;
use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, ErrorKind, Read, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

/// The store of a session's replaced files, or the reason why there is none.
pub struct Kept(Result<Store, String>);

struct Store {
    dir: PathBuf,
    /// Number and words of the task at hand; numbers count from 1.
    task: u32,
    text: String,
    /// Paths of which this task has kept a copy already.
    first: HashSet<String>,
}

/// A line of the index.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "lowercase")]
pub enum Note {
    /// A task is about to change its first file; `at` is Unix time in ms.
    Task {
        /// Its number in the session.
        task: u32,
        /// Its words.
        text: String,
        /// When.
        at: u64,
    },
    /// A file is about to change.
    Change {
        /// The task's number.
        task: u32,
        /// Below the workspace.
        path: String,
        /// The file's copy in the store; `None` if there was no file.
        copy: Option<String>,
        /// False if an earlier line of the task holds the copy.
        first: bool,
        /// What the file is about to become.
        becomes: Print,
    },
    /// The changes of a task were taken back.
    Undone {
        /// The task's number.
        task: u32,
    },
}

/// What a file's content is recognised by.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Print {
    bytes: u64,
    /// FNV-1a, 64 bits, as hexadecimal digits: JSON readers lose the low bits of such numbers.
    hash: String,
}

impl Default for Kept {
    fn default() -> Kept {
        Kept::none("there is no session")
    }
}

impl Kept {
    /// Keeps nothing, for this reason.
    pub fn none(why: impl Into<String>) -> Kept {
        Kept(Err(why.into()))
    }

    /// Keeps in this directory, which is made when there is something to keep. An index that cannot be read is the
    /// reason to keep nothing.
    pub fn below(dir: PathBuf) -> Kept {
        let task = index(&dir).map(|notes| notes.iter().map(Note::task).max().unwrap_or(0));
        Kept(task.map(|task| Store { dir, task, text: String::new(), first: HashSet::new() }))
    }

    /// Where the store is; the error says why there is none.
    pub fn dir(&self) -> Result<&Path, &str> {
        self.0.as_ref().map(|store| store.dir.as_path()).map_err(String::as_str)
    }

    /// From here on changes belong to another task.
    pub fn begin(&mut self, task: &str) {
        if let Ok(store) = &mut self.0 {
            (store.task, store.text) = (store.task + 1, task.to_owned());
            store.first.clear();
        }
    }

    /// To be called before a file changes to `new`. An error is for one notice: nothing is kept from there on, and the
    /// change itself goes on, as a run without a log does.
    pub fn before(&mut self, workspace: &Workspace, place: &Place, new: &[u8]) -> Result<(), String> {
        let Ok(store) = &mut self.0 else { return Ok(()) };
        let Err(e) = store.before(workspace, place, new) else { return Ok(()) };
        let why = format!("changes cannot be taken back from here on: {}: {e}", store.dir.display());
        self.0 = Err(why.clone());
        Err(why)
    }
}

impl Store {
    fn before(&mut self, workspace: &Workspace, place: &Place, new: &[u8]) -> io::Result<()> {
        DirBuilder::new().recursive(true).mode(0o700).create(&self.dir)?;
        let path = place.relative().to_string_lossy().into_owned();
        let first = !self.first.contains(&path);
        let copy = if first && place.exists() { Some(self.copy(workspace, place)?) } else { None };
        if self.first.is_empty() {
            note(&self.dir, &Note::Task { task: self.task, text: self.text.clone(), at: unix_ms() })?;
        }
        let becomes = Print::of(new)?;
        note(&self.dir, &Note::Change { task: self.task, path: path.clone(), copy, first, becomes })?;
        self.first.insert(path);
        Ok(())
    }

    /// Copies a file into the store; returns the copy's name there.
    fn copy(&self, workspace: &Workspace, place: &Place) -> io::Result<String> {
        let mut file = workspace.open_place(place).map_err(|trouble| io::Error::other(trouble.to_string()))?;
        let (name, mut copy) = self.new_file()?;
        io::copy(&mut file, &mut copy)?;
        Ok(name)
    }

    /// A new file, called `000`, `001` and so on.
    fn new_file(&self) -> io::Result<(String, File)> {
        for number in 0.. {
            let name = format!("{number:03}");
            match OpenOptions::new().write(true).create_new(true).mode(0o600).open(self.dir.join(&name)) {
                Err(e) if e.kind() == ErrorKind::AlreadyExists => {}
                made => return made.map(|file| (name, file)),
            }
        }
        Err(io::Error::other("it is full"))
    }
}

impl Note {
    /// The number of the task that it is about.
    pub fn task(&self) -> u32 {
        match self {
            Note::Task { task, .. } | Note::Change { task, .. } | Note::Undone { task } => *task,
        }
    }
}

impl Print {
    /// Reads everything.
    pub fn of(mut content: impl Read) -> io::Result<Print> {
        let (mut bytes, mut hash, mut buffer) = (0, 0xcbf2_9ce4_8422_2325_u64, vec![0; 64 << 10]);
        loop {
            let read = match content.read(&mut buffer) {
                Err(e) if e.kind() == ErrorKind::Interrupted => continue,
                read => read?,
            };
            if read == 0 {
                return Ok(Print { bytes, hash: format!("{hash:016x}") });
            }
            bytes += read as u64;
            for byte in buffer.iter().take(read) {
                hash = (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3);
            }
        }
    }
}

/// Adds a line to a store's index.
pub fn note(dir: &Path, note: &Note) -> io::Result<()> {
    let path = dir.join("index");
    let file = jsonl::open(&path).or_else(|_| jsonl::create(&path))?;
    jsonl::end_torn_line(&file)?;
    (&file).write_all(format!("{}\n", serde_json::to_string(note)?).as_bytes())
}

/// The lines of a store's index; none if there is no store. A torn line is skipped: its change was never made.
pub fn index(dir: &Path) -> Result<Vec<Note>, String> {
    let path = dir.join("index");
    let mut notes = Vec::new();
    let file = match fs::File::open(&path) {
        Err(e) if e.kind() == ErrorKind::NotFound => return Ok(notes),
        file => file,
    };
    let read = file.and_then(|file| jsonl::each_line(file, |line| notes.extend(serde_json::from_slice::<Note>(line))));
    read.map_err(|e| format!("cannot read {}: {e}", path.display()))?;
    Ok(notes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn content_is_told_apart() {
        let of = |text: &str| Print::of(text.as_bytes()).unwrap();
        assert_eq!(of("a"), Print { bytes: 1, hash: "af63dc4c8601ec8c".into() }); // the published value for "a"
        assert_ne!(of("ab"), of("ba"));
    }

    #[test]
    fn a_store_that_cannot_be_written_is_said_once() {
        let dir = tempfile::tempdir().unwrap();
        fs::write(dir.path().join("file"), "").unwrap();
        let run = crate::rundir::RunDir::create(dir.path()).unwrap();
        let workspace = Workspace::open(dir.path(), run).unwrap();
        let place = workspace.resolve("file", "write").unwrap();
        let mut kept =
            Kept(Ok(Store { dir: dir.path().join("file/store"), task: 1, text: String::new(), first: HashSet::new() }));
        assert!(kept.before(&workspace, &place, b"").is_err());
        assert_eq!(kept.before(&workspace, &place, b""), Ok(()));
        assert!(kept.dir().unwrap_err().starts_with("changes cannot be taken back"));
    }
}
