//! git in repositories whose settings name programs: whatever the verdict, the program must not run.

use std::fs;
use std::path::Path;

use mini::gate::{self, Verdict};
use serde_json::Value;

use super::fixture::{Fixture, cases, executable, git_in};
use super::verdicts::execute;

/// Leaves a mark beside the workspace. It answers nobody, so that no protocol can wait for it.
fn canary(fixture: &Fixture) -> String {
    format!("#!/bin/sh\ntouch {}\n", fixture.base.join("CANARY").display())
}

fn ran(fixture: &Fixture) -> bool {
    fixture.base.join("CANARY").exists()
}

fn build(row: &Value) -> Fixture {
    let fixture = Fixture::new();
    executable(&fixture.ws.join("evil.sh"), &canary(&fixture));
    match row["setup"].as_str() {
        Some("bareroot") => bare_root(&fixture),
        Some("lazy") => lazy_clone(&fixture),
        setup => {
            plain_repository(&fixture);
            match setup {
                Some("signed") => {
                    signed_commit(&fixture, "-----BEGIN PGP SIGNATURE-----", "-----END PGP SIGNATURE-----")
                }
                Some("signedssh") => {
                    signed_commit(&fixture, "-----BEGIN SSH SIGNATURE-----", "-----END SSH SIGNATURE-----")
                }
                Some("submfs") => submodule(&fixture),
                Some("gitfile") => git_file(&fixture),
                _ => {}
            }
        }
    }
    add_files(&fixture, row);
    add_settings(&fixture, row);
    // Same size, other content and time: else git trusts the index and asks no filter.
    if fixture.ws.join("a.txt").exists() {
        fs::write(fixture.ws.join("a.txt"), "bbbb\n").unwrap();
        let file = fs::File::options().write(true).open(fixture.ws.join("a.txt")).unwrap();
        file.set_modified(std::time::SystemTime::now() + std::time::Duration::from_secs(5)).unwrap();
    }
    fixture
}

fn plain_repository(fixture: &Fixture) {
    fixture.git(&["init", "-q", "-b", "main"]);
    fs::write(fixture.ws.join("a.txt"), "aaaa\n").unwrap();
    fs::write(fixture.ws.join("x.bin"), "bin\n").unwrap();
    fixture.git(&["add", "-A"]);
    fixture.git(&["commit", "-q", "-m", "first"]);
}

/// A commit that carries a signature header nobody can verify.
fn signed_commit(fixture: &Fixture, begin: &str, end: &str) {
    let commit = fixture.git(&["cat-file", "commit", "HEAD"]);
    let (head, message) = commit.split_once("\n\n").unwrap();
    let signed = format!("{head}\ngpgsig {begin}\n \n c2lnbmF0dXJl\n {end}\n\n{message}");
    let file = fixture.base.join("commit");
    fs::write(&file, signed).unwrap();
    let id = fixture.git(&["hash-object", "-t", "commit", "-w", file.to_str().unwrap()]);
    fixture.git(&["update-ref", "refs/heads/main", id.trim()]);
}

/// A partial clone whose remote is "reached" through the script.
fn lazy_clone(fixture: &Fixture) {
    let origin = fixture.base.join("origin");
    fs::create_dir(&origin).unwrap();
    git_in(&origin, &["init", "-q", "-b", "main"]);
    for content in ["one\n", "two\n"] {
        fs::write(origin.join("a.txt"), content).unwrap();
        git_in(&origin, &["add", "-A"]);
        git_in(&origin, &["commit", "-q", "-m", content.trim()]);
    }
    git_in(&origin, &["config", "uploadpack.allowFilter", "true"]);
    let clone = fixture.base.join("clone");
    let url = format!("file://{}", origin.display());
    git_in(&fixture.base, &["clone", "-q", "--filter=blob:none", "--no-checkout", &url, clone.to_str().unwrap()]);
    fs::rename(clone.join(".git"), fixture.ws.join(".git")).unwrap();
    fixture.git(&["config", "remote.origin.uploadpack", &fixture.fill("{WS}/evil.sh")]);
}

fn submodule(fixture: &Fixture) {
    let origin = fixture.base.join("sub");
    fs::create_dir(&origin).unwrap();
    git_in(&origin, &["init", "-q", "-b", "main"]);
    fs::write(origin.join("s.txt"), "aaaa\n").unwrap();
    git_in(&origin, &["add", "-A"]);
    git_in(&origin, &["commit", "-q", "-m", "sub"]);
    fixture.git(&["-c", "protocol.file.allow=always", "submodule", "--quiet", "add", origin.to_str().unwrap(), "sub"]);
    fixture.git(&["config", "-f", ".gitmodules", "submodule.sub.ignore", "none"]);
    fixture.git(&["add", "-A"]);
    fixture.git(&["commit", "-q", "-m", "with a submodule"]);
    git_in(&fixture.ws.join("sub"), &["config", "core.fsmonitor", &fixture.fill("{WS}/evil.sh")]);
    fs::write(fixture.ws.join("sub/s.txt"), "bbbb\n").unwrap();
}

