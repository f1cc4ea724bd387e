//! bash: a command. The gate says whether it runs at once, after a question, or never.
//!
//! What runs at once is the gate's plan, wired without a shell; what a person has approved runs in a shell, exactly as it
//! was shown. Each call is a fresh shell in the workspace root: no state to lose, none to explain, and a `cd` that went
//! wrong ends with its command. Rejected: one long-lived shell, whose prompt would have to be guessed from its output.

use super::text;
use crate::event::{Event, Events};
use crate::gate::plan::TIME_LIMIT;
use crate::gate::{self, Plan, Reason, Verdict};
use crate::process::{End, Ended, Pieces, Shell, Tail, describe};
use crate::tool::{Check, Context, Failure, Json, Preview, Question, Scope, Spec, Tool};
use crate::workspace::Workspace;
use serde_json::json;
use std::time::Duration;

/// Time for a command that was approved, unless `timeout` says otherwise.
const DEFAULT: Duration = Duration::from_secs(120);
/// What `timeout` may ask for.
const MOST: Duration = Duration::from_secs(600);
/// Most bytes of live output a call: what watches would only scroll by. All of it is in the spill file.
const MAX_LIVE: usize = 1 << 20;

/// The tool.
pub struct Bash;

/// How a command runs.
enum Way {
    /// By the gate's plan.
    Listed(Plan),
    /// In a shell.
    Shell(String),
}

impl Tool for Bash {
    fn spec(&self) -> Spec {
        Spec {
            name: "bash".into(),
            description:
                "Run a shell command in the workspace root. Stdin is empty. Shows the last 2000 lines or 50 KiB.".into(),
            parameters: json!({"type": "object", "required": ["command"], "properties": {
                "command": {"type": "string"},
                "timeout": {"type": "integer", "description": "seconds, at most 600; default 120"}}}),
            read_only: true, // what may change something has a question
        }
    }

    fn check<'a>(&'a mut self, args: &Json, cx: &mut Context) -> Check<'a> {
        let (command, timeout) = (text(args, "command").to_owned(), args["timeout"].as_i64());
        match timeout {
            _ if command.trim().is_empty() => return Check::Bad("bash: the command is empty".into()),
            Some(..1) => return Check::Bad("bash: timeout is a number of seconds, from 1 to 600".into()),
            _ => {}
        }
        let asked = timeout.map(|seconds| Duration::from_secs(seconds.unsigned_abs()).min(MOST));
        match gate::decide(&command, &cx.workspace) {
            Verdict::Refuse(why) => Check::Refuse(why),
            Verdict::Run(plan) => {
                let limit = asked.unwrap_or(TIME_LIMIT);
                Check::Run(Box::new(move |cx: &mut Context| run(Way::Listed(plan), limit, cx)))
            }
            Verdict::Ask(reason) => {
                let (question, limit) = (question(&command, reason, &cx.workspace), asked.unwrap_or(DEFAULT));
                Check::Ask(question, Box::new(move |cx: &mut Context| run(Way::Shell(command), limit, cx)))
            }
        }
    }
}

fn question(command: &str, reason: Reason, workspace: &Workspace) -> Question {
    let first = command.trim().lines().next().unwrap_or_default();
    let more = if command.trim().lines().nth(1).is_some() { " …" } else { "" };
    Question {
        text: format!("bash {first}{more}"),
        why: Some(reason.to_string()),
        preview: Preview::Command(command.into()),
        scope: Scope::Command { text: command.into(), parts: gate::always::asking_parts(command, workspace) },
    }
}

/// Runs it, hands on what it prints, and puts its end into words.
fn run(way: Way, limit: Duration, cx: &mut Context) -> Result<String, Failure> {
    let Context { workspace, endpoint, events, cancel, processes, call, .. } = cx;
    let mut make = || workspace.run().spill(call);
    let (mut tail, mut live, mut held) = (Tail::new(&mut make), Live::default(), String::new());
    let show = |piece: &str, held: &mut String, events: &mut Events| {
        let delta = endpoint.redact_piece(held, piece);
        if !delta.is_empty() {
            events.emit(Event::Output { id: call.clone(), delta });
        }
    };
    let mut sink = |bytes: &[u8]| {
        if let Some(piece) = live.push(bytes) {
            show(&piece, &mut held, events);
        }
        tail.push(bytes)
    };
    let ended = match &way {
        Way::Listed(plan) => processes.plan(plan, limit, cancel, &mut sink),
        Way::Shell(command) => {
            let shell = Shell { command, dir: workspace.root(), stdin: b"", limit };
            processes.shell(&shell, cancel, &mut sink)
        }
    }?;
    let rest = live.finish().unwrap_or_default() + &std::mem::take(&mut held);
    show(&rest, &mut String::new(), events);
    report(tail.finish(), &remarks(&way, ended, limit), ended)
}

