//! The other end of `host.rs`: makes an [`Extension`] in Rust the executable that answers the three verbs.
//!
//! ```no_run
//! # struct Notes;
//! # impl mini::extension::Extension for Notes { fn name(&self) -> &str { "notes" } }
//! fn main() -> std::process::ExitCode {
//!     mini::extension::serve(Notes)
//! }
//! ```
//!
//! Each verb is a new process, so it fits extensions with a static system prompt and tools without state. A hook sees
//! the history as it is sent, and what it replaces there is lost; nothing here can ask a model, and nobody watches.

use super::describe::Confirm;
use super::host::NOT_VERIFIED;
use super::program::PROTOCOL;
use super::{Extension, Next, Stop};
use crate::cancel::Cancel;
use crate::endpoint::{Endpoint, Settings};
use crate::event::Events;
use crate::message::{History, Message};
use crate::process::{Processes, environment};
use crate::rundir::{self, RunDir};
use crate::tool::{self, Budget, Check, Context, Failure, Json, Tool};
use crate::workspace::Workspace;
use serde_json::{Map, Value, json};
use std::io::{Read, Write};
use std::path::Path;
use std::process::ExitCode;

/// An address where nobody listens: who asks a model here reads it in the error.
const NO_MODEL: &str = "http://127.0.0.1:0/no-model-in-an-executable-extension";

/// Answers the verb on the command line, and says with which status to exit.
pub fn serve(mut extension: impl Extension) -> ExitCode {
    let words: Vec<String> = std::env::args_os().skip(1).map(|word| word.to_string_lossy().into_owned()).collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    // Tried by hand there is no MINI_WORKSPACE; then it is the current directory.
    let root = std::env::var_os("MINI_WORKSPACE").unwrap_or_else(|| ".".into());
    let state = rundir::state_dir().unwrap_or_else(|_| std::env::temp_dir());
    let lent = context(Path::new(&root), &state);
    let answer = lent.and_then(|mut cx| answer(&mut extension, &words, &read_stdin()?, &mut cx));
    match answer.and_then(|(status, text)| print(&text).map(|()| status)) {
        Ok(status) => status.into(),
        Err(why) => {
            let _ = writeln!(std::io::stderr(), "{why}"); // if that cannot be printed either, the status says enough
            ExitCode::FAILURE
        }
    }
}

fn print(text: &str) -> Result<(), String> {
    let mut stdout = std::io::stdout();
    let printed = stdout.write_all(text.as_bytes()).and_then(|()| stdout.flush());
    printed.map_err(|e| format!("cannot print the answer: {e}"))
}

/// What is printed, and the exit status. `Err` goes to stderr, with status 1.
fn answer(
    extension: &mut dyn Extension,
    words: &[&str],
    stdin: &str,
    cx: &mut Context,
) -> Result<(u8, String), String> {
    match words {
        ["describe"] => describe(extension, cx).map(|said| (0, said.to_string())),
        ["call", name] => call(extension, name, stdin, cx).map(|text| (0, text)),
        ["on-stop"] => on_stop(extension, stdin, cx),
        _ => Err(format!("protocol {PROTOCOL}: describe | call NAME | on-stop, not `{}`", words.join(" "))),
    }
}

fn describe(extension: &mut dyn Extension, cx: &mut Context) -> Result<Value, String> {
    let mut tools = extension.tools()?;
    let tools: Vec<Value> = tools.iter_mut().map(|tool| declare(tool.as_mut(), cx)).collect();
    Ok(json!({"system_prompt": extension.system_prompt(), "tools": tools, "on_stop": true}))
}

fn declare(tool: &mut dyn Tool, cx: &mut Context) -> Value {
    let (spec, confirm) = (tool.spec(), confirm(tool, cx) == Confirm::Yes);
    json!({"name": spec.name, "description": spec.description, "parameters": spec.parameters,
        "confirm": confirm, "read_only": spec.read_only})
}

