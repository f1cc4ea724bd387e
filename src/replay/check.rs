//! What must hold at the end of a run: files, log, exit code, standard output.
//!
//! One check says one thing, so that a report has one line for each. A path in a check stays
//! beneath the workspace.

use super::{Failure, shown};
use serde::Deserialize;
use std::fs;
use std::path::{Component, Path, PathBuf};

/// One assertion on the end of a run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Check {
    /// Its line in the script, from 1.
    pub line: usize,
    /// What the author calls it, or what it asserts in words.
    pub name: String,
    /// The assertion.
    pub assertion: Assertion,
}

/// What a [`Check`] can assert. All text is compared as bytes; paths are relative to the workspace.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Assertion {
    /// The file holds exactly this.
    FileEquals(PathBuf, String),
    /// The file holds this somewhere.
    FileContains(PathBuf, String),
    /// The file is there and holds this nowhere.
    FileLacks(PathBuf, String),
    /// The file has the same bytes as in the original.
    FileUnchanged(PathBuf),
    /// Something of this name is there, or nothing is.
    FileExists(PathBuf, bool),
    /// The session log holds this somewhere.
    LogContains(String),
    /// The session log holds this nowhere.
    LogLacks(String),
    /// The exit code.
    Exit(i32),
    /// Standard output holds this somewhere.
    StdoutContains(String),
    /// Standard output holds this nowhere.
    StdoutLacks(String),
}

/// What a run left behind beside its files.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Outcome {
    /// The exit code.
    pub exit: i32,
    /// The session log as text.
    pub log: String,
    /// Standard output as text.
    pub stdout: String,
}

impl Check {
    /// Compares the workspace after the run with the check. `original` is the workspace as it was
    /// before.
    pub fn run(&self, workspace: &Path, original: &Path, outcome: &Outcome) -> Result<(), Failure> {
        self.assertion.holds(workspace, original, outcome).map_err(|(expected, got)| Failure {
            exchange: None,
            line: self.line,
            name: self.name.clone(),
            what: self.assertion.what(),
            expected,
            got,
        })
    }
}

/// (expected, got), in words.
type Difference = (String, String);

impl Assertion {
    fn holds(&self, workspace: &Path, original: &Path, outcome: &Outcome) -> Result<(), Difference> {
        match self {
            Self::FileEquals(path, text) => same(&read(workspace, path)?, text.as_bytes()),
            Self::FileContains(path, text) => contains(&read(workspace, path)?, text),
            Self::FileLacks(path, text) => lacks(&read(workspace, path)?, text),
            Self::FileUnchanged(path) => same(&read(workspace, path)?, &read(original, path)?),
            Self::FileExists(path, wanted) => exists(&workspace.join(path), *wanted),
            Self::LogContains(text) => contains(outcome.log.as_bytes(), text),
            Self::LogLacks(text) => lacks(outcome.log.as_bytes(), text),
            Self::StdoutContains(text) => contains(outcome.stdout.as_bytes(), text),
            Self::StdoutLacks(text) => lacks(outcome.stdout.as_bytes(), text),
            Self::Exit(code) if *code == outcome.exit => Ok(()),
            Self::Exit(code) => Err((code.to_string(), outcome.exit.to_string())),
        }
    }

    /// What is looked at: the file to open, or the name of the output.
    fn what(&self) -> String {
        match self {
            Self::FileEquals(path, _) | Self::FileContains(path, _) | Self::FileLacks(path, _) => {
                format!("file {}", path.display())
            }
            Self::FileUnchanged(path) | Self::FileExists(path, _) => {
                format!("file {}", path.display())
            }
            Self::LogContains(_) | Self::LogLacks(_) => "log".to_string(),
            Self::Exit(_) => "exit code".to_string(),
            Self::StdoutContains(_) | Self::StdoutLacks(_) => "standard output".to_string(),
        }
    }

    /// The whole assertion in words, for a line without a name.
    fn words(&self) -> String {
        let what = self.what();
        match self {
            Self::FileEquals(_, text) => format!("{what} is {}", shown(text)),
            Self::FileContains(_, text) | Self::LogContains(text) | Self::StdoutContains(text) => {
                format!("{what} contains {}", shown(text))
            }
            Self::FileLacks(_, text) | Self::LogLacks(text) | Self::StdoutLacks(text) => {
                format!("{what} lacks {}", shown(text))
            }
            Self::FileUnchanged(_) => format!("{what} is unchanged"),
            Self::FileExists(_, true) => format!("{what} exists"),
            Self::FileExists(_, false) => format!("{what} does not exist"),
            Self::Exit(code) => format!("{what} is {code}"),
        }
    }
}

