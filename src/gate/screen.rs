//! What is refused before anybody is asked: words that name a protected file or place, and programs that raise privileges.
//!
//! This is the second line, not the first: what runs at once is confined path by path anyway, and what asks is seen by a person.
//! It looks for names as words and path components, in every simple command, and leaves alone what is only text: patterns,
//! messages, here-documents, what `echo` prints. It cannot see through `cat $x` or `'.e' + 'nv'`; there the question is the
//! control.

use std::path::Path;

use super::arguments;
use super::expand::{braces, fits, is_pattern};
use super::options::{listed, lists};
use super::words::{Ch, Line, Redirect, Simple, Word};
use crate::workspace::{Fault, PROTECTED_PLACES, WAY_OUT, Workspace, protected_place, protected_samples};

/// Raise privileges.
const PRIVILEGED: &str = "sudo sudoedit doas su pkexec run0 gosu";

/// Run what is handed to them, so their text is searched.
const INTERPRETERS: &str = "sh bash zsh dash ksh fish eval source . python python2 python3 node deno bun perl ruby php lua awk \
    gawk mawk osascript";

/// Run the command that follows them. The letters: short options that take a word.
const WRAPPERS: [(&str, &str); 21] = [
    ("env", "uCS"),
    ("nohup", ""),
    ("time", "fo"),
    ("timeout", "sk"),
    ("nice", "n"),
    ("ionice", "cn"),
    ("xargs", "nPILsdEa"),
    ("command", ""),
    ("builtin", ""),
    ("exec", "a"),
    ("setsid", ""),
    ("stdbuf", "ioe"),
    ("watch", "n"),
    ("if", ""),
    ("then", ""),
    ("elif", ""),
    ("else", ""),
    ("while", ""),
    ("do", ""),
    ("!", ""),
    ("{", ""),
];

/// Options whose next word is text, for programs that have no table.
const TEXT_OPTIONS: [(&str, &str); 5] = [
    ("git", "-m -am --message --grep --author --format --pretty -S -G -F-"),
    ("gh", "-t -b --title --body --notes --search"),
    ("glab", "-t -d --title --description"),
    ("find", "-name -iname -path -ipath -wholename -iwholename -regex -iregex"),
    ("fd", "-E --exclude -e --extension"),
];

/// The environment in JavaScript: looks like a file name, is none.
const NO_FILES: &str = "process.env import.meta.env Deno.env Bun.env";

/// Options of any program whose value says what to leave out.
const LEFT_OUT: &str = "--exclude --exclude-dir --exclude-pattern --ignore";

/// Programs whose first word is a pattern or a filter.
const PATTERN_FIRST: &str = "egrep fgrep zgrep ag ack fd fdfind jq yq";

/// Options of `find` that begin a command.
const FIND_EXEC: &str = "-exec -execdir -ok -okdir";

/// Why a command line is refused, if it is. `base` is the directory it starts in.
pub fn refusal(line: &Line, workspace: &Workspace, base: &Path) -> Option<String> {
    let screen = Screen { workspace, base };
    line.commands.iter().find_map(|simple| screen.simple(simple))
}

struct Screen<'a> {
    workspace: &'a Workspace,
    base: &'a Path,
}

/// What one layer of a command comes to.
enum Layer<'w> {
    Clean,
    Refused(String),
    /// It runs another command: these words.
    Runs(&'w [Word]),
}

impl From<Option<String>> for Layer<'_> {
    fn from(refusal: Option<String>) -> Self {
        refusal.map_or(Layer::Clean, Layer::Refused)
    }
}

