//! Long results and calls in few lines: a person follows a run by what happens, not by reading along.

use super::sanitize::sanitize;
use crate::event::Usage;
use serde_json::{Map, Value};

/// The first `most` lines that are not blank, and how many lines are left out. A single line more is shown instead of
/// being counted. Windows line endings are nothing to look at here.
pub fn fold(text: &str, most: usize) -> (Vec<&str>, usize) {
    let lines: Vec<&str> = text.lines().map(settled).collect();
    let lines = match lines.iter().position(|line| !line.trim().is_empty()) {
        Some(first) => &lines[first..],
        None => &[],
    };
    let shown = if lines.len() <= most + 1 { lines.len() } else { most };
    (lines[..shown].to_vec(), lines.len() - shown)
}

/// What is left to see of a line with carriage returns in it.
pub fn settled(line: &str) -> &str {
    let line = line.trim_end_matches('\r');
    line.rsplit('\r').next().unwrap_or(line)
}

/// `… 42 more lines`
pub fn more(lines: usize) -> String {
    format!("… {} more {}", thousands(lines as u64), if lines == 1 { "line" } else { "lines" })
}

/// `1 message`, `1,234 messages`
pub fn counted(number: usize, what: &str) -> String {
    format!("{} {what}{}", thousands(number as u64), if number == 1 { "" } else { "s" })
}

/// A text on one line: safe, and its line breaks shown as `⏎`.
pub fn one_line(text: &str) -> String {
    sanitize(text.trim_end()).replace('\n', " ⏎ ").replace('\t', " ")
}

/// Columns that a text takes.
pub fn columns(text: &str) -> usize {
    text.chars().map(columns_of).sum()
}

/// At most this many columns of a line, with an `…` where it was cut.
pub fn cut(line: &str, most: usize) -> String {
    if columns(line) <= most {
        return line.into();
    }
    let mut used = 0;
    let kept = line.chars().take_while(|c| {
        used += columns_of(*c);
        used < most
    });
    kept.chain(['…']).collect()
}

/// A line in pieces of at most `columns` columns.
pub fn wrap(line: &str, columns: usize) -> Vec<&str> {
    let (mut pieces, mut start, mut used) = (Vec::new(), 0, 0);
    for (at, c) in line.char_indices() {
        used += columns_of(c);
        if used > columns && at > start {
            pieces.push(&line[start..at]);
            (start, used) = (at, columns_of(c));
        }
    }
    pieces.push(&line[start..]);
    pieces
}

/// Where a text goes on in the next line, so that it fits.
pub struct Break {
    /// Before this byte.
    pub at: usize,
    /// The character there is a blank, which the break stands in place of.
    pub is_blank: bool,
    /// Blanks before what follows: it stands below the beginning of its line.
    pub indent: usize,
}

impl Break {
    /// Makes it in this text, whose byte `at` is where it belongs. The last one first, or the others are elsewhere.
    pub fn make(&self, text: &mut String, at: usize) {
        text.replace_range(at..at + usize::from(self.is_blank), &format!("\n{}", " ".repeat(self.indent)));
    }
}

/// The lines that a line of prose becomes where it may have `most` columns.
pub fn wrap_words(line: &str, most: usize) -> Vec<String> {
    let mut text = line.to_owned();
    breaks(line, most).iter().rev().for_each(|found| found.make(&mut text, found.at));
    text.split('\n').map(String::from).collect()
}

/// Where prose is broken so that its lines have at most `most` columns: between words, and within a word only where it
/// alone is too long.
pub fn breaks(text: &str, most: usize) -> Vec<Break> {
    let (mut breaks, mut start) = (Vec::new(), 0);
    for line in text.split_inclusive('\n') {
        break_line(line.trim_end_matches('\n'), start, most, &mut breaks);
        start += line.len();
    }
    breaks
}

fn break_line(line: &str, start: usize, most: usize, breaks: &mut Vec<Break>) {
    let indent = beginning(line, most / 2);
    let (mut used, mut blank) = (0, None);
    for (at, c) in line.char_indices() {
        used += columns_of(c);
        if c == ' ' && used > indent {
            blank = Some(at);
        }
        if used > most {
            let (from, rest) = match blank.take() {
                Some(blank) => (blank, line.get(blank + 1..at + c.len_utf8()).unwrap_or_default()),
                None => (at, line.get(at..at + c.len_utf8()).unwrap_or_default()),
            };
            breaks.push(Break { at: start + from, is_blank: line[from..].starts_with(' '), indent });
            used = indent + columns(rest);
        }
    }
}

/// The column where what stands in a line begins: behind its indent and corner, in a list behind the first word.
/// At most this far to the right, so that there is room.
fn beginning(line: &str, most: usize) -> usize {
    let lead = line.chars().take_while(|c| " └".contains(*c)).count();
    let text = line.trim_start_matches([' ', '└']);
    let second = text.find("  ").map(|end| text[end..].trim_start()).filter(|second| !second.is_empty());
    let column = second.map_or(lead, |second| columns(line) - columns(second));
    if column <= most { column } else { lead.min(most) }
}

/// Columns of a character on nearly every terminal: two for East Asian scripts and emoji, at most
/// eight for a tab. Being wrong costs a wrapped line, which a table of Unicode's widths is not worth.
fn columns_of(c: char) -> usize {
    match c {
        '\t' => 8,
        '\u{1100}'..='\u{115f}' | '\u{2e80}'..='\u{a4cf}' | '\u{ac00}'..='\u{d7a3}' | '\u{f900}'..='\u{faff}' => 2,
        '\u{fe30}'..='\u{fe6f}' | '\u{ff00}'..='\u{ff60}' | '\u{1f300}'..='\u{1faff}' | '\u{20000}'.. => 2,
        _ => 1,
    }
}

