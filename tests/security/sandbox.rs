//! `--sandbox`: what a command is refused by the kernel, and what it must still be able to do.
//!
//! On a machine without Landlock each test checks that mini says so and starts nothing, and ends there.

use crate::support::{Ran, Test};
use mini::cancel::Cancel;
use mini::gate::{Argv, Join, Plan, Stderr, Step};
use mini::process::{Flow, Processes};
use mini::sandbox::Sandbox;
use serde_json::json;
use std::net::TcpListener;
use std::path::Path;
use std::time::Duration;

/// Runs one command under `--yes --sandbox`. None where the kernel cannot: then nothing may have run.
fn sandboxed(test: Test, command: &str) -> Option<Ran> {
    let test =
        test.call("bash", json!({"command": command})).text("Done.").args(["--yes", "--sandbox", "--json", "go"]);
    possible().then(|| test.run().exit(0))
}

/// Whether this machine has Landlock; where it has none, that it is said, once for each test.
fn possible() -> bool {
    let dir = tempfile::tempdir().unwrap();
    if Sandbox::new(dir.path(), &dir.path().join("tmp")).is_ok() {
        return true;
    }
    let ran = Test::new().args(["--sandbox", "go"]).run().exit(2).stderr_has("--sandbox: there can be none");
    assert!(ran.requests.is_empty());
    false
}

/// A program of the test's own, so that a refusal is not mistaken for a command that is not there.
fn script(test: Test, text: &str) -> Test {
    test.file("try.sh", text)
}

#[test]
fn a_command_writes_only_in_the_workspace_and_in_its_tmpdir() {
    let test = script(
        Test::new().file("a.txt", "a\n"),
        "echo in > new.txt; mkdir -p d && mv a.txt d/ && echo moved\n\
         echo out > ../outside.txt; mkdir ../outside; ln -s ../outside.txt link; echo out > link\n\
         ln ../precious hard; mv ../precious .; rm ../precious; true > ../precious\n\
         echo tmp > \"$TMPDIR/x\" && mktemp > /dev/null && cat \"$TMPDIR/x\"\n\
         echo x > /dev/null && cat <<END\nhere\nEND\n",
    );
    let (outside, precious) = (test.workspace().join("../outside.txt"), test.workspace().join("../precious"));
    std::fs::write(&precious, "precious\n").unwrap();
    let Some(ran) = sandboxed(test, "sh try.sh") else { return };
    let result = ran.results().remove(0);
    for printed in ["moved\n", "tmp\n", "here\n", "Permission denied"] {
        assert!(result.contains(printed), "{printed:?} is missing: {result}");
    }
    assert!(!outside.exists() && !ran.test.workspace().join("../outside").exists());
    assert_eq!(std::fs::read_to_string(precious).unwrap(), "precious\n");
    ran.file("new.txt", "in\n").file("d/a.txt", "a\n");
}

#[test]
fn a_command_reaches_no_server_and_the_agent_still_does() {
    let server = TcpListener::bind("127.0.0.1:0").unwrap();
    server.set_nonblocking(true).unwrap();
    let port = server.local_addr().unwrap().port();
    let connect = format!("exec 3<>/dev/tcp/127.0.0.1/{port} && echo connected\n");
    let open = Test::new().file("try.sh", &connect).call("bash", json!({"command": "bash try.sh"})).text("Done.");
    open.args(["--yes", "go"]).run().exit(0).result_has(0, "connected");
    assert!(server.accept().is_ok(), "without a sandbox the command must be able to connect");
    let Some(ran) = sandboxed(Test::new().file("try.sh", &connect), "bash try.sh") else { return };
    let notice = ran.events_of("notice")[0]["text"].as_str().unwrap_or_default().to_owned();
    if notice.contains("no TCP") {
        assert!(server.accept().is_err(), "{notice}");
        assert!(!ran.results()[0].contains("connected"));
    }
    assert_eq!(ran.requests.len(), 2, "the agent's own requests");
}

#[test]
fn daily_tools_work_in_it() {
    let committed =
        "git init -q . && git add try.sh && git -c user.name=T -c user.email=t@example.com commit -qm first";
    let test = script(Test::new(), &format!("{committed}\ngit log --format=%s\nawk 'BEGIN {{print 6*7}}'\n"));
    let Some(ran) = sandboxed(test, "sh try.sh && cat try.sh | head -1 | wc -l") else { return };
    assert_eq!(ran.results()[0], "first\n42\n1\n");
}

/// Every command is started by one thread, so they share one domain: a later one can end what an earlier one has started.
#[test]
fn commands_can_signal_each_other_and_not_the_agent() {
    let test = Test::new()
        .call("bash", json!({"command": "sleep 300 & echo $! > pid"}))
        .call("bash", json!({"command": "kill $(cat pid) && echo killed"}))
        .file("try.sh", "kill -0 $PPID || echo refused\n");
    let Some(ran) = sandboxed(test, "exec sh try.sh") else { return };
    let ran = ran.result_has(1, "killed");
    let notice = ran.events_of("notice")[0]["text"].to_string();
    let level: u32 = notice.split("ABI ").nth(1).and_then(|rest| rest.split(';').next()?.parse().ok()).unwrap();
    assert!(level < 6 || ran.results()[2].contains("refused"), "{ran}");
}

