//! Extensions in any language: an executable that answers three verbs.
//!
//! ```text
//! EXT describe    stdin {"protocol":1,"workspace":…}                stdout what it adds (describe.rs); once, at start
//! EXT call NAME   stdin the arguments                               stdout the result; other exit status: an error result
//! EXT on-stop     stdin {"task","attempt","changes","messages":[…]} stdout blank: done · text: go on · exit 3: not verified
//! ```
//!
//! Every verb is a process of its own, in the workspace directory, without keys, with a time limit, and killed with its
//! group (`program.rs`). So ten lines of shell are an extension, one that hangs or crashes costs one result, and nothing
//! has to be shut down.
//!
//! Rejected: one process that stays and is talked to. That is what MCP is (a lab shows it), and it needs framing,
//! ids, a handshake and a restart policy. Left out: state between calls; an extension that wants some keeps a file.

use super::describe::{self, Confirm, Declared, Description};
use super::program::{Limits, PROTOCOL, Program, Said, Verb};
use super::{Extension, Next, Stop};
use crate::cancel::Cancel;
use crate::message::Style;
use crate::process::{Processes, Tail};
use crate::tool::{Act, Check, Context, Failure, Json, Preview, Question, Scope, Spec, Tool};
use serde_json::{Value, json};
use std::path::Path;

/// The exit status with which `on-stop` says: not verified.
pub const NOT_VERIFIED: u8 = 3;

/// For who writes `on-stop) sh test.sh ;;` and finds that a failing test is a fault of the extension.
const STATUSES: &str = " (0 means done, or go on with what was printed; 3 means not verified; others are faults)";

