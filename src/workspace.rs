//! The only place where a path becomes a file.
//!
//! The model names a path; this module says which file below the workspace it is, or why it is none of the model's business.
//! Two steps, because what is on disk can change between them:
//!
//! 1. [`Workspace::resolve`] follows links and `..` the way the kernel does and compares the *result* with the root, by
//!    component. The result holds no link and no `..`.
//! 2. [`Workspace::open`] and [`Workspace::replace`] walk that result from the root's own directory handle, one component at a
//!    time, each with `O_NOFOLLOW`. A link swapped in after step 1 ends the walk with an error; it is never followed.
//!
//! Not `openat2(RESOLVE_BENEATH)`: it would save a few calls on Linux, and macOS would need this walk anyway, so there would be
//! two paths to trust instead of one. Not `cap-std`: it brings six crates, follows links inside (step 1 must do that itself to
//! name what is wrong) and does not write by rename.
//!
//! Left out: extended attributes and ACLs are lost when a file is replaced, and the directory is not synced after the rename: a
//! power cut may bring back the old file, never a torn one.

mod protected;

use std::collections::VecDeque;
use std::ffi::{OsStr, OsString};
use std::fmt;
use std::fs::{self, File, Metadata};
use std::io::{self, Write};
use std::os::fd::OwnedFd;
use std::os::unix::fs::{FileTypeExt, MetadataExt, PermissionsExt};
use std::path::{Component, Path, PathBuf};

use rustix::fs::{AtFlags, Mode, OFlags, mkdirat, openat, renameat, unlinkat};
use rustix::io::Errno;

use crate::rundir::{RunDir, temporary_name};

pub use protected::{
    PLACES as PROTECTED_PLACES, component as protected_component, directory_patterns, file_patterns, fold,
    is_invisible, place as protected_place, samples as protected_samples,
};

/// As many links as Linux follows before it answers ELOOP.
const MAX_LINKS: usize = 40;
/// PATH_MAX and NAME_MAX, in bytes.
const MAX_PATH: usize = 4095;
const MAX_NAME: usize = 255;

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
    word: String,
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
        let meta = file.metadata()?;
        let nanos = |seconds: i64, nanos: i64| i128::from(seconds) * 1_000_000_000 + i128::from(nanos);
        Ok(Seen::File(Stamp([
            i128::from(meta.dev()),
            i128::from(meta.ino()),
            i128::from(meta.size()),
            nanos(meta.mtime(), meta.mtime_nsec()),
            nanos(meta.ctime(), meta.ctime_nsec()),
        ])))
    }
}

