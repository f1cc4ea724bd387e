//! Decides what happens to a command of the bash tool: it runs at once, it asks, or it is refused.
//!
//! **Read-only commands from the list run at once; anything else asks; protected things are refused.** Refuse beats ask, ask
//! beats run. The command is parsed once, here, and what was parsed is what runs: a `Plan` of programs and arguments, without
//! a shell. So a mistake of the parser can make a command wrong, never more powerful.
//!
//! In the order of the decision: `words` parses, `screen` refuses, `expand` does braces and patterns, `arguments` reads the
//! words by the tables of `options`, `confine` follows the paths, `hide` adds what keeps protected files out of the output,
//! `git` disarms git, `plan` describes what runs; `command` does all this for one simple command. `touches` says what a question
//! is about.
//!
//! Not a sandbox: a command that asked and was allowed can do everything its person can.

pub mod always;
pub mod arguments;
mod command;
mod confine;
pub mod expand;
pub mod git;
pub mod hide;
mod names;
pub mod options;
pub mod plan;
pub mod screen;
mod touches;
pub mod words;

pub use plan::{Argv, Join, Plan, Stderr, Step};

use std::fmt;
use std::path::{Path, PathBuf};

use crate::workspace::{Workspace, is_invisible};
use words::{Line, Link, Simple, Word};

/// A longer command asks, in bytes: nobody could read it either.
const MAX_LENGTH: usize = 16 << 10;

/// What is to be done with a command.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Verdict {
    /// Read-only by the tables: run this plan now, without a shell.
    Run(Plan),
    /// Show the command with this reason; on a yes run it in a shell, exactly as shown.
    Ask(Reason),
    /// Never; the text is for the model and the person.
    Refuse(String),
}

/// Why a command asks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reason {
    /// For example "leaves the workspace: /tmp/x".
    pub why: String,
    /// What it would touch, where that can be told.
    pub touches: Vec<String>,
}

/// Both in one sentence, for the person; what the reason says already is not said again.
impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let unsaid: Vec<&str> =
            self.touches.iter().map(String::as_str).filter(|path| !self.why.contains(path)).collect();
        match unsaid.is_empty() {
            true => f.write_str(&self.why),
            false => write!(f, "{} (touches {})", self.why, unsaid.join(", ")),
        }
    }
}

fn ask(why: impl Into<String>) -> Verdict {
    Verdict::Ask(Reason { why: why.into(), touches: Vec::new() })
}

/// Judges a command. Runs nothing but, for git, `git config --list`.
pub fn decide(command: &str, workspace: &Workspace) -> Verdict {
    if let Some(c) = command.chars().find(|c| c.is_control() && !matches!(c, '\t' | '\n')) {
        let shown = c.escape_unicode();
        return Verdict::Refuse(format!("holds a control character ({shown}), which no screen shows; leave it out"));
    }
    let line = words::parse(command);
    let start = start(&line, workspace);
    let base = start.as_ref().ok().map(|(base, _)| base.clone());
    if let Some(why) = screen::refusal(&line, workspace, base.as_deref().unwrap_or(workspace.root())) {
        return Verdict::Refuse(why);
    }
    match judge(command, &line, start, workspace) {
        Ok(plan) => Verdict::Run(plan),
        Err(verdict) => with_touches(verdict, &line, base.as_deref(), workspace),
    }
}

fn judge(
    command: &str,
    line: &Line,
    start: Result<(PathBuf, usize), Verdict>,
    workspace: &Workspace,
) -> Result<Plan, Verdict> {
    let unseen = |c: &char| is_invisible(*c) || (c.is_whitespace() && !c.is_ascii());
    if command.len() > MAX_LENGTH {
        return Err(ask("is too long to judge"));
    }
    if let Some(c) = command.chars().find(unseen) {
        return Err(ask(format!("holds a character that cannot be seen: {}", c.escape_unicode())));
    }
    if let Some(why) = &line.needs_shell {
        return Err(ask(why.clone()));
    }
    let (base, first) = start?;
    chain(line.commands.get(first..).unwrap_or_default(), &base, workspace)
}

/// The word lists of the parts of a chain, if it consists of simple commands only; for "always", which compares word by word.
/// A leading `cd` is a part like any other. `2>&1` and `2>/dev/null` do not count.
pub fn parts(command: &str) -> Option<Vec<Vec<String>>> {
    let line = words::parse(command);
    let simple = |simple: &Simple| {
        let plain = command::stderr(&simple.redirects).is_ok() && !simple.words.iter().any(screen::is_assignment);
        (plain && simple.documents.is_empty() && !simple.words.is_empty())
            .then(|| simple.words.iter().map(Word::text).collect())
    };
    if line.needs_shell.is_some() { None } else { line.commands.iter().map(simple).collect() }
}