/// What a call is about: its path or command, otherwise its arguments as JSON; as they came where they are unusable.
pub fn summary(arguments: Option<&Map<String, Value>>, raw: &str) -> String {
    let Some(arguments) = arguments else { return raw.into() };
    let main = ["path", "command"].iter().find_map(|name| arguments.get(*name)?.as_str());
    match main {
        Some(main) => match arguments.get("offset").and_then(Value::as_u64) {
            Some(line) => format!("{main}:{line}"),
            None => main.into(),
        },
        None if arguments.is_empty() => String::new(),
        None => serde_json::to_string(arguments).unwrap_or_else(|_| raw.into()),
    }
}

/// `2 turns · 1,234 in (800 cached) · 56 out · 3.2 s`
pub fn account(turns: u32, usage: Usage, ms: u64) -> String {
    let cached = if usage.cached > 0 { format!(" ({} cached)", thousands(usage.cached)) } else { String::new() };
    let tokens = match usage.total() {
        0 => String::new(),
        _ => format!(" · {} in{cached} · {} out", thousands(usage.input), thousands(usage.output)),
    };
    format!("{}{tokens} · {}", counted(turns as usize, "turn"), seconds(ms))
}

/// `0.3 s`, `12 s`, `3 min 5 s`
pub fn seconds(ms: u64) -> String {
    match ms {
        0..10_000 => format!("{}.{} s", ms / 1000, ms % 1000 / 100),
        10_000..120_000 => format!("{} s", ms / 1000),
        _ => format!("{} min {} s", ms / 60_000, ms / 1000 % 60),
    }
}

/// `1,234,567`
pub fn thousands(number: u64) -> String {
    let digits = number.to_string();
    let mut grouped = String::new();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            grouped.push(',');
        }
        grouped.push(digit);
    }
    grouped
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_fold_to_their_first_lines_and_a_count() {
        assert_eq!(fold("", 2), (vec![], 0));
        assert_eq!(fold("a\r\nb\n", 2), (vec!["a", "b"], 0));
        assert_eq!(fold("a\nb\nc\n", 2), (vec!["a", "b", "c"], 0));
        assert_eq!(fold("\n \na\nb\nc\nd\n", 2), (vec!["a", "b"], 2));
        assert_eq!(fold("10 %\r50 %\r100 %\r\n", 2), (vec!["100 %"], 0));
        assert_eq!((more(1), more(1200)), ("… 1 more line".into(), "… 1,200 more lines".into()));
    }

    #[test]
    fn lines_are_cut_by_columns() {
        for (line, columns, shown) in [
            ("abc", 3, "abc"),
            ("abcd", 3, "ab…"),
            ("日本語", 6, "日本語"),
            ("日本語", 5, "日本…"),
            ("日本語", 4, "日…"),
        ] {
            assert_eq!(cut(line, columns), shown);
        }
        assert_eq!(one_line("a\n\x1bb\n"), "a ⏎ \\u{1b}b");
    }

    #[test]
    fn wrapped_pieces_are_the_line_and_fit() {
        for line in ["", "abc", "abcdefgh", "日本語日本語", "\tx\ty"] {
            let pieces = wrap(line, 5);
            assert_eq!(pieces.concat(), line);
            let fits = |piece: &&str| columns(piece) <= 5 || piece.chars().count() == 1;
            assert!(pieces.iter().all(fits), "{pieces:?}");
        }
    }

    /// The text with its breaks made.
    fn broken(text: &str, most: usize) -> String {
        wrap_words(text, most).join("\n")
    }

    #[test]
    fn prose_is_broken_between_words_and_below_its_beginning() {
        assert_eq!(broken("one two three", 13), "one two three");
        assert_eq!(broken("one two three", 12), "one two\nthree");
        assert_eq!(broken("one two three four\nfive six", 8), "one two\nthree\nfour\nfive six");
        assert_eq!(broken("  └ one two three", 11), "  └ one two\n    three");
        assert_eq!(broken("  1  one two three", 12), "  1  one two\n     three");
        assert_eq!(broken("abcdefgh ij", 5), "abcde\nfgh\nij");
        assert_eq!(broken("日本語 日本語", 8), "日本語\n日本語");
        for most in 4..20 {
            let text = "  an indented line of some words and averyveryverylongone 日本語日本語 at its end";
            let lines = broken(text, most);
            assert!(lines.lines().all(|line| columns(line) <= most), "{most}: {lines}");
            assert_eq!(lines.replace(['\n', ' '], ""), text.replace(' ', ""), "{most}");
        }
    }

    #[test]
    fn a_call_is_summed_up_by_what_it_is_about() {
        let sum = |json: &str| summary(serde_json::from_str(json).ok().as_ref(), json);
        assert_eq!(sum(r#"{"path":"src/a.rs","offset":10}"#), "src/a.rs:10");
        assert_eq!(sum(r#"{"command":"ls -l","timeout":5}"#), "ls -l");
        assert_eq!(sum(r#"{"b":1,"a":[2]}"#), r#"{"b":1,"a":[2]}"#);
        assert_eq!(sum(r#"{"path": "#), r#"{"path": "#);
        assert_eq!(sum("{}"), "");
    }

    #[test]
    fn an_account_reads_well() {
        let usage = Usage { input: 1234, cached: 800, output: 56, reasoning: 0 };
        assert_eq!(account(2, usage, 3_250), "2 turns · 1,234 in (800 cached) · 56 out · 3.2 s");
        assert_eq!(account(1, Usage::default(), 185_000), "1 turn · 3 min 5 s");
        assert_eq!(thousands(1_234_567), "1,234,567");
    }
}
