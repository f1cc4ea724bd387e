//! read: one page of a text file, as numbered lines.
//!
//! A file of any size is read in chunks and at most one page is held, so memory stays bounded. What is left out is
//! counted, since "line 2,000 of 81,234" tells a model whether to page on or to grep.
//!
//! A byte order mark and carriage returns are not shown, but mentioned: a model that sees them repeats them in an edit,
//! one that does not gets them kept (see `edit/splice.rs`).

use super::text;
use crate::cancel::Cancel;
use crate::process::{MAX_BYTES, MAX_LINES};
use crate::tool::{Check, Context, Failure, Json, Spec, Tool};
use serde_json::json;
use std::fs::File;
use std::io::{self, BufRead, BufReader};

/// A NUL among the first bytes means that it is not text.
const HEAD: usize = 8 * 1024;
/// What is read at once.
const CHUNK: usize = 64 * 1024;
const BYTE_ORDER_MARK: &[u8] = b"\xef\xbb\xbf";

/// How files begin that are not text.
const MAGIC: [(&[u8], &str); 15] = [
    (b"\x89PNG", "PNG image"),
    (b"\xff\xd8\xff", "JPEG image"),
    (b"GIF8", "GIF image"),
    (b"%PDF-", "PDF"),
    (b"\x7fELF", "ELF program"),
    (b"\xcf\xfa\xed\xfe", "Mach-O program"),
    (b"\0asm", "WebAssembly"),
    (b"\x1f\x8b", "gzip"),
    (b"PK\x03\x04", "zip"),
    (b"BZh", "bzip2"),
    (b"\xfd7zXZ", "xz"),
    (b"\x28\xb5\x2f\xfd", "zstd"),
    (b"SQLite format 3", "SQLite database"),
    (b"\xff\xfe", "UTF-16 text"),
    (b"\xfe\xff", "UTF-16 text"),
];

/// The tool.
pub struct Read;

impl Tool for Read {
    fn spec(&self) -> Spec {
        Spec {
            name: "read".into(),
            description: "Read a text file as numbered lines, at most 2000 lines or 50 KiB at once.".into(),
            parameters: json!({"type": "object", "required": ["path"], "properties": {
                "path": {"type": "string"},
                "offset": {"type": "integer", "description": "first line, from 1"},
                "limit": {"type": "integer", "description": "number of lines"}}}),
            read_only: true,
        }
    }

    fn check<'a>(&'a mut self, args: &Json, cx: &mut Context) -> Check<'a> {
        let path = text(args, "path").to_owned();
        let (offset, limit) =
            (args["offset"].as_i64().unwrap_or(1), args["limit"].as_i64().unwrap_or(MAX_LINES as i64));
        if offset < 0 || limit < 1 {
            return Check::Bad(format!("read {path:?}: offset counts from 1 and limit is at least 1"));
        }
        let (from, limit) = (offset.max(1) as usize, limit.min(MAX_LINES as i64) as usize);
        match cx.workspace.open_read(&path) {
            Err(trouble) => trouble.into(),
            Ok((file, _)) => Check::Run(Box::new(move |cx: &mut Context| {
                read(file, from, limit, &cx.cancel).map_err(|why| Failure::Error(format!("read {path:?}: {why}")))
            })),
        }
    }
}

/// The page that begins with line `from`, and what there is to say about it.
fn read(file: File, from: usize, limit: usize, cancel: &Cancel) -> Result<String, String> {
    let size = file.metadata().map_or(0, |meta| meta.len());
    let mut reader = BufReader::with_capacity(CHUNK, Stoppable(file, cancel));
    let head = reader.fill_buf().map_err(|e| e.to_string())?;
    let head = &head[..head.len().min(HEAD)];
    if head.contains(&0) || head.starts_with(b"%PDF-") {
        return Err(format!("is not text: {}, {size} bytes", kind(head)));
    }
    let mut page = Page { limit, ..Page::default() };
    if head.starts_with(BYTE_ORDER_MARK) {
        reader.consume(BYTE_ORDER_MARK.len());
        page.marked = true;
    }
    let total = page.fill(&mut reader, from).map_err(|e| e.to_string())?;
    match total {
        0 => Ok("[the file is empty]".into()),
        _ if from > total && total == 1 => Err(format!("has 1 line; offset {from} is past its end")),
        _ if from > total => Err(format!("has {total} lines; offset {from} is past its end")),
        _ => Ok(page.finish(from, total)),
    }
}

fn kind(head: &[u8]) -> &'static str {
    MAGIC.iter().find(|(magic, _)| head.starts_with(magic)).map_or("unknown binary data", |(_, kind)| kind)
}

/// What is shown, while it is put together.
#[derive(Default)]
struct Page {
    text: String,
    lines: usize,
    /// Most lines.
    limit: usize,
    /// Some bytes were not UTF-8.
    lossy: bool,
    /// Lines that end in CRLF.
    crlf: usize,
    /// The file begins with a byte order mark.
    marked: bool,
    /// The length of the only line, if it is too long for a page.
    too_long: Option<usize>,
}

