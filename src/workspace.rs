//! The only place where a path becomes a file.
//!
//! The model names a path; this module says which file below the workspace it is, or why it is none of the model's business.
//! Two steps, because what is on disk can change between them:
//!
//! 1. `Workspace::resolve` follows links and `..` the way the kernel does and compares the *result* with the root, by
//!    component. The result holds no link and no `..`.
//! 2. `Workspace::open_place` and `Workspace::replace` walk that result from the root's own directory handle, one component at a
//!    time, each with `O_NOFOLLOW`. A link swapped in after step 1 ends the walk with an error; it is never followed.
//!
//! Not `openat2(RESOLVE_BENEATH)`: it would save a few calls on Linux, and macOS would need this walk anyway, so there would be
//! two paths to trust instead of one. Not `cap-std`: it brings six crates, follows links inside (step 1 must do that itself to
//! name what is wrong) and does not write by rename.
//!
//! Left out: extended attributes and ACLs are lost when a file is replaced, and the directory is not synced after the rename: a
//! power cut may bring back the old file, never a torn one.

mod protected;
mod resolve;

use std::ffi::{OsStr, OsString};
use std::fmt;
use std::fs::{self, File, Metadata};
use std::io::{self, Write};
use std::os::fd::OwnedFd;
use std::os::unix::fs::{FileTypeExt, MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, Mode, OFlags, mkdirat, openat, renameat, unlinkat};
use rustix::io::Errno;

use crate::rundir::{RunDir, temporary_name};

pub use protected::{
    PLACES as PROTECTED_PLACES, component as protected_component, directory_patterns, file_patterns, fold,
    is_invisible, place as protected_place, samples as protected_samples,
};
pub use resolve::Fault;

/// What follows when something is refused for good: to the person and to the model.
pub const WAY_OUT: &str = "if it is really needed, the person can do it in another terminal";

/// The directory a run works in, held open, and the run's private directory.
#[derive(Debug)]
pub struct Workspace {
    root: PathBuf,
    handle: OwnedFd,
    run: RunDir,
}

/// Why a path did not become a file. Its text is for the model and for the person.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Trouble {
    /// Outside the workspace, or protected.
    Blocked(String),
    /// Everything else: not found, a directory, a FIFO, changed meanwhile.
    Error(String),
}

impl fmt::Display for Trouble {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Trouble::Blocked(text) => write!(f, "Blocked: {text}"),
            Trouble::Error(text) => write!(f, "Error: {text}"),
        }
    }
}

/// What stands at a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// Nothing yet; its parents may be missing too.
    Missing,
    /// A regular file.
    File,
    /// A directory.
    Directory,
    /// Something a tool must not open; the text names it ("FIFO").
    Special(&'static str),
}

/// A path that was resolved: below the root, without links and without `..`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Place {
    /// What a message about it begins with: `edit "src/x.rs"`.
    subject: String,
    relative: PathBuf,
    absolute: PathBuf,
    kind: Kind,
}

impl Place {
    /// The path below the root; empty for the root itself.
    pub fn relative(&self) -> &Path {
        &self.relative
    }

    /// The whole path, for display and for programs.
    pub fn absolute(&self) -> &Path {
        &self.absolute
    }

    /// What stood there when the path was resolved.
    pub fn kind(&self) -> Kind {
        self.kind
    }

    /// Whether anything stood there.
    pub fn exists(&self) -> bool {
        self.kind != Kind::Missing
    }
}

/// What the caller saw before it proposed a change. [`Workspace::replace`] refuses if that is no longer what is there.
///
/// Metadata, not a hash of the content: it needs no second read of a large file, and a change within one tick of the clock
/// that also keeps the size is not what a person does while a question is open.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Seen {
    /// There was no file.
    Absent,
    /// This very file, with these times.
    File(Stamp),
}

/// Device, inode, size and the times (ns) of last change of content and of metadata.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Stamp([i128; 5]);

impl Seen {
    /// Takes the stamp of an open file.
    pub fn of(file: &File) -> io::Result<Seen> {
        file.metadata().map(|meta| Seen::stamp(&meta))
    }

    fn stamp(meta: &Metadata) -> Seen {
        let nanos = |seconds: i64, nanos: i64| i128::from(seconds) * 1_000_000_000 + i128::from(nanos);
        Seen::File(Stamp([
            i128::from(meta.dev()),
            i128::from(meta.ino()),
            i128::from(meta.size()),
            nanos(meta.mtime(), meta.mtime_nsec()),
            nanos(meta.ctime(), meta.ctime_nsec()),
        ]))
    }
}

