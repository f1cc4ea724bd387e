use super::*;
use crate::message::Call;
use crate::rundir::RunDir;
use crate::tool::Preview;
use serde_json::{Value, json};

/// A workspace with rules of the user and of the project.
struct Bench {
    dir: tempfile::TempDir,
    workspace: Workspace,
    rules: Permissions,
    notices: Vec<String>,
}

fn load(user: &str, project: &str) -> Result<Bench, String> {
    let dir = tempfile::tempdir().unwrap();
    std::fs::create_dir_all(dir.path().join("ws/.mini")).unwrap();
    let file = dir.path().join("permissions.json");
    for (path, text) in [(file.clone(), user), (dir.path().join("ws").join(PROJECT_FILE), project)] {
        if !text.is_empty() {
            std::fs::write(path, text).unwrap();
        }
    }
    let workspace = Workspace::open(&dir.path().join("ws"), RunDir::create(&dir.path().join("state"))?)?;
    let (rules, notices) = Permissions::load(Some(file), &workspace)?;
    Ok(Bench { dir, workspace, rules, notices })
}

impl Bench {
    /// `allow`, `ask`, `deny` or `-` for a tool and a path, or a command.
    fn says(&self, text: &str) -> &'static str {
        let (tool, rest) = text.split_once(' ').unwrap();
        let parts = gate::always::asking_parts(rest, &self.workspace);
        let asked = match tool {
            "bash" => Asked { tool, command: Some(rest), asking: parts.as_deref(), path: None },
            _ => Asked { tool, path: Some(rest), ..Asked::default() },
        };
        match self.rules.ruling(&asked) {
            None => "-",
            Some(Ruled::Allow(_)) => "allow",
            Some(Ruled::Ask(_)) => "ask",
            Some(Ruled::Deny(_)) => "deny",
        }
    }

    fn file(&self) -> Value {
        serde_json::from_str(&std::fs::read_to_string(self.dir.path().join("permissions.json")).unwrap()).unwrap()
    }

    /// Answers `s WANTED` at the question of a call.
    fn save(&self, tool: &str, arguments: Value, wanted: &str) -> Result<String, String> {
        let call = call(tool, &arguments);
        let text = arguments["command"].as_str().unwrap_or_default();
        let scope = match tool {
            "bash" => Scope::Command { text: text.into(), parts: gate::always::asking_parts(text, &self.workspace) },
            _ => Scope::Files,
        };
        let question = Question { text: tool.into(), why: None, preview: Preview::None, scope };
        let path = arguments["path"].as_str().map(String::from);
        let question = Some(&question);
        self.rules.save(&Request { path, ..Request::new(&call, question, true) }, wanted)
    }
}

fn call(tool: &str, arguments: &Value) -> Call {
    let arguments = Ok(arguments.as_object().cloned().unwrap_or_default());
    Call { id: "c".into(), name: tool.into(), raw: "{}".into(), arguments, extra: Default::default() }
}

#[track_caller]
fn all(bench: &Bench, wanted: &[(&str, &str)]) {
    for (text, effect) in wanted {
        assert_eq!(bench.says(text), *effect, "{text}");
    }
}

