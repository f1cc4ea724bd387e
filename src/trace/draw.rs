//! A tree with a time bar, in a terminal's 80 columns.
//!
//! The figures come first and always in the same columns, with `-` where there is none, and each step is one line: so
//! `sort -rn`, `grep ERROR` and awk answer questions about a run. What went wrong is a word and not a colour: it
//! survives a pipe, a projector and the colour-blind.

use super::{Kind, Span};
use crate::event::Usage;
use crate::terminal::sanitize;
use std::collections::{HashMap, HashSet};

/// What stands above the columns.
const HEAD: &str = "  worked   waited     in   out  timeline       step";
/// What stands below.
const LEGEND: &str = "= model  # tool  + hook  . waiting     worked, waited: seconds   in, out: tokens";
/// Cells of the time bar.
const BAR: usize = 14;
/// Columns left of a step's name.
const LEFT: usize = 48;
/// Narrower than this nothing can be read.
const NARROWEST: usize = 60;
/// Child agents of child agents end somewhere; a broken trace, in which spans are their own parents, does not.
const DEEPEST: usize = 40;

/// The spans as trees, runs in order of time. `columns` is the width of the terminal.
pub fn draw(spans: &[Span], columns: usize) -> String {
    let mut below: HashMap<&str, Vec<&Span>> = HashMap::new();
    for span in spans {
        below.entry(span.parent.as_deref().unwrap_or_default()).or_default().push(span);
    }
    below.values_mut().for_each(|spans| spans.sort_by_key(|span| span.start));
    let tree = Tree { below, columns: columns.max(NARROWEST) };
    let known: HashSet<&str> = spans.iter().map(|span| span.id.as_str()).collect();
    let is_root = |span: &&Span| span.parent.as_ref().is_none_or(|parent| !known.contains(parent.as_str()));
    let mut roots: Vec<&Span> = spans.iter().filter(is_root).collect();
    roots.sort_by_key(|span| span.start);
    let mut lines = vec![HEAD.to_owned()];
    for root in roots {
        let clock = Clock { start: root.start, ms: root.end.saturating_sub(root.start) };
        tree.draw(root, 0, &clock, &mut lines);
        lines.push(String::new());
    }
    lines.push(LEGEND.to_owned());
    lines.join("\n") + "\n"
}

/// What is part of what.
struct Tree<'a> {
    /// The parts of a span, by its id, in order of time, and of the file where that is equal.
    below: HashMap<&'a str, Vec<&'a Span>>,
    columns: usize,
}

impl Tree<'_> {
    fn draw(&self, span: &Span, depth: usize, clock: &Clock, lines: &mut Vec<String>) {
        let figures = self.figures(span, depth);
        let mark = if span.error.is_some() { "ERROR " } else { "" };
        let name = format!("{:indent$}{mark}{}", "", label(span), indent = 2 * depth);
        lines.push(format!("{} |{}| {}", figures.text(), clock.bar(span), clip(&name, self.columns - LEFT)));
        if let Some(why) = &span.error {
            let words = why.lines().find(|line| !line.trim().is_empty()).unwrap_or_default();
            lines.push(format!("         ! {}", clip(&sanitize(words.trim()), self.columns - 11))); // has no figures
        }
        if depth < DEEPEST {
            self.parts(span).iter().for_each(|part| self.draw(part, depth + 1, clock, lines));
        }
    }

    fn parts(&self, span: &Span) -> &[&Span] {
        self.below.get(span.id.as_str()).map_or(&[], Vec::as_slice)
    }

    /// The figures of a span; a run and a turn have the sums of their parts.
    fn figures(&self, span: &Span, depth: usize) -> Figures {
        let ms = span.end.saturating_sub(span.start);
        let (mut waited, mut usage) = (span.waited, span.usage);
        let parts = self.parts(span).iter().filter(|_| depth < DEEPEST);
        for part in parts.map(|part| self.figures(part, depth + 1)) {
            waited = waited.saturating_add(part.waited);
            part.usage.into_iter().for_each(|more| usage.get_or_insert_default().add(more));
        }
        Figures { worked: ms.saturating_sub(waited), waited, usage }
    }
}

/// The time from the beginning of a run to its end.
struct Clock {
    start: u64,
    ms: u64,
}

impl Clock {
    /// Which cells a span takes; waiting comes before the work.
    fn bar(&self, span: &Span) -> String {
        let from = self.cell(span.start).min(BAR - 1); // what happens at the very end shows in the last cell
        let work = self.cell(span.start.saturating_add(span.waited)).max(from);
        let to = self.cell(span.end).max(from + 1).min(BAR);
        let waits = if span.waited > span.worked() { work.max(from + 1).min(to) } else { work.min(to - 1) };
        let sign = match span.kind {
            Kind::Run | Kind::Turn => '-',
            Kind::Model => '=',
            Kind::Tool => '#',
            Kind::Hook => '+',
        };
        (0..BAR)
            .map(|at| {
                if at < from || at >= to {
                    ' '
                } else if at < waits {
                    '.'
                } else {
                    sign
                }
            })
            .collect()
    }

