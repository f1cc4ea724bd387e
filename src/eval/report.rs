//! The report: versions side by side, as a table and as JSON. No times, no paths: two runs that went alike look alike.

use super::grade::{GRADERS, Seen};
use super::{Case, Plan};
use serde::Serialize;

/// How every version did in every case.
#[derive(Clone, Debug, Serialize)]
pub struct Report {
    /// `pass`, or `fail` if any run did not do well.
    status: &'static str,
    versions: Vec<Total>,
    cases: Vec<Row>,
}

/// A version over all cases.
#[derive(Clone, Debug, Serialize)]
struct Total {
    name: String,
    status: &'static str,
    passed: usize,
    turns: u64,
    tokens: u64,
}

/// A case over all versions.
#[derive(Clone, Debug, Serialize)]
struct Row {
    name: String,
    task: String,
    results: Vec<Score>,
}

/// How one version did in one case.
#[derive(Clone, Debug, Serialize)]
pub struct Score {
    version: String,
    status: &'static str,
    /// What is wrong, each with the grader's name.
    misses: Vec<String>,
    turns: u64,
    tokens: u64,
}

impl Score {
    /// Grades a run.
    pub(super) fn new(version: &str, case: &Case, seen: &Seen) -> Score {
        let misses: Vec<String> =
            GRADERS.iter().filter_map(|(name, grader)| Some(format!("{name}: {}", grader(case, seen)?))).collect();
        let status = word(misses.is_empty());
        Score { version: version.into(), status, misses, turns: seen.turns, tokens: seen.tokens }
    }

    /// `pass` or `fail`.
    pub fn word(&self) -> &'static str {
        self.status
    }
}

fn word(passed: bool) -> &'static str {
    if passed { "pass" } else { "fail" }
}

impl Report {
    /// A report without results yet.
    pub(super) fn new(plan: &Plan) -> Report {
        let total = |name: &String| Total { name: name.clone(), status: "pass", passed: 0, turns: 0, tokens: 0 };
        let row = |case: &Case| Row { name: case.name.clone(), task: case.task.clone(), results: Vec::new() };
        Report {
            status: "pass",
            versions: plan.versions.iter().map(|version| total(&version.name)).collect(),
            cases: plan.cases.iter().map(row).collect(),
        }
    }

    /// Adds the result of a version in the case of this row, in the order of the versions.
    pub(super) fn add(&mut self, row: usize, score: Score) {
        if let Some(total) = self.versions.iter_mut().find(|total| total.name == score.version) {
            total.turns += score.turns;
            total.tokens = total.tokens.saturating_add(score.tokens);
            match score.status {
                "pass" => total.passed += 1,
                _ => (total.status, self.status) = ("fail", "fail"),
            }
        }
        self.cases[row].results.push(score);
    }

    /// How many results there are.
    pub(super) fn count(&self) -> usize {
        self.cases.iter().map(|row| row.results.len()).sum()
    }

    /// The exit code: 0 all passed, 1 not all.
    pub fn exit(&self) -> u8 {
        u8::from(self.status == "fail")
    }

    /// The report for a script, on one line.
    pub fn json(&self) -> String {
        // Texts and numbers of our own types cannot fail to serialise.
        serde_json::to_string(self).unwrap_or_default()
    }

    /// The table, then what is wrong, then the totals.
    pub fn text(&self) -> String {
        let rows = self.cases.iter().map(|row| {
            let cells = row.results.iter().map(|score| cell(score.status, score.turns, score.tokens));
            std::iter::once(row.name.clone()).chain(cells).collect()
        });
        let head = std::iter::once("case".to_owned()).chain(self.versions.iter().map(|total| total.name.clone()));
        let total =
            |total: &Total| cell(&format!("{} of {}", total.passed, self.cases.len()), total.turns, total.tokens);
        let foot = std::iter::once("all".to_owned()).chain(self.versions.iter().map(total)).collect();
        let table: Vec<Vec<String>> = std::iter::once(head.collect()).chain(rows).chain([foot]).collect();
        aligned(&table) + &self.wrong()
    }

    fn wrong(&self) -> String {
        let mut text = String::new();
        for row in &self.cases {
            for score in row.results.iter().filter(|score| !score.misses.is_empty()) {
                text.push_str(&format!("\n{} · {}\n", row.name, score.version));
                score.misses.iter().for_each(|miss| text.push_str(&format!("  {miss}\n")));
            }
        }
        text
    }
}

fn cell(what: &str, turns: u64, tokens: u64) -> String {
    let plural = if turns == 1 { " " } else { "s" };
    format!("{what}  {turns} turn{plural}  {tokens} tokens")
}

/// Columns side by side.
fn aligned(table: &[Vec<String>]) -> String {
    let columns = table.first().map_or(0, Vec::len);
    let width = |at: usize| table.iter().filter_map(|row| row.get(at)).map(|cell| cell.chars().count()).max();
    let widths: Vec<usize> = (0..columns).map(|at| width(at).unwrap_or(0)).collect();
    let line = |row: &Vec<String>| {
        let cells: Vec<String> = row.iter().zip(&widths).map(|(cell, width)| format!("{cell:<width$}")).collect();
        cells.join("   ").trim_end().to_owned() + "\n"
    };
    table.iter().map(line).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn report() -> Report {
        let total = |name: &str| Total { name: name.into(), status: "pass", passed: 0, turns: 0, tokens: 0 };
        let row = |name: &str| Row { name: name.into(), task: "t".into(), results: Vec::new() };
        let mut report =
            Report { status: "pass", versions: vec![total("v1"), total("v2")], cases: vec![row("a case")] };
        let score = |version: &str, misses: &[&str]| Score {
            version: version.into(),
            status: word(misses.is_empty()),
            misses: misses.iter().map(|miss| miss.to_string()).collect(),
            turns: 1,
            tokens: 500,
        };
        report.add(0, score("v1", &[]));
        report.add(0, score("v2", &["tools: wanted no tool; used read"]));
        report
    }

    #[test]
    fn versions_stand_side_by_side_and_what_is_wrong_below() {
        let wanted = "\
case     v1                             v2
a case   pass  1 turn   500 tokens     fail  1 turn   500 tokens
all      1 of 1  1 turn   500 tokens   0 of 1  1 turn   500 tokens

a case · v2
  tools: wanted no tool; used read
";
        let text = report().text();
        assert_eq!(text.split_whitespace().collect::<Vec<_>>(), wanted.split_whitespace().collect::<Vec<_>>());
        let at = |line: &str, word: &str| line.chars().count() - line.split(word).last().unwrap().chars().count();
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(at(lines[0], "v2") - 2, at(lines[1], "fail") - 4, "{text}");
    }

    #[test]
    fn one_failure_makes_the_version_and_the_report_fail() {
        let report = report();
        let json = report.json();
        assert!(json.contains(r#""name":"v1","status":"pass","passed":1"#), "{json}");
        assert!(json.contains(r#""name":"v2","status":"fail","passed":0"#), "{json}");
        assert!(json.starts_with(r#"{"status":"fail""#) && report.exit() == 1);
    }
}
