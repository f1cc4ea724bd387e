//! Writing the log: the observer that adds one line an event, and the lock that keeps a second writer out.

use crate::event::{Event, Observer, Stamp, unix_ms, write_line};
use crate::jsonl;
use std::fs::{DirBuilder, File, TryLockError};
use std::io::{BufWriter, Write};
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Longest line that is written in one go, in bytes.
const ONE_WRITE: usize = 64 << 10;

/// The log of one session, open for writing; as long as it is, no other process can write it.
#[derive(Debug)]
pub struct Log {
    id: String,
    path: PathBuf,
    file: File,
}

impl Log {
    /// A new log under `<state_dir>/sessions`. The error is for a notice.
    pub fn create(state_dir: &Path) -> Result<Log, String> {
        let dir = super::dir(state_dir);
        DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(&dir)
            .map_err(|e| format!("no session log: cannot make {}: {e}", dir.display()))?;
        let id = new_id();
        let path = dir.join(format!("{id}.jsonl"));
        let file = jsonl::create(&path);
        let file = file.map_err(|e| format!("no session log: cannot create {}: {e}", path.display()))?;
        // At most somebody who lists the sessions holds it, for a moment. A file system without locks leaves a log without.
        let _ = file.lock();
        Ok(Log { id, path, file })
    }

    /// A log that is there, to be added to. What a crash left half-written stays, and its line is ended.
    pub fn open(state_dir: &Path, id: &str) -> Result<Log, String> {
        let path = super::path(state_dir, id)?;
        let file = jsonl::open(&path).map_err(|e| format!("cannot open {}: {e}", path.display()))?;
        match lock(&file) {
            Err(TryLockError::WouldBlock) => {
                return Err(format!("session {id} is in use by another mini; end that one first"));
            }
            Err(TryLockError::Error(e)) => return Err(format!("cannot lock {}: {e}", path.display())),
            Ok(()) => {}
        }
        jsonl::end_torn_line(&file).map_err(|e| format!("cannot write {}: {e}", path.display()))?;
        Ok(Log { id: id.to_owned(), path, file })
    }

    /// The session's id, as in its `start` event.
    pub fn id(&self) -> &str {
        &self.id
    }

    /// Where the log is.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Where what its tasks replaced is kept ([`Kept`](crate::kept::Kept)).
    pub fn store(&self) -> PathBuf {
        self.path.with_extension("files")
    }
}

/// Tries for 100 ms: whoever lists the sessions looks at each lock for a moment.
fn lock(file: &File) -> Result<(), TryLockError> {
    for _ in 0..20 {
        match file.try_lock() {
            Err(TryLockError::WouldBlock) => std::thread::sleep(Duration::from_millis(5)),
            tried => return tried,
        }
    }
    file.try_lock()
}

impl Observer for Log {
    fn event(&mut self, stamp: &Stamp, event: &Event) -> Result<(), String> {
        if matches!(event, Event::Reasoning { .. } | Event::Text { .. } | Event::Output { .. }) {
            return Ok(());
        }
        // A line is one write unless it is very long, and the next begins when it is out: a crash tears at most the last.
        let mut out = BufWriter::with_capacity(ONE_WRITE, &self.file);
        write_line(&mut out, stamp, event)
            .and_then(|()| out.flush())
            .map_err(|e| format!("the session log ends here: cannot write {}: {e}", self.path.display()))
    }
}

/// `20261129-223905-1a2b3c`: sorts by time, and two processes of one second differ.
fn new_id() -> String {
    let now = unix_ms();
    let (date, time) = civil(now / 1000);
    let salt = (now.wrapping_mul(0x9e37_79b9) ^ u64::from(std::process::id()).wrapping_mul(0x85eb_ca6b)) & 0xff_ffff;
    format!("{date}-{time}-{salt:06x}")
}

/// `YYYYMMDD` and `HHMMSS` (UTC) of a Unix time. Days to a civil date after Howard Hinnant, "chrono-Compatible
/// Low-Level Date Algorithms"; a date library would be the larger cost for one file name.
fn civil(seconds: u64) -> (String, String) {
    let (days, rest) = (seconds / 86_400 + 719_468, seconds % 86_400);
    let (era, day_of_era) = (days / 146_097, days % 146_097);
    let year_of_era = (day_of_era - day_of_era / 1_460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let shifted = (5 * day_of_year + 2) / 153; // months since March
    let day = day_of_year - (153 * shifted + 2) / 5 + 1;
    let month = if shifted < 10 { shifted + 3 } else { shifted - 9 };
    let year = era * 400 + year_of_era + u64::from(month <= 2);
    (format!("{year:04}{month:02}{day:02}"), format!("{:02}{:02}{:02}", rest / 3600, rest % 3600 / 60, rest % 60))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    #[test]
    fn dates_are_civil() {
        assert_eq!(civil(0), ("19700101".into(), "000000".into()));
        assert_eq!(civil(951_782_399), ("20000228".into(), "235959".into()));
        assert_eq!(civil(951_782_400), ("20000229".into(), "000000".into()));
        assert_eq!(civil(1_796_079_599), ("20261130".into(), "225959".into()));
    }

    #[test]
    fn the_log_holds_events_without_deltas_for_the_user_alone() {
        let dir = tempfile::tempdir().unwrap();
        let mut log = Log::create(dir.path()).unwrap();
        let stamp = Stamp { at: 1, agent: None };
        log.event(&stamp, &Event::Text { delta: "a".into() }).unwrap();
        log.event(&stamp, &Event::Notice { text: "two\nlines".into() }).unwrap();
        let text = std::fs::read_to_string(&log.path).unwrap();
        assert_eq!(text, "{\"type\":\"notice\",\"text\":\"two\\nlines\",\"at\":1,\"agent\":null}\n");
        assert_eq!(std::fs::metadata(&log.path).unwrap().permissions().mode() & 0o777, 0o600);
    }

    #[test]
    fn a_state_directory_that_cannot_be_made_is_words() {
        let dir = tempfile::tempdir().unwrap();
        std::fs::write(dir.path().join("file"), "").unwrap();
        let Err(why) = Log::create(&dir.path().join("file")) else { panic!("made a log below a file") };
        assert!(why.starts_with("no session log: cannot make "), "{why}");
    }

    #[test]
    fn a_log_has_one_writer_and_says_so() {
        let dir = tempfile::tempdir().unwrap();
        let log = Log::create(dir.path()).unwrap();
        let why = Log::open(dir.path(), log.id()).unwrap_err();
        assert_eq!(why, format!("session {} is in use by another mini; end that one first", log.id()));
        let id = log.id().to_owned();
        drop(log);
        assert!(Log::open(dir.path(), &id).is_ok());
    }

    #[test]
    fn an_id_cannot_leave_the_directory() {
        let dir = tempfile::tempdir().unwrap();
        std::fs::create_dir(dir.path().join("sessions")).unwrap();
        std::fs::write(dir.path().join("x.jsonl"), "").unwrap();
        for id in ["../x", "..", "/etc/passwd", "a/b", "", "."] {
            assert!(Log::open(dir.path(), id).unwrap_err().starts_with("there is no session"), "{id}");
        }
        assert!(!dir.path().join("sessions").join("a").exists());
    }
}
