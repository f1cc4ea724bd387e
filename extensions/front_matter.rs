//! The block between two `---` lines at the start of a Markdown file: what a record or a skill says of itself.
//!
//! It is YAML, and read by a YAML parser: real files have descriptions over several lines (`>`, `|`), quotes, lists and
//! comments, and a reader that splits at the first colon gets each of them wrong in its own way.
//!
//! Only the top-level fields are kept, as text: `version: 1.0` is the text "1.0" and not a number, since nobody computes with
//! it. What is nested below a field is parsed and then left out; aliases are not followed.

use saphyr_parser::{Event, Parser, ScalarStyle, ScanError};
use std::collections::BTreeMap;

/// What a file says of itself.
#[derive(Debug, PartialEq, Eq)]
pub struct FrontMatter {
    /// `None`: a list or a mapping stands there.
    fields: BTreeMap<String, Option<String>>,
}

impl FrontMatter {
    /// Reads the front matter of a file's text, which may end anywhere behind it. The error says where and why.
    pub fn of(text: &str) -> Result<FrontMatter, String> {
        parse(block(text)?)
    }

    /// A field that must be there, as text that is not blank, on one line: whatever wrote it, it goes into a list of lines.
    pub fn line(&self, name: &str) -> Result<String, String> {
        match self.fields.get(name) {
            None => Err(format!("`{name}` is missing")),
            Some(None) => Err(format!("`{name}` must be text, not a list or a mapping")),
            Some(Some(text)) if text.trim().is_empty() => Err(format!("`{name}` is empty")),
            Some(Some(text)) => Ok(text.split_whitespace().collect::<Vec<_>>().join(" ")),
        }
    }
}

/// The lines between the first line and the next that is `---` alone.
fn block(text: &str) -> Result<&str, String> {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let fence = |line: &&str| line.trim_end() == "---";
    let mut lines = text.split_inclusive('\n');
    let first = lines.next().filter(fence).ok_or("line 1 is not `---`: there is no front matter")?;
    let length: usize = lines.by_ref().take_while(|line| !fence(line)).map(str::len).sum();
    let block = text.get(first.len()..first.len() + length).unwrap_or_default();
    let closed = text[first.len() + block.len()..].split_inclusive('\n').next().is_some_and(|line| fence(&line));
    if closed { Ok(block) } else { Err("the front matter has no end: a line with `---` alone".into()) }
}

/// The fields of a YAML mapping.
fn parse(block: &str) -> Result<FrontMatter, String> {
    let (mut fields, mut name, mut depth) = (BTreeMap::new(), None, 0);
    for event in Parser::new_from_str(block) {
        let value = match event.map_err(|e| in_words(&e, block))?.0 {
            Event::SequenceStart(..) | Event::Scalar(..) | Event::Alias(_) if depth == 0 => {
                return Err(NO_FIELDS.into());
            }
            Event::MappingStart(..) | Event::SequenceStart(..) => {
                depth += 1;
                if depth != 2 {
                    continue;
                }
                None
            }
            Event::MappingEnd | Event::SequenceEnd => {
                depth -= 1;
                continue;
            }
            Event::Scalar(text, style, ..) if depth == 1 => Some(meant(&text, style)),
            Event::Alias(_) if depth == 1 => None,
            _ => continue,
        };
        match (name.take(), value) {
            (None, value) => name = Some(value.ok_or(NO_FIELDS)?),
            (Some(key), _) if fields.contains_key(&key) => return Err(format!("`{key}` stands there twice")),
            (Some(key), value) => drop(fields.insert(key, value)),
        }
    }
    Ok(FrontMatter { fields })
}

const NO_FIELDS: &str = "the front matter is not made of `name: value` lines";

/// A bare `~`, `null` or nothing is YAML's word for "no value".
fn meant(text: &str, style: ScalarStyle) -> String {
    let nothing = style == ScalarStyle::Plain && matches!(text, "~" | "null");
    if nothing { String::new() } else { text.into() }
}

