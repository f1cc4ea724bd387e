//! The private directory of a run: spill files, and notes of temporary files that a crash would leave behind.
//!
//! Liveness is a lock on a file in the directory, not a process id: the kernel drops the lock however the run dies, and a
//! process id may meanwhile belong to somebody else. The next run takes the lock of a dead one, removes the temporary files
//! it noted, then its directory. Nothing of this ever lies in a workspace.
//!
//! Left out: a sweep of the system's temporary directory (where a run only goes when its own place cannot be written); the
//! system clears that itself.

use std::ffi::{OsStr, OsString};
use std::fs::{self, DirBuilder, File, OpenOptions};
use std::hash::{BuildHasher, Hasher, RandomState};
use std::io::{self, Write};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use tempfile::{Builder, TempDir};

/// A directory younger than this without a lock belongs to a run that is just starting.
const STARTING: Duration = Duration::from_secs(3600);
const RUN_PREFIX: &str = "run-";
const SPILL_PREFIX: &str = "spill-";
const TEMPORARY_PREFIX: &str = ".mini-";

/// The private directory of this run, 0700, removed when dropped.
#[derive(Debug)]
pub struct RunDir {
    dir: TempDir,
    notes: File,
    notice: Option<String>,
    // Held, never read: the open file is what keeps the lock.
    _lock: File,
}

impl RunDir {
    /// Makes `<state_dir>/runs/run-<random>` and locks it. Where that cannot be written, the directory is made below the
    /// system's temporary directory and [`RunDir::notice`] says so. Err only if neither works.
    pub fn create(state_dir: &Path) -> Result<RunDir, String> {
        let runs = state_dir.join("runs");
        let why = match private_dir(&runs).and_then(|()| RunDir::in_parent(&runs)) {
            Ok(run) => return Ok(run),
            Err(why) => why,
        };
        let temp = std::env::temp_dir();
        let mut run = RunDir::in_parent(&temp)
            .map_err(|e| format!("cannot make a private directory in {}: {e}", temp.display()))?;
        run.notice = Some(format!(
            "cannot write {} ({why}); this run keeps its files in {}",
            runs.display(),
            run.path().display()
        ));
        Ok(run)
    }

    fn in_parent(parent: &Path) -> io::Result<RunDir> {
        let private = fs::Permissions::from_mode(0o700);
        let dir = Builder::new().prefix(RUN_PREFIX).permissions(private).tempdir_in(parent)?;
        let lock = lock_of(dir.path())?;
        let notes = create_private(&dir.path().join("notes"))?;
        Ok(RunDir { dir, notes, notice: None, _lock: lock })
    }

    /// Where the directory is; absolute if the state directory was.
    pub fn path(&self) -> &Path {
        self.dir.path()
    }

    /// What the person should be told once, if the state directory could not be used.
    pub fn notice(&self) -> Option<&str> {
        self.notice.as_deref()
    }

    /// Records a temporary file. Call it *before* the file is created: a crash in between then leaves a note without a
    /// file, never a file without a note. Not synced to disk: it guards against a killed process, not against a power cut.
    pub fn note(&self, path: &Path) -> Result<(), String> {
        // A path may hold a newline but never a NUL.
        let mut record = path.as_os_str().as_bytes().to_vec();
        record.push(0);
        (&self.notes)
            .write_all(&record)
            .map_err(|e| format!("cannot note a temporary file in {}: {e}", self.path().display()))
    }

    /// A new file (0600) for output that is too long to show, as `spill-<stem>-<random>.txt`.
    pub fn spill(&self, stem: &str) -> Result<(File, PathBuf), String> {
        let stem: String = stem.chars().filter(char::is_ascii_alphanumeric).take(40).collect();
        let fail = |e: &dyn std::fmt::Display| format!("cannot make a spill file in {}: {e}", self.path().display());
        let made = Builder::new().prefix(&format!("{SPILL_PREFIX}{stem}-")).suffix(".txt").tempfile_in(self.path());
        made.map_err(|e| fail(&e))?.keep().map_err(|e| fail(&e))
    }