impl Page {
    /// Takes the lines from `from` on that fit, counts the others; gives the number of all.
    fn fill(&mut self, reader: &mut impl BufRead, from: usize) -> io::Result<usize> {
        let (mut number, mut line) = (0, Vec::new());
        loop {
            let keep = if number + 1 < from { 0 } else { MAX_BYTES };
            let Some(length) = next_line(reader, keep, &mut line)? else { return Ok(number) };
            number += 1;
            if number >= from && !self.add(number, &line, length) {
                return Ok(number + count_lines(reader)?);
            }
        }
    }

    /// Adds a line of `length` bytes, of which `line` is the start; `false` if the page has no room for it.
    fn add(&mut self, number: usize, line: &[u8], length: usize) -> bool {
        let crlf = line.ends_with(b"\r\n");
        let whole = line.strip_suffix(b"\n").unwrap_or(line);
        let whole = if crlf { &whole[..whole.len() - 1] } else { whole };
        let cut = length > line.len();
        let text = String::from_utf8_lossy(if cut { whole_characters(whole) } else { whole });
        let lossy = matches!(text, std::borrow::Cow::Owned(_));
        let entry = format!("{number}\t{text}\n");
        let fits = !cut && self.text.len() + entry.len() <= MAX_BYTES;
        if self.lines == self.limit || self.lines > 0 && !fits || self.too_long.is_some() {
            return false;
        }
        self.too_long = cut.then_some(length);
        self.text.push_str(&entry);
        self.lines += 1;
        self.lossy |= lossy;
        self.crlf += usize::from(crlf);
        true
    }

    fn finish(mut self, from: usize, total: usize) -> String {
        let last = from + self.lines - 1;
        let mut say = |text: String| self.text.push_str(&format!("[{text}]\n"));
        if let Some(length) = self.too_long {
            say(format!("line {from} has {length} bytes; the first {MAX_BYTES} are shown"));
        }
        if self.marked {
            say("the file begins with a byte order mark; edit keeps it".into());
        }
        if self.crlf > 0 {
            let which = if self.crlf == self.lines { "lines" } else { "some lines" };
            say(format!("{which} end in CRLF; edit keeps that"));
        }
        if self.lossy {
            say("bytes that are not UTF-8 are shown as \u{fffd}; edit keeps them".into());
        }
        if last < total {
            say(format!("lines {from} to {last} of {total}; go on with offset {}", last + 1));
        }
        self.text
    }
}

/// Reads one line; `line` gets at most `keep` bytes of it. Gives its length, or `None` at the end of the file.
fn next_line(reader: &mut impl BufRead, keep: usize, line: &mut Vec<u8>) -> io::Result<Option<usize>> {
    line.clear();
    let mut length = 0;
    loop {
        let chunk = reader.fill_buf()?;
        let end = chunk.iter().position(|byte| *byte == b'\n');
        let taken = end.map_or(chunk.len(), |at| at + 1);
        line.extend_from_slice(&chunk[..taken.min(keep - line.len())]);
        length += taken;
        reader.consume(taken);
        if end.is_some() || taken == 0 {
            return Ok((length > 0).then_some(length));
        }
    }
}

/// How many lines are left.
fn count_lines(reader: &mut impl BufRead) -> io::Result<usize> {
    let (mut count, mut open) = (0, false);
    loop {
        let chunk = reader.fill_buf()?;
        let Some(last) = chunk.last() else { return Ok(count + usize::from(open)) };
        open = *last != b'\n';
        count += chunk.iter().filter(|byte| **byte == b'\n').count();
        let length = chunk.len();
        reader.consume(length);
    }
}

/// Without a character at the end that was cut in two.
fn whole_characters(bytes: &[u8]) -> &[u8] {
    match std::str::from_utf8(bytes) {
        Err(e) if e.error_len().is_none() => &bytes[..e.valid_up_to()],
        _ => bytes,
    }
}

/// A file that ends with an error once the run is told to stop: counting the lines of a huge one takes seconds.
struct Stoppable<'a>(File, &'a Cancel);

