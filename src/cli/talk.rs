//! A talk: tasks one after the other in one conversation, and the commands that begin with a slash.
//!
//! On a terminal a line editor reads them; with `--talk` plain lines of any stdin do, so that a talk can be scripted
//! and tested. Ctrl-C stops the step and not the program; twice in a row at an empty prompt leaves.

use super::front::{Front, Ready};
use super::{Exit, Stop, input, sessions, work};
use crate::agent::End;
use crate::cancel::Cause;
use crate::event::Outcome;
use crate::nearest::nearest;
use crate::rundir::state_dir;
use crate::terminal::{Entry, Ink, Line, Prompt, slash};
use std::io::IsTerminal;

/// The commands that there are, each with its line of help.
const COMMANDS: [(&str, &str); 10] = [
    ("help", "this list"),
    ("new", "forget the conversation and start a new one"),
    ("plan", "look and propose: nothing changes until /approve"),
    ("approve", "carry out the plan"),
    ("tokens", "what this talk has used"),
    ("undo", "take back what the last task did to files; again: the one before"),
    ("sessions", "what was worked on, here and elsewhere"),
    ("compact", "shorten the conversation now"),
    ("wire", "show requests and the stream, or stop showing them"),
    ("quit", "leave (Ctrl-D does, too)"),
];

/// What the next entry is.
enum Next {
    Task(String),
    Say(String),
    Again,
    Leave,
}

/// Talks until the input ends, somebody leaves, or a signal other than Ctrl-C comes.
pub(crate) fn run(front: &Front, ready: Ready) -> Result<Exit, Stop> {
    run_with(front, ready, &|words| words.to_owned())
}

/// The same; `meant` says what task an entry means (in a lab, a number means a sample).
pub(crate) fn run_with(front: &Front, mut ready: Ready, meant: &dyn Fn(&str) -> String) -> Result<Exit, Stop> {
    let mut source = Source::open(front)?;
    if source.is_editor() {
        say(front, "mini: type a task, or /help. Ctrl-C stops a step, Ctrl-D leaves.");
    }
    let mut last = End::done();
    let mut interrupts = 0;
    loop {
        let entry = source.next(front, ready.plan.is_on());
        if let Some(outcome) = told_to_leave(front) {
            last.outcome = outcome;
            break;
        }
        front.cancel.clear();
        interrupts = if entry == Entry::Interrupt { interrupts + 1 } else { 0 };
        let next = match entry {
            Entry::Text(text) => next(front, &meant(&text), &last, &mut ready)?,
            Entry::Interrupt if interrupts < 2 => Next::Say("Ctrl-C again leaves".into()),
            Entry::Interrupt | Entry::End => Next::Leave,
            Entry::Failed(why) => return Err(Stop::Failed(why)),
        };
        match next {
            Next::Again => {}
            Next::Say(text) => say(front, &text),
            Next::Leave => break,
            Next::Task(task) => {
                last = work::to_its_end(front, &mut ready.agent, &mut ready.cx, &task);
                front.task_ended(&last);
                if !source.is_editor() && last.outcome == Outcome::Interrupted {
                    break; // a script that is interrupted ends
                }
            }
        }
    }
    let exit = front.end(&last, &mut ready.cx);
    if !ready.agent.history().messages().is_empty() {
        front.how_to_go_on(ready.session.as_deref());
    }
    Ok(exit)
}

/// A signal other than Ctrl-C, or the time limit, ends the talk and not only the step.
fn told_to_leave(front: &Front) -> Option<Outcome> {
    match front.cancel.cause()? {
        Cause::Interrupt => None,
        Cause::Terminate | Cause::Hangup => Some(Outcome::Interrupted),
        Cause::TimeLimit => Some(Outcome::Limit),
    }
}

