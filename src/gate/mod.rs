//! Decides what happens to a command of the bash tool: it runs at once, it asks, or it is refused.
//!
//! **Read-only commands from the list run at once; anything else asks; protected things are refused.** Refuse beats ask, ask
//! beats run. The command is parsed once, here, and what was parsed is what runs: a [`Plan`] of programs and arguments, without
//! a shell. So a mistake of the parser can make a command wrong, never more powerful.
//!
//! In the order of the decision: [`words`] parses, [`screen`] refuses, [`expand`] does braces and patterns, [`arguments`] reads the
//! words by the tables of [`options`], paths are confined by the workspace, [`hide`] adds what keeps protected files out of the
//! output, [`git`] disarms git, [`plan`] describes what runs.
//!
//! Not a sandbox: a command that asked and was allowed can do everything its person can.

pub mod arguments;
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

use crate::workspace::{Fault, Kind, WAY_OUT, Workspace, is_invisible};
use arguments::Arguments;
use expand::Expanded;
use options::Rules;
use words::{Line, Link, Redirect, Simple, Word};

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
        let plain = stderr(&simple.redirects).is_ok() && !simple.words.iter().any(screen::is_assignment);
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
        argv(simple, &base, workspace).is_ok_and(|argv| {
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
    let written =
        redirects.filter(|redirect| redirect.operator.contains('>') && stderr(std::slice::from_ref(redirect)).is_err());
    reason.touches.extend(written.map(|redirect| redirect.target.text()));
    Verdict::Ask(reason)
}

/// Where the chain starts, and its first command after a leading `cd DIR &&`.
fn start(line: &Line, workspace: &Workspace) -> Result<(PathBuf, usize), Verdict> {
    let words = |simple: &Simple| simple.words.iter().map(Word::text).collect::<Vec<String>>();
    match &line.commands[..] {
        [cd, next, ..] if next.link == Link::And && words(cd).first().is_some_and(|word| word == "cd") => {
            let literal = !cd.words.iter().any(|word| expand::is_pattern(&word.chars) || word.has_live('{'));
            match &words(cd)[..] {
                [_, dir] if literal && !dir.starts_with('-') && cd.redirects.is_empty() => directory(dir, workspace),
                _ => Err(ask("cd with anything but one plain directory")),
            }
        }
        _ => Ok((workspace.root().to_path_buf(), 0)),
    }
}

fn directory(dir: &str, workspace: &Workspace) -> Result<(PathBuf, usize), Verdict> {
    let place = confine(dir, workspace.root(), workspace)?;
    match place {
        Some((path, Kind::Directory)) => Ok((path, 1)),
        _ => Err(ask(format!("cd to {dir}, which is not a directory"))),
    }
}

fn chain(commands: &[Simple], base: &Path, workspace: &Workspace) -> Result<Plan, Verdict> {
    let mut steps: Vec<Step> = Vec::new();
    for simple in commands {
        let argv = argv(simple, base, workspace)?;
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

/// One simple command: from its words to what is executed.
fn argv(simple: &Simple, base: &Path, workspace: &Workspace) -> Result<Argv, Verdict> {
    let stderr = stderr(&simple.redirects).map_err(ask)?;
    if simple.words.iter().any(screen::is_assignment) {
        return Err(ask("sets a variable for a command"));
    }
    let words = expand::braces(&simple.words).map_err(ask)?;
    if words.is_empty() {
        return Err(ask("is no command"));
    }
    let (rules, skip) = listed(&words.iter().map(Word::text).collect::<Vec<String>>())?;
    let words = expand::patterns(&words, base, &|dir| enter(dir, base, workspace)).map_err(ask)?;
    let texts: Vec<String> = words.iter().map(Expanded::text).collect();
    let arguments = arguments::read(rules, &texts, skip);
    judge(&arguments, &words)?;
    let searched = confine_all(&arguments, base, workspace)?;
    let mut additions = hide::additions(rules, &arguments);
    let mut env = plan::environment(workspace);
    let program = plan::program(&texts[0], workspace);
    if texts[0] == "git" {
        let repository = git::repository(base).ok_or_else(|| ask("there is no git repository here"))?;
        if rules.name == "git diff" && arguments.git_words.iter().any(|word| git::names_blob(&word.text, repository)) {
            additions.pathspecs.clear();
        }
        if let Some(program) = &program {
            git::harden(&mut env, program, base).map_err(ask)?;
        }
    }
    let hides = additions.excludes && searched.iter().any(|dir| hide::has_protected(dir));
    let args = assemble(&texts, &arguments, additions).into_iter().map(Into::into).collect();
    Ok(Argv { name: texts[0].clone(), program, args, dir: base.to_path_buf(), env, stderr, hides })
}

/// The table of the command that these words begin with, and how many words its name has.
fn listed(words: &[String]) -> Result<(&'static Rules, usize), Verdict> {
    let named = if words[0] == "git" { 2 } else { 1 };
    let name = || words.iter().take(named).cloned().collect::<Vec<_>>().join(" ");
    options::listed(words).ok_or_else(|| ask(format!("`{}` is not on the list of read-only commands", name())))
}

fn judge(arguments: &Arguments, words: &[Expanded]) -> Result<(), Verdict> {
    if let Some(word) = words.iter().find(|word| word.matched && word.text().starts_with('-')) {
        return Err(ask(format!("a pattern matched {:?}, which looks like an option", word.text())));
    }
    if arguments.texts.iter().any(|at| words[*at].matched) {
        return Err(ask("an unquoted pattern matched file names where text is expected"));
    }
    arguments.problem.clone().map_or(Ok(()), |why| Err(ask(why)))
}

/// Confines every path. A refusal wins over a question. Returns the directories that are searched or compared.
fn confine_all(arguments: &Arguments, base: &Path, workspace: &Workspace) -> Result<Vec<PathBuf>, Verdict> {
    let paths = arguments.paths.iter().map(|part| part.text.as_str());
    let git_words = arguments.git_words.iter().map(|part| part.text.as_str());
    let git_paths = git_words.filter(|word| !screen::is_exclude(word)).filter_map(|word| git_path(word, base));
    let mut question = None;
    let mut directories = vec![base.to_path_buf()];
    for word in paths.chain(git_paths) {
        match confine(word, base, workspace) {
            Ok(Some((path, Kind::Directory))) => directories.push(path),
            Ok(_) => {}
            Err(Verdict::Refuse(why)) => return Err(Verdict::Refuse(why)),
            Err(verdict) => drop(question.get_or_insert(verdict)),
        }
    }
    question.map_or(Ok(directories), Err)
}

/// The path in a git word, if it is one for sure: it exists, is absolute, or climbs. `main..feature` and `HEAD^!` are none.
fn git_path<'a>(word: &'a str, base: &Path) -> Option<&'a str> {
    let path = word
        .strip_prefix(":/")
        .or(word.strip_prefix(":(").and_then(|rest| Some(rest.split_once(')')?.1)))
        .unwrap_or(word);
    let is_path =
        path.starts_with('/') || path.split('/').any(|part| part == "..") || base.join(path).symlink_metadata().is_ok();
    (is_path && !path.is_empty()).then_some(path)
}

/// Where a path word leads, if that is for this command to see. None for `/dev/null`.
fn confine(word: &str, base: &Path, workspace: &Workspace) -> Result<Option<(PathBuf, Kind)>, Verdict> {
    match word {
        "" => return Err(ask("an empty word where a path is expected")),
        "/dev/null" => return Ok(None),
        _ => {}
    }
    match workspace.locate(base, word) {
        Ok(place) => match place.kind() {
            Kind::Special(what) => Err(ask(format!("{word} is a {what}"))),
            kind => Ok(Some((place.absolute().to_path_buf(), kind))),
        },
        Err(Fault::Protected(what)) => Err(Verdict::Refuse(format!("{word}: {what} {WAY_OUT}"))),
        Err(Fault::Outside(path)) => {
            let path = path.display().to_string();
            Err(Verdict::Ask(Reason { why: format!("leaves the workspace: {path}"), touches: vec![path] }))
        }
        Err(Fault::Broken(why)) => Err(ask(format!("{word}: {why}"))),
    }
}

/// A pattern may list a directory if its path stays inside. What it matches is judged name by name afterwards, so a protected
/// directory need not be told apart here.
fn enter(dir: &str, base: &Path, workspace: &Workspace) -> Result<(), String> {
    match workspace.locate(base, dir) {
        Err(Fault::Outside(path)) => Err(format!("leaves the workspace: {}", path.display())),
        _ => Ok(()),
    }
}

/// The gate's options go behind the command's own, its pathspecs to the end.
fn assemble(words: &[String], arguments: &Arguments, additions: hide::Additions) -> Vec<String> {
    let (before, after) = words.split_at(arguments.after_options);
    let no_pager =
        (words[0] == "git" && before.get(1).is_none_or(|word| word != "--no-pager")).then(|| "--no-pager".to_string());
    let own = before.iter().skip(1).cloned();
    no_pager
        .into_iter()
        .chain(own)
        .chain(additions.options)
        .chain(after.iter().cloned())
        .chain(additions.pathspecs)
        .collect()
}

/// What the redirections make of the error output. Err for any that needs a shell.
fn stderr(redirects: &[Redirect]) -> Result<Stderr, String> {
    let described = |r: &Redirect| (r.fd.clone(), r.operator, r.target.text());
    match redirects {
        [] => Ok(Stderr::Keep),
        [one] if described(one) == ("2".to_string(), ">&", "1".to_string()) => Ok(Stderr::Merge),
        [one] if described(one) == ("2".to_string(), ">", "/dev/null".to_string()) => Ok(Stderr::Null),
        [one, ..] => Err(format!("redirects (`{}{}{}`)", one.fd, one.operator, one.target)),
    }
}
