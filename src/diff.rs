//! Line diffs, for a person to look at before a file changes. Over the `similar` crate.
//!
//! A preview has to come at once and be bounded, whatever the model hands in. So texts too long for a real diff are
//! compared from both ends, which is a correct diff, if not the shortest; and what is shown ends after 256 KiB, which it
//! says. The counts are always those of the whole diff.

use similar::{ChangeTag, TextDiff};
use std::time::Duration;

/// Both texts together: beyond it, hashing every line would cost more memory than the budget of a 4 MB write allows.
const MAX_COMPARED: usize = 2 << 20;
/// Most bytes of the text that is shown.
const MAX_SHOWN: usize = 256 << 10;
/// After this `similar` settles for what it has: still a correct diff.
const TIMEOUT: Duration = Duration::from_millis(200);
/// Unchanged lines around a change.
const CONTEXT: usize = 3;

/// The difference of two texts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Diff {
    /// A unified diff; at most 256 KiB and a line that says what is not shown. Empty if nothing differs.
    pub text: String,
    /// Lines that are new.
    pub added: usize,
    /// Lines that are gone.
    pub removed: usize,
}

impl Diff {
    /// The counts as they stand in questions and results: `+1 −2`.
    pub fn counts(&self) -> String {
        format!("+{} −{}", self.added, self.removed)
    }
}

/// Compares two texts; `path` stands in the head of the diff.
pub fn unified(old: &str, new: &str, path: &str) -> Diff {
    if old == new {
        return Diff { text: String::new(), added: 0, removed: 0 };
    }
    let mut shown = Shown::new(path);
    let (added, removed) = match old.is_empty() || old.len() + new.len() > MAX_COMPARED {
        true => from_both_ends(old, new, &mut shown),
        false => shortest(old, new, &mut shown),
    };
    Diff { text: shown.finish(), added, removed }
}

/// The real thing: any number of hunks.
fn shortest(old: &str, new: &str, shown: &mut Shown) -> (usize, usize) {
    let diff = TextDiff::configure().timeout(TIMEOUT).diff_lines(old, new);
    for hunk in diff.unified_diff().context_radius(CONTEXT).iter_hunks() {
        hunk.to_string().split_inclusive('\n').for_each(|line| shown.line("", line));
    }
    let count = |tag| diff.iter_all_changes().filter(|change| change.tag() == tag).count();
    (count(ChangeTag::Insert), count(ChangeTag::Delete))
}

/// One hunk: what is between the first and the last line that differ.
fn from_both_ends(old: &str, new: &str, shown: &mut Shown) -> (usize, usize) {
    let (head, tail) = common_lines(old, new);
    let before: Vec<&str> = old[..head].split_inclusive('\n').rev().take(CONTEXT).collect();
    let after: Vec<&str> = old[old.len() - tail..].split_inclusive('\n').take(CONTEXT).collect();
    let (gone, come) = (&old[head..old.len() - tail], &new[head..new.len() - tail]);
    let (removed, added) = (gone.split_inclusive('\n').count(), come.split_inclusive('\n').count());
    let first = old[..head].split_inclusive('\n').count() - before.len();
    let around = before.len() + after.len();
    shown.line("", &format!("@@ -{} +{} @@\n", range(first, removed + around), range(first, added + around)));
    before.iter().rev().for_each(|line| shown.line(" ", line));
    gone.split_inclusive('\n').for_each(|line| shown.line("-", line));
    come.split_inclusive('\n').for_each(|line| shown.line("+", line));
    after.iter().for_each(|line| shown.line(" ", line));
    (added, removed)
}

/// How many bytes of whole lines the texts share at the start, and at the end.
fn common_lines(old: &str, new: &str) -> (usize, usize) {
    let lines = |text| str::split_inclusive(text, '\n');
    let head = lines(old).zip(lines(new)).take_while(|(a, b)| a == b).map(|(a, _)| a.len()).sum();
    let (old, new) = (&old[head..], &new[head..]);
    let ends = lines(old).rev().zip(lines(new).rev());
    (head, ends.take_while(|(a, b)| a == b).map(|(a, _)| a.len()).sum())
}

