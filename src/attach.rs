//! What a word after `--ext` means: the name of a known extension, or the path of an executable.
//!
//! A known name wins over a file of the same name, so that a stranger's repository cannot put a file of its own in
//! the place of ours. With `./` before it, the file is meant.

use crate::extension::{Executable, Limits};
use crate::setup::{Attach, Setup};
use std::path::Path;

/// A known extension: its name, how it attaches itself, and one line of help.
pub type Known = (&'static str, Attach, &'static str);

/// Attaches what `word` names: `NAME`, `NAME=ARG`, or the path of an executable. The error is a sentence for the
/// person; it means exit code 2.
pub fn attach(setup: &mut Setup, word: &str, known: &[Known]) -> Result<(), String> {
    let (name, arg) = match word.split_once('=') {
        Some((name, arg)) => (name, Some(arg)),
        None => (word, None),
    };
    if let Some((_, attach, _)) = known.iter().find(|(known, ..)| *known == name) {
        return attach(setup, arg).map_err(|why| format!("extension {name}: {why}"));
    }
    if !word.contains('/') && !Path::new(word).exists() {
        return Err(unknown(name, known));
    }
    let Setup { workspace, processes, cancel, .. } = setup;
    let executable = Executable::start(Path::new(word), Limits::default(), workspace.root(), processes, cancel)?;
    setup.extensions.push(Box::new(executable));
    Ok(())
}

fn unknown(name: &str, known: &[Known]) -> String {
    let nearest = known.iter().map(|(known, ..)| *known).min_by_key(|known| distance(name, known));
    let hint = match nearest.filter(|nearest| distance(name, nearest) <= 2) {
        Some(nearest) => format!("did you mean `{nearest}`?"),
        None => format!("known are: {}.", known.iter().map(|(known, ..)| *known).collect::<Vec<_>>().join(", ")),
    };
    format!("there is no extension `{name}`; {hint} An executable is given by its path, with a slash: ./{name}")
}

/// How many letters have to be put in, taken out or changed (Levenshtein), in one row of memory.
fn distance(from: &str, to: &str) -> usize {
    let to: Vec<char> = to.chars().collect();
    let mut row: Vec<usize> = (0..=to.len()).collect();
    for (i, letter) in from.chars().enumerate() {
        let mut diagonal = std::mem::replace(&mut row[0], i + 1);
        for (j, other) in to.iter().enumerate() {
            let changed = diagonal + usize::from(letter != *other);
            diagonal = row[j + 1];
            row[j + 1] = changed.min(row[j] + 1).min(diagonal + 1);
        }
    }
    row[to.len()]
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
            "there is no extension `wether`; did you mean `weather`? An executable is given by its path, with a slash: ./wether"
        );
    }

    #[test]
    fn a_name_far_from_all_lists_them() {
        assert!(unknown("lint.sh", &known()).contains("known are: weather, sums."));
    }

    #[test]
    fn distance_counts_letters() {
        for (from, to, want) in
            [("", "abc", 3), ("weather", "weather", 0), ("waether", "weather", 2), ("sums", "sms", 1)]
        {
            assert_eq!(distance(from, to), want, "{from} {to}");
        }
    }
}
