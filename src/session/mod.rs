//! Sessions: the log is the truth, and the conversation is a projection of it.
//!
//! | file | its idea |
//! |---|---|
//! | `log` | every event but the deltas becomes a line, before the thing it tells of goes on; one writer at a time |
//! | `resume` | the lines become the conversation again, whatever crash they ended in |
//! | `list` | which sessions there are, and which one a person means |
//! | `undo` | the file changes of the last task, shown or taken back |
//!
//! The log is written before the thing it tells of goes on: the first event is on disk before the first request, a
//! call before its execution. So after a crash it holds a prefix of the truth. It lives under the user's state
//! directory (`sessions/ID.jsonl`), readable by the user alone (0600), never in the workspace.
//!
//! A session that goes on is added to the same log: one `start` and one `end` for each *process* that worked on it (a
//! process that died has no `end`). Nothing in a log is ever changed, and nothing is read from it but what the
//! conversation needs: the system text, tools and limits are those of now.
//!
//! Left out on purpose: deltas (the `message` event has the whole text), any second format, and an index of the
//! sessions: a directory of files with times in their names is one already. A state directory that cannot be written
//! is one notice, not a failure: the agent works without a log.

mod list;
mod log;
mod resume;
pub mod undo;

pub use list::{Summary, all, find, newest};
pub use log::Log;
pub use resume::{Resumed, resume};

use std::path::{Path, PathBuf};

/// Where the logs are.
fn dir(state_dir: &Path) -> PathBuf {
    state_dir.join("sessions")
}

/// Where what the tasks of a session replaced is kept ([`Kept`](crate::kept::Kept)).
pub fn store(state_dir: &Path, id: &str) -> PathBuf {
    dir(state_dir).join(format!("{id}.files"))
}

/// The log of a session that is there. What is no id of ours is no session, so no path can be made of it.
pub fn path(state_dir: &Path, id: &str) -> Result<PathBuf, String> {
    let is_id = !id.is_empty() && id.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-');
    let path = dir(state_dir).join(format!("{id}.jsonl"));
    match is_id && path.is_file() {
        true => Ok(path),
        false => Err(format!("there is no session `{id}`; mini --sessions lists what there is")),
    }
}
