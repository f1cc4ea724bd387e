//! A lab's demo on disk: laid out once, brought back to its shipped state before a recorded sample, reset on wish.
//!
//! Nothing of the participant's is ever deleted or written over: what stands in the way moves to `mini-labs/.before/`
//! (see `attic.rs`), and is said.
//! An exam builds its own copy with [`lay_out`], so a played or half-edited demo never changes a verdict.

use super::attic::Attic;
use super::shelf::{self, Files};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// The directory that holds the staged labs and what is remembered about them: usually `mini-labs/`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Home(PathBuf);

impl Home {
    /// `place` if one is named (`--workspace`); else the nearest `mini-labs/` at or above `cwd`; else the one that
    /// will be made in `cwd`.
    pub fn find(place: Option<&Path>, cwd: &Path) -> Home {
        let nearest = || cwd.ancestors().map(|dir| dir.join("mini-labs")).find(|home| home.is_dir());
        Home(match place {
            Some(place) => cwd.join(place),
            None => nearest().unwrap_or_else(|| cwd.join("mini-labs")),
        })
    }

    /// The path of something in it.
    pub fn join(&self, path: &str) -> PathBuf {
        self.0.join(path)
    }

    /// The names of the labs whose exam was passed, one on each line of `progress.txt`.
    pub fn passed(&self) -> Vec<String> {
        let text = fs::read_to_string(self.join("progress.txt")).unwrap_or_default();
        text.lines().map(str::trim).filter(|line| !line.is_empty()).map(str::to_owned).collect()
    }

    /// Adds a name to `progress.txt`.
    pub fn pass(&self, id: &str) -> Result<(), String> {
        let mut passed = self.passed();
        if passed.iter().any(|known| known == id) {
            return Ok(());
        }
        passed.push(id.into());
        self.write("progress.txt", format!("{}\n", passed.join("\n")).as_bytes())
    }

    /// How many hints of a lab were shown: `.hints` holds lines of `ID NUMBER`.
    pub fn hints(&self, id: &str) -> usize {
        let text = fs::read_to_string(self.join(".hints")).unwrap_or_default();
        let shown = text.lines().filter_map(|line| line.split_once(' ')).find(|(name, _)| *name == id);
        shown.and_then(|(_, number)| number.trim().parse().ok()).unwrap_or(0)
    }

    /// Remembers how many hints of a lab were shown.
    pub fn set_hints(&self, id: &str, number: usize) -> Result<(), String> {
        let text = fs::read_to_string(self.join(".hints")).unwrap_or_default();
        let others = text.lines().filter(|line| line.split_once(' ').is_none_or(|(name, _)| name != id));
        let lines: String = others.map(|line| format!("{line}\n")).collect();
        self.write(".hints", format!("{lines}{id} {number}\n").as_bytes())
    }

    /// Writes a file in it; makes the directory if there is none yet.
    pub fn write(&self, name: &str, bytes: &[u8]) -> Result<(), String> {
        write(&self.join(name), bytes)
    }
}

/// A demo laid out on disk.
#[derive(Clone, Debug)]
pub struct Staged {
    /// Where it is: the workspace of the agent.
    pub dir: PathBuf,
    /// What to tell the participant: notes of his own in the lab's page were moved.
    pub notice: Option<String>,
    /// What it is called, such as `NN-name`.
    id: String,
    home: Home,
    /// The shipped files.
    demo: Files,
    /// The participant's own files; a name that ends in `/` means all that is below.
    yours: Vec<String>,
    git: bool,
}

impl Staged {
    /// A demo below `home`; nothing is written yet.
    pub(super) fn new(id: &str, home: &Home, demo: Files, yours: &[String], git: bool) -> Staged {
        Staged { dir: home.join(id), notice: None, id: id.into(), home: home.clone(), demo, yours: yours.to_vec(), git }
    }

    /// Lays the demo out, and the page beside it. A demo that is there already is left as it is.
    pub(super) fn lay(mut self, page: &str) -> Result<Staged, String> {
        if !self.dir.exists() {
            lay_out(&self.dir, &self.demo, self.git)?;
        }
        self.notice = self.put_page(page)?;
        Ok(self)
    }

