//! A task from the command line to its end.

use crate::support::Test;
use serde_json::json;

#[test]
fn a_text_answer_goes_to_stdout_once() {
    Test::new().text("Hello there.").args(["say", "hello"]).run().exit(0).stdout("Hello there.\n");
}

#[test]
fn an_edit_approved_by_yes_changes_the_file_and_nothing_else() {
    let ran = Test::new()
        .file("greet.sh", "echo hello\necho bye\n")
        .call("read", json!({"path": "greet.sh"}))
        .call("edit", json!({"path": "greet.sh", "old_text": "hello", "new_text": "hi"}))
        .text("Done.")
        .args(["--yes", "change hello to hi"])
        .run();
    ran.exit(0).stdout("Done.\n").file("greet.sh", "echo hi\necho bye\n").result_has(0, "1\techo hello");
}

#[test]
fn each_of_fifty_requests_extends_the_bytes_of_the_last_on_one_connection() {
    let mut test = Test::new().file("a.txt", "alpha\n");
    for n in 0..50 {
        test = test.call("bash", json!({"command": format!("echo {n}")}));
    }
    let ran = test.text("Done.").args(["--yes", "count"]).run().exit(0);
    assert_eq!((ran.requests.len(), ran.connections), (51, 1));
    for pair in ran.requests.windows(2) {
        let (first, second) = (&pair[0].body, &pair[1].body);
        let kept = first.len() - b"]}".len();
        assert!(
            second.starts_with(&first[..kept]),
            "{}\n{}",
            String::from_utf8_lossy(first),
            String::from_utf8_lossy(second)
        );
    }
}

#[test]
fn the_first_request_of_an_empty_project_is_at_most_3000_bytes() {
    let ran = Test::new().text("Hi.").args(["hi"]).run().exit(0);
    assert!(ran.requests[0].body.len() <= 3000, "{} bytes", ran.requests[0].body.len());
}

