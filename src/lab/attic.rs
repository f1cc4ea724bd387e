//! Where things of the participant's go that stand in the way: `.before/`, a directory for each occasion, so that
//! nothing there is ever written over. A file that is in one of them already, byte for byte, needs no second copy: who
//! plays a sample ten times finds one.
//!
//! Rejected: numbers behind the files' names in one directory. A file may stand where a directory is to go.

use super::stage::{Home, shown};
use std::fs;
use std::path::{Path, PathBuf};

/// What is put away on one occasion.
pub struct Attic {
    /// `.before/NN-name`; those of later occasions are called `.before/NN-name-2` and so on.
    first: PathBuf,
    /// The directory of this occasion; it is made when the first thing goes there.
    now: Option<PathBuf>,
    moved: Vec<String>,
    /// What was there already: its name, and where the copy is.
    known: Vec<String>,
}

impl Attic {
    pub fn new(home: &Home, id: &str) -> Attic {
        Attic { first: home.join(".before").join(id), now: None, moved: Vec::new(), known: Vec::new() }
    }

    /// Takes `dir/path` away, if it is there.
    pub fn take(&mut self, dir: &Path, path: &str) -> Result<(), String> {
        let from = dir.join(path);
        let Ok(about) = from.symlink_metadata() else { return Ok(()) };
        if about.is_file()
            && let Ok(bytes) = fs::read(&from)
            && let Some(copy) = self.copies(path).find(|copy| is_copy(copy, &bytes))
        {
            fs::remove_file(&from).map_err(|e| format!("remove {}: {e}", from.display()))?;
            self.known.push(format!("{path} is kept as {}", shown(&copy)));
            return Ok(());
        }
        let to = self.directory()?.join(path);
        let failed = |e: std::io::Error| format!("move {} to {}: {e}", from.display(), to.display());
        fs::create_dir_all(to.parent().unwrap_or(&to)).map_err(failed)?;
        fs::rename(&from, &to).map_err(failed)?;
        self.moved.push(path.into());
        Ok(())
    }

    /// Where a copy from an earlier occasion may be.
    fn copies(&self, path: &str) -> impl Iterator<Item = PathBuf> + use<> {
        let path = path.to_owned();
        self.numbered().take_while(|dir| dir.symlink_metadata().is_ok()).map(move |dir| dir.join(&path))
    }

    /// The one of this occasion.
    fn directory(&mut self) -> Result<PathBuf, String> {
        if let Some(now) = &self.now {
            return Ok(now.clone());
        }
        let free = self.numbered().find(|dir| dir.symlink_metadata().is_err()).unwrap_or_else(|| self.first.clone());
        fs::create_dir_all(&free).map_err(|e| format!("make {}: {e}", free.display()))?;
        Ok(self.now.insert(free).clone())
    }

    fn numbered(&self) -> impl Iterator<Item = PathBuf> + use<> {
        let first = self.first.clone();
        let later = first.clone().into_os_string();
        std::iter::once(first).chain((2..).map(move |number: u32| {
            let mut path = later.clone();
            path.push(format!("-{number}"));
            path.into()
        }))
    }

    /// What was moved where, for the participant; `None` if nothing was.
    pub fn said(&self) -> Option<String> {
        let moved = self.now.as_ref().map(|now| format!("moved {} to {}/", self.moved.join(", "), shown(now)));
        let parts: Vec<String> = moved.into_iter().chain(self.known.iter().cloned()).collect();
        (!parts.is_empty()).then(|| parts.join("; "))
    }
}

fn is_copy(copy: &Path, bytes: &[u8]) -> bool {
    copy.symlink_metadata().is_ok_and(|about| about.is_file()) && fs::read(copy).is_ok_and(|there| there == bytes)
}
