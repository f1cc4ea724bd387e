//! Sessions on the command line: which one a run goes on with, the list of them, and what the last task changed.

use super::front::Ready;
use super::options::{Options, Resume};
use super::{Exit, Stop, open_workspace, print, root};
use crate::event::{Event, Observer, Stamp, unix_ms};
use crate::kept::Kept;
use crate::lab::run_words;
use crate::message::{Message, Style};
use crate::rundir::state_dir;
use crate::session::undo::{self, Task};
use crate::session::{self, Log, Summary};
use crate::setup::Setup;
use crate::terminal::sanitize;
use std::io::IsTerminal;
use std::path::Path;

/// Characters of a task in the list.
const SHOWN: usize = 60;

/// A log that a run writes.
pub(crate) struct Opened {
    pub id: String,
    /// Messages at the end of the history that the log does not have yet.
    pub added: usize,
}

/// The log of a run, as its first observer: a new one, or the one to go on with, whose conversation and store come with
/// it. `None`, and a notice, where a new one cannot be made.
pub(crate) fn open(
    which: Option<Resume>,
    setup: &mut Setup,
    notices: &mut Vec<String>,
) -> Result<Option<Opened>, Stop> {
    let (log, added) = match which {
        Some(which) => go_on(&which, setup, notices)?,
        None => match state_dir().and_then(|state| Log::create(&state)) {
            Ok(log) => {
                setup.kept = Kept::below(log.store());
                (log, 0)
            }
            Err(why) => {
                setup.kept = Kept::none(why.clone());
                notices.push(why);
                return Ok(None);
            }
        },
    };
    let id = log.id().to_owned();
    setup.observers.insert(0, Box::new(log));
    Ok(Some(Opened { id, added }))
}

fn go_on(which: &Resume, setup: &mut Setup, notices: &mut Vec<String>) -> Result<(Log, usize), Stop> {
    let (state, here) = (state_dir()?, setup.workspace.root().to_owned());
    let meant = meant(which, &state, &here)?;
    let log = Log::open(&state, &meant.id)?;
    let resumed = session::resume(log.path())?;
    let mut words = resumed.words(&meant.id);
    if Path::new(&meant.workspace) != here {
        words += &format!("; it worked in {}, and goes on in {}", meant.workspace, here.display());
        // What is kept is kept by paths below the session's own workspace: --undo there would change the wrong files.
        setup.kept = Kept::none("the session belongs to another workspace");
    } else {
        setup.kept = Kept::below(log.store());
    }
    notices.insert(0, words);
    setup.history = resumed.history;
    Ok((log, resumed.added))
}

fn meant(which: &Resume, state: &Path, workspace: &Path) -> Result<Summary, String> {
    match which {
        Resume::Newest => session::newest(state, workspace),
        Resume::Named(word) => session::find(state, word),
    }
}

/// How far a session has come, without opening it for writing.
pub(crate) struct SoFar {
    pub task: String,
    /// Replies of the model.
    pub replies: usize,
    /// Answers of the person.
    pub answers: usize,
}

/// How far the session has come that would go on in this directory.
pub(crate) fn so_far(which: &Resume, workspace: &Path) -> Result<SoFar, Stop> {
    let here = workspace.canonicalize().map_err(|e| format!("cannot open {}: {e}", workspace.display()))?;
    let state = state_dir()?;
    let meant = meant(which, &state, &here)?;
    let resumed = session::resume(&session::path(&state, &meant.id)?)?;
    let replies = resumed.history.messages().iter().filter(|message| matches!(message, Message::Assistant(_))).count();
    Ok(SoFar { task: meant.task.unwrap_or_default(), replies, answers: resumed.answers })
}

/// The words that go on with the newest session of this workspace.
pub(crate) fn go_on_words(options: &Options) -> String {
    let workspace = options.workspace.as_ref().map(|dir| dir.display().to_string());
    let workspace = workspace.map_or(String::new(), |dir| format!(" --workspace {}", shell_words::quote(&dir)));
    format!("{}{workspace} --continue", run_words())
}

/// `--sessions`
pub(crate) fn list(options: &Options) -> Result<Exit, Stop> {
    let here = root(options)?;
    let here = here.canonicalize().map_err(|e| format!("cannot open the workspace {}: {e}", here.display()))?;
    print(&listed(&here)?)
}