/// What is wrong, with the line in the file. The most frequent slip gets its remedy: `description: Use it so: like this`.
fn in_words(error: &ScanError, block: &str) -> String {
    let at = error.marker().line();
    let line = block.lines().nth(at.saturating_sub(1)).unwrap_or_default();
    let colon = line.split_once(": ").is_some_and(|(_, value)| value.contains(": ") && !value.starts_with(['"', '\'']));
    let remedy = if colon { "; a text with `: ` in it needs quotes around it" } else { "" };
    // The fence is line 1 of the file and no line of the block.
    format!("line {}: {}{remedy}", at + 1, error.info())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(yaml: &str, name: &str) -> Result<String, String> {
        FrontMatter::of(&format!("---\n{yaml}\n---\nbody")).and_then(|found| found.line(name))
    }

    #[test]
    fn every_way_to_write_a_text_is_understood() {
        for yaml in [
            "d: one two",
            "d: 'one two'",
            "d: \"one\\x20two\"",
            "d: >\n  one\n  two",
            "d: >-\n  one\n  two\n",
            "d: |\n  one\n  two",
            "d: one\n  two",
            "# a comment\nd: one two # and another",
            "list: [d, e]\nmap:\n  d: other\nd: one two\nmore:\n  - x",
            "d: one two\r",
            // Shapes of published skills.
            "allowed-tools:\n  [\"Read\",\n   \"Bash\"]\nd: one two",
            "allowed-tools: Read, Bash(npm:*), Glob\nd: one two",
            "metadata:\n  patterns: [\"*\"]\n  on:\n    - a\n    - b\nversion: 0.1.0\nd: one two",
        ] {
            assert_eq!(line(yaml, "d").as_deref(), Ok("one two"), "{yaml}");
        }
        assert_eq!(line("version: 1.0", "version").as_deref(), Ok("1.0"));
        assert_eq!(line("d: \"Use it so: like this\"", "d").as_deref(), Ok("Use it so: like this"));
    }

    #[test]
    fn a_field_that_is_no_text_is_named_with_what_is_wrong() {
        assert_eq!(line("a: b", "d").unwrap_err(), "`d` is missing");
        for yaml in ["d:", "d: \"\"", "d: ' '"] {
            assert_eq!(line(yaml, "d").unwrap_err(), "`d` is empty", "{yaml}");
        }
        for yaml in ["d: [a]", "d:\n  a: b", "a: &x b\nd: *x"] {
            assert_eq!(line(yaml, "d").unwrap_err(), "`d` must be text, not a list or a mapping", "{yaml}");
        }
        assert_eq!(line("d: a\nd: b", "d").unwrap_err(), "`d` stands there twice");
        assert!(line("- d\n- e", "d").unwrap_err().contains("`name: value`"));
        assert!(line("just text", "d").unwrap_err().contains("`name: value`"));
    }

    #[test]
    fn a_colon_in_a_bare_text_is_the_line_of_the_file_and_its_remedy() {
        let why = line("name: a\ndescription: Use it so: like this", "d").unwrap_err();
        assert!(why.starts_with("line 3: ") && why.ends_with("needs quotes around it"), "{why}");
    }

    #[test]
    fn fences_are_needed_and_may_have_any_line_end() {
        assert!(FrontMatter::of("\u{feff}---\r\nd: x\r\n---\r\nbody").is_ok());
        assert_eq!(FrontMatter::of("---\nd: x\n---").and_then(|found| found.line("d")).as_deref(), Ok("x"));
        assert!(FrontMatter::of("").unwrap_err().starts_with("line 1"));
        assert!(FrontMatter::of("d: x").unwrap_err().starts_with("line 1"));
        assert!(FrontMatter::of("---\nd: x\n").unwrap_err().contains("no end"));
    }
}