/// The workspace itself looks like a repository without a working tree.
fn bare_root(fixture: &Fixture) {
    fixture.git(&["init", "-q", "--bare", "."]);
    fixture.git(&["--git-dir=.", "config", "core.fsmonitor", &fixture.fill("{WS}/evil.sh")]);
    fixture.git(&["--git-dir=.", "config", "core.bare", "false"]);
    fixture.git(&["--git-dir=.", "config", "core.worktree", &fixture.fill("{WS}")]);
}

fn git_file(fixture: &Fixture) {
    fs::rename(fixture.ws.join(".git"), fixture.ws.join("evilgit")).unwrap();
    fs::write(fixture.ws.join(".git"), "gitdir: evilgit\n").unwrap();
    fixture.git(&["config", "core.fsmonitor", &fixture.fill("{WS}/evil.sh")]);
}

fn add_files(fixture: &Fixture, row: &Value) {
    for (name, content) in row["files"].as_object().unwrap() {
        let path = fixture.ws.join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        match content.as_str().unwrap() {
            "EXEC" => executable(&path, &canary(fixture)),
            text => fs::write(&path, fixture.fill(text)).unwrap(),
        }
    }
}

fn add_settings(fixture: &Fixture, row: &Value) {
    for (key, value) in row["config"].as_object().unwrap() {
        fixture.git(&["config", key, &fixture.fill(value.as_str().unwrap())]);
    }
}

/// Each row: first the gate's call, then plain git, which must run the script in most of these repositories: else the test
/// would prove nothing.
#[test]
fn every_repository_of_the_corpus() {
    let mut wrong = Vec::new();
    let mut plain_ran = 0;
    let files = [include_str!("../cases/gate-git.jsonl"), include_str!("../cases/gate-git-more.jsonl")];
    let rows: Vec<Value> = files.into_iter().flat_map(cases).collect();
    for row in &rows {
        let fixture = build(row);
        let _ = fs::remove_file(fixture.base.join("CANARY"));
        let command = row["command"].as_str().unwrap();
        let verdict = gate::decide(command, &fixture.workspace());
        let output = if let Verdict::Run(plan) = &verdict { execute(plan) } else { String::new() };
        let right = match (row["want"].as_str().unwrap(), &verdict) {
            ("no-exec", Verdict::Run(_) | Verdict::Ask(_)) | ("ask", Verdict::Ask(_)) => true,
            ("run", Verdict::Run(_)) => !output.contains("fatal"),
            _ => false,
        };
        if !right || ran(&fixture) {
            wrong.push(format!("{row}: ran: {}, {verdict:?}\n{output}", ran(&fixture)));
        }
        plain_git(&fixture.ws, command);
        plain_ran += usize::from(ran(&fixture));
    }
    assert!(wrong.is_empty(), "{} of {} wrong:\n{}", wrong.len(), rows.len(), wrong.join("\n"));
    assert!(plain_ran >= 15, "plain git ran the script in only {plain_ran} repositories");
}

fn plain_git(dir: &Path, command: &str) {
    let mut git = std::process::Command::new("git");
    git.args(command.split(' ').skip(1)).current_dir(dir);
    git.envs([("GIT_CONFIG_GLOBAL", "/dev/null"), ("GIT_CONFIG_SYSTEM", "/dev/null"), ("GIT_PAGER", "cat")]);
    git.stdin(std::process::Stdio::null()).output().unwrap();
}

#[test]
fn a_setting_that_nobody_knows_asks_by_its_name() {
    let fixture = Fixture::new();
    plain_repository(&fixture);
    let why = |key: &str, value: &str| {
        fixture.git(&["config", key, value]);
        let verdict = gate::decide("git status", &fixture.workspace());
        fixture.git(&["config", "--unset", key]);
        match verdict {
            Verdict::Ask(reason) => reason.why,
            other => panic!("{key}: {other:?}"),
        }
    };
    for key in ["hook.x.command", "core.worktree", "core.alternaterefscommand", "trace2.eventtarget"] {
        assert_eq!(why(key, ".."), format!("repository setting {key} is not known to be harmless"));
    }
    assert!(matches!(gate::decide("git status", &fixture.workspace()), Verdict::Run(_)));
    let bare = Fixture::new();
    let verdict = gate::decide("git diff a b", &bare.workspace());
    assert!(matches!(verdict, Verdict::Ask(reason) if reason.why == "there is no git repository here"));
}

