//! Permission rules, as a person meets them.

use crate::support::Test;
use serde_json::{Value, json};

fn write(path: &str) -> Value {
    json!({"path": path, "content": "x\n"})
}

#[test]
fn the_model_is_told_which_rule_denies_and_the_person_which_one_allows() {
    let ran = Test::new()
        .config("permissions.json", r#"{"edit":{"src/**":"allow","*.secret":"deny"}}"#)
        .call("write", write("src/a.rs"))
        .call("write", write("src/a.secret"))
        .text("Done.")
        .args(["go"])
        .run()
        .exit(0)
        .file("src/a.rs", "x\n")
        .stderr_has("allowed by a rule")
        .result_has(1, "Blocked: a permission rule denies this: edit \"*.secret\": deny (");
    assert!(!ran.test.workspace().join("src/a.secret").exists());
}

#[test]
fn no_spelling_and_no_link_leads_past_a_deny() {
    let test = Test::new()
        .file("a.secret", "one\n")
        .file("sub/x", "")
        .config("permissions.json", r#"{"*":{"*.secret":"deny"}}"#);
    std::os::unix::fs::symlink("a.secret", test.workspace().join("plain.txt")).expect("a link");
    let paths =
        ["a.secret", "./sub/../a.secret", "plain.txt", &test.workspace().join("a.secret").display().to_string()]
            .map(str::to_owned);
    let mut test = test;
    for path in &paths {
        test = test.call("read", json!({"path": path})).call("write", write(path));
    }
    let ran = test.text("Done.").args(["--yes", "go"]).run().exit(0).file("a.secret", "one\n");
    let results = ran.results();
    assert_eq!(results.len(), 8);
    assert!(results.iter().all(|result| result.starts_with("Blocked: a permission rule denies this")), "{results:#?}");
}

#[test]
fn a_slip_in_a_file_of_rules_ends_before_anything_is_asked() {
    let broken = "{\n  \"bash\": \"alow\"\n}";
    let ran = Test::new().config("permissions.json", broken).args(["go"]).run().exit(2);
    let ran = ran.stderr_has("permissions.json: \"alow\" is none of allow, ask, deny at line 2 column 16");
    assert!(ran.requests.is_empty());
    Test::new()
        .file(".mini/permissions.json", broken)
        .args(["go"])
        .run()
        .exit(2)
        .stderr_has(".mini/permissions.json: ");
    Test::new().config("permissions.json", broken).args(["--why", "ls"]).run().exit(2).stderr_has("line 2");
}

#[test]
fn a_project_grants_nothing_and_says_so() {
    let test = Test::new().file(".mini/permissions.json", r#"{"*":"allow","read":{"b":"deny"}}"#).file("b", "x");
    let test = test.call("write", write("a.txt")).call("read", json!({"path": "b"})).text("Done.");
    let ran = test.args(["go"]).run().exit(4).stderr_has("may only deny and ask; ignored: *: allow");
    ran.result_has(0, "Blocked: this needs an approval").result_has(1, "Blocked: a permission rule denies this");
}

#[test]
fn files_of_rules_cannot_be_written_by_the_agent() {
    let test = Test::new().call("write", json!({"path": ".mini/permissions.json", "content": "{}"})).text("Done.");
    test.args(["--yes", "go"]).run().exit(0).result_has(0, "a rule of mini's own");
}

#[test]
fn always_lasts_for_the_session_and_save_for_good() {
    let make = || json!({"command": "id -u"});
    let ran = Test::new()
        // Asked and always, not asked; anew: asked again and saved; anew: not asked.
        .stdin("go\na\ngo\n/new\ngo\ns\n/new\ngo\n")
        .call("bash", make())
        .text("1")
        .call("bash", make())
        .text("2")
        .call("bash", make())
        .text("3")
        .call("bash", make())
        .text("4")
        .args(["--talk", "--json"])
        .run()
        .exit(0);
    let by: Vec<String> = ran.events_of("approval").iter().map(|event| event["by"].to_string()).collect();
    assert_eq!(by, ["\"user\"", "\"always\"", "\"user\"", "\"rule\""], "{ran}");
    let saved = std::fs::read_to_string(ran.test.config_file("permissions.json")).expect("the rules");
    assert_eq!(serde_json::from_str::<Value>(&saved).expect("JSON"), json!({"bash": {"id -u": "allow"}}));
}

#[test]
fn a_rule_that_asks_takes_always_for_this_session() {
    let test = Test::new().config("permissions.json", r#"{"edit":"ask"}"#).stdin("go\na\n");
    let ran = test.call("write", write("a")).call("write", write("b")).text("Done.").args(["--talk"]).run().exit(0);
    ran.stderr_has("a permission rule asks: edit: ask (").file("a", "x\n").file("b", "x\n");
}

#[test]
fn a_command_of_the_list_can_be_allowed_for_the_session_and_for_good_where_a_rule_asks() {
    let ls = |test: Test| test.call("bash", json!({"command": "ls"}));
    let rules = || Test::new().config("permissions.json", r#"{"bash":"ask"}"#);
    let test = ls(ls(rules().stdin("go\na\n"))).text("Done.");
    let ran = test.args(["--talk", "--json"]).run().exit(0).stderr_has("[a]lways, [s]ave, [n]o");
    assert_eq!(ran.events_of("approval").len(), 2);
    let test = ls(rules().stdin("go\ns\n/new\ngo\n")).text("1");
    ls(test).text("2").args(["--talk"]).run().exit(0).stderr_has("saved in ");
    // A path that is read has no exact command: once, or a rule.
    let test = Test::new().file("a", "x\n").config("permissions.json", r#"{"read":"ask"}"#).stdin("go\na\ny\n");
    test.call("read", json!({"path": "a"})).text("Done.").args(["--talk"]).run().exit(0).result_has(0, "1\tx");
}

#[test]
fn why_names_the_rule_that_decides() {
    let rules = r#"{"bash":{"make":"allow","rm":"deny"},"edit":{"src/**":"allow"},"read":{"*.secret":"ask"}}"#;
    for (text, exit, wanted) in [
        ("edit src/a.rs", 0, "RUN: a permission rule allows it: edit \"src/**\": allow ("),
        ("write src/a.rs", 0, "RUN: a permission rule allows it: edit \"src/**\": allow ("),
        ("edit a.rs", 4, "ASK: edit changes a file"),
        ("read a.secret", 4, "ASK: a permission rule asks: read \"*.secret\": ask ("),
        ("read .env", 1, "REFUSE: Blocked: read \".env\""),
        ("make all", 0, "RUN: a permission rule allows it: bash \"make\": allow ("),
        ("make all && rm x", 1, "REFUSE: a permission rule denies it: bash \"rm\": deny ("),
        ("make all && touch x", 4, "ASK: `make` is not on the list"),
        ("make .env", 1, "REFUSE: "),
        ("ls", 0, "RUN: a read-only command"),
    ] {
        let ran = Test::new().config("permissions.json", rules).args(["--why", text]).run().exit(exit);
        let said = String::from_utf8_lossy(&ran.output.stdout).into_owned();
        assert!(said.starts_with(wanted), "{text}: {said}");
    }
}

#[test]
fn no_rule_asks_about_what_will_not_run_anyway() {
    let test = Test::new().file("a", "x\n").config("permissions.json", r#"{"*":"ask"}"#).stdin("go\n");
    let edit = json!({"path": "a", "old_text": "not there", "new_text": "y"});
    let test = test.call("read", json!({"path": ".env"})).call("edit", edit).call("read", json!({"path": 7.5}));
    let ran = test.text("Done.").args(["--talk"]).run().exit(0);
    let ran = ran.result_has(0, "Blocked: read \".env\"").result_has(1, "Error: ").result_has(2, "Error: ");
    assert!(!String::from_utf8_lossy(&ran.output.stderr).contains("Run it?"), "{ran}");
}

#[test]
fn a_question_of_a_rule_shows_what_would_run_also_when_quiet() {
    let test = Test::new().file("a", "x\n").config("permissions.json", r#"{"*":"ask"}"#).stdin("go\ny\ny\n");
    let test = test.call("read", json!({"path": "a"})).call("bash", json!({"command": "ls -l a"})).text("Done.");
    test.args(["--talk", "--quiet"]).run().exit(0).stderr_has("  │ a\n").stderr_has("  │ ls -l a\n");
}
