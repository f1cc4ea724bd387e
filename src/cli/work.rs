//! One task from the command line, and `--call`.

use super::front::{Front, Ready};
use super::{Exit, Stop, input, talk};
use crate::agent::{Agent, End};
use crate::event::Outcome;
use crate::tool::Context;
use std::io::IsTerminal;

/// A task, or a talk where there is none and somebody is there.
pub(crate) fn run(front: &Front) -> Result<Exit, Stop> {
    front.settings()?; // before anything is read or waited for
    let (workspace, notices) = front.open()?;
    if front.options.talk || (front.options.task.is_none() && front.interactive) {
        return talk::run(front, front.make(workspace, notices)?);
    }
    let piped = if std::io::stdin().is_terminal() { None } else { piped(front, &workspace)? };
    let Some(task) = input::task(front.options.task.as_deref(), piped.as_deref(), &workspace, |text| front.note(text))?
    else {
        let example = if front.options.resume.is_some() { "--continue 'go on'" } else { "'fix the failing test'" };
        return Err(Stop::Usage(format!("nothing to do: give a task (mini {example}), or see mini --help")));
    };
    let Ready { mut agent, mut cx, session, .. } = front.make(workspace, notices)?;
    let end = to_its_end(front, &mut agent, &mut cx, &task);
    let exit = front.end(&end, &mut cx);
    if end.outcome == Outcome::Interrupted {
        front.how_to_go_on(session.as_deref());
    }
    Ok(exit)
}

/// What is piped in; a recorded model or a lab has its own tasks, and reads nothing.
fn piped(front: &Front, workspace: &crate::workspace::Workspace) -> Result<Option<String>, Stop> {
    let piped = input::piped(std::io::stdin(), workspace, &front.cancel, |text| front.note(text))?;
    match (piped, front.cancel.cause()) {
        (None, Some(cause)) => Err(Stop::Cancelled(cause)),
        (piped, _) => Ok(piped),
    }
}

/// Runs a task. Only the limit of turns asks whether to go on, and only where somebody is there.
pub(crate) fn to_its_end(front: &Front, agent: &mut Agent, cx: &mut Context, task: &str) -> End {
    cx.kept.begin(task);
    let mut end = agent.run(task, cx);
    while end.may_go_on && front.interactive && !front.options.talk && go_on(front, &end) {
        end = agent.go_on(cx);
    }
    end
}

fn go_on(front: &Front, end: &End) -> bool {
    front.says_yes(&format!("{}. Go on?", end.reason.as_deref().unwrap_or_default()))
}

/// `--call TOOL JSON`: one call through the one door. Its result is the answer, whole and once: the screen shows none.
pub(crate) fn call(front: &Front, tool: &str, json: &str) -> Result<Exit, Stop> {
    let (workspace, notices) = front.open()?;
    let Ready { mut agent, mut cx, .. } = front.make_without_model(workspace, notices)?;
    cx.kept.begin(&format!("--call {tool}"));
    let end = agent.call(tool, json, &mut cx);
    if !front.options.json {
        front.console.answer(&end.text);
    }
    Ok(front.end(&end, &mut cx))
}