impl Screen<'_> {
    fn simple(&self, simple: &Simple) -> Option<String> {
        let words = braces(&simple.words).unwrap_or_else(|_| simple.words.clone());
        let feeds_interpreter = || words.iter().any(|word| lists(INTERPRETERS, &base_name(word)));
        self.command(&words)
            .or_else(|| simple.redirects.iter().find_map(|redirect| self.redirect(redirect)))
            .or_else(|| words.iter().filter(|word| word.has_command).find_map(|word| self.script(&word.text())))
            .or_else(|| simple.documents.iter().filter(|_| feeds_interpreter()).find_map(|text| self.script(text)))
    }

    fn redirect(&self, redirect: &Redirect) -> Option<String> {
        self.path(&redirect.target.chars)
    }

    /// One command, from its name on, through everything that only runs another one.
    fn command(&self, words: &[Word]) -> Option<String> {
        let mut layer = self.layer(words);
        // A loop, because a command line may hold a thousand `env`.
        while let Layer::Runs(inner) = layer {
            layer = self.layer(inner);
        }
        match layer {
            Layer::Refused(why) => Some(why),
            Layer::Clean | Layer::Runs(_) => None,
        }
    }

    fn layer<'w>(&self, words: &'w [Word]) -> Layer<'w> {
        let assignments = words.iter().take_while(|word| is_assignment(word)).count();
        let (before, words) = words.split_at(assignments);
        let Some((first, rest)) = words.split_first() else {
            return self.all(before).into();
        };
        let name = base_name(first);
        if lists(PRIVILEGED, &name) {
            return Layer::Refused(raises(&name));
        }
        if let Some(why) = self.all(before).or_else(|| self.word(first)) {
            return Layer::Refused(why);
        }
        if lists(INTERPRETERS, &name) {
            return rest.iter().find_map(|word| self.interpreted(word)).into();
        }
        match WRAPPERS.iter().find(|(wrapper, _)| *wrapper == name) {
            Some((_, valued)) => self.wrapped(rest, valued),
            None => self.arguments(&name, words),
        }
    }

    fn all(&self, words: &[Word]) -> Option<String> {
        words.iter().find_map(|word| self.word(word))
    }

    fn interpreted(&self, word: &Word) -> Option<String> {
        if is_pattern(&word.chars) { self.word(word) } else { self.script(&word.text()) }
    }

    /// The words of a wrapper, then the command it runs.
    fn wrapped<'w>(&self, words: &'w [Word], valued: &str) -> Layer<'w> {
        let mut at = 0;
        while let Some(text) = words.get(at).map(Word::text) {
            match text.strip_prefix('-') {
                // `command -v sudo` only asks where it is.
                Some("v" | "V") => return Layer::Clean,
                Some(option) if option.len() == 1 && valued.contains(option) => at += 2,
                Some(_) => at += 1,
                None if text.starts_with(|c: char| c.is_ascii_digit()) => at += 1,
                None => break,
            }
        }
        let (own, inner) = words.split_at(at.min(words.len()));
        self.all(own).map_or(Layer::Runs(inner), Layer::Refused)
    }

    fn arguments<'w>(&self, name: &str, words: &'w [Word]) -> Layer<'w> {
        let mut texts: Vec<String> = words.iter().map(Word::text).collect();
        texts[0] = name.to_string();
        if name == "find"
            && let Some(at) = texts.iter().position(|text| lists(FIND_EXEC, text))
        {
            let before = self.unlisted(name, &words[..at], &texts[..at]);
            return before.map_or(Layer::Runs(&words[at + 1..]), Layer::Refused);
        }
        match listed(&texts) {
            Some((rules, skip)) => self.listed(&arguments::read(rules, &texts, skip), words).into(),
            None => self.unlisted(name, words, &texts).into(),
        }
    }

    /// The table says which words are paths.
    fn listed(&self, arguments: &arguments::Arguments, words: &[Word]) -> Option<String> {
        let chars = |part: &arguments::Part| words[part.word].chars.get(part.from..).unwrap_or_default().to_vec();
        let paths = arguments.paths.iter().find_map(|part| self.path(&chars(part)));
        let git = || arguments.git_words.iter().find_map(|part| self.git_word(&words[part.word]));
        paths.or_else(git).or_else(|| arguments.unknown.iter().find_map(|part| self.word(&words[part.word])))
    }

    fn unlisted(&self, name: &str, words: &[Word], texts: &[String]) -> Option<String> {
        if matches!(name, "echo" | "printf") {
            return None;
        }
        let options = TEXT_OPTIONS.iter().find(|(program, _)| *program == name).map_or("", |(_, list)| list);
        let takes_text = |option: &str| lists(options, option) || lists(LEFT_OUT, option);
        let pattern = (1..texts.len()).find(|at| lists(PATTERN_FIRST, name) && !texts[*at].starts_with('-'));
        for (at, text) in texts.iter().enumerate().skip(1) {
            let glued = text.split_once('=').is_some_and(|(option, _)| takes_text(option));
            if Some(at) == pattern || glued || takes_text(&texts[at - 1]) {
                continue;
            }
            let found = if name == "git" { self.git_word(&words[at]) } else { self.word(&words[at]) };
            if found.is_some() {
                return found;
            }
        }
        None
    }

    /// A revision or a path: `HEAD:.env`, `:(top).env`. Excluded paths are the opposite of a danger.
    fn git_word(&self, word: &Word) -> Option<String> {
        if is_exclude(&word.text()) { None } else { self.word(word) }
    }

    /// Any word: the whole, what stands behind `=`, `:`, `@`, and what is glued to a short option.
    fn word(&self, word: &Word) -> Option<String> {
        let text = word.text();
        if let Some((scheme, rest)) = text.split_once("://") {
            // A path on another machine, unless it is this one.
            return if scheme.ends_with("file") { self.path(&plain(rest)) } else { None };
        }
        let glued = text.starts_with('-').then(|| word.chars.iter().position(|ch| "./~".contains(ch.c))).flatten();
        let pieces = word.chars.split(|ch| "=:@,)".contains(ch.c));
        self.path(&word.chars)
            .or_else(|| glued.and_then(|at| self.path(&word.chars[at..])))
            .or_else(|| pieces.into_iter().find_map(|piece| self.path(piece)))
    }

    fn path(&self, chars: &[Ch]) -> Option<String> {
        let text = text(chars);
        let what = match self.workspace.screen(self.base, &text) {
            Err(Fault::Protected(what)) => what,
            _ if is_pattern(chars) && self.could_match(chars) => {
                format!("what the pattern {text} can name")
            }
            _ => return None,
        };
        Some(format!("{what} is protected; {WAY_OUT}"))
    }

    /// Whether a pattern could name something protected, whatever is on the disk now.
    fn could_match(&self, pattern: &[Ch]) -> bool {
        let components: Vec<&[Ch]> = pattern.split(|ch| ch.c == '/').collect();
        let names = |part: &&[Ch]| is_pattern(part) && protected_samples().any(|name| fits_name(part, name));
        components.iter().any(names) || self.could_match_place(pattern)
    }

    fn could_match_place(&self, pattern: &[Ch]) -> bool {
        let base = plain(&self.base.to_string_lossy());
        let whole = if pattern.first().is_some_and(|ch| ch.c == '/') {
            pattern.to_vec()
        } else {
            [&base[..], &plain("/"), pattern].concat()
        };
        let mut parts: Vec<Vec<Ch>> = Vec::new();
        for part in whole.split(|ch| ch.c == '/') {
            match text(part).as_str() {
                "" | "." => {}
                ".." => drop(parts.pop()),
                _ => parts.push(part.to_vec()),
            }
        }
        let fits_place = |place: &&[&str]| place.iter().zip(&parts).all(|(name, part)| fits(part, name));
        parts.iter().any(|part| is_pattern(part)) && !self.is_own(&parts) && PROTECTED_PLACES.iter().any(fits_place)
    }

    /// A workspace in a protected place (`/dev/shm`) is the person's choice.
    fn is_own(&self, parts: &[Vec<Ch>]) -> bool {
        let root = self.workspace.root();
        let literal: String = parts.iter().map(|part| format!("/{}", text(part))).collect();
        protected_place(root).is_some() && Path::new(&literal).starts_with(root)
    }

    /// The text of a script in whatever language: everything in it that looks like a path, and the first word of everything
    /// that looks like a command.
    fn script(&self, text: &str) -> Option<String> {
        let in_path = |c: char| c.is_alphanumeric() || "._-/~".contains(c);
        let path = text.split(|c| !in_path(c)).filter(|piece| !lists(NO_FILES, piece));
        let commands = text.split([';', '&', '|', '(', ')', '`', '\n', '\'', '"', '{', '[']);
        let first = |command: &str| command.split_whitespace().find(|word| !word.contains('=')).map(str::to_string);
        path.map(plain).find_map(|piece| self.path(&piece)).or_else(|| {
            let names = commands.filter_map(first).map(|word| word.rsplit('/').next().unwrap_or_default().to_string());
            names.into_iter().find(|name| lists(PRIVILEGED, name)).map(|name| raises(&name))
        })
    }
}

