//! The few pieces of regular expressions that `body_regex` knows: literals, `.`, classes `[a-z0-9]`
//! and `[^…]`, a backslash before any sign to mean the sign itself, the repeats `* + ? {n}`, and
//! the anchors `^` and `$` at the ends. No groups, no alternatives, no `\d`: an author who writes
//! one gets an error and not a pattern that means something else. Rejected: a regex crate, for the
//! handful of patterns in the scripts.

use std::fmt;

/// A parsed pattern. It matches anywhere in a text unless it is anchored.
#[derive(Debug, Clone, PartialEq)]
pub struct Pattern {
    source: String,
    from_start: bool,
    to_end: bool,
    pieces: Vec<Piece>,
}

/// One sign and how often it may stand there.
#[derive(Debug, Clone, PartialEq)]
struct Piece {
    sign: Sign,
    least: usize,
    most: usize,
}

#[derive(Debug, Clone, PartialEq)]
enum Sign {
    Any,
    Literal(char),
    Class { ranges: Vec<(char, char)>, inverted: bool },
}

impl Pattern {
    /// Parses a pattern; the error names what is not supported or not closed.
    pub fn parse(text: &str) -> Result<Self, String> {
        let fault = |what: String| format!("pattern {text:?}: {what}");
        let body = text.strip_prefix('^');
        let mut rest = body.unwrap_or(text).chars().peekable();
        let mut pattern = Self { source: text.to_string(), from_start: body.is_some(), to_end: false, pieces: vec![] };
        while let Some(first) = rest.next() {
            if first == '$' && rest.peek().is_none() {
                pattern.to_end = true;
                break;
            }
            let sign = sign(first, &mut rest).map_err(fault)?;
            let (least, most) = repeat(&mut rest).map_err(fault)?;
            pattern.pieces.push(Piece { sign, least, most });
        }
        Ok(pattern)
    }

    /// Whether the pattern matches the text, or a part of it where it is not anchored.
    pub fn matches(&self, text: &str) -> bool {
        let text: Vec<char> = text.chars().collect();
        let starts = if self.from_start { 0..=0 } else { 0..=text.len() };
        starts.into_iter().any(|start| self.matches_from(&self.pieces, &text[start..]))
    }

    /// Greedy, with one step back after the other: fine for patterns that an author writes by hand.
    fn matches_from(&self, pieces: &[Piece], text: &[char]) -> bool {
        let Some((piece, later)) = pieces.split_first() else {
            return !self.to_end || text.is_empty();
        };
        let longest = text.iter().take(piece.most).take_while(|&&c| piece.sign.is(c)).count();
        longest >= piece.least && (piece.least..=longest).rev().any(|taken| self.matches_from(later, &text[taken..]))
    }
}

impl fmt::Display for Pattern {
    fn fmt(&self, out: &mut fmt::Formatter) -> fmt::Result {
        out.write_str(&self.source)
    }
}

impl Sign {
    fn is(&self, c: char) -> bool {
        match self {
            Sign::Any => true,
            Sign::Literal(literal) => *literal == c,
            Sign::Class { ranges, inverted } => {
                ranges.iter().any(|(low, high)| (*low..=*high).contains(&c)) != *inverted
            }
        }
    }
}

type Rest<'a> = std::iter::Peekable<std::str::Chars<'a>>;

fn sign(first: char, rest: &mut Rest) -> Result<Sign, String> {
    match first {
        '.' => Ok(Sign::Any),
        '[' => class(rest),
        '\\' => escaped(rest).map(Sign::Literal),
        '(' | ')' | '|' | '*' | '+' | '?' | '{' | '}' | ']' | '^' | '$' => {
            Err(format!("{first:?} is not supported here; write \\{first} for the sign itself"))
        }
        literal => Ok(Sign::Literal(literal)),
    }
}

fn escaped(rest: &mut Rest) -> Result<char, String> {
    match rest.next() {
        Some(c) if !c.is_alphanumeric() => Ok(c),
        Some(c) => Err(format!("\\{c} is not supported")),
        None => Err("ends in a backslash".to_string()),
    }
}

fn class(rest: &mut Rest) -> Result<Sign, String> {
    let inverted = rest.next_if_eq(&'^').is_some();
    let mut ranges = vec![];
    loop {
        let low = match rest.next() {
            None => return Err("[ is never closed".to_string()),
            Some(']') if ranges.is_empty() => return Err("[] holds nothing".to_string()),
            Some(']') => return Ok(Sign::Class { ranges, inverted }),
            Some('\\') => escaped(rest)?,
            Some(c) => c,
        };
        let mut ahead = rest.clone();
        let high = match (ahead.next(), ahead.next()) {
            (Some('-'), Some(high)) if high != ']' => {
                *rest = ahead;
                high
            }
            _ => low,
        };
        ranges.push((low, high));
    }
}

/// The repeat after a sign as (at least, at most); once without one.
fn repeat(rest: &mut Rest) -> Result<(usize, usize), String> {
    let Some(mark) = rest.next_if(|c| matches!(c, '*' | '+' | '?' | '{')) else {
        return Ok((1, 1));
    };
    match mark {
        '*' => Ok((0, usize::MAX)),
        '+' => Ok((1, usize::MAX)),
        '?' => Ok((0, 1)),
        _ => {
            let count: String = rest.by_ref().take_while(|&c| c != '}').collect();
            let count = count.parse().map_err(|_| format!("{{{count}}} is not supported, only {{n}}"))?;
            Ok((count, count))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn matches(pattern: &str, text: &str) -> bool {
        Pattern::parse(pattern).unwrap().matches(text)
    }

    #[test]
    fn the_patterns_of_the_wire_cases_work() {
        assert!(matches(r"^\{.*\}$", r#"{"path":"a"}"#));
        assert!(!matches(r"^\{.*\}$", r#"{"path":"a"} "#));
        assert!(matches("seven", "1\tseven\n"));
        assert!(matches("^[A-Za-z0-9]{9}$", "a1B2c3D4e"));
        assert!(!matches("^[A-Za-z0-9]{9}$", "a1B2c3D4e5"));
        assert!(!matches("^[A-Za-z0-9]{9}$", "call_1234"));
    }

    #[test]
    fn repeats_step_back() {
        assert!(matches("^a*ab+c?$", "aaabb"));
        assert!(!matches("^a+$", ""));
        assert!(matches("[^0-9]x", "-x"));
        assert!(matches("", "anything"));
        assert!(matches("[a-]$", "-"));
    }

    #[test]
    fn what_is_not_supported_is_an_error_and_not_a_literal() {
        for (pattern, word) in [
            ("(a|b)", "'('"),
            (r"\d+", r"\d"),
            ("[ab", "never closed"),
            ("a{2,}", "{2,}"),
            ("a\\", "backslash"),
            ("*", "'*'"),
        ] {
            let error = Pattern::parse(pattern).unwrap_err();
            assert!(error.contains(word), "{pattern}: {error}");
        }
    }

    proptest::proptest! {
        #[test]
        fn a_text_with_every_sign_escaped_matches_itself_alone(text in "[ -~]{1,20}", other in "[ -~]{1,20}") {
            let escape = |c: char| if c.is_alphanumeric() { c.to_string() } else { format!("\\{c}") };
            let pattern = format!("^{}$", text.chars().map(escape).collect::<String>());
            proptest::prop_assert!(matches(&pattern, &text));
            proptest::prop_assert_eq!(matches(&pattern, &other), text == other);
        }
    }
}
