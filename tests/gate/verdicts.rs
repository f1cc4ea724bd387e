//! The gate against its corpus: verdicts, and what happens when a `run` verdict is really executed.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

use super::fixture::{cases, gate_fixture};
use mini::gate::{self, Argv, Join, Plan, Stderr, Verdict};

pub const SECRET: &str = "TOPSECRET-7f3a";

fn word(verdict: &Verdict) -> &'static str {
    match verdict {
        Verdict::Run(_) => "run",
        Verdict::Ask(_) => "ask",
        Verdict::Refuse(_) => "refuse",
    }
}

#[test]
fn every_verdict_of_the_corpus() {
    let fixture = gate_fixture();
    let workspace = fixture.workspace();
    let rows = cases(include_str!("../cases/gate.jsonl"));
    let wrong: Vec<String> = rows
        .iter()
        .filter_map(|row| {
            let command = fixture.fill(row["command"].as_str().unwrap());
            let verdict = gate::decide(&command, &workspace);
            (word(&verdict) != row["want"]).then(|| {
                let shown: String = format!("{verdict:?}").chars().take(300).collect();
                format!("want {} for {command:?} ({}): {shown}", row["want"], row["why"])
            })
        })
        .collect();
    assert!(wrong.is_empty(), "{} of {} wrong:\n{}", wrong.len(), rows.len(), wrong.join("\n"));
}

/// Executes a plan: pipes between programs, no shell. Output and error output together.
pub fn execute(plan: &Plan) -> String {
    let mut output = String::new();
    let mut ok = true;
    for step in &plan.steps {
        let runs = match step.join {
            Join::Always => true,
            Join::AndThen => ok,
            Join::OrElse => !ok,
        };
        if runs {
            let mut input = Vec::new();
            for argv in &step.pipeline {
                let piped = !std::ptr::eq(argv, &step.pipeline[0]);
                let (status, stdout, stderr) = spawn(argv, piped.then_some(&input[..]));
                output.push_str(&String::from_utf8_lossy(&stderr));
                (ok, input) = (status, stdout);
            }
            output.push_str(&String::from_utf8_lossy(&input));
        }
    }
    output
}

fn spawn(argv: &Argv, input: Option<&[u8]>) -> (bool, Vec<u8>, Vec<u8>) {
    let Some(program) = &argv.program else {
        return (false, Vec::new(), format!("{}: not found\n", argv.name).into_bytes());
    };
    let mut command = Command::new(program);
    command
        .args(&argv.args)
        .current_dir(&argv.dir)
        .env_clear()
        .envs(argv.env.iter().map(|(name, value)| (name, value)));
    command.stdin(input.map_or_else(Stdio::null, |_| Stdio::piped())).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    if let (Some(mut pipe), Some(input)) = (child.stdin.take(), input) {
        // A reader such as `head` may leave early.
        let _ = std::io::Write::write_all(&mut pipe, input);
    }
    let output = child.wait_with_output().unwrap();
    match argv.stderr {
        Stderr::Merge => (output.status.success(), [output.stdout, output.stderr].concat(), Vec::new()),
        Stderr::Null => (output.status.success(), output.stdout, Vec::new()),
        Stderr::Keep => (output.status.success(), output.stdout, output.stderr),
    }
}

/// Every path below a directory with its kind, size, mode and time of change.
pub fn snapshot(dir: &Path) -> BTreeMap<String, String> {
    let mut all = BTreeMap::new();
    let mut todo = vec![dir.to_path_buf()];
    while let Some(dir) = todo.pop() {
        for entry in fs::read_dir(dir).unwrap() {
            let entry = entry.unwrap();
            let meta = entry.path().symlink_metadata().unwrap();
            let shown = format!("{:?} {} {:?}", meta.file_type(), meta.len(), meta.modified().unwrap());
            all.insert(entry.path().display().to_string(), shown);
            if meta.is_dir() {
                todo.push(entry.path());
            }
        }
    }
    all
}

#[test]
fn every_run_line_changes_nothing_and_prints_no_secret() {
    let fixture = gate_fixture();
    let workspace = fixture.workspace();
    let before = snapshot(&fixture.ws);
    for row in cases(include_str!("../cases/gate.jsonl")).iter().filter(|row| row["want"] == "run") {
        let command = fixture.fill(row["command"].as_str().unwrap());
        let Verdict::Run(plan) = gate::decide(&command, &workspace) else {
            panic!("{command:?} does not run");
        };
        let output = execute(&plan);
        assert!(!output.contains(SECRET), "{command:?} printed the secret:\n{output}");
        for complaint in
            ["unrecognized option", "invalid option", "unknown option", "usage:", "bad pathspec", "fatal: Invalid"]
        {
            assert!(!output.contains(complaint), "{command:?}: {output}");
        }
        assert_eq!(before, snapshot(&fixture.ws), "{command:?} changed the workspace");
    }
}
#[test]
#[ignore]
fn keep() {
    let f = gate_fixture();
    std::process::Command::new("cp").args(["-a", f.base.to_str().unwrap(), "/tmp/gatefix"]).status().unwrap();
}
