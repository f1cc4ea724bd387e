//! Which place a path leads to: by its text, then by what is on the disk.
//!
//! Follows links and `..` as the kernel does, so `link/../x` is judged by where the link leads. Not `canonicalize`: it knows only
//! paths that exist, cannot tell a link to nothing from a new file, and does not say what was in the way.

use std::collections::VecDeque;
use std::ffi::OsString;
use std::fs;
use std::io;
use std::path::{Component, Path, PathBuf};

use super::protected::{component, fold, place};
use super::{Kind, Place, Trouble, WAY_OUT, Workspace, kind_of};

/// As many links as Linux follows before it answers ELOOP.
const MAX_LINKS: usize = 40;
/// PATH_MAX and NAME_MAX, in bytes.
const MAX_PATH: usize = 4095;
const MAX_NAME: usize = 255;

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
    /// Where `word`, seen from the directory `base`, leads. `base` must be canonical and inside. Does not care what is there.
    pub fn locate(&self, base: &Path, word: &str) -> Result<Place, Fault> {
        self.screen(base, word)?;
        let (absolute, kind) = self.follow(base, Path::new(word))?;
        let Ok(relative) = absolute.strip_prefix(&self.root) else {
            return Err(Fault::Outside(absolute));
        };
        if let Some(name) = component(&relative.to_string_lossy()) {
            return Err(Fault::Protected(name));
        }
        Ok(Place { word: word.to_string(), relative: relative.to_path_buf(), absolute, kind })
    }

    /// Judges the text of a path alone: protected names, and protected places after folding. Never looks at the disk.
    pub fn screen(&self, base: &Path, word: &str) -> Result<(), Fault> {
        let folded = fold(&base.join(word));
        // Of an absolute path below the root only the rest is the caller's: the root may lie below a directory `x.env`.
        let below = folded.strip_prefix(&self.root).ok().filter(|_| Path::new(word).is_absolute());
        let named = below.map_or_else(|| word.into(), Path::to_string_lossy);
        component(&named).or_else(|| self.place(&folded)).map_or(Ok(()), |what| Err(Fault::Protected(what)))
    }

    /// The protected place that a path lies in. A workspace in such a place (`/dev/shm`) is the person's choice.
    fn place(&self, path: &Path) -> Option<String> {
        place(path).filter(|_| !(path.starts_with(&self.root) && place(&self.root).is_some()))
    }

    /// Follows `word` physically, as the kernel would: links first, then `..` from where they lead.
    fn follow(&self, base: &Path, word: &Path) -> Result<(PathBuf, Kind), Fault> {
        let (here, rest) = match word.strip_prefix(&self.root) {
            Ok(rest) => (self.root.as_path(), rest),
            Err(_) if word.is_absolute() => (Path::new("/"), word),
            Err(_) => (base, word),
        };
        let todo = names(rest, Origin::Word);
        let mut walk = Walk { here: here.to_path_buf(), kind: Kind::Directory, todo, links: 0 };
        while let Some((name, origin)) = walk.todo.pop_front() {
            walk.step(name, origin)?;
            if let Some(place) = self.place(&walk.here) {
                return Err(Fault::Protected(place));
            }
        }
        Ok((walk.here, walk.kind))
    }
}

/// A path on its way: what is behind is physical, what is ahead are names.
struct Walk {
    here: PathBuf,
    kind: Kind,
    todo: VecDeque<(OsString, Origin)>,
    links: usize,
}

impl Walk {
    fn step(&mut self, name: OsString, origin: Origin) -> Result<(), Fault> {
        match (self.kind, name == "..") {
            (Kind::File | Kind::Special(_), _) => Err(broken(format!("{} is not a directory", self.here.display()))),
            (Kind::Missing, true) => Err(broken(format!("{} does not exist", self.here.display()))),
            (Kind::Directory, true) => {
                self.here.pop();
                Ok(())
            }
            (Kind::Missing, false) => {
                self.here.push(name);
                Ok(())
            }
            (Kind::Directory, false) => {
                self.here.push(name);
                self.look(origin)
            }
        }
    }

    fn look(&mut self, origin: Origin) -> Result<(), Fault> {
        self.kind = match (fs::symlink_metadata(&self.here), origin) {
            (Ok(meta), _) if meta.is_symlink() => return self.take_link(),
            (Ok(meta), _) => kind_of(&meta),
            (Err(e), Origin::Word) if e.kind() == io::ErrorKind::NotFound => Kind::Missing,
            (Err(e), Origin::Link) if e.kind() == io::ErrorKind::NotFound => {
                return Err(broken("a link to something that does not exist"));
            }
            (Err(e), _) => return Err(broken(e)),
        };
        Ok(())
    }

    /// Puts the link's target before what is still to come.
    fn take_link(&mut self) -> Result<(), Fault> {
        self.links += 1;
        if self.links > MAX_LINKS {
            return Err(broken("links that lead round in a circle"));
        }
        let target = fs::read_link(&self.here).map_err(broken)?;
        if target.is_absolute() {
            self.here = PathBuf::from("/");
        } else {
            self.here.pop();
        }
        let mut todo = names(&target, Origin::Link);
        todo.append(&mut self.todo);
        self.todo = todo;
        Ok(())
    }
}

fn broken(why: impl ToString) -> Fault {
    Fault::Broken(why.to_string())
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

/// What is wrong with the text of a tool's path, before anything is looked up.
pub fn unusable(word: &str) -> Option<&'static str> {
    let components = || word.split(['/', '\\']);
    match word {
        "" => Some("is an empty path"),
        _ if word.chars().any(char::is_control) => Some("has a control character in it"),
        _ if word.len() > MAX_PATH => Some("is too long for a path"),
        _ if components().any(|name| name.len() > MAX_NAME) => Some("has a name that is too long"),
        _ if component(word).is_some() => None, // said better by `screen`
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

impl Fault {
    /// The message of a tool.
    pub fn trouble(self, verb: &str, word: &str) -> Trouble {
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
