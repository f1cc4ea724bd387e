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

/// What a [`Check`] can assert.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Assertion {
    /// About a file; the path is relative to the workspace and stays beneath it.
    File(PathBuf, FileState),
    /// About the session log.
    Log(Text),
    /// About standard output.
    Stdout(Text),
    /// The exit code.
    Exit(i32),
}

/// What a file can be asserted to be.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FileState {
    /// It holds exactly this.
    Equals(String),
    /// It holds this somewhere, or it is there and holds it nowhere.
    Text(Text),
    /// It has the same bytes as in the original.
    Unchanged,
    /// Something of this name is there, or nothing is.
    Exists(bool),
    /// Exactly one line `WORD | ABOUT` is about this, and its word is this one. A miss does not tell the word: it is what
    /// the participant shall find out.
    Row {
        /// What stands behind the bar.
        about: String,
        /// What stands before it.
        word: String,
    },
}

/// What a text can be asserted to hold.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Text {
    /// This, somewhere.
    Contains(String),
    /// This nowhere.
    Lacks(String),
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
    /// A check of a file out of JSON: `{"file":"a.txt","contains":"b"}`.
    pub fn of_file(line: usize, json: serde_json::Value) -> Result<Check, String> {
        let check: CheckLine = serde_json::from_value(json).map_err(|e| format!("checks: {e}"))?;
        match check.build(line, None)? {
            check @ Check { assertion: Assertion::File(..), .. } => Ok(check),
            _ => Err("checks: only files can be looked at here".to_string()),
        }
    }

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
            Self::File(path, state) => state.holds(workspace, original, path),
            Self::Log(wanted) => wanted.holds(outcome.log.as_bytes()),
            Self::Stdout(wanted) => wanted.holds(outcome.stdout.as_bytes()),
            Self::Exit(code) if *code == outcome.exit => Ok(()),
            Self::Exit(code) => Err((code.to_string(), outcome.exit.to_string())),
        }
    }

    /// What is looked at: the file to open, or the name of the output.
    fn what(&self) -> String {
        match self {
            Self::File(path, _) => format!("file {}", path.display()),
            Self::Log(_) => "log".to_string(),
            Self::Stdout(_) => "standard output".to_string(),
            Self::Exit(_) => "exit code".to_string(),
        }
    }

    /// The whole assertion in words, for a line without a name.
    fn words(&self) -> String {
        let wanted = match self {
            Self::File(_, FileState::Equals(text)) => format!("is {}", shown(text)),
            Self::File(_, FileState::Unchanged) => "is unchanged".to_string(),
            Self::File(_, FileState::Exists(there)) => presence(*there).to_string(),
            Self::File(_, FileState::Row { about, .. }) => format!("is right about {about}"),
            Self::File(_, FileState::Text(text)) | Self::Log(text) | Self::Stdout(text) => text.words(),
            Self::Exit(code) => format!("is {code}"),
        };
        format!("{} {wanted}", self.what())
    }
}

impl FileState {
    fn holds(&self, workspace: &Path, original: &Path, path: &Path) -> Result<(), Difference> {
        match self {
            Self::Equals(text) => same(&read(workspace, path)?, text.as_bytes()),
            Self::Text(text) => text.holds(&read(workspace, path)?),
            Self::Unchanged => same(&read(workspace, path)?, &read(original, path)?),
            Self::Exists(wanted) => exists(&workspace.join(path), *wanted),
            Self::Row { about, word } => row(&String::from_utf8_lossy(&read(workspace, path)?), about, word),
        }
    }
}

fn row(text: &str, about: &str, word: &str) -> Result<(), Difference> {
    let rows = text.lines().filter_map(|line| line.split_once('|')).filter(|(_, end)| end.trim() == about);
    let words: Vec<&str> = rows.map(|(start, _)| start.trim()).collect();
    let got = match words[..] {
        [only] if only == word => return Ok(()),
        [only] => format!("{only} | {about}"),
        [] => "no such line".into(),
        _ => format!("{} lines", words.len()),
    };
    Err((format!("one line `… | {about}` that says what happens in this run"), got))
}

impl Text {
    fn holds(&self, got: &[u8]) -> Result<(), Difference> {
        match self {
            Self::Contains(part) if holds(got, part) => Ok(()),
            Self::Lacks(part) if !holds(got, part) => Ok(()),
            Self::Contains(part) => Err((format!("something with {}", shown(part)), text(got))),
            Self::Lacks(part) => Err((format!("nothing with {}", shown(part)), text(got))),
        }
    }

