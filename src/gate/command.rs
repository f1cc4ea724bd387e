//! One simple command: from its words to what is executed.

use std::path::Path;

use super::arguments::Arguments;
use super::expand::Expanded;
use super::options::Rules;
use super::words::{Redirect, Simple, Word};
use super::{Argv, Stderr, Verdict, arguments, ask, confine, expand, git, hide, options, plan, screen};
use crate::workspace::Workspace;

/// Judges one simple command that starts in `base`, and says what is executed for it.
pub fn argv(simple: &Simple, base: &Path, workspace: &Workspace) -> Result<Argv, Verdict> {
    let stderr = stderr(&simple.redirects).map_err(ask)?;
    let (rules, skip, words) = expanded(simple, base, workspace)?;
    let texts: Vec<String> = words.iter().map(Expanded::text).collect();
    let arguments = arguments::read(rules, &texts, skip);
    judge(&arguments, &words)?;
    let searched = confine::all(&arguments, base, workspace)?;
    let mut additions = hide::additions(rules, &arguments);
    let search_path = plan::search_path(workspace);
    let mut env = plan::environment(&search_path);
    let program = plan::program(&texts[0], &search_path, workspace);
    if texts[0] == "git" {
        let repository = git::repository(base).ok_or_else(|| ask("there is no git repository here"))?;
        if rules.name == "git diff" && git::compares_files(&arguments, base, repository) {
            additions.pathspecs.clear();
        }
        program.iter().try_for_each(|program| git::harden(&mut env, program, base)).map_err(ask)?;
    }
    let hides = additions.excludes && searched.iter().any(|dir| hide::has_protected(dir));
    let args = assemble(&texts, &arguments, additions).into_iter().map(Into::into).collect();
    Ok(Argv { name: texts[0].clone(), program, args, dir: base.to_path_buf(), env, stderr, hides })
}

/// The words after braces and patterns, with the table they are read by and the number of words in the command's name.
fn expanded(
    simple: &Simple,
    base: &Path,
    workspace: &Workspace,
) -> Result<(&'static Rules, usize, Vec<Expanded>), Verdict> {
    if simple.words.iter().any(screen::is_assignment) {
        return Err(ask("sets a variable for a command"));
    }
    let words = expand::braces(&simple.words).map_err(ask)?;
    let texts: Vec<String> = words.iter().map(Word::text).collect();
    let (rules, skip) = options::listed(&texts).ok_or_else(|| not_listed(&texts))?;
    let enter = |dir: &str| confine::enter(dir, base, workspace);
    Ok((rules, skip, expand::patterns(&words, base, &enter).map_err(ask)?))
}

fn not_listed(words: &[String]) -> Verdict {
    let named = if words.first().is_some_and(|word| word == "git") { 2 } else { 1 };
    let name: Vec<&str> = words.iter().take(named).map(String::as_str).collect();
    ask(format!("`{}` is not on the list of read-only commands", name.join(" ")))
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
pub fn stderr(redirects: &[Redirect]) -> Result<Stderr, String> {
    let described = |r: &Redirect| (r.fd.clone(), r.operator, r.target.text());
    match redirects {
        [] => Ok(Stderr::Keep),
        [one] if described(one) == ("2".to_string(), ">&", "1".to_string()) => Ok(Stderr::Merge),
        [one] if described(one) == ("2".to_string(), ">", "/dev/null".to_string()) => Ok(Stderr::Null),
        [one, ..] => Err(format!("redirects (`{}{}{}`)", one.fd, one.operator, one.target)),
    }
}
