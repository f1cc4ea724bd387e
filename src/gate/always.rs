//! What an "always" has to cover.
//!
//! A chain such as `cargo test | tail -5` asks because of one part. If the rest would run at once anyway, an "always" for
//! `cargo test` should be enough for the chain.

use super::{command, parts, start, words};
use crate::workspace::Workspace;
use std::ffi::{OsStr, OsString};
use words::Simple;

/// Those of the [`parts`] that would ask by themselves; `None` where the command is not a chain of simple commands.
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
    let parts = line.commands.iter().zip(all).skip(skip);
    let (asking, rest): (Vec<_>, Vec<_>) = parts.partition(|part| !harmless(part));
    // Where no part asks by itself (`true` alone), the whole was asked about, and the whole is meant.
    let meant = if asking.is_empty() { rest } else { asking };
    Some(meant.into_iter().map(|(_, words)| words).collect())
}