/// Why a path does not lead to a place in the workspace. The tools turn it into [`Trouble`], the gate into a verdict.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Fault {
    /// A protected name or place, in the word itself or in what it leads to.
    Protected(String),
    /// It leads out of the workspace, to this path.
    Outside(PathBuf),
    /// It cannot be followed; the text says why ("a link to nothing").
    Broken(String),
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
    /// message. A missing file is a place too: its [`Kind`] says so.
    pub fn resolve(&self, word: &str, verb: &str) -> Result<Place, Trouble> {
        unusable(word).map_or(Ok(()), |why| error(verb, word, why))?;
        let place = self.locate(&self.root, word).map_err(|fault| fault.trouble(verb, word))?;
        match place.kind {
            Kind::Directory => error(verb, word, "is a directory; `ls` shows what is in it"),
            Kind::Special(what) => error(verb, word, &format!("is a {what}, not a regular file")),
            Kind::Missing | Kind::File => Ok(place),
        }
    }

    /// Resolves and opens a regular file for reading; also a spill file of this run, by its absolute path.
    pub fn open_read(&self, word: &str) -> Result<(File, Place), Trouble> {
        if let Some(name) = self.run.spill_name(Path::new(word)) {
            return self.open_spill(name, word);
        }
        let place = self.resolve(word, "read")?;
        Ok((self.open_place(&place, "read")?, place))
    }

    /// Opens a resolved place for reading. Only a regular file: a FIFO or a link swapped in since is an error, and never blocks.
    pub fn open_place(&self, place: &Place, verb: &str) -> Result<File, Trouble> {
        let file = self.parent(place, Parents::MustExist).and_then(|(dir, name)| open_file(&dir, &name));
        only_regular(file.map_err(|e| changed_or(e, verb, place))?, verb, &place.word)
    }

    fn open_spill(&self, name: &OsStr, word: &str) -> Result<(File, Place), Trouble> {
        let dir = rustix::fs::open(self.run.path(), DIRECTORY, Mode::empty());
        let file = dir.and_then(|dir| open_file(&dir, name)).or_else(|e| error("read", word, &in_words(e)))?;
        let absolute = self.run.path().join(name);
        let place = Place { word: word.to_string(), relative: PathBuf::new(), absolute, kind: Kind::File };
        Ok((only_regular(file, "read", word)?, place))
    }

    /// Puts `new` in place of what `seen` describes, all or nothing: a temporary file beside the target, synced, renamed over
    /// it. Makes missing parents. Keeps the mode (and the owner, where the kernel lets us); a hard link is split, so that the
    /// file's other names keep the old content. On an error the temporary file is gone and the target untouched.
    pub fn replace(&self, place: &Place, new: &[u8], seen: &Seen, verb: &str) -> Result<(), Trouble> {
        let (dir, name) = self.parent(place, Parents::Make).map_err(|e| changed_or(e, verb, place))?;
        let old = look(&dir, &name).or_else(|e| error(verb, &place.word, &format!("cannot be looked at: {e}")))?;
        if old.as_ref().is_some_and(|meta| meta.mode() & 0o222 == 0) {
            return error(verb, &place.word, "is read-only (no write permission for anybody); change its mode first");
        }
        let temporary = temporary_name();
        let beside = place.absolute.with_file_name(&temporary);
        self.run.note(&beside).or_else(|why| error(verb, &place.word, &why))?;
        let swapped = write_temporary(&dir, &temporary, new, old.as_ref())
            .and_then(|()| if now(&dir, &name)? == *seen { Ok(true) } else { Ok(false) })
            .and_then(|same| {
                if same {
                    renameat(&dir, &*temporary, &dir, &*name).map(|()| true).map_err(Into::into)
                } else {
                    Ok(false)
                }
            });
        if !matches!(swapped, Ok(true)) {
            // Already an error; that the temporary file may also be gone adds nothing. A dead run's note covers the rest.
            let _ = unlinkat(&dir, &*temporary, AtFlags::empty());
        }
        match swapped {
            Ok(true) => Ok(()),
            Ok(false) => error(verb, &place.word, "changed since it was shown; read it again"),
            Err(e) => error(verb, &place.word, &format!("cannot be written: {e}")),
        }
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

    /// Where `word`, seen from the directory `base`, leads. `base` must be canonical and inside. Does not care what is there.
    pub fn locate(&self, base: &Path, word: &str) -> Result<Place, Fault> {
        self.screen(base, word)?;
        let (absolute, kind) = self.follow(base, Path::new(word))?;
        let Ok(relative) = absolute.strip_prefix(&self.root) else {
            return Err(Fault::Outside(absolute));
        };
        if let Some(name) = protected_component(&relative.to_string_lossy()) {
            return Err(Fault::Protected(name));
        }
        Ok(Place { word: word.to_string(), relative: relative.to_path_buf(), absolute, kind })
    }

    /// Judges the text of a path alone: protected names, and protected places after folding. Never looks at the disk.
    pub fn screen(&self, base: &Path, word: &str) -> Result<(), Fault> {
        let folded = fold(&base.join(word));
        let inside = folded.strip_prefix(&self.root).ok();
        // The root's own path is the person's choice: a workspace in /dev/shm or below a directory `x.env` works.
        let absolute_inside = Path::new(word).is_absolute().then_some(inside).flatten();
        let named = absolute_inside.map_or_else(|| word.into(), Path::to_string_lossy);
        let place = if inside.is_none() { protected_place(&folded) } else { None };
        protected_component(&named).or(place).map_or(Ok(()), |what| Err(Fault::Protected(what)))
    }

    /// Follows `word` physically, as the kernel would: links first, then `..` from where they lead.
    fn follow(&self, base: &Path, word: &Path) -> Result<(PathBuf, Kind), Fault> {
        let (mut here, rest) = match word.strip_prefix(&self.root) {
            Ok(rest) => (self.root.clone(), rest),
            Err(_) if word.is_absolute() => (PathBuf::from("/"), word),
            Err(_) => (base.to_path_buf(), word),
        };
        let mut todo: VecDeque<(OsString, Origin)> = names(rest, Origin::Word);
        let mut kind = Kind::Directory;
        let mut links = 0;
        while let Some((name, origin)) = todo.pop_front() {
            if kind == Kind::File || matches!(kind, Kind::Special(_)) {
                return Err(Fault::Broken(format!("{} is not a directory", here.display())));
            }
            if name == ".." {
                if kind == Kind::Missing {
                    return Err(Fault::Broken(format!("{} does not exist", here.display())));
                }
                here.pop();
                continue;
            }
            here.push(name);
            if kind == Kind::Missing {
                continue;
            }
            if let Some(place) = protected_place(&here).filter(|_| !here.starts_with(&self.root)) {
                return Err(Fault::Protected(place));
            }
            kind = match fs::symlink_metadata(&here) {
                Err(e) if e.kind() == io::ErrorKind::NotFound => match origin {
                    Origin::Link => {
                        return Err(Fault::Broken("a link to something that does not exist".to_string()));
                    }
                    Origin::Word => Kind::Missing,
                },
                Err(e) => return Err(Fault::Broken(e.to_string())),
                Ok(meta) if meta.is_symlink() => {
                    links += 1;
                    let target = fs::read_link(&here).map_err(|e| Fault::Broken(e.to_string()))?;
                    if links > MAX_LINKS {
                        return Err(Fault::Broken("links that lead round in a circle".to_string()));
                    }
                    here.pop();
                    if target.is_absolute() {
                        here = PathBuf::from("/");
                    }
                    let mut first = names(&target, Origin::Link);
                    first.append(&mut todo);
                    todo = first;
                    Kind::Directory
                }
                Ok(meta) => kind_of(&meta),
            };
        }
        Ok((here, kind))
    }
}

