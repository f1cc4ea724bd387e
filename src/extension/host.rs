//! Extensions in any language: an executable that answers three verbs.
//!
//! ```text
//! EXT describe    stdin {"protocol":1,"workspace":…}                stdout what it adds (describe.rs); once, at start
//! EXT call NAME   stdin the arguments                               stdout the result; other exit status: an error result
//! EXT on-stop     stdin {"task","attempt","changes","messages":[…]} stdout blank: done · text: go on · exit 3: not verified
//! ```
//!
//! Every verb is a process of its own, in the workspace directory, without keys, with a time limit, and killed with its
//! group. So ten lines of shell are an extension, one that hangs or crashes costs one result, and nothing has to be
//! shut down. Whatever goes wrong is one sentence that names the verb and ends with its last lines of stderr.
//!
//! Rejected: one process that stays and is talked to. That is what MCP is (a lab shows it), and it needs framing,
//! ids, a handshake and a restart policy. Left out: state between calls; an extension that wants some keeps a file.

use super::describe::{self, Confirm, Declared, Description};
use super::{Extension, Next, Stop};
use crate::cancel::Cancel;
use crate::message::Style;
use crate::process::{Captured, End, Job, Processes};
use crate::tool::{Act, Check, Context, Failure, Json, Preview, Question, Scope, Spec, Tool};
use serde_json::{Value, json};
use std::ffi::OsString;
use std::fs::{self, File};
use std::io::Read;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// The version of the protocol, told as `MINI_PROTOCOL` and to `describe`.
pub const PROTOCOL: u32 = 1;
/// The exit status with which `on-stop` says: not verified.
pub const NOT_VERIFIED: u8 = 3;

/// Most bytes that one verb may print.
const MAX_OUTPUT: usize = 1 << 20;
/// So much of the arguments stands in the question's line, in characters; all of them in the preview.
const SHOWN: usize = 160;

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

/// An extension that is a program of its own.
pub struct Executable {
    program: Program,
    said: Description,
}

impl Executable {
    /// Runs `describe` once. The error is one sentence that names the extension; the start ends with it.
    pub fn start(
        path: &Path,
        limits: Limits,
        workspace: &Path,
        processes: &mut Processes,
        cancel: &Cancel,
    ) -> Result<Executable, String> {
        let program = Program::find(path, limits);
        let stdin = json!({"protocol": PROTOCOL, "workspace": workspace.to_string_lossy()});
        let said = program
            .inspect()
            .and_then(|()| program.run(Verb::Describe, &stdin, workspace, processes, cancel))
            .and_then(|said| said.clean("describe"))
            .and_then(|said| describe::parse(&said.stdout).map_err(|why| said.sentence("describe", &why)));
        match said {
            Ok(said) => Ok(Executable { program, said }),
            Err(why) => Err(format!("extension {} ({}): {why}", program.name, path.display())),
        }
    }
}

impl Extension for Executable {
    fn name(&self) -> &str {
        &self.program.name
    }

    fn tools(&mut self) -> Result<Vec<Box<dyn Tool>>, String> {
        let tool = |declared: &Declared| -> Box<dyn Tool> {
            Box::new(ExecutableTool { program: self.program.clone(), declared: declared.clone() })
        };
        Ok(self.said.tools.iter().map(tool).collect())
    }

    fn system_prompt(&mut self) -> String {
        self.said.system_prompt.clone()
    }

    fn on_stop(&mut self, stop: &mut Stop, cx: &mut Context) -> Next {
        if !self.said.on_stop {
            return Next::Done;
        }
        let messages: Vec<Value> = stop.history.messages().iter().map(|m| m.to_json(Style::default())).collect();
        let stdin =
            json!({"task": stop.task, "attempt": stop.attempt, "changes": stop.changes, "messages": messages});
        match self.program.run(Verb::OnStop, &stdin, cx.workspace.root(), &mut cx.processes, &cx.cancel) {
            Ok(said) => said.next(),
            Err(why) => Next::Broken(why),
        }
    }
}

/// One tool of an executable.
struct ExecutableTool {
    program: Program,
    declared: Declared,
}

impl Tool for ExecutableTool {
    fn spec(&self) -> Spec {
        self.declared.spec.clone()
    }

    fn check<'a>(&'a mut self, args: &Json, _cx: &mut Context) -> Check<'a> {
        let (program, tool, args) = (&self.program, self.declared.spec.name.as_str(), args.clone());
        let question = question(&self.declared, &args);
        let act: Act = Box::new(move |cx| program.call(tool, &args, cx));
        match question {
            Some(question) => Check::Ask(question, act),
            None => Check::Run(act),
        }
    }
}