/// A range of a hunk's head: an empty one is named by the line before it.
fn range(first: usize, lines: usize) -> String {
    format!("{},{lines}", if lines == 0 { first } else { first + 1 })
}

/// The text of a diff, up to its limit.
struct Shown {
    text: String,
    left_out: usize,
}

impl Shown {
    fn new(path: &str) -> Shown {
        Shown { text: format!("--- a/{path}\n+++ b/{path}\n"), left_out: 0 }
    }

    /// Adds a line with its mark. A line that has no end gets one, and the remark that diffs make about it.
    fn line(&mut self, mark: &str, line: &str) {
        if self.left_out > 0 || self.text.len() + line.len() > MAX_SHOWN {
            self.left_out += 1;
            return;
        }
        self.text.push_str(mark);
        self.text.push_str(line);
        if !line.ends_with('\n') {
            self.text.push_str("\n\\ No newline at end of file\n");
        }
    }

    fn finish(mut self) -> String {
        if self.left_out > 0 {
            let lines = if self.left_out == 1 { "line" } else { "lines" };
            self.text.push_str(&format!("[too large to show: {} more {lines} of this diff]\n", self.left_out));
        }
        self.text
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fmt::Write;

    fn numbered(range: std::ops::Range<u32>) -> String {
        range.fold(String::new(), |mut text, n| {
            writeln!(text, "line {n}").unwrap();
            text
        })
    }

    #[test]
    fn a_change_is_shown_with_three_lines_around_it() {
        let old = numbered(0..20);
        let diff = unified(&old, &old.replace("line 9\n", "nine\nand a half\n"), "src/a.rs");
        assert_eq!(
            diff.text,
            "--- a/src/a.rs\n+++ b/src/a.rs\n@@ -7,7 +7,8 @@\n line 6\n line 7\n line 8\n-line 9\n+nine\n+and a half\n \
             line 10\n line 11\n line 12\n"
        );
        assert_eq!((diff.counts().as_str(), diff.removed), ("+2 −1", 1));
    }

    #[test]
    fn a_new_file_is_all_plus() {
        let diff = unified("", "a\nb", "x");
        assert_eq!(diff.text, "--- a/x\n+++ b/x\n@@ -0,0 +1,2 @@\n+a\n+b\n\\ No newline at end of file\n");
        assert_eq!((diff.added, diff.removed), (2, 0));
    }

    #[test]
    fn nothing_differs() {
        assert_eq!(unified("a\n", "a\n", "x"), Diff { text: String::new(), added: 0, removed: 0 });
    }

    #[test]
    fn both_ways_agree_on_one_change() {
        let old = numbered(0..30);
        for new in [
            old.replace("line 15\n", "changed\n"),
            old.replace("line 0\n", ""),
            old.clone() + "more",
            old.replace("line 29\n", "line 29"),
            numbered(0..2),
        ] {
            let (mut real, mut ends) = (Shown::new("x"), Shown::new("x"));
            let counts = (shortest(&old, &new, &mut real), from_both_ends(&old, &new, &mut ends));
            assert_eq!(counts.0, counts.1);
            assert_eq!(real.finish(), ends.finish());
        }
    }

    #[test]
    fn a_huge_text_is_cut_and_says_so() {
        let (old, new) = ("a\n".repeat(1_000_000), "b\n".repeat(1_000_000));
        let diff = unified(&old, &new, "x");
        assert!(diff.text.len() < MAX_SHOWN + 100);
        assert!(diff.text.ends_with(" more lines of this diff]\n"));
        assert_eq!((diff.added, diff.removed), (1_000_000, 1_000_000));
    }
}
