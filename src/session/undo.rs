//! The file changes of the last task: shown, or taken back.
//!
//! All or nothing, as far as can be known beforehand: if one of the files is no longer what the task made of it, none
//! is touched, for half a task is a state that nobody has ever seen. If the disk fails in the middle, the same again
//! goes on: a file that is back already is left alone.
//!
//! The last task is the last one that changed files and was not taken back; so it steps back each time.

use crate::diff::unified;
use crate::kept::{Note, Print, index, note};
use crate::workspace::{Kind, Place, Seen, Workspace};
use std::fs::{self, File};
use std::path::Path;

/// What is always said: where the promise ends.
const NOT_BASH: &str = "What bash changed is not covered.";

/// A task that changed files.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Task {
    number: u32,
    /// Its words.
    pub text: String,
    /// When it changed its first file, as Unix time in ms.
    pub at: u64,
    files: Vec<Changed>,
}

/// A file that a task changed.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Changed {
    path: String,
    /// The name of the copy of what was there before; `None` if nothing was.
    copy: Option<String>,
    /// Everything that the task has made of it, or was about to.
    became: Vec<Print>,
}

/// What was done.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Undone {
    /// For the person.
    pub said: String,
    /// For the model, as a user message.
    pub note: String,
}

/// The last task of a store that changed files and was not taken back.
pub fn last(store: &Path) -> Result<Option<Task>, String> {
    let mut tasks: Vec<Task> = Vec::new();
    for note in index(store)? {
        match note {
            Note::Task { task, text, at } => tasks.push(Task { number: task, text, at, files: Vec::new() }),
            Note::Undone { task } => tasks.retain(|known| known.number != task),
            Note::Change { task, path, copy, first, becomes } => {
                if let Some(known) = tasks.iter_mut().find(|known| known.number == task) {
                    known.change(path, copy, first, becomes);
                }
            }
        }
    }
    Ok(tasks.into_iter().rev().find(|task| !task.files.is_empty()))
}

impl Task {
    fn change(&mut self, path: String, copy: Option<String>, first: bool, becomes: Print) {
        match self.files.iter_mut().find(|file| file.path == path) {
            Some(file) => file.became.push(becomes),
            None if first => self.files.push(Changed { path, copy, became: vec![becomes] }),
            None => {} // its first line is damaged: what was there before is not known
        }
    }

    /// Takes the task's changes back. The error says what stands in the way.
    pub fn take_back(&self, store: &Path, workspace: &Workspace) -> Result<Undone, String> {
        let mut changed = Vec::new();
        let mut steps = Vec::new();
        for file in &self.files {
            match file.look(store, workspace)? {
                Now::Changed => changed.push(file.path.as_str()),
                now => steps.push((file, now)),
            }
        }
        if !changed.is_empty() {
            return Err(format!(
                "nothing was taken back of the task {}: {} changed since. mini --diff shows the difference",
                self.words(),
                changed.join(", ")
            ));
        }
        let done =
            steps.iter().map(|(file, now)| file.take_back(now, store, workspace)).collect::<Result<Vec<_>, _>>()?;
        note(store, &Note::Undone { task: self.number })
            .map_err(|e| format!("cannot write {}: {e}", store.display()))?;
        Ok(self.undone(&done.join(", ")))
    }

    fn undone(&self, done: &str) -> Undone {
        let words = self.words();
        Undone {
            said: format!("took back the task {words}: {done}. {NOT_BASH}"),
            note: format!(
                "<undo>\nThis note comes from mini, NOT from the user, and asks for nothing. The user took back the file \
                 changes of the task {words}: {done}. What bash changed stays. Read files again before you rely on them.\n\
                 </undo>"
            ),
        }
    }

    /// What the task changed: a unified diff of each file, from before the task to now.
    pub fn diff(&self, store: &Path, workspace: &Workspace) -> Result<String, String> {
        self.files.iter().map(|file| file.diff(store, workspace)).collect()
    }

    /// The task in quotes, on one line.
    fn words(&self) -> String {
        let line = self.text.split_whitespace().collect::<Vec<_>>().join(" ");
        match line.char_indices().nth(60) {
            Some((cut, _)) => format!("\"{}…\"", &line[..cut]),
            None => format!("\"{line}\""),
        }
    }
}

