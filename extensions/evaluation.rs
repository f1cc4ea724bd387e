//! An agent under evaluation: it only reads, and it shows what it will be judged by.
//!
//! `mini --eval` compares versions of an agent on fixed cases. A case is worth something only if every version works
//! under the same conditions, and this extension is the conditions of one kind of agent, that answers questions from
//! files: no tool but `read` is offered (whatever `--yes` allows, since what is not there cannot be approved), and the
//! rules stand in the system text.
//!
//! At each stop it says what a grader will see of the run, so that a person who plays along sees it, too.
//!
//! Left out: the grading. It is done outside, by a program that the agent knows nothing of (`src/eval/grade.rs`).

use mini::extension::{Extension, Next, Stop};
use mini::message::Message;
use mini::setup::Setup;
use mini::tool::Context;

/// The one tool that stays.
const TOOL: &str = "read";
/// The rules, unless a file says them.
const RULES: &str = "Answer questions from the files of the workspace. Read a file before you say what is in it, and \
    give its words and numbers exactly. If the files do not say it, say so. Where no file is needed, such as for a \
    greeting, read none. You cannot change anything, and nobody is there to answer questions of yours.";

/// Attaches the extension: `arg` is a file with other rules.
pub fn attach(setup: &mut Setup, arg: Option<&str>) -> Result<(), String> {
    let rules = match arg {
        Some(file) => std::fs::read_to_string(file).map_err(|e| format!("cannot read {file}: {e}"))?,
        None => RULES.into(),
    };
    if rules.trim().is_empty() {
        return Err(format!("{} holds no rules", arg.unwrap_or_default()));
    }
    setup.tools.retain(|tool| tool.spec().name == TOOL);
    setup.extensions.push(Box::new(Evaluation { rules: rules.trim().into() }));
    Ok(())
}

/// The extension.
struct Evaluation {
    rules: String,
}

impl Extension for Evaluation {
    fn name(&self) -> &str {
        "evaluation"
    }

    fn system_prompt(&mut self) -> String {
        self.rules.clone()
    }

    fn on_stop(&mut self, stop: &mut Stop, cx: &mut Context) -> Next {
        cx.events.notice(Graded::of(stop.history.messages(), stop.task).words());
        Next::Done
    }
}

/// What a grader sees of a task.
#[derive(Debug, Default, PartialEq, Eq)]
struct Graded {
    /// The names of the calls, in order.
    calls: Vec<String>,
    /// Length of the answer.
    characters: usize,
}

impl Graded {
    fn of(messages: &[Message], task: &str) -> Graded {
        let begins = |message: &Message| matches!(message, Message::User(text) if text == task);
        let from = messages.iter().rposition(begins).unwrap_or(0);
        let mut graded = Graded::default();
        for message in &messages[from..] {
            if let Message::Assistant(reply) = message {
                graded.calls.extend(reply.calls.iter().map(|call| call.name.clone()));
                graded.characters = reply.text.trim().chars().count();
            }
        }
        graded
    }

    fn words(&self) -> String {
        let calls = if self.calls.is_empty() { "none".into() } else { self.calls.join(", ") };
        format!("evaluation: tools used: {calls}; answer: {} characters", self.characters)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use mini::cancel::Cancel;
    use mini::endpoint::{Endpoint, Settings};
    use mini::message::{Assistant, Call, History};
    use mini::process::{Processes, environment};
    use mini::rundir::RunDir;
    use mini::workspace::Workspace;

    fn setup(dir: &std::path::Path) -> Setup {
        let workspace = Workspace::open(dir, RunDir::create(&dir.join("state")).unwrap()).unwrap();
        let settings = Settings { base_url: "http://127.0.0.1:0/v1".into(), ..Settings::default() };
        let processes = Processes::new(environment(std::env::vars_os(), &[], &[]));
        Setup::new(workspace, Endpoint::new(settings).unwrap(), Cancel::new(), processes)
    }

    fn reply(text: &str, calls: &[&str]) -> Assistant {
        let call = |name: &&str| Call {
            id: name.to_string(),
            name: name.to_string(),
            raw: "{}".into(),
            arguments: Ok(Default::default()),
            extra: Default::default(),
        };
        Assistant { text: text.into(), calls: calls.iter().map(call).collect(), ..Assistant::default() }
    }

    #[test]
    fn only_read_is_offered_and_a_file_of_rules_is_wanted_if_named() {
        let dir = tempfile::tempdir().unwrap();
        let mut with = setup(dir.path());
        attach(&mut with, None).unwrap();
        assert_eq!(with.build().unwrap().0.tool_names(), [TOOL]);
        let rules = dir.path().join("rules.md");
        std::fs::write(&rules, "Be brief.\n").unwrap();
        let mut with = setup(dir.path());
        attach(&mut with, rules.to_str()).unwrap();
        assert_eq!(with.extensions[0].system_prompt(), "Be brief.");
        std::fs::write(&rules, "\n").unwrap();
        assert!(attach(&mut setup(dir.path()), rules.to_str()).unwrap_err().contains("holds no rules"));
        assert!(attach(&mut setup(dir.path()), Some("none.md")).unwrap_err().starts_with("cannot read none.md"));
    }

    #[test]
    fn a_stop_is_never_objected_to() {
        let dir = tempfile::tempdir().unwrap();
        let mut cx = setup(dir.path()).build().unwrap().1;
        let mut evaluation = Evaluation { rules: RULES.into() };
        let mut history = History::new();
        history.user("go");
        history.assistant(reply("It is 14 days.", &[]));
        let mut stop = Stop { task: "go", attempt: 0, changes: 0, history: &mut history };
        assert_eq!(evaluation.on_stop(&mut stop, &mut cx), Next::Done);
    }

    #[test]
    fn what_a_grader_sees_is_of_the_task_at_hand() {
        let mut history = History::new();
        history.user("before");
        history.assistant(reply("", &["read"]));
        history.user("go");
        assert_eq!(Graded::of(history.messages(), "go").words(), "evaluation: tools used: none; answer: 0 characters");
        history.assistant(reply("", &["read", "read"]));
        history.close("x");
        history.assistant(reply("äh", &[]));
        assert_eq!(
            Graded::of(history.messages(), "go").words(),
            "evaluation: tools used: read, read; answer: 2 characters"
        );
    }
}
