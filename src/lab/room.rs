//! The room an exam is sat in: a temporary directory with a fresh demo, in which the *real program* runs as a child.
//!
//! Real on purpose. An agent built in-process for the exam would leave out what a participant relies on: the command
//! line, the session log, the exit code, the environment of children. (`--eval` plays its cases in such rooms, too.)

use super::shelf::{self, Files};
use super::stage;
use crate::cancel::Cancel;
use rustix::process::{Pid, Signal, kill_process_group};
use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::Write;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

/// The key that the exam gives the program. It must not turn up anywhere but in the Authorization header.
pub const KEY: &str = "canary-key-of-the-exam";
/// How long one run may take; the scripted model answers at once.
const LONGEST: Duration = Duration::from_secs(20);
/// How long a program may take to end once it is asked to.
const GRACE: Duration = Duration::from_secs(3);
/// How often it is looked whether the child has ended.
const PAUSE: Duration = Duration::from_millis(2);

/// A temporary directory; dropping it removes everything.
pub struct Room {
    root: PathBuf,
    _removes: tempfile::TempDir,
}

/// How a run of the program ended.
#[derive(Default)]
pub struct Ended {
    /// The exit code, 128 + the signal if one killed it; `None` if that is not known.
    pub exit: Option<i32>,
    /// Standard output.
    pub stdout: String,
    /// The last line of standard error.
    pub last_words: String,
    /// It took too long and was killed.
    pub overdue: bool,
}

/// What a run reads, and what ends it before its time.
#[derive(Clone, Copy, Default)]
pub struct Stdin<'a> {
    /// Standard input; none if empty.
    pub text: &'a str,
    /// The run is killed when this is on its standard output. Until then its standard input, if any, stays open.
    pub kill_at: Option<&'a str>,
}

impl Room {
    /// Lays the demo out, twice: once to work in, once to compare with. Its `config` stands in for the user's own, by links:
    /// what the program writes there can be seen in the demo.
    pub fn new(files: &Files, git: bool, config: &[String]) -> Result<Room, String> {
        let failed = |e: std::io::Error| format!("make a temporary directory: {e}");
        let temp = tempfile::Builder::new().prefix("mini-exam-").tempdir().map_err(failed)?;
        let room = Room { root: temp.path().canonicalize().map_err(failed)?, _removes: temp };
        for dir in ["home", "state", "tmp"] {
            fs::create_dir(room.root.join(dir)).map_err(failed)?;
        }
        stage::lay_out(&room.original(), files, false)?;
        stage::lay_out(&room.demo(), files, git)?;
        let own = room.root.join("home/.config/mini");
        fs::create_dir_all(&own).map_err(failed)?;
        for name in config {
            std::os::unix::fs::symlink(room.demo().join(name), own.join(name)).map_err(failed)?;
        }
        Ok(room)
    }

    /// The workspace.
    pub fn demo(&self) -> PathBuf {
        self.root.join("demo")
    }

    /// The workspace as it was before the run.
    pub fn original(&self) -> PathBuf {
        self.root.join("original")
    }

    /// Writes a file beside the workspace; returns its path.
    pub fn put(&self, name: &str, text: &str) -> Result<PathBuf, String> {
        let path = self.root.join(name);
        stage::write(&path, text.as_bytes())?;
        Ok(path)
    }

    /// Puts files over the demo, and files of the demo where the session logs are.
    pub fn add(&self, files: &BTreeMap<String, String>, sessions: &BTreeMap<String, String>) -> Result<(), String> {
        let logs = self.root.join("state/mini/sessions");
        let put = |path: PathBuf, bytes: &[u8]| {
            let made = path.parent().map_or(Ok(()), fs::create_dir_all);
            made.and_then(|()| fs::write(&path, bytes)).map_err(|e| format!("write {}: {e}", path.display()))
        };
        files.iter().try_for_each(|(path, text)| put(self.demo().join(path), text.as_bytes()))?;
        sessions.iter().try_for_each(|(id, path)| {
            let log = fs::read(self.demo().join(path)).map_err(|e| format!("read {path}: {e}"))?;
            put(logs.join(format!("{id}.jsonl")), &log)
        })
    }

