//! Reads the words of a listed command by its table: which are options, which are paths, which are only text.
//!
//! Unknown options do not stop the reading. The command asks then, but its other words are still judged: a pattern must not be
//! refused as if it were a path, nor a path be missed.

use super::options::{Positionals, Rules, Value, lists, value_problem};

/// A part of a word: from character `from` of word `word`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Part {
    /// The word's number.
    pub word: usize,
    /// Characters to skip (`--file=` before a path).
    pub from: usize,
    /// The text from there.
    pub text: String,
}

/// An option that the table allows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Given {
    /// Its name without dashes.
    pub name: String,
    /// Its value.
    pub value: Option<String>,
}

/// What the words of one command are.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Arguments {
    /// Allowed options, in order.
    pub options: Vec<Given>,
    /// Words that name files.
    pub paths: Vec<Part>,
    /// Words that git takes for a revision or a path.
    pub git_words: Vec<Part>,
    /// Words that are no text for sure: unknown options.
    pub unknown: Vec<Part>,
    /// Numbers of the words that are patterns, formats and other text.
    pub texts: Vec<usize>,
    /// Number of the first word after the last option (and its value).
    pub after_options: usize,
    /// Why it asks.
    pub problem: Option<String>,
}

impl Arguments {
    /// Whether one of these options was given.
    pub fn has(&self, names: &str) -> bool {
        self.options.iter().any(|given| lists(names, &given.name))
    }
}

/// Reads `words`; the first `skip` of them are the command's name.
pub fn read(rules: &Rules, words: &[String], skip: usize) -> Arguments {
    let result = Arguments { after_options: skip, ..Arguments::default() };
    if rules.positionals == Positionals::Text {
        return Arguments { texts: (skip..words.len()).collect(), ..result };
    }
    let mut reader = Reader { rules, words, at: skip, result, positionals: Vec::new() };
    while reader.at < words.len() {
        let word = &words[reader.at];
        match word.strip_prefix("--") {
            Some("") => {
                reader.positionals.extend(reader.at + 1..words.len());
                break;
            }
            Some(long) => reader.long(long),
            None if word.len() > 1 && word.starts_with('-') => reader.short(&word[1..]),
            None => {
                reader.positionals.push(reader.at);
                reader.at += 1;
                continue;
            }
        }
        reader.at += 1;
        reader.result.after_options = reader.at;
    }
    reader.finish()
}

struct Reader<'a> {
    rules: &'a Rules,
    words: &'a [String],
    at: usize,
    result: Arguments,
    positionals: Vec<usize>,
}

impl Reader<'_> {
    fn ask(&mut self, why: String) {
        self.result.problem.get_or_insert(why);
    }

    fn unknown(&mut self, option: &str) {
        self.ask(format!("option {option} of {} is not on the list", self.rules.name));
        self.result.unknown.push(Part { word: self.at, from: 0, text: self.words[self.at].clone() });
    }

    fn long(&mut self, text: &str) {
        let (name, value) = text.split_once('=').map_or((text, None), |(name, value)| (name, Some(value)));
        match value {
            None if lists(self.rules.long, name) || lists(self.rules.long_optional, name) => self.allowed(name, None),
            None if lists(self.rules.long_valued, name) => self.next_word_is_value(name),
            Some(value) if lists(self.rules.long_valued, name) || lists(self.rules.long_optional, name) => {
                self.value(name, value, self.at, name.len() + 3);
            }
            _ => self.unknown(&format!("--{name}")),
        }
    }

    /// A cluster: letters without a value, then perhaps one with.
    fn short(&mut self, letters: &str) {
        if self.rules.minus_number && letters.bytes().all(|b| b.is_ascii_digit()) {
            return self.allowed("number", None);
        }
        for (at, letter) in letters.char_indices() {
            let (name, rest) = (letter.to_string(), &letters[at + letter.len_utf8()..]);
            if self.rules.flags.contains(letter) {
                self.allowed(&name, None);
            } else if self.rules.optional.contains(letter) {
                return self.optional_value(&name, rest, at);
            } else if self.rules.valued.contains(letter) {
                return self.own_value(&name, rest, at);
            } else {
                return self.unknown(&format!("-{letter}"));
            }
        }
    }

    fn optional_value(&mut self, name: &str, rest: &str, at: usize) {
        match rest {
            "" => self.allowed(name, None),
            value => self.value(name, value, self.at, at + 2),
        }
    }

    /// The rest of the cluster, or the next word.
    fn own_value(&mut self, name: &str, rest: &str, at: usize) {
        match (self.rules.name, rest) {
            // tree takes the next word even here, and the rest for more letters: `-Ifoo` is `-I` `-f` `-o` and writes.
            ("tree", rest) if !rest.is_empty() => {
                self.unknown(&format!("-{name} with more letters behind it"));
            }
            (_, "") => self.next_word_is_value(name),
            // rg drops the `=`; the others keep it.
            ("rg", rest) if rest.starts_with('=') => self.unknown(&format!("-{name}=")),
            (_, value) => self.value(name, value, self.at, at + 2),
        }
    }

    fn next_word_is_value(&mut self, name: &str) {
        let Some(value) = self.words.get(self.at + 1) else {
            return self.ask(format!("option {name} of {} has no value", self.rules.name));
        };
        self.at += 1;
        self.value(name, value, self.at, 0);
    }

    fn allowed(&mut self, name: &str, value: Option<&str>) {
        self.result.options.push(Given { name: name.to_string(), value: value.map(str::to_string) });
    }

    fn value(&mut self, name: &str, value: &str, word: usize, from: usize) {
        if let Some(problem) = value_problem(self.rules, name, value) {
            self.ask(problem);
        }
        let part = |text: &str, skipped: usize| Part { word, from: from + skipped, text: text.to_string() };
        match self.rules.value(name) {
            Value::Text => self.result.texts.push(word),
            Value::Number if is_number(value) => self.result.texts.push(word),
            Value::Number => {
                self.ask(format!("the value {value:?} of option {name} of {} is not a number", self.rules.name));
                self.result.unknown.push(part(value, 0));
            }
            Value::Path => self.result.paths.push(part(value, 0)),
            Value::LineRange => match value.rsplit_once(':') {
                Some((range, path)) => self.result.paths.push(part(path, range.chars().count() + 1)),
                None => self.ask("option L of git log has no file".to_string()),
            },
        }
        self.allowed(name, Some(value));
    }

    fn finish(mut self) -> Arguments {
        self.take_pattern();
        let first = self.positionals.first().map(|at| self.words[*at].as_str());
        let listing = self.result.has("l list contains no-contains merged no-merged points-at");
        let problem = match (self.rules.positionals, first) {
            (Positionals::None, Some(_)) => Some("takes no words"),
            (Positionals::Branch, Some(_)) if !listing => Some("with a name creates or changes a branch"),
            // `tail +1f x`: the obsolete spelling, with the letter that never ends.
            (_, Some(word)) if self.rules.name == "tail" && word.starts_with('+') => {
                Some("with a word that begins with `+`")
            }
            _ => None,
        };
        if let Some(problem) = problem {
            self.ask(format!("{} {problem}", self.rules.name));
        }
        let words = self.words;
        let parts = self.positionals.into_iter().map(|word| Part { word, from: 0, text: words[word].clone() });
        match self.rules.positionals {
            Positionals::Git | Positionals::Branch => self.result.git_words.extend(parts),
            _ => self.result.paths.extend(parts),
        }
        self.result
    }

    /// The first word is the pattern, unless an option gave one or there is no need of one.
    fn take_pattern(&mut self) {
        let wanted = self.rules.positionals == Positionals::PatternThenPaths;
        if !wanted || self.result.has("e regexp f file files type-list version") {
            return;
        }
        if self.positionals.is_empty() {
            self.ask(format!("{} has no pattern", self.rules.name));
        } else {
            self.result.texts.push(self.positionals.remove(0));
        }
    }
}