/// Words that stand before a command in the shell's own grammar.
const KEYWORDS: [&str; 9] = ["if", "then", "elif", "else", "while", "until", "do", "{", "!"];
/// Words with which the shell's grammar begins or ends something that is no command itself.
const GRAMMAR: [&str; 9] = ["for", "case", "select", "function", "done", "fi", "esac", "}", "[["];
/// Programs that run what their arguments name.
const RUNNERS: [&str; 21] = [
    "env", "command", "builtin", "exec", "eval", "xargs", "nohup", "nice", "time", "timeout", "sh", "bash", "dash",
    "setsid", "stdbuf", "coproc", "flock", "script", "trap", "busybox", "ionice",
];

/// What a line runs, as far as its words tell.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Commands {
    /// The words of its simple commands, without what may stand before them.
    pub plain: Vec<Vec<String>>,
    /// What those may run in turn: behind `env` and its kin, inside `sh -c`. Some of it is no command at all.
    pub inner: Vec<Vec<String>>,
    /// Whether `plain` is all of it: not where a shell is needed for more than a chain.
    pub complete: bool,
}

/// The commands in a line, whatever else is around them. For permission rules, which must not be passed by on the way round a
/// redirection, a loop, `env` or `sh -c`.
pub fn commands(command: &str) -> Commands {
    let line = words::parse(command);
    let mut found = Commands { complete: line.needs_shell.is_none(), ..Commands::default() };
    for simple in &line.commands {
        let before = |word: &&Word| screen::is_assignment(word) || KEYWORDS.contains(&word.text().as_str());
        let words: Vec<String> = simple.words.iter().skip_while(before).map(Word::text).collect();
        let Some(first) = words.first() else { continue };
        // `{rm,x}` and `r?` name their program only once a shell has read them.
        found.complete &= !simple.words.iter().skip_while(before).take(1).any(is_unexpanded);
        found.complete &=
            simple.documents.is_empty() && !GRAMMAR.contains(&first.as_str()) && words.len() == simple.words.len();
        if RUNNERS.contains(&first.rsplit('/').next().unwrap_or(first)) {
            found.inner.extend((1..words.len()).map(|at| words[at..].to_vec()));
            for text in words[1..].iter().filter(|word| word.contains(' ')) {
                let Commands { plain, inner, .. } = commands(text);
                found.inner.extend(plain.into_iter().chain(inner));
            }
        }
        found.plain.push(words);
    }
    found
}

fn is_unexpanded(word: &Word) -> bool {
    expand::is_pattern(&word.chars) || word.has_live('{')
}

/// Adds what the command would touch. Where a later `cd` moves it, that is told as it was written.
fn with_touches(verdict: Verdict, line: &Line, base: Option<&Path>, workspace: &Workspace) -> Verdict {
    let Verdict::Ask(mut reason) = verdict else {
        return verdict;
    };
    let moves = |simple: &Simple| simple.words.first().is_some_and(|word| word.text() == "cd");
    let base = base.filter(|_| !line.commands.iter().skip(1).any(moves));
    reason.touches.extend(touches::touched(line, base, workspace));
    Verdict::Ask(reason)
}

/// Where the chain starts, and its first command after a leading `cd DIR &&`. Models begin most commands so.
fn start(line: &Line, workspace: &Workspace) -> Result<(PathBuf, usize), Verdict> {
    let [cd, next, ..] = &line.commands[..] else {
        return Ok((workspace.root().to_path_buf(), 0));
    };
    let words: Vec<String> = cd.words.iter().map(Word::text).collect();
    if next.link != Link::And || words.first().is_none_or(|word| word != "cd") {
        return Ok((workspace.root().to_path_buf(), 0));
    }
    let literal = |word: &Word| !expand::is_pattern(&word.chars) && !word.has_live('{');
    match &words[..] {
        [_, dir] if cd.words.iter().all(literal) && !dir.starts_with('-') && cd.redirects.is_empty() => {
            Ok((confine::directory(dir, workspace)?, 1))
        }
        _ => Err(ask("cd with anything but one plain directory")),
    }
}

/// All parts are judged, since a refusal of a later one wins over a question of an earlier.
fn chain(commands: &[Simple], base: &Path, workspace: &Workspace) -> Result<Plan, Verdict> {
    let judged: Vec<_> = commands.iter().map(|simple| command::argv(simple, base, workspace)).collect();
    if let Some(Err(refusal)) = judged.iter().find(|part| matches!(part, Err(Verdict::Refuse(_)))) {
        return Err(refusal.clone());
    }
    let mut steps: Vec<Step> = Vec::new();
    for (simple, argv) in commands.iter().zip(judged) {
        let argv = argv?;
        let join = match simple.link {
            _ if steps.is_empty() => Join::Always,
            Link::And => Join::AndThen,
            Link::Or => Join::OrElse,
            Link::Then | Link::Pipe | Link::Shell => Join::Always,
        };
        match steps.last_mut() {
            Some(step) if simple.link == Link::Pipe => step.pipeline.push(argv),
            _ => steps.push(Step { join, pipeline: vec![argv] }),
        }
    }
    let names: Vec<&str> = steps.iter().flat_map(|step| &step.pipeline).map(|argv| argv.name.as_str()).collect();
    if names.iter().all(|name| options::lists(options::BETWEEN, name)) {
        return Err(ask(format!("`{}` alone is not on the list of read-only commands", names.join(" "))));
    }
    Ok(Plan { steps })
}
