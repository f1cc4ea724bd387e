//! What bash starts: bounded while it runs, gone when the run ends.

use crate::support::Test;
use serde_json::json;
use std::time::Duration;

/// Whether a process with this word in its command line lives.
pub fn lives(word: &str) -> bool {
    let Ok(proc) = std::fs::read_dir("/proc") else { return false };
    proc.filter_map(|entry| std::fs::read(entry.ok()?.path().join("cmdline")).ok())
        .any(|line| String::from_utf8_lossy(&line).contains(word))
}

#[test]
fn a_background_child_neither_holds_the_run_up_nor_outlives_it() {
    let ran = Test::new()
        .call("bash", json!({"command": "sleep 302.25 & echo started"}))
        .text("Done.")
        .args(["--yes", "go"])
        .run()
        .exit(0)
        .result_has(0, "started");
    assert!(ran.took < Duration::from_secs(3), "{:?}", ran.took);
    assert!(!lives("302.25"), "the sleeper outlived the run");
}

#[test]
fn a_hundred_megabytes_of_output_keep_their_tail_and_spill_the_rest() {
    let ran = Test::new()
        .call("bash", json!({"command": "yes 0123456789 | head -c 100000000; echo; echo the end"}))
        .text("Done.")
        .args(["--yes", "go"])
        .run()
        .exit(0)
        .result_has(0, "the end");
    let result = &ran.results()[0];
    assert!(result.len() < 60_000, "{} bytes", result.len());
}

#[test]
fn a_time_out_keeps_what_was_printed_and_kills_the_grandchildren() {
    Test::new()
        .call("bash", json!({"command": "echo before; bash -c 'sleep 303.5'; echo after", "timeout": 1}))
        .text("Done.")
        .args(["--yes", "go"])
        .run()
        .exit(0)
        .result_has(0, "before")
        .result_has(0, "killed after 1 s");
    assert!(!lives("303.5"), "a grandchild outlived its time-out");
}

#[test]
fn an_exit_status_is_in_the_text_and_is_no_error() {
    let ran = Test::new()
        .call("bash", json!({"command": "echo out; exit 7"}))
        .text("Ok.")
        .args(["--yes", "--json", "go"])
        .run()
        .exit(0);
    let result = &ran.events_of("result")[0];
    assert_eq!(result["ok"], false);
    let text = result["text"].as_str().unwrap_or_default();
    assert!(text.starts_with("out\n") && text.contains("exit status 7"), "{text}");
}

#[test]
fn bash_reads_an_empty_stdin() {
    Test::new()
        .stdin("task text")
        .call("bash", json!({"command": "cat; echo read"}))
        .text("Ok.")
        .args(["--yes", "go"])
        .run()
        .exit(0)
        .result_has(0, "read");
}
