//! The differential test: what the gate lets run is run, and watched. It must have written nothing, read nothing outside by
//! name, opened no protected file, started no other program and used no network.

use super::fixture::{Fixture, cases, gate_fixture};
use super::properties::runner;
use super::verdicts::{SECRET, snapshot};
use super::watch::Watch;
use mini::gate::options::rules;
use mini::gate::{self, Argv, Plan, Stderr, Verdict};
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::select;
use std::cell::Cell;

const COMMANDS: [&str; 14] = [
    "ls",
    "pwd",
    "cat",
    "head",
    "tail",
    "wc",
    "file",
    "tree",
    "grep",
    "rg",
    "git status",
    "git diff",
    "git log",
    "git branch",
];
const VALUES: [&str; 14] = [
    "1",
    "2",
    "x",
    "fn",
    "'*.rs'",
    "README.md",
    "'%h %s'",
    "always",
    "json",
    ".",
    "none",
    "patterns.txt",
    "recurse",
    "name",
];
const WORDS: [&str; 16] = [
    "README.md",
    "src",
    ".",
    "docs/*.md",
    "*",
    "src/{main,lib}.rs",
    "{WS}/src",
    "link-in",
    "config",
    "HEAD",
    "HEAD~1",
    "main",
    "-- .",
    "./-weird",
    "'my file.txt'",
    "nothing",
];
/// What must never get through, among the rest so that it is combined with it.
const TRAPS: [&str; 24] = [
    "../out/secret.txt",
    "{OUT}/secret.txt",
    "{OUT}",
    "link-out",
    "dirlink-out/secret.txt",
    "link-env",
    ".env",
    ".e*",
    "pipe",
    "/usr/share/common-licenses",
    "/proc/version",
    "-o PWNED",
    "--output=PWNED",
    "--pre=./evil.sh",
    "-z",
    "-f list0",
    "-C",
    "-L",
    "| ./evil.sh",
    "| tee PWNED",
    "; touch PWNED",
    "> PWNED",
    "&& ./ls",
    "$(touch PWNED)",
];

/// Every spelling of every option that a command's table allows, with values for those that take one.
fn options(name: &str) -> Vec<String> {
    let rules = rules(name).unwrap();
    let valued = |option: String, separator: &'static str| VALUES.map(|value| format!("{option}{separator}{value}"));
    let long = |list: &'static str| list.split(' ').filter(|name| !name.is_empty()).map(|name| format!("--{name}"));
    let flags = rules.flags.chars().map(|letter| format!("-{letter}"));
    let short = rules.valued.chars().flat_map(|letter| valued(format!("-{letter}"), " "));
    let with = long(rules.long_valued).flat_map(|option| valued(option, "="));
    let optional = long(rules.long_optional).flat_map(|option| valued(option, "="));
    flags.chain(short).chain(long(rules.long)).chain(with).chain(optional).chain(long(rules.long_optional)).collect()
}

/// A command out of allowed options, honest words and now and then a trap.
fn command() -> impl Strategy<Value = String> {
    select(COMMANDS.to_vec()).prop_flat_map(|name| {
        let own = |list: &[&str]| select(list.iter().map(ToString::to_string).collect::<Vec<_>>());
        let mut all = options(name);
        all.push(String::new());
        let (trap, words) = (prop_oneof![12 => Just(String::new()), 1 => own(&TRAPS)], vec(own(&WORDS), 0..3));
        let pattern = if matches!(name, "grep" | "rg") { " '[a-z]'" } else { "" };
        (vec(select(all), 0..4), words, trap).prop_map(move |(options, words, trap)| {
            format!("{name} {}{pattern} {} {trap}", options.join(" "), words.join(" "))
        })
    })
}

/// Runs a plan under the watch: what it printed last, and what was wrong.
fn watched(watch: &Watch, plan: &Plan, command: &str) -> (String, Vec<String>) {
    let (mut printed, mut wrong) = (String::new(), Vec::new());
    for step in &plan.steps {
        let mut input = Vec::new();
        for argv in &step.pipeline {
            let seen = watch.run(argv, command, &input);
            input = seen.stdout;
            wrong.extend(seen.wrong);
        }
        printed.push_str(&String::from_utf8_lossy(&input));
    }
    (printed, wrong)
}

fn watch(fixture: &Fixture, own: &tempfile::TempDir) -> Watch {
    Watch::new(&fixture.base, &fixture.ws, own.path())
}

/// Also every line of the corpora that runs. MINI_CASES=20 tries twenty times as many random ones.
#[test]
fn what_runs_writes_nothing_reads_nothing_outside_and_starts_nothing() {
    let (fixture, own) = (gate_fixture(), tempfile::tempdir().unwrap());
    let (workspace, watch) = (fixture.workspace(), watch(&fixture, &own));
    let (before, ran) = (snapshot(&fixture.base), Cell::new(0));
    let check = |command: &str| {
        let command = fixture.fill(command);
        let Verdict::Run(plan) = gate::decide(&command, &workspace) else { return Ok(()) };
        let (printed, wrong) = watched(&watch, &plan, &command);
        ran.set(ran.get() + 1);
        prop_assert!(wrong.is_empty(), "{} {:#?}", command, wrong);
        prop_assert!(!printed.contains(SECRET), "{} printed:\n{}", command, printed);
        Ok(())
    };
    let corpus = [include_str!("../cases/gate.jsonl"), include_str!("../cases/sessions.jsonl")];
    for row in corpus.iter().flat_map(|text| cases(text)) {
        check(row["command"].as_str().unwrap()).unwrap();
    }
    runner(350).run(&command(), |command| check(&command)).unwrap();
    assert!(ran.get() > 150, "only {} of the commands ran", ran.get());
    println!("{} commands ran, strace: {}", ran.get(), watch.is_close());
    assert_eq!(before, snapshot(&fixture.base));
}

/// A watch that sees nothing would prove nothing.
#[test]
fn the_watch_sees_what_it_is_for() {
    let (fixture, own) = (gate_fixture(), tempfile::tempdir().unwrap());
    let watch = watch(&fixture, &own);
    let sh = |script: &str| Argv {
        name: "sh".into(),
        program: Some("/bin/sh".into()),
        args: ["-c", script].map(Into::into).into(),
        dir: fixture.ws.clone(),
        env: vec![("PATH".into(), "/usr/bin:/bin".into())],
        stderr: Stderr::Keep,
        hides: false,
    };
    let wrong = |script: &str| watch.run(&sh(script), script, b"").wrong;
    assert_eq!(wrong("true < README.md; echo x > /dev/null"), [""; 0]);
    assert!(!wrong("uname; touch x; exit 0").is_empty(), "another program");
    if watch.is_close() {
        for (script, what) in [
            ("echo x > PWNED", "opens to write"),
            ("true < ../out/secret.txt", "beside the workspace"),
            ("true < dirlink-out/../out/secret.txt", "beside the workspace"),
            ("true < .env", "a protected file"),
            ("true < /proc/version", "named outside"),
            ("ls", "another program"),
        ] {
            let wrong = wrong(script).join("\n");
            assert!(wrong.contains(what), "{script}: {wrong:?}");
        }
    }
}