    /// The file name, if `path` names a spill file of this run.
    pub fn spill_name<'a>(&self, path: &'a Path) -> Option<&'a OsStr> {
        let name = path.file_name()?;
        (path.parent()? == self.path() && name.as_bytes().starts_with(SPILL_PREFIX.as_bytes())).then_some(name)
    }

    /// Removes what dead runs left beside this one: the temporary files they noted, then their directories.
    /// Returns a notice for each thing that could not be removed.
    pub fn sweep(&self) -> Vec<String> {
        if self.notice.is_some() {
            return Vec::new();
        }
        let Some(Ok(siblings)) = self.path().parent().map(fs::read_dir) else {
            return Vec::new();
        };
        siblings
            .filter_map(Result::ok)
            .filter(|entry| {
                entry.file_name().as_bytes().starts_with(RUN_PREFIX.as_bytes()) && entry.path() != self.path()
            })
            .filter_map(|entry| {
                sweep_one(&entry.path()).err().map(|e| format!("cannot remove what a dead run left: {e}"))
            })
            .collect()
    }
}

/// `$XDG_STATE_HOME/mini`, or `~/.local/state/mini`. Err where neither variable names an absolute directory.
pub fn state_dir() -> Result<PathBuf, String> {
    state_dir_from(|name| std::env::var_os(name))
}

fn state_dir_from(variable: impl Fn(&str) -> Option<OsString>) -> Result<PathBuf, String> {
    // The XDG rule: a relative value is ignored.
    let absolute = |name| variable(name).map(PathBuf::from).filter(|path| path.is_absolute());
    absolute("XDG_STATE_HOME")
        .or_else(|| absolute("HOME").map(|home| home.join(".local/state")))
        .map(|state| state.join("mini"))
        .ok_or_else(|| "neither XDG_STATE_HOME nor HOME is an absolute path: there is no place for state".to_string())
}

/// A name for a temporary file, of the one shape that [`RunDir::sweep`] will ever delete. Short, so that it fits beside a
/// target whose own name is as long as the file system allows.
pub fn temporary_name() -> String {
    format!("{TEMPORARY_PREFIX}{:016x}", RandomState::new().build_hasher().finish())
}

fn is_temporary_name(name: &OsStr) -> bool {
    name.to_str()
        .and_then(|name| name.strip_prefix(TEMPORARY_PREFIX))
        .is_some_and(|hex| hex.len() == 16 && hex.bytes().all(|b| b.is_ascii_digit() || (b'a'..=b'f').contains(&b)))
}

/// Locked under another name first and renamed then: a file called `lock` is one that was locked, never one that is about
/// to be. So a sweep needs no lock of its own and cannot meet a run half-way through its start.
fn lock_of(dir: &Path) -> io::Result<File> {
    let early = dir.join("lock.new");
    let file = create_private(&early)?;
    file.try_lock()?;
    fs::rename(early, dir.join("lock"))?;
    Ok(file)
}

fn create_private(path: &Path) -> io::Result<File> {
    OpenOptions::new().write(true).create_new(true).mode(0o600).open(path)
}

fn private_dir(path: &Path) -> io::Result<()> {
    DirBuilder::new().recursive(true).mode(0o700).create(path)
}

fn sweep_one(dir: &Path) -> io::Result<()> {
    match File::open(dir.join("lock")) {
        Ok(lock) => {
            if lock.try_lock().is_err() {
                return Ok(()); // alive, or being swept by another run
            }
            for path in noted(&fs::read(dir.join("notes")).unwrap_or_default()) {
                remove_leftover(&path)?;
            }
            fs::remove_dir_all(dir)
        }
        Err(e) if e.kind() == io::ErrorKind::NotFound && !is_young(dir) => fs::remove_dir_all(dir),
        Err(_) => Ok(()),
    }
}

/// The complete records. A torn last one was never followed by its file.
fn noted(notes: &[u8]) -> Vec<PathBuf> {
    let complete = notes.iter().rposition(|b| *b == 0).map_or(&[][..], |end| &notes[..end]);
    let records = complete.split(|b| *b == 0).filter(|record| !record.is_empty());
    records.map(|record| PathBuf::from(OsString::from_vec(record.to_vec()))).collect()
}

