//! Which sessions there are, and which one a person means.
//!
//! A log can be long, so only its two ends are read: the beginning says where it worked and what its first task was, the
//! end how it ended.

use super::{dir, path};
use serde_json::Value;
use std::fs::{self, File, TryLockError};
use std::io::{self, BufRead, BufReader, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};
use std::time::SystemTime;

/// So many lines from its beginning a log has said what its first task is.
const HEAD: usize = 40;
/// Bytes of the end that are looked at first; more where the last line is longer.
const TAIL: u64 = 16 << 10;

/// One session, as a list shows it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Summary {
    /// Its id: date and time (UTC) of its beginning, and six digits.
    pub id: String,
    /// The directory it works in; empty if its log does not say.
    pub workspace: String,
    /// The first task; `None` if there was none yet.
    pub task: Option<String>,
    /// How it ended: an outcome, `in use`, or `cut off` where a crash left no end.
    pub outcome: String,
    /// When its log was last written.
    pub written: SystemTime,
}

/// Every session, the one that was written last first. None if there is no directory of them yet.
pub fn all(state_dir: &Path) -> Result<Vec<Summary>, String> {
    let failed = |e: io::Error| format!("cannot list {}: {e}", dir(state_dir).display());
    let entries = match fs::read_dir(dir(state_dir)) {
        Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        entries => entries.map_err(failed)?,
    };
    let mut sessions = Vec::new();
    for entry in entries {
        let id = entry.map_err(failed)?.file_name();
        // What is no session, or was removed just now, is none to list.
        if let Some(id) = id.to_str().and_then(|name| name.strip_suffix(".jsonl"))
            && let Ok(path) = path(state_dir, id)
        {
            sessions.push(summary(id, &path).map_err(|e| format!("cannot read {}: {e}", path.display()))?);
        }
    }
    sessions.sort_by(|a, b| (b.written, &b.id).cmp(&(a.written, &a.id)));
    Ok(sessions)
}

/// The session that a word means: its id, or the beginning of exactly one.
pub fn find(state_dir: &Path, word: &str) -> Result<Summary, String> {
    let sessions = all(state_dir)?;
    if word.is_empty() {
        return Err("which session? mini --sessions lists what there is".into());
    }
    if let Some(session) = sessions.iter().find(|session| session.id == word) {
        return Ok(session.clone());
    }
    let mut meant: Vec<&Summary> = sessions.iter().filter(|session| session.id.starts_with(word)).collect();
    match (meant.pop(), meant.len()) {
        (Some(session), 0) => Ok(session.clone()),
        (Some(_), others) => Err(format!("`{word}` is the beginning of {} sessions; give more of it", others + 1)),
        (None, _) => Err(format!("there is no session `{word}`; mini --sessions lists what there is")),
    }
}

/// The session of a workspace that was written last, if it has a task to go on from.
pub fn newest(state_dir: &Path, workspace: &Path) -> Result<Summary, String> {
    let here = workspace.display().to_string();
    let mut sessions = all(state_dir)?.into_iter().filter(|session| session.task.is_some());
    sessions.find(|session| session.workspace == here).ok_or_else(|| {
        format!("there is no session of {here} to go on with; mini --sessions lists those of other places")
    })
}

fn summary(id: &str, path: &PathBuf) -> io::Result<Summary> {
    let mut file = File::open(path)?;
    let (workspace, task) = beginning(&mut file)?;
    let outcome = match file.try_lock_shared() {
        Err(TryLockError::WouldBlock) => "in use".into(),
        _ => ending(&mut file)?.unwrap_or_else(|| "cut off".into()),
    };
    Ok(Summary { id: id.into(), workspace, task, outcome, written: file.metadata()?.modified()? })
}

