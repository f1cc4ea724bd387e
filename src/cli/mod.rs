//! The command line: words become a run, and the run's end becomes an exit code.
//!
//! | file | its idea |
//! |---|---|
//! | `options` | the words as data |
//! | `help` | the help pages |
//! | `input` | what a task consists of: words, piped text, files |
//! | `front` | who watches, who is asked, and the recipe of an agent |
//! | `work` | one task |
//! | `talk` | many, at a prompt |
//! | `sessions` | which session a run goes on with; the list of them; what a task changed |
//! | `labs` | `--lab` and what goes with it |
//! | `doctor` | `--doctor` |
//! | `eval` | `--eval` |
//!
//! Exit codes are decided in two places only: [`Outcome::exit`](crate::event::Outcome::exit) for a run that began,
//! `Stop` for one that could not.

mod doctor;
mod eval;
mod front;
pub mod help;
pub mod input;
mod labs;
pub mod options;
mod sessions;
mod talk;
mod work;

use crate::attach::Known;
use crate::cancel::{Cancel, Cause};
use crate::config::{self, Places, Reach};
use crate::gate::{self, Verdict};
use crate::permissions::{Asked, Permissions, Ruled};
use crate::rundir::{RunDir, state_dir};
use crate::workspace::Workspace;
use front::Front;
use options::{Mode, Options};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// Why a run did not begin, or how it went where no `end` event tells.
#[derive(Debug)]
pub(crate) enum Stop {
    /// Usage or configuration: exit 2.
    Usage(String),
    /// The endpoint, an extension or mini itself failed: exit 1.
    Failed(String),
    /// Told to stop before the run began.
    Cancelled(Cause),
    /// Something asks first, and nobody is there to answer: exit 4.
    Unapproved(String),
}

/// Usage errors are the ones that can be put into words without knowing more.
impl From<String> for Stop {
    fn from(why: String) -> Stop {
        Stop::Usage(why)
    }
}

/// How the process ends: its exit code, and the cause if it was told to stop.
pub(crate) struct Exit {
    pub code: u8,
    pub cause: Option<Cause>,
}

/// The whole program. `known` is the list of compiled-in extensions; a stranger's `main` passes its own.
pub fn main(known: &[Known]) -> ExitCode {
    hide_environment();
    let exit = match options::parse(std::env::args_os().skip(1)).map_err(Stop::Usage).and_then(|o| dispatch(&o, known))
    {
        Ok(exit) => exit,
        Err(stop) => told(stop),
    };
    // Everything is dropped by now: children are ended, the private directory is gone, the log is written.
    if let Some(signal) = exit.cause.and_then(Cause::signal) {
        // Dying by the signal that came tells a shell the truth, so that `while mini …; do …` ends as well.
        let _ = signal_hook::low_level::emulate_default_handler(signal);
    }
    ExitCode::from(exit.code)
}

/// The key is in this process's environment, and a command that was approved could read it there
/// (`/proc/$PPID/environ`, a debugger). Not from a process that cannot be dumped, unless it runs as root.
fn hide_environment() {
    #[cfg(target_os = "linux")]
    {
        use rustix::process::{DumpableBehavior, set_dumpable_behavior};
        // An old kernel that refuses leaves things as they were; the children's own environment is clean anyway.
        let _ = set_dumpable_behavior(DumpableBehavior::NotDumpable);
    }
}

/// A run that did not begin, in words on stderr.
fn told(stop: Stop) -> Exit {
    let (code, why, cause) = match stop {
        Stop::Usage(why) => (2, why, None),
        Stop::Failed(why) => (1, why, None),
        Stop::Cancelled(Cause::TimeLimit) => (3, "the time limit (--timeout) is reached".into(), None),
        Stop::Cancelled(cause) => (130, "interrupted".into(), Some(cause)),
        Stop::Unapproved(why) => (4, why, None),
    };
    let _ = writeln!(std::io::stderr(), "mini: {why}"); // a closed stderr leaves nobody to tell
    Exit { code, cause }
}

