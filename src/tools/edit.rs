//! edit: one piece of a file in place of another. The piece must be unique, or nothing happens.
//!
//! One edit a call, and no line numbers: models miscount lines, but they can repeat text. Several edits are several calls
//! in one reply. Works on bytes, so what is not UTF-8 elsewhere in the file survives.

mod find;
mod nearest;
mod splice;

use super::change::{self, Change, display};
use super::text;
use crate::tool::{Check, Context, Json, Spec, Tool};
use crate::workspace::{Kind, Trouble};
use find::{Found, How, MANY};
use serde_json::json;

/// The whole file is held in memory, old and new.
const MAX_FILE: u64 = 16 << 20;
/// Most lines of the result that are shown.
const SHOWN: usize = 12;
/// Most places of an ambiguous `old_text` that are named.
const NAMED: usize = 10;
/// Most characters of a line that are shown.
const WIDTH: usize = 200;

/// The tool.
pub struct Edit;

impl Tool for Edit {
    fn spec(&self) -> Spec {
        Spec {
            name: "edit".into(),
            description: "Replace one piece of a file. old_text must occur exactly once: give enough lines around it."
                .into(),
            parameters: json!({"type": "object", "required": ["path", "old_text", "new_text"], "properties": {
                "path": {"type": "string"}, "old_text": {"type": "string"}, "new_text": {"type": "string"}}}),
            read_only: true, // what changes something has a question
        }
    }

    fn check<'a>(&'a mut self, args: &Json, cx: &mut Context) -> Check<'a> {
        propose(text(args, "path"), text(args, "old_text"), text(args, "new_text"), cx).unwrap_or_else(Check::from)
    }
}

fn propose(path: &str, old_text: &str, new_text: &str, cx: &Context) -> Result<Check<'static>, Trouble> {
    let bad = |why: &str| Trouble::Error(format!("edit {path:?}: {why}"));
    let place = cx.workspace.resolve(path, "edit")?;
    match () {
        () if place.kind() == Kind::Missing => return Err(bad("not found; a new file is made with write")),
        () if old_text.is_empty() => return Err(bad("old_text is empty; write replaces a whole file")),
        () if old_text == new_text => return Err(bad("old_text and new_text are the same")),
        () => {}
    }
    let (seen, file) = change::snapshot(&cx.workspace, &place, "edit", MAX_FILE)?;
    let file = file.map_err(|size| bad(&format!("has {size} bytes; edit takes at most {MAX_FILE}")))?;
    let (new, how) = replaced(&file, old_text, new_text).map_err(|why| bad(&why))?;
    let diff = change::diff(&file, &new, &place);
    let head = format!("edited {} ({}){}", display(&place), diff.counts(), note(how));
    let shown = changed_lines(&file, &new);
    Ok(Change { verb: "edit", place, seen, new }.ask(diff, move |_| head + &shown))
}

/// The file's new bytes.
fn replaced(file: &[u8], old: &str, new: &str) -> Result<(Vec<u8>, How), String> {
    let (place, how) = match find::find(file, old) {
        Found::Once(place, how) => (place, how),
        Found::Several(starts) => return Err(ambiguous(file, &starts)),
        Found::Nowhere => return Err(format!("old_text was not found. {}", nearest::nearest(file, old))),
    };
    let middle = splice::splice(file, place.clone(), old, new);
    if file[place.clone()] == middle {
        return Err(
            "the file would not change: but for line endings, which edit keeps, new_text is there already".into()
        );
    }
    Ok(([&file[..place.start], &middle, &file[place.end..]].concat(), how))
}

fn note(how: How) -> &'static str {
    match how {
        How::Exact => "",
        How::Tolerant => "; old_text matched but for line endings, blanks at line ends or typographic characters",
    }
}

fn ambiguous(file: &[u8], starts: &[usize]) -> String {
    let lines = starts.iter().take(NAMED).map(|start| line_number(file, *start).to_string());
    let more = if starts.len() > NAMED { ", …" } else { "" };
    let count = if starts.len() == MANY { format!("{MANY} times or more") } else { format!("{} times", starts.len()) };
    let lines = lines.collect::<Vec<_>>().join(", ");
    format!("old_text occurs {count}, at lines {lines}{more}; add lines around it until it is unique")
}

/// The number, from 1, of the line that holds this byte.
fn line_number(file: &[u8], at: usize) -> usize {
    file[..at].iter().filter(|byte| **byte == b'\n').count() + 1
}

/// The lines of `new` that differ from `old`, numbered; the line where something went, if nothing came.
fn changed_lines(old: &[u8], new: &[u8]) -> String {
    let head = old.iter().zip(new).take_while(|(a, b)| a == b).count();
    let tail = old[head..].iter().rev().zip(new[head..].iter().rev()).take_while(|(a, b)| a == b).count();
    let (first, last) = (line_number(new, head), line_number(new, (new.len() - tail).saturating_sub(1).max(head)));
    let text = String::from_utf8_lossy(new);
    let lines = text.lines().enumerate().skip(first - 1).take(last + 1 - first);
    let mut shown: String = lines.take(SHOWN).map(|(i, line)| format!("\n{}\t{}", i + 1, cut(line))).collect();
    if last + 1 - first > SHOWN {
        shown.push_str(&format!("\n… to line {last}"));
    }
    shown
}