/// What the person is asked before a call: all of the arguments can be looked at.
fn question(Declared { spec, confirm }: &Declared, args: &Json) -> Option<Question> {
    let call = format!("{} {args}", spec.name);
    let (line, preview) = match call.char_indices().nth(SHOWN) {
        Some((cut, _)) => (format!("{}…", &call[..cut]), Preview::Command(format!("{} {args:#}", spec.name))),
        None => (call, Preview::None),
    };
    let text = match confirm {
        Confirm::No => return None,
        Confirm::Yes => line,
        Confirm::With(question) => format!("{question} {line}"),
    };
    Some(Question { text, why: None, preview, scope: Scope::Tool(spec.name.clone()) })
}

/// What is asked of the program.
#[derive(Clone, Copy)]
enum Verb<'a> {
    Describe,
    Call(&'a str),
    OnStop,
}

/// Where the program is, and what it is called.
#[derive(Clone)]
struct Program {
    /// The file's stem.
    name: String,
    /// Absolute: it starts in the workspace, wherever mini was started.
    path: PathBuf,
    limits: Limits,
}

impl Program {
    fn find(path: &Path, limits: Limits) -> Program {
        let name = path.file_stem().unwrap_or(path.as_os_str()).to_string_lossy().into_owned();
        // Fails only for an empty path or a lost working directory; then starting it says what is wrong.
        let path = std::path::absolute(path).unwrap_or_else(|_| path.into());
        Program { name, path, limits }
    }

    /// What would keep it from starting, in better words than the system's "No such file or directory", which stands
    /// for a missing file, a missing interpreter and a carriage return alike.
    fn inspect(&self) -> Result<(), String> {
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
            return Err(format!("its #! line ends in CR LF (Windows line endings); mend it with: sed -i 's/\\r$//' {path}"));
        }
        match line.split_whitespace().next() {
            Some(program) if Path::new(program).exists() => Ok(()),
            Some(program) => Err(format!("the interpreter of its #! line does not exist: {program}")),
            None => Err("its #! line names no interpreter".into()),
        }
    }

    /// Calls a tool. A program that has run may have changed something however it ended, so its failures are those of
    /// a command's exit status ([`Failure::Status`] counts as a change), with the `Error:` that the protocol wants.
    fn call(&self, tool: &str, args: &Json, cx: &mut Context) -> Result<String, Failure> {
        let said = self.run(Verb::Call(tool), args, cx.workspace.root(), &mut cx.processes, &cx.cancel);
        match said {
            Ok(said) if said.status == Some(0) => Ok(said.stdout),
            Ok(said) => Err(Failure::Status(format!("Error: {}", said.failure(&self.name, tool)))),
            Err(why) => Err(Failure::Status(format!("Error: extension {}: {why}", self.name))),
        }
    }

    /// Runs one verb to its end. `Err` where it did not come to an end of its own.
    fn run(
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
        // What kept it from starting now was not there when it was first inspected.
        let captured = captured.map_err(|why| self.inspect().err().unwrap_or(why))?;
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
struct Said {
    /// The exit status; `None` if a signal ended it.
    status: Option<i32>,
    stdout: String,
    stderr: String,
}

impl Said {
    fn of(verb: &str, limit: Duration, captured: Captured) -> Result<Said, String> {
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).trim_end().to_owned();
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
    fn clean(self, verb: &str) -> Result<Said, String> {
        match self.status {
            Some(0) => Ok(self),
            _ => Err(self.sentence(verb, &self.ended())),
        }
    }

    /// What `on-stop` means.
    fn next(self) -> Next {
        match (self.status, self.stdout.trim()) {
            (Some(0), "") => Next::Done,
            (Some(0), text) => Next::Continue(text.into()),
            (Some(status), "") if status == i32::from(NOT_VERIFIED) => Next::Fail("not verified; it gave no reason".into()),
            (Some(status), why) if status == i32::from(NOT_VERIFIED) => Next::Fail(why.into()),
            _ => Next::Broken(self.sentence("on-stop", &self.ended())),
        }
    }

    /// The text of a failed call: all that it printed, and how it ended.
    fn failure(&self, extension: &str, tool: &str) -> String {
        let ended = format!("(extension {extension}: call {tool} {})", self.ended());
        let parts = [self.stdout.as_str(), self.stderr.as_str(), &ended];
        parts.into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join("\n")
    }

    fn ended(&self) -> String {
        match self.status {
            Some(status) => format!("ended with exit status {status}"),
            None => "was ended by a signal".into(),
        }
    }

    /// "describe ended with exit status 1; its last lines on stderr: …".
    fn sentence(&self, verb: &str, what: &str) -> String {
        let lines: Vec<&str> = self.stderr.lines().rev().take(3).collect();
        match lines.is_empty() {
            true => format!("{verb} {what}"),
            false => {
                let last: Vec<&str> = lines.into_iter().rev().collect();
                format!("{verb} {what}; its last words on stderr: {}", last.join(" / "))
            }
        }
    }
}