/// Output and remarks as the result. Whatever started and did not end well has a status of its own: it may have changed
/// something before its end, which `Error:` (nothing was done) would deny.
fn report(mut text: String, remarks: &[String], ended: Ended) -> Result<String, Failure> {
    if text.is_empty() && remarks.is_empty() {
        text = "[no output]".into();
    }
    for remark in remarks {
        if !text.is_empty() && !text.ends_with('\n') {
            text.push('\n');
        }
        text.push_str(&format!("[{remark}]"));
    }
    let success = ended.end == End::Exited && ended.status.is_some_and(|status| status.success());
    if success { Ok(text) } else { Err(Failure::Status(text)) }
}

/// What there is to say beside the output.
fn remarks(way: &Way, ended: Ended, limit: Duration) -> Vec<String> {
    let mut remarks = Vec::new();
    match (ended.end, way) {
        (End::Exited, _) => {
            remarks.extend(ended.status.filter(|status| !status.success()).map(describe));
        }
        (End::TimedOut, _) => {
            remarks.push(format!("killed after {} s; timeout may be up to {}", limit.as_secs(), MOST.as_secs()));
        }
        (End::Interrupted, _) => remarks.push("interrupted".into()),
        (End::Stopped, _) => remarks.push("killed: it wanted to read from the terminal, and nobody is there".into()),
        (End::Flooded, Way::Shell(_)) => remarks.push("killed after 512 MiB of output".into()),
        (End::Flooded, Way::Listed(_)) => remarks.push("stopped after 256 KiB of output; narrow it down".into()),
    }
    if matches!(way, Way::Listed(plan) if plan.steps.iter().flat_map(|step| &step.pipeline).any(|argv| argv.hides)) {
        remarks.push("protected files were left out".into());
    }
    if ended.leftover {
        remarks.push("a background process goes on, until this run ends; what it prints from now on is lost".into());
    }
    if ended.shell == "sh" {
        remarks.push("run by sh: there is no bash".into());
    }
    remarks
}

/// Live output, up to its limit.
#[derive(Default)]
struct Live {
    pieces: Pieces,
    bytes: usize,
}

impl Live {
    fn push(&mut self, bytes: &[u8]) -> Option<String> {
        if self.bytes > MAX_LIVE {
            return None;
        }
        self.bytes += bytes.len();
        let mut delta = self.pieces.push(bytes);
        if self.bytes > MAX_LIVE {
            delta.push_str("\n[more output is not shown while it runs]\n");
        }
        Some(delta).filter(|delta| !delta.is_empty())
    }

