//! What a command that asks would touch, as far as its words tell: for the question, never for the verdict.
//!
//! A person decides faster about "would touch src/a.rs, src/b.rs" than about a pattern. The table knows the programs that are
//! asked about most; of any other only the redirections are known, and what a program does beyond its words nobody can tell.

use std::path::Path;

use super::expand::{self, is_pattern};
use super::options::lists;
use super::words::{Line, Simple, Word};
use crate::workspace::{Fault, Workspace};

/// Change all that they name.
const ALL: &str = "rm rmdir unlink shred mkdir touch tee truncate mv patch";
/// Change the last word they are given.
const LAST: &str = "cp ln install rsync scp";
/// Change all but the first word, which is a mode, an owner or a script (for `sed` and `perl` only with `-i`).
const BEHIND_FIRST: &str = "chmod chown chgrp sed perl";
/// Subcommands of git whose words are paths.
const GIT: &str = "rm mv add restore clean";
/// More names than this are counted, not listed.
const MOST: usize = 8;

/// The files and directories, as they were written; patterns as what they match now. `base` is where the commands run, if that
/// is known.
pub fn touched(line: &Line, base: Option<&Path>, workspace: &Workspace) -> Vec<String> {
    let named = line.commands.iter().flat_map(|simple| words(simple).into_iter().chain(redirected(simple)));
    let mut all: Vec<String> = named.flat_map(|word| shown(word, base, workspace)).collect();
    all.dedup();
    if all.len() > MOST {
        let more = all.len() - MOST;
        all.truncate(MOST);
        all.push(format!("and {more} more"));
    }
    all
}

/// Redirections write, whatever a command asks for.
fn redirected(simple: &Simple) -> impl Iterator<Item = &Word> {
    let written =
        simple.redirects.iter().filter(|redirect| redirect.operator.contains('>') && redirect.operator != ">&");
    written.map(|redirect| &redirect.target).filter(|target| target.text() != "/dev/null")
}

/// The words of a command that name what it changes.
fn words(simple: &Simple) -> Vec<&Word> {
    let Some((first, rest)) = simple.words.split_first() else { return Vec::new() };
    let is_option = |word: &&Word| word.chars.first().is_some_and(|ch| ch.c == '-');
    let plain = |from: usize| rest.iter().skip(from).filter(move |word| !is_option(word));
    let in_place = || rest.iter().map(Word::text).any(|text| text.starts_with("-i") || text.starts_with("--in-place"));
    match first.text().as_str() {
        name if lists(ALL, name) => plain(0).collect(),
        name if lists(LAST, name) => plain(1).next_back().into_iter().collect(),
        "sed" | "perl" if !in_place() => Vec::new(),
        name if lists(BEHIND_FIRST, name) => plain(0).skip(1).collect(),
        "git" if rest.first().is_some_and(|sub| lists(GIT, &sub.text())) => plain(1).collect(),
        "git" => rest.iter().skip_while(|word| word.text() != "--").skip(1).collect(),
        _ => Vec::new(),
    }
}

fn shown(word: &Word, base: Option<&Path>, workspace: &Workspace) -> Vec<String> {
    let Some(base) = base else { return vec![word.text()] };
    let matched = || expand::patterns(std::slice::from_ref(word), base, &|dir| inside(dir, base, workspace)).ok();
    let names = match is_pattern(&word.chars) {
        true => matched().map_or_else(Vec::new, |words| words.iter().map(expand::Expanded::text).collect()),
        false => Vec::new(),
    };
    let names = if names.is_empty() { vec![word.text()] } else { names };
    let outside = |name: &str| matches!(workspace.locate(base, name), Err(Fault::Outside(_)));
    names
        .into_iter()
        .map(|name| if outside(&name) { format!("{name} (outside the workspace)") } else { name })
        .collect()
}

/// Nothing outside is listed, not even for a question.
fn inside(dir: &str, base: &Path, workspace: &Workspace) -> Result<(), String> {
    workspace.locate(base, dir).map(drop).map_err(|_| "not inside".into())
}
