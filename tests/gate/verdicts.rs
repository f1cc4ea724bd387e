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
fn decided(commands: &[&str]) -> Vec<Verdict> {
    let fixture = gate_fixture();
    let workspace = fixture.workspace();
    commands.iter().map(|command| gate::decide(command, &workspace)).collect()
}

fn plan(command: &str) -> Plan {
    match decided(&[command]).remove(0) {
        Verdict::Run(plan) => plan,
        other => panic!("{command}: {other:?}"),
    }
}

#[test]
fn names_that_are_only_text_are_not_refused() {
    let asks = [
        "cat <<EOF > notes.md\nuse sudo and .env\nEOF",
        "git commit -am 'fix .env'",
        "git commit -m'drop .env' --author=x",
        "gh pr create --title 'sudo' --body 'uses .env'",
        "tar czf x.tgz --exclude=.git .",
        "rsync -a --exclude .git . copy",
        "find . -type f -not -path '*/.git/*' -exec grep -l '\\.env' {} +",
        "find . | xargs grep -n '\\.env'",
        "jq .env package.json",
        "command -v sudo",
        "node -e 'console.log(process.env)'",
        "curl https://example.com/.env",
        "grep -R '\\.env' .",
        "echo sudo is '.env'",
    ];
    for (command, verdict) in asks.iter().zip(decided(&asks)) {
        assert_eq!(word(&verdict), "ask", "{command}: {verdict:?}");
    }
}

#[test]
fn names_are_found_behind_whatever_runs_them() {
    let refused = [
        "bash <<EOF\ncat .env\nEOF",
        "rm '' .env",
        "watch 'sudo ls'",
        "ls > \"$(cat .env)\"",
        "cat <<EOF > .env\nx\nEOF",
        "echo \"$(cat .env)\"",
        "find . -exec sudo rm {} ;",
        "find . -name x | xargs -n 1 sudo ls",
        "if sudo ls; then ls; fi",
        "nice -n 5 timeout -s KILL 5 env -u X A=1 sudo ls",
        "python3 -c 'import os; os.system(\"sudo ls\")'",
        "curl file:///etc/passwd",
        "tar xzf.env",
        "cp x /proc/self/root/etc",
        "cat /d*v/zero",
        "cat /dev/shm/x /proc/*/environ",
        "dd if=/dev/sda of=x",
        "sort x | cat link-env",
    ];
    for (command, verdict) in refused.iter().zip(decided(&refused)) {
        assert_eq!(word(&verdict), "refuse", "{command}: {verdict:?}");
    }
}

#[test]
fn a_question_says_why_and_what_it_would_touch() {
    let reason = |command: &str| match decided(&[command]).remove(0) {
        Verdict::Ask(reason) => reason,
        other => panic!("{command}: {other:?}"),
    };
    assert_eq!(reason("git diff --output=x").why, "option --output of git diff is not on the list");
    assert_eq!(reason("git stash").why, "`git stash` is not on the list of read-only commands");
    assert_eq!(reason("cat README.md | sh").why, "`sh` is not on the list of read-only commands");
    assert_eq!(reason("ls > out.txt").touches, ["out.txt"]);
    assert_eq!(reason("cargo test > log 2>&1").touches, ["log"]);
    let touches = |command: &str| reason(command).touches;
    assert_eq!(touches("rm -rf src/*.rs ../x"), ["src/lib.rs", "src/main.rs", "../x (outside the workspace)"]);
    assert_eq!(touches("cd docs && mv guide.md old.md"), ["guide.md", "old.md"]);
    assert_eq!(touches("cp README.md notes.txt && sed -i s/a/b/ Cargo.toml"), ["notes.txt", "Cargo.toml"]);
    assert_eq!(touches("chmod +x evil.sh"), ["evil.sh"]);
    assert_eq!(touches("git checkout -- src"), ["src"]);
    assert_eq!(touches("mkdir a b c d e f g h i j").last().unwrap(), "and 2 more");
    assert!(touches("sed s/a/b/ Cargo.toml").is_empty() && touches("make").is_empty());
    let outside = reason("cat ../x");
    assert!(outside.why.starts_with("leaves the workspace: /") && outside.touches.len() == 1);
}

#[test]
fn what_runs_sees_no_key_and_no_program_of_the_workspace() {
    let plan = plan("cd src && git status 2>&1 | head -3 || pwd; ls nothing 2>/dev/null");
    let joins: Vec<Join> = plan.steps.iter().map(|step| step.join).collect();
    assert_eq!(joins, [Join::Always, Join::OrElse, Join::Always]);
    assert_eq!(plan.steps[0].pipeline[0].stderr, Stderr::Merge);
    assert_eq!(plan.steps[2].pipeline[0].stderr, Stderr::Null);
    for argv in plan.steps.iter().flat_map(|step| &step.pipeline) {
        assert!(argv.dir.ends_with("ws/src"));
        assert!(argv.program.as_ref().is_some_and(|program| program.is_absolute() && !program.starts_with(&argv.dir)));
        let known = |name: &str| {
            ["HOME", "XDG_CONFIG_HOME", "LANG", "LANGUAGE", "PAGER", "TERM", "NO_COLOR", "PATH"].contains(&name)
                || name.starts_with("LC_")
                || name.starts_with("GIT_")
        };
        assert!(argv.env.iter().all(|(name, _)| known(name)), "{:?}", argv.env);
    }
}

#[test]
fn it_says_when_protected_files_were_left_out() {
    let hides = |command: &str| plan(command).steps[0].pipeline[0].hides;
    assert!(hides("grep -rn x .") && hides("git diff") && hides("cd src && grep -rn x ../config"));
    assert!(!hides("cd src && grep -rn x .") && !hides("grep x README.md") && !hides("git log"));
}

#[test]
fn parts_are_for_chains_of_simple_commands() {
    let parts = |command: &str| gate::parts(command);
    let words = |list: &[&str]| list.iter().map(ToString::to_string).collect::<Vec<_>>();
    assert_eq!(parts("cargo test -q 'a b'"), Some(vec![words(&["cargo", "test", "-q", "a b"])]));
    assert_eq!(parts("cd x && make 2>&1 | tail -5").unwrap().len(), 3);
    for command in
        ["", "make > x", "A=1 make", "make $(x)", "make &", "make <<< x", "(make)", "make\nls", "make &&", "~/x"]
    {
        assert_eq!(parts(command), None, "{command}");
    }
}

#[test]
fn enormous_commands_are_judged_at_once() {
    let commands = [
        "env ".repeat(20_000),
        "{a,b}".repeat(20_000),
        "{,}".repeat(30),
        "cat <<a\n".repeat(20_000),
        "*?".repeat(8_000),
    ];
    let commands: Vec<String> =
        commands.into_iter().map(|long| format!("ls {long}")).chain(["env ".repeat(50_000)]).collect();
    let began = std::time::Instant::now();
    let verdicts = decided(&commands.iter().map(String::as_str).collect::<Vec<_>>());
    assert!(verdicts.iter().all(|verdict| word(verdict) == "ask"));
    // A debug build on a busy machine; what this excludes is minutes, or a stack overflow.
    assert!(began.elapsed().as_secs() < 20, "{:?}", began.elapsed());
}