impl io::Read for Stoppable<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.1.is_raised() {
            return Err(io::Error::other("interrupted")); // not ErrorKind::Interrupted, which means: try again
        }
        self.0.read(buffer)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cancel::Cause;
    use crate::tools::tests::{Bench, refused};

    /// Reads a file of this content.
    fn read_of(content: impl AsRef<[u8]>, args: Json) -> Result<String, Failure> {
        let mut bench = Bench::new();
        bench.file("a", content);
        let mut all = json!({"path": "a"});
        all.as_object_mut().unwrap().extend(args.as_object().unwrap().clone());
        bench.at_once(&mut Read, all)
    }

    fn shown(content: impl AsRef<[u8]>) -> String {
        read_of(content, json!({})).unwrap()
    }

    fn error(content: impl AsRef<[u8]>, args: Json) -> String {
        let Err(Failure::Error(why)) = read_of(content, args) else { panic!("no error") };
        why
    }

    #[test]
    fn lines_are_numbered() {
        assert_eq!(shown("a\n\n  b"), "1\ta\n2\t\n3\t  b\n");
        assert_eq!(shown("a\n"), "1\ta\n");
        assert_eq!(shown(""), "[the file is empty]");
    }

    #[test]
    fn a_page_says_where_to_go_on() {
        let content: String = (1..=2500).map(|n| format!("line {n}\n")).collect();
        assert!(shown(&content).ends_with("2000\tline 2000\n[lines 1 to 2000 of 2500; go on with offset 2001]\n"));
        let page = read_of(&content, json!({"offset": 2400, "limit": 2})).unwrap();
        assert_eq!(page, "2400\tline 2400\n2401\tline 2401\n[lines 2400 to 2401 of 2500; go on with offset 2402]\n");
        assert!(read_of(&content, json!({"offset": 2499})).unwrap().ends_with("2500\tline 2500\n"));
        assert_eq!(error(&content, json!({"offset": 2501})), "read \"a\": has 2500 lines; offset 2501 is past its end");
    }

    #[test]
    fn a_page_holds_whole_lines_of_50_kib() {
        let content = ("x".repeat(999) + "\n").repeat(100);
        let text = shown(&content);
        assert!(text.ends_with("x\n[lines 1 to 51 of 100; go on with offset 52]\n"), "{}", &text[text.len() - 80..]);
    }

    #[test]
    fn a_line_too_long_for_a_page_is_cut_and_said() {
        let content = format!("a\n{}\nb\n", "é".repeat(40_000));
        let first = shown(&content);
        assert_eq!(first, "1\ta\n[lines 1 to 1 of 3; go on with offset 2]\n");
        let second = read_of(&content, json!({"offset": 2})).unwrap();
        let (line, notices) = second.split_once('\n').unwrap();
        assert!(line.starts_with("2\té") && line.ends_with('é') && line.len() <= MAX_BYTES + 2);
        assert_eq!(
            notices,
            "[line 2 has 80001 bytes; the first 51200 are shown]\n[lines 2 to 2 of 3; go on with offset 3]\n"
        );
    }

    #[test]
    fn what_is_not_shown_as_it_is_is_mentioned() {
        assert_eq!(
            shown(b"\xef\xbb\xbfcaf\xe9\r\nb\n"),
            "1\tcaf\u{fffd}\n2\tb\n[the file begins with a byte order mark; edit keeps it]\n[some lines end in CRLF; edit \
             keeps that]\n[bytes that are not UTF-8 are shown as \u{fffd}; edit keeps them]\n"
        );
        assert_eq!(shown("a\r\nb\r\n"), "1\ta\n2\tb\n[lines end in CRLF; edit keeps that]\n");
    }

    #[test]
    fn what_is_not_text_is_named() {
        assert_eq!(error(b"\x89PNG\r\n\x1a\n\0\0", json!({})), "read \"a\": is not text: PNG image, 10 bytes");
        assert_eq!(error(b"\0\x01", json!({})), "read \"a\": is not text: unknown binary data, 2 bytes");
        assert_eq!(error("%PDF-1.7\n", json!({})), "read \"a\": is not text: PDF, 9 bytes");
    }

    #[test]
    fn what_is_no_file_of_the_workspace_is_an_error_or_refused() {
        let mut bench = Bench::new();
        std::fs::create_dir(bench.path("d")).unwrap();
        for path in ["d", "missing"] {
            assert!(matches!(Read.check(&json!({"path": path}), &mut bench.cx), Check::Bad(_)), "{path}");
        }
        for path in [".env", "../x", "/etc/passwd"] {
            refused(Read.check(&json!({"path": path}), &mut bench.cx));
        }
        assert!(matches!(Read.check(&json!({"path": "a", "limit": 0}), &mut bench.cx), Check::Bad(_)));
    }

    #[test]
    fn a_spill_file_of_this_run_can_be_read() {
        let mut bench = Bench::new();
        let (_, path) = bench.cx.workspace.run().spill("c1").unwrap();
        std::fs::write(&path, "spilled\n").unwrap();
        let result = bench.at_once(&mut Read, json!({"path": path.to_str().unwrap()}));
        assert_eq!(result, Ok("1\tspilled\n".into()));
    }

    #[test]
    fn a_long_read_stops_when_told() {
        let mut bench = Bench::new();
        bench.file("a", "a\n");
        bench.cx.cancel.raise(Cause::Interrupt);
        let result = bench.at_once(&mut Read, json!({"path": "a"}));
        assert_eq!(result, Err(Failure::Error("read \"a\": interrupted".into())));
    }
}
