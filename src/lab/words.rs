//! What a participant reads: the list, a lab's introduction, hints, the solution, and what comes after an exam.
//!
//! Every command in these texts is written with the words that work where they are read.

use super::stage::{Home, Staged, is_among, shown};
use super::{Lab, Report, Status, all};
use crate::nearest::nearest;

/// The words that start this program here: under cargo there is no `mini` in the path yet.
pub fn run_words() -> &'static str {
    if std::env::var_os("CARGO").is_some() { "cargo run -q --" } else { "mini" }
}

/// The labs, with a mark at those whose exam was passed.
pub fn list(home: &Home, run: &str) -> Result<String, String> {
    let (labs, passed) = (all()?, home.passed());
    let width = labs.iter().map(|lab| lab.id.len()).max().unwrap_or_default();
    let mut text = String::new();
    for lab in &labs {
        let mark = if passed.contains(&lab.id) { "passed" } else { "" };
        text.push_str(&format!("  {:<width$}  {mark:<6}  {}\n", lab.id, lab.about.goal));
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
        let order = if about.conversation { " (one conversation, in this order)" } else { "" };
        text.push_str(&format!(
            "  workspace: {dir}\n  to read: {page}\n  {model}\n\nSamples{order}, and what to watch for:\n"
        ));
        for (number, sample) in (1..).zip(&about.samples) {
            text.push_str(&format!("  {number}  {}\n     {}\n", sample.task, sample.observe));
        }
        let yours: Vec<String> = about.yours.iter().map(|own| shown(&staged.dir.join(own))).collect();
        text.push_str(&format!("\nYour turn, in {}:\n  {}\n\n", yours.join(", "), about.exercise));
        text.push_str(&self.commands(run));
        text
    }

    /// What else can be done with the lab.
    fn commands(&self, run: &str) -> String {
        let flags = [
            ("--check", "the exam of your files"),
            ("--hint", "one hint at a time"),
            ("--solution", "the reference solution"),
            ("--reset", "the demo as shipped"),
        ];
        let commands = flags.map(|(flag, what)| (format!("{run} --lab {} {flag}", self.number()), what));
        let width = commands.iter().map(|(command, _)| command.len()).max().unwrap_or_default();
        commands.iter().map(|(command, what)| format!("  {command:<width$}  {what}\n")).collect()
    }

    /// What can be typed to play a sample: `1 or 2`, `1 to 3`.
    pub fn choices(&self) -> String {
        match self.about.samples.len() {
            1 => "1".into(),
            2 => "1 or 2".into(),
            most => format!("1 to {most}"),
        }
    }

    /// What can be typed at the prompt of the recorded model.
    pub fn prompt_help(&self, run: &str) -> String {
        let samples = (1..).zip(&self.about.samples).map(|(number, sample)| format!("  {number:<7}{}\n", sample.task));
        let samples: String = samples.collect();
        let task = format!("{run} --lab {} \"your task\"", self.number());
        format!(
            "Type the number of a sample:\n{samples}  Enter  the first sample\n  /help  this list\n  /quit  leave (Ctrl-D \
             does, too)\nA task of your own needs a real model: `{task}` says how to set one up."
        )
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
        Ok(format!("Hint {} of {}: {hint}\n\n{more}\n", at + 1, hints.len()))
    }

    /// The lab's page: its README and the exercises, to be read beside the demo.
    pub(super) fn page(&self, run: &str) -> String {
        let parts = ["README.md", "exercise/A.md", "exercise/B.md"].iter().filter_map(|part| self.files.get(*part));
        let page = parts.map(|bytes| String::from_utf8_lossy(bytes).into_owned()).collect::<Vec<_>>().join("\n\n");
        // A command begins a line of an indented block, a span of code, or what a pipe leads to.
        ["    ", "`", "| "]
            .iter()
            .fold(page, |page, before| page.replace(&format!("{before}mini --"), &format!("{before}{run} --")))
    }

    /// The files of the reference solution, each under its name: those of exercise A, then those of the optional
    /// exercise B. Nothing is changed.
    pub fn solution(&self) -> String {
        let files = self.files.iter().filter_map(|(path, bytes)| Some((path.strip_prefix("solution/")?, bytes)));
        let (a, b): (Vec<_>, Vec<_>) = files.partition(|(path, _)| is_among(&self.about.yours, path));
        let print = |files: Vec<(&str, &Vec<u8>)>| -> String {
            files.iter().map(|(path, bytes)| format!("\n--- {path}\n{}", String::from_utf8_lossy(bytes))).collect()
        };
        let optional = if b.is_empty() { String::new() } else { format!("\nExercise B (optional)\n{}", print(b)) };
        format!("Exercise A\n{}{optional}", print(a))
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
    fn the_intro_s_commands_stand_in_columns_whatever_starts_the_program() {
        for lab in all().unwrap() {
            for run in ["mini", "cargo run -q --"] {
                let commands = lab.commands(run);
                let column = |line: &str| line.trim_start().find("  ").map(|at| (at, line.rfind("  ")));
                let gaps: Vec<_> = commands.lines().map(|line| column(line).unwrap().1).collect();
                assert!(gaps.len() == 4 && gaps.iter().all(|gap| *gap == gaps[0]), "{commands}");
            }
        }
    }

    #[test]
    fn what_can_be_typed_is_said_in_numbers_that_are_there() {
        let mut lab = all().unwrap().remove(0);
        let sample = lab.about.samples[0].clone();
        for (count, said) in [(1, "1"), (2, "1 or 2"), (3, "1 to 3"), (4, "1 to 4")] {
            lab.about.samples = vec![sample.clone(); count];
            assert_eq!(lab.choices(), said);
            let help = lab.prompt_help("mini");
            assert!(help.contains(&format!("\n  {count}      {}\n  Enter", sample.task)), "{help}");
            assert!(["/help", "/quit", "mini --lab "].iter().all(|word| help.contains(word)), "{help}");
        }
    }

    #[test]
    fn the_page_s_commands_are_those_that_work_here() {
        for lab in all().unwrap() {
            let page = lab.page("cargo run -q --");
            assert!(page.contains(&format!("    cargo run -q -- --lab {}", lab.number())));
            assert!(!page.contains("mini --"), "{}", lab.id);
        }
    }

    #[test]
    fn the_solution_of_exercise_a_comes_first() {
        for lab in all().unwrap() {
            let text = lab.solution();
            let (a, b) = text.split_once("\nExercise B (optional)\n").unwrap_or((&text, ""));
            for own in &lab.about.yours {
                let heading = format!("\n--- {own}");
                assert!(a.contains(&heading) && !b.contains(&heading), "{}: {own}\n{text}", lab.id);
            }
        }
    }

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
