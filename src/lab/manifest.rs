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
    /// Files of the demo that stand in for those of the user's own configuration (`~/.config/mini/`) while the lab is played
    /// and examined.
    #[serde(default)]
    pub config: Vec<String>,
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
    /// Further words of the command line: limits, such as `--max-turns 5`.
    #[serde(default)]
    pub args: Vec<String>,
    /// The exit code it ends with.
    #[serde(default)]
    pub exit: i32,
    /// Plan mode is on.
    #[serde(default)]
    pub plan: bool,
    /// The model's window in tokens; `--context-window` wins.
    pub context_window: Option<u64>,
}

/// What a case can be.
const KINDS: &str = "`run`, `runs`, `verdicts`, `decides` and `answers`";

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
    /// The same several times in one place: what one process leaves behind, the next one finds.
    Runs(Vec<Run>),
    /// A file of decisions is compared with what the program decides.
    Verdicts(Verdicts),
    /// The program has to decide as a list says.
    Decides(Decides),
    /// A file of answers to questions, and of the commands that show them.
    Answers(Answers),
}

/// One run of the program.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Run {
    /// The task; none where `stdin` says it all.
    pub task: Option<String>,
    /// Further arguments, such as `--yes`.
    #[serde(default)]
    pub args: Vec<String>,
    /// One more source of arguments: the participant's own.
    pub args_from: Option<ArgsFrom>,
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
    /// Sessions that are there before it: the id, and the demo's file that is the log.
    #[serde(default)]
    pub sessions: BTreeMap<String, String>,
    /// The program is killed (as `kill -9` does) when it has printed this event or part of one. Its standard input,
    /// if any, stays open until then.
    pub kill_at: Option<String>,
}

/// A file with a decision beside each line: `RUN | ls -la`. The program's own `--why` is the judge.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Verdicts {
    /// The participant's file; its shipped form says which lines must be there.
    pub file: String,
}

/// Arguments out of a file of the participant's: what stands behind `row:` on its line.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ArgsFrom {
    /// The file, relative to the demo.
    pub file: String,
    /// What its line begins with.
    pub row: String,
}

/// What the program's own `--why` has to say, row by row: `RUN | ls -la`. `ERROR` stands for exit code 2.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Decides {
    /// A file with the rows, relative to the lab.
    pub rows: String,
    /// What every answer has to hold, such as the name of a file.
    #[serde(default)]
    pub says: String,
    /// Files that this case puts over the demo and the participant's.
    #[serde(default)]
    pub files: BTreeMap<String, String>,
}

/// Questions about a file of the demo. The participant writes `answer 1: …`, and in `command 1: …` what shows it. The
/// commands are run on that file and on another of its kind, so that nobody's command prints what he has counted.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Answers {
    /// The participant's file.
    pub file: String,
    /// What the questions are about, relative to the demo.
    pub about: String,
    /// Another of its kind, relative to the lab.
    pub hidden: String,
    /// Words that every command has to hold.
    pub uses: String,
    /// The questions, in order.
    pub questions: Vec<Question>,
}

/// A question with its answers.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Question {
    /// In words.
    pub ask: String,
    /// The right answer as a command shows it, and other spellings of it.
    pub answers: Vec<String>,
    /// What the command shows of the hidden file.
    pub hidden: String,
}

/// A case as it stands in the file.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct CaseLine {
    name: String,
    open: Option<String>,
    run: Option<Run>,
    runs: Option<Vec<Run>>,
    verdicts: Option<Verdicts>,
    decides: Option<Decides>,
    answers: Option<Answers>,
}

impl TryFrom<CaseLine> for Case {
    type Error = String;

    fn try_from(line: CaseLine) -> Result<Case, String> {
        let kind = match (line.run, line.runs, line.verdicts, line.decides, line.answers) {
            (Some(run), None, None, None, None) => Kind::Run(run),
            (None, Some(runs), None, None, None) => Kind::Runs(runs),
            (None, None, Some(verdicts), None, None) => Kind::Verdicts(verdicts),
            (None, None, None, Some(decides), None) => Kind::Decides(decides),
            (None, None, None, None, Some(answers)) => Kind::Answers(answers),
            _ => return Err(format!("exam case {:?} needs exactly one of {KINDS}", line.name)),
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
        assert!(Manifest::parse(json.as_bytes()).unwrap_err().contains(KINDS));
    }

    #[test]
    fn the_first_sample_ends_well() {
        let json = format!(r#"{{{REST},"samples":[{{"task":"a","observe":"b","exit":5}}],"exam":[]}}"#);
        assert!(Manifest::parse(json.as_bytes()).unwrap_err().contains("exit 0"));
    }
}