impl Workspace {
    /// Opens the directory. It is made canonical once, here, and never again taken from anybody.
    pub fn open(root: &Path, run: RunDir) -> Result<Workspace, String> {
        let fail = |e: &dyn fmt::Display| format!("cannot open the workspace {}: {e}", root.display());
        let canonical = root.canonicalize().map_err(|e| fail(&e))?;
        let handle = rustix::fs::open(&canonical, DIRECTORY, Mode::empty()).map_err(|e| fail(&e))?;
        Ok(Workspace { root: canonical, handle, run })
    }

    /// The canonical root.
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// The private directory of this run.
    pub fn run(&self) -> &RunDir {
        &self.run
    }

    /// Says which place in the workspace a tool's path is. `verb` is the tool's ("read", "write", "edit") and begins every
    /// message, also later ones about this place. A missing file is a place too: its [`Kind`] says so.
    pub fn resolve(&self, word: &str, verb: &str) -> Result<Place, Trouble> {
        let subject = subject(verb, word);
        resolve::unusable(word).map_or(Ok(()), |why| error(&subject, why))?;
        let place = self.locate(&self.root, word).map_err(|fault| fault.trouble(&subject))?;
        match place.kind {
            Kind::Directory => error(&subject, IS_DIRECTORY),
            Kind::Special(what) => error(&subject, format!("is a {what}, not a regular file")),
            Kind::Missing | Kind::File => Ok(Place { subject, ..place }),
        }
    }

    /// Resolves and opens a regular file for reading; also a spill file of this run, by its absolute path.
    pub fn open_read(&self, word: &str) -> Result<(File, Place), Trouble> {
        if let Some(name) = self.run.spill_name(Path::new(word)) {
            return self.open_spill(name, word);
        }
        let place = self.resolve(word, "read")?;
        Ok((self.open_place(&place)?, place))
    }

    /// Opens a resolved place for reading. Only a regular file: a FIFO or a link swapped in since is an error, and never blocks.
    pub fn open_place(&self, place: &Place) -> Result<File, Trouble> {
        let file = self.parent(place, Parents::MustExist).and_then(|(dir, name)| open_file(&dir, &name));
        only_regular(file.map_err(|e| changed_or(e, place))?, &place.subject)
    }

    fn open_spill(&self, name: &OsStr, word: &str) -> Result<(File, Place), Trouble> {
        let subject = subject("read", word);
        let dir = rustix::fs::open(self.run.path(), DIRECTORY, Mode::empty());
        let file = dir.and_then(|dir| open_file(&dir, name)).or_else(|e| error(&subject, in_words(e)))?;
        let file = only_regular(file, &subject)?;
        let absolute = self.run.path().join(name);
        Ok((file, Place { subject, relative: PathBuf::new(), absolute, kind: Kind::File }))
    }

    /// Puts `new` in place of what `seen` describes, all or nothing: a temporary file beside the target, synced, renamed over
    /// it. Makes missing parents. Keeps the mode (and the owner, where the kernel lets us); a hard link is split, so that the
    /// file's other names keep the old content. On an error the temporary file is gone and the target untouched.
    pub fn replace(&self, place: &Place, new: &[u8], seen: &Seen) -> Result<(), Trouble> {
        let fail = |why: String| Trouble::Error(format!("{}: {why}", place.subject));
        let (dir, name) = self.parent(place, Parents::Make).map_err(|e| changed_or(e, place))?;
        let old = look(&dir, &name).map_err(|e| fail(format!("cannot be looked at: {e}")))?;
        if old.as_ref().is_some_and(|meta| meta.mode() & 0o222 == 0) {
            return Err(fail("is read-only for everybody; change its mode first".to_string()));
        }
        let temporary = temporary_name();
        self.run.note(&place.absolute.with_file_name(&temporary)).map_err(fail)?;
        let written = write_temporary(&dir, &temporary, new, old.as_ref())
            .map_err(|e| format!("cannot be written: {e}"))
            // As late as can be: what somebody writes between this and the rename is lost.
            .and_then(|()| unchanged(&dir, &name, seen))
            .and_then(|()| renameat(&dir, &*temporary, &dir, &*name).map_err(|e| format!("cannot be renamed: {e}")));
        if written.is_err() {
            // It is an error already; a temporary file that is not there either adds nothing to it.
            let _ = unlinkat(&dir, &*temporary, AtFlags::empty());
        }
        written.map_err(fail)
    }

    /// Removes a file if it is still what `seen` describes.
    pub fn remove(&self, place: &Place, seen: &Seen) -> Result<(), Trouble> {
        let (dir, name) = self.parent(place, Parents::MustExist).map_err(|e| changed_or(e, place))?;
        unchanged(&dir, &name, seen)
            .and_then(|()| {
                unlinkat(&dir, &*name, AtFlags::empty()).map_err(|e| format!("cannot be removed: {}", in_words(e)))
            })
            .map_err(|why| Trouble::Error(format!("{}: {why}", place.subject)))
    }