/// Reads a regular file: a run may leave a FIFO, on which a reader would wait for ever.
fn read(root: &Path, path: &Path) -> Result<Vec<u8>, Difference> {
    let failed = |why: String| ("a readable file".to_string(), why);
    let full = root.join(path);
    match fs::metadata(&full) {
        Ok(about) if about.is_file() => fs::read(&full).map_err(|error| failed(error.to_string())),
        Ok(_) => Err(failed("not a regular file".to_string())),
        Err(error) => Err(failed(error.to_string())),
    }
}

fn exists(path: &Path, wanted: bool) -> Result<(), Difference> {
    // Not Path::exists, which follows a dangling link and says that nothing is there.
    let there = path.symlink_metadata().is_ok();
    let say = |there: bool| if there { "exists" } else { "does not exist" }.to_string();
    if there == wanted { Ok(()) } else { Err((say(wanted), say(there))) }
}

fn same(got: &[u8], wanted: &[u8]) -> Result<(), Difference> {
    if got == wanted { Ok(()) } else { Err((text(wanted), text(got))) }
}

fn contains(got: &[u8], part: &str) -> Result<(), Difference> {
    if holds(got, part) { Ok(()) } else { Err((format!("something with {}", shown(part)), text(got))) }
}

fn lacks(got: &[u8], part: &str) -> Result<(), Difference> {
    if holds(got, part) { Err((format!("nothing with {}", shown(part)), text(got))) } else { Ok(()) }
}

fn holds(bytes: &[u8], part: &str) -> bool {
    part.is_empty() || bytes.windows(part.len()).any(|window| window == part.as_bytes())
}

fn text(bytes: &[u8]) -> String {
    shown(&String::from_utf8_lossy(bytes))
}

/// A `check` as it stands in the file.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct CheckLine {
    file: Option<PathBuf>,
    equals: Option<String>,
    contains: Option<String>,
    lacks: Option<String>,
    unchanged: Option<bool>,
    exists: Option<bool>,
    log_contains: Option<String>,
    log_lacks: Option<String>,
    stdout_contains: Option<String>,
    stdout_lacks: Option<String>,
    exit: Option<i32>,
}

impl CheckLine {
    /// The typed check; an error if it asserts nothing, or more than one thing.
    pub fn build(self, line: usize, name: Option<String>) -> Result<Check, String> {
        let file = self.file.clone().map(inside).transpose()?;
        let mut all = self.outcome_assertions();
        all.extend(self.file_assertions(file)?);
        match (all.pop(), all.is_empty()) {
            (Some(assertion), true) => Ok(Check { line, name: name.unwrap_or_else(|| assertion.words()), assertion }),
            (None, _) => Err("the check asserts nothing".to_string()),
            (Some(_), false) => Err("the check asserts more than one thing; give each its own line".to_string()),
        }
    }

    fn outcome_assertions(&self) -> Vec<Assertion> {
        let texts = [
            self.log_contains.clone().map(Assertion::LogContains),
            self.log_lacks.clone().map(Assertion::LogLacks),
            self.stdout_contains.clone().map(Assertion::StdoutContains),
            self.stdout_lacks.clone().map(Assertion::StdoutLacks),
            self.exit.map(Assertion::Exit),
        ];
        texts.into_iter().flatten().collect()
    }

