//! What an exam found out: one line an assertion, and for the first that fails what was expected, what came, and the
//! file to open. The same as JSON for a script.

use serde_json::{Value, json};

/// The result of one lab's exam.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Report {
    /// Which lab, such as `NN-name`.
    pub lab: String,
    /// One for each assertion; empty if the exam could not run.
    pub tests: Vec<Test>,
    /// Why the exam could not run, if so.
    pub broken: Option<String>,
}

/// One assertion.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Test {
    /// The exam's case, in words.
    pub case: String,
    /// Which part of it, in words; `None` for the case as a whole.
    pub part: Option<String>,
    /// What is wrong; `None` if it holds.
    pub miss: Option<Miss>,
}

/// An assertion that does not hold.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Miss {
    /// What was wanted.
    pub expected: String,
    /// What there was.
    pub got: String,
    /// The file to open, where there is one.
    pub open: Option<String>,
}

/// How an exam ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Status {
    /// Every assertion holds.
    Pass,
    /// At least one does not.
    Fail,
    /// It could not run.
    Error,
}

impl Report {
    /// How it ended.
    pub fn status(&self) -> Status {
        match &self.broken {
            Some(_) => Status::Error,
            None if self.tests.iter().all(|test| test.miss.is_none()) => Status::Pass,
            None => Status::Fail,
        }
    }

    /// The exit code: 0 pass, 1 fail, 2 cannot run.
    pub fn exit(&self) -> u8 {
        match self.status() {
            Status::Pass => 0,
            Status::Fail => 1,
            Status::Error => 2,
        }
    }

    /// One line: `pass NN-name (14 of 14)`.
    pub fn line(&self) -> String {
        match &self.broken {
            Some(why) => format!("error {}: {why}", self.lab),
            None => format!("{}  {} ({} of {})", self.word(), self.lab, self.held(), self.tests.len()),
        }
    }

    /// Every assertion on its line; the first that fails with what was expected and what came.
    pub fn text(&self) -> String {
        if let Some(why) = &self.broken {
            return format!("{}: the exam cannot run: {why}\n", self.lab);
        }
        let (mut text, mut explained) = (String::new(), false);
        for test in &self.tests {
            match &test.miss {
                None => text.push_str(&format!("  ok    {}\n", test.indented())),
                Some(miss) => {
                    text.push_str(&format!("  FAIL  {}\n", test.indented()));
                    if !std::mem::replace(&mut explained, true) {
                        text.push_str(&miss.text());
                    }
                }
            }
        }
        format!("{text}{}\n", self.line())
    }

    /// The same for a script, in the shape of `results.json`.
    pub fn json(&self) -> Value {
        let tests: Vec<Value> = self.tests.iter().map(Test::json).collect();
        json!({"version": 2, "lab": self.lab, "status": self.word(), "message": self.broken, "tests": tests})
    }

    fn word(&self) -> &'static str {
        match self.status() {
            Status::Pass => "pass",
            Status::Fail => "fail",
            Status::Error => "error",
        }
    }

    fn held(&self) -> usize {
        self.tests.iter().filter(|test| test.miss.is_none()).count()
    }
}

impl Test {
    /// A case as a whole; it holds if there is no miss.
    pub fn new(case: impl Into<String>, miss: Option<Miss>) -> Test {
        Test { case: case.into(), part: None, miss }
    }

    /// What it asserts: the case, and which part of it.
    pub fn name(&self) -> String {
        self.part.as_ref().map_or(self.case.clone(), |part| format!("{}: {part}", self.case))
    }

    /// A part stands below its case.
    fn indented(&self) -> String {
        self.part.as_ref().map_or(self.case.clone(), |part| format!("  - {part}"))
    }

    fn json(&self) -> Value {
        let status = if self.miss.is_none() { "pass" } else { "fail" };
        let message = self.miss.as_ref().map(Miss::line);
        json!({"name": self.name(), "status": status, "message": message})
    }
}

impl Miss {
    fn line(&self) -> String {
        let open = self.open.as_ref().map(|file| format!("; open {file}"));
        format!("expected {}; got {}{}", self.expected, self.got, open.unwrap_or_default())
    }

    fn text(&self) -> String {
        let open = self.open.as_ref().map(|file| format!("        open:     {file}\n"));
        let (expected, got) = (&self.expected, &self.got);
        format!("        expected: {expected}\n        got:      {got}\n{}", open.unwrap_or_default())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn report(misses: &[bool]) -> Report {
        let miss = Miss { expected: "5".into(), got: "0".into(), open: Some("a.json".into()) };
        let test = |(n, missed): (usize, &bool)| Test::new(format!("t{n}"), missed.then(|| miss.clone()));
        Report { lab: "05-x".into(), tests: misses.iter().enumerate().map(test).collect(), broken: None }
    }

    #[test]
    fn only_the_first_failure_is_explained() {
        let text = report(&[false, true, true]).text();
        let wanted = "  ok    t0\n  FAIL  t1\n        expected: 5\n        got:      0\n        open:     a.json\n  \
                      FAIL  t2\nfail  05-x (1 of 3)\n";
        assert_eq!(text, wanted);
    }

    #[test]
    fn exit_codes_tell_pass_fail_and_cannot_run_apart() {
        let broken = Report { broken: Some("no git".into()), ..report(&[]) };
        assert_eq!([report(&[false]).exit(), report(&[true]).exit(), broken.exit()], [0, 1, 2]);
        assert_eq!(broken.json()["status"], "error");
        assert_eq!(report(&[true]).json()["tests"][0]["status"], "fail");
    }
}