#[test]
fn the_last_match_wins_within_a_file_and_no_match_is_no_opinion() {
    let rules = r#"{"bash":"ask","edit":{"src/**":"allow","*.secret":"deny"}}"#;
    let wanted = [
        ("edit src/a.rs", "allow"),
        ("write src/a.rs", "allow"),
        ("edit src/a.secret", "deny"),
        ("write b.secret", "deny"),
        ("edit notes.txt", "-"),
        ("read src/a.secret", "-"),
        ("bash ls", "ask"),
        ("bash make x > y", "ask"),
    ];
    all(&load(rules, "").unwrap(), &wanted);
    let reversed = r#"{"edit":{"*.secret":"deny","src/**":"allow"},"bash":"ask"}"#;
    all(&load(reversed, "").unwrap(), &[("edit src/a.secret", "allow"), ("edit b.secret", "deny")]);
    all(&load(r#"{"edit":"deny","write":"allow"}"#, "").unwrap(), &[("write a", "allow"), ("edit a", "deny")]);
    all(
        &load(r#"{"*":"ask","read":"allow"}"#, "").unwrap(),
        &[("read a", "allow"), ("edit a", "ask"), ("bash ls", "ask")],
    );
}

#[test]
fn a_chain_is_allowed_only_if_every_part_that_asks_is() {
    let rules = r#"{"bash":{"cargo test":"allow","cargo test --doc":"ask","git push":"deny","rm":"ask"}}"#;
    all(
        &load(rules, "").unwrap(),
        &[
            ("bash cargo test -q", "allow"),
            ("bash cargo tests", "-"),
            ("bash cargo test | tail -5", "allow"),
            ("bash cargo test && make", "-"),
            ("bash cargo test && git push origin", "deny"),
            ("bash git push; rm x", "deny"),
            ("bash cargo test --doc", "ask"),
            ("bash /bin/rm x", "ask"),
            ("bash ls", "-"),
        ],
    );
    let rules = r#"{"bash":{"*":"ask","ls":"allow","make":"allow"}}"#;
    let wanted = [("bash ls", "allow"), ("bash make", "allow"), ("bash ls | wc", "ask"), ("bash make > x", "ask")];
    let sh = load(r#"{"bash":{"*":"ask","sh x.sh":"allow","rm":"deny"}}"#, "").unwrap();
    all(&sh, &[("bash sh x.sh 3", "allow"), ("bash sh x.sh rm", "deny"), ("bash sh y.sh", "ask")]);
    all(&load(rules, "").unwrap(), &wanted);
}

#[test]
fn what_needs_a_shell_is_never_allowed_by_words_and_never_gets_round_a_deny() {
    let bench = load(r#"{"bash":{"cargo test":"allow","git push":"deny"}}"#, "").unwrap();
    all(
        &bench,
        &[
            ("bash cargo test > out.txt", "-"),
            ("bash git push > out.txt", "deny"),
            ("bash A=1 git push", "deny"),
            ("bash cargo test $(git push)", "deny"),
            ("bash cargo test $(git $WORD)", "ask"),
            ("bash for f in a; do git push; done", "deny"),
            ("bash for f in a; do git pull; done", "ask"),
            ("bash sh -c 'cd x && git push'", "deny"),
            ("bash env A=1 nice git push", "deny"),
            ("bash xargs git push", "deny"),
            ("bash sh test.sh", "-"),
            ("bash cargo test & git push", "deny"),
        ],
    );
    let all_of_it = load(r#"{"bash":"allow"}"#, "").unwrap();
    all(&all_of_it, &[("bash for f in a; do make; done", "allow"), ("bash make > x", "allow")]);
}

#[test]
fn a_deny_in_any_file_stays_and_a_project_only_tightens() {
    let bench =
        load(r#"{"edit":{"a":"allow","b":"deny","c":"allow"}}"#, r#"{"edit":{"a":"deny","b":"allow","c":"ask"}}"#);
    let bench = bench.unwrap();
    all(&bench, &[("edit a", "deny"), ("edit b", "deny"), ("edit c", "ask")]);
    assert_eq!(bench.notices, [".mini/permissions.json may only deny and ask; ignored: edit \"b\": allow"]);
    let bench = load("", r#"{"bash":"allow","*":"allow"}"#).unwrap();
    all(&bench, &[("bash make", "-"), ("edit a", "-")]);
}

#[test]
fn a_slip_names_the_file_and_the_line() {
    for (user, project, wanted) in [
        ("{\n \"bash\":\n  \"alow\"}", "", ["\"alow\" is none of allow, ask, deny", "line 3", "/permissions.json"]),
        ("{\"bsah\": \"ask\"}", "", ["there is no tool `bsah`; did you mean `bash`?", "line 1", "/permissions.json"]),
        ("", "{\n\"edit\": {\"a\": \"Deny\"}}", ["\"Deny\" is none of", "line 2", ".mini/permissions.json"]),
        ("", "{\"edit\": {\"\": \"deny\"}}", ["a pattern is empty", "line 1", ".mini/permissions.json"]),
        ("[]", "", ["expected an object of rules", "line 1", "/permissions.json"]),
        ("{\"bash\": 1}", "", ["expected allow, ask or deny", "line 1", "/permissions.json"]),
        ("{", "", ["EOF", "line 1", "/permissions.json: EOF"]),
    ] {
        let why = load(user, project).err().unwrap_or_default();
        wanted.iter().for_each(|part| assert!(why.contains(part), "{why} lacks {part}"));
    }
}

#[test]
fn files_of_rules_are_not_the_agents_to_write() {
    let bench = load(r#"{"*":"allow"}"#, "").unwrap();
    all(&bench, &[("write .mini/permissions.json", "deny"), ("edit a/.mini/permissions.json", "allow")]);
    let inside = bench.workspace.root().join("mine.json");
    std::fs::write(&inside, "{}").unwrap();
    let (rules, _) = Permissions::load(Some(inside), &bench.workspace).unwrap();
    let asked = Asked { tool: "edit", path: Some("mine.json"), ..Asked::default() };
    assert!(matches!(rules.ruling(&asked), Some(Ruled::Deny(_))));
}

#[test]
fn a_saved_rule_holds_from_now_on_and_in_the_next_run() {
    let bench = load("", "").unwrap();
    let said = bench.save("bash", json!({"command": "make -j *.c | tail -1"}), "").unwrap();
    assert!(said.starts_with("saved in ") && said.ends_with(r#"bash "make -j \\*.c": allow"#), "{said}");
    bench.save("edit", json!({"path": "a.txt"}), "").unwrap();
    bench.save("edit", json!({"path": "src/a.rs"}), "src/**").unwrap();
    bench.save("bash", json!({"command": "cargo test -q"}), "cargo test").unwrap();
    assert_eq!(
        bench.file(),
        json!({"bash": {"make -j \\*.c": "allow", "cargo test": "allow"}, "edit": {"/a.txt": "allow", "src/**": "allow"}})
    );
    let now =
        [("bash make -j *.c -k", "allow"), ("bash make -j b.c", "-"), ("edit a.txt", "allow"), ("edit b/a.txt", "-")];
    all(&bench, &now);
    let (rules, _) = Permissions::load(Some(bench.dir.path().join("permissions.json")), &bench.workspace).unwrap();
    all(&Bench { rules, ..bench }, &now);
}

#[test]
fn a_rule_that_would_change_nothing_is_not_saved() {
    let bench = load(r#"{"bash":"ask"}"#, r#"{"bash":{"make":"ask"}}"#).unwrap();
    let why = bench.save("bash", json!({"command": "make"}), "").unwrap_err();
    assert!(why.contains("this one stands: bash \"make\": ask (.mini/permissions.json)"), "{why}");
    assert_eq!(bench.file(), json!({"bash": "ask"}));
    all(&bench, &[("bash make", "ask")]);
    bench.save("bash", json!({"command": "cargo build"}), "").unwrap();
    assert_eq!(bench.file(), json!({"bash": {"*": "ask", "cargo build": "allow"}}));
    all(&bench, &[("bash cargo build", "allow"), ("bash ls", "ask")]);
    assert!(bench.save("bash", json!({"command": "x > y"}), "").unwrap_err().contains("simple commands"));
    assert!(bench.save("edit", json!({"path": "a"}), "b").unwrap_err().contains("does not match a"));
    assert!(bench.save("bash", json!({"command": "a b"}), "b").unwrap_err().contains("no part of the command"));
}
