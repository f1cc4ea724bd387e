//! Limits on tokens, costs and turns: each with a reason of its own, and none that limits nothing.

use crate::support::{Ran, Test};
use serde_json::{Value, json};

const PRICES: &str = r#"{"m-test": {"input": 1000, "cached": 100, "output": 10000}}"#;

/// A reply with one call and this usage.
fn costly(usage: Value) -> String {
    json!({"response": {"calls": [{"name": "bash", "arguments": {"command": "ls"}}], "usage": usage}}).to_string()
}

fn usage(input: u64, output: u64) -> Value {
    json!({"prompt_tokens": input, "completion_tokens": output})
}

fn last_of_log(ran: &Ran) -> Value {
    serde_json::from_str(ran.log.lines().last().unwrap_or_default()).expect("JSON")
}

#[test]
fn a_limit_on_costs_ends_with_three_and_the_end_says_what_it_cost() {
    let test =
        Test::new().config("prices.json", PRICES).script(&costly(usage(100, 10))).script(&costly(usage(100, 10)));
    let ran = test.args(["--json", "--max-cost", "0.3", "go"]).run().exit(3);
    let end = last_of_log(&ran);
    assert_eq!((&end["type"], &end["outcome"], &end["cost"]), (&json!("end"), &json!("limit"), &json!(0.4)));
    assert_eq!(end["reason"], "the cost limit of $0.3 is reached ($0.4000)");
    assert_eq!(ran.events().last().map(|event| event["cost"].clone()), Some(json!(0.4)));
}

#[test]
fn every_limit_is_the_last_event_of_the_log_with_its_own_reason() {
    let mut reasons = Vec::new();
    for args in [&["--max-turns", "1"][..], &["--token-budget", "50"], &["--max-cost", "0.1"], &["--timeout", "1"], &[]]
    {
        let mut test = Test::new().config("prices.json", PRICES).script(&costly(usage(100, 10)));
        if args.contains(&"--timeout") {
            test = test.script(r#"{"response":{"text":"x","end":"stall"}}"#);
        } else {
            test = test.script(&costly(usage(100, 10))).script(&costly(usage(100, 10)));
        }
        let ran = test.args(args.to_vec()).args(["go"]).run().exit(3);
        let end = last_of_log(&ran);
        assert_eq!((&end["type"], &end["exit"]), (&json!("end"), &json!(3)), "{ran}");
        reasons.push(end["reason"].as_str().unwrap_or_default().to_owned());
    }
    let mut distinct = reasons.clone();
    distinct.sort();
    distinct.dedup();
    assert_eq!(distinct.len(), 5, "{reasons:?}");
}

#[test]
fn a_limit_on_costs_without_a_price_is_a_usage_error() {
    let ran = Test::new().args(["--max-cost", "1", "go"]).run().exit(2);
    let ran = ran.stderr_has("--max-cost needs a price, and that of m-test is unknown").stderr_has("prices.json");
    assert!(ran.requests.is_empty());
    Test::new().args(["--max-cost", "1", "--call", "bash", "{\"command\":\"ls\"}"]).run().exit(0);
    let slip = Test::new().config("prices.json", "{\n\"m-test\": {\"inptu\": 1}}").args(["go"]).run().exit(2);
    slip.stderr_has("prices.json: unknown field `inptu`").stderr_has("line 2");
}

#[test]
fn an_unknown_price_is_said_once_and_tokens_are_counted_all_the_same() {
    let reply = |text: &str| json!({"response": {"text": text, "usage": usage(100, 10)}}).to_string();
    let test = Test::new().stdin("one\ntwo\n/tokens\n").script(&reply("1")).script(&reply("2"));
    let ran = test.args(["--talk"]).run().exit(0).stderr_has("200 tokens in");
    let said = String::from_utf8_lossy(&ran.output.stderr).matches("price unknown").count();
    assert_eq!(said, 1, "{ran}");
    let test =
        Test::new().config("prices.json", PRICES).stdin("one\ntwo\n/tokens\n").script(&reply("1")).script(&reply("2"));
    let ran = test.args(["--talk"]).run().exit(0).stderr_has(" · $0.2000").stderr_has(" · $0.4000");
    assert!(!String::from_utf8_lossy(&ran.output.stderr).contains("price unknown"), "{ran}");
}

#[test]
fn a_server_that_counts_nothing_counts_as_nothing_and_that_is_said_once() {
    for none in [json!({}), json!({"prompt_tokens": null, "completion_tokens": null})] {
        let test = Test::new().script(&costly(none.clone())).script(&costly(none.clone()));
        let text = json!({"response": {"text": "Done.", "usage": none}}).to_string();
        let ran = test.script(&text).args(["--token-budget", "5", "go"]).run().exit(0).stdout("Done.\n");
        let said = String::from_utf8_lossy(&ran.output.stderr).matches("does not say how many tokens").count();
        assert_eq!(said, 1, "{ran}");
        assert_eq!(last_of_log(&ran)["usage"], json!({"input": 0, "cached": 0, "output": 0, "reasoning": 0}));
    }
}

#[test]
fn the_same_call_is_the_same_with_its_keys_in_any_order() {
    let arguments = [
        r#"{"command":"make x","timeout":5}"#,
        r#"{"timeout":5,"command":"make x"}"#,
        r#"{ "command": "make x", "timeout": 5 }"#,
    ];
    let calls = |test: Test, raw: &&str| test.calls(json!([{"name": "bash", "raw": raw}]));
    arguments.iter().fold(Test::new(), calls).args(["--yes", "go"]).run().exit(3).stderr_has("3 times in a row");
}

#[test]
fn no_limit_reads_stdin_where_no_terminal_is() {
    for limit in [["--max-turns", "1"], ["--token-budget", "50"]] {
        // In a talk over a pipe the next line is a task, whatever limit has ended the one before.
        let test = Test::new().stdin("one\ny\n").script(&costly(usage(100, 10))).text("Two.");
        let ran = test.args(["--talk"]).args(limit).run().exit(if limit[0] == "--max-turns" { 0 } else { 3 });
        assert!(!String::from_utf8_lossy(&ran.output.stderr).contains("Go on?"), "{ran}");
        assert!(ran.log.contains(r#"{"role":"user","content":"y"}"#), "{ran}");
    }
}
