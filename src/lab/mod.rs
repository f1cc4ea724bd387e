//! The labs: a demo to run, a task to watch, an exercise, and an exam.
//!
//! A lab is data (`labs/NN-name/`): this module knows none of them by name, and a new one is a new directory and its
//! lines in `labs/embedded.rs`. What a lab adds to the agent is an extension; the kernel is the same in all of them.
//!
//! | file | its idea |
//! |---|---|
//! | `manifest` | what a lab says of itself in `lab.json` |
//! | `shelf` | where its files come from: the binary, or this repository |
//! | `stage`, `attic` | its demo on disk, what is remembered beside it, and where things go that stand in the way |
//! | `exam`, `room` | the exam: the real program, in a temporary directory, against a scripted model |
//! | `verdicts` | two kinds of exam cases: decisions compared with the program's, and the other way round |
//! | `answers` | another: answers, each with a command that shows it |
//! | `serve` | the same exam for an agent of the participant's own |
//! | `report` | what an exam found out |
//! | `words` | what a participant reads |
//!
//! Left out on purpose: playing a sample. That is an ordinary run with an ordinary front end, so the command line does
//! it; what a lab contributes is [`Lab::extensions`] and [`Lab::script`].

mod answers;
mod attic;
mod exam;
mod manifest;
mod report;
mod room;
mod serve;
mod shelf;
mod stage;
mod verdicts;
mod words;

pub use manifest::{Answers, ArgsFrom, Case, Decides, Kind, Manifest, Question, Run, Sample, Verdicts};
pub use report::{Miss, Report, Status, Test};
pub use shelf::Files;
pub use stage::{Home, Staged, shown};
pub use words::{list, run_words};

pub(crate) use room::{Ended, Room, Stdin};
pub(crate) use stage::inside;

use crate::replay::Script;
use std::path::{Path, PathBuf};

/// One lab.
#[derive(Clone, Debug)]
pub struct Lab {
    /// Its directory's name: two digits, a dash, a name.
    pub id: String,
    /// Its `lab.json`.
    pub about: Manifest,
    /// All of its files, by path relative to its directory.
    pub files: Files,
}

/// Every lab, in order of its number. An error names the lab whose `lab.json` cannot be read.
pub fn all() -> Result<Vec<Lab>, String> {
    let cwd = std::env::current_dir().map_err(|e| format!("find the current directory: {e}"))?;
    shelf::labs(&cwd)?.into_iter().map(|(id, files)| Lab::new(id, files)).collect()
}

/// The lab that a word means: its number with or without the zero, its name, or both. The error lists what is there.
pub fn find(word: &str) -> Result<Lab, String> {
    let labs = all()?;
    match labs.iter().position(|lab| lab.is_called(word)) {
        Some(at) => Ok(labs[at].clone()),
        None => Err(words::no_such_lab(word, &labs)),
    }
}

/// Sits every lab's exam, with the participant's files in `home` where there are any.
pub fn check_all(home: &Home, exe: &Path) -> Result<Vec<Report>, String> {
    all()?.iter().map(|lab| lab.examine(home, exe)).collect()
}

impl Lab {
    fn new(id: String, files: Files) -> Result<Lab, String> {
        let json = files.get("lab.json").ok_or_else(|| format!("lab {id}: there is no lab.json"))?;
        let about = Manifest::parse(json).map_err(|why| format!("lab {id}: {why}"))?;
        Ok(Lab { id, about, files })
    }

    /// Its two digits.
    pub fn number(&self) -> &str {
        self.id.split_once('-').map_or("", |(number, _)| number)
    }

    /// Its name without the number.
    pub fn name(&self) -> &str {
        self.id.split_once('-').map_or(&self.id, |(_, name)| name)
    }

    fn is_called(&self, word: &str) -> bool {
        let number = !word.is_empty() && self.number().trim_start_matches('0') == word;
        number || [self.id.as_str(), self.number(), self.name()].contains(&word)
    }

    /// Lays the demo out below `home`, and the lab's page beside it. A demo that is there already stays as it is.
    pub fn stage(&self, home: &Home) -> Result<Staged, String> {
        self.staged(home).lay(&self.page(run_words()))
    }

    fn staged(&self, home: &Home) -> Staged {
        Staged::new(&self.id, home, self.demo(), &self.about.yours, self.about.git)
    }

    /// What `--ext` gets for this lab, with the demo at `dir`.
    pub fn extensions(&self, dir: &Path) -> Vec<String> {
        let dir = dir.display().to_string();
        self.about.extensions.iter().map(|words| words.replace(manifest::LAB, &dir)).collect()
    }

    /// The directory whose files stand in for the user's own configuration, with the demo at `dir`.
    pub fn config(&self, dir: &Path) -> Option<PathBuf> {
        (!self.about.config.is_empty()).then(|| dir.to_path_buf())
    }

    /// The recorded model for a sample, counted from 1: one section, with the person's answers.
    pub fn script(&self, sample: usize) -> Result<Script, String> {
        let Script { sections } = self.whole_script()?;
        let sections: Vec<_> = sections.into_iter().filter(|section| section.name == sample.to_string()).collect();
        if sections.is_empty() {
            return Err(format!("lab {}: script.jsonl has no sample {sample}", self.id));
        }
        Ok(Script { sections })
    }

