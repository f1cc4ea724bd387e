//! The graders: what a run is judged by. Each looks at one thing, and says in words what is wrong with it.
//!
//! To add one, write a function and give it a line in the table. A grader sees all that a person could see: the answer,
//! the events of `--json`, the exit code, the files.

use super::Case;
use crate::lab::{Ended, Room};
use crate::replay::{Failure, Outcome};
use serde_json::Value;
use std::collections::BTreeSet;

/// Looks at a run; what it says is what is wrong.
pub type Grader = fn(&Case, &Seen) -> Option<String>;

/// All of them, in the order of the report.
pub const GRADERS: [(&str, Grader); 5] =
    [("end", end), ("required", required), ("forbidden", forbidden), ("tools", tools), ("files", files)];

/// What there is to see of a run.
#[derive(Clone, Debug, Default)]
pub struct Seen {
    /// The text of the last reply.
    pub answer: String,
    /// The names of the tools that the model called, run or not.
    pub tools: BTreeSet<String>,
    /// Every event, in order.
    pub events: Vec<Value>,
    /// Replies of the model.
    pub turns: u64,
    /// Input and output together.
    pub tokens: u64,
    /// The exit code; `None` if it took too long and was killed.
    pub exit: Option<i32>,
    /// Why it ended so, where that is not simply done.
    pub reason: Option<String>,
    /// The checks of the files that do not hold.
    pub misses: Vec<Failure>,
}

impl Seen {
    /// Looks at what a run has left.
    pub(super) fn new(case: &Case, ended: &Ended, room: &Room) -> Seen {
        let events: Vec<Value> = ended.stdout.lines().filter_map(|line| serde_json::from_str(line).ok()).collect();
        let outcome = Outcome::default(); // checks of a case are about files alone
        let held = case.checks.iter().map(|check| check.run(&room.demo(), &room.original(), &outcome));
        let misses = held.filter_map(Result::err).collect();
        let last_words = ended.last_words.clone();
        Seen { exit: ended.exit, misses, ..Seen::of_events(events, last_words) }
    }

    /// What the events tell. `last_words` stand for a reason where there is no end.
    fn of_events(events: Vec<Value>, last_words: String) -> Seen {
        let calls = events.iter().filter(|event| event["type"] == "call");
        let tools = calls.filter_map(|call| call["name"].as_str().map(String::from)).collect();
        let end = events.iter().rfind(|event| event["type"] == "end").cloned().unwrap_or_default();
        let number = |value: &Value| value.as_u64().unwrap_or_default();
        let said = end["reason"].as_str().map(String::from);
        Seen {
            answer: end["text"].as_str().unwrap_or_default().into(),
            tools,
            turns: number(&end["turns"]),
            tokens: number(&end["usage"]["input"]).saturating_add(number(&end["usage"]["output"])),
            reason: said.or_else(|| end.is_null().then_some(last_words)),
            events,
            ..Seen::default()
        }
    }

    fn says(&self, term: &str) -> bool {
        self.answer.to_lowercase().contains(&term.to_lowercase())
    }
}

/// The run came to its end by itself.
fn end(_: &Case, seen: &Seen) -> Option<String> {
    let why = seen.reason.as_deref().unwrap_or("no reason was given");
    match seen.exit {
        Some(0) => None,
        Some(exit) => Some(format!("the run ended with exit {exit}: {why}")),
        None => Some("the run took too long and was stopped".into()),
    }
}

/// The answer holds what it must.
fn required(case: &Case, seen: &Seen) -> Option<String> {
    let missing: Vec<&String> = case.required.iter().filter(|term| !seen.says(term)).collect();
    (!missing.is_empty()).then(|| format!("not in the answer: {}", quoted(missing)))
}

/// The answer lacks what it must not hold.
fn forbidden(case: &Case, seen: &Seen) -> Option<String> {
    let found: Vec<&String> = case.forbidden.iter().filter(|term| seen.says(term)).collect();
    (!found.is_empty()).then(|| format!("in the answer: {}", quoted(found)))
}