/// Whether a call asks. A tool decides that for each call, the protocol once for all; so the smallest call decides, and
/// one that cannot be judged asks.
fn confirm(tool: &mut dyn Tool, cx: &mut Context) -> Confirm {
    let smallest = tool::smallest(&tool.spec());
    match tool.check(&smallest, cx) {
        Check::Run(_) => Confirm::No,
        Check::Ask(..) | Check::Refuse(_) | Check::Bad(_) => Confirm::Yes,
    }
}

fn call(extension: &mut dyn Extension, name: &str, stdin: &str, cx: &mut Context) -> Result<String, String> {
    let mut tools = extension.tools()?;
    let tool = tools.iter_mut().find(|tool| tool.spec().name == name);
    let tool = tool.ok_or_else(|| format!("there is no tool `{name}`"))?;
    let args: Map<String, Json> = serde_json::from_str(stdin).map_err(|e| format!("the arguments: {e}"))?;
    let args = tool::fit(args, &tool.spec())?;
    let announced = confirm(tool.as_mut(), cx) == Confirm::Yes;
    match tool.check(&args, cx) {
        Check::Run(act) => act(cx).map_err(text),
        Check::Ask(_, act) if announced => act(cx).map_err(text), // the host has asked
        Check::Ask(question, _) => Err(format!("{}: this needs an approval, and nobody was asked", question.text)),
        Check::Refuse(why) | Check::Bad(why) => Err(why),
    }
}

fn text(failure: Failure) -> String {
    match failure {
        Failure::Status(text) | Failure::Error(text) | Failure::Blocked(text) => text,
    }
}

fn on_stop(extension: &mut dyn Extension, stdin: &str, cx: &mut Context) -> Result<(u8, String), String> {
    let asked: Value = serde_json::from_str(stdin).map_err(|e| format!("on-stop: {e}"))?;
    let messages = asked["messages"].as_array().map(Vec::as_slice).unwrap_or_default();
    let mut history = History::new();
    history.replace(messages.iter().map(Message::from_json).collect::<Result<_, _>>()?)?;
    let number = |name: &str| asked[name].as_u64().and_then(|n| u32::try_from(n).ok()).unwrap_or_default();
    let task = asked["task"].as_str().unwrap_or_default();
    let (attempt, changes) = (number("attempt"), number("changes"));
    match extension.on_stop(&mut Stop { task, attempt, changes, history: &mut history }, cx) {
        Next::Done => Ok((0, String::new())),
        Next::Continue(text) => Ok((0, text)),
        Next::Fail(why) => Ok((NOT_VERIFIED, why)),
        Next::Broken(why) => Err(why),
    }
}

fn read_stdin() -> Result<String, String> {
    let mut text = String::new();
    std::io::stdin().read_to_string(&mut text).map_err(|e| format!("cannot read stdin: {e}"))?;
    Ok(text)
}

