//! `--eval`: versions of the agent side by side, as a person or a script runs it.

use crate::support::{Ran, Test};
use serde_json::json;

fn stdout(ran: &Ran) -> String {
    String::from_utf8_lossy(&ran.output.stdout).into_owned()
}

#[track_caller]
fn says(ran: &Ran, parts: &[&str]) {
    let text = stdout(ran);
    parts.iter().for_each(|part| assert!(text.contains(part), "{part:?} is missing: {text}"));
}

const CASE: &str = r#"{"name":"a greeting","task":"hello","required":["hi"],"tools":[]}"#;

#[test]
fn two_models_two_prompts_and_the_endpoint_s_key() {
    let ran = Test::new()
        .file("cases.jsonl", CASE)
        .file("a.json", r#"{"model":"one"}"#)
        .file("b.json", r#"{"model":"two","prompt":"Be brief."}"#)
        .script(r#"{"expect_request":{"body":{"/model":"one"},"system_lacks":"Be brief.","headers":{"authorization":"Bearer sk-canary-0123456789"}},"response":{"text":"Hi there."}}"#)
        .script(r#"{"expect_request":{"body":{"/model":"two"},"system_contains":"Be brief."},"response":{"text":"Yes?"}}"#)
        .args(["--eval", "cases.jsonl", "--versions", "a,b"])
        .run()
        .exit(1);
    says(&ran, &["0 of 1  1 turn", "a greeting · b\n  required: not in the answer: \"hi\"\n"]);
    let stderr = String::from_utf8_lossy(&ran.output.stderr).into_owned();
    assert_eq!(stderr, "1 of 2: a greeting · a · pass\n2 of 2: a greeting · b · fail\n");
}

/// A recording in which a person said yes to a write.
const WRITES: &str = r#"{"answer":"y"}
{"response":{"calls":[{"name":"write","arguments":{"path":"out/a.txt","content":"hi\n"}}]}}
{"response":{"text":"Hi, written."}}
"#;

fn recordings() -> Test {
    let case = json!({"name": "writes", "task": "write hi", "copy": ["b.txt"], "files": {"c.txt": "c"},
        "required": ["written"], "tools": ["write"],
        "checks": [{"file": "out/a.txt", "equals": "hi\n"}, {"file": "b.txt", "unchanged": true}, {"file": "c.txt", "equals": "c"}]});
    Test::new()
        .without_endpoint()
        .file("cases/cases.jsonl", case.to_string())
        .file("cases/b.txt", "b")
        .file("cases/good.jsonl", WRITES)
        .file("cases/bad.jsonl", "{\"response\":{\"text\":\"Not written.\"}}\n")
}

#[test]
fn two_recordings_need_no_endpoint_and_give_the_same_report_byte_for_byte() {
    let reports = [(); 2].map(|()| {
        let ran = recordings().args(["--eval", "cases/cases.jsonl", "--versions", "good,bad", "--json"]).run().exit(1);
        stdout(&ran)
    });
    assert_eq!(reports[0], reports[1]);
    let report: serde_json::Value = serde_json::from_str(&reports[0]).expect("JSON");
    let [good, bad] = [0, 1].map(|at| &report["cases"][0]["results"][at]);
    assert_eq!((&good["status"], &good["turns"], &good["misses"]), (&json!("pass"), &json!(2), &json!([])), "{report}");
    assert_eq!((&bad["status"], bad["misses"].as_array().map(Vec::len)), (&json!("fail"), Some(2)), "{report}");
    assert_eq!((&report["versions"][0]["passed"], &report["versions"][1]["passed"]), (&json!(1), &json!(0)));
    assert!(good["tokens"].as_u64() > Some(0) && report["versions"][0]["tokens"] == good["tokens"]);
}

#[test]
fn all_pass_is_0_and_what_cannot_run_is_2() {
    let ran = recordings().args(["--eval", "cases/cases.jsonl", "--versions", "good", "--quiet"]).run().exit(0);
    assert_eq!(String::from_utf8_lossy(&ran.output.stderr), "");
    for (args, why) in [
        (&["--eval", "none.jsonl"][..], "cannot read the cases none.jsonl"),
        (&["--eval", "cases/cases.jsonl", "--versions", "good,none"], "there is no version none"),
        (&["--eval", "cases/cases.jsonl"], "no endpoint is set up"),
        (&["--eval", "cases/cases.jsonl", "--ext", "nonsense"], "there is no extension `nonsense`"),
        (&["--eval", "cases/cases.jsonl", "a task"], "--eval takes its tasks from the cases"),
        (&["--versions", "a,b", "a task"], "--versions goes with --eval"),
        (&["--eval", "cases/cases.jsonl", "--lab", "01"], "--eval does not go with --lab"),
    ] {
        recordings().args(args.iter().copied()).run().exit(2).stderr_has(why);
    }
}

#[test]
fn a_run_that_ends_badly_fails_its_case_and_the_others_go_on() {
    let ran = Test::new()
        .file("cases.jsonl", format!("{CASE}\n{}", CASE.replace("a greeting", "another")))
        .script(r#"{"repeat":4,"response":{"status":500,"error":"busy"}}"#)
        .text("Hi.")
        .args(["--eval", "cases.jsonl"])
        .run()
        .exit(1);
    says(&ran, &["1 of 2", "a greeting · now\n  end: the run ended with exit 1: "]);
}
