//! One verb of an executable extension: a process, and a sentence for whatever goes wrong with it.
//!
//! Whoever writes an extension reads these sentences at his first three attempts, so they say what to do: `chmod +x`,
//! the carriage return in the `#!` line, the last words on stderr. Each names the verb; the callers put the
//! extension's name before it.

use crate::cancel::Cancel;
use crate::process::{Captured, End, Job, Processes, visible};
use serde_json::Value;
use std::ffi::OsString;
use std::fs::{self, File};
use std::io::Read;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// The version of the protocol, told as `MINI_PROTOCOL` and to `describe`.
pub const PROTOCOL: u32 = 1;

/// Most bytes that one verb may print.
const MAX_OUTPUT: usize = 1 << 20;

/// How long each verb may take.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// `describe`: it holds up the start.
    pub describe: Duration,
    /// `call`.
    pub call: Duration,
    /// `on-stop`: a test suite may run in it.
    pub on_stop: Duration,
}

impl Default for Limits {
    fn default() -> Limits {
        let seconds = Duration::from_secs;
        Limits { describe: seconds(10), call: seconds(120), on_stop: seconds(300) }
    }
}

/// What is asked of the program.
#[derive(Clone, Copy)]
pub enum Verb<'a> {
    Describe,
    Call(&'a str),
    OnStop,
}

/// Where the program is, and what it is called.
#[derive(Clone)]
pub struct Program {
    /// The file's stem.
    pub name: String,
    /// Absolute: it starts in the workspace, wherever mini was started.
    path: PathBuf,
    /// How long each verb may take.
    pub limits: Limits,
}

impl Program {
    pub fn find(path: &Path, limits: Limits) -> Program {
        let name = path.file_stem().unwrap_or(path.as_os_str()).to_string_lossy().into_owned();
        // Fails only for an empty path or a lost working directory; then starting it says what is wrong.
        let path = std::path::absolute(path).unwrap_or_else(|_| path.into());
        Program { name, path, limits }
    }

    /// What would keep it from starting, in better words than the system's "No such file or directory", which stands
    /// for a missing file, a missing interpreter and a carriage return alike.
    pub fn inspect(&self) -> Result<(), String> {
        let meta = fs::metadata(&self.path).map_err(|e| format!("cannot be started: {e}"))?;
        let path = self.path.display();
        if meta.is_dir() {
            return Err("is a directory, not an executable".into());
        }
        if meta.permissions().mode() & 0o111 == 0 {
            return Err(format!("is not executable; make it so with: chmod +x {path}"));
        }
        let Some(line) = shebang(&self.path) else { return Ok(()) };
        if line.ends_with('\r') {
            return Err(format!(
                "its #! line ends in CR LF (Windows line endings); mend it with: sed -i 's/\\r$//' {path}"
            ));
        }
        match line.split_whitespace().next() {
            Some(program) if Path::new(program).exists() => Ok(()),
            Some(program) => Err(format!("the interpreter of its #! line does not exist: {program}")),
            None => Err("its #! line names no interpreter".into()),
        }
    }

    /// It could be started at first and cannot now; or it is text without a `#!`, which only a shell would run.
    fn why_not_started(&self, why: String) -> String {
        let hint =
            if shebang(&self.path).is_none() { "; a script must begin with a #! line, such as #!/bin/sh" } else { "" };
        self.inspect().err().unwrap_or_else(|| why + hint)
    }

    /// Runs one verb to its end. `Err` where it did not come to an end of its own.
    pub fn run(
        &self,
        verb: Verb,
        stdin: &Value,
        workspace: &Path,
        processes: &mut Processes,
        cancel: &Cancel,
    ) -> Result<Said, String> {
        let (words, limit) = match verb {
            Verb::Describe => (vec!["describe"], self.limits.describe),
            Verb::Call(tool) => (vec!["call", tool], self.limits.call),
            Verb::OnStop => (vec!["on-stop"], self.limits.on_stop),
        };
        let captured = processes.capture(Job {
            program: self.path.as_os_str(),
            args: &words.iter().map(OsString::from).collect::<Vec<_>>(),
            dir: workspace,
            env: &[("MINI_WORKSPACE".into(), workspace.into()), ("MINI_PROTOCOL".into(), PROTOCOL.to_string().into())],
            stdin: stdin.to_string().as_bytes(),
            limit,
            max_stdout: MAX_OUTPUT,
            cancel,
        });
        let captured = captured.map_err(|why| self.why_not_started(why))?;
        Said::of(&words.join(" "), limit, captured)
    }
}

/// The `#!` line of a script, without the `#!`.
fn shebang(path: &Path) -> Option<String> {
    let mut start = Vec::new();
    File::open(path).ok()?.take(512).read_to_end(&mut start).ok()?;
    let line = start.strip_prefix(b"#!")?.split(|byte| *byte == b'\n').next()?;
    Some(String::from_utf8_lossy(line).into_owned())
}

/// What a verb printed.
pub struct Said {
    /// The exit status; `None` if a signal ended it.
    pub status: Option<i32>,
    /// Standard output, without trailing blanks.
    pub stdout: String,
    /// The last 4 KiB of standard error.
    pub stderr: String,
}