#[test]
fn the_agent_itself_is_not_restricted() {
    let test = Test::new()
        .call("bash", json!({"command": "echo 1 > ../outside.txt"}))
        .call("write", json!({"path": "sub/own.txt", "content": "own\n"}));
    let outside = test.workspace().join("../outside.txt");
    let Some(ran) = sandboxed(test, "echo 2 > ../outside.txt") else { return };
    assert!(!outside.exists());
    // The log lies outside the workspace, and holds what came after the commands.
    assert!(ran.log.contains(r#""type":"end""#), "{}", ran.log);
    let ran = ran.file("sub/own.txt", "own\n");
    let system = ran.requests[0].json()["messages"][0]["content"].as_str().unwrap_or_default().to_owned();
    assert_eq!(system.matches("run in a sandbox").count(), 1, "the model is told, too");
    let notices = ran.events_of("notice");
    assert_eq!(notices.len(), 1, "what is enforced is told once");
    assert!(notices[0]["text"].as_str().unwrap_or_default().starts_with("sandbox: commands write only in"));
}

#[test]
fn without_it_nothing_is_different() {
    let test =
        Test::new().call("bash", json!({"command": "echo out > ../outside.txt; echo ${TMPDIR:-none}"})).text("Done.");
    let outside = test.workspace().join("../outside.txt");
    let ran = test.args(["--yes", "--json", "go"]).run().exit(0).result_has(0, "none");
    assert_eq!(std::fs::read_to_string(outside).unwrap(), "out\n");
    assert!(ran.events_of("notice").is_empty());
}

/// What the gate runs at once is in the sandbox as well. No such command would write, so this plan is made by hand.
#[test]
fn a_plan_runs_in_it_too() {
    let dir = tempfile::tempdir().unwrap();
    let root = dir.path().join("ws");
    std::fs::create_dir(&root).unwrap();
    let script = "mkdir inside; mkdir ../outside";
    let argv = Argv {
        name: "sh".into(),
        program: Some("/bin/sh".into()),
        args: ["-c", script].map(Into::into).into(),
        dir: root.clone(),
        env: vec![("PATH".into(), "/usr/bin:/bin".into())],
        stderr: Stderr::Keep,
        hides: false,
    };
    let plan = Plan { steps: vec![Step { join: Join::Always, pipeline: vec![argv] }] };
    let mut processes = Processes::default();
    let Ok(sandbox) = Sandbox::new(&root, &dir.path().join("tmp")) else { return assert!(!possible()) };
    processes.confine(sandbox);
    processes.plan(&plan, Duration::from_secs(5), &Cancel::new(), &mut |_| Flow::More).unwrap();
    assert!(root.join("inside").exists() && !dir.path().join("outside").exists());
}

/// Landlock allows 16 restrictions one upon the other. So a thread takes all of them, and in what it starts the kernel
/// *cannot* add one more: the one way to see the refusal on a machine that has Landlock.
#[cfg(target_os = "linux")]
#[test]
fn where_there_can_be_none_it_says_so_and_runs_nothing() {
    if !possible() {
        return;
    }
    let exhausted = || {
        take_all_layers();
        let ran = Test::new().args(["--sandbox", "--yes", "go"]).run().exit(2);
        assert!(ran.requests.is_empty());
        ran.stderr_has("--sandbox: there can be none: Landlock");
        // A lab does without, and says that.
        let lab = Test::new().without_endpoint().args(["--lab", "01", "1"]).run().exit(0);
        lab.stderr_has("commands run without a sandbox: Landlock");
    };
    std::thread::spawn(exhausted).join().unwrap();
}

/// Restricts this thread 16 times, each time to everything.
#[cfg(target_os = "linux")]
fn take_all_layers() {
    use landlock::{ABI, Access, AccessFs, Ruleset, RulesetAttr, RulesetCreatedAttr, path_beneath_rules};
    for _ in 0..16 {
        let everything = path_beneath_rules(["/"], AccessFs::from_all(ABI::V1));
        let ruleset = Ruleset::default().handle_access(AccessFs::from_all(ABI::V1)).unwrap().create().unwrap();
        ruleset.add_rules(everything).unwrap().restrict_self().unwrap();
    }
}

#[test]
fn labs_have_one_where_they_can() {
    let lab = Test::new().without_endpoint().args(["--lab", "01", "1"]).run().exit(0);
    lab.stderr_has(if possible() { "sandbox: commands write only in" } else { "commands run without a sandbox" });
}

/// The directory is private to the run, and gone with it.
#[test]
fn its_tmpdir_is_private_and_leaves_nothing() {
    let Some(ran) = sandboxed(Test::new(), "echo x > $TMPDIR/x; stat -c %a $TMPDIR; echo $TMPDIR") else { return };
    let result = ran.results().remove(0);
    let (mode, dir) = result.trim().split_once('\n').unwrap();
    assert_eq!(mode, "700");
    assert!(!Path::new(dir).exists(), "{dir} is still there");
}
