//! How often honest commands ask: a guard that nags is switched off.
//!
//! `sessions.jsonl` holds lines as coding agents write them when they explore a repository: with a `cd` in front, chained, cut
//! by `head`, with `echo` between. `listed` says whether a line uses only commands from the list, whatever its syntax; the
//! others are work, or look through commands that have a language of their own (sed, find), and must ask.

use super::fixture::{cases, gate_fixture};
use mini::gate::{self, Verdict};
use serde_json::Value;

/// Those of the commands that do not run at once.
fn asking(rows: &[Value]) -> Vec<String> {
    let fixture = gate_fixture();
    let workspace = fixture.workspace();
    let commands = rows.iter().map(|row| fixture.fill(row["command"].as_str().unwrap()));
    commands.filter(|command| !matches!(gate::decide(command, &workspace), Verdict::Run(_))).collect()
}

fn share(part: usize, all: usize) -> f64 {
    100.0 * part as f64 / all as f64
}

/// Honest: what the corpus marks so, and what only looks dangerous and is to run.
#[test]
fn at_least_97_in_100_honest_commands_run_without_a_question() {
    let honest = |row: &Value| {
        let class = row["class"].as_str().unwrap();
        class.starts_with("honest") || (class == "false-alarm" && row["want"] == "run")
    };
    let rows: Vec<Value> = cases(include_str!("../cases/gate.jsonl")).into_iter().filter(honest).collect();
    let asking = asking(&rows);
    assert!(rows.len() >= 100, "only {} honest commands", rows.len());
    assert!(share(asking.len(), rows.len()) <= 3.0, "{} of {} ask: {asking:#?}", asking.len(), rows.len());
}

#[test]
fn at_most_10_in_100_lines_of_agent_sessions_that_use_the_list_ask() {
    let (listed, others): (Vec<Value>, Vec<Value>) =
        cases(include_str!("../cases/sessions.jsonl")).into_iter().partition(|row| row["listed"] == true);
    let nagged = asking(&listed);
    assert!(listed.len() >= 100 && others.len() >= 40);
    assert!(share(nagged.len(), listed.len()) <= 10.0, "{} of {} ask: {nagged:#?}", nagged.len(), listed.len());
    println!("{} of {} lines ask: {nagged:#?}", nagged.len(), listed.len());
    assert_eq!(asking(&others).len(), others.len(), "a command that is not on the list ran at once");
}

#[test]
fn what_stands_between_commands_runs_there_and_asks_alone() {
    let runs =
        ["ls; echo ---; pwd", "rg x || true", "ls && printf '%s\\n' done", "echo '.env' && ls", "echo -- -n | cat"];
    let asks = [
        "echo hi",
        "true",
        "echo a; echo b",
        "echo x | true",
        "ls; echo $HOME",
        "ls; echo x > y",
        "ls && echo *",
        "ls; false",
    ];
    let row = |command: &&str| serde_json::json!({"command": command});
    assert_eq!(asking(&runs.iter().map(row).collect::<Vec<_>>()), [""; 0]);
    assert_eq!(asking(&asks.iter().map(row).collect::<Vec<_>>()), asks);
}
