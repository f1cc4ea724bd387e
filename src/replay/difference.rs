//! Comparing, and saying what differs.

use super::body::at;
use super::{cut, shown};
use serde_json::Value;

/// One condition that did not hold.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Difference {
    /// The part of the request: `path`, `body /stream`, `tools`.
    pub what: String,
    /// What was wanted.
    pub expected: String,
    /// What there was.
    pub got: String,
}

/// Collects differences: one method for each way to compare.
#[derive(Default)]
pub struct Report(pub Vec<Difference>);

impl Report {
    /// Notes a difference unless `holds`.
    pub fn hold(&mut self, holds: bool, what: &str, expected: impl Into<String>, got: impl Into<String>) {
        if !holds {
            self.0.push(Difference { what: what.to_string(), expected: expected.into(), got: got.into() });
        }
    }

    /// Compares two texts.
    pub fn equal(&mut self, what: &str, expected: &str, got: &str) {
        self.hold(expected == got, what, shown(expected), shown(got));
    }

    /// Looks at the value that a pointer leads to.
    pub fn value(&mut self, body: &Value, pointer: &str, expected: &str, holds: impl Fn(Option<&Value>) -> bool) {
        let got = at(body, pointer);
        self.hold(holds(got), &format!("body {pointer}"), expected, json(got));
    }

    /// Looks at the values that two pointers lead to.
    pub fn values(
        &mut self,
        body: &Value,
        (a, b): &(String, String),
        expected: &str,
        holds: impl Fn(Option<&Value>, Option<&Value>) -> bool,
    ) {
        let (first, second) = (at(body, a), at(body, b));
        let got = format!("{} and {}", json(first), json(second));
        self.hold(holds(first, second), &format!("body {a} and {b}"), expected, got);
    }

    /// Looks for wanted and unwanted parts; `got` is only shown.
    pub fn contain(
        &mut self,
        what: &str,
        wanted: &[String],
        unwanted: &[String],
        got: &str,
        contains: impl Fn(&str) -> bool,
    ) {
        for text in wanted {
            self.hold(contains(text), what, format!("something with {}", shown(text)), shown(got));
        }
        for text in unwanted {
            self.hold(!contains(text), what, format!("nothing with {}", shown(text)), shown(got));
        }
    }
}

/// A value for a report.
fn json(value: Option<&Value>) -> String {
    value.map_or_else(|| "nothing".to_string(), |value| cut(&value.to_string()))
}
