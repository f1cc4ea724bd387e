//! What a running command has printed so far: its first lines are shown as they come, the rest is counted.

use super::folding::settled;

/// Lines of a running command that are shown as they come; the rest is counted.
const LIVE_LINES: usize = 10;

/// Bytes of a line without an end that are kept.
const ENDLESS: usize = 16 << 10;

/// What a running command has printed so far.
#[derive(Default)]
pub struct Live {
    lines: Vec<String>,
    /// A line whose end has not come yet.
    rest: String,
    /// Lines that were counted and not shown.
    pub hidden: usize,
}

impl Live {
    /// Takes what was printed, and returns the lines of it that are shown now. A line that will not end is one.
    pub fn take(&mut self, delta: &str) -> Vec<String> {
        self.rest.push_str(delta);
        let end = if self.rest.len() > ENDLESS { Some(self.rest.len() - 1) } else { self.rest.rfind('\n') };
        let Some(end) = end else { return Vec::new() };
        let whole: String = self.rest.drain(..=end).collect();
        let mut lines: Vec<String> = whole.lines().map(|line| settled(line).into()).collect();
        let room = LIVE_LINES.saturating_sub(self.lines.len());
        self.hidden += lines.len().saturating_sub(room);
        lines.truncate(room);
        self.lines.extend(lines.iter().cloned());
        lines
    }

    /// What a result says beyond what was shown. Behind counted lines only its last one is new: how the command ended.
    pub fn beyond(&self, result: &str) -> String {
        if self.hidden > 0 {
            return result.lines().last().unwrap_or_default().into();
        }
        let shown = |line: &str| self.lines.iter().any(|known| known.trim_end() == settled(line).trim_end());
        let rest: Vec<&str> = result.lines().filter(|line| self.lines.is_empty() || !shown(line)).collect();
        rest.join("\n")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_shown_when_they_end_up_to_a_number() {
        let mut live = Live::default();
        assert_eq!(live.take("a\nb"), ["a"]);
        assert_eq!(live.take("c\n"), ["bc"]);
        assert_eq!(live.take(&"x\n".repeat(20)).len(), LIVE_LINES - 2);
        assert_eq!(live.hidden, 22 - LIVE_LINES);
        assert_eq!(live.beyond("a\nbc\nx\n[exit status 1]"), "[exit status 1]");
    }

    #[test]
    fn a_line_that_will_not_end_is_not_kept_for_ever() {
        let mut live = Live::default();
        (0..100).for_each(|_| drop(live.take(&"é".repeat(1000))));
        assert!(live.rest.len() <= ENDLESS);
    }

    #[test]
    fn a_result_is_all_new_where_nothing_was_shown() {
        assert_eq!(Live::default().beyond("a\n\nb"), "a\n\nb");
    }
}