/// Deletes a noted file, and only if it looks exactly like one of ours: a note is a file on disk that anybody with this
/// user's rights may have written.
fn remove_leftover(path: &Path) -> io::Result<()> {
    let ours = path.is_absolute() && path.file_name().is_some_and(is_temporary_name);
    match fs::symlink_metadata(path) {
        Ok(meta) if ours && meta.is_file() => fs::remove_file(path),
        _ => Ok(()),
    }
}

fn is_young(dir: &Path) -> bool {
    let modified = fs::symlink_metadata(dir).and_then(|meta| meta.modified());
    // A date in the future, or none at all: leave it alone.
    modified.map_or(true, |at| SystemTime::now().duration_since(at).map_or(true, |age| age < STARTING))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A run that was killed: its directory stays, its lock is gone.
    fn dead_run(state: &Path, noted: &[&Path]) -> PathBuf {
        let run = RunDir::create(state).unwrap();
        for path in noted {
            run.note(path).unwrap();
        }
        let RunDir { dir, .. } = run;
        dir.keep()
    }

    #[test]
    fn is_private_and_gone_when_dropped() {
        let state = tempfile::tempdir().unwrap();
        let run = RunDir::create(&state.path().join("a/b")).unwrap();
        let path = run.path().to_path_buf();
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o700);
        assert_eq!(run.notice(), None);
        drop(run);
        assert!(!path.exists());
    }

    #[test]
    fn spill_files_are_private_and_known_by_name() {
        let state = tempfile::tempdir().unwrap();
        let run = RunDir::create(state.path()).unwrap();
        let (_, path) = run.spill("../x y").unwrap();
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
        assert!(run.spill_name(&path).is_some());
        assert!(run.spill_name(&run.path().join("notes")).is_none());
        assert!(run.spill_name(Path::new("/tmp/spill-x.txt")).is_none());
    }

    #[test]
    fn sweep_removes_what_a_dead_run_noted_and_nothing_else() {
        let state = tempfile::tempdir().unwrap();
        let work = tempfile::tempdir().unwrap();
        let ours = work.path().join(temporary_name());
        let precious = work.path().join("precious.txt");
        let link = work.path().join(temporary_name());
        fs::write(&ours, "x").unwrap();
        fs::write(&precious, "x").unwrap();
        std::os::unix::fs::symlink(&precious, &link).unwrap();
        let dead = dead_run(state.path(), &[&ours, &precious, &link, &work.path().join(temporary_name())]);
        let run = RunDir::create(state.path()).unwrap();
        assert_eq!(run.sweep(), Vec::<String>::new());
        assert!(!ours.exists() && !dead.exists());
        assert!(precious.exists() && fs::symlink_metadata(&link).is_ok());
    }

    #[test]
    fn sweep_leaves_a_living_run_and_one_that_is_starting() {
        let state = tempfile::tempdir().unwrap();
        let other = RunDir::create(state.path()).unwrap();
        let starting = state.path().join("runs/run-starting");
        fs::create_dir(&starting).unwrap();
        RunDir::create(state.path()).unwrap().sweep();
        assert!(other.path().exists() && starting.exists());
    }

    #[test]
    fn a_state_directory_that_cannot_be_written_is_a_notice() {
        let state = tempfile::tempdir().unwrap();
        let file = state.path().join("file");
        fs::write(&file, "").unwrap();
        let run = RunDir::create(&file).unwrap();
        assert!(run.notice().is_some_and(|text| text.contains("cannot write")));
        assert!(run.path().is_dir() && run.sweep().is_empty());
    }

    #[test]
    fn a_torn_note_is_ignored() {
        assert_eq!(noted(b"/a\0/b\0/c"), [PathBuf::from("/a"), PathBuf::from("/b")]);
        assert_eq!(noted(b"/torn"), Vec::<PathBuf>::new());
    }

    #[test]
    fn the_state_directory_follows_xdg() {
        let of = |xdg: Option<&str>, home: Option<&str>| {
            state_dir_from(|name| (if name == "HOME" { home } else { xdg }).map(OsString::from))
        };
        assert_eq!(of(Some("/s"), Some("/h")).unwrap(), Path::new("/s/mini"));
        assert_eq!(of(Some("relative"), Some("/h")).unwrap(), Path::new("/h/.local/state/mini"));
        assert!(of(None, None).is_err());
    }
}