    /// Walks to the directory that holds the place. Each step opens one name below the handle of the step before, and no step
    /// follows a link, so what another process swaps in can only make the walk fail.
    fn parent(&self, place: &Place, parents: Parents) -> Result<(OwnedFd, OsString), Errno> {
        let name = place.relative.file_name().ok_or(Errno::ISDIR)?.to_os_string();
        let mut dir = openat(&self.handle, ".", DIRECTORY, Mode::empty())?;
        for part in place.relative.parent().into_iter().flat_map(Path::components) {
            let part = part.as_os_str();
            dir = match (openat(&dir, part, DIRECTORY, Mode::empty()), parents) {
                (Err(Errno::NOENT), Parents::Make) => {
                    mkdirat(&dir, part, Mode::from_raw_mode(0o777))
                        .or_else(|e| if e == Errno::EXIST { Ok(()) } else { Err(e) })?;
                    openat(&dir, part, DIRECTORY, Mode::empty())?
                }
                (opened, _) => opened?,
            };
        }
        Ok((dir, name))
    }
}

const IS_DIRECTORY: &str = "is a directory; `ls` shows what is in it";

const DIRECTORY: OFlags = OFlags::RDONLY.union(OFlags::DIRECTORY).union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC);

#[derive(Clone, Copy)]
enum Parents {
    MustExist,
    Make,
}

fn kind_of(meta: &Metadata) -> Kind {
    let kind = meta.file_type();
    match () {
        () if kind.is_file() => Kind::File,
        () if kind.is_dir() => Kind::Directory,
        () if kind.is_fifo() => Kind::Special("FIFO"),
        () if kind.is_socket() => Kind::Special("socket"),
        () => Kind::Special("device"),
    }
}

fn open_file(dir: &OwnedFd, name: &OsStr) -> Result<File, Errno> {
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
    openat(dir, name, flags, Mode::empty()).map(File::from)
}

fn only_regular(file: File, subject: &str) -> Result<File, Trouble> {
    let meta = file.metadata().or_else(|e| error(subject, format!("cannot be looked at: {e}")))?;
    match kind_of(&meta) {
        Kind::File => Ok(file),
        Kind::Special(what) => error(subject, format!("is a {what}, not a regular file")),
        Kind::Directory | Kind::Missing => error(subject, IS_DIRECTORY),
    }
}

/// What is there now, link or not. None: nothing.
fn look(dir: &OwnedFd, name: &OsStr) -> io::Result<Option<Metadata>> {
    match open_file(dir, name) {
        Ok(file) => file.metadata().map(Some),
        Err(Errno::NOENT) => Ok(None),
        Err(e) => Err(e.into()),
    }
}

fn unchanged(dir: &OwnedFd, name: &OsStr, seen: &Seen) -> Result<(), String> {
    let now = look(dir, name).map_err(|e| format!("cannot be looked at: {e}"))?;
    match now.map_or(Seen::Absent, |meta| Seen::stamp(&meta)) == *seen {
        true => Ok(()),
        false => Err("changed since it was shown; read it again".to_string()),
    }
}

/// 0600 until it has its final mode, so that a secret is never briefly readable; a new file gets what the umask leaves.
fn write_temporary(dir: &OwnedFd, name: &str, content: &[u8], old: Option<&Metadata>) -> io::Result<()> {
    let mode = if old.is_some() { 0o600 } else { 0o666 };
    let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let mut file = File::from(openat(dir, name, flags, Mode::from_raw_mode(mode))?);
    file.write_all(content)?;
    if let Some(old) = old {
        let mine = file.metadata()?;
        if (mine.uid(), mine.gid()) != (old.uid(), old.gid()) {
            // Matters for root in a container with a mounted workspace. Anybody else may not give files away: then the new
            // file is theirs, as with every editor that saves by rename.
            let _ = std::os::unix::fs::fchown(&file, Some(old.uid()), Some(old.gid()));
        }
        file.set_permissions(fs::Permissions::from_mode(old.mode() & 0o777))?;
    }
    file.sync_all()
}

fn subject(verb: &str, word: &str) -> String {
    format!("{verb} {word:?}")
}

fn error<T>(subject: &str, why: impl fmt::Display) -> Result<T, Trouble> {
    Err(Trouble::Error(format!("{subject}: {why}")))
}

/// ELOOP or ENOTDIR on a path that was resolved a moment ago means that somebody put a link there.
fn changed_or(errno: Errno, place: &Place) -> Trouble {
    let subject = &place.subject;
    match errno {
        Errno::LOOP | Errno::NOTDIR => {
            Trouble::Blocked(format!("{subject}: a part of this path became a link or a file while it was used"))
        }
        other => Trouble::Error(format!("{subject}: {}", in_words(other))),
    }
}