    /// Where the lab's page is: beside the demo, since a README inside would be a file of the workspace.
    pub fn page(&self) -> PathBuf {
        self.home.join(&format!("{}.md", self.id))
    }

    /// Writes the page. What a participant wrote into an older one moves to `.before/`; `Some` says so. Whether somebody
    /// did is told by the copy in `.pages/`, which is what we wrote.
    fn put_page(&self, text: &str) -> Result<Option<String>, String> {
        let name = format!("{}.md", self.id);
        let ours = self.home.join(".pages").join(&name);
        let mut attic = Attic::new(&self.home, &self.id);
        let now = fs::read(self.page()).unwrap_or_default();
        if now != text.as_bytes() && !fs::read(&ours).is_ok_and(|ours| ours == now) {
            attic.take(&self.home.0, &name)?;
        }
        write(&self.page(), text.as_bytes())?;
        write(&ours, text.as_bytes())?;
        Ok(attic.said().map(|kept| format!("The page is written anew: {kept}")))
    }

    /// Brings the shipped files back, keeps the participant's own, moves everything else out of the way. `Some` is
    /// what to tell the participant: what was moved, and where to.
    pub fn refresh(&self) -> Result<Option<String>, String> {
        let kept = self.restore(|path| self.is_yours(path))?;
        Ok(kept.map(|kept| format!("The sample starts from the shipped demo: {kept}")))
    }

    /// Puts everything back as shipped, the participant's own files too; what was there moves to `.before/`.
    /// Returns what to tell the participant.
    pub fn reset(&self) -> Result<String, String> {
        let kept = self.restore(|_| false)?;
        self.home.set_hints(&self.id, 0)?;
        let dir = shown(&self.dir);
        Ok(kept.map_or(format!("{dir} is as shipped"), |kept| format!("{dir} is as shipped again: {kept}")))
    }

    /// Moves away what is not as shipped, except where `stays`, and lays out what is missing. `Some` says what was
    /// moved where.
    fn restore(&self, stays: impl Fn(&str) -> bool) -> Result<Option<String>, String> {
        let changed = |path: &String| !stays(path) && !self.is_as_shipped(path);
        let changed: Vec<String> = shelf::walk(&self.dir)?.into_iter().filter(changed).collect();
        let mut attic = Attic::new(&self.home, &self.id);
        for path in &changed {
            attic.take(&self.dir, path)?;
        }
        if self.git {
            self.restore_repository(&mut attic)?;
        }
        remove_empty(&self.dir);
        for (path, bytes) in &self.demo {
            if self.dir.join(path).symlink_metadata().is_err() {
                write(&self.dir.join(path), bytes)?;
            }
        }
        Ok(attic.said())
    }

    /// The demo's repository, too. Its one commit has a fixed date and author, so every file of it is the same each
    /// time; only the index also holds the times of files, and changes when somebody looks.
    fn restore_repository(&self, attic: &mut Attic) -> Result<(), String> {
        let failed = |e: std::io::Error| format!("restore the repository of {}: {e}", self.dir.display());
        let scratch = tempfile::tempdir_in(&self.home.0).map_err(failed)?;
        lay_out(scratch.path(), &self.demo, true)?;
        let (shipped, theirs) = (scratch.path().join(".git"), self.dir.join(".git"));
        let names = shelf::walk(&shipped)?;
        let same =
            |name: &String| name == "index" || fs::read(shipped.join(name)).ok() == fs::read(theirs.join(name)).ok();
        if shelf::walk(&theirs).is_ok_and(|there| there == names) && names.iter().all(same) {
            return Ok(());
        }
        attic.take(&self.dir, ".git")?;
        fs::rename(&shipped, &theirs).map_err(failed)
    }

    /// The demo as an exam takes it: the shipped files, and over them the participant's own.
    pub fn with_yours(&self) -> Result<Files, String> {
        let mut files = self.demo.clone();
        for path in shelf::walk(&self.dir)? {
            let full = self.dir.join(&path);
            // A regular file only: a FIFO would be read for ever.
            if self.is_yours(&path) && full.is_file() {
                let bytes = fs::read(&full).map_err(|e| format!("read {}: {e}", full.display()))?;
                files.insert(path, bytes);
            }
        }
        Ok(files)
    }

