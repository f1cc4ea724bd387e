//! What a participant reads: the list, a lab's introduction, hints, the solution, and what comes after an exam.
//!
//! Every command in these texts is written with the words that work where they are read.

use super::stage::{Home, Staged, shown};
use super::{Lab, Report, Status, all};
use crate::nearest::nearest;

/// The words that start this program here: under cargo there is no `mini` in the path yet.
pub fn run_words() -> &'static str {
    if std::env::var_os("CARGO").is_some() { "cargo run -q --" } else { "mini" }
}

/// The labs, with a mark at those whose exam was passed.
pub fn list(home: &Home, run: &str) -> Result<String, String> {
    let (labs, passed) = (all()?, home.passed());
    let mut text = String::new();
    for lab in &labs {
        let mark = if passed.contains(&lab.id) { "passed" } else { "" };
        text.push_str(&format!("  {:<18} {:<7} {}\n", lab.id, mark, lab.about.goal));
    }
    let first = labs.first().map_or("01", Lab::number);
    Ok(format!("{text}\nRun one with: {run} --lab {first}\n"))
}

/// A word that names no lab: the nearest, and what there is.
pub(super) fn no_such_lab(word: &str, labs: &[Lab]) -> String {
    let near = nearest(word, labs.iter().flat_map(|lab| [lab.name(), lab.id.as_str()]));
    let near = near.map_or(String::new(), |name| format!(" Did you mean `{name}`?"));
    let known: Vec<&str> = labs.iter().map(|lab| lab.id.as_str()).collect();
    format!("there is no lab `{word}`.{near} There are: {}", known.join(", "))
}

impl Lab {
    /// What is shown when the lab starts. `model` is one line: who plays the model.
    pub fn intro(&self, staged: &Staged, run: &str, model: &str) -> String {
        let about = &self.about;
        let mut text = format!("Lab {}: {}\n{}\n\n", self.number(), about.title, about.goal);
        let (dir, page) = (shown(&staged.dir), shown(&staged.page()));
        text.push_str(&format!(
            "  workspace: {dir}\n  to read: {page}\n  {model}\n\nSamples, and what to watch for:\n"
        ));
        for (number, sample) in (1..).zip(&about.samples) {
            text.push_str(&format!("  {number}  {}\n     {}\n", sample.task, sample.observe));
        }
        let yours: Vec<String> = about.yours.iter().map(|own| shown(&staged.dir.join(own))).collect();
        text.push_str(&format!("\nYour turn, in {}:\n  {}\n\n", yours.join(", "), about.exercise));
        let command =
            |flag: &str, what: &str| format!("  {:<34} {what}\n", format!("{run} --lab {} {flag}", self.number()));
        text.push_str(&command("--check", "the exam of your files"));
        text.push_str(&command("--hint", "one hint at a time"));
        text.push_str(&command("--solution", "the reference solution"));
        text.push_str(&command("--reset", "the demo as shipped"));
        text
    }

    /// Said when the recorded model is asked for anything but a sample.
    pub fn needs_model(&self, run: &str) -> String {
        format!(
            "The recorded model only plays the samples. Any other task needs a real one: set MINI_BASE_URL, MINI_MODEL \
             and (where the server wants one) MINI_API_KEY, or write them into ~/.config/mini/env, and run \
             `{run} --lab {} \"your task\"` again.",
            self.number()
        )
    }

    /// The next hint; after the last one they begin anew. How many were shown is remembered in `home`.
    pub fn hint(&self, home: &Home, run: &str) -> Result<String, String> {
        let hints = &self.about.hints;
        let at = home.hints(&self.id) % hints.len().max(1);
        home.set_hints(&self.id, at + 1)?;
        let hint = hints.get(at).map_or("", String::as_str);
        let more = match hints.len() - (at + 1).min(hints.len()) {
            0 => format!("That was the last hint. `{run} --lab {} --solution` prints the solution.", self.number()),
            left => format!("{left} more: the same command again."),
        };
        Ok(format!("Hint {} of {}: {hint}\n{more}\n", at + 1, hints.len()))
    }

    /// The lab's page: its README and the exercises, to be read beside the demo.
    pub(super) fn page(&self) -> String {
        let parts = ["README.md", "exercise/A.md", "exercise/B.md"].iter().filter_map(|part| self.files.get(*part));
        parts.map(|bytes| String::from_utf8_lossy(bytes).into_owned()).collect::<Vec<_>>().join("\n\n")
    }

    /// The files of the reference solution, each under its name. Nothing is changed.
    pub fn solution(&self) -> String {
        let files = self.files.iter().filter_map(|(path, bytes)| Some((path.strip_prefix("solution/")?, bytes)));
        files.map(|(path, bytes)| format!("--- {path}\n{}\n", String::from_utf8_lossy(bytes))).collect()
    }

    /// What follows the report of an exam: after a pass why it works and the next lab, else where to get help.
    pub fn after(&self, report: &Report, run: &str) -> Result<String, String> {
        let number = self.number();
        match report.status() {
            Status::Pass => {
                let next = all()?.into_iter().find(|lab| lab.id > self.id);
                let next = next.map_or(String::new(), |lab| format!("Next: {run} --lab {}\n", lab.number()));
                Ok(format!(
                    "\nWhy it works: {}\nThe reference solution: {run} --lab {number} --solution\n{next}",
                    self.about.why
                ))
            }
            Status::Fail => Ok(format!("\nA hint: {run} --lab {number} --hint\n")),
            Status::Error => Ok(String::new()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hints_come_one_at_a_time_and_begin_anew() {
        let root = tempfile::tempdir().unwrap();
        let home = Home::find(None, root.path());
        for lab in all().unwrap() {
            let count = lab.about.hints.len();
            let shown: Vec<String> = (0..=count).map(|_| lab.hint(&home, "mini").unwrap()).collect();
            assert!(shown[0].starts_with(&format!("Hint 1 of {count}: {}", lab.about.hints[0])), "{}", shown[0]);
            assert!(shown[count - 1].contains("--solution"));
            assert_eq!(shown[0], shown[count]);
        }
    }
}