const DIRECTORY: OFlags = OFlags::RDONLY.union(OFlags::DIRECTORY).union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC);

#[derive(Clone, Copy)]
enum Parents {
    MustExist,
    Make,
}

/// Whether a component was named by the caller or came out of a link.
#[derive(Clone, Copy)]
enum Origin {
    Word,
    Link,
}

fn names(path: &Path, origin: Origin) -> VecDeque<(OsString, Origin)> {
    let kept = path.components().filter(|part| matches!(part, Component::Normal(_) | Component::ParentDir));
    kept.map(|part| (part.as_os_str().to_os_string(), origin)).collect()
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

/// What is wrong with the text of a tool's path, before anything is looked up.
fn unusable(word: &str) -> Option<&'static str> {
    let components = || word.split(['/', '\\']);
    match word {
        "" => Some("is an empty path"),
        _ if word.chars().any(char::is_control) => Some("has a control character in it"),
        _ if word.len() > MAX_PATH => Some("is too long for a path"),
        _ if components().any(|name| name.len() > MAX_NAME) => Some("has a name that is too long"),
        _ if protected_component(word).is_some() => None, // said better by `screen`
        _ if word.starts_with('~') => {
            Some("begins with `~`, which only a shell expands; give a path below the workspace")
        }
        _ if word.contains('\\') && components().any(|name| name == "..") => Some("mixes `\\` and `..`; use `/`"),
        _ if word.ends_with('/') || word.ends_with("/.") || word.ends_with("/..") => {
            Some("names a directory, not a file")
        }
        _ => None,
    }
}

fn open_file(dir: &OwnedFd, name: &OsStr) -> Result<File, Errno> {
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
    openat(dir, name, flags, Mode::empty()).map(File::from)
}

fn only_regular(file: File, verb: &str, word: &str) -> Result<File, Trouble> {
    let meta = file.metadata().or_else(|e| error(verb, word, &format!("cannot be looked at: {e}")))?;
    match kind_of(&meta) {
        Kind::File => Ok(file),
        Kind::Special(what) => error(verb, word, &format!("is a {what}, not a regular file")),
        Kind::Directory | Kind::Missing => error(verb, word, "is a directory; `ls` shows what is in it"),
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

fn now(dir: &OwnedFd, name: &OsStr) -> io::Result<Seen> {
    match open_file(dir, name) {
        Ok(file) => Seen::of(&file),
        Err(Errno::NOENT) => Ok(Seen::Absent),
        Err(e) => Err(e.into()),
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

fn error<T>(verb: &str, word: &str, why: &str) -> Result<T, Trouble> {
    Err(Trouble::Error(format!("{verb} {word:?}: {why}")))
}

/// ELOOP or ENOTDIR on a path that was resolved a moment ago means that somebody put a link there.
fn changed_or(errno: Errno, verb: &str, place: &Place) -> Trouble {
    let word = &place.word;
    match errno {
        Errno::LOOP | Errno::NOTDIR if place.kind != Kind::Missing || errno == Errno::LOOP => {
            Trouble::Blocked(format!("{verb} {word:?}: a part of this path became a link while it was used"))
        }
        other => Trouble::Error(format!("{verb} {word:?}: {}", in_words(other))),
    }
}

fn in_words(errno: Errno) -> String {
    match errno {
        Errno::NOENT => "not found".to_string(),
        other => io::Error::from(other).to_string(),
    }
}

impl Fault {
    fn trouble(self, verb: &str, word: &str) -> Trouble {
        match self {
            Fault::Protected(what) => Trouble::Blocked(format!("{verb} {word:?}: {what} is protected; {WAY_OUT}")),
            Fault::Outside(path) => Trouble::Blocked(format!(
                "{verb} {word:?}: outside the workspace ({}); the person can copy it in, or do it in another terminal",
                path.display()
            )),
            Fault::Broken(why) => Trouble::Error(format!("{verb} {word:?}: {why}")),
        }
    }
}
