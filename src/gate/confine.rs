//! Path words of a listed command: each must lead to a place inside the workspace.
//!
//! Also the values of options that are paths, and those words of git that are paths for sure.

use std::path::{Path, PathBuf};

use super::arguments::Arguments;
use super::{Reason, Verdict, ask, screen};
use crate::workspace::{Fault, Kind, WAY_OUT, Workspace};

/// Confines every path. A refusal wins over a question. Returns the directories that are searched or compared.
pub fn all(arguments: &Arguments, base: &Path, workspace: &Workspace) -> Result<Vec<PathBuf>, Verdict> {
    let paths = arguments.paths.iter().map(|part| part.text.as_str());
    let git_words = arguments.git_words.iter().map(|part| part.text.as_str());
    let git_paths = git_words.filter(|word| !screen::is_exclude(word)).filter_map(|word| git_path(word, base));
    let mut question = None;
    let mut directories = vec![base.to_path_buf()];
    for word in paths.chain(git_paths) {
        match self::word(word, base, workspace) {
            Ok(Some((path, Kind::Directory))) => directories.push(path),
            Ok(_) => {}
            Err(Verdict::Refuse(why)) => return Err(Verdict::Refuse(why)),
            Err(verdict) => drop(question.get_or_insert(verdict)),
        }
    }
    question.map_or(Ok(directories), Err)
}

/// The path in a git word, if it is one for sure: it exists, is absolute, or climbs. `main..feature` and `HEAD^!` are none.
fn git_path<'a>(word: &'a str, base: &Path) -> Option<&'a str> {
    let path = word
        .strip_prefix(":/")
        .or(word.strip_prefix(":(").and_then(|rest| Some(rest.split_once(')')?.1)))
        .unwrap_or(word);
    let is_path =
        path.starts_with('/') || path.split('/').any(|part| part == "..") || base.join(path).symlink_metadata().is_ok();
    (is_path && !path.is_empty()).then_some(path)
}

/// Where a path word leads, if that is for this command to see. None for `/dev/null`.
fn word(word: &str, base: &Path, workspace: &Workspace) -> Result<Option<(PathBuf, Kind)>, Verdict> {
    match word {
        "" => return Err(ask("an empty word where a path is expected")),
        "/dev/null" => return Ok(None),
        _ => {}
    }
    match workspace.locate(base, word) {
        Ok(place) => match place.kind() {
            Kind::Special(what) => Err(ask(format!("{word} is a {what}"))),
            kind => Ok(Some((place.absolute().to_path_buf(), kind))),
        },
        Err(Fault::Protected(what)) => Err(Verdict::Refuse(format!("{word}: {what} is protected; {WAY_OUT}"))),
        Err(Fault::Outside(path)) => {
            let path = path.display().to_string();
            Err(Verdict::Ask(Reason { why: format!("leaves the workspace: {path}"), touches: vec![path] }))
        }
        Err(Fault::Broken(why)) => Err(ask(format!("{word}: {why}"))),
    }
}

/// A pattern may list a directory if its path stays inside. What it matches is judged name by name afterwards, so a protected
/// directory need not be told apart here.
pub fn enter(dir: &str, base: &Path, workspace: &Workspace) -> Result<(), String> {
    match workspace.locate(base, dir) {
        Err(Fault::Outside(path)) => Err(format!("leaves the workspace: {}", path.display())),
        _ => Ok(()),
    }
}

/// The directory that a leading `cd` moves to.
pub fn directory(dir: &str, workspace: &Workspace) -> Result<PathBuf, Verdict> {
    match word(dir, workspace.root(), workspace)? {
        Some((path, Kind::Directory)) => Ok(path),
        _ => Err(ask(format!("cd to {dir}, which is not a directory"))),
    }
}