    fn finish(self) -> Option<String> {
        Some(self.pieces.finish()).filter(|delta| self.bytes <= MAX_LIVE && !delta.is_empty())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cancel::Cause;
    use crate::event::{Observer, Stamp};
    use crate::tools::tests::{Bench, asked, refused};
    use std::{cell::RefCell, rc::Rc, time::Instant};

    fn bash(bench: &mut Bench, command: &str) -> Result<String, Failure> {
        bench.call(&mut Bash, json!({"command": command}))
    }

    /// The result of a command that the gate runs at once.
    #[track_caller]
    fn at_once(bench: &mut Bench, command: &str) -> Result<String, Failure> {
        bench.at_once(&mut Bash, json!({"command": command}))
    }

    fn status(text: &str) -> Result<String, Failure> {
        Err(Failure::Status(text.into()))
    }

    #[test]
    fn a_listed_command_runs_at_once_and_without_a_shell() {
        let mut bench = Bench::new();
        bench.file("a.txt", "one\ntwo\n");
        assert_eq!(at_once(&mut bench, "cat a.txt"), Ok("one\ntwo\n".into()));
        assert_eq!(at_once(&mut bench, "cat a.txt | head -n 1 && wc -l a.txt"), Ok("one\n2 a.txt\n".into()));
        assert_eq!(at_once(&mut bench, "grep -c three a.txt || ls"), Ok("0\na.txt\n".into()));
        assert_eq!(at_once(&mut bench, "grep three a.txt && ls"), status("[exit status 1]"));
        assert_eq!(at_once(&mut bench, "grep three a.txt; ls"), Ok("a.txt\n".into()));
    }

    #[test]
    fn error_output_goes_where_it_is_sent() {
        let mut bench = Bench::new();
        let Err(Failure::Status(text)) = at_once(&mut bench, "cat missing") else { panic!("no status") };
        assert!(text.starts_with("cat: missing: No such file") && text.ends_with("\n[exit status 1]"), "{text}");
        assert_eq!(at_once(&mut bench, "cat missing 2>/dev/null"), status("[exit status 1]"));
        assert_eq!(at_once(&mut bench, "cat missing 2>&1 | wc -l"), Ok("1\n".into()));
        assert_eq!(at_once(&mut bench, "cat missing 2>/dev/null | wc -l"), Ok("0\n".into()));
    }

    #[test]
    fn a_listed_command_may_print_256_kib() {
        let mut bench = Bench::new();
        bench.file("big", "x\n".repeat(1 << 20));
        let Err(Failure::Status(text)) = at_once(&mut bench, "cat big") else { panic!("no status") };
        assert!(
            text.starts_with("[the last 2000 of 131072 lines (262144 bytes); read all of it in "),
            "{}",
            &text[..90]
        );
        assert!(text.ends_with("x\n[stopped after 256 KiB of output; narrow it down]"));
    }

    #[test]
    fn protected_files_that_a_search_leaves_out_are_mentioned() {
        let mut bench = Bench::new();
        bench.file(".env", "KEY=1\n");
        bench.file("a.txt", "KEY=2\n");
        let text = at_once(&mut bench, "grep -rn KEY .").unwrap();
        assert_eq!(text, "./a.txt:1:KEY=2\n[protected files were left out]");
    }

    #[test]
    fn everything_else_asks_with_the_whole_command_and_the_reason() {
        let mut bench = Bench::new();
        let command = "cargo test &&\n  echo done";
        let question = asked(Bash.check(&json!({"command": command}), &mut bench.cx));
        assert_eq!(question.text, "bash cargo test && …");
        assert_eq!(question.preview, Preview::Command(command.into()));
        assert!(question.why.is_some());
        let Scope::Command { text, .. } = question.scope else { panic!("another scope") };
        assert_eq!(text, command);
    }

    #[test]
    fn an_always_covers_what_would_not_run_at_once_by_itself() {
        let mut bench = Bench::new();
        std::fs::create_dir(bench.path("src")).unwrap();
        for (command, wanted) in [
            ("cargo test", Some(vec!["cargo test"])),
            ("cd src && cargo test 2>&1 | tail -n 5", Some(vec!["cargo test"])),
            ("cargo build && git status", Some(vec!["cargo build", "git status"])),
            ("cargo build; grep -rn KEY .", Some(vec!["cargo build", "grep -rn KEY ."])),
            ("cargo build; cat *", Some(vec!["cargo build", "cat *"])),
            ("cd .. && ls && rm x", Some(vec!["cd ..", "ls", "rm x"])),
            ("cargo test > log", None),
        ] {
            let question = asked(Bash.check(&json!({"command": command}), &mut bench.cx));
            let Scope::Command { parts, .. } = question.scope else { panic!("another scope") };
            let parts = parts.map(|parts| parts.iter().map(|words| words.join(" ")).collect::<Vec<_>>());
            assert_eq!(parts, wanted.map(|parts| parts.into_iter().map(String::from).collect()), "{command}");
        }
    }

    #[test]
    fn protected_things_are_refused_and_nonsense_is_bad() {
        let mut bench = Bench::new();
        refused(Bash.check(&json!({"command": "cat .env"}), &mut bench.cx));
        refused(Bash.check(&json!({"command": "sudo ls"}), &mut bench.cx));
        for args in [json!({"command": " "}), json!({"command": "ls", "timeout": 0})] {
            assert!(matches!(Bash.check(&args, &mut bench.cx), Check::Bad(_)));
        }
    }

    #[test]
    fn a_command_runs_in_the_root_and_its_status_is_in_the_text() {
        let mut bench = Bench::new();
        assert_eq!(bash(&mut bench, "basename \"$PWD\" > name; cat; true"), Ok("[no output]".into()));
        let root = bench.cx.workspace.root().file_name().unwrap().to_owned();
        assert_eq!(std::fs::read_to_string(bench.path("name")).unwrap().trim(), root);
        assert_eq!(bash(&mut bench, "printf a; exit 3"), status("a\n[exit status 3]"));
        assert_eq!(bash(&mut bench, "kill -9 $$"), status("[killed by signal 9]"));
    }

    #[test]
    fn at_the_time_limit_the_output_so_far_is_kept() {
        let mut bench = Bench::new();
        let result = bench.call(&mut Bash, json!({"command": "echo a; sleep 30; echo b", "timeout": 1}));
        assert_eq!(result, status("a\n[killed after 1 s; timeout may be up to 600]"));
    }

    #[test]
    fn an_interrupted_command_keeps_its_output() {
        let mut bench = Bench::new();
        bench.cx.cancel.raise(Cause::Interrupt);
        let started = Instant::now();
        let Err(Failure::Status(text)) = bash(&mut bench, "sleep 30; true") else { panic!("no status") };
        assert!(text.ends_with("[interrupted]") && started.elapsed() < Duration::from_millis(300), "{text}");
    }

    #[test]
    fn a_background_process_is_mentioned() {
        let mut bench = Bench::new();
        let text = bash(&mut bench, "sleep 300 & echo x").unwrap();
        assert_eq!(text, "x\n[a background process goes on, until this run ends; what it prints from now on is lost]");
    }

    #[test]
    fn a_flood_leaves_its_end_and_all_of_it_in_a_file() {
        let mut bench = Bench::new();
        let text = bash(&mut bench, "yes | head -c 100000000").unwrap();
        let (notice, rest) = text.split_once('\n').unwrap();
        assert_eq!(rest, "y\n".repeat(2000));
        let path =
            notice.strip_prefix("[the last 2000 of 50000000 lines (100000000 bytes); read all of it in ").unwrap();
        assert_eq!(std::fs::metadata(path.trim_end_matches(']')).unwrap().len(), 100_000_000);
    }

    #[test]
    fn output_is_live_and_never_splits_a_character() {
        struct Heard(Rc<RefCell<String>>);
        impl Observer for Heard {
            fn event(&mut self, _: &Stamp, event: &Event) -> Result<(), String> {
                let Event::Output { id, delta } = event else { return Ok(()) };
                assert_eq!(id, "c1");
                self.0.borrow_mut().push_str(delta);
                Ok(())
            }
        }
        let (mut bench, heard) = (Bench::new(), Rc::<RefCell<String>>::default());
        bench.cx.events.watch(Box::new(Heard(Rc::clone(&heard))));
        bash(&mut bench, "printf '\\303'; sleep 0.05; printf '\\251!\\303'").unwrap();
        assert_eq!(*heard.borrow(), "é!\u{fffd}");
        heard.borrow_mut().clear();
        bash(&mut bench, "yes | head -c 3000000").unwrap();
        assert!(heard.borrow().len() < MAX_LIVE + (64 << 10) + 50);
        assert!(heard.borrow().ends_with("\n[more output is not shown while it runs]\n"));
    }

    #[test]
    fn the_environment_holds_no_key() {
        let mut bench = Bench::new();
        let secret = [("OPENAI_API_KEY".into(), "sk-1".into()), ("PATH".into(), "/usr/bin:/bin".into())];
        bench.cx.processes = crate::process::Processes::new(crate::process::environment(secret.into_iter(), &[], &[]));
        let text = bash(&mut bench, "env; true").unwrap();
        assert!(text.contains("GIT_PAGER=cat") && !text.contains("sk-1"), "{text}");
    }
}