/// What an entry asks for: a command of the talk, or a task.
fn next(front: &Front, text: &str, last: &End, ready: &mut Ready) -> Result<Next, Stop> {
    if text.trim().is_empty() {
        return Ok(Next::Again);
    }
    if let Some((command, rest)) = slash(text) {
        return obey(front, command, rest, last, ready);
    }
    Ok(match input::task(Some(text), None, &ready.cx.workspace, |text| front.note(text)) {
        Ok(task) => task.map_or(Next::Again, Next::Task),
        Err(why) => Next::Say(format!("mini: {why}")),
    })
}

fn obey(front: &Front, command: &str, rest: &str, last: &End, ready: &mut Ready) -> Result<Next, Stop> {
    Ok(match command {
        "quit" => Next::Leave,
        "help" => Next::Say(COMMANDS.map(|(name, help)| format!("  /{name:<8} {help}")).join("\n")),
        "tokens" => Next::Say(tokens(ready)),
        "compact" if ready.agent.compact(&mut ready.cx) => Next::Again, // the screen has said what became of it
        "compact" => Next::Say("there is nothing to shorten: no turn or long result before the newest".into()),
        "wire" => Next::Say(wire(front)),
        "undo" => Next::Say(sessions::undo_here(ready)),
        "sessions" => Next::Say(sessions::listed(ready.cx.workspace.root())?.trim_end().to_owned()),
        "plan" => {
            ready.plan.set(true);
            match rest {
                "" => Next::Say("plan mode: nothing changes until /approve".into()),
                task => Next::Task(task.into()),
            }
        }
        "approve" if ready.plan.is_on() => {
            ready.plan.set(false);
            Next::Task("The plan is approved. Carry it out.".into())
        }
        "approve" => Next::Say("there is no plan to approve: /plan comes first".into()),
        "new" => {
            front.renew(last, ready)?;
            Next::Again
        }
        other => Next::Say(unknown(other)),
    })
}

fn wire(front: &Front) -> String {
    let on = !front.wire.get();
    front.wire.set(on);
    front.console.may_spin(!on && !front.options.quiet); // it would write over the wire
    if on { "the wire is shown".into() } else { "the wire is not shown".into() }
}

fn unknown(command: &str) -> String {
    match nearest(command, COMMANDS.map(|(name, _)| name)) {
        Some(near) => format!("there is no /{command}; did you mean /{near}?"),
        None => format!("there is no /{command}; /help lists what there is"),
    }
}

fn tokens(ready: &Ready) -> String {
    let used = ready.cx.budget.used;
    let cost = ready.cx.budget.cost().map_or(String::new(), |dollars| format!(" · ${dollars:.4}"));
    let messages = ready.agent.history().messages().len();
    format!(
        "{messages} message{} · {} tokens in ({} cached) · {} out ({} reasoning){cost}",
        if messages == 1 { "" } else { "s" },
        used.input,
        used.cached,
        used.output,
        used.reasoning
    )
}

fn say(front: &Front, text: &str) {
    front.console.say(&[(Ink::Plain, text)]);
}

/// Where entries come from.
pub(crate) enum Source {
    Editor(Box<Prompt>),
    Lines,
}

impl Source {
    pub fn open(front: &Front) -> Result<Source, Stop> {
        if !front.interactive || !std::io::stdin().is_terminal() {
            return Ok(Source::Lines);
        }
        let history = state_dir().ok().map(|dir| dir.join("history"));
        Ok(Source::Editor(Box::new(Prompt::new(history).map_err(Stop::Failed)?)))
    }

    fn is_editor(&self) -> bool {
        matches!(self, Source::Editor(_))
    }

    pub fn next(&mut self, front: &Front, planning: bool) -> Entry {
        match self {
            Source::Editor(prompt) => {
                front.console.fresh_line();
                let entry = prompt.read(if planning { "plan › " } else { "› " }, &front.cancel);
                if let Entry::Text(text) = &entry
                    && let Err(why) = prompt.remember(text)
                {
                    say(front, &format!("mini: {why}"));
                }
                entry
            }
            Source::Lines => match front.lines.borrow_mut().next_line(&front.cancel) {
                Line::Text(text) => Entry::Text(text),
                Line::Cancelled => Entry::Interrupt,
                Line::End => Entry::End,
            },
        }
    }
}
