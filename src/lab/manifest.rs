//! What a lab says of itself in its `lab.json`. Everything about a lab is data: no file of the kernel knows one.
//!
//! Typed, with `deny_unknown_fields`: a typo in an author's file is an error with its name, not a check that never runs.

use serde::Deserialize;
use std::collections::BTreeMap;

/// Stands for the demo's path: in `extensions`, and in what an exam says.
pub const LAB: &str = "{lab}";

/// A `lab.json`.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Manifest {
    /// A few words, as a heading.
    pub title: String,
    /// One line: what the lab teaches.
    pub goal: String,
    /// What `--ext` gets; `{lab}` stands for the staged demo's path.
    #[serde(default)]
    pub extensions: Vec<String>,
    /// The demo is a git repository with one commit.
    #[serde(default)]
    pub git: bool,
    /// The participant's own files, relative to the demo; they survive whatever restores the rest.
    pub yours: Vec<String>,
    /// One line: what to do with them.
    pub exercise: String,
    /// Tasks to watch, with a recorded model. The first one ends with exit code 0.
    pub samples: Vec<Sample>,
    /// The samples are tasks of one conversation: each continues the one before it. Else each begins anew.
    #[serde(default)]
    pub conversation: bool,
    /// Shown one at a time.
    pub hints: Vec<String>,
    /// Shown after a pass: why it works.
    pub why: String,
    /// Texts of the demo that no request and no log may ever hold.
    #[serde(default)]
    pub secrets: Vec<String>,
    /// For `--serve`: what an agent of the participant's own must do by itself. `None`: the lab is about this program.
    pub serve: Option<String>,
    /// The exam.
    pub exam: Vec<Case>,
}

/// A task to watch.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Sample {
    /// What is asked of the agent.
    pub task: String,
    /// What to watch for.
    pub observe: String,
    /// The exit code it ends with.
    #[serde(default)]
    pub exit: i32,
}

/// A case of the exam.
#[derive(Clone, Debug, Deserialize)]
#[serde(try_from = "CaseLine")]
pub struct Case {
    /// What it asserts, in words.
    pub name: String,
    /// The file to open when it fails, relative to the demo.
    pub open: Option<String>,
    /// What is done.
    pub kind: Kind,
}

/// What a case of the exam does.
#[derive(Clone, Debug)]
pub enum Kind {
    /// The real program works on a task; a script plays the model and asserts.
    Run(Run),
    /// A file of decisions is compared with what the program decides.
    Verdicts(Verdicts),
}

/// One run of the program.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Run {
    /// The task; none where `stdin` says it all.
    pub task: Option<String>,
    /// Further arguments, such as `--yes`.
    #[serde(default)]
    pub args: Vec<String>,
    /// The script that plays the model, relative to the lab.
    pub script: String,
    /// Lines for a talk (`--talk`), with the person's answers; else standard input is empty.
    #[serde(default)]
    pub stdin: String,
    /// It is run a second time, in a room of its own, and has to print the same to the byte.
    #[serde(default)]
    pub twice: bool,
    /// Files that this case puts over the demo and the participant's.
    #[serde(default)]
    pub files: BTreeMap<String, String>,
}

/// A file with a decision beside each line: `RUN | ls -la`. The program's own `--why` is the judge.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Verdicts {
    /// The participant's file; its shipped form says which lines must be there.
    pub file: String,
}

/// A case as it stands in the file.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct CaseLine {
    name: String,
    open: Option<String>,
    run: Option<Run>,
    verdicts: Option<Verdicts>,
}

impl TryFrom<CaseLine> for Case {
    type Error = String;

    fn try_from(line: CaseLine) -> Result<Case, String> {
        let kind = match (line.run, line.verdicts) {
            (Some(run), None) => Kind::Run(run),
            (None, Some(verdicts)) => Kind::Verdicts(verdicts),
            _ => return Err(format!("exam case {:?} needs exactly one of `run` and `verdicts`", line.name)),
        };
        Ok(Case { name: line.name, open: line.open, kind })
    }
}

impl Manifest {
    /// Reads a `lab.json`; the error names what is wrong, and where.
    pub fn parse(json: &[u8]) -> Result<Manifest, String> {
        let manifest: Manifest = serde_json::from_slice(json).map_err(|e| format!("read lab.json: {e}"))?;
        match (manifest.samples.first(), manifest.hints.is_empty()) {
            (None, _) => Err("read lab.json: there is no sample".into()),
            (Some(first), _) if first.exit != 0 => Err("read lab.json: the first sample must end with exit 0".into()),
            (_, true) => Err("read lab.json: there is no hint".into()),
            _ => Ok(manifest),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const REST: &str = r#""title":"t","goal":"g","yours":[],"exercise":"e","hints":["h"],"why":"w""#;

    #[test]
    fn a_typo_is_an_error_that_names_it() {
        let json = format!(r#"{{{REST},"samples":[{{"task":"a","observe":"b"}}],"exam":[],"secret":["x"]}}"#);
        let error = Manifest::parse(json.as_bytes()).unwrap_err();
        assert!(error.contains("unknown field `secret`"), "{error}");
    }

    #[test]
    fn a_case_does_exactly_one_thing() {
        let json = format!(r#"{{{REST},"samples":[{{"task":"a","observe":"b"}}],"exam":[{{"name":"nothing"}}]}}"#);
        assert!(Manifest::parse(json.as_bytes()).unwrap_err().contains("exactly one of `run` and `verdicts`"));
    }

    #[test]
    fn the_first_sample_ends_well() {
        let json = format!(r#"{{{REST},"samples":[{{"task":"a","observe":"b","exit":5}}],"exam":[]}}"#);
        assert!(Manifest::parse(json.as_bytes()).unwrap_err().contains("exit 0"));
    }
}