    /// The recorded model for all samples: a section for each, by its number.
    pub fn whole_script(&self) -> Result<Script, String> {
        self.parse_script("script.jsonl")
    }

    /// Sits the exam of the participant's files, and lays the demo out if it is not there yet, so that there is a file
    /// to open. Writes `results.json` beside it, and a pass into `progress.txt`. `exe` is the program to examine. An
    /// error: those could not be written; an exam that cannot run is a [`Report`].
    pub fn check(&self, home: &Home, exe: &Path) -> Result<Report, String> {
        self.stage(home)?;
        let report = self.examine(home, exe)?;
        home.write("results.json", format!("{:#}\n", report.json()).as_bytes())?;
        Ok(report)
    }

    /// Grades an agent of the participant's own. `ready` shows a text and waits until the agent has ended; false means
    /// that nobody is there. Nothing is written down: a pass of another program is no pass of the lab.
    pub fn serve(&self, home: &Home, ready: &mut dyn FnMut(&str) -> bool) -> Result<Report, String> {
        let files = self.stage(home)?.with_yours()?;
        Ok(self.report(home, serve::grade(self, &files, ready)))
    }

    /// Sits the exam in a temporary directory, with the participant's files where there are any, else the shipped ones.
    fn examine(&self, home: &Home, exe: &Path) -> Result<Report, String> {
        let staged = self.staged(home);
        let files = if staged.dir.is_dir() { staged.with_yours()? } else { self.demo() };
        let report = self.report(home, exam::sit(self, &files, exe));
        if report.status() == Status::Pass {
            home.pass(&self.id)?;
        }
        Ok(report)
    }

    /// What an exam found out, with files to open as a person can open them from here.
    fn report(&self, home: &Home, sat: Result<Vec<Test>, String>) -> Report {
        let dir = self.staged(home).dir;
        let (mut tests, broken) = match sat {
            Ok(tests) => (tests, None),
            Err(why) => (Vec::new(), Some(why)),
        };
        for miss in tests.iter_mut().filter_map(|test| test.miss.as_mut()) {
            miss.open = miss.open.as_ref().map(|open| shown(&dir.join(open)));
            for text in [&mut miss.expected, &mut miss.got] {
                *text = text.replace(manifest::LAB, &shown(&dir));
            }
        }
        Report { lab: self.id.clone(), tests, broken }
    }

    /// The shipped demo.
    fn demo(&self) -> Files {
        let demo = self.files.iter().filter_map(|(path, bytes)| Some((path.strip_prefix("demo/")?, bytes)));
        demo.map(|(path, bytes)| (path.to_owned(), bytes.clone())).collect()
    }

    fn parse_script(&self, path: &str) -> Result<Script, String> {
        let failed = |why: String| format!("lab {}: read {path}: {why}", self.id);
        let bytes = self.files.get(path).ok_or_else(|| failed("there is no such file".into()))?;
        let text = std::str::from_utf8(bytes).map_err(|e| failed(e.to_string()))?;
        Script::parse(text).map_err(failed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_lab_has_all_its_parts() {
        for lab in all().unwrap() {
            for file in ["README.md", "script.jsonl", "exercise/A.md", "exercise/B.md"] {
                assert!(lab.files.contains_key(file), "{}: {file} is missing", lab.id);
            }
            let demo = lab.demo();
            assert!(lab.about.yours.iter().all(|own| own.ends_with('/') || demo.contains_key(own)), "{}", lab.id);
            let solved = |own: &String| lab.files.keys().any(|file| file.starts_with(&format!("solution/{own}")));
            assert!(lab.about.yours.iter().all(solved), "{}: not everything is solved", lab.id);
            for case in &lab.about.exam {
                let runs = match &case.kind {
                    Kind::Run(run) => std::slice::from_ref(run),
                    Kind::Runs(runs) => runs,
                    Kind::Verdicts(_) | Kind::Decides(_) | Kind::Answers(_) => &[],
                };
                for run in runs {
                    let script = lab.parse_script(&run.script).unwrap();
                    assert_eq!(script.sections.len(), 1, "{}: {}", lab.id, run.script);
                }
            }
        }
    }

    #[test]
    fn every_sample_has_its_recorded_model() {
        for lab in all().unwrap() {
            for sample in 1..=lab.about.samples.len() {
                assert_eq!(lab.script(sample).unwrap().sections.len(), 1, "{}", lab.id);
            }
            assert!(lab.script(lab.about.samples.len() + 1).is_err());
        }
    }

    #[test]
    fn number_name_and_both_mean_the_same_lab() {
        for lab in all().unwrap() {
            for word in [lab.number(), lab.number().trim_start_matches('0'), lab.name(), &lab.id] {
                assert_eq!(find(word).unwrap().id, lab.id);
            }
        }
        let error = find("nonsense").unwrap_err();
        assert!(error.contains("there is no lab `nonsense`"), "{error}");
    }
}
