//! write: a whole file, new or in place of an old one. All or nothing, and only after a look at the diff.

use super::change::{self, Change, display};
use super::text;
use crate::diff::Diff;
use crate::tool::{Check, Context, Json, Spec, Tool};
use crate::workspace::{Place, Seen, Trouble};
use serde_json::json;

/// A larger old file is not read for a diff: the question says so and shows the new text alone.
const MAX_OLD: u64 = 4 << 20;

/// The tool.
pub struct Write;

impl Tool for Write {
    fn spec(&self) -> Spec {
        Spec {
            name: "write".into(),
            description: "Create a file, or replace all of it. Makes missing directories.".into(),
            parameters: json!({"type": "object", "required": ["path", "content"], "properties": {
                "path": {"type": "string"}, "content": {"type": "string"}}}),
            read_only: true, // what changes something has a question
        }
    }

    fn check<'a>(&'a mut self, args: &Json, cx: &mut Context) -> Check<'a> {
        propose(text(args, "path"), text(args, "content"), cx).unwrap_or_else(Check::from)
    }
}

fn propose(path: &str, content: &str, cx: &Context) -> Result<Check<'static>, Trouble> {
    let place = cx.workspace.resolve(path, "write")?;
    let new = content.as_bytes();
    let (done, seen, diff) = match place.exists() {
        false => ("created", Seen::Absent, change::diff(b"", new, &place)),
        true => match change::snapshot(&cx.workspace, &place, "write", MAX_OLD)? {
            (_, Ok(old)) if old == new => return Ok(unchanged(&place)),
            (seen, Ok(old)) => ("overwrote", seen, change::diff(&old, new, &place)),
            (seen, Err(size)) => ("overwrote", seen, without_old(size, new, &place)),
        },
    };
    let report = format!("{done} {} ({})", display(&place), diff.counts());
    Ok(Change { verb: "write", place, seen, new: new.into() }.ask(diff, move |_| report))
}

/// Nobody is asked about a change that is none.
fn unchanged(place: &Place) -> Check<'static> {
    let report = format!("unchanged: {} already holds exactly this", display(place));
    Check::Run(Box::new(move |_| Ok(report)))
}

fn without_old(size: u64, new: &[u8], place: &Place) -> Diff {
    let Diff { text, added, .. } = change::diff(b"", new, place);
    Diff {
        text: format!("[the old text ({size} bytes) is too large to compare; all of it would go]\n{text}"),
        added,
        removed: 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tool::{Failure, Preview};
    use crate::tools::tests::{Bench, asked, refused};
    use std::fs;

    fn write(bench: &mut Bench, path: &str, content: &str) -> Result<String, Failure> {
        bench.call(&mut Write, json!({"path": path, "content": content}))
    }

    #[test]
    fn creates_a_file_and_its_directories() {
        let mut bench = Bench::new();
        assert_eq!(write(&mut bench, "a/b/c.txt", "one\ntwo"), Ok("created a/b/c.txt (+2 −0)".into()));
        assert_eq!(fs::read(bench.path("a/b/c.txt")).unwrap(), b"one\ntwo");
        assert_eq!(bench.cx.changed, ["a/b/c.txt"]);
    }

    #[test]
    fn overwrites_after_showing_a_diff() {
        let mut bench = Bench::new();
        bench.file("a.txt", "one\ntwo\n");
        let question = asked(Write.check(&json!({"path": "a.txt", "content": "one\n2\n"}), &mut bench.cx));
        assert_eq!(question.text, "write a.txt (+1 −1)");
        assert!(matches!(question.preview, Preview::Diff(text) if text.ends_with(" one\n-two\n+2\n")));
        assert_eq!(write(&mut bench, "./a.txt", "one\n2\n"), Ok("overwrote a.txt (+1 −1)".into()));
        assert_eq!(bench.cx.changed, ["a.txt"]);
    }

    #[test]
    fn the_same_content_asks_nobody_and_changes_nothing() {
        let mut bench = Bench::new();
        bench.file("a.txt", "one\n");
        let result = bench.at_once(&mut Write, json!({"path": "a.txt", "content": "one\n"}));
        assert_eq!(result, Ok("unchanged: a.txt already holds exactly this".into()));
        assert!(bench.cx.changed.is_empty());
    }

    #[test]
    fn a_file_that_changes_while_the_question_is_open_is_left_alone() {
        let mut bench = Bench::new();
        bench.file("a.txt", "one\n");
        let mut tool = Write;
        let Check::Ask(_, act) = tool.check(&json!({"path": "a.txt", "content": "two\n"}), &mut bench.cx) else {
            panic!("no question")
        };
        fs::write(bench.path("a.txt"), "somebody else's\n").unwrap();
        let Err(Failure::Error(why)) = act(&mut bench.cx) else { panic!("written over") };
        assert!(why.contains("changed since it was shown"), "{why}");
        assert_eq!(fs::read(bench.path("a.txt")).unwrap(), b"somebody else's\n");
        assert!(bench.cx.changed.is_empty());
    }

    #[test]
    fn protected_and_outside_paths_are_refused_and_a_directory_is_an_error() {
        let mut bench = Bench::new();
        fs::create_dir(bench.path("d")).unwrap();
        for path in [".env", "../x", ".git/config", "/etc/passwd"] {
            refused(Write.check(&json!({"path": path, "content": ""}), &mut bench.cx));
        }
        let Check::Bad(why) = Write.check(&json!({"path": "d", "content": ""}), &mut bench.cx) else {
            panic!("a directory")
        };
        assert!(why.contains("is a directory"), "{why}");
    }

    #[test]
    fn a_large_old_file_is_not_read_for_the_diff() {
        let mut bench = Bench::new();
        bench.file("a.txt", "x".repeat(MAX_OLD as usize + 1));
        let question = asked(Write.check(&json!({"path": "a.txt", "content": "y\n"}), &mut bench.cx));
        assert!(
            matches!(question.preview, Preview::Diff(text) if text.starts_with("[the old text (4194305 bytes) is too large"))
        );
    }
}
