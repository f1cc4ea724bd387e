//! Decides what happens to a command of the bash tool: it runs at once, it asks, or it is refused.
//!
//! **Read-only commands from the list run at once; anything else asks; protected things are refused.** Refuse beats ask, ask
//! beats run. The command is parsed once, here, and what was parsed is what runs: a [`Plan`] of programs and arguments, without
//! a shell. So a mistake of the parser can make a command wrong, never more powerful.
//!
//! In the order of the decision: [`words`] parses, [`screen`] refuses, [`expand`] does braces and patterns, [`arguments`] reads the
//! words by the tables of [`options`], `confine` follows the paths, [`hide`] adds what keeps protected files out of the output,
//! [`git`] disarms git, [`plan`] describes what runs. `command` does all this for one simple command.
//!
//! Not a sandbox: a command that asked and was allowed can do everything its person can.

pub mod arguments;
mod command;
mod confine;
pub mod expand;
pub mod git;
pub mod hide;
pub mod options;
pub mod plan;
pub mod screen;
pub mod words;

pub use plan::{Argv, Join, Plan, Stderr, Step};

use std::ffi::{OsStr, OsString};
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

fn ask(why: impl Into<String>) -> Verdict {
    Verdict::Ask(Reason { why: why.into(), touches: Vec::new() })
}

/// Judges a command. Runs nothing but, for git, `git config --list`.
pub fn decide(command: &str, workspace: &Workspace) -> Verdict {
    if let Some(c) = command.chars().find(|c| c.is_control() && !matches!(c, '\t' | '\n')) {
        return Verdict::Refuse(format!(
            "the command holds a control character ({}), which no screen shows",
            c.escape_unicode()
        ));
    }
    let line = words::parse(command);
    let start = start(&line, workspace);
    let base = start.as_ref().map_or(workspace.root(), |(base, _)| base.as_path());
    if let Some(why) = screen::refusal(&line, workspace, base) {
        return Verdict::Refuse(why);
    }
    if command.len() > MAX_LENGTH {
        return ask("is too long to judge");
    }
    if let Some(c) = command.chars().find(|c| is_invisible(*c) || (c.is_whitespace() && !c.is_ascii())) {
        return ask(format!("holds a character that cannot be seen: {}", c.escape_unicode()));
    }
    match (&line.needs_shell, start) {
        (Some(why), _) => with_touches(ask(why.clone()), &line),
        (None, Err(verdict)) => verdict,
        (None, Ok((base, rest))) => chain(&line.commands[rest..], &base, workspace)
            .map_or_else(|verdict| with_touches(verdict, &line), Verdict::Run),
    }
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

/// Those of the [`parts`] that an "always" has to cover: the rest of the chain would run at once anyway, so that after an
/// "always" for `cargo test` nobody is asked about `cargo test | tail -5`.
///
/// The chain runs in a shell, and there the gate adds nothing: a search would find protected files, git would obey the
/// repository's settings. So a part is left out only if the shell would run exactly what the gate would.
pub fn asking_parts(command: &str, workspace: &Workspace) -> Option<Vec<Vec<String>>> {
    let (all, line) = (parts(command)?, words::parse(command));
    let Ok((base, skip)) = start(&line, workspace) else { return Some(all) };
    let harmless = |(simple, words): &(&Simple, Vec<String>)| {
        command::argv(simple, &base, workspace).is_ok_and(|argv| {
            let args = argv.args.iter().map(OsString::as_os_str);
            argv.name != "git" && args.eq(words.iter().skip(1).map(OsStr::new))
        })
    };
    let asking = line.commands.iter().zip(all).skip(skip).filter(|part| !harmless(part));
    Some(asking.map(|(_, words)| words).collect())
}

/// Redirections write, whatever else a command asks for.
fn with_touches(verdict: Verdict, line: &Line) -> Verdict {
    let Verdict::Ask(mut reason) = verdict else {
        return verdict;
    };
    let redirects = line.commands.iter().flat_map(|simple| &simple.redirects);
    let written = redirects.filter(|redirect| redirect.operator.contains('>') && redirect.operator != ">&");
    reason.touches.extend(written.map(|redirect| redirect.target.text()).filter(|file| file != "/dev/null"));
    Verdict::Ask(reason)
}

/// Where the chain starts, and its first command after a leading `cd DIR &&`.
fn start(line: &Line, workspace: &Workspace) -> Result<(PathBuf, usize), Verdict> {
    let words = |simple: &Simple| simple.words.iter().map(Word::text).collect::<Vec<String>>();
    match &line.commands[..] {
        [cd, next, ..] if next.link == Link::And && words(cd).first().is_some_and(|word| word == "cd") => {
            let literal = !cd.words.iter().any(|word| expand::is_pattern(&word.chars) || word.has_live('{'));
            match &words(cd)[..] {
                [_, dir] if literal && !dir.starts_with('-') && cd.redirects.is_empty() => {
                    confine::directory(dir, workspace).map(|base| (base, 1))
                }
                _ => Err(ask("cd with anything but one plain directory")),
            }
        }
        _ => Ok((workspace.root().to_path_buf(), 0)),
    }
}

fn chain(commands: &[Simple], base: &Path, workspace: &Workspace) -> Result<Plan, Verdict> {
    let mut steps: Vec<Step> = Vec::new();
    for simple in commands {
        let argv = command::argv(simple, base, workspace)?;
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
    Ok(Plan { steps })
}
