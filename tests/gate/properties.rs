//! What must hold for any text, not only for the corpus.

use std::io::Write;
use std::path::Path;
use std::process::{Command, Stdio};

use mini::gate::{self, Verdict, expand, words};
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::select;
use proptest::test_runner::{Config, TestRunner};

use super::fixture::gate_fixture;
use super::verdicts::{SECRET, execute, snapshot};

/// MINI_CASES=20 runs twenty times as many cases.
pub fn runner(cases: u32) -> TestRunner {
    let factor: u32 = std::env::var("MINI_CASES").ok().and_then(|n| n.parse().ok()).unwrap_or(1);
    let cases = cases * factor;
    TestRunner::new(Config { cases, failure_persistence: None, max_shrink_iters: 0, ..Config::default() })
}

/// The words of `command` as the gate makes them, if it needs no shell for them.
fn own_words(command: &str, base: &Path) -> Option<Vec<String>> {
    let line = words::parse(command);
    let [simple] = &line.commands[..] else {
        return None;
    };
    if line.needs_shell.is_some() || !simple.redirects.is_empty() {
        return None;
    }
    let braced = expand::braces(&simple.words).ok()?;
    let expanded = expand::patterns(&braced, base, &|_| Ok(())).ok()?;
    Some(expanded.iter().map(expand::Expanded::text).collect())
}

/// The words that bash makes of each command.
fn bash_words(commands: &[String], base: &Path) -> Vec<Vec<String>> {
    let script = r#"f() { for a; do printf '%s\0' "$a"; done; }
        while IFS= read -r -d '' line; do eval "f $line"; printf '\1'; done"#;
    let mut bash = Command::new("bash");
    bash.args(["--norc", "-c", script]).current_dir(base).env_clear().env("LC_ALL", "C.UTF-8");
    let mut bash = bash.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
    let input: String = commands.iter().map(|command| format!("{command}\0")).collect();
    let mut pipe = bash.stdin.take().unwrap();
    let writer = std::thread::spawn(move || pipe.write_all(input.as_bytes()).unwrap());
    let output = bash.wait_with_output().unwrap();
    writer.join().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    let mut answers: Vec<&str> = text.split('\u{1}').collect();
    answers.pop();
    answers.iter().map(|words| words.split_terminator('\0').map(str::to_string).collect()).collect()
}

#[test]
fn words_are_those_of_bash() {
    let fixture = gate_fixture();
    let pieces = vec![
        "a",
        "b",
        "src",
        "docs/",
        "main.rs",
        "README.md",
        ".e",
        "-",
        ".",
        "/",
        "é",
        "caf",
        " ",
        " ",
        "\t",
        "'",
        "\"",
        "\\",
        "{",
        "}",
        ",",
        "{a,b}",
        "{",
        ",}",
        "*",
        "?",
        "[",
        "]",
        "[!",
        "^",
        "]*",
        "s*",
        "*.md",
        "#",
        "~",
        "=",
        "$",
        "!",
        "..",
        "'x y'",
        "\"q r\"",
        "''",
        "\\*",
        "'*'",
        "|",
        ":",
        "@{u}",
        "%",
    ];
    let strategy = vec(vec(select(pieces), 1..9).prop_map(|pieces| pieces.concat()), 400);
    runner(12)
        .run(&strategy, |commands| {
            let (commands, own): (Vec<String>, Vec<Vec<String>>) = commands
                .into_iter()
                .filter_map(|command| own_words(&command, &fixture.ws).map(|own| (command, own)))
                .unzip();
            prop_assert!(commands.len() > 100, "too few commands without shell syntax: {}", commands.len());
            let bash = bash_words(&commands, &fixture.ws);
            prop_assert_eq!(bash.len(), own.len());
            let wrong = commands.iter().zip(own).zip(bash).find(|((_, own), bash)| own != bash);
            prop_assert!(wrong.is_none(), "command, own, bash: {:?}", wrong);
            Ok(())
        })
        .unwrap();
}

#[test]
fn any_text_gets_a_verdict() {
    let fixture = gate_fixture();
    let workspace = fixture.workspace();
    let syntax = vec![
        "ls", "cat ", "grep -r ", "rg ", "cd ", "head -", "'", "\"", "$(", "`", "{", "}", ",", "<<E", "\n", "2>", ">&",
        "1", "|", "&&", "||", ";", "\\", "*", "[", "]", "/", "..", "~", ".env", "=", "-", "--", "é", "\u{200b}", "\0",
        "#", "$", "(", ")", " ", " ",
    ];
    let strategy = prop_oneof![vec(select(syntax), 0..14).prop_map(|pieces| pieces.concat()), any::<String>()];
    runner(4_000)
        .run(&strategy, |command| {
            let verdict = gate::decide(&command, &workspace);
            let parts = gate::parts(&command);
            if let Verdict::Run(plan) = verdict {
                prop_assert!(plan.steps.iter().all(|step| !step.pipeline.is_empty()) && !plan.steps.is_empty());
                prop_assert!(parts.is_some(), "runs, but has no parts: {:?}", command);
            }
            Ok(())
        })
        .unwrap();
}

