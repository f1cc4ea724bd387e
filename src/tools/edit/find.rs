//! Where an edit's `old_text` stands in a file.
//!
//! Byte for byte first. If that finds nothing, once more with what models get wrong and people cannot see: line
//! endings, blanks at line ends, typographic quotes, dashes and spaces. The tolerant search decides *where*, nothing
//! else: its answer is a range of the file's own bytes. Rejected: tolerating indentation, case or a "similar" line. Those
//! mean something, and an edit in the wrong place is worse than none.
//!
//! The search is one pass over units (bytes, or folded characters) with the method of Knuth, Morris and Pratt, so a file
//! of one letter repeated costs no more than any other, and nothing the size of the file is built.

use std::collections::VecDeque;
use std::ops::Range;

/// More places than this are not looked for.
pub const MANY: usize = 100;

/// What a search found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Found {
    /// Nothing, not even tolerantly.
    Nowhere,
    /// One place: these bytes of the file, found exactly or tolerantly.
    Once(Range<usize>, How),
    /// Several: where each begins, at most [`MANY`].
    Several(Vec<usize>),
}

/// Which search found it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum How {
    /// Byte for byte.
    Exact,
    /// With line endings, trailing blanks and typographic characters taken as equal.
    Tolerant,
}

/// Searches for `old`, which is not empty: exactly, then tolerantly.
pub fn find(file: &[u8], old: &str) -> Found {
    let bytes = file.iter().enumerate().map(|(at, byte)| (*byte, at..at + 1));
    let exact = matches(bytes, old.as_bytes());
    if !exact.is_empty() {
        return found(exact, How::Exact);
    }
    let wanted: Vec<u32> = Units::of_pattern(old.as_bytes()).map(|(unit, _)| unit).collect();
    found(matches(Units::of_file(file), &wanted), How::Tolerant)
}

fn found(mut places: Vec<Range<usize>>, how: How) -> Found {
    match places.len() {
        0 => Found::Nowhere,
        1 => Found::Once(places.remove(0), how),
        _ => Found::Several(places.into_iter().map(|place| place.start).collect()),
    }
}

/// Every place where `pattern` occurs in `units`, overlapping ones too.
fn matches<T: PartialEq>(units: impl Iterator<Item = (T, Range<usize>)>, pattern: &[T]) -> Vec<Range<usize>> {
    let (borders, mut places) = (borders(pattern), Vec::new());
    let mut starts = VecDeque::new(); // of the last `pattern.len()` units
    let mut matched = 0;
    for (unit, range) in units {
        starts.push_back(range.start);
        if starts.len() > pattern.len() {
            starts.pop_front();
        }
        while matched > 0 && pattern.get(matched) != Some(&unit) {
            matched = borders[matched - 1];
        }
        if pattern.get(matched) == Some(&unit) {
            matched += 1;
        }
        if matched == pattern.len() && matched > 0 {
            places.extend(starts.front().map(|start| *start..range.end));
            matched = borders[matched - 1];
        }
        if places.len() == MANY {
            break;
        }
    }
    places
}

/// For each prefix of the pattern: the length of the longest proper prefix that is also its end.
fn borders<T: PartialEq>(pattern: &[T]) -> Vec<usize> {
    let mut borders = vec![0; pattern.len()];
    let mut length = 0;
    for i in 1..pattern.len() {
        while length > 0 && pattern[i] != pattern[length] {
            length = borders[length - 1];
        }
        length += usize::from(pattern[i] == pattern[length]);
        borders[i] = length;
    }
    borders
}

/// A text as folded characters, each with the bytes it stands for.
struct Units<'a> {
    bytes: &'a [u8],
    at: usize,
    /// Up to here it is known that blanks are not at a line's end.
    solid: usize,
    /// Whether the end of the text is still to be given as a line's end: a last line without a newline is a line, too.
    open_end: bool,
}

