//! What to tell a model whose `old_text` is nowhere in the file: the lines that come nearest, and what differs.
//!
//! Good words here save a whole turn: with the lines and their numbers at hand the model need not read the file again.

use super::find::fold;
use std::collections::HashMap;
use std::time::{Duration, Instant};

/// Lines of the file that are quoted.
const QUOTED: usize = 5;
/// Lines of the file that are looked at.
const SEARCHED: usize = 100_000;
/// Most characters of a line that are quoted or compared.
const WIDTH: usize = 160;
/// At least this share of a line's letter pairs must be in the other, or the two have nothing to do with each other.
const ALIKE: f64 = 0.5;
/// A hint is worth so much time and no more.
const TIME: Duration = Duration::from_millis(200);

/// The lines of `file` nearest to `old`, and what differs.
pub fn nearest(file: &[u8], old: &str) -> String {
    if old.lines().all(numbered) {
        return "It seems to hold the line numbers that read shows; leave them out".into();
    }
    let text = String::from_utf8_lossy(file);
    let (lines, old): (Vec<&str>, Vec<&str>) = (text.lines().take(SEARCHED).collect(), old.lines().collect());
    let Some(start) = by_equal_lines(&lines, &old).or_else(|| by_likeness(&lines, &old)) else {
        return "Nothing in the file is like it; read the file again".into();
    };
    let shown = lines.iter().enumerate().skip(start).take(old.len().min(QUOTED));
    let quoted: String = shown.map(|(i, line)| format!("\n{}\t{}", i + 1, cut(line))).collect();
    format!("The nearest lines are:{quoted}\n{}", difference(&lines, start, &old))
}

/// A line as read shows it: number, tab.
fn numbered(line: &str) -> bool {
    line.split_once('\t').is_some_and(|(number, _)| !number.is_empty() && number.bytes().all(|b| b.is_ascii_digit()))
}

/// Lines that are equal but for blanks and case vote for where the whole would start.
fn by_equal_lines(lines: &[&str], old: &[&str]) -> Option<usize> {
    let wanted: HashMap<String, usize> =
        old.iter().enumerate().map(|(i, line)| (plain(line), i)).filter(|(line, _)| line.len() > 2).collect();
    let mut votes: HashMap<usize, usize> = HashMap::new();
    for (at, line) in lines.iter().enumerate() {
        if let Some(i) = wanted.get(&plain(line)).filter(|i| **i <= at) {
            *votes.entry(at - i).or_default() += 1;
        }
    }
    votes.into_iter().max_by_key(|(start, votes)| (*votes, std::cmp::Reverse(*start))).map(|(start, _)| start)
}

/// The line most like the longest line of `old`, if any is like it.
fn by_likeness(lines: &[&str], old: &[&str]) -> Option<usize> {
    let until = Instant::now() + TIME;
    let (i, longest) = old.iter().enumerate().max_by_key(|(_, line)| line.trim().len())?;
    let wanted = pairs(longest);
    let in_time = lines.iter().enumerate().skip(i).take_while(|_| Instant::now() < until);
    let scored = in_time.map(|(at, line)| (likeness(&wanted, &pairs(line)), at - i));
    scored.filter(|(score, _)| *score >= ALIKE).max_by(|a, b| a.0.total_cmp(&b.0)).map(|(_, start)| start)
}

/// Which line differs first, and in what.
fn difference(lines: &[&str], start: usize, old: &[&str]) -> String {
    let differs = |(i, wanted): &(usize, &&str)| lines.get(start + i).is_none_or(|line| exact(line) != exact(wanted));
    let Some((i, wanted)) = old.iter().enumerate().find(differs) else {
        return "They differ where old_text begins or ends, or in bytes that are not UTF-8".into();
    };
    let number = start + i + 1;
    let Some(line) = lines.get(start + i) else {
        return format!("The file ends before line {number}, where old_text has `{}`", cut(wanted));
    };
    let what = match () {
        () if exact(line).trim_start() == exact(wanted).trim_start() => " in its indentation",
        () if exact(line).to_lowercase() == exact(wanted).to_lowercase() => " in upper and lower case",
        () if plain(line) == plain(wanted) => " in its blanks or case",
        () => "",
    };
    format!("Line {number} differs{what}: it is `{}`, old_text has `{}`", cut(line), cut(wanted))
}

/// A line as the tolerant search compares it.
fn exact(line: &str) -> String {
    line.trim_end().chars().map(fold).collect()
}

/// A line without blanks and case.
fn plain(line: &str) -> String {
    line.chars().map(fold).filter(|c| !c.is_whitespace()).flat_map(char::to_lowercase).collect()
}

/// How often each two neighbouring characters occur.
fn pairs(line: &str) -> HashMap<(char, char), usize> {
    let chars: Vec<char> = plain(line).chars().take(WIDTH).collect();
    chars.windows(2).fold(HashMap::new(), |mut pairs, pair| {
        *pairs.entry((pair[0], pair[1])).or_default() += 1;
        pairs
    })
}

/// The share of pairs that two lines have in common (Dice's coefficient).
fn likeness(a: &HashMap<(char, char), usize>, b: &HashMap<(char, char), usize>) -> f64 {
    let common: usize = a.iter().map(|(pair, n)| n.min(b.get(pair).unwrap_or(&0))).sum();
    let all: usize = a.values().chain(b.values()).sum();
    if all == 0 { 0.0 } else { 2.0 * common as f64 / all as f64 }
}

fn cut(line: &str) -> String {
    match line.char_indices().nth(WIDTH) {
        Some((at, _)) => format!("{}…", &line[..at]),
        None => line.into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FILE: &[u8] = b"use a;\n\nfn main() {\n    let total = sum(&items);\n    println!(\"{total}\");\n}\n";

    #[test]
    fn quotes_the_nearest_lines_and_says_what_differs() {
        let hint = nearest(FILE, "fn main() {\n  let total = sum(&items);\n");
        assert_eq!(
            hint,
            "The nearest lines are:\n3\tfn main() {\n4\t    let total = sum(&items);\nLine 4 differs in its indentation: \
             it is `    let total = sum(&items);`, old_text has `  let total = sum(&items);`"
        );
        assert!(
            nearest(FILE, "FN main() {")
                .ends_with("Line 3 differs in upper and lower case: it is `fn main() {`, old_text has `FN main() {`")
        );
    }

    #[test]
    fn finds_a_line_that_is_only_alike() {
        let hint = nearest(FILE, "    let total = sum(items);");
        assert!(hint.starts_with("The nearest lines are:\n4\t"), "{hint}");
        assert!(hint.ends_with(
            "Line 4 differs: it is `    let total = sum(&items);`, old_text has `    let total = sum(items);`"
        ));
    }

    #[test]
    fn says_when_nothing_is_alike_and_when_line_numbers_were_copied() {
        assert_eq!(nearest(FILE, "SELECT * FROM t"), "Nothing in the file is like it; read the file again");
        assert_eq!(nearest(b"", "x"), "Nothing in the file is like it; read the file again");
        assert_eq!(
            nearest(FILE, "3\tfn main() {\n4\t"),
            "It seems to hold the line numbers that read shows; leave them out"
        );
    }

    #[test]
    fn says_when_the_file_ends_too_early_and_when_bytes_are_in_the_way() {
        assert!(
            nearest(FILE, "    println!(\"{total}\");\n}\nfn more() {}")
                .ends_with("The file ends before line 7, where old_text has `fn more() {}`")
        );
        let hint = nearest(b"one caf\xe9 line\n", "one caf\u{fffd} line");
        assert!(hint.ends_with("or in bytes that are not UTF-8"), "{hint}");
    }
}
