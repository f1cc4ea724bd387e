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
use super::host::{NOT_VERIFIED, PROTOCOL};
use super::{Extension, Next, Stop};
use crate::cancel::Cancel;
use crate::endpoint::{Endpoint, Settings};
use crate::event::Events;
use crate::message::{History, Message};
use crate::process::{Processes, environment};
use crate::tool::{self, Budget, Check, Context, Failure, Json, Tool};
use crate::workspace::Workspace;
use serde_json::{Map, Value, json};
use std::io::{Read, Write};
use std::path::Path;
use std::process::ExitCode;

/// Answers the verb on the command line, and says with which status to exit.
pub fn serve(mut extension: impl Extension) -> ExitCode {
    let words: Vec<String> = std::env::args_os().skip(1).map(|word| word.to_string_lossy().into_owned()).collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let answer = read_stdin().and_then(|stdin| answer(&mut extension, &words, &stdin, &mut context()?));
    let (status, text) = answer.unwrap_or_else(|why| (1, why));
    match std::io::stdout().write_all(text.as_bytes()) {
        Ok(()) => status.into(),
        Err(_) => ExitCode::FAILURE, // nobody reads, so there is nobody to tell
    }
}

/// What is printed, and the exit status. `Err` is printed with status 1.
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

/// What tools and hooks are lent: the workspace, and nobody to ask.
fn context() -> Result<Context, String> {
    todo!()
}
