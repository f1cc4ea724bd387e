//! The order of authority, pair by pair, through the whole program: refusals › deny rules › plan mode › a child's limit ›
//! ask rules and the loop guard › allow rules, "always" and the list › --yes › the script or the person › nobody.
//!
//! Of each pair both are set up so that they disagree about one call, and the events say who decided. An "always" against
//! --yes cannot be set up from the command line: their places are tested in `approve.rs`.

use crate::support::{Ran, Test};
use serde_json::{Value, json};

/// Who has a say.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Who {
    Refusal,
    DenyRule,
    Plan,
    Child,
    AskRule,
    AllowRule,
    Always,
    Yes,
    Script,
    Person,
    Nobody,
}

use Who::*;

/// Highest first.
const ORDER: [Who; 11] = [Refusal, DenyRule, Plan, Child, AskRule, AllowRule, Always, Yes, Script, Person, Nobody];

impl Who {
    /// The decision about the call where nobody of higher authority has a say.
    fn alone(self) -> (&'static str, &'static str) {
        match self {
            Refusal => ("refused", "gate"),
            DenyRule => ("denied", "rule"),
            Plan => ("denied", "plan"),
            Child => ("denied", "child"),
            AskRule | Nobody => ("denied", "nobody"),
            AllowRule => ("allowed", "rule"),
            Always => ("allowed", "always"),
            Yes => ("allowed", "yes"),
            Script => ("allowed", "script"),
            Person => ("allowed", "user"),
        }
    }

    /// A rule about this path.
    fn rule(self, path: &str) -> Option<String> {
        let effect = match self {
            DenyRule => "deny",
            AskRule => "ask",
            AllowRule => "allow",
            _ => return None,
        };
        Some(json!({"edit": {path: effect}}).to_string())
    }
}

/// Whether both can be there at once.
fn go_together(high: Who, low: Who) -> bool {
    match (high, low) {
        // An "always" is a person's answer of earlier, and --yes would have answered in his place.
        (Always, Yes | Script | Person | Nobody) => false,
        // A script answers where no person is.
        (Script, Person) => false,
        // "Nobody" is that neither of them is there.
        (Script | Person, Nobody) => true,
        _ => true,
    }
}

/// A write of `a.txt`, with both in place.
fn both(high: Who, low: Who) -> Ran {
    let has = |who| high == who || low == who;
    let path = if has(Refusal) { ".env" } else { "a.txt" };
    let mut test = Test::new();
    let rules: Vec<String> = [low, high].into_iter().filter_map(|who| who.rule(path)).collect();
    if let [first, rest @ ..] = &rules[..] {
        test = test.config("permissions.json", first);
        // The project's may tighten, which is what the higher one of two rules does.
        test = rest.iter().fold(test, |test, rule| test.file(".mini/permissions.json", rule));
    }
    let write =
        |path: &str| json!({"response": {"calls": [{"name": "write", "arguments": {"path": path, "content": "x"}}]}});
    let text = |text: &str| json!({"response": {"text": text}});
    let mut script = vec![write(path)];
    if has(Child) {
        let task = json!({"name": "task", "arguments": {"description": "a write", "prompt": "write it"}});
        script = vec![json!({"response": {"calls": [task]}}), write(path), text("I may not.")];
    }
    script.extend([text("Done."), text("An answer that nobody asked for is a task.")]);
    let mut args = vec!["--json".to_owned()];
    args.extend(has(Child).then_some(["--ext", "subagent"]).into_iter().flatten().map(String::from));
    args.extend(has(Plan).then(|| "--plan".into()).into_iter().chain(has(Yes).then(|| "--yes".into())));
    if has(Person) || has(Always) {
        args.push("--talk".into());
        let mut said = "go\n".to_owned();
        if has(Always) {
            script.insert(0, write("first.txt"));
            said.push_str("a\n");
        }
        test = test.stdin(said + if has(Person) { "y\n" } else { "" });
    } else {
        args.push("go".into());
    }
    let lines = |script: &[Value]| script.iter().map(|line| format!("{line}\n")).collect::<String>();
    if has(Script) {
        let file = test.config_file("recording.jsonl").display().to_string();
        test =
            test.config("recording.jsonl", &format!("{}{}", json!({"answer": "y"}).to_string() + "\n", lines(&script)));
        return test.args(args).args(["--replay".to_owned(), file]).run();
    }
    test.script(&lines(&script)).args(args).run()
}

/// The last decision, and by whom.
fn decided(ran: &Ran) -> (String, String) {
    let last = ran.events_of("approval").pop().unwrap_or_default();
    let text = |field: &str| last[field].as_str().unwrap_or_default().to_owned();
    (text("decision"), text("by"))
}

#[test]
fn of_every_pair_the_higher_authority_decides() {
    let mut pairs = 0;
    for (at, high) in ORDER.into_iter().enumerate() {
        for low in ORDER.into_iter().skip(at + 1).filter(|low| go_together(high, *low)) {
            // Plan mode lets no "always" come about, and a refusal no first write either.
            if low == Always && matches!(high, Plan) {
                continue;
            }
            // An ask rule leaves it to whoever may answer in person; an "always" of this session is such an answer.
            let by = if high == AskRule && matches!(low, Always | Script | Person) { low } else { high };
            let ran = both(high, low);
            let (decision, name) = decided(&ran);
            assert_eq!((decision.as_str(), name.as_str()), by.alone(), "{high:?} over {low:?}\n{ran}");
            pairs += 1;
        }
    }
    assert_eq!(pairs, 49, "pairs that can be set up");
}

#[test]
fn the_list_is_outranked_by_rules_that_deny_and_ask_and_by_the_loop_guard() {
    let ls = |rules: &str, args: &[&str]| {
        let test = Test::new().config("permissions.json", rules).call("bash", json!({"command": "ls"})).text("Done.");
        test.args(["--json"]).args(args.to_vec()).args(["go"]).run()
    };
    assert_eq!(decided(&ls(r#"{"bash":{"ls":"deny"}}"#, &[])), ("denied".into(), "rule".into()));
    assert_eq!(decided(&ls(r#"{"bash":"ask"}"#, &["--yes"])), ("denied".into(), "nobody".into()));
    // What the list runs needs no question, and a rule that allows it changes nothing.
    assert_eq!(ls(r#"{"bash":"allow"}"#, &[]).events_of("approval"), [json!(null); 0]);
    assert_eq!(ls("{}", &["--plan"]).events_of("approval"), [json!(null); 0]);
}

#[test]
fn the_loop_guard_outranks_allow_rules_and_always_and_yes_and_asks_the_person() {
    let three = |test: Test| (0..3).fold(test, |test, _| test.call("bash", json!({"command": "make x"})));
    let allow = || Test::new().config("permissions.json", r#"{"bash":"allow"}"#);
    let ran = three(allow()).args(["--json", "--yes", "go"]).run().exit(3);
    assert_eq!(decided(&ran), ("denied".into(), "loop-guard".into()));
    let ran = three(Test::new().stdin("go\na\ny\n")).text("Done.").args(["--json", "--talk"]).run().exit(0);
    assert_eq!(decided(&ran), ("allowed".into(), "user".into()));
    // Above it: a deny rule and plan mode, which leave it nothing to ask about.
    let deny = Test::new().config("permissions.json", r#"{"bash":{"make":"deny"}}"#);
    assert_eq!(decided(&three(deny).text("Done.").args(["--json", "go"]).run().exit(0)).1, "rule");
    assert_eq!(decided(&three(Test::new()).text("Done.").args(["--json", "--plan", "go"]).run().exit(0)).1, "plan");
}