    fn is_yours(&self, path: &str) -> bool {
        is_among(&self.yours, path)
    }

    fn is_as_shipped(&self, path: &str) -> bool {
        let full = self.dir.join(path);
        let is_plain = full.symlink_metadata().is_ok_and(|about| about.is_file());
        is_plain && self.demo.get(path).is_some_and(|bytes| fs::read(&full).is_ok_and(|now| now == *bytes))
    }
}

/// Removes directories that hold nothing. One that holds something stays, which is all the error says.
fn remove_empty(dir: &Path) {
    for entry in fs::read_dir(dir).into_iter().flatten().flatten() {
        if entry.file_type().is_ok_and(|kind| kind.is_dir()) && entry.file_name() != ".git" {
            remove_empty(&entry.path());
            let _ = fs::remove_dir(entry.path());
        }
    }
}

/// Whether a path is one of the participant's own; a name that ends in `/` means all that is below.
pub fn is_among(yours: &[String], path: &str) -> bool {
    yours.iter().any(|own| own == path || own.ends_with('/') && path.starts_with(own.as_str()))
}

/// Whether a relative path can only lead beneath a directory.
pub fn inside(path: &str) -> bool {
    use std::path::Component;
    !path.is_empty() && Path::new(path).components().all(|part| matches!(part, Component::Normal(_)))
}

/// Writes files into a directory, and makes it a git repository if the lab wants one.
pub fn lay_out(dir: &Path, files: &Files, git: bool) -> Result<(), String> {
    fs::create_dir_all(dir).map_err(|e| format!("make {}: {e}", dir.display()))?;
    for (path, bytes) in files {
        write(&dir.join(path), bytes)?;
    }
    if git { make_repository(dir) } else { Ok(()) }
}

/// Writes a file, with its directories; a script (`#!`) becomes executable, since embedding loses the mode.
pub fn write(path: &Path, bytes: &[u8]) -> Result<(), String> {
    use std::os::unix::fs::PermissionsExt;
    let failed = |e: std::io::Error| format!("write {}: {e}", path.display());
    if let Some(parent) = path.parent() {
        fs::create_dir_all(parent).map_err(failed)?;
    }
    fs::write(path, bytes).map_err(failed)?;
    if bytes.starts_with(b"#!") {
        fs::set_permissions(path, fs::Permissions::from_mode(0o755)).map_err(failed)?;
    }
    Ok(())
}

/// One commit of everything, whatever the machine's own git settings and hooks are.
fn make_repository(dir: &Path) -> Result<(), String> {
    git(dir, &["init", "-q", "--template="])?; // no hooks of the machine's
    git(dir, &["add", "--all", "--force"])?;
    git(dir, &["commit", "-q", "-m", "The demo as shipped"])
}

fn git(dir: &Path, args: &[&str]) -> Result<(), String> {
    let mut command = Command::new("git");
    for (name, _) in std::env::vars_os().filter(|(name, _)| name.to_string_lossy().starts_with("GIT_")) {
        command.env_remove(name);
    }
    command.env("GIT_CONFIG_GLOBAL", "/dev/null").env("GIT_CONFIG_NOSYSTEM", "1");
    for who in ["AUTHOR", "COMMITTER"] {
        command.env(format!("GIT_{who}_NAME"), "mini").env(format!("GIT_{who}_EMAIL"), "mini@localhost");
        command.env(format!("GIT_{who}_DATE"), "2026-01-01T00:00:00Z");
    }
    let ran = command.args(args).current_dir(dir).stdin(Stdio::null()).output();
    let ran = ran.map_err(|e| format!("run git, which this lab needs: {e}"))?;
    if ran.status.success() {
        return Ok(());
    }
    Err(format!("git {}: {}", args[0], String::from_utf8_lossy(&ran.stderr).trim()))
}

