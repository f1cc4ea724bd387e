//! What stands in the file's place after an edit: `new_text`, in the file's own manner.
//!
//! A model repeats unchanged lines around its change so that the place is unique. Those lines keep the file's bytes: its
//! line endings, its trailing blanks, its typographic quotes. Only lines that differ between `old_text` and `new_text`
//! are new, and they take the ending of the line they replace or follow.

use similar::{Algorithm, DiffOp, capture_diff_slices_deadline};
use std::ops::Range;
use std::time::{Duration, Instant};

/// After this the lines are compared less finely: still the right text, in fewer of the file's own bytes.
const TIMEOUT: Duration = Duration::from_millis(200);

/// The bytes for `place`, where `old` was found.
pub fn splice(file: &[u8], place: Range<usize>, old: &str, new: &str) -> Vec<u8> {
    let (old, new) = (old.trim_start_matches('\u{feff}').replace("\r\n", "\n"), new.replace("\r\n", "\n"));
    let (old_lines, new_lines) = (lines(&old), lines(&new));
    let span = Span::new(file, place, old.ends_with('\n'));
    let until = Some(Instant::now() + TIMEOUT);
    let mut merged = Vec::new();
    for op in capture_diff_slices_deadline(Algorithm::Myers, &old_lines, &new_lines, until) {
        let (old, new) = (op.old_range(), op.new_range());
        if let DiffOp::Equal { .. } = op {
            old.for_each(|i| span.copy(i, &mut merged));
        } else {
            let (first, last) = (old.start, old.end.max(old.start + 1) - 1);
            new_lines[new]
                .iter()
                .enumerate()
                .for_each(|(i, line)| span.write(line, (first + i).min(last), &mut merged));
        }
    }
    span.close(merged)
}

fn lines(text: &str) -> Vec<&str> {
    text.split_inclusive('\n').collect()
}

/// The lines of the file that `old_text` was found as.
struct Span<'a> {
    lines: Vec<&'a [u8]>,
    /// For lines that have none to go by: the file's nearest line ending.
    ending: &'static [u8],
    /// `old_text` ends its last line, the file does not: it is the last of the file, and stays without.
    open: bool,
}