/// So much of the arguments stands in the question's line, in characters; all of them in the preview.
const SHOWN: usize = 160;

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
        let stdin = json!({"task": stop.task, "attempt": stop.attempt, "changes": stop.changes, "messages": messages});
        match self.program.run(Verb::OnStop, &stdin, cx.workspace.root(), &mut cx.processes, &cx.cancel) {
            Ok(said) => next(said),
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
        let act: Act = Box::new(move |cx| call(program, tool, &args, cx));
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

/// Calls a tool. A program that has run may have changed something however it ended, so its failures are those of a
/// command's exit status ([`Failure::Status`] counts as a change), with the `Error:` that the protocol wants.
fn call(program: &Program, tool: &str, args: &Json, cx: &mut Context) -> Result<String, Failure> {
    let said = program.run(Verb::Call(tool), args, cx.workspace.root(), &mut cx.processes, &cx.cancel);
    let said = said.map_err(|why| Failure::Status(format!("Error: extension {}: {why}", program.name)))?;
    if said.status == Some(0) {
        return Ok(within_limits(&said.stdout, tool, cx));
    }
    let ended = format!("(extension {}: call {tool} {})", program.name, said.ended());
    let parts = [said.stdout.as_str(), said.stderr.as_str(), &ended];
    let printed = parts.into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join("\n");
    Err(Failure::Status(format!("Error: {}", within_limits(&printed, tool, cx))))
}

/// A result within the limits of every tool, the rest of it in a spill file.
fn within_limits(text: &str, tool: &str, cx: &Context) -> String {
    let mut spill = || cx.workspace.run().spill(tool);
    let mut tail = Tail::new(&mut spill);
    tail.push(text.as_bytes());
    tail.finish()
}

/// What the answer to `on-stop` means.
fn next(said: Said) -> Next {
    let not_verified = said.status == Some(NOT_VERIFIED.into());
    match (said.status, said.stdout.trim()) {
        (Some(0), "") => Next::Done,
        (Some(0), text) => Next::Continue(text.into()),
        (_, "") if not_verified => Next::Fail("not verified; the extension gave no reason".into()),
        (_, why) if not_verified => Next::Fail(why.into()),
        _ => Next::Broken(said.sentence("on-stop", &format!("{}{STATUSES}", said.ended()))),
    }
}

#[cfg(test)]
mod tests {
    use super::super::serve::context;
    use super::*;
    use crate::message::History;
    use serde_json::json;
    use tempfile::TempDir;

    const CASES: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/cases/extensions");

    fn start(name: &str, cx: &mut Context) -> Result<Executable, String> {
        let path = Path::new(CASES).join(name);
        Executable::start(&path, Limits::default(), cx.workspace.root(), &mut cx.processes, &cx.cancel)
    }

    fn in_a_workspace<T>(test: impl FnOnce(&mut Context) -> T) -> T {
        let dir = TempDir::new().unwrap();
        test(&mut context(dir.path(), dir.path()).unwrap())
    }

    /// Calls a tool as the door does once somebody has said yes; with the question that was put.
    fn call(
        executable: &mut Executable,
        tool: &str,
        args: Json,
        cx: &mut Context,
    ) -> (Option<String>, Result<String, Failure>) {
        let mut tools = executable.tools().unwrap();
        let tool = tools.iter_mut().find(|known| known.spec().name == tool).unwrap();
        match tool.check(&args, cx) {
            Check::Run(act) => (None, act(cx)),
            Check::Ask(question, act) => (Some(question.text), act(cx)),
            Check::Refuse(why) | Check::Bad(why) => panic!("{why}"),
        }
    }

    #[test]
    fn the_ten_lines_of_the_readme_are_an_extension() {
        in_a_workspace(|cx| {
            let mut hello = start("hello", cx).unwrap();
            assert_eq!(hello.name(), "hello");
            assert_eq!(hello.system_prompt(), "Greet people with the greet tool.");
            let said = call(&mut hello, "greet", json!({"name": "Ada"}), cx);
            assert_eq!(said, (None, Ok("Hello, Ada!".into())));
            let mut history = History::new();
            let mut stop = Stop { task: "t", attempt: 0, changes: 0, history: &mut history };
            assert_eq!(hello.on_stop(&mut stop, cx), Next::Done);
        });
    }

    #[test]
    fn a_tool_asks_unless_it_says_otherwise_and_shows_its_arguments() {
        in_a_workspace(|cx| {
            let mut verbs = start("verbs.sh", cx).unwrap();
            let (question, said) = call(&mut verbs, "echo", json!({"a": 1}), cx);
            assert_eq!((question.as_deref(), said), (Some("echo {\"a\":1}"), Ok("{\"a\":1}".into())));
            let (question, _) = call(&mut verbs, "send", json!({}), cx);
            assert_eq!(question.as_deref(), Some("Really send? send {}"));
        });
    }

    #[test]
    fn long_arguments_are_cut_in_the_line_and_whole_in_the_preview() {
        let spec = Spec { name: "send".into(), description: String::new(), parameters: json!({}), read_only: false };
        let declared = Declared { spec, confirm: Confirm::Yes };
        let asked = question(&declared, &json!({"text": "é".repeat(500)})).unwrap();
        assert_eq!(asked.text.chars().count(), SHOWN + 1);
        assert!(matches!(asked.preview, Preview::Command(all) if all.contains(&"é".repeat(500))));
        assert_eq!(asked.scope, Scope::Tool("send".into()));
    }

    #[test]
    fn a_failed_call_is_an_error_with_what_it_printed_and_may_have_changed_something() {
        in_a_workspace(|cx| {
            let mut verbs = start("verbs.sh", cx).unwrap();
            let said = call(&mut verbs, "fail", json!({}), cx).1;
            let text = "Error: half done\nno room\n(extension verbs: call fail ended with exit status 9)";
            assert_eq!(said, Err(Failure::Status(text.into())));
        });
    }

    #[test]
    fn a_long_result_is_cut_and_all_of_it_is_in_a_file() {
        in_a_workspace(|cx| {
            let mut verbs = start("verbs.sh", cx).unwrap();
            let said = call(&mut verbs, "count", json!({}), cx).1.unwrap();
            assert!(said.starts_with("[the last 2000 of 3000 lines (13892 bytes); read all of it in "), "{said}");
            let file = said.lines().next().unwrap().split_once(" in ").unwrap().1.trim_end_matches(']');
            assert_eq!(std::fs::read_to_string(file).unwrap().lines().count(), 3000);
        });
    }

    #[test]
    fn a_call_that_hangs_is_killed_and_named() {
        in_a_workspace(|cx| {
            let mut verbs = start("verbs.sh", cx).unwrap();
            verbs.program.limits.call = std::time::Duration::from_millis(100);
            let said = call(&mut verbs, "hang", json!({}), cx).1;
            let text = "Error: extension verbs: call hang took longer than 100ms and was killed";
            assert_eq!(said, Err(Failure::Status(text.into())));
        });
    }

    #[test]
    fn the_four_answers_of_on_stop() {
        let cases = [
            ("done", Next::Done),
            ("more", Next::Continue("attempt 2 after 3 changes of: more; and 1 message".into())),
            ("fail", Next::Fail("two tests fail".into())),
            ("silent", Next::Fail("not verified; the extension gave no reason".into())),
            (
                "broken",
                Next::Broken(format!("on-stop ended with exit status 1{STATUSES}; its last words on stderr: oops")),
            ),
        ];
        in_a_workspace(|cx| {
            let mut verbs = start("verbs.sh", cx).unwrap();
            for (task, next) in cases {
                let mut history = History::new();
                history.user(task);
                let mut stop = Stop { task, attempt: 2, changes: 3, history: &mut history };
                assert_eq!(verbs.on_stop(&mut stop, cx), next);
            }
        });
    }

    #[test]
    fn an_executable_that_describes_nothing_is_named_with_its_path() {
        in_a_workspace(|cx| {
            let why = start("prose.sh", cx).err().unwrap();
            let path = Path::new(CASES).join("prose.sh");
            let begins = format!("extension prose ({}): describe did not print a JSON object (", path.display());
            assert!(why.starts_with(&begins), "{why}");
            assert!(why.ends_with("it printed `I am an extension.`; its last words on stderr: usage: prose"), "{why}");
        });
    }
}