impl Said {
    fn of(verb: &str, limit: Duration, captured: Captured) -> Result<Said, String> {
        let text = |bytes: &[u8]| visible(bytes).trim_end().to_owned();
        let said = Said {
            status: captured.status.and_then(|status| status.code()),
            stdout: text(&captured.stdout),
            stderr: text(&captured.stderr),
        };
        match captured.end {
            End::Exited => Ok(said),
            End::TimedOut => Err(said.sentence(verb, &format!("took longer than {limit:?} and was killed"))),
            End::Flooded => Err(said.sentence(verb, "printed more than 1 MiB and was killed")),
            End::Stopped => Err(said.sentence(verb, "wanted to read from the terminal and was killed")),
            End::Interrupted => Err(said.sentence(verb, "was interrupted and killed")),
        }
    }

    /// Itself, if the exit status is 0.
    pub fn clean(self, verb: &str) -> Result<Said, String> {
        match self.status {
            Some(0) => Ok(self),
            _ => Err(self.sentence(verb, &self.ended())),
        }
    }

    pub fn ended(&self) -> String {
        match self.status {
            Some(status) => format!("ended with exit status {status}"),
            None => "was ended by a signal".into(),
        }
    }

    /// "describe ended with exit status 1; its last words on stderr: …", which are three lines at most.
    pub fn sentence(&self, verb: &str, what: &str) -> String {
        let lines: Vec<&str> = self.stderr.lines().collect();
        let last = lines[lines.len().saturating_sub(3)..].join(" / ");
        let words = if last.is_empty() { last } else { format!("; its last words on stderr: {last}") };
        format!("{verb} {what}{words}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;
    use std::process::{Command, Stdio};
    use tempfile::TempDir;

    /// Writes an executable. By way of a child: a descriptor of ours, open for writing, could be inherited by what
    /// another test starts at that moment, and the system does not run a file that somebody can write to (ETXTBSY).
    fn script(dir: &TempDir, text: &str) -> PathBuf {
        let path = dir.path().join("broken.sh");
        let mut writer = Command::new("sh");
        writer.args(["-c", "cat >\"$0\"; chmod +x \"$0\""]).arg(&path).stdin(Stdio::piped());
        let mut child = writer.spawn().unwrap();
        std::io::Write::write_all(&mut child.stdin.take().unwrap(), text.as_bytes()).unwrap();
        assert!(child.wait().unwrap().success());
        path
    }

    /// What `describe` of this script comes to, with a time limit of 300 ms.
    fn describe(text: &str) -> Result<String, String> {
        let dir = TempDir::new().unwrap();
        let ms = Duration::from_millis(300);
        let program = Program::find(&script(&dir, text), Limits { describe: ms, call: ms, on_stop: ms });
        program.inspect()?;
        let (stdin, mut processes) =
            (json!({"protocol": 1}), Processes::new(vec![("PATH".into(), "/usr/bin:/bin".into())]));
        let said = program.run(Verb::Describe, &stdin, dir.path(), &mut processes, &Cancel::new())?;
        said.clean("describe").map(|said| said.stdout)
    }

    #[test]
    fn it_gets_its_verb_the_json_the_directory_and_two_variables() {
        let printed =
            describe("#!/bin/sh\necho $1 $(cat) $MINI_PROTOCOL; test \"$PWD\" -ef \"$MINI_WORKSPACE\" && echo here");
        assert_eq!(printed, Ok("describe {\"protocol\":1} 1\nhere".into()));
    }

    #[test]
    fn every_way_to_fail_is_a_sentence_that_says_what_to_do() {
        let cases = [
            (
                "#!/bin/sh\r\necho\r\n",
                "its #! line ends in CR LF (Windows line endings); mend it with: sed -i 's/\\r$//' ",
            ),
            ("#!/usr/bin/env sh\r\necho\r\n", "its #! line ends in CR LF (Windows line endings)"),
            ("echo {}\n", "cannot start "),
            ("#!/no/such/python\n", "the interpreter of its #! line does not exist: /no/such/python"),
            ("#!\n", "its #! line names no interpreter"),
            (
                "#!/bin/sh\necho one >&2; exec sleep 30\n",
                "describe took longer than 300ms and was killed; its last words on stderr: one",
            ),
            ("#!/bin/sh\nyes\n", "describe printed more than 1 MiB and was killed"),
            (
                "#!/bin/sh\necho 1 >&2; seq 2 4 >&2; exit 7\n",
                "describe ended with exit status 7; its last words on stderr: 2 / 3 / 4",
            ),
            ("#!/bin/sh\nkill -9 $$\n", "describe was ended by a signal"),
        ];
        for (text, why) in cases {
            let said = describe(text).unwrap_err();
            assert!(said.starts_with(why), "{text:?}: {said}");
        }
    }

    #[test]
    fn a_script_without_its_first_line_is_told_what_that_is() {
        let why = describe("echo {}\n").unwrap_err();
        assert!(why.ends_with("; a script must begin with a #! line, such as #!/bin/sh"), "{why}");
    }

    #[test]
    fn a_file_that_is_missing_not_executable_or_a_directory_is_said_to_be() {
        let dir = TempDir::new().unwrap();
        let inspect = |path: &Path| Program::find(path, Limits::default()).inspect().unwrap_err();
        assert!(inspect(&dir.path().join("no")).starts_with("cannot be started: No such file"));
        assert_eq!(inspect(dir.path()), "is a directory, not an executable");
        let plain = dir.path().join("plain.sh");
        fs::write(&plain, "#!/bin/sh\n").unwrap();
        assert_eq!(inspect(&plain), format!("is not executable; make it so with: chmod +x {}", plain.display()));
    }

    #[test]
    fn the_name_is_the_stem_of_the_file() {
        for (path, name) in [("tools/hello.sh", "hello"), ("./hello", "hello"), ("/", "/")] {
            assert_eq!(Program::find(Path::new(path), Limits::default()).name, name);
        }
    }
}
