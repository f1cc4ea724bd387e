//! What a word after `--ext` means: the name of a known extension, or the path of an executable.
//!
//! A known name wins over a file of the same name, so that a stranger's repository cannot put a file of its own in
//! the place of ours. With `./` before it, the file is meant.

use crate::extension::{Executable, Limits};
use crate::nearest::nearest;
use crate::setup::{Attach, Setup};
use std::path::Path;

/// A known extension: its name, how it attaches itself, and one line of help.
pub type Known = (&'static str, Attach, &'static str);

/// What a word means.
enum Meant<'a> {
    Known(&'a str, Attach, Option<&'a str>),
    Executable(&'a Path),
}

/// Whether a word names anything: a slip should be told before anything is started. The error is a sentence.
pub fn check(word: &str, known: &[Known]) -> Result<(), String> {
    meant(word, known).map(|_| ())
}

/// Attaches what `word` names: `NAME`, `NAME=ARG`, or the path of an executable. The error is a sentence for the
/// person; it means exit code 2.
pub fn attach(setup: &mut Setup, word: &str, known: &[Known]) -> Result<(), String> {
    match meant(word, known)? {
        Meant::Known(name, attach, arg) => attach(setup, arg).map_err(|why| format!("extension {name}: {why}")),
        Meant::Executable(path) => {
            let Setup { workspace, processes, cancel, .. } = setup;
            let executable = Executable::start(path, Limits::default(), workspace.root(), processes, cancel)?;
            setup.extensions.push(Box::new(executable));
            Ok(())
        }
    }
}

fn meant<'a>(word: &'a str, known: &[Known]) -> Result<Meant<'a>, String> {
    let (name, arg) = match word.split_once('=') {
        Some((name, arg)) => (name, Some(arg)),
        None => (word, None),
    };
    if let Some((_, attach, _)) = known.iter().find(|(known, ..)| *known == name) {
        return Ok(Meant::Known(name, *attach, arg));
    }
    match (Path::new(word).exists(), arg.is_some() && Path::new(name).exists()) {
        (true, _) => Ok(Meant::Executable(Path::new(word))),
        (false, true) => Err(format!("{name} is an executable, and those take no =ARG: --ext {name}")),
        (false, false) if name.contains('/') => Err(format!("extension {word}: there is no such file")),
        (false, false) => Err(unknown(name, known)),
    }
}

fn unknown(name: &str, known: &[Known]) -> String {
    let names = || known.iter().map(|(known, ..)| *known);
    let hint = match nearest(name, names()) {
        Some(near) => format!("did you mean `{near}`?"),
        None => format!("known are: {}.", names().collect::<Vec<_>>().join(", ")),
    };
    format!("there is no extension `{name}`; {hint} An executable is given by its path: ./{name}")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn known() -> [Known; 2] {
        [("weather", |_, _| Ok(()), ""), ("sums", |_, _| Ok(()), "")]
    }

    #[test]
    fn a_name_that_is_nearly_right_is_named() {
        assert_eq!(
            unknown("wether", &known()),
            "there is no extension `wether`; did you mean `weather`? An executable is given by its path: ./wether"
        );
    }

    #[test]
    fn a_name_far_from_all_lists_them() {
        assert!(unknown("lint.sh", &known()).contains("known are: weather, sums."));
    }
}