/// What tools and hooks are lent: a workspace, and nobody to ask. The host's environment is free of keys already.
pub(super) fn context(root: &Path, state: &Path) -> Result<Context, String> {
    let (base_url, model) = (NO_MODEL.into(), "none".into());
    let nobody = Settings { base_url, model, retry_base_ms: 1, ..Settings::default() };
    Ok(Context {
        workspace: Workspace::open(root, RunDir::create(state)?)?,
        endpoint: Endpoint::new(nobody)?,
        events: Events::new(Vec::new()),
        cancel: Cancel::new(),
        budget: Budget::default(),
        processes: Processes::new(environment(std::env::vars_os(), &[], &[])),
        call: String::new(),
        changed: Vec::new(),
        kept: crate::kept::Kept::default(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tool::{Act, Preview, Question, Scope, Spec};
    use tempfile::TempDir;

    /// Asks where it is told to; otherwise adds one.
    struct Add;
    impl Tool for Add {
        fn spec(&self) -> Spec {
            let number = json!({"type": "integer"});
            let parameters = json!({"type": "object", "properties": {"n": number}, "required": ["n"]});
            Spec { name: "add".into(), description: "Adds one.".into(), parameters, read_only: true }
        }
        fn check<'a>(&'a mut self, args: &Json, _: &mut Context) -> Check<'a> {
            let n = args["n"].as_i64().unwrap_or_default();
            let act: Act = Box::new(move |_| Ok((n + 1).to_string()));
            let text = "add to a large number".into();
            match n {
                ..0 => Check::Bad("n is negative".into()),
                100.. => Check::Ask(Question { text, why: None, preview: Preview::None, scope: Scope::Files }, act),
                _ => Check::Run(act),
            }
        }
    }

    struct Sums;
    impl Extension for Sums {
        fn name(&self) -> &str {
            "sums"
        }
        fn tools(&mut self) -> Result<Vec<Box<dyn Tool>>, String> {
            Ok(vec![Box::new(Add)])
        }
        fn system_prompt(&mut self) -> String {
            "Sums are yours.".into()
        }
        fn on_stop(&mut self, stop: &mut Stop, cx: &mut Context) -> Next {
            let Stop { task, attempt, changes, history } = stop;
            match *task {
                "ask" => match cx.endpoint.ask(
                    crate::endpoint::Ask { turn: 1, system: "", history, tools: "[]" },
                    &mut cx.events,
                    &cx.cancel,
                ) {
                    Err(crate::endpoint::Failure::Failed(why)) => Next::Broken(why),
                    _ => Next::Done,
                },
                "fail" => Next::Fail("no".into()),
                "go on" => Next::Continue(format!("{attempt} {changes} {}", history.messages().len())),
                _ => Next::Done,
            }
        }
    }

    fn answers(words: &[&str], stdin: &str) -> Result<(u8, String), String> {
        let dir = TempDir::new().unwrap();
        answer(&mut Sums, words, stdin, &mut context(dir.path(), dir.path()).unwrap())
    }

    #[test]
    fn what_it_describes_is_what_the_host_reads() {
        let (status, text) = answers(&["describe"], "{}").unwrap();
        let said = super::super::describe::parse(&text).unwrap();
        assert_eq!((status, said.system_prompt.as_str(), said.on_stop), (0, "Sums are yours.", true));
        assert_eq!((&said.tools[0].confirm, said.tools[0].spec.name.as_str()), (&Confirm::No, "add"));
        assert!(said.tools[0].spec.read_only);
    }

    #[test]
    fn a_call_is_checked_and_one_that_asks_unannounced_does_not_run() {
        let call = |stdin| answers(&["call", "add"], stdin);
        assert_eq!(call(r#"{"n": "41"}"#), Ok((0, "42".into())));
        assert_eq!(call(r#"{"n": -1}"#), Err("n is negative".into()));
        assert!(call("{}").unwrap_err().starts_with("`n` is missing"));
        let why = "add to a large number: this needs an approval, and nobody was asked";
        assert_eq!(call(r#"{"n": 100}"#), Err(why.into()));
        assert_eq!(answers(&["call", "sub"], "{}"), Err("there is no tool `sub`".into()));
    }

    #[test]
    fn a_hook_sees_the_history_and_its_answers_become_text_and_status() {
        let stop = |task| {
            let message = json!({"role": "user", "content": task});
            answers(&["on-stop"], &json!({"task": task, "attempt": 2, "changes": 3, "messages": [message]}).to_string())
        };
        assert_eq!(stop("stop"), Ok((0, String::new())));
        assert_eq!(stop("go on"), Ok((0, "2 3 1".into())));
        assert_eq!(stop("fail"), Ok((3, "no".into())));
        let why = stop("ask").unwrap_err();
        assert!(why.contains("/no-model-in-an-executable-extension"), "{why}");
    }

    #[test]
    fn an_unknown_verb_is_told_the_known_ones() {
        let why = answers(&["explain"], "").unwrap_err();
        assert_eq!(why, "protocol 1: describe | call NAME | on-stop, not `explain`");
    }
}
