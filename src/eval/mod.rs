//! `--eval`: fixed cases make changes comparable.
//!
//! An agent that was changed (another model, prompt, extension) is better or worse at *something*, and one try says little
//! about which. So a file holds cases, each with what its answer must hold, and every version of the agent works on every
//! case: the real program as a child, in a temporary directory of its own. What comes out is a table.
//!
//! | file | its idea |
//! |---|---|
//! | `case` | one line of the file of cases |
//! | `version` | what a version is: a model, a prompt, extensions, or a recording |
//! | `grade` | the graders: what a run is judged by |
//! | `report` | the table, and the same as JSON |
//!
//! A report holds no times and no paths, so two reports of the same recordings are the same to the byte, and `diff` says
//! what a change has changed. Left out on purpose: a model as a judge of prose (then the judge needs an evaluation, too),
//! running cases side by side, and statistics over many runs of one case: run it again and compare.

mod case;
mod grade;
mod report;
mod version;

pub use case::Case;
pub use grade::Seen;
pub use report::{Report, Score};
pub use version::{Version, absolute};

use crate::cancel::Cancel;
use crate::lab::{Ended, Room, Stdin};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// What is compared, and how.
pub struct Plan {
    /// The cases.
    pub cases: Vec<Case>,
    /// The versions, side by side.
    pub versions: Vec<Version>,
    /// Arguments of every run, such as `--yes`.
    pub args: Vec<String>,
    /// Variables of the runs that ask a real model: where it is, and its key.
    pub endpoint: Vec<(String, String)>,
    /// How long one run may take.
    pub longest: Duration,
}

impl Plan {
    /// Reads the cases and the versions. The error is in words, with the file and the line.
    pub fn read(file: &Path, versions: &[String]) -> Result<Plan, String> {
        let cases = case::read(file)?;
        let versions = version::read(versions, file.parent().unwrap_or(Path::new("")))?;
        for recorded in &versions {
            cases.iter().try_for_each(|case| recorded.recording_for(&case.task).map(|_| ()))?;
        }
        Ok(Plan { cases, versions, args: Vec::new(), endpoint: Vec::new(), longest: Duration::from_secs(600) })
    }

    /// A version asks a real model, and says not where that is.
    pub fn needs_endpoint(&self) -> bool {
        self.versions.iter().any(Version::needs_endpoint)
    }

    /// Runs everything. `exe` is the program; `progress` hears of each run that is over. An error: it cannot run here.
    pub fn run(&self, exe: &Path, cancel: &Cancel, progress: &mut dyn FnMut(&str)) -> Result<Report, String> {
        let most = self.cases.len() * self.versions.len();
        let mut report = Report::new(self);
        for (row, case) in self.cases.iter().enumerate() {
            for version in &self.versions {
                let seen = self.play(case, version, exe, cancel)?;
                let score = Score::new(&version.name, case, &seen);
                let (number, word) = (report.count() + 1, score.word());
                progress(&format!("{number} of {most}: {} · {} · {word}", case.name, version.name));
                report.add(row, score);
            }
        }
        Ok(report)
    }

    /// One version at work on one case.
    fn play(&self, case: &Case, version: &Version, exe: &Path, cancel: &Cancel) -> Result<Seen, String> {
        let mut files = case.files.clone();
        if let Some(prompt) = &version.prompt {
            files.entry("AGENTS.md".into()).or_default().extend(prompt.bytes());
        }
        let room = Room::new(&files, false, &[])?;
        let mut args: Vec<String> = ["--json".into()].into_iter().chain(self.args.iter().cloned()).collect();
        args.extend(version.args(&self.args));
        let recording = version.recording_for(&case.task)?.map(|text| room.put("recording.jsonl", text)).transpose()?;
        let endpoint = if recording.is_some() { &[][..] } else { &self.endpoint };
        args.extend(recording.iter().flat_map(|file: &PathBuf| ["--replay".into(), file.display().to_string()]));
        args.extend(["--".into(), case.task.clone()]);
        let ended = room.run_within(exe, &args, Stdin::default(), (endpoint, self.longest), cancel)?;
        match (cancel.is_raised(), &ended) {
            (true, _) => Err("interrupted; there is no report of half of the runs".into()),
            (_, Ended { exit: Some(2), last_words, .. }) => {
                Err(format!("version {}, case {:?}: {}", version.name, case.name, without_name(last_words)))
            }
            _ => Ok(Seen::new(case, &ended, &room)),
        }
    }
}

/// The child's own words, without the name that stands before them.
fn without_name(words: &str) -> &str {
    words.strip_prefix("mini: ").unwrap_or(words)
}