impl<'a> Span<'a> {
    fn new(file: &'a [u8], place: Range<usize>, closed: bool) -> Span<'a> {
        let (before, rest) = file.split_at(place.start);
        let bytes = &file[place];
        let next = rest.split_inclusive(|byte| *byte == b'\n').next().and_then(ending);
        let ending = next.or_else(|| before.split_inclusive(|byte| *byte == b'\n').rev().find_map(ending));
        let open = closed && bytes.last() != Some(&b'\n');
        Span { lines: bytes.split_inclusive(|byte| *byte == b'\n').collect(), ending: ending.unwrap_or(b"\n"), open }
    }

    /// The file's own line.
    fn copy(&self, i: usize, merged: &mut Vec<u8>) {
        let Some(line) = self.lines.get(i) else { return };
        merged.extend_from_slice(line);
        if self.open && i + 1 == self.lines.len() {
            merged.extend_from_slice(self.ending);
        }
    }

    /// A new line, with the ending of the file's line `i`, or of the one before it.
    fn write(&self, line: &str, i: usize, merged: &mut Vec<u8>) {
        let Some(text) = line.strip_suffix('\n') else { return merged.extend_from_slice(line.as_bytes()) };
        let near = self.lines.get(i).or(self.lines.last()).and_then(|line| ending(line));
        merged.extend_from_slice(text.as_bytes());
        merged.extend_from_slice(near.unwrap_or(self.ending));
    }

    /// The whole, without the ending that the file's last line never had.
    fn close(&self, mut merged: Vec<u8>) -> Vec<u8> {
        if self.open {
            let length = ending(&merged).map_or(0, <[u8]>::len);
            merged.truncate(merged.len() - length);
        }
        merged
    }
}

/// How a line ends, if it does.
fn ending(line: &[u8]) -> Option<&'static [u8]> {
    match line {
        [.., b'\r', b'\n'] => Some(b"\r\n"),
        [.., b'\n'] => Some(b"\n"),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::super::find::{Found, How, find};
    use super::*;
    use proptest::prelude::*;

    /// The whole file after an edit.
    fn edited(file: &[u8], old: &str, new: &str) -> Vec<u8> {
        let Found::Once(place, _) = find(file, old) else { panic!("{old:?} is not unique in {file:?}") };
        let middle = splice(file, place.clone(), old, new);
        [&file[..place.start], &middle, &file[place.end..]].concat()
    }

    #[track_caller]
    fn assert_edit(file: &[u8], old: &str, new: &str, wanted: &[u8]) {
        let got = edited(file, old, new);
        assert_eq!(got, wanted, "{:?}", String::from_utf8_lossy(&got));
    }

    #[test]
    fn a_crlf_file_stays_one() {
        assert_edit(b"a\r\nb\r\nc\r\n", "b\n", "x\ny\n", b"a\r\nx\r\ny\r\nc\r\n");
        assert_edit(b"a\r\nb\r\nc\r\n", "b", "x\ny", b"a\r\nx\r\ny\r\nc\r\n");
        assert_edit(b"a\r\nb\r\nc", "c", "x\ny", b"a\r\nb\r\nx\r\ny");
        assert_edit(b"a\nb\nc\n", "b\r\n", "x\r\ny\r\n", b"a\nx\ny\nc\n");
    }

    #[test]
    fn the_files_endings_stay_even_where_others_are_written_out() {
        assert_edit(b"a\r\nb\r\n", "a\r\nb\r\n", "a\nc\n", b"a\r\nc\r\n");
        assert_edit(b"a\nb\n", "a\nb\n", "a\r\nc\r\n", b"a\nc\n");
    }

    #[test]
    fn mixed_endings_stay_with_their_lines() {
        assert_edit(b"a\r\nb\nc\r\n", "a\nb\nc\n", "a\nx\nc\n", b"a\r\nx\nc\r\n");
        assert_edit(b"a\r\nb\nc\r\n", "a\nb\nc\n", "a\nb\nx\nc\n", b"a\r\nb\nx\r\nc\r\n");
    }

    #[test]
    fn unchanged_lines_keep_the_files_bytes() {
        let file = "\u{feff}say \u{201c}hi\u{201d}  \nx = 1\n".as_bytes();
        assert_edit(
            file,
            "say \"hi\"\nx = 1\n",
            "say \"hi\"\nx = 2\n",
            "\u{feff}say \u{201c}hi\u{201d}  \nx = 2\n".as_bytes(),
        );
    }

    #[test]
    fn a_last_line_without_an_end_stays_so() {
        assert_edit(b"a\nb", "a\nb\n", "a\nc\n", b"a\nc");
        assert_edit(b"a\nb", "b\n", "b\nc\n", b"a\nb\nc");
        assert_edit(b"a\nb", "b\n", "", b"a\n");
        assert_edit(b"a\nb", "b", "b\n", b"a\nb\n");
    }

    #[test]
    fn other_bytes_survive() {
        assert_edit(b"\xef\xbb\xbfcaf\xe9\r\nx\n\xff", "x", "y", b"\xef\xbb\xbfcaf\xe9\r\ny\n\xff");
    }

    /// Lines of every kind, of which one, marked, will be edited.
    fn line() -> impl Strategy<Value = Vec<u8>> {
        let text = prop::sample::select(vec![&b"a"[..], b"  b", b"caf\xe9", b"\xe2\x80\x9cq\xe2\x80\x9d", b"c ", b""]);
        let end = prop::sample::select(vec![&b"\n"[..], b"\r\n", b" \n"]);
        (text, end).prop_map(|(text, end)| [text, end].concat())
    }

    proptest! {
        #[test]
        fn bytes_outside_the_place_never_change(
            before in prop::collection::vec(line(), 0..6),
            after in prop::collection::vec(line(), 0..6),
            bom: bool,
            open: bool,
            marked in prop::sample::select(vec![("MARK", "MARK\nTWO"), ("MARK\n", "NEW\n\nTWO\n"), ("MARK", ""), ("MARK\n", "MARK\nx\n")]),
            ending in prop::sample::select(vec!["\n", "\r\n", "  \r\n"]),
        ) {
            let mut file = if bom { b"\xef\xbb\xbf".to_vec() } else { Vec::new() };
            before.iter().for_each(|line| file.extend(line));
            let start = file.len();
            file.extend(b"MARK");
            file.extend(ending.as_bytes());
            after.iter().for_each(|line| file.extend(line));
            if open {
                file.truncate(file.trim_ascii_end().len());
            }
            let got = edited(&file, marked.0, marked.1);
            let rest = &file[(start + 4 + ending.len()).min(file.len())..];
            prop_assert!(got.starts_with(&file[..start]) && got.ends_with(rest));
        }

        #[test]
        fn in_a_plain_file_the_result_is_what_a_replacement_gives(file in "[abc\n]{1,40}", old in "[abc\n]{1,6}", new in "[abc\n]{0,9}") {
            if let Found::Once(_, How::Exact) = find(file.as_bytes(), &old) {
                prop_assert_eq!(edited(file.as_bytes(), &old, &new), file.replacen(&old, &new, 1).into_bytes());
            }
        }
    }
}