/// A file compared with what the task made of it.
enum Now {
    /// As the task left it.
    AsLeft(Place, Seen),
    /// As before the task.
    AsBefore,
    /// Neither.
    Changed,
}

impl Changed {
    fn look(&self, store: &Path, workspace: &Workspace) -> Result<Now, String> {
        let Ok(place) = workspace.resolve(&self.path, "undo") else { return Ok(Now::Changed) }; // a directory by now
        let before = self.copy.as_ref().map(|copy| self.print(File::open(store.join(copy)))).transpose()?;
        if place.kind() == Kind::Missing {
            return Ok(if before.is_none() { Now::AsBefore } else { Now::Changed });
        }
        let file = workspace.open_place(&place).map_err(|trouble| trouble.to_string())?;
        let seen = Seen::of(&file).map_err(|e| format!("undo {:?}: {e}", self.path))?;
        let now = self.print(Ok(file))?;
        Ok(match () {
            () if before.as_ref() == Some(&now) => Now::AsBefore,
            () if self.became.contains(&now) => Now::AsLeft(place, seen),
            () => Now::Changed,
        })
    }

    fn print(&self, file: std::io::Result<File>) -> Result<Print, String> {
        file.and_then(Print::of).map_err(|e| format!("undo {:?}: cannot be read: {e}", self.path))
    }

    fn take_back(&self, now: &Now, store: &Path, workspace: &Workspace) -> Result<String, String> {
        let path = &self.path;
        match (now, &self.copy) {
            (Now::AsLeft(place, seen), Some(copy)) => {
                let old =
                    fs::read(store.join(copy)).map_err(|e| format!("undo {path:?}: cannot read its copy: {e}"))?;
                workspace.replace(place, &old, seen).map_err(|trouble| trouble.to_string())?;
                Ok(format!("{path} is as before"))
            }
            (Now::AsLeft(place, seen), None) => {
                workspace.remove(place, seen).map_err(|trouble| trouble.to_string())?;
                Ok(format!("{path} is removed, it was new"))
            }
            _ => Ok(format!("{path} was as before already")),
        }
    }

