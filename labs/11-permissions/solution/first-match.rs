// Exercise B: in src/permissions.rs, the first match of a file wins.
//
// One word changes in `Layers::decides`: the rules of a file are looked
// through from the front. Whether a file denies is still asked of all files.

fn decides(&self, tool: &str, subject: &Subject) -> Option<(&Layer, &Rule)> {
    let mut opinion = None;
    for layer in &self.list {
        match layer.rules.iter().find(|rule| rule.matches(tool, subject)) {
            Some(rule) if rule.effect == Effect::Deny => {
                return Some((layer, rule));
            }
            Some(rule) => opinion = Some((layer, rule)),
            None => {}
        }
    }
    opinion
}

// And in src/permissions/tests.rs, a test that tells them apart. Only a subject
// that two rules match with different effects can do that: with `src/a.rs`
// alone the test would pass either way.

#[test]
fn the_first_match_wins() {
    let rules = r#"{"edit": {"src/**": "allow", "*.secret": "deny"}}"#;
    let bench = load(rules, "").unwrap();
    all(&bench, &[("edit src/a.secret", "allow"), ("edit b.secret", "deny")]);
}

// `cargo test permissions` now names the tests that stated the other order.
