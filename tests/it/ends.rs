//! Every way a run can end: its exit code and its words.

use crate::support::Test;
use serde_json::json;

#[test]
fn without_an_endpoint_it_says_how_to_set_one_up() {
    Test::new()
        .without_endpoint()
        .args(["do it"])
        .run()
        .exit(2)
        .stderr_has("MINI_BASE_URL")
        .stderr_has("mini --lab 05");
}

#[test]
fn nothing_to_do_is_a_sentence() {
    Test::new().stdin("\n").run().exit(2).stderr_has("nothing to do");
}

#[test]
fn an_unknown_option_names_the_nearest() {
    Test::new().args(["--modl", "x"]).run().exit(2).stderr_has("did you mean --model?");
}

#[test]
fn help_and_version_go_to_stdout() {
    let ran = Test::new().args(["--help"]).run().exit(0);
    assert!(String::from_utf8_lossy(&ran.output.stdout).contains("mini --lab"));
    Test::new().args(["--version"]).run().exit(0).stdout(concat!("mini ", env!("CARGO_PKG_VERSION"), "\n"));
}

#[test]
fn a_server_error_ends_with_one_and_its_own_words() {
    let refused = r#"{"response":{"status":401,"headers":{"Content-Type":"application/json"},"chunks":["{\"error\":{\"message\":\"Incorrect API key\"}}"]}}"#;
    Test::new().script(refused).args(["hi"]).run().exit(1).stderr_has("Incorrect API key").stderr_has("MINI_API_KEY");
}

#[test]
fn a_fault_in_the_stream_is_retried_and_no_tool_runs_twice() {
    let cut = r#"{"response":{"chunks":["data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"half\"}}]}\n\n"],"end":"truncate"}}"#;
    Test::new().script(cut).text("Whole.").args(["hi"]).run().exit(0).stdout("Whole.\n");
}

#[test]
fn the_turn_limit_ends_with_three() {
    let test =
        Test::new().file("a", "x\n").call("read", json!({"path": "a"})).call("read", json!({"path": "a", "offset": 1}));
    test.args(["--max-turns", "2", "go"]).run().exit(3).stderr_has("limit of 2 turns");
}

#[test]
fn the_same_call_three_times_ends_with_three_even_under_yes() {
    let mut test = Test::new().file("a", "x\n");
    for _ in 0..3 {
        test = test.call("bash", json!({"command": "make nothing"}));
    }
    test.args(["--yes", "go"]).run().exit(3).stderr_has("3 times in a row");
}

#[test]
fn identical_calls_that_cannot_run_are_counted_too() {
    let mut test = Test::new();
    for _ in 0..3 {
        test = test.calls(json!([{"name": "bash", "raw": "{broken"}]));
    }
    test.args(["go"]).run().exit(3).stderr_has("3 times in a row");
}

#[test]
fn the_token_budget_ends_with_three() {
    let reply = json!({"response": {"calls": [{"name": "bash", "arguments": {"command": "ls"}}], "usage": {"prompt_tokens": 90, "completion_tokens": 20}}});
    Test::new()
        .script(&reply.to_string())
        .args(["--token-budget", "100", "go"])
        .run()
        .exit(3)
        .stderr_has("token budget of 100");
}

#[test]
fn the_time_limit_ends_with_three_and_kills_what_runs() {
    let test = Test::new().call("bash", json!({"command": "sleep 30"}));
    let ran = test.args(["--yes", "--timeout", "1", "go"]).run().exit(3).stderr_has("time limit");
    assert!(ran.took.as_secs() < 5, "{:?}", ran.took);
}

#[test]
fn an_answer_cut_by_length_is_kept_and_ends_with_three() {
    let reply = json!({"response": {"text": "The answer is", "finish": "length"}});
    Test::new().script(&reply.to_string()).args(["go"]).run().exit(3).stdout("The answer is\n").stderr_has("length");
}

#[test]
fn a_denied_call_does_not_end_the_run_and_four_says_that_nobody_was_there() {
    Test::new()
        .call("bash", json!({"command": "make"}))
        .text("I need make.")
        .args(["build"])
        .run()
        .exit(4)
        .stdout("I need make.\n")
        .stderr_has("(stdin is not a terminal). --yes approves everything");
}

#[test]
fn plan_mode_outranks_yes() {
    let ran = Test::new()
        .call("write", json!({"path": "new.txt", "content": "x"}))
        .text("1. Write new.txt")
        .args(["--plan", "--yes", "go"])
        .run();
    let ran = ran.exit(0).result_has(0, "Blocked: plan mode is on");
    assert!(!ran.test.workspace().join("new.txt").exists());
}

#[test]
fn a_closed_stdout_is_no_error() {
    let mut running = Test::new().text("Hello.").args(["hi"]).start();
    drop(running.child.stdout.take());
    running.wait().exit(0);
}

#[test]
fn verification_that_fails_ends_with_five() {
    let ran = Test::new()
        .call("write", json!({"path": "a.txt", "content": "x\n"}))
        .text("Done.")
        .text("I cannot do more.")
        .args(["--yes", "--ext", "verify=false", "go"])
        .run();
    // The hook's words stand above, and are not said again.
    ran.exit(5).stderr_has("mini: not verified\n");
}
