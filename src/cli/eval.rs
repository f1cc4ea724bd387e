//! `--eval CASES --versions A,B`: every run is this program again, in a directory of its own, with the options that are
//! given here.

use super::options::Options;
use super::{Exit, Stop, help, places, print, root, watch_signals};
use crate::attach::{Known, check};
use crate::config::{self, Reach};
use crate::eval::{Plan, absolute};
use crate::sandbox::Wanted;
use std::io::Write;
use std::path::Path;
use std::time::Duration;

/// What a run gets to end by itself, after its own time limit.
const GRACE: Duration = Duration::from_secs(10);

/// Runs the cases: exit 0 all passed, 1 not all, 2 cannot run.
pub(crate) fn run(cases: &Path, options: &Options, known: &[Known]) -> Result<Exit, Stop> {
    options.extensions.iter().try_for_each(|word| check(word, known))?;
    let mut plan = Plan::read(cases, &options.versions)?;
    plan.args = args(options, &root(&Options::default())?);
    plan.endpoint = endpoint(options, plan.needs_endpoint())?;
    if let Some(limit) = options.timeout {
        plan.longest = limit.saturating_add(GRACE);
    }
    let exe = std::env::current_exe().map_err(|e| Stop::Usage(format!("cannot tell where this program is: {e}")))?;
    let cancel = watch_signals()?;
    let mut say = |words: &str| {
        if !options.quiet {
            // A closed stderr leaves nobody to tell.
            let _ = writeln!(std::io::stderr(), "{words}");
        }
    };
    let report = plan.run(&exe, &cancel, &mut say).map_err(|why| match cancel.cause() {
        Some(cause) => Stop::Cancelled(cause),
        None => Stop::Usage(why),
    })?;
    print(&if options.json { report.json() + "\n" } else { report.text() })?;
    Ok(Exit { code: report.exit(), cause: None })
}

/// The options that every run gets.
fn args(options: &Options, here: &Path) -> Vec<String> {
    let mut args = Vec::new();
    for (flag, is_set) in [
        ("--yes", options.yes),
        ("--plan", options.plan),
        ("--no-rules", options.no_rules),
        ("--sandbox", options.sandbox == Wanted::Yes),
    ] {
        args.extend(is_set.then(|| flag.to_owned()));
    }
    for (flag, value) in [
        ("--max-turns", options.max_turns.map(|most| most.to_string())),
        ("--token-budget", options.token_budget.map(|most| most.to_string())),
        ("--timeout", options.timeout.map(|limit| limit.as_secs().to_string())),
        ("--context-window", options.context_window.map(|tokens| tokens.to_string())),
    ] {
        args.extend(value.into_iter().flat_map(|value| [flag.to_owned(), value]));
    }
    args.extend(options.extensions.iter().flat_map(|word| ["--ext".to_owned(), absolute(word, here)]));
    args
}

/// The endpoint, as the variables of a run: found here, since a run does not see this directory's `.env`. Whatever else
/// is set for mini, a proxy or a version's own key comes along with the environment.
fn endpoint(options: &Options, is_needed: bool) -> Result<Vec<(String, String)>, Stop> {
    let mut variables: Vec<(String, String)> = std::env::vars_os()
        .filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)))
        .collect();
    let found = config::find(&options.endpoint, &places(), Reach::All)?.settings;
    if found.is_none() && is_needed {
        return Err(Stop::Usage(help::NO_ENDPOINT.into()));
    }
    if let Some(settings) = found {
        let own = ["MINI_BASE_URL", "MINI_API_KEY", "MINI_MODEL"];
        variables.retain(|(name, _)| !own.contains(&name.as_str()));
        let values = [Some(settings.base_url), settings.key, Some(settings.model)];
        let set = own.into_iter().zip(values).filter_map(|(name, value)| Some((name.to_owned(), value?)));
        variables.extend(set.filter(|(_, value)| !value.is_empty()));
    }
    Ok(variables)
}
