//! Comma braces and patterns, expanded as bash does it, so that `ls src/*.rs` runs without a shell and every match is judged.
//!
//! Left out, and asking: `{1..9}`, braces that do not pair up, character classes (`[[:alpha:]]`), more words than
//! [`MAX_WORDS`]. Order is by bytes (bash: by locale).

use std::fs;
use std::path::Path;

use super::words::{Ch, Word, tilde_expands};

/// The most words one command may expand to.
pub const MAX_WORDS: usize = 2000;
/// The most characters the braces of one word may expand to.
const MAX_CHARS: usize = 64 << 10;
/// The most braces in one word; each level of expansion copies it.
const MAX_BRACES: usize = 32;

const TOO_MANY: &str = "expands to too many words";

/// A word after all expansion.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Expanded {
    /// Its characters; quoted ones are never a pattern.
    pub chars: Vec<Ch>,
    /// It is a file name that a pattern matched.
    pub matched: bool,
}

impl Expanded {
    /// The word's text.
    pub fn text(&self) -> String {
        text(&self.chars)
    }
}

fn text(chars: &[Ch]) -> String {
    chars.iter().map(|ch| ch.c).collect()
}

fn live(ch: Ch, c: char) -> bool {
    ch.c == c && !ch.quoted
}

/// Expands the comma braces of all words. Err: why a shell must do it.
pub fn braces(words: &[Word]) -> Result<Vec<Word>, String> {
    let mut all = Vec::new();
    for word in words {
        let braces = word.chars.iter().filter(|ch| live(**ch, '{')).count();
        if braces > MAX_BRACES && word.has_live(',') {
            return Err(TOO_MANY.to_string());
        }
        let mut left = MAX_CHARS;
        let expanded = if braces == 0 { vec![word.chars.clone()] } else { brace_word(&word.chars, &mut left)? };
        if all.len() + expanded.len() > MAX_WORDS {
            return Err(TOO_MANY.to_string());
        }
        if let [chars] = &expanded[..] {
            all.push(Word { chars: chars.clone(), ..word.clone() });
            continue;
        }
        // An empty alternative leaves no word, unless the quotes stood right there, which is not known any more.
        if word.was_quoted && expanded.iter().any(Vec::is_empty) {
            return Err("has an empty alternative in braces".to_string());
        }
        let kept = expanded.into_iter().filter(|chars| !chars.is_empty());
        for made in kept.map(|chars| Word { chars, ..word.clone() }) {
            // `{$,x}b` becomes `$b`, and `{~,x}` a home directory: bash does braces first.
            if made.has_live('$') || tilde_expands(&made) {
                return Err("makes an expansion out of braces".to_string());
            }
            all.push(made);
        }
    }
    Ok(all)
}

fn brace_word(chars: &[Ch], left: &mut usize) -> Result<Vec<Vec<Ch>>, String> {
    let Some((start, end, commas)) = first_brace(chars)? else {
        *left = left.checked_sub(chars.len() + 1).ok_or(TOO_MANY)?;
        return Ok(vec![chars.to_vec()]);
    };
    let mut edges = vec![start];
    edges.extend(commas);
    edges.push(end);
    let mut all = Vec::new();
    for pair in edges.windows(2) {
        let alternative = &chars[pair[0] + 1..pair[1]];
        let joined = [&chars[..start], alternative, &chars[end + 1..]].concat();
        all.extend(brace_word(&joined, left)?);
    }
    Ok(all)
}

/// Start, end and top-level commas of the first brace that expands.
fn first_brace(chars: &[Ch]) -> Result<Option<(usize, usize, Vec<usize>)>, String> {
    let mut open: Vec<(usize, Vec<usize>)> = Vec::new();
    let mut found: Option<(usize, usize, Vec<usize>)> = None;
    let expands = chars.iter().any(|ch| live(*ch, ',')) || text(chars).contains("..");
    for (at, ch) in chars.iter().enumerate().filter(|(_, ch)| !ch.quoted) {
        match ch.c {
            '{' => open.push((at, Vec::new())),
            ',' => drop(open.last_mut().map(|(_, commas)| commas.push(at))),
            '}' => match open.pop() {
                Some((start, commas)) if commas.is_empty() && text(&chars[start..at]).contains("..") => {
                    return Err("`{a..b}` needs a shell".to_string());
                }
                Some((start, commas)) if !commas.is_empty() && found.as_ref().is_none_or(|f| start < f.0) => {
                    found = Some((start, at, commas));
                }
                Some(_) => {}
                None if expands => return Err("has braces that do not pair up".to_string()),
                None => {}
            },
            _ => {}
        }
    }
    if !open.is_empty() && expands {
        return Err("has braces that do not pair up".to_string());
    }
    Ok(found)
}

