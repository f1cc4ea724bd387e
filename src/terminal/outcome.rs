//! What came of a call, in few lines: its first lines behind a bar, and behind a corner how it ended.
//!
//! A running command's lines come one by one, and its result repeats them; every other result comes whole. Both look
//! the same when they are over. What a tool remarks in square brackets at the end of a result (`[exit status 1]`) is
//! how it ended, and no line of it.

use super::folding::{fold, settled, thousands};

/// Lines of a running command that are shown as they come; the rest is counted.
const LIVE_LINES: usize = 10;

/// Lines of any other result that are shown.
const RESULT_LINES: usize = 3;

/// Bytes of a line without an end that are kept.
const ENDLESS: usize = 16 << 10;

/// What a running command has printed so far; nothing for a tool that prints nothing.
#[derive(Default)]
pub struct Live {
    shown: usize,
    /// The newest line, shown or not.
    newest: String,
    /// A line whose end has not come yet.
    rest: String,
    /// Lines that were counted and not shown.
    pub hidden: usize,
}

/// A result, as far as it has not been shown yet.
#[derive(Debug, PartialEq, Eq)]
pub struct Finished {
    /// Lines for the bar.
    pub lines: Vec<String>,
    /// Words for the corner.
    pub ending: String,
}

impl Live {
    /// Takes what was printed, and returns the lines of it that are shown now. A line that will not end is one.
    pub fn take(&mut self, delta: &str) -> Vec<String> {
        self.rest.push_str(delta);
        let end = if self.rest.len() > ENDLESS { Some(self.rest.len() - 1) } else { self.rest.rfind('\n') };
        let Some(end) = end else { return Vec::new() };
        let whole: String = self.rest.drain(..=end).collect();
        let mut lines: Vec<String> = whole.lines().map(|line| settled(line).into()).collect();
        self.newest = lines.last().cloned().unwrap_or_default();
        let room = LIVE_LINES.saturating_sub(self.shown);
        self.hidden += lines.len().saturating_sub(room);
        lines.truncate(room);
        self.shown += lines.len();
        lines
    }

    /// The call is over, and this is its result.
    pub fn finish(mut self, ok: bool, text: &str) -> Finished {
        let mut lines = if self.rest.is_empty() { Vec::new() } else { self.take("\n") };
        let (body, remarks) = without_remarks(text, &self.newest);
        let was_live = self.shown > 0;
        if !was_live {
            let (first, hidden) = fold(&body, RESULT_LINES);
            if let ([only], "") = (first.as_slice(), remarks.as_str()) {
                return Finished { lines, ending: only.to_string() };
            }
            lines = first.into_iter().map(String::from).collect();
            (self.shown, self.hidden) = (lines.len(), hidden);
        }
        let status = match (remarks.as_str(), ok) {
            ("", true) => "done",
            ("", false) => "failed",
            (remarks, _) => remarks,
        };
        // Where the result says first that lines are missing from it, their number is not ours to count.
        let all = if body.starts_with('[') && was_live { None } else { Some(self.shown + self.hidden) };
        let extent = match (self.hidden, all) {
            (0, _) => String::new(),
            (_, Some(all)) => format!(" · {} of {} lines shown", self.shown, thousands(all as u64)),
            (_, None) => format!(" · the first {} lines shown", self.shown),
        };
        Finished { lines, ending: format!("{status}{extent}") }
    }
}

/// A result, and the remarks in square brackets at its end. What the command itself printed last is no remark.
fn without_remarks(text: &str, printed: &str) -> (String, String) {
    let mut lines: Vec<&str> = text.lines().collect();
    let mut remarks = Vec::new();
    let is_remark = |line: &&str| line.starts_with('[') && line.ends_with(']') && *line != printed;
    while let Some(remark) = lines.pop_if(|line| is_remark(&&**line)) {
        remarks.insert(0, remark);
    }
    (lines.join("\n"), remarks.join(" "))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn finished(lines: &[&str], ending: &str) -> Finished {
        Finished { lines: lines.iter().map(|line| line.to_string()).collect(), ending: ending.into() }
    }

    /// A result of a tool that prints nothing while it works.
    fn of(ok: bool, text: &str) -> Finished {
        Live::default().finish(ok, text)
    }

    #[test]
    fn lines_are_shown_when_they_end_up_to_a_number() {
        let mut live = Live::default();
        assert_eq!(live.take("a\nb"), ["a"]);
        assert_eq!(live.take("c\n"), ["bc"]);
        assert_eq!(live.take(&"x\n".repeat(20)).len(), LIVE_LINES - 2);
        assert_eq!(live.hidden, 22 - LIVE_LINES);
        let text = format!("a\nbc\n{}[exit status 1]", "x\n".repeat(20));
        assert_eq!(live.finish(false, &text), finished(&[], "[exit status 1] · 10 of 22 lines shown"));
    }

    #[test]
    fn a_line_that_will_not_end_is_not_kept_for_ever() {
        let mut live = Live::default();
        (0..100).for_each(|_| drop(live.take(&"é".repeat(1000))));
        assert!(live.rest.len() <= ENDLESS);
    }

    #[test]
    fn an_unfinished_last_line_is_shown_at_the_end() {
        let mut live = Live::default();
        assert_eq!(live.take("a\nb"), ["a"]);
        assert_eq!(live.finish(true, "a\nb"), finished(&["b"], "done"));
    }

    #[test]
    fn a_line_in_brackets_that_the_command_printed_is_no_remark() {
        let mut live = Live::default();
        live.take("[1]\n[2]\n");
        assert_eq!(live.finish(false, "[1]\n[2]\n[exit status 1]"), finished(&[], "[exit status 1]"));
        let mut live = Live::default();
        live.take("[1]\n[2]\n");
        assert_eq!(live.finish(true, "[1]\n[2]\n"), finished(&[], "done"));
    }

    #[test]
    fn lines_that_are_missing_from_the_result_are_not_counted() {
        let mut live = Live::default();
        live.take(&"x\n".repeat(3000));
        let ended = live.finish(true, "[the last 2 of 9000 lines (18000 bytes); read all of it in F]\nx\nx\n");
        assert_eq!(ended, finished(&[], "done · the first 10 lines shown"));
    }

    #[test]
    fn other_results_show_their_first_lines_and_a_single_line_is_the_ending() {
        assert_eq!(of(true, "edited a.rs (+1 −1)"), finished(&[], "edited a.rs (+1 −1)"));
        assert_eq!(of(true, "a\nb\n"), finished(&["a", "b"], "done"));
        assert_eq!(of(true, "1\n2\n3\n4\n5\n"), finished(&["1", "2", "3"], "done · 3 of 5 lines shown"));
        assert_eq!(of(true, "a\n[1 of 2 lines]"), finished(&["a"], "[1 of 2 lines]"));
        assert_eq!(of(true, "[no output]"), finished(&[], "[no output]"));
        assert_eq!((of(true, " \n"), of(false, "")), (finished(&[], "done"), finished(&[], "failed")));
    }
}