fn dispatch(options: &Options, known: &[Known]) -> Result<Exit, Stop> {
    match &options.mode {
        Mode::Help { labs: false } => print(help::MAIN),
        Mode::Help { labs: true } => print(help::LABS),
        Mode::Version => print(concat!("mini ", env!("CARGO_PKG_VERSION"), "\n")),
        Mode::Why(command) => why(command, &root(options)?, config::user_file("permissions.json")),
        Mode::Trace(file) => trace(file),
        Mode::Work => work::run(&Front::new(options, known, watch_signals()?, Reach::All)?),
        Mode::Call(tool, json) => work::call(&Front::new(options, known, watch_signals()?, Reach::All)?, tool, json),
        Mode::Doctor => doctor::run(options),
        Mode::Eval(cases) => eval::run(cases, options, known),
        Mode::Sessions => sessions::list(options),
        Mode::Undo => sessions::undo(options),
        Mode::Diff => sessions::diff(options),
        Mode::Labs => labs::list(),
        Mode::Lab(name, action) => labs::run(name, action, options, known),
    }
}

/// Text on stdout. A reader that went away (`mini --help | head -1`) is no failure.
pub(crate) fn print(text: &str) -> Result<Exit, Stop> {
    match std::io::stdout().write_all(text.as_bytes()) {
        Err(e) if e.kind() != std::io::ErrorKind::BrokenPipe => {
            Err(Stop::Failed(format!("cannot write to stdout: {e}")))
        }
        _ => Ok(Exit { code: 0, cause: None }),
    }
}

/// The workspace's directory: `--workspace`, or here.
pub(crate) fn root(options: &Options) -> Result<PathBuf, Stop> {
    match &options.workspace {
        Some(dir) => Ok(dir.clone()),
        None => std::env::current_dir().map_err(|e| Stop::Usage(format!("cannot tell the current directory: {e}"))),
    }
}

/// Opens a workspace with a private directory of this run, and removes what dead runs left. Also the notices.
pub(crate) fn open_workspace(root: &Path) -> Result<(Workspace, Vec<String>), Stop> {
    let state = state_dir().unwrap_or_else(|_| std::env::temp_dir().join("mini"));
    let run = RunDir::create(&state)?;
    let mut notices: Vec<String> = run.notice().map(String::from).into_iter().collect();
    notices.extend(run.sweep());
    Ok((Workspace::open(root, run)?, notices))
}

/// `--why`: would it run, ask or be refused, and why: the gate's reason, or the permission rule that decides. Exit 0, 4, 1.
/// `read`, `write` or `edit` followed by exactly one path is that tool's call; anything else is a bash command.
/// `rules` is the user's file of rules.
pub(crate) fn why(command: &str, root: &Path, rules: Option<PathBuf>) -> Result<Exit, Stop> {
    let (workspace, _) = open_workspace(root)?;
    let (rules, notices) = Permissions::load(rules, &workspace)?;
    let (code, line) = match tool_and_path(command) {
        Some((verb, path)) => why_file(verb, path, &workspace, &rules),
        None => why_command(command, &workspace, &rules),
    };
    for notice in notices {
        let _ = writeln!(std::io::stderr(), "note: {notice}"); // a closed stderr leaves nobody to tell
    }
    print(&format!("{}\n", crate::terminal::sanitize(&line).replace('\n', " ")))?;
    Ok(Exit { code, cause: None })
}