/// The sessions of this workspace, then those of others; of each the one that was written last first.
pub(crate) fn listed(here: &Path) -> Result<String, Stop> {
    let sessions = session::all(&state_dir()?)?;
    if sessions.is_empty() {
        return Ok("There are no sessions yet.\n".into());
    }
    let is_here = |session: &&Summary| Path::new(&session.workspace) == here;
    let of_here: String = sessions.iter().filter(is_here).map(line).collect();
    let elsewhere = sessions.iter().filter(|session| !is_here(session));
    let elsewhere: String =
        elsewhere.map(|session| format!("{}    in {}\n", line(session), sanitize(&session.workspace))).collect();
    let mut text = format!("In {}:\n", here.display());
    text += if of_here.is_empty() { "  none\n" } else { &of_here };
    if !elsewhere.is_empty() {
        text += &format!("\nElsewhere:\n{elsewhere}");
    }
    Ok(format!("{text}\nGo on with one: {} --resume ID (its beginning suffices)\n", run_words()))
}

fn line(session: &Summary) -> String {
    let task = session.task.as_deref().unwrap_or("(no task)");
    let task = task.split_whitespace().collect::<Vec<_>>().join(" ");
    let task = match task.char_indices().nth(SHOWN) {
        Some((cut, _)) => format!("{}…", &task[..cut]),
        None => task,
    };
    format!("  {}  {}  {:<11}  {}\n", session.id, when(&session.id), session.outcome, sanitize(&task))
}

/// Date and time (UTC) that an id begins with.
fn when(id: &str) -> String {
    match (id.get(..4), id.get(4..6), id.get(6..8), id.get(9..11), id.get(11..13)) {
        (Some(year), Some(month), Some(day), Some(hour), Some(minute)) => {
            format!("{year}-{month}-{day} {hour}:{minute}")
        }
        _ => " ".repeat(16),
    }
}

/// `--undo`: takes back the last task that changed files here, whichever session it was in.
pub(crate) fn undo(options: &Options) -> Result<Exit, Stop> {
    let (workspace, _) = open_workspace(&root(options)?)?;
    let (session, task) = last_task(workspace.root())?;
    let mut log = Log::open(&state_dir()?, &session.id).map_err(Stop::Failed)?;
    let undone = task.take_back(&log.store(), &workspace).map_err(Stop::Failed)?;
    if session.task.is_some() {
        let message = Message::User(undone.note).to_json(Style::default());
        let stamp = Stamp { at: unix_ms(), agent: None };
        log.event(&stamp, &Event::Message { message, finish: None }).map_err(Stop::Failed)?;
    }
    print(&format!("{}\n", sanitize(&undone.said)))
}

/// `/undo`: the same in the session at hand.
pub(crate) fn undo_here(ready: &mut Ready) -> String {
    let undone = ready.cx.kept.dir().map_err(|why| format!("nothing can be taken back: {why}")).and_then(|store| {
        let task = undo::last(store)?.ok_or("no task of this session has changed a file that was not taken back")?;
        task.take_back(store, &ready.cx.workspace)
    });
    match undone {
        Ok(undone) => {
            ready.agent.say(undone.note, &mut ready.cx);
            undone.said
        }
        Err(why) => why,
    }
}

/// `--diff`
pub(crate) fn diff(options: &Options) -> Result<Exit, Stop> {
    let (workspace, _) = open_workspace(&root(options)?)?;
    let (session, task) = last_task(workspace.root())?;
    let diff = task.diff(&session::store(&state_dir()?, &session.id), &workspace).map_err(Stop::Failed)?;
    // A file takes what is there; a terminal would obey it.
    print(&if std::io::stdout().is_terminal() { sanitize(&diff).into_owned() } else { diff })
}

/// The last task that changed files in this workspace, and its session.
fn last_task(here: &Path) -> Result<(Summary, Task), Stop> {
    let state = state_dir()?;
    let mut tasks = Vec::new();
    for session in session::all(&state)?.into_iter().filter(|session| Path::new(&session.workspace) == here) {
        if let Some(task) = undo::last(&session::store(&state, &session.id))? {
            tasks.push((session, task));
        }
    }
    let last = tasks.into_iter().max_by_key(|(_, task)| task.at);
    last.ok_or_else(|| {
        Stop::Failed(format!(
            "no task in {} has changed a file with write or edit that was not taken back (bash and --no-session are not \
             covered)",
            here.display()
        ))
    })
}
