//! A file of rules: JSON in, rules in their order out, and one more rule back in.
//!
//! Not by way of a JSON value: the order of the rules is their meaning, a name may come twice, and an error has to know its
//! line. So rules are read as they come, and serde_json adds line and column to what is wrong.

use super::Ruled;
use super::pattern;
use crate::nearest::nearest;
use serde::de::{Deserialize, Deserializer, Error, MapAccess, Visitor};
use serde_json::{Map, Value, json};
use std::fmt;
use std::io::Write;
use std::path::Path;

/// The tools that are always there; a name that is nearly one of them is a slip.
const TOOLS: [&str; 4] = ["read", "write", "edit", "bash"];

/// What a rule does with a call that it matches.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Effect {
    Allow,
    Ask,
    Deny,
}

const EFFECTS: [(&str, Effect); 3] = [("allow", Effect::Allow), ("ask", Effect::Ask), ("deny", Effect::Deny)];

/// One rule.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rule {
    /// The tool's name, or a pattern of names.
    tool: String,
    /// Of a path, or of a command's first words; `None` matches every call of the tool.
    pattern: Option<String>,
    pub effect: Effect,
}

/// What a rule is compared with.
pub enum Subject<'a> {
    /// A path below the workspace.
    Path(&'a str),
    /// The words of a simple command.
    Words(&'a [String]),
    /// The words of what may be a command inside another: only a rule with a pattern is meant.
    Inner(&'a [String]),
    /// The call as a whole: only a rule without a pattern matches.
    Whole,
}

impl Rule {
    /// A rule on one path.
    pub fn path(tool: &str, path: &str, effect: Effect) -> Rule {
        Rule { tool: tool.into(), pattern: Some(pattern::of_path(path)), effect }
    }

    /// Whether it is about this. A rule for `edit` holds for `write` as well: both change a file, and what may not be edited
    /// may not be written over either.
    pub fn matches(&self, tool: &str, subject: &Subject) -> bool {
        let names_tool = pattern::path(&self.tool, tool) || (self.tool == "edit" && tool == "write");
        names_tool
            && match (&self.pattern, subject) {
                (None, Subject::Inner(_)) => false,
                (None, _) => true,
                (Some(pattern), Subject::Path(path)) => pattern::path(pattern, path),
                (Some(pattern), Subject::Words(words) | Subject::Inner(words)) => {
                    pattern::words(pattern, words, self.effect != Effect::Allow)
                }
                (Some(_), Subject::Whole) => false,
            }
    }

    /// Whether it might ask about or deny some command of this tool.
    pub fn may_stop(&self, tool: &str) -> bool {
        self.effect != Effect::Allow && self.pattern.is_some() && pattern::path(&self.tool, tool)
    }

    /// What it decides, in the name of its file.
    pub fn ruled(&self, file: &str) -> Ruled {
        match self.effect {
            Effect::Allow => Ruled::Allow(self.shown(file)),
            Effect::Ask => Ruled::Ask(self.shown(file)),
            Effect::Deny => Ruled::Deny(self.shown(file)),
        }
    }

    /// The rule, and where it stands.
    pub fn shown(&self, file: &str) -> String {
        format!("{self} ({file})")
    }
}

impl fmt::Display for Rule {
    fn fmt(&self, out: &mut fmt::Formatter) -> fmt::Result {
        let effect = EFFECTS.iter().find(|(_, effect)| *effect == self.effect).map_or("", |(word, _)| word);
        match &self.pattern {
            Some(pattern) => write!(out, "{} {pattern:?}: {effect}", self.tool),
            None => write!(out, "{}: {effect}", self.tool),
        }
    }
}

/// Reads a file's text; the error ends in line and column.
pub fn parse(text: &str) -> Result<Vec<Rule>, String> {
    serde_json::from_str::<Rules>(text).map(|rules| rules.0).map_err(|e| e.to_string())
}

struct Rules(Vec<Rule>);

impl<'de> Deserialize<'de> for Rules {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Rules, D::Error> {
        from.deserialize_map(RulesVisitor).map(Rules)
    }
}

/// The whole file: tools, each with one effect or with patterns.
struct RulesVisitor;

impl<'de> Visitor<'de> for RulesVisitor {
    type Value = Vec<Rule>;

    fn expecting(&self, out: &mut fmt::Formatter) -> fmt::Result {
        out.write_str("an object of rules, such as {\"bash\": \"ask\"}")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Vec<Rule>, A::Error> {
        let mut rules = Vec::new();
        while let Some(tool) = map.next_key::<String>()? {
            if let Some(near) = nearest(&tool, TOOLS).filter(|near| *near != tool) {
                return Err(A::Error::custom(format!("there is no tool `{tool}`; did you mean `{near}`?")));
            }
            let of_tool = |(pattern, effect)| Rule { tool: tool.clone(), pattern, effect };
            rules.extend(map.next_value::<Entry>()?.0.into_iter().map(of_tool));
        }
        Ok(rules)
    }
}

/// What stands behind a tool's name: patterns and effects.
struct Entry(Vec<(Option<String>, Effect)>);

impl<'de> Deserialize<'de> for Entry {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Entry, D::Error> {
        from.deserialize_any(EntryVisitor).map(Entry)
    }
}

struct EntryVisitor;

impl<'de> Visitor<'de> for EntryVisitor {
    type Value = Vec<(Option<String>, Effect)>;

    fn expecting(&self, out: &mut fmt::Formatter) -> fmt::Result {
        out.write_str("allow, ask or deny, or an object of patterns")
    }

    fn visit_str<E: Error>(self, word: &str) -> Result<Self::Value, E> {
        effect(word).map(|effect| vec![(None, effect)]).map_err(E::custom)
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        let mut entries = Vec::new();
        while let Some(pattern) = map.next_key::<String>()? {
            if pattern.trim().is_empty() {
                return Err(A::Error::custom("a pattern is empty"));
            }
            let effect = map.next_value::<EffectWord>()?.0;
            entries.push((Some(pattern).filter(|pattern| pattern != "*" && pattern != "**"), effect));
        }
        Ok(entries)
    }
}

struct EffectWord(Effect);

impl<'de> Deserialize<'de> for EffectWord {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<EffectWord, D::Error> {
        from.deserialize_str(EffectVisitor).map(EffectWord)
    }
}

struct EffectVisitor;

impl Visitor<'_> for EffectVisitor {
    type Value = Effect;

    fn expecting(&self, out: &mut fmt::Formatter) -> fmt::Result {
        out.write_str("allow, ask or deny")
    }

    fn visit_str<E: Error>(self, word: &str) -> Result<Effect, E> {
        effect(word).map_err(E::custom)
    }
}

fn effect(word: &str) -> Result<Effect, String> {
    let known = EFFECTS.iter().find(|(name, _)| *name == word).map(|(_, effect)| *effect);
    known.ok_or_else(|| format!("{word:?} is none of allow, ask, deny"))
}

/// A file's text with allow rules for these patterns of a tool behind the rules that it has; without patterns, for the tool.
pub fn with_allowed(text: &str, tool: &str, patterns: &[String]) -> Result<String, String> {
    let mut all: Map<String, Value> =
        if text.trim().is_empty() { Map::new() } else { serde_json::from_str(text).map_err(|e| e.to_string())? };
    let mut entry = match all.get(tool) {
        Some(Value::Object(entry)) => entry.clone(),
        Some(Value::String(effect)) => Map::from_iter([("*".to_owned(), json!(effect))]),
        _ => Map::new(),
    };
    for pattern in patterns {
        entry.shift_remove(pattern); // an older rule of the same words stands too early
        entry.insert(pattern.clone(), json!("allow"));
    }
    let entry = if patterns.is_empty() { json!("allow") } else { Value::Object(entry) };
    all.insert(tool.into(), entry);
    serde_json::to_string_pretty(&all).map(|text| text + "\n").map_err(|e| e.to_string())
}

/// Saved rules in words.
pub fn shown(tool: &str, patterns: &[String]) -> String {
    let rule = |pattern| Rule { tool: tool.into(), pattern, effect: Effect::Allow }.to_string();
    match patterns {
        [] => rule(None),
        patterns => patterns.iter().cloned().map(|pattern| rule(Some(pattern))).collect::<Vec<_>>().join(", "),
    }
}

/// Puts a file in place, all or nothing, readable by its owner alone.
pub fn write(path: &Path, text: &str) -> std::io::Result<()> {
    let dir = path.parent().unwrap_or(Path::new("."));
    std::fs::create_dir_all(dir)?;
    let mut file = tempfile::NamedTempFile::new_in(dir)?;
    file.write_all(text.as_bytes())?;
    file.as_file().sync_all()?;
    file.persist(path).map(drop).map_err(|e| e.error)
}