/// `*` alone is in every second command and means no secret; what it matches is judged file by file. So the first character must
/// be written out, as bash wants it for a dot.
fn fits_name(pattern: &[Ch], name: &str) -> bool {
    pattern.first().is_some_and(|ch| name.starts_with(ch.c)) && fits(pattern, name)
}

/// `:!x`, `:^x`, `:(exclude)x`: pathspecs that leave something out.
pub fn is_exclude(word: &str) -> bool {
    let magic = word.strip_prefix(":(").and_then(|rest| rest.split_once(')')).map_or("", |(magic, _)| magic);
    word.starts_with(":!") || word.starts_with(":^") || magic.split(',').any(|name| name == "exclude")
}

/// `NAME=…` before a command.
pub fn is_assignment(word: &Word) -> bool {
    let name: Vec<&Ch> =
        word.chars.iter().take_while(|ch| !ch.quoted && (ch.c.is_ascii_alphanumeric() || ch.c == '_')).collect();
    let rest = &word.chars[name.len()..];
    let next = |at: usize, c: char| rest.get(at).is_some_and(|ch: &Ch| ch.c == c && !ch.quoted);
    name.first().is_some_and(|ch| !ch.c.is_ascii_digit())
        && (next(0, '=') || (next(0, '+') && next(1, '=')) || next(0, '['))
}

fn raises(name: &str) -> String {
    format!("`{name}` raises privileges; {WAY_OUT}")
}

fn base_name(word: &Word) -> String {
    let text = word.text().to_lowercase();
    text.rsplit('/').next().unwrap_or_default().to_string()
}

fn text(chars: &[Ch]) -> String {
    chars.iter().map(|ch| ch.c).collect()
}

fn plain(text: &str) -> Vec<Ch> {
    text.chars().map(|c| Ch { c, quoted: true }).collect()
}
