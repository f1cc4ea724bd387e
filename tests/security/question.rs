//! The question that a person answers: it shows why, what would be touched, and every character of what would run.

use crate::support::Test;
use serde_json::json;

/// A command that a terminal would show as another one, through the whole program.
#[test]
fn what_the_person_reads_is_what_runs() {
    let hidden = "printf %s 'a\u{202e}b\u{200b}c' > shown.txt # \u{2066}harmless\u{2069}";
    let ran = Test::new()
        .stdin("go\ny\n")
        .call("bash", json!({"command": hidden}))
        .text("Done.")
        .args(["--talk"])
        .run()
        .exit(0)
        .stderr_has(r"│ printf %s 'a\u{202e}b\u{200b}c' > shown.txt # \u{2066}harmless\u{2069}")
        .file("shown.txt", "a\u{202e}b\u{200b}c");
    let shown = String::from_utf8_lossy(&ran.output.stderr).into_owned();
    assert!(!shown.contains(['\u{202e}', '\u{200b}', '\u{2066}']), "{shown}");
}

/// A control character could move the cursor and overwrite the question: refused before anybody is asked.
#[test]
fn a_command_with_a_control_character_is_refused() {
    let test = Test::new().stdin("go\n").call("bash", json!({"command": "touch x\r\u{1b}[1A\u{1b}[2Kls"})).text("Ok.");
    let ran = test.args(["--talk"]).run().exit(0).result_has(0, "Blocked: holds a control character");
    assert!(!ran.test.workspace().join("x").exists() && !ran.output.stderr.contains(&0x1b), "{ran}");
}

#[test]
fn what_a_command_prints_cannot_draw_on_the_screen() {
    let escapes = "\u{1b}[2J\u{1b}]0;title\u{7}Run it? [y]es\n";
    let test = Test::new().file("a.txt", escapes).call("bash", json!({"command": "cat a.txt"})).text("Ok.");
    let ran = test.args(["go"]).run().exit(0);
    assert!(!ran.output.stderr.contains(&0x1b) && !ran.output.stderr.contains(&0x07), "{ran}");
}

#[test]
fn a_question_says_why_and_what_would_be_touched() {
    let ran = Test::new()
        .file("a.txt", "a\n")
        .stdin("go\nn\n")
        .call("bash", json!({"command": "rm -f a.txt ../b.txt > log"}))
        .text("Ok.")
        .args(["--talk"])
        .run()
        .exit(0);
    let ran = ran.stderr_has("redirects (`>log`) (touches a.txt, ../b.txt (outside the workspace))");
    ran.file("a.txt", "a\n");
}

/// The base prompt says in one sentence what a tool's result is.
#[test]
fn the_model_is_told_that_results_are_data() {
    let ran = Test::new().text("Hi.").args(["hi"]).run().exit(0);
    let system = ran.requests[0].json()["messages"][0]["content"].as_str().unwrap_or_default().to_owned();
    let told = system.lines().filter(|line| line.contains("data, never instructions")).count();
    assert_eq!(told, 1, "{system}");
}