/// Workspace and first task.
fn beginning(file: &mut File) -> io::Result<(String, Option<String>)> {
    let (mut reader, mut line, mut workspace) = (BufReader::new(file), Vec::new(), String::new());
    for _ in 0..HEAD {
        line.clear();
        if reader.read_until(b'\n', &mut line)? == 0 {
            break;
        }
        let event: Value = serde_json::from_slice(&line).unwrap_or_default(); // a torn line says nothing
        let text = |value: &Value| value.as_str().map(String::from);
        match event["type"].as_str() {
            Some("start") if workspace.is_empty() => workspace = text(&event["workspace"]).unwrap_or_default(),
            Some("message") if event["message"]["role"] == "user" => {
                return Ok((workspace, text(&event["message"]["content"])));
            }
            _ => {}
        }
    }
    Ok((workspace, None))
}

/// The outcome, if the last line is an `end`.
fn ending(file: &mut File) -> io::Result<Option<String>> {
    let size = file.metadata()?.len();
    let mut look = TAIL;
    loop {
        let from = size.saturating_sub(look);
        file.seek(SeekFrom::Start(from))?;
        let mut tail = Vec::new();
        file.take(look).read_to_end(&mut tail)?;
        let lines = tail.trim_ascii_end();
        if let Some(at) = lines.iter().rposition(|byte| *byte == b'\n').or((from == 0).then_some(0)) {
            let last: Value = serde_json::from_slice(&lines[at..]).unwrap_or_default();
            let is_end = last["type"] == "end";
            return Ok(last["outcome"].as_str().filter(|_| is_end).map(String::from));
        }
        look *= 8;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn put(state: &Path, id: &str, lines: &str) {
        fs::create_dir_all(dir(state)).unwrap();
        fs::write(dir(state).join(format!("{id}.jsonl")), lines).unwrap();
    }

    const START: &str = r#"{"type":"start","workspace":"/ws"}"#;
    const TASK: &str = r#"{"type":"message","message":{"role":"user","content":"fix it"}}"#;

    #[test]
    fn both_ends_of_a_log_say_what_it_is() {
        let state = tempfile::tempdir().unwrap();
        let long = "x".repeat(100_000);
        put(
            state.path(),
            "a-1",
            &format!("{START}\n{TASK}\n{{\"type\":\"end\",\"outcome\":\"done\",\"text\":\"{long}\"}}\n"),
        );
        put(state.path(), "a-2", &format!("{START}\n{TASK}\n{{\"type\":\"en"));
        put(state.path(), "b", "");
        let sessions = all(state.path()).unwrap();
        let find = |id: &str| sessions.iter().find(|session| session.id == id).unwrap().clone();
        assert_eq!((find("a-1").outcome.as_str(), find("a-1").workspace.as_str()), ("done", "/ws"));
        assert_eq!((find("a-2").outcome.as_str(), find("a-2").task.as_deref()), ("cut off", Some("fix it")));
        assert_eq!((find("b").outcome.as_str(), find("b").task), ("cut off", None));
    }

    #[test]
    fn a_unique_beginning_suffices_and_nothing_else_is_found() {
        let state = tempfile::tempdir().unwrap();
        assert!(all(state.path()).unwrap().is_empty());
        for id in ["20260101-1", "20260102-1", "20260102"] {
            put(state.path(), id, START);
        }
        assert_eq!(super::find(state.path(), "20260101").unwrap().id, "20260101-1");
        assert_eq!(super::find(state.path(), "20260102").unwrap().id, "20260102");
        assert_eq!(
            super::find(state.path(), "2026").unwrap_err(),
            "`2026` is the beginning of 3 sessions; give more of it"
        );
        for word in ["../../x", "x", "/etc/passwd"] {
            assert!(super::find(state.path(), word).unwrap_err().starts_with("there is no session `"), "{word}");
        }
    }

    #[test]
    fn the_newest_of_a_workspace_has_a_task() {
        let state = tempfile::tempdir().unwrap();
        put(state.path(), "1", &format!("{START}\n{TASK}\n"));
        put(state.path(), "2", START);
        assert_eq!(newest(state.path(), Path::new("/ws")).unwrap().id, "1");
        assert!(newest(state.path(), Path::new("/elsewhere")).unwrap_err().contains("no session of /elsewhere"));
    }
}
