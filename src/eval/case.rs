//! One line of the file of cases.
//!
//! ```json
//! {"name":"the loan period","task":"how long may I keep a laptop?","copy":["policy.md"],
//!  "required":["14 days"],"forbidden":["30 days"],"tools":["read"],"checks":[{"file":"policy.md","unchanged":true}]}
//! ```
//!
//! (One line in the file.) A key that is not known is an error: a misspelt `required` would be a case that always passes.

use crate::lab::{Files, inside};
use crate::replay::Check;
use serde::Deserialize;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

/// A task, and what is wanted of the run.
#[derive(Clone, Debug)]
pub struct Case {
    /// In the report; unique.
    pub name: String,
    /// What is asked of the agent.
    pub task: String,
    /// The directory it works in.
    pub files: Files,
    /// Terms that the answer must hold, in any case of letters.
    pub required: Vec<String>,
    /// Terms that it must not hold.
    pub forbidden: Vec<String>,
    /// The tools that it uses: these, and no others. `None`: any.
    pub tools: Option<BTreeSet<String>>,
    /// What must hold of the files afterwards.
    pub checks: Vec<Check>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Line {
    name: String,
    task: String,
    /// Files of the case: path and text.
    #[serde(default)]
    files: BTreeMap<String, String>,
    /// Files that are copied from beside the file of cases.
    #[serde(default)]
    copy: Vec<String>,
    #[serde(default)]
    required: Vec<String>,
    #[serde(default)]
    forbidden: Vec<String>,
    tools: Option<BTreeSet<String>>,
    #[serde(default)]
    checks: Vec<Value>,
}

/// Reads a file of cases; blank lines are skipped.
pub fn read(file: &Path) -> Result<Vec<Case>, String> {
    let text = std::fs::read_to_string(file).map_err(|e| format!("cannot read the cases {}: {e}", file.display()))?;
    let mut cases: Vec<Case> = Vec::new();
    for (number, line) in (1..).zip(text.lines()).filter(|(_, line)| !line.trim().is_empty()) {
        let failed = |why: String| format!("{}, line {number}: {why}", file.display());
        let case = parse(line, number, file.parent().unwrap_or(Path::new(""))).map_err(failed)?;
        if cases.iter().any(|other| other.name == case.name) {
            return Err(failed(format!("there is a case {:?} already", case.name)));
        }
        cases.push(case);
    }
    if cases.is_empty() { Err(format!("{} holds no case", file.display())) } else { Ok(cases) }
}

fn parse(text: &str, number: usize, dir: &Path) -> Result<Case, String> {
    // serde_json counts lines of what it is given, which is always one.
    let line: Line =
        serde_json::from_str(text).map_err(|e| e.to_string().replace(" at line 1 column ", " at column "))?;
    let Line { name, task, files, copy, required, forbidden, tools, checks } = line;
    if name.trim().is_empty() || task.trim().is_empty() {
        return Err("a case needs a name and a task".into());
    }
    let mut all: Files = files.into_iter().map(|(path, text)| (path, text.into_bytes())).collect();
    for path in copy {
        let from = dir.join(&path);
        let bytes = std::fs::read(&from).map_err(|e| format!("cannot copy {}: {e}", from.display()))?;
        all.insert(path, bytes);
    }
    if let Some(path) = all.keys().find(|path| !inside(path)) {
        return Err(format!("the path {path} leads out of the case's directory"));
    }
    if let Some(empty) = required.iter().chain(&forbidden).find(|term| term.trim().is_empty()) {
        return Err(format!("the term {empty:?} is in every answer, or in none"));
    }
    let checks = checks.into_iter().map(|check| Check::of_file(number, check)).collect::<Result<_, _>>()?;
    Ok(Case { name, task, files: all, required, forbidden, tools, checks })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_wrong_with_a_case_is_said() {
        for (line, why) in [
            (r#"{"name":"a","task":"b","require":["x"]}"#, "unknown field `require`"),
            (r#"{"name":"a"}"#, "missing field `task`"),
            (r#"{"name":" ","task":"b"}"#, "needs a name"),
            (r#"{"name":"a","task":"b","copy":["none.md"]}"#, "cannot copy /nowhere/none.md"),
            (r#"{"name":"a","task":"b","files":{"../x":"y"}}"#, "../x leads out"),
            (r#"{"name":"a","task":"b","forbidden":[""]}"#, "in every answer"),
            (r#"{"name":"a","task":"b","checks":[{"exit":0}]}"#, "only files"),
            (r#"{"name":"a","task":"b","checks":[{"file":"x","contain":"y"}]}"#, "unknown field `contain`"),
        ] {
            let error = parse(line, 1, Path::new("/nowhere")).unwrap_err();
            assert!(error.contains(why), "{line}: {error}");
        }
    }

    #[test]
    fn a_name_stands_for_one_case_and_a_file_holds_at_least_one() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("cases.jsonl");
        let read = |text: &str| {
            std::fs::write(&file, text).unwrap();
            read(&file)
        };
        let line = r#"{"name":"a","task":"b"}"#;
        assert!(read(&format!("{line}\n\n{line}\n")).unwrap_err().ends_with("line 3: there is a case \"a\" already"));
        assert!(read("\n").unwrap_err().ends_with("holds no case"));
        assert_eq!(read(line).unwrap().len(), 1);
    }
}