#[test]
fn the_first_request_offers_the_four_tools_and_nothing_servers_refuse() {
    let ran = Test::new()
        .script(r#"{"expect_request":{"tools":["read","write","edit","bash"],"body_absent":["/max_tokens","/temperature","/tool_choice"]},"response":{"text":"Hi."}}"#)
        .args(["hi"])
        .run();
    ran.exit(0);
}

#[test]
fn project_rules_stand_in_the_system_text_unless_they_are_not_wanted() {
    let rules = |args: &[&str]| {
        let ran =
            Test::new().file("AGENTS.md", "Speak like a pirate.").text("Hi.").args(args.iter().copied()).run().exit(0);
        ran.requests[0].json()["messages"][0]["content"].as_str().unwrap_or_default().contains("Speak like a pirate.")
    };
    assert!(rules(&["hi"]));
    assert!(!rules(&["--no-rules", "hi"]));
}

#[test]
fn piped_input_and_named_files_join_the_task() {
    let ran = Test::new().file("a.txt", "alpha\n").stdin("beta\n").text("Ok.").args(["review", "@a.txt"]).run().exit(0);
    let task = ran.requests[0].json()["messages"][1]["content"].as_str().unwrap_or_default().to_owned();
    assert_eq!(task, "review @a.txt\n\n<file path=\"a.txt\">\nalpha\n</file>\n\n<stdin>\nbeta\n</stdin>");
}

#[test]
fn broken_arguments_run_nothing_and_travel_as_an_empty_object() {
    let ran = Test::new()
        .calls(json!([{"name": "bash", "raw": "{\"command\": \"touch made"}]))
        .text("I see.")
        .args(["--yes", "try"])
        .run()
        .exit(0);
    assert!(!ran.test.workspace().join("made").exists());
    assert_eq!(ran.requests[1].json()["messages"][2]["tool_calls"][0]["function"]["arguments"], "{}");
    ran.result_has(0, "Error: nothing was run");
}

#[test]
fn an_unknown_tool_and_a_wrong_type_are_answered_with_what_would_be_right() {
    Test::new()
        .calls(json!([{"name": "teleport", "arguments": {}}, {"name": "read", "arguments": {"path": "a", "offset": "ten"}}]))
        .text("Ok.")
        .args(["go"])
        .run()
        .exit(0)
        .result_has(0, "Error: there is no tool `teleport`. The tools are: read, write, edit, bash")
        .result_has(1, "Error: bad arguments: `offset` must be an integer, not \"ten\". Smallest valid call: read {\"path\":");
}

#[test]
fn protected_and_outside_files_are_blocked_whoever_says_yes() {
    Test::new()
        .file(".env", "SECRET=1\n")
        .calls(json!([
            {"name": "read", "arguments": {"path": ".env"}},
            {"name": "read", "arguments": {"path": "../outside"}},
            {"name": "bash", "arguments": {"command": "cat .e\"\"nv"}},
        ]))
        .text("Ok.")
        .args(["--yes", "go"])
        .run()
        .exit(0)
        .result_has(0, "Blocked: ")
        .result_has(1, "Blocked: ")
        .result_has(2, "Blocked: ");
}

#[test]
fn a_call_written_as_text_is_named_once_and_then_ends_the_run() {
    let call = "```json\n{\"name\": \"read\", \"arguments\": {\"path\": \"a.txt\"}}\n```";
    Test::new()
        .text(call)
        .text(call)
        .args(["read", "a.txt"])
        .run()
        .exit(1)
        .stderr_has("no tool support for this model");
    Test::new().text(call).text("It says alpha.").args(["read", "a.txt"]).run().exit(0).stdout("It says alpha.\n");
}

#[test]
fn listed_commands_run_at_once_and_others_need_an_approval() {
    Test::new()
        .file("a.txt", "alpha\n")
        .calls(json!([{"name": "bash", "arguments": {"command": "cat a.txt | wc -l"}}, {"name": "bash", "arguments": {"command": "rm a.txt"}}]))
        .text("I could not.")
        .args(["go"])
        .run()
        .exit(4)
        .file("a.txt", "alpha\n")
        .result_has(0, "1")
        .result_has(1, "Blocked: ");
}

#[test]
fn why_prints_the_verdict_and_its_exit_code() {
    let verdict = |command: &str| Test::new().args(["--why", command]).run();
    verdict("ls -la").exit(0).stdout("RUN: a read-only command from the list\n");
    let ran = verdict("rm x").exit(4);
    assert!(String::from_utf8_lossy(&ran.output.stdout).starts_with("ASK: "), "{ran}");
    let ran = verdict("cat .env").exit(1);
    assert!(String::from_utf8_lossy(&ran.output.stdout).starts_with("REFUSE: "), "{ran}");
}

#[test]
fn a_listed_git_diff_leaves_the_repository_alone() {
    let test = Test::new().file("a.txt", "alpha\n");
    let ws = test.workspace();
    let git = |words: &str| {
        let identity = ["-c", "user.name=a", "-c", "user.email=a@example.org"];
        let status = std::process::Command::new("git").args(identity).args(words.split(' ')).current_dir(&ws).status();
        assert!(status.expect("git").success(), "git {words}");
    };
    git("init -q");
    git("add a.txt");
    git("commit -q -m one");
    // The same bytes with another time: git wants to refresh its index.
    std::thread::sleep(std::time::Duration::from_millis(1100));
    std::fs::write(ws.join("a.txt"), "alpha\n").unwrap();
    let index = std::fs::read(ws.join(".git/index")).unwrap();
    let ran = test
        .call("bash", json!({"command": "git diff && git status --short"}))
        .text("Done.")
        .args(["go"])
        .run()
        .exit(0);
    assert!(!ws.join(".git/index.lock").exists(), "{ran}");
    assert!(std::fs::read(ws.join(".git/index")).unwrap() == index, "the index was rewritten\n{ran}");
    assert_eq!(ran.results(), ["[no output]"]);
}

#[test]
fn usage_that_cannot_be_true_neither_panics_nor_lifts_the_budget() {
    let usage = json!({"prompt_tokens": u64::MAX, "completion_tokens": 1});
    let reply = json!({"response": {"calls": [{"name": "bash", "arguments": {"command": "ls"}}], "usage": usage}});
    Test::new()
        .script(&reply.to_string())
        .args(["--token-budget", "1000", "go"])
        .run()
        .exit(3)
        .stderr_has("token budget");
}

#[test]
fn live_output_is_redacted_like_results() {
    let key = crate::support::KEY;
    let ran = Test::new()
        .file("config.txt", format!("key = {key}\n"))
        .call("bash", json!({"command": "cat config.txt"}))
        .text("Done.")
        .args(["--json", "go"])
        .run()
        .exit(0); // run() itself looks for the key in everything that came out
    assert_eq!(ran.events_of("output")[0]["delta"], "key = [secret]\n");
}