    /// Runs the program in the workspace; `base_url` is the scripted endpoint's.
    pub fn run(&self, exe: &Path, args: &[String], stdin: Stdin, base_url: Option<&str>) -> Result<Ended, String> {
        let endpoint: Vec<(String, String)> = base_url.map_or(Vec::new(), |url| {
            let named = [("MINI_BASE_URL", url), ("MINI_API_KEY", KEY), ("MINI_MODEL", crate::replay::MODEL)];
            named.map(|(name, value)| (name.into(), value.into())).into()
        });
        self.run_within(exe, args, stdin, (&endpoint, LONGEST), &Cancel::new())
    }

    /// The same with other variables beside the room's own, and another limit; a raised flag ends it early.
    pub fn run_within(
        &self,
        exe: &Path,
        args: &[String],
        stdin: Stdin,
        (variables, longest): (&[(String, String)], Duration),
        cancel: &Cancel,
    ) -> Result<Ended, String> {
        let failed = |e: std::io::Error| format!("run {}: {e}", exe.display());
        let (input, output, errors) = (self.root.join("stdin"), self.root.join("stdout"), self.root.join("stderr"));
        fs::write(&input, stdin.text).map_err(failed)?;
        let mut command = Command::new(exe);
        command.args(args).current_dir(self.demo()).env_clear().process_group(0);
        command.envs(variables.iter().map(|(name, value)| (name, value))).envs(self.environment());
        // Files, not pipes: nothing has to be read while it runs.
        command.stdin(match stdin {
            Stdin { text: "", .. } => Stdio::null(),
            Stdin { kill_at: Some(_), .. } => Stdio::piped(),
            Stdin { .. } => File::open(&input).map_err(failed)?.into(),
        });
        command.stdout(File::create(&output).map_err(failed)?).stderr(File::create(&errors).map_err(failed)?);
        let mut child = command.spawn().map_err(failed)?;
        if let Some(pipe) = &mut child.stdin {
            let _ = pipe.write_all(stdin.text.as_bytes()); // it may have ended without reading
        }
        let seen = || stdin.kill_at.is_some_and(|text| fs::read_to_string(&output).is_ok_and(|out| out.contains(text)));
        let status = wait(&mut child, seen, longest, cancel).map_err(failed)?;
        let text = |path: &Path| fs::read(path).map(|bytes| String::from_utf8_lossy(&bytes).into_owned());
        let said = text(&errors).map_err(failed)?;
        Ok(Ended {
            exit: status.and_then(code),
            stdout: text(&output).map_err(failed)?,
            last_words: said.lines().rev().find(|line| !line.trim().is_empty()).unwrap_or_default().to_owned(),
            overdue: status.is_none(),
        })
    }

    /// Every session log of the runs so far, one behind the other.
    pub fn log(&self) -> String {
        let state = self.root.join("state");
        let logs = shelf::walk(&state).unwrap_or_default();
        let logs = logs.iter().filter(|path| path.ends_with(".jsonl"));
        logs.filter_map(|path| fs::read(state.join(path)).ok())
            .map(|log| String::from_utf8_lossy(&log).into_owned())
            .collect()
    }

    /// Nothing of the machine's own settings or keys: the same run everywhere.
    fn environment(&self) -> Vec<(String, String)> {
        let kept = std::env::vars().filter(|(name, _)| name == "PATH" || name == "LANG" || name.starts_with("LC_"));
        let mut variables: Vec<(String, String)> = kept.collect();
        let mut set = |name: &str, value: String| variables.push((name.into(), value));
        let path = |dir: &str| self.root.join(dir).display().to_string();
        set("HOME", path("home"));
        set("XDG_CONFIG_HOME", path("home/.config"));
        set("XDG_STATE_HOME", path("state"));
        set("TMPDIR", path("tmp"));
        set("NO_COLOR", "1".into());
        set("MINI_RETRY_BASE_MS", "1".into());
        variables
    }
}