    fn diff(&self, store: &Path, workspace: &Workspace) -> Result<String, String> {
        let cannot = |e: std::io::Error| format!("diff {:?}: cannot be read: {e}", self.path);
        let old = self.copy.as_ref().map(|copy| fs::read(store.join(copy))).transpose().map_err(cannot)?;
        let place = workspace.resolve(&self.path, "diff").map_err(|trouble| trouble.to_string())?;
        let mut new = Vec::new();
        if place.exists() {
            let mut file = workspace.open_place(&place).map_err(|trouble| trouble.to_string())?;
            std::io::copy(&mut file, &mut new).map_err(cannot)?;
        }
        let since = match self.look(store, workspace)? {
            Now::Changed => format!("[{} has changed since the task: this shows both]\n", self.path),
            Now::AsBefore => format!("[{} is as before the task]\n", self.path),
            Now::AsLeft(..) => String::new(),
        };
        let old = old.unwrap_or_default();
        Ok(since + &unified(&String::from_utf8_lossy(&old), &String::from_utf8_lossy(&new), &self.path).text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kept::Kept;
    use crate::rundir::RunDir;

    struct Bench {
        dir: tempfile::TempDir,
        workspace: Workspace,
        kept: Kept,
    }

    impl Bench {
        fn new() -> Bench {
            let dir = tempfile::tempdir().unwrap();
            fs::create_dir(dir.path().join("ws")).unwrap();
            let run = RunDir::create(&dir.path().join("state")).unwrap();
            let workspace = Workspace::open(&dir.path().join("ws"), run).unwrap();
            let kept = Kept::below(dir.path().join("store"));
            Bench { dir, workspace, kept }
        }

        /// As write and edit do it.
        fn write(&mut self, path: &str, text: &str) {
            let place = self.workspace.resolve(path, "write").unwrap();
            let seen = match place.exists() {
                true => Seen::of(&self.workspace.open_place(&place).unwrap()).unwrap(),
                false => Seen::Absent,
            };
            self.kept.before(&self.workspace, &place, text.as_bytes()).unwrap();
            self.workspace.replace(&place, text.as_bytes(), &seen).unwrap();
        }

        fn put(&self, path: &str, text: &str) {
            fs::write(self.dir.path().join("ws").join(path), text).unwrap();
        }

        fn read(&self, path: &str) -> Option<String> {
            fs::read_to_string(self.dir.path().join("ws").join(path)).ok()
        }

        fn last(&self) -> Option<Task> {
            last(&self.dir.path().join("store")).unwrap()
        }

        fn undo(&self) -> Result<Undone, String> {
            self.last().expect("a task").take_back(&self.dir.path().join("store"), &self.workspace)
        }
    }

    #[test]
    fn it_steps_back_task_by_task() {
        let mut bench = Bench::new();
        bench.put("a", "0");
        bench.kept.begin("one");
        bench.write("a", "1");
        bench.write("new", "x");
        bench.kept.begin("looks only");
        bench.kept.begin("two");
        bench.write("a", "2");
        bench.write("a", "3");
        assert_eq!(bench.last().unwrap().text, "two");
        assert_eq!(
            bench.undo().unwrap().said,
            "took back the task \"two\": a is as before. What bash changed is not covered."
        );
        assert_eq!(bench.read("a").as_deref(), Some("1"));
        let undone = bench.undo().unwrap();
        assert!(undone.note.contains("a is as before, new is removed, it was new"), "{}", undone.note);
        assert_eq!((bench.read("a").as_deref(), bench.read("new")), (Some("0"), None));
        assert_eq!(bench.last(), None);
    }

    #[test]
    fn a_file_that_changed_since_is_left_alone_with_all_the_others() {
        let mut bench = Bench::new();
        bench.put("a", "0");
        bench.put("b", "0");
        bench.kept.begin("both");
        bench.write("a", "1");
        bench.write("b", "1");
        bench.put("b", "mine");
        let why = bench.undo().unwrap_err();
        assert!(why.contains("nothing was taken back of the task \"both\": b changed since"), "{why}");
        assert_eq!((bench.read("a").as_deref(), bench.read("b").as_deref()), (Some("1"), Some("mine")));
        fs::remove_file(bench.dir.path().join("ws/b")).unwrap();
        assert!(bench.undo().is_err());
        bench.put("b", "0");
        assert!(bench.undo().unwrap().said.contains("a is as before, b was as before already"));
    }

    #[test]
    fn a_crash_between_note_and_change_leaves_something_that_can_be_taken_back() {
        let mut bench = Bench::new();
        bench.put("a", "0");
        bench.kept.begin("one");
        bench.write("a", "1");
        let place = bench.workspace.resolve("a", "write").unwrap();
        bench.kept.before(&bench.workspace, &place, b"never written").unwrap();
        bench.undo().unwrap();
        assert_eq!(bench.read("a").as_deref(), Some("0"));
    }

    #[test]
    fn a_resumed_store_counts_on() {
        let mut bench = Bench::new();
        bench.kept.begin("one");
        bench.write("a", "1");
        bench.kept = Kept::below(bench.dir.path().join("store"));
        bench.kept.begin("two");
        bench.write("a", "2");
        bench.undo().unwrap();
        assert_eq!(bench.read("a").as_deref(), Some("1"));
        assert_eq!(bench.last().unwrap().text, "one");
    }

    #[test]
    fn the_diff_is_from_before_the_task_to_now() {
        let mut bench = Bench::new();
        bench.put("a", "0\n");
        bench.kept.begin("one");
        bench.write("a", "1\n");
        bench.write("a", "2\n");
        let store = bench.dir.path().join("store");
        let diff = |bench: &Bench| bench.last().unwrap().diff(&store, &bench.workspace).unwrap();
        assert!(diff(&bench).ends_with("-0\n+2\n"), "{}", diff(&bench));
        bench.put("a", "mine\n");
        assert!(diff(&bench).starts_with("[a has changed since the task: this shows both]\n"));
    }
}