    fn file_assertions(self, file: Option<PathBuf>) -> Result<Vec<Assertion>, String> {
        if self.unchanged == Some(false) {
            return Err("`unchanged` can only be true; a changed file has `equals` or `contains`".to_string());
        }
        let about = |path: PathBuf| {
            let all = [
                self.equals.clone().map(|text| Assertion::FileEquals(path.clone(), text)),
                self.contains.clone().map(|text| Assertion::FileContains(path.clone(), text)),
                self.lacks.clone().map(|text| Assertion::FileLacks(path.clone(), text)),
                self.unchanged.map(|_| Assertion::FileUnchanged(path.clone())),
                self.exists.map(|wanted| Assertion::FileExists(path.clone(), wanted)),
            ];
            all.into_iter().flatten().collect::<Vec<_>>()
        };
        // Without a file the same keys are counted against a nameless one, only to see that they
        // are there.
        let orphaned = file.is_none() && !about(PathBuf::new()).is_empty();
        match file.map(about) {
            Some(all) if all.is_empty() => {
                Err("`file` needs `equals`, `contains`, `lacks`, `unchanged` or `exists`".to_string())
            }
            Some(all) => Ok(all),
            None if orphaned => {
                Err("`equals`, `contains`, `lacks`, `unchanged` and `exists` need a `file`".to_string())
            }
            None => Ok(vec![]),
        }
    }
}

/// The path, if it can only lead beneath the workspace.
fn inside(path: PathBuf) -> Result<PathBuf, String> {
    let plain = path.components().all(|part| matches!(part, Component::Normal(_) | Component::CurDir));
    if plain { Ok(path) } else { Err(format!("the path {} leads out of the workspace", path.display())) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(check: &str) -> Check {
        serde_json::from_str::<CheckLine>(check).unwrap().build(7, None).unwrap()
    }

    #[test]
    fn each_check_holds_where_it_should_and_fails_where_it_should() {
        let [workspace, original] = [(); 2].map(|()| tempfile::tempdir().unwrap());
        fs::write(original.path().join("same.txt"), "one").unwrap();
        fs::write(workspace.path().join("same.txt"), "one").unwrap();
        fs::write(original.path().join("new.txt"), "hello").unwrap();
        fs::write(workspace.path().join("new.txt"), b"hi \xff").unwrap();
        fs::create_dir(workspace.path().join("dir")).unwrap();
        let outcome = Outcome { exit: 4, log: "{\"type\":\"end\"}".to_string(), stdout: "fine\n".to_string() };
        for (holds, fails) in [
            (r#"{"file":"same.txt","equals":"one"}"#, r#"{"file":"same.txt","equals":"on"}"#),
            (r#"{"file":"new.txt","contains":"hi"}"#, r#"{"file":"new.txt","contains":"hello"}"#),
            (r#"{"file":"new.txt","lacks":"hello"}"#, r#"{"file":"new.txt","lacks":"hi"}"#),
            (r#"{"file":"same.txt","unchanged":true}"#, r#"{"file":"new.txt","unchanged":true}"#),
            (r#"{"file":"dir","exists":true}"#, r#"{"file":"none","exists":true}"#),
            (r#"{"file":"none","exists":false}"#, r#"{"file":"dir","exists":false}"#),
            (r#"{"log_contains":"end"}"#, r#"{"log_contains":"start"}"#),
            (r#"{"log_lacks":"start"}"#, r#"{"log_lacks":"end"}"#),
            (r#"{"stdout_contains":"fine"}"#, r#"{"stdout_contains":"bad"}"#),
            (r#"{"stdout_lacks":"bad"}"#, r#"{"stdout_lacks":"fine"}"#),
            (r#"{"exit":4}"#, r#"{"exit":0}"#),
            // A file that is missing or no file at all never passes, whatever is asserted of its
            // text.
            (r#"{"exit":4}"#, r#"{"file":"none","lacks":"x"}"#),
            (r#"{"exit":4}"#, r#"{"file":"none","unchanged":true}"#),
            (r#"{"exit":4}"#, r#"{"file":"dir","lacks":"x"}"#),
        ] {
            let run = |line: &str| check(line).run(workspace.path(), original.path(), &outcome);
            assert_eq!(run(holds), Ok(()), "{holds}");
            assert!(run(fails).is_err(), "{fails}");
        }
    }

    #[test]
    fn a_failure_names_the_file_to_open_and_what_was_wanted() {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("greet.sh"), "echo hello\n").unwrap();
        let check = check(r#"{"file":"greet.sh","contains":"hi"}"#);
        let failure = check.run(folder.path(), folder.path(), &Outcome::default()).unwrap_err();
        assert_eq!((failure.line, failure.exchange, failure.what.as_str()), (7, None, "file greet.sh"));
        let words = r#"file greet.sh contains "hi": file greet.sh: expected something with "hi", got "echo hello\n""#;
        assert_eq!(failure.to_string(), words);
    }
}