/// A path as a person would type it: relative to the current directory where it is below it.
pub fn shown(path: &Path) -> String {
    let cwd = std::env::current_dir().unwrap_or_default();
    path.strip_prefix(&cwd).unwrap_or(path).display().to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn staged(root: &Path) -> Staged {
        let demo: Files = [("greet.sh", "#!/bin/sh\necho hello\n"), ("yours.txt", "?\n"), ("src/a.sh", "a\n")]
            .map(|(path, text)| (path.to_owned(), text.as_bytes().to_vec()))
            .into();
        let home = Home::find(Some(Path::new("mini-labs")), root);
        Staged::new("07-demo", &home, demo, &["yours.txt".into()], false).lay("first").unwrap()
    }

    #[test]
    fn the_nearest_home_upward_is_taken() {
        let root = tempfile::tempdir().unwrap();
        let deep = root.path().join("mini-labs/05-x");
        fs::create_dir_all(&deep).unwrap();
        assert_eq!(Home::find(None, &deep), Home(root.path().join("mini-labs")));
        let other = tempfile::tempdir().unwrap();
        assert_eq!(Home::find(None, other.path()), Home(other.path().join("mini-labs")));
        assert_eq!(Home::find(Some(Path::new("here")), other.path()), Home(other.path().join("here")));
    }

    #[test]
    fn refresh_keeps_yours_and_moves_the_rest_away() {
        let root = tempfile::tempdir().unwrap();
        let staged = staged(root.path());
        assert_eq!(staged.refresh(), Ok(None));
        for (path, text) in [("greet.sh", "echo hi\n"), ("yours.txt", "RUN\n"), ("new/b.txt", "b\n")] {
            write(&staged.dir.join(path), text.as_bytes()).unwrap();
        }
        fs::remove_file(staged.dir.join("src/a.sh")).unwrap();
        let said = staged.refresh().unwrap().unwrap();
        assert!(said.contains("moved greet.sh, new/b.txt to "), "{said}");
        let read = |path: &str| fs::read_to_string(staged.dir.join(path)).unwrap();
        assert_eq!(
            [read("greet.sh"), read("yours.txt"), read("src/a.sh")],
            ["#!/bin/sh\necho hello\n", "RUN\n", "a\n"]
        );
        assert!(!staged.dir.join("new").exists());
        assert_eq!(fs::read_to_string(staged.home.join(".before/07-demo/greet.sh")).unwrap(), "echo hi\n");
        assert_eq!(staged.with_yours().unwrap()["yours.txt"], b"RUN\n");
    }

    #[test]
    fn a_link_that_leads_out_is_moved_and_never_written_through() {
        let root = tempfile::tempdir().unwrap();
        let staged = staged(root.path());
        let outside = root.path().join("outside");
        fs::create_dir(&outside).unwrap();
        fs::remove_dir_all(staged.dir.join("src")).unwrap();
        std::os::unix::fs::symlink(&outside, staged.dir.join("src")).unwrap();
        assert!(staged.refresh().unwrap().is_some());
        assert_eq!(fs::read_dir(&outside).unwrap().count(), 0);
        assert!(staged.dir.join("src/a.sh").is_file());
    }

    #[test]
    fn reset_restores_everything_and_deletes_nothing() {
        let root = tempfile::tempdir().unwrap();
        let staged = staged(root.path());
        staged.home.set_hints("07-demo", 2).unwrap();
        for (text, place) in [("one\n", "07-demo"), ("two\n", "07-demo-2"), ("three\n", "07-demo-3")] {
            write(&staged.dir.join("yours.txt"), text.as_bytes()).unwrap();
            let said = staged.reset().unwrap();
            assert!(
                said.ends_with(&format!("moved yours.txt to {}/", staged.home.join(".before").join(place).display()))
            );
            assert_eq!(fs::read(staged.dir.join("yours.txt")).unwrap(), b"?\n");
        }
        let before = shelf::walk(&staged.home.join(".before")).unwrap();
        assert_eq!(before, ["07-demo-2/yours.txt", "07-demo-3/yours.txt", "07-demo/yours.txt"]);
        let kept: Vec<String> =
            before.iter().map(|path| fs::read_to_string(staged.home.join(".before").join(path)).unwrap()).collect();
        assert_eq!(kept, ["two\n", "three\n", "one\n"]);
        assert_eq!(staged.home.hints("07-demo"), 0);
    }

    #[test]
    fn a_reset_of_what_is_as_shipped_keeps_no_copy() {
        let root = tempfile::tempdir().unwrap();
        let staged = staged(root.path());
        assert!(staged.reset().unwrap().ends_with("07-demo is as shipped"));
        assert!(!staged.home.join(".before").exists());
    }

    #[test]
    fn what_is_kept_already_is_not_kept_twice_and_what_is_new_is() {
        let root = tempfile::tempdir().unwrap();
        let staged = staged(root.path());
        let before = || shelf::walk(&staged.home.join(".before")).unwrap();
        for text in ["hi\n", "hi\n", "ho\n", "hi\n"] {
            write(&staged.dir.join("greet.sh"), text.as_bytes()).unwrap();
            assert!(staged.refresh().unwrap().unwrap().contains("greet.sh"));
        }
        assert_eq!(before(), ["07-demo-2/greet.sh", "07-demo/greet.sh"]);
        // A directory where a file was kept, and the other way round.
        fs::remove_file(staged.dir.join("greet.sh")).unwrap();
        write(&staged.dir.join("greet.sh/a"), b"a\n").unwrap();
        fs::create_dir(staged.dir.join("greet.sh/empty")).unwrap();
        staged.refresh().unwrap();
        assert_eq!(before(), ["07-demo-2/greet.sh", "07-demo-3/greet.sh/a", "07-demo/greet.sh"]);
        assert_eq!(staged.refresh(), Ok(None));
    }

    #[test]
    fn a_repository_with_work_in_it_is_kept_and_a_shipped_one_is_left_alone() {
        let root = tempfile::tempdir().unwrap();
        let staged = Staged { git: true, dir: root.path().join("mini-labs/08-git"), ..staged(root.path()) };
        lay_out(&staged.dir, &staged.demo, true).unwrap();
        write(&staged.dir.join("yours.txt"), b"mine\n").unwrap();
        git(&staged.dir, &["status"]).unwrap();
        assert_eq!(staged.refresh(), Ok(None));
        git(&staged.dir, &["commit", "-q", "--all", "-m", "mine"]).unwrap();
        let said = staged.refresh().unwrap().unwrap();
        assert!(said.contains("moved .git to "), "{said}");
        assert!(staged.home.join(".before/07-demo/.git/HEAD").is_file());
        assert_eq!(fs::read(staged.dir.join("yours.txt")).unwrap(), b"mine\n");
        assert_eq!(staged.refresh(), Ok(None));
    }

    #[test]
    fn notes_in_the_page_are_kept_and_a_new_page_of_ours_moves_nothing() {
        let root = tempfile::tempdir().unwrap();
        let staged = staged(root.path());
        for text in ["first", "second", "second"] {
            assert_eq!(staged.put_page(text), Ok(None));
        }
        write(&staged.page(), b"second, and my notes").unwrap();
        let said = staged.put_page("second").unwrap().unwrap();
        assert!(said.contains("moved 07-demo.md to "), "{said}");
        assert_eq!(fs::read(staged.page()).unwrap(), b"second");
        assert_eq!(fs::read(staged.home.join(".before/07-demo/07-demo.md")).unwrap(), b"second, and my notes");
    }

    #[test]
    fn scripts_are_executable() {
        use std::os::unix::fs::PermissionsExt;
        let root = tempfile::tempdir().unwrap();
        let mode = fs::metadata(staged(root.path()).dir.join("greet.sh")).unwrap().permissions().mode();
        assert_eq!(mode & 0o111, 0o111);
    }

    #[test]
    fn progress_and_hints_are_remembered_by_name() {
        let root = tempfile::tempdir().unwrap();
        let home = Home::find(Some(Path::new("h")), root.path());
        for id in ["05-b", "01-a", "05-b"] {
            home.pass(id).unwrap();
            home.set_hints(id, home.hints(id) + 1).unwrap();
        }
        assert_eq!(home.passed(), ["05-b", "01-a"]);
        assert_eq!((home.hints("05-b"), home.hints("01-a"), home.hints("09-c")), (2, 1, 0));
    }
}