/// Searches for a secret that is in three protected files and in git's history, with whatever options the tables allow.
#[test]
fn no_combination_of_options_prints_the_secret() {
    let fixture = gate_fixture();
    let workspace = fixture.workspace();
    let grep = vec![
        "-r",
        "-n",
        "-h",
        "-i",
        "-a",
        "-o",
        "-v",
        "-c",
        "-l",
        "-x",
        "-E",
        "-F",
        "-d recurse",
        "--include=.env",
        "--include='*'",
        "--include='.[e]nv*'",
        "--exclude=x",
        "--exclude-dir=src",
        "-e SECRET",
        "-A3",
        "--text",
        "--binary-files=text",
        "config",
        ".",
        "*",
    ];
    let rg = vec![
        "-u",
        "-uu",
        "-uuu",
        "--hidden",
        "-n",
        "-v",
        "-a",
        "-g '.env'",
        "-g '**/.env*'",
        "--iglob '*.ENV'",
        "--no-ignore",
        "-.",
        "--glob-case-insensitive",
        "-c",
        "--passthru",
        "--json",
        "-e SECRET",
        "config",
        ".",
        "-tall",
        "--type-add 'e:*env*' -te",
    ];
    let git = vec![
        "-p",
        "--all",
        "-S TOPSECRET",
        "-G SECRET",
        "-U9",
        "--stat",
        "-m",
        "-c",
        "--cc",
        "--reverse",
        "--full-history",
        "-W",
        "-a",
        "--word-diff",
        "--color-words",
        "--raw",
        "--no-renames",
        "-M",
        "-C",
        "--find-copies-harder",
        "--diff-filter=AD",
        "-R",
        "-g",
        "--pickaxe-all",
        "HEAD~1",
        "HEAD~2",
        "HEAD~2..HEAD~1",
        "-- .",
        "-- '.e*'",
        "-- '*'",
        "-- ':(top)'",
        "-- ':(glob)**/.e?v'",
        "-- ':(icase).E*'",
        "--diff-merges=first-parent",
        "--relative",
        "--check",
        "HEAD:README.md",
        "README.md",
        "secret-tag",
        "secret-tag^{}",
        "{BLOB}",
        "{BLOB}..HEAD",
    ];
    let with = |name: &'static str, options: Vec<&'static str>| {
        vec(select(options), 1..6).prop_map(move |options| format!("{name} {}", options.join(" ")))
    };
    // The content of `.env` in history, by its id and by a tag: names that are no path.
    let blob = fixture.git(&["rev-parse", "HEAD~1:.env"]).trim().to_owned();
    fixture.git(&["tag", "secret-tag", &blob]);
    let strategy = prop_oneof![
        with("grep SECRET", grep),
        with("rg SECRET", rg),
        with("git log", git.clone()),
        with("git diff", git)
    ];
    runner(300)
        .run(&strategy, |command| {
            let command = command.replace("{BLOB}", &blob);
            if let Verdict::Run(plan) = gate::decide(&command, &workspace) {
                let output = execute(&plan);
                prop_assert!(!output.contains(SECRET), "{} printed:\n{}", command, output);
            }
            Ok(())
        })
        .unwrap();
    // The secret is there to be found: without the gate's additions a plain search prints it.
    assert!(fixture.git(&["log", "-p"]).contains(SECRET));
}

/// Options that write, run or never end, mixed with honest ones: whatever of it runs must leave everything as it was.
#[test]
fn no_combination_of_options_changes_anything() {
    let fixture = gate_fixture();
    let workspace = fixture.workspace();
    let commands = vec![
        "ls",
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
    let words = vec![
        "-o",
        "-C",
        "-R",
        "-f",
        "-m",
        "-n",
        "-l",
        "-a",
        "-D",
        "-d",
        "-v",
        "-z",
        "-p",
        "-F",
        "-L",
        "-H",
        "-O",
        "-u",
        "-1",
        "-c",
        "-t",
        "-ao",
        "-Lo",
        "-Io",
        "-no",
        "-lC",
        "-e",
        "-x",
        "--output=PWNED",
        "--output",
        "--out",
        "--pre=./evil.sh",
        "--pre",
        "--follow",
        "--list",
        "--compile",
        "--ext-diff",
        "--textconv",
        "--edit-description",
        "--set-upstream-to=x",
        "--track",
        "--color=always",
        "--files0-from=list0",
        "--stat",
        "--all",
        "--",
        "./evil.sh",
        "PWNED",
        "new-branch",
        "main",
        "README.md",
        "1",
        "src",
        ".",
        "x",
    ];
    let strategy =
        (select(commands), vec(select(words), 1..5)).prop_map(|(name, words)| format!("{name} {}", words.join(" ")));
    let before = snapshot(&fixture.base);
    let branches = fixture.git(&["for-each-ref"]);
    let ran = std::cell::Cell::new(0);
    runner(1_500)
        .run(&strategy, |command| {
            if let Verdict::Run(plan) = gate::decide(&command, &workspace) {
                execute(&plan);
                ran.set(ran.get() + 1);
            }
            Ok(())
        })
        .unwrap();
    assert!(ran.get() > 20, "only {} of the commands ran", ran.get());
    assert_eq!(before, snapshot(&fixture.base));
    assert_eq!(branches, fixture.git(&["for-each-ref"]));
}
