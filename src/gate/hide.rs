//! What the gate adds to a listed command so that it does not print protected files nobody named: `grep -r KEY .` and
//! `git log -p` show `.env` otherwise.
//!
//! The additions stand behind the command's own options, where the last one wins, so `--include=.env` cannot undo them.

use std::fs;
use std::path::Path;

use super::arguments::Arguments;
use super::options::Rules;
use crate::workspace::{directory_patterns, file_patterns, protected_component};

/// Options of `git log` that print content, or might, or search it (which commits `-G '^KEY=a'` finds tells a key letter by
/// letter); with them its paths are limited. (Limiting them always would also drop
/// the commits that only touch protected files from a plain `git log`.)
const PATCH: &str = "S G p u U c W m R a patch patch-with-stat patch-with-raw cc combined-all-paths binary check full-index text \
    unified word-diff word-diff-regex color-words color-moved function-context inter-hunk-context diff-merges diff-algorithm \
    minimal patience histogram anchored ws-error-highlight line-prefix pickaxe-all break-rewrites";

/// What is added to one command.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Additions {
    /// Options, to go behind the command's own.
    pub options: Vec<String>,
    /// Pathspecs, to go to the very end.
    pub pathspecs: Vec<String>,
    /// Protected files are left out of what it prints.
    pub excludes: bool,
}

/// The additions for a command.
pub fn additions(rules: &Rules, arguments: &Arguments) -> Additions {
    let options = |list: &[&str]| list.iter().map(ToString::to_string).collect();
    match rules.name {
        "grep" if arguments.has("r recursive d directories") => {
            Additions { options: grep_excludes(), excludes: true, ..Additions::default() }
        }
        "rg" => Additions { options: rg_excludes(), excludes: true, ..Additions::default() },
        "git status" => Additions { options: options(&["--ignore-submodules=dirty"]), ..Additions::default() },
        "git diff" | "git log" => {
            // git takes no excludes together with -L or --follow; the one path these need is judged by its name.
            let all = rules.name == "git diff" || (arguments.has(PATCH) && !arguments.has("L follow"));
            Additions {
                options: options(&["--no-ext-diff", "--no-textconv", "--ignore-submodules=dirty"]),
                pathspecs: if all { git_excludes() } else { Vec::new() },
                excludes: all,
            }
        }
        _ => Additions::default(),
    }
}

/// Whether there is something to hide at the top of a directory. Only a hint for the model, so one listing must do; `.git` does
/// not count, nobody misses it.
pub fn has_protected(dir: &Path) -> bool {
    let names = fs::read_dir(dir).into_iter().flatten().filter_map(Result::ok);
    names
        .into_iter()
        .any(|entry| protected_component(&entry.file_name().to_string_lossy()).is_some_and(|name| name != ".git"))
}

fn grep_excludes() -> Vec<String> {
    let files = file_patterns().into_iter().map(|pattern| format!("--exclude={}", either_case(&pattern)));
    let directories =
        directory_patterns().into_iter().map(|pattern| format!("--exclude-dir={}", either_case(&pattern)));
    files.chain(directories).collect()
}

fn rg_excludes() -> Vec<String> {
    let fixed = ["--no-config", "--color=never"].map(str::to_string);
    fixed.into_iter().chain(file_patterns().into_iter().map(|pattern| format!("--iglob=!{pattern}"))).collect()
}

fn git_excludes() -> Vec<String> {
    let magic = ":(top,exclude,icase,glob)**/";
    let files = file_patterns().into_iter().map(|pattern| format!("{magic}{pattern}"));
    files.chain(directory_patterns().into_iter().map(|pattern| format!("{magic}{pattern}/**"))).collect()
}

/// grep has no option for "either case", so each letter becomes a pair: `.env` → `.[eE][nN][vV]`.
fn either_case(pattern: &str) -> String {
    let mut inside = false;
    let mut result = String::new();
    for c in pattern.chars() {
        inside = c == '[' || (inside && c != ']');
        match c {
            letter if letter.is_ascii_alphabetic() && inside => result.extend([letter, letter.to_ascii_uppercase()]),
            letter if letter.is_ascii_alphabetic() => {
                result.push_str(&format!("[{letter}{}]", letter.to_ascii_uppercase()))
            }
            other => result.push(other),
        }
    }
    result
}

#[cfg(test)]
mod tests {
    use super::super::expand::fits;
    use super::super::words::parse;
    use super::*;

    #[test]
    fn patterns_hide_exactly_the_protected_names() {
        let fits_one = |name: &str| {
            file_patterns().iter().any(|pattern| {
                let pattern = either_case(pattern);
                fits(&parse(&pattern).commands[0].words[0].chars, name)
            })
        };
        for name in [
            ".env",
            ".ENV",
            ".env.local",
            ".env.e",
            ".env.exam",
            ".env.examples",
            ".env.extra",
            ".Env.Production",
            "prod.env",
            ".envrc",
            ".netrc",
            "id_rsa",
            ".env.example.local",
        ] {
            assert!(fits_one(name) && protected_component(name).is_some(), "{name}");
        }
        for name in [".env.example", "environment.md", ".environment", "env", "id_rsa.pub", ".gitignore"] {
            assert!(!fits_one(name) && protected_component(name).is_none(), "{name}");
        }
    }
}