    fn cell(&self, at: u64) -> usize {
        let share = at.saturating_sub(self.start) as f64 / self.ms.max(1) as f64;
        ((share * BAR as f64) as usize).min(BAR)
    }
}

/// The columns on the left.
struct Figures {
    worked: u64,
    waited: u64,
    usage: Option<Usage>,
}

impl Figures {
    fn text(&self) -> String {
        let seconds = |ms: u64| format!("{}.{:03}", ms / 1000, ms % 1000);
        let waited = if self.waited == 0 { "-".into() } else { seconds(self.waited) };
        let tokens = |of: fn(&Usage) -> u64| self.usage.as_ref().map_or("-".into(), |usage| of(usage).to_string());
        let (input, output) = (tokens(|usage| usage.input), tokens(|usage| usage.output));
        format!("{:>8} {waited:>8} {input:>6} {output:>5}", seconds(self.worked))
    }
}

/// What a step is called.
fn label(span: &Span) -> String {
    let name = match span.kind {
        Kind::Run => format!("{}: {}", span.name, span.input),
        Kind::Turn => span.name.clone(),
        Kind::Model => match &span.details.get("request") {
            Some(number) => format!("request {number}"),
            None => span.name.clone(),
        },
        Kind::Tool => format!("{} {}", span.name, object(&span.input)),
        Kind::Hook => format!("hook {}", span.name),
    };
    sanitize(&name.split_whitespace().collect::<Vec<_>>().join(" ")).into_owned()
}

/// What a call is about: the first text among its arguments, which nearly always is the command or the path.
fn object(arguments: &str) -> String {
    let arguments: serde_json::Map<_, _> = serde_json::from_str(arguments).unwrap_or_default();
    let first = arguments.values().find_map(|value| value.as_str());
    first.unwrap_or_default().to_owned()
}

/// The text in so many columns, cut with three dots.
fn clip(text: &str, columns: usize) -> String {
    match text.char_indices().nth(columns) {
        None => text.trim_end().to_owned(),
        Some(_) => text.chars().take(columns.saturating_sub(3)).collect::<String>() + "...",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::trace::read;

    #[test]
    fn a_run_is_a_tree_in_80_columns() {
        let log = include_str!("../../tests/cases/trace/waiting.jsonl");
        let wanted = include_str!("../../tests/cases/trace/waiting.txt");
        let (spans, _) = read(log).unwrap();
        let drawn = draw(&spans, 80);
        assert_eq!(drawn, wanted, "\n{drawn}");
        assert!(drawn.lines().all(|line| line.chars().count() <= 80), "{drawn}");
    }

    #[test]
    fn foreign_text_is_made_visible_and_kept_on_one_line() {
        let log = r#"{"type":"start","session":"s","model":"m","at":1,"agent":null}
{"type":"message","message":{"role":"user","content":"a\nb\u001b[2J"},"finish":null,"at":1,"agent":null}
{"type":"request","turn":1,"attempt":1,"at":1,"agent":null}"#;
        let drawn = draw(&read(log).unwrap().0, 100);
        assert!(drawn.contains("agent.run: a b\\u{1b}[2J\n") && !drawn.contains('\u{1b}'), "{drawn}");
    }

    #[test]
    fn spans_that_are_their_own_parents_end() {
        let line = r#"{"trace":"t","id":"a","parent":"a","session":"s","kind":"tool","name":"x","start":5,"end":1,
            "waited":9,"error":null,"usage":null,"input":"","output":"","details":{}}"#
            .replace('\n', "");
        let other = line.replace("\"parent\":\"a\"", "\"parent\":null").replace("\"id\":\"a\"", "\"id\":\"b\"");
        assert!(draw(&read(&format!("{line}\n{other}\n")).unwrap().0, 80).contains("x"));
    }

    #[test]
    fn a_step_takes_at_least_one_cell_and_never_leaves_the_bar() {
        let clock = Clock { start: 1_000, ms: 1_400 };
        let (mut spans, _) = read(include_str!("../../tests/cases/trace/waiting.jsonl")).unwrap();
        let mut span = spans.remove(0);
        (span.kind, span.start, span.end, span.waited) = (Kind::Tool, 2_000, 2_400, 200);
        assert_eq!(clock.bar(&span), "          ..##");
        (span.start, span.end, span.waited) = (1_000, 1_000, 0);
        assert_eq!(clock.bar(&span), "#             ");
        (span.start, span.end, span.waited) = (0, 9_000, 9_000);
        assert_eq!(clock.bar(&span), "..............");
        (span.start, span.end, span.waited) = (2_400, 2_400, 0);
        assert_eq!(clock.bar(&span), "             #");
    }
}