impl<'a> Units<'a> {
    /// A byte order mark is skipped, so it is never part of a match.
    fn of_file(bytes: &'a [u8]) -> Units<'a> {
        let open_end = bytes.last().is_some_and(|byte| *byte != b'\n');
        Units { bytes, at: mark(bytes), solid: 0, open_end }
    }

    /// A pattern may end in the middle of a line: blanks at its very end mean something.
    fn of_pattern(bytes: &'a [u8]) -> Units<'a> {
        Units { bytes, at: mark(bytes), solid: 0, open_end: false }
    }

    /// The end of a line that begins here, blanks before it included.
    fn line_end(&mut self) -> Option<usize> {
        if self.at < self.solid {
            return None;
        }
        let rest = &self.bytes[self.at..];
        let blanks = rest.iter().take_while(|byte| matches!(byte, b' ' | b'\t')).count();
        match &rest[blanks..] {
            [b'\n', ..] => Some(self.at + blanks + 1),
            [b'\r', b'\n', ..] => Some(self.at + blanks + 2),
            [] if self.open_end => Some(self.at + blanks),
            _ => {
                self.solid = self.at + blanks;
                None
            }
        }
    }
}

impl Iterator for Units<'_> {
    type Item = (u32, Range<usize>);

    fn next(&mut self) -> Option<(u32, Range<usize>)> {
        let start = self.at;
        if let Some(end) = self.line_end() {
            self.at = end;
            self.open_end &= end < self.bytes.len();
            return Some((u32::from('\n'), start..end));
        }
        let (unit, length) = unit(self.bytes.get(start..)?)?;
        self.at += length;
        Some((unit, start..self.at))
    }
}

/// The first character, folded, and its length; a byte that is not UTF-8 is a unit that equals no character.
fn unit(bytes: &[u8]) -> Option<(u32, usize)> {
    let first = *bytes.first()?;
    let head = &bytes[..bytes.len().min(4)];
    let valid = std::str::from_utf8(head).map_or_else(|e| e.valid_up_to(), str::len);
    let character = std::str::from_utf8(&head[..valid]).ok().and_then(|text| text.chars().next());
    Some(character.map_or((NO_CHARACTER + u32::from(first), 1), |c| (fold(c).into(), c.len_utf8())))
}

/// Beyond the last character.
const NO_CHARACTER: u32 = 0x11_0000;

/// Typographic quotes, dashes and spaces as what is on a keyboard.
pub fn fold(c: char) -> char {
    match c {
        '\u{2018}'..='\u{201b}' | '\u{2032}' => '\'',
        '\u{201c}'..='\u{201f}' | '\u{2033}' => '"',
        '\u{2010}'..='\u{2015}' | '\u{2212}' => '-',
        '\u{a0}' | '\u{2000}'..='\u{200a}' | '\u{202f}' | '\u{205f}' | '\u{3000}' => ' ',
        c => c,
    }
}

/// The length of a byte order mark.
fn mark(bytes: &[u8]) -> usize {
    if bytes.starts_with(b"\xef\xbb\xbf") { 3 } else { 0 }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// The bytes that were found, and how.
    fn once<'a>(file: &'a [u8], old: &str) -> Option<(&'a [u8], How)> {
        match find(file, old) {
            Found::Once(place, how) => Some((&file[place], how)),
            _ => None,
        }
    }

    #[test]
    fn bytes_are_found_exactly_first() {
        assert_eq!(once(b"a \"b\" \xe2\x80\x9cb\xe2\x80\x9d", "\"b\""), Some((&b"\"b\""[..], How::Exact)));
        assert_eq!(find(b"aXa", "a"), Found::Several(vec![0, 2]));
        assert_eq!(find(b"aaa", "aa"), Found::Several(vec![0, 1]));
        assert_eq!(find(b"abc", "d"), Found::Nowhere);
        assert_eq!(find(b"", "d"), Found::Nowhere);
    }

    #[test]
    fn what_cannot_be_seen_is_tolerated() {
        let cases: [(&[u8], &str, &[u8]); 8] = [
            (b"x\r\na\r\nb\r\n", "a\nb\n", b"a\r\nb\r\n"),
            (b"x\na\nb\n", "a\r\nb\r\n", b"a\nb\n"),
            (b"x\na  \nb\t\n", "a\nb\n", b"a  \nb\t\n"),
            (b"x\na\nb\n", "a  \nb", b"a\nb"),
            (b"x\na\nb", "a\nb\n", b"a\nb"),
            (b"\xef\xbb\xbfa\r\nb", "\u{feff}a\nb", b"a\r\nb"),
            (
                "say \u{201c}hi\u{201d} \u{2013}\u{a0}now".as_bytes(),
                "\"hi\" - now",
                "\u{201c}hi\u{201d} \u{2013}\u{a0}now".as_bytes(),
            ),
            ("it\u{2019}s".as_bytes(), "it's", "it\u{2019}s".as_bytes()),
        ];
        for (file, old, wanted) in cases {
            assert_eq!(once(file, old), Some((wanted, How::Tolerant)), "{old:?}");
        }
    }

    #[test]
    fn what_means_something_is_not_tolerated() {
        for (file, old) in [("  a\n", " a\n b"), ("A\n", "a"), ("a  b", "a b"), ("caf\u{e9}", "cafe"), ("a b", "a  ")] {
            assert_eq!(find(file.as_bytes(), old), Found::Nowhere, "{old:?}");
        }
        assert_eq!(find(b"caf\xe9", "caf\u{fffd}"), Found::Nowhere);
    }

    #[test]
    fn a_tolerant_search_that_is_not_unique_says_where() {
        assert_eq!(find(b"a \nb\r\na\t\nb\n", "a\nb"), Found::Several(vec![0, 6]));
    }

    #[test]
    fn long_runs_take_linear_time() {
        let file = [b"a".repeat(400_000), b" ".repeat(400_000), b"x".to_vec()].concat();
        assert_eq!(find(&file, &("a".repeat(2_000) + "b")), Found::Nowhere);
    }

    proptest! {
        #[test]
        fn finds_what_a_plain_search_finds(file in "[ab\n]{0,30}", old in "[ab\n]{1,4}") {
            let places: Vec<usize> =
                (0..file.len()).filter(|at| file.as_bytes()[*at..].starts_with(old.as_bytes())).collect();
            match find(file.as_bytes(), &old) {
                Found::Once(place, How::Exact) => prop_assert_eq!(places, [place.start]),
                Found::Several(starts) if !places.is_empty() => prop_assert_eq!(places, starts),
                _ => prop_assert!(places.is_empty()),
            }
        }
    }
}