fn in_words(errno: Errno) -> String {
    match errno {
        Errno::NOENT => "not found".to_string(),
        other => io::Error::from(other).to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;

    fn workspace() -> (tempfile::TempDir, Workspace) {
        let dir = tempfile::tempdir().unwrap();
        fs::create_dir(dir.path().join("ws")).unwrap();
        let run = RunDir::create(&dir.path().join("state")).unwrap();
        let workspace = Workspace::open(&dir.path().join("ws"), run).unwrap();
        (dir, workspace)
    }

    fn write(workspace: &Workspace, path: &str, content: &str) -> Result<(), Trouble> {
        let place = workspace.resolve(path, "write")?;
        let seen = if place.exists() { Seen::of(&workspace.open_place(&place)?).unwrap() } else { Seen::Absent };
        workspace.replace(&place, content.as_bytes(), &seen)
    }

    fn mode(path: &Path) -> u32 {
        fs::metadata(path).unwrap().mode() & 0o777
    }

    #[test]
    fn a_replaced_file_keeps_its_mode_and_a_new_one_gets_the_usual() {
        let (_dir, workspace) = workspace();
        let script = workspace.root().join("x.sh");
        fs::write(&script, "old").unwrap();
        fs::set_permissions(&script, fs::Permissions::from_mode(0o751)).unwrap();
        write(&workspace, "x.sh", "new").unwrap();
        assert_eq!((mode(&script), fs::read_to_string(&script).unwrap().as_str()), (0o751, "new"));
        write(&workspace, "a/b/new", "x").unwrap();
        let usual = workspace.root().join("usual");
        fs::write(&usual, "").unwrap();
        assert_eq!(mode(&workspace.root().join("a/b/new")), mode(&usual));
    }

    #[test]
    fn a_file_that_changed_since_it_was_shown_is_left_alone() {
        let (_dir, workspace) = workspace();
        let path = workspace.root().join("f");
        fs::write(&path, "one").unwrap();
        let place = workspace.resolve("f", "edit").unwrap();
        let seen = Seen::of(&workspace.open_place(&place).unwrap()).unwrap();
        fs::write(&path, "other").unwrap();
        let trouble = workspace.replace(&place, b"new", &seen).unwrap_err();
        assert_eq!(trouble.to_string(), "Error: edit \"f\": changed since it was shown; read it again");
        assert!(workspace.replace(&place, b"new", &Seen::Absent).is_err());
        assert_eq!(fs::read_to_string(&path).unwrap(), "other");
        assert_eq!(fs::read_dir(workspace.root()).unwrap().count(), 1);
    }

    #[test]
    fn a_read_only_file_is_not_replaced() {
        let (_dir, workspace) = workspace();
        let path = workspace.root().join("f");
        fs::write(&path, "one").unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o444)).unwrap();
        assert!(write(&workspace, "f", "two").unwrap_err().to_string().contains("read-only"));
    }

    #[test]
    fn a_spill_file_of_this_run_can_be_read_and_nothing_else_there() {
        let (_dir, workspace) = workspace();
        let (mut file, path) = workspace.run().spill("bash").unwrap();
        file.write_all(b"long output").unwrap();
        let text = io::read_to_string(workspace.open_read(path.to_str().unwrap()).unwrap().0).unwrap();
        assert_eq!(text, "long output");
        let notes = workspace.run().path().join("notes");
        assert!(matches!(workspace.open_read(notes.to_str().unwrap()), Err(Trouble::Blocked(_))));
        let link = workspace.run().path().join("spill-link.txt");
        symlink("/etc/hostname", &link).unwrap();
        assert!(workspace.open_read(link.to_str().unwrap()).is_err());
    }

    #[test]
    fn messages_say_what_and_why_and_the_way_out() {
        let (_dir, workspace) = workspace();
        let text = |path: &str| workspace.open_read(path).map(|_| ()).unwrap_err().to_string();
        assert_eq!(text("nope"), "Error: read \"nope\": not found");
        assert_eq!(text("."), "Error: read \".\": is a directory; `ls` shows what is in it");
        assert!(text(".env").starts_with("Blocked: read \".env\": .env is protected; if it is really needed"));
        assert!(text("/tmp").starts_with("Blocked: read \"/tmp\": outside the workspace (/tmp)"));
        assert!(text("/etc/passwd").starts_with("Blocked: read \"/etc/passwd\": /etc is protected"));
    }

    #[test]
    fn a_note_is_written_before_each_temporary_file() {
        let (_dir, workspace) = workspace();
        write(&workspace, "f", "x").unwrap();
        let notes = fs::read(workspace.run().path().join("notes")).unwrap();
        assert!(String::from_utf8_lossy(&notes).starts_with(workspace.root().join(".mini-").to_str().unwrap()));
    }
}