/// What gate.md asks of every call, item by item: nothing is inherited but what is named, and no override is missing.
#[test]
fn git_gets_a_hardened_environment_and_every_override() {
    let fixture = Fixture::new();
    plain_repository(&fixture);
    fixture.git(&["config", "filter.x.clean", "sh"]);
    let Verdict::Run(plan) = gate::decide("git diff --stat", &fixture.workspace()) else { panic!("asks") };
    let argv = &plan.steps[0].pipeline[0];
    let value = |name: &str| argv.env.iter().find(|(known, _)| known == name).map(|(_, value)| value.to_str().unwrap());
    for (name, wanted) in [
        ("GIT_OPTIONAL_LOCKS", "0"),
        ("GIT_NO_LAZY_FETCH", "1"),
        ("GIT_ALLOW_PROTOCOL", "none"),
        ("GIT_TERMINAL_PROMPT", "0"),
        ("GIT_PAGER", "cat"),
        ("PAGER", "cat"),
        ("GIT_EDITOR", "false"),
        ("GIT_ASKPASS", "false"),
    ] {
        assert_eq!(value(name), Some(wanted), "{name}");
    }
    let count: usize = value("GIT_CONFIG_COUNT").unwrap().parse().unwrap();
    let pair =
        |at| [format!("GIT_CONFIG_KEY_{at}"), format!("GIT_CONFIG_VALUE_{at}")].map(|name| value(&name).unwrap());
    let overrides: Vec<String> = (0..count).map(|at| pair(at).join("=")).collect();
    let wanted = "core.fsmonitor=false core.hooksPath=/dev/null core.pager=cat core.editor=false log.showSignature=false \
        gpg.program=false gpg.openpgp.program=false gpg.ssh.program=false gpg.x509.program=false protocol.allow=never \
        safe.bareRepository=explicit submodule.recurse=false status.submoduleSummary=false diff.submodule=short \
        diff.ignoreSubmodules=dirty color.ui=never filter.x.clean= filter.x.smudge= filter.x.process= filter.x.required=false";
    let missing: Vec<&str> =
        wanted.split_whitespace().filter(|item| !overrides.iter().any(|set| set == item)).collect();
    assert_eq!(missing, [""; 0]);
    let args: Vec<&str> = argv.args.iter().map(|arg| arg.to_str().unwrap()).collect();
    for option in ["--no-pager", "--no-ext-diff", "--no-textconv", "--ignore-submodules=dirty"] {
        assert!(args.contains(&option), "{option}");
    }
}

/// `git log --raw` tells the ids of all files, and an id is no path that could be screened.
#[test]
fn the_content_of_a_protected_file_cannot_be_had_by_its_id_or_a_tag() {
    let fixture = super::fixture::gate_fixture();
    let id = fixture.git(&["rev-parse", "HEAD~1:.env"]).trim().to_owned();
    fixture.git(&["tag", "secret", &id]);
    let output = |command: &str| match gate::decide(command, &fixture.workspace()) {
        Verdict::Run(plan) => execute(&plan),
        other => format!("{other:?}"),
    };
    for other in ["HEAD:README.md", "README.md", "HEAD", "secret", "HEAD:src", ""] {
        for name in [&id, "secret", "secret^{}", &id[..7]] {
            for command in [
                format!("git diff {other} {name}"),
                format!("git diff {name} {other}"),
                format!("git log -p {name} {other}"),
            ] {
                assert!(!output(&command).contains(super::verdicts::SECRET), "{command}");
            }
        }
    }
    fixture.git(&["branch", "-q", "old", "HEAD~2"]);
    assert!(
        output("git diff HEAD:README.md HEAD:src/main.rs").contains("+fn main()"),
        "files named by path are compared"
    );
    assert!(output("git diff HEAD:src/main.rs src/main.rs").contains("changed"));
}

/// A search that only says which commits match would give a secret away letter by letter.
#[test]
fn a_search_of_history_does_not_look_into_protected_files() {
    let fixture = super::fixture::gate_fixture();
    let output = |command: &str| match gate::decide(command, &fixture.workspace()) {
        Verdict::Run(plan) => execute(&plan),
        other => panic!("{command}: {other:?}"),
    };
    for command in ["git log --oneline -G '=TOPSECRET'", "git log --all --oneline -S TOPSECRET-7f3a"] {
        assert_eq!(output(command), "", "{command}");
    }
    assert!(output("git log --oneline -S 'fn main'").contains("first"));
    assert!(!fixture.git(&["log", "--oneline", "-G", "=TOPSECRET"]).is_empty(), "plain git finds it");
}