/// Whether a shell would take the word for a pattern.
pub fn is_pattern(chars: &[Ch]) -> bool {
    chars.iter().any(|ch| !ch.quoted && matches!(ch.c, '*' | '?' | '['))
}

/// Expands the patterns of all words against the disk. `enter` says whether a directory may be listed: it is asked before each
/// listing, so that nothing outside the workspace is looked at. No match leaves the word as it is. Err: why it asks.
pub fn patterns(
    words: &[Word],
    base: &Path,
    enter: &dyn Fn(&str) -> Result<(), String>,
) -> Result<Vec<Expanded>, String> {
    let mut all = Vec::new();
    for word in words {
        let matches = if is_pattern(&word.chars) { matches(&word.chars, base, enter)? } else { Vec::new() };
        if matches.is_empty() {
            all.push(Expanded { chars: word.chars.clone(), matched: false });
        }
        let quoted = |name: String| name.chars().map(|c| Ch { c, quoted: true }).collect();
        all.extend(matches.into_iter().map(|name| Expanded { chars: quoted(name), matched: true }));
        if all.len() > MAX_WORDS {
            return Err(TOO_MANY.to_string());
        }
    }
    Ok(all)
}

fn matches(pattern: &[Ch], base: &Path, enter: &dyn Fn(&str) -> Result<(), String>) -> Result<Vec<String>, String> {
    let shown = text(pattern);
    if ["[:", "[.", "[=", "//"].iter().any(|odd| shown.contains(odd)) {
        return Err("has a pattern with a character class or `//`".to_string());
    }
    let mut found = vec![String::new()];
    let mut parts = pattern.split(|ch| ch.c == '/').peekable();
    while let Some(part) = parts.next() {
        let slash = if parts.peek().is_some() { "/" } else { "" };
        let mut next = Vec::new();
        for prefix in found {
            if is_pattern(part) {
                let names = list(base, &prefix, enter)?;
                next.extend(
                    names.into_iter().filter(|name| fits(part, name)).map(|name| format!("{prefix}{name}{slash}")),
                );
            } else {
                next.push(format!("{prefix}{}{slash}", text(part)));
            }
        }
        // Bash keeps only what exists; a name that is followed by `/` must be a directory.
        next.retain(|path| path.is_empty() || path == "/" || base.join(path).symlink_metadata().is_ok());
        if next.len() > MAX_WORDS {
            return Err(TOO_MANY.to_string());
        }
        found = next;
    }
    found.sort();
    Ok(found)
}

fn list(base: &Path, prefix: &str, enter: &dyn Fn(&str) -> Result<(), String>) -> Result<Vec<String>, String> {
    enter(if prefix.is_empty() { "." } else { prefix })?;
    // A directory that cannot be listed matches nothing, in a shell too.
    let Ok(entries) = fs::read_dir(base.join(prefix)) else {
        return Ok(Vec::new());
    };
    let names = entries.filter_map(Result::ok).map(|entry| entry.file_name().into_string());
    names.map(|name| name.map_err(|_| "matches a name that is not UTF-8".to_string())).collect()
}

/// Whether a file name fits a pattern without `/`. A leading dot must be written out.
pub fn fits(pattern: &[Ch], name: &str) -> bool {
    let hidden = name.starts_with('.') && pattern.first().is_some_and(|ch| ch.c != '.');
    !hidden && fits_here(pattern, &name.chars().collect::<Vec<char>>())
}