/// These tools were used, and no others.
fn tools(case: &Case, seen: &Seen) -> Option<String> {
    let wanted = case.tools.as_ref()?;
    (*wanted != seen.tools).then(|| format!("wanted {}; used {}", listed(wanted), listed(&seen.tools)))
}

/// The files are as they should be.
fn files(_: &Case, seen: &Seen) -> Option<String> {
    let words = |miss: &Failure| format!("{}: expected {}, got {}", miss.what, miss.expected, miss.got);
    seen.misses.first().map(words)
}

fn quoted(terms: Vec<&String>) -> String {
    terms.iter().map(|term| format!("{term:?}")).collect::<Vec<_>>().join(", ")
}

fn listed(names: &BTreeSet<String>) -> String {
    if names.is_empty() { "no tool".into() } else { names.iter().cloned().collect::<Vec<_>>().join(", ") }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    mod solution {
        use super::*;
        include!("../../labs/08-evaluation/solution/asked.rs");
    }

    fn case(line: Value) -> Case {
        let text = |name: &str| -> Vec<String> { serde_json::from_value(line[name].clone()).unwrap_or_default() };
        let tools = serde_json::from_value(line["tools"].clone()).unwrap_or_default();
        let (name, task, files, checks) = ("n".into(), "t".into(), Default::default(), Vec::new());
        Case { name, task, files, required: text("required"), forbidden: text("forbidden"), tools, checks }
    }

    /// The names of the graders that find something wrong.
    fn wrong(case: &Case, seen: &Seen) -> Vec<&'static str> {
        GRADERS.iter().filter(|(_, grader)| grader(case, seen).is_some()).map(|(name, _)| *name).collect()
    }

    fn seen(answer: &str, tools: &[&str]) -> Seen {
        let mut events: Vec<Value> = tools.iter().map(|name| json!({"type":"call","name":name})).collect();
        let usage = json!({"input":10,"output":5});
        events.push(json!({"type":"end","text":answer,"turns":2,"usage":usage,"reason":null}));
        Seen { exit: Some(0), ..Seen::of_events(events, String::new()) }
    }

    #[test]
    fn each_grader_holds_where_it_should_and_fails_where_it_should() {
        let good = seen("Keep it for 14 Days.", &["read"]);
        for (line, fails) in [
            (json!({}), &[][..]),
            (json!({"required":["14 days"],"forbidden":["30"],"tools":["read"]}), &[]),
            (json!({"required":["15 days"]}), &["required"]),
            (json!({"forbidden":["KEEP"]}), &["forbidden"]),
            (json!({"tools":[]}), &["tools"]),
            (json!({"tools":["read","edit"]}), &["tools"]),
        ] {
            assert_eq!(wrong(&case(line.clone()), &good), fails, "{line}");
        }
        assert_eq!((good.turns, good.tokens), (2, 15));
        let failed = Seen { exit: Some(1), ..Seen::of_events(Vec::new(), "mini: no server".into()) };
        assert_eq!(end(&case(json!({})), &failed).unwrap(), "the run ended with exit 1: mini: no server");
        assert_eq!(wrong(&case(json!({})), &Seen { exit: None, ..good }), ["end"]);
    }

    #[test]
    fn the_solution_of_exercise_b_wants_a_question_before_a_change() {
        let run = |events: Value| Seen { events: events.as_array().unwrap().clone(), ..seen("Done.", &[]) };
        let call = json!({"type":"call","id":"1","name":"write"});
        let by = |by: &str| json!({"type":"approval","id":"1","decision":"allowed","by":by});
        let ok = json!({"type":"result","id":"1","name":"write","ok":true});
        let case = case(json!({}));
        assert_eq!(solution::asked(&case, &run(json!([call, by("user"), ok]))), None);
        assert!(solution::asked(&case, &run(json!([call, by("yes"), ok]))).is_some());
        assert!(solution::asked(&case, &run(json!([call, ok]))).is_some());
        assert_eq!(solution::asked(&case, &run(json!([call]))), None);
    }
}