    fn words(&self) -> String {
        match self {
            Self::Contains(text) => format!("contains {}", shown(text)),
            Self::Lacks(text) => format!("lacks {}", shown(text)),
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
    if there == wanted {
        return Ok(());
    }
    Err((presence(wanted).to_string(), presence(there).to_string()))
}

fn presence(there: bool) -> &'static str {
    if there { "exists" } else { "does not exist" }
}

fn same(got: &[u8], wanted: &[u8]) -> Result<(), Difference> {
    if got == wanted { Ok(()) } else { Err((text(wanted), text(got))) }
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
    row: Option<(String, String)>,
    log_contains: Option<String>,
    log_lacks: Option<String>,
    stdout_contains: Option<String>,
    stdout_lacks: Option<String>,
    exit: Option<i32>,
}

impl CheckLine {
    /// The typed check; an error if it asserts nothing, or more than one thing.
    pub fn build(self, line: usize, name: Option<String>) -> Result<Check, String> {
        let states = self.file_states()?;
        let mut all = self.outcome_assertions();
        match self.file.map(inside).transpose()? {
            Some(_) if states.is_empty() => return Err(format!("`file` needs {FILE_KEYS}")),
            None if !states.is_empty() => return Err(format!("{FILE_KEYS} needs a `file`")),
            Some(path) => all.extend(states.into_iter().map(|state| Assertion::File(path.clone(), state))),
            None => {}
        }
        match (all.pop(), all.is_empty()) {
            (None, _) => Err("the check asserts nothing".to_string()),
            (_, false) => Err("the check asserts more than one thing; give each its own line".to_string()),
            (Some(assertion), true) => {
                let name = name.unwrap_or_else(|| assertion.words());
                Ok(Check { line, name, assertion })
            }
        }
    }

    fn outcome_assertions(&self) -> Vec<Assertion> {
        let contains = |text: &Option<String>| text.clone().map(Text::Contains);
        let lacks = |text: &Option<String>| text.clone().map(Text::Lacks);
        let all = [
            contains(&self.log_contains).map(Assertion::Log),
            lacks(&self.log_lacks).map(Assertion::Log),
            contains(&self.stdout_contains).map(Assertion::Stdout),
            lacks(&self.stdout_lacks).map(Assertion::Stdout),
            self.exit.map(Assertion::Exit),
        ];
        all.into_iter().flatten().collect()
    }

    fn file_states(&self) -> Result<Vec<FileState>, String> {
        if self.unchanged == Some(false) {
            return Err("`unchanged` can only be true; say what the file `contains`".to_string());
        }
        let all = [
            self.equals.clone().map(FileState::Equals),
            self.contains.clone().map(Text::Contains).map(FileState::Text),
            self.lacks.clone().map(Text::Lacks).map(FileState::Text),
            self.unchanged.map(|_| FileState::Unchanged),
            self.exists.map(FileState::Exists),
            self.row.clone().map(|(word, about)| FileState::Row { about, word }),
        ];
        Ok(all.into_iter().flatten().collect())
    }
}

const FILE_KEYS: &str = "one of `equals`, `contains`, `lacks`, `unchanged`, `exists`, `row`";

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
        fs::write(workspace.path().join("rows.txt"), "# 1\none | a\n two |  b \none | c\ntwo | c\n").unwrap();
        let outcome = Outcome { exit: 4, log: "{\"type\":\"end\"}".to_string(), stdout: "fine\n".to_string() };
        for (holds, fails) in [
            (r#"{"file":"same.txt","equals":"one"}"#, r#"{"file":"same.txt","equals":"on"}"#),
            (r#"{"file":"new.txt","contains":"hi"}"#, r#"{"file":"new.txt","contains":"hello"}"#),
            (r#"{"file":"new.txt","lacks":"hello"}"#, r#"{"file":"new.txt","lacks":"hi"}"#),
            (r#"{"file":"same.txt","unchanged":true}"#, r#"{"file":"new.txt","unchanged":true}"#),
            (r#"{"file":"dir","exists":true}"#, r#"{"file":"none","exists":true}"#),
            (r#"{"file":"none","exists":false}"#, r#"{"file":"dir","exists":false}"#),
            (r#"{"file":"rows.txt","row":["two","b"]}"#, r#"{"file":"rows.txt","row":["two","a"]}"#),
            (r#"{"file":"rows.txt","row":["one","a"]}"#, r#"{"file":"rows.txt","row":["one","c"]}"#),
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