/// Waits for the end, and kills the program alone when `seen`; `None` if it took too long and was killed, with everything
/// in its group. Told to stop, it asks the program first: that has children in groups of their own.
fn wait(
    child: &mut Child,
    seen: impl Fn() -> bool,
    longest: Duration,
    cancel: &Cancel,
) -> std::io::Result<Option<ExitStatus>> {
    let group = Pid::from_raw(i32::try_from(child.id()).unwrap_or_default());
    let signal = |signal| group.map_or(Ok(()), |group| kill_process_group(group, signal));
    let (started, mut asked) = (Instant::now(), None::<Instant>);
    loop {
        if let Some(status) = child.try_wait()? {
            return Ok(Some(status));
        }
        if seen() {
            child.kill()?;
        }
        if cancel.is_raised() && asked.is_none() {
            asked = Some(Instant::now());
            signal(Signal::TERM)?;
        }
        if started.elapsed() > longest || asked.is_some_and(|asked| asked.elapsed() > GRACE) {
            signal(Signal::KILL)?;
            child.wait()?;
            return Ok(None);
        }
        std::thread::sleep(PAUSE);
    }
}

fn code(status: ExitStatus) -> Option<i32> {
    status.code().or(status.signal().map(|signal| 128 + signal))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sh(room: &Room, script: &str, stdin: &str) -> Ended {
        let args = ["-c", script].map(str::to_owned);
        room.run(Path::new("/bin/sh"), &args, Stdin { text: stdin, kill_at: None }, Some("http://127.0.0.1:1/v1"))
            .unwrap()
    }

    #[test]
    fn the_child_sees_the_demo_the_endpoint_and_nothing_of_this_machine() {
        let room = Room::new(&Files::from([("a.txt".into(), b"hello".to_vec())]), false, &[]).unwrap();
        let ended = sh(&room, "cat a.txt; echo; env; cat", "typed");
        assert_eq!(ended.exit, Some(0));
        assert!(ended.stdout.starts_with("hello\n") && ended.stdout.ends_with("typed"), "{}", ended.stdout);
        let home = format!("HOME={}/home\n", room.root.display());
        assert!(ended.stdout.contains(&home) && ended.stdout.contains(KEY), "{}", ended.stdout);
        assert!(!ended.stdout.contains("CARGO"), "{}", ended.stdout);
    }

    #[test]
    fn exit_codes_signals_and_last_words_are_kept() {
        let room = Room::new(&Files::new(), false, &[]).unwrap();
        let ended = sh(&room, "echo one >&2; echo two >&2; exit 7", "");
        assert_eq!((ended.exit, ended.last_words.as_str(), ended.overdue), (Some(7), "two", false));
        assert_eq!(sh(&room, "kill -KILL $$", "").exit, Some(137));
    }

    #[test]
    fn a_run_is_killed_when_it_has_said_something_and_reads_until_then() {
        let room = Room::new(&Files::new(), false, &[]).unwrap();
        let args = ["-c", "read line; echo $line; read more; echo over"].map(str::to_owned);
        let stdin = Stdin { text: "hello\n", kill_at: Some("hello") };
        let ended = room.run(Path::new("/bin/sh"), &args, stdin, None).unwrap();
        assert_eq!((ended.exit, ended.stdout.as_str()), (Some(137), "hello\n"));
    }

    #[test]
    fn logs_are_found_wherever_they_are_below_the_state_directory() {
        let room = Room::new(&Files::new(), false, &[]).unwrap();
        sh(&room, "mkdir -p \"$XDG_STATE_HOME/m/s\"; echo one > \"$XDG_STATE_HOME/m/s/1.jsonl\"", "");
        assert_eq!(room.log(), "one\n");
    }
}