/// `--trace FILE`: a run as a tree, as wide as the terminal (80 columns elsewhere, 120 at most).
fn trace(file: &Path) -> Result<Exit, Stop> {
    let failed = |why: String| Stop::Usage(format!("cannot read {}: {why}", file.display()));
    let bytes = std::fs::read(file).map_err(|e| failed(e.to_string()))?;
    let (spans, notice) = crate::trace::read(&String::from_utf8_lossy(&bytes)).map_err(failed)?;
    if let Some(notice) = notice {
        // A closed stderr leaves nobody to tell.
        let _ = writeln!(std::io::stderr(), "mini: {}: {notice}", file.display());
    }
    if spans.is_empty() {
        return Err(Stop::Usage(format!("{}: no request was made in this run", file.display())));
    }
    let columns = crate::terminal::width(std::io::stdout()).map_or(80, |columns| columns.min(120));
    print(&crate::trace::draw(&spans, columns))
}

fn why_file(verb: &str, path: &str, workspace: &Workspace, rules: &Permissions) -> (u8, String) {
    let place = match workspace.resolve(path, verb) {
        Ok(place) => place.relative().to_string_lossy().into_owned(),
        Err(trouble) => return (1, format!("REFUSE: {trouble}")),
    };
    let asked = Asked { tool: verb, path: Some(&place), ..Asked::default() };
    ruled(rules.ruling(&asked)).unwrap_or_else(|| match verb {
        "read" => (0, "RUN: reading inside the workspace".to_owned()),
        verb => (4, format!("ASK: {verb} changes a file; the diff is shown first")),
    })
}

fn why_command(command: &str, workspace: &Workspace, rules: &Permissions) -> (u8, String) {
    let verdict = gate::decide(command, workspace);
    if let Verdict::Refuse(why) = verdict {
        return (1, format!("REFUSE: {why}"));
    }
    let parts = gate::always::asking_parts(command, workspace);
    let asked = Asked { tool: "bash", command: Some(command), asking: parts.as_deref(), ..Asked::default() };
    match (ruled(rules.ruling(&asked)), verdict) {
        (Some(ruled), _) => ruled,
        (None, Verdict::Ask(reason)) => (4, format!("ASK: {}", reason.why)),
        (None, _) => (0, "RUN: a read-only command from the list".into()),
    }
}

/// What a rule makes of it.
fn ruled(ruled: Option<Ruled>) -> Option<(u8, String)> {
    Some(match ruled? {
        Ruled::Allow(rule) => (0, format!("RUN: a permission rule allows it: {rule}")),
        Ruled::Ask(rule) => (4, format!("ASK: a permission rule asks: {rule}")),
        Ruled::Deny(rule) => (1, format!("REFUSE: a permission rule denies it: {rule}")),
    })
}

fn tool_and_path(command: &str) -> Option<(&str, &str)> {
    let mut words = command.split_whitespace();
    match (words.next(), words.next(), words.next()) {
        (Some(verb @ ("read" | "write" | "edit")), Some(path), None) => Some((verb, path)),
        _ => None,
    }
}

/// Raises the flag at Ctrl-C, TERM and HUP, from a thread of its own. Whoever insists, a second after the first
/// signal, ends the process at once: something must be stuck.
pub(crate) fn watch_signals() -> Result<Cancel, Stop> {
    use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
    let cancel = Cancel::new();
    let theirs = cancel.clone();
    let mut signals = signal_hook::iterator::Signals::new([SIGINT, SIGTERM, SIGHUP])
        .map_err(|e| Stop::Failed(format!("cannot watch for signals: {e}")))?;
    std::thread::spawn(move || {
        let mut raised = None;
        for signal in signals.forever() {
            let stuck =
                theirs.is_raised() && raised.is_some_and(|at: std::time::Instant| at.elapsed().as_millis() > 1000);
            if stuck {
                let _ = signal_hook::low_level::emulate_default_handler(signal);
            }
            if !theirs.is_raised() {
                raised = Some(std::time::Instant::now());
            }
            theirs.raise(match signal {
                SIGTERM => Cause::Terminate,
                SIGHUP => Cause::Hangup,
                _ => Cause::Interrupt,
            });
        }
    });
    Ok(cancel)
}

/// Where the endpoint may be named.
pub(crate) fn places() -> Places {
    Places::real()
}