/// Digits, with an optional sign before and a size suffix behind.
fn is_number(text: &str) -> bool {
    let digits = text.strip_prefix(['-', '+']).unwrap_or(text);
    let suffix = digits.trim_start_matches(|c: char| c.is_ascii_digit());
    digits.len() > suffix.len() && (suffix.is_empty() || lists("b k K kB KB KiB M MB MiB G GB GiB", suffix))
}

#[cfg(test)]
mod tests {
    use super::super::options::rules;
    use super::*;

    fn args(command: &str) -> Arguments {
        let words: Vec<String> = command.split(' ').map(str::to_string).collect();
        let skip = if words[0] == "git" { 2 } else { 1 };
        read(rules(&words[..skip].join(" ")).unwrap(), &words, skip)
    }

    fn paths(command: &str) -> Vec<String> {
        args(command).paths.into_iter().map(|part| part.text).collect()
    }

    #[test]
    fn patterns_are_no_paths_and_option_files_are() {
        assert_eq!(paths("grep -rn x a b"), ["a", "b"]);
        assert_eq!(paths("grep -e x a"), ["a"]);
        assert_eq!(paths("grep -nf pats a"), ["pats", "a"]);
        assert_eq!(paths("rg --ignore-file=ig x"), ["ig"]);
        assert_eq!(paths("rg -g !.git x src"), ["src"]);
        assert_eq!(paths("git log -L1,5:src/x.rs"), ["src/x.rs"]);
        assert_eq!(paths("grep x -- -f"), ["-f"]);
    }

    #[test]
    fn unknown_options_ask_but_the_rest_is_still_read() {
        let read = args("grep -R \\.env src");
        assert!(read.problem.is_some());
        assert_eq!(read.paths.len(), 1);
        for command in [
            "tail -5f x",
            "tree -Ix y",
            "tree -ao x",
            "grep -3n x y",
            "rg -f=x y",
            "head -n x y",
            "head -n",
            "rg",
            "cat --=x",
        ] {
            assert!(args(command).problem.is_some(), "{command}");
        }
    }

    #[test]
    fn the_gates_own_options_go_behind_the_last_option() {
        assert_eq!(args("git diff --stat HEAD").after_options, 3);
        assert_eq!(args("git diff HEAD src -U 3").after_options, 5);
        assert_eq!(args("grep x . --include a").after_options, 5);
        assert_eq!(args("git log -- x").after_options, 2);
    }

    #[test]
    fn a_cluster_may_end_in_an_option_with_a_value() {
        for command in ["tree -aL 2", "grep -rnf pats x", "head -qn 5 x", "git log -pn 3"] {
            assert_eq!(args(command).problem, None, "{command}");
        }
    }

    #[test]
    fn branch_names_are_for_lists_only() {
        assert!(args("git branch -v x").problem.is_some());
        assert!(args("git branch --list x").problem.is_none());
    }
}
