//! Ctrl-C and its kin: at once, with a valid history, nothing left running, and dead by the signal.

use crate::processes::lives;
use crate::support::{Ran, Running, Test};
use serde_json::json;
use std::os::unix::process::ExitStatusExt;
use std::time::{Duration, Instant};

/// Sends a signal and waits: dead by it within 0.3 s (plus a loaded machine's scheduling), `end` in the log.
#[track_caller]
fn dies_by(running: Running, name: &str, number: i32) -> Ran {
    let sent = Instant::now();
    running.signal(name);
    let ran = running.wait();
    let took = sent.elapsed();
    assert_eq!(ran.output.status.signal(), Some(number), "{ran}");
    assert!(took < Duration::from_millis(1500), "{took:?} after {name}\n{ran}");
    let end = ran.log.lines().last().unwrap_or_default();
    assert!(
        end.contains(r#""outcome":"interrupted""#) && end.contains(r#""exit":130"#),
        "last line of the log: {end}\n{ran}"
    );
    ran
}

const STALL: &str = r#"{"response":{"chunks":["data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"half \"}}]}\n\n"],"end":"stall"}}"#;

#[test]
fn in_a_stalled_read() {
    let running = Test::new().script(STALL).args(["hi"]).start();
    running.until_request(1);
    std::thread::sleep(Duration::from_millis(100));
    dies_by(running, "INT", 2);
}

#[test]
fn while_waiting_for_the_first_byte() {
    let running = Test::new().script(r#"{"response":{"chunks":[],"end":"stall"}}"#).args(["hi"]).start();
    running.until_request(1);
    dies_by(running, "INT", 2);
}

#[test]
fn in_a_command_whose_whole_group_dies() {
    let running = Test::new()
        .call("bash", json!({"command": "bash -c 'sleep 304.75'; echo after"}))
        .args(["--yes", "go"])
        .start();
    running.until("the sleeper", |_| lives("304.75"));
    let ran = dies_by(running, "INT", 2);
    assert!(!lives("304.75"), "the sleeper outlived the run");
    assert!(ran.log.contains(r#""role":"tool""#), "the call was not answered\n{}", ran.log);
}

#[test]
fn in_a_child_agent_whose_call_is_answered() {
    let call =
        r#"{"response":{"calls":[{"id":"t1","name":"task","arguments":{"description":"look","prompt":"Look."}}]}}"#;
    let running = Test::new().script(&format!("{call}\n{STALL}")).args(["--ext", "subagent", "go"]).start();
    running.until_request(2);
    let ran = dies_by(running, "INT", 2);
    assert!(ran.log.contains("Error: the sub-agent did not come to its end (interrupted)"), "{}", ran.log);
}

#[test]
fn in_the_pause_before_a_retry() {
    let busy = r#"{"response":{"status":429,"headers":{"Retry-After":"30"},"chunks":["busy"]}}"#;
    let running = Test::new().script(busy).args(["hi"]).start();
    running.until("the retry", |run| run.log().contains(r#""type":"retry""#));
    dies_by(running, "INT", 2);
}

#[test]
fn term_and_hup_do_what_ctrl_c_does_and_are_told_apart() {
    for (name, number) in [("TERM", 15), ("HUP", 1)] {
        let running = Test::new().script(STALL).args(["hi"]).start();
        running.until_request(1);
        dies_by(running, name, number);
    }
}

#[test]
fn while_waiting_for_piped_input() {
    let mut test = Test::new().text("never asked").args(["hi"]);
    test = test.stdin(Vec::new());
    let mut running = test.start_with_open_stdin();
    std::thread::sleep(Duration::from_millis(200));
    let stdin = running.child.stdin.take();
    running.signal("INT");
    let ran = running.wait();
    drop(stdin);
    assert_eq!(ran.output.status.signal(), Some(2), "{ran}");
}

#[test]
fn while_nobody_reads_what_it_prints() {
    let flood = json!({"command": "yes 0123456789012345678901234567890123456789 | head -c 900000; sleep 305.5"});
    let test = Test::new().call("bash", flood).args(["--json", "--yes", "go"]);
    let mut running = test.start();
    let unread = running.child.stdout.take();
    running.until("the sleeper", |_| lives("305.5") || lives("head -c 900000"));
    std::thread::sleep(Duration::from_millis(300));
    let ran = dies_by(running, "TERM", 15);
    assert!(!lives("305.5"), "a child outlived the run\n{ran}");
    drop(unread);
}