/// Backtracks to the last `*` only, so it stays quadratic at worst.
fn fits_here(pattern: &[Ch], name: &[char]) -> bool {
    let (mut p, mut n) = (0, 0);
    let mut star: Option<(usize, usize)> = None;
    while n < name.len() {
        if pattern.get(p).is_some_and(|ch| live(*ch, '*')) {
            star = Some((p, n));
            p += 1;
        } else if let Some(width) = pattern.get(p..).and_then(|rest| one(rest, name[n])) {
            p += width;
            n += 1;
        } else if let Some((at, from)) = star {
            star = Some((at, from + 1));
            (p, n) = (at + 1, from + 1);
        } else {
            return false;
        }
    }
    pattern[p..].iter().all(|ch| live(*ch, '*'))
}

/// Matches one character; the width of the pattern's part that did.
fn one(pattern: &[Ch], c: char) -> Option<usize> {
    let first = *pattern.first()?;
    match first.c {
        '?' if !first.quoted => Some(1),
        '[' if !first.quoted => match bracket(pattern, c) {
            Some((width, hit)) => hit.then_some(width),
            None => (c == '[').then_some(1),
        },
        literal => (literal == c).then_some(1),
    }
}

/// `[a-z]`, `[!a]`: its width and whether it holds `c`. None if it is never closed: then `[` is itself.
fn bracket(pattern: &[Ch], c: char) -> Option<(usize, bool)> {
    let negated = pattern.get(1).is_some_and(|ch| live(*ch, '!') || live(*ch, '^'));
    let start = if negated { 2 } else { 1 };
    // A `]` right after the opening is itself.
    let end = (start + 1..pattern.len()).find(|at| live(pattern[*at], ']'))?;
    let set = &pattern[start..end];
    let (mut hit, mut at) = (false, 0);
    while at < set.len() {
        match (set.get(at + 1), set.get(at + 2)) {
            (Some(dash), Some(last)) if live(*dash, '-') => {
                hit |= (set[at].c..=last.c).contains(&c);
                at += 3;
            }
            _ => {
                hit |= set[at].c == c;
                at += 1;
            }
        }
    }
    Some((end + 1, hit != negated))
}

#[cfg(test)]
mod tests {
    use super::super::words::parse;
    use super::*;

    fn expand(command: &str) -> Result<Vec<String>, String> {
        let line = parse(command);
        braces(&line.commands[0].words).map(|words| words.iter().map(Word::text).collect())
    }

    fn pattern(text: &str) -> Vec<Ch> {
        parse(text).commands[0].words[0].chars.clone()
    }

    #[test]
    fn braces_expand_like_bash() {
        assert_eq!(
            expand("a{b,c}d {,x} {} {a} '{a,b}' x{a,b}{c,d}").unwrap(),
            ["abd", "acd", "x", "{}", "{a}", "{a,b}", "xac", "xad", "xbc", "xbd"]
        );
        assert_eq!(expand("{a,b{c,d}}").unwrap(), ["a", "bc", "bd"]);
        assert_eq!(expand("@{u} HEAD@{1}").unwrap(), ["@{u}", "HEAD@{1}"]);
    }

    #[test]
    fn braces_that_need_a_shell() {
        for command in ["x{1..9}", "{a,{b}", "{a,b}}", &"{a,b}".repeat(20)] {
            assert!(expand(command).is_err(), "{command}");
        }
    }

    #[test]
    fn patterns_fit_names() {
        for (text, name, fit) in [
            ("*.rs", "a.rs", true),
            ("*", ".env", false),
            (".e*v", ".env", true),
            (".[e]nv", ".env", true),
            ("[.]env", ".env", false),
            ("a?c", "abc", true),
            ("[!a]x", "bx", true),
            ("[!a]x", "ax", false),
            ("[a-c]", "b", true),
            ("[]x]", "]", true),
            ("[a", "[a", true),
            ("'*'x?", "*xy", true),
            ("'*'x?", "axy", false),
            ("*a*b*c", "xxaxxbxxc", true),
            ("*a*b*c", "xxaxxbxx", false),
        ] {
            assert_eq!(fits(&pattern(text), name), fit, "{text} {name}");
        }
    }
}
