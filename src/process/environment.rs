//! What children see of the environment: everything but secrets, and nothing that waits for a person.
//!
//! A model decides what runs, and `env` is a command like any other: a key in the environment is a key in the
//! conversation. Names that look like keys are dropped as well as the keys we know, since the person's other tokens
//! (of a forge, of a cloud) are no concern of the model either. A program that needs one is run by the person.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;

/// Pagers, editors and prompts wait for a person, and there is none at the other end of a pipe.
const QUIET: [(&str, &str); 7] = [
    ("PAGER", "cat"),
    ("GIT_PAGER", "cat"),
    ("GIT_EDITOR", "true"),
    ("EDITOR", "true"),
    ("VISUAL", "true"),
    ("GIT_TERMINAL_PROMPT", "0"),
    ("TERM", "dumb"),
];
/// A name with one of these in it is a secret's.
const SECRET_PARTS: [&str; 4] = ["API_KEY", "APIKEY", "ACCESS_KEY", "SECRET"];
/// A shorter value ("1", "true", "none") would drop half of the environment by chance.
const SHORTEST_SECRET: usize = 8;

/// The environment for children, made of ours: without the variables of `secret_names`, without any whose name looks
/// like a key's, and without any whose value contains one of `secret_values` (of at least 8 bytes).
pub fn environment(
    vars: impl Iterator<Item = (OsString, OsString)>,
    secret_names: &[String],
    secret_values: &[String],
) -> Vec<(OsString, OsString)> {
    let public = |(name, value): &(OsString, OsString)| {
        let quiet = QUIET.iter().any(|(quiet, _)| name == quiet);
        !quiet && !is_secret_name(name, secret_names) && !holds_secret(value, secret_values)
    };
    let quiet = QUIET.map(|(name, value)| (name.into(), value.into()));
    vars.filter(public).chain(quiet).collect()
}

fn is_secret_name(name: &OsStr, secret_names: &[String]) -> bool {
    let upper = name.to_string_lossy().to_uppercase();
    secret_names.iter().any(|secret| name == secret.as_str())
        || SECRET_PARTS.iter().any(|part| upper.contains(part))
        || upper.ends_with("_TOKEN")
        || upper == "MINI_HEADERS"
}

fn holds_secret(value: &OsStr, secret_values: &[String]) -> bool {
    let mut secrets = secret_values.iter().map(String::as_bytes).filter(|secret| secret.len() >= SHORTEST_SECRET);
    secrets.any(|secret| value.as_bytes().windows(secret.len()).any(|part| part == secret))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(vars: &[(&str, &str)], secret_names: &[&str], secret_values: &[&str]) -> Vec<String> {
        let owned = |names: &[&str]| names.iter().map(|s| s.to_string()).collect::<Vec<_>>();
        let vars = vars.iter().map(|(name, value)| (OsString::from(name), OsString::from(value)));
        let made = environment(vars, &owned(secret_names), &owned(secret_values));
        let quiet = made.len() - QUIET.len();
        made.into_iter().take(quiet).map(|(name, _)| name.into_string().unwrap()).collect()
    }

    #[test]
    fn names_that_look_like_keys_are_dropped() {
        let keys =
            ["OPENAI_API_KEY", "my_apikey", "AWS_ACCESS_KEY_ID", "Client_Secret", "GITHUB_TOKEN", "MINI_HEADERS"];
        for key in keys {
            assert_eq!(names(&[(key, "x"), ("HOME", "/h")], &[], &[]), ["HOME"], "{key}");
        }
        let fine = [("PATH", "/bin"), ("TOKENIZERS_PARALLELISM", "0"), ("KEYBOARD", "de"), ("MINI_MODEL", "m")];
        assert_eq!(names(&fine, &[], &[]).len(), fine.len());
    }

    #[test]
    fn known_secrets_are_dropped_by_name_and_by_value() {
        let vars = [("LOCAL_LLM", "k"), ("URL", "https://u:sk-12345678@host"), ("SHORT", "true"), ("A", "b")];
        assert_eq!(names(&vars, &["LOCAL_LLM"], &["sk-12345678", "true", ""]), ["SHORT", "A"]);
    }

    #[test]
    fn pagers_editors_and_prompts_are_off() {
        let made = environment([("PAGER".into(), "less".into())].into_iter(), &[], &[]);
        assert_eq!(made.iter().filter(|(name, _)| name == "PAGER").count(), 1);
        assert!(made.contains(&("PAGER".into(), "cat".into())) && made.contains(&("TERM".into(), "dumb".into())));
    }
}
