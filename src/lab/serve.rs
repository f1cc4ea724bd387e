//! The exam for an agent that is not ours: the participant's own, in any language, that offers read, write, edit and
//! bash and speaks to an OpenAI-compatible endpoint.
//!
//! The scripted model listens; the participant starts the agent in the directory that is named, on the task that is
//! named, and says when it has ended. What is this program's own business (its log, its exit code, its output) is
//! left out; requests and files are asserted as in the exam.

use super::Lab;
use super::exam::{self, Always, Seen};
use super::manifest::{Case, Kind, Run};
use super::report::Test;
use super::room::{Ended, KEY};
use super::shelf::Files;
use crate::replay::{Assertion, MODEL, Pace, Script, Section, Server, Transcript};

/// Grades an agent, case by case. `ready` shows a text and waits; false means that nobody is there.
pub fn grade(lab: &Lab, files: &Files, ready: &mut dyn FnMut(&str) -> bool) -> Result<Vec<Test>, String> {
    let Some(wanted) = &lab.about.serve else {
        return Err("this lab is about mini itself, and has nothing to grade another agent by".into());
    };
    let cases = cases(lab)?;
    let sections: Vec<Section> = cases.iter().map(|(_, _, section)| section.clone()).collect();
    let server = Server::start(Script { sections }, Pace::AtOnce)?;
    let mut words = format!(
        "An agent of your own: {wanted}\n\n  base URL: {}\n  key:      {KEY}\n  model:    {MODEL}\n",
        server.base_url()
    );
    let (mut tests, mut always) = (Vec::new(), Always::default());
    for (at, (case, run, section)) in cases.iter().enumerate() {
        server.select(&section.name)?;
        let (before, room) = (server.transcript(), exam::prepare(lab, run, files)?);
        let answer = if run.args.iter().any(|arg| arg == "--yes") { "yes" } else { "no" };
        words.push_str(&format!(
            "\nCase {} of {}: {}\n  directory: {}\n  task:      {}\n  questions: answer {answer}\n\
             Run your agent there, and press Enter when it has ended. ",
            at + 1,
            cases.len(),
            case.name,
            room.demo().display(),
            run.task.as_deref().unwrap_or_default()
        ));
        if !ready(&words) {
            return Err(format!("nobody said that the agent has ended, in case {}", at + 1));
        }
        words.clear();
        let transcript = since(&before, server.transcript());
        let seen = Seen::new(section.clone(), transcript, Ended::default(), &room);
        always.look(lab, &seen);
        tests.extend(exam::judge(case, &seen));
    }
    tests.extend(always.tests(lab));
    Ok(tests)
}

/// The cases that another agent can sit: those with a task. Each has a section of the one script.
fn cases(lab: &Lab) -> Result<Vec<(Case, Run, Section)>, String> {
    let mut cases = Vec::new();
    for case in &lab.about.exam {
        if let Kind::Run(run) = &case.kind
            && run.task.is_some()
        {
            cases.push((case.clone(), run.clone(), lab.parse_script(&run.script)?));
        }
    }
    let (run, script) = exam::environment()?;
    let name = "a command sees no key".to_owned();
    cases.push((Case { name, open: None, kind: Kind::Run(run.clone()) }, run, script));
    let section = |(at, (case, run, script)): (usize, (Case, Run, Script))| {
        let section = script.sections.into_iter().next().unwrap_or_default();
        (case, run, of_any_agent(section, at + 1))
    };
    Ok(cases.into_iter().enumerate().map(section).collect())
}

/// A section under a number, with those checks only that hold for any agent.
fn of_any_agent(mut section: Section, number: usize) -> Section {
    section.name = number.to_string();
    section.checks.retain(|check| matches!(check.assertion, Assertion::File(..)));
    section
}

/// What is new in a transcript.
fn since(before: &Transcript, mut now: Transcript) -> Transcript {
    now.requests.drain(..before.requests.len().min(now.requests.len()));
    now.failures.drain(..before.failures.len().min(now.failures.len()));
    now
}