fn cut(line: &str) -> String {
    line.char_indices().nth(WIDTH).map_or(line.into(), |(at, _)| format!("{}…", &line[..at]))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tool::{Failure, Preview, Scope};
    use crate::tools::tests::{Bench, asked, refused};
    use std::fs;

    fn edit(bench: &mut Bench, old: &str, new: &str) -> Result<String, Failure> {
        bench.call(&mut Edit, json!({"path": "a.rs", "old_text": old, "new_text": new}))
    }

    #[track_caller]
    fn assert_error(content: &[u8], old: &str, new: &str, wanted: &str) {
        let mut bench = Bench::new();
        bench.file("a.rs", content);
        let Err(Failure::Error(why)) = edit(&mut bench, old, new) else { panic!("no error") };
        assert_eq!(why, format!("edit \"a.rs\": {wanted}"));
        assert_eq!(fs::read(bench.path("a.rs")).unwrap(), content);
    }

    #[test]
    fn replaces_what_is_unique_and_shows_the_new_lines() {
        let mut bench = Bench::new();
        bench.file("a.rs", "one\ntwo\nthree\n");
        let args = json!({"path": "a.rs", "old_text": "two\n", "new_text": "2\n2b\n"});
        let question = asked(Edit.check(&args, &mut bench.cx));
        assert_eq!((question.text.as_str(), &question.scope), ("edit a.rs (+2 −1)", &Scope::Files));
        assert!(matches!(question.preview, Preview::Diff(text) if text.contains("\n-two\n+2\n+2b\n three\n")));
        assert_eq!(edit(&mut bench, "two\n", "2\n2b\n"), Ok("edited a.rs (+2 −1)\n2\t2\n3\t2b".into()));
        assert_eq!(fs::read(bench.path("a.rs")).unwrap(), b"one\n2\n2b\nthree\n");
        assert_eq!(bench.cx.changed, ["a.rs"]);
    }

    #[test]
    fn a_tolerant_match_says_so_and_keeps_the_files_manner() {
        let mut bench = Bench::new();
        bench.file("a.rs", b"\xef\xbb\xbfcaf\xe9\r\none  \r\ntwo\r\n");
        let report = edit(&mut bench, "one\ntwo\n", "one\n2\n").unwrap();
        assert_eq!(report, format!("edited a.rs (+1 −1){}\n3\t2", note(How::Tolerant)));
        assert_eq!(fs::read(bench.path("a.rs")).unwrap(), b"\xef\xbb\xbfcaf\xe9\r\none  \r\n2\r\n");
    }

    #[test]
    fn a_deletion_shows_where_and_a_long_change_is_cut() {
        let mut bench = Bench::new();
        bench.file("a.rs", "one\ntwo\nthree\n");
        assert_eq!(edit(&mut bench, "two\n", ""), Ok("edited a.rs (+0 −1)\n2\tthree".into()));
        let report = edit(&mut bench, "three\n", &"x\n".repeat(20)).unwrap();
        assert!(report.ends_with("\n13\tx\n… to line 21"), "{report}");
        assert_eq!(edit(&mut bench, &("one\n".to_owned() + &"x\n".repeat(20)), ""), Ok("edited a.rs (+0 −21)".into()));
    }

    #[test]
    fn errors_say_what_to_do_and_change_nothing() {
        assert_error(b"a\n", "", "x", "old_text is empty; write replaces a whole file");
        assert_error(b"a\n", "a", "a", "old_text and new_text are the same");
        assert_error(
            b"a\r\n",
            "a\n",
            "a\r\n",
            "the file would not change: but for line endings, which edit keeps, new_text is there already",
        );
        assert_error(
            b"a\nb\na\n",
            "a",
            "x",
            "old_text occurs 2 times, at lines 1, 3; add lines around it until it is unique",
        );
        assert_error(b"a\n", "zzz", "x", "old_text was not found. Nothing in the file is like it; read the file again");
        let many = "a\n".repeat(200);
        let lines = "100 times or more, at lines 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, …";
        assert_error(
            many.as_bytes(),
            "a",
            "x",
            &format!("old_text occurs {lines}; add lines around it until it is unique"),
        );
    }

    #[test]
    fn a_missing_file_is_an_error_and_a_protected_one_refused() {
        let mut bench = Bench::new();
        let Err(Failure::Error(why)) = edit(&mut bench, "a", "b") else { panic!("no error") };
        assert_eq!(why, "edit \"a.rs\": not found; a new file is made with write");
        refused(Edit.check(&json!({"path": ".env", "old_text": "a", "new_text": "b"}), &mut bench.cx));
    }
}
