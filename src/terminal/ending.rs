//! How a task ended, in words: each kind of end its own, with the way out where there is one.

use crate::event::Outcome;

/// How a task ended, for [`Screen::task_ended`](super::Screen::task_ended).
pub struct Ended<'a> {
    /// The kind of end.
    pub outcome: Outcome,
    /// Why, unless it is simply done.
    pub reason: Option<&'a str>,
    /// When, as Unix time in ms.
    pub at: u64,
}

impl Ended<'_> {
    /// Why it did not simply end; nothing for an end that is simply done. `said` are a hook's words that stand on the
    /// screen already: they are not repeated. `unasked` is why nobody could be asked, if so.
    pub fn why(&self, said: Option<&str>, unasked: Option<&str>) -> Option<String> {
        let words = match self.outcome {
            Outcome::Done => return None,
            Outcome::Interrupted => return Some("interrupted".into()),
            Outcome::Error => "error",
            Outcome::Limit => "stopped at a limit",
            Outcome::Unapproved => "not approved",
            Outcome::Unverified => "not verified",
        };
        let reason = self.reason.unwrap_or("no reason was given");
        let new = said.and_then(|said| reason.strip_suffix(said)).map(|before| before.trim_end_matches(": "));
        Some(match (new, self.outcome) {
            (Some(""), _) => words.into(),
            (Some(who), _) => format!("{words}: {who} failed"),
            (None, Outcome::Unapproved) => {
                // With somebody to ask, it is that the input ended: Ctrl-D, or the end of a scripted talk.
                let cause = unasked.unwrap_or("the input ended at the question");
                format!("{words}: {reason} ({cause}). --yes approves everything")
            }
            (None, _) => format!("{words}: {reason}"),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn why(outcome: Outcome, reason: &str, said: Option<&str>, unasked: Option<&str>) -> Option<String> {
        Ended { outcome, reason: Some(reason), at: 0 }.why(said, unasked)
    }

    #[test]
    fn every_end_has_words_of_its_own() {
        for (outcome, words) in [
            (Outcome::Done, None),
            (Outcome::Error, Some("error: why")),
            (Outcome::Limit, Some("stopped at a limit: why")),
            (Outcome::Unverified, Some("not verified: why")),
            (Outcome::Interrupted, Some("interrupted")),
        ] {
            assert_eq!(why(outcome, "why", None, None).as_deref(), words);
        }
    }

    #[test]
    fn an_end_without_approval_names_what_kept_the_person_from_answering() {
        let told = |unasked| why(Outcome::Unapproved, "why", None, unasked).unwrap();
        let way_out = "--yes approves everything";
        assert_eq!(told(None), format!("not approved: why (the input ended at the question). {way_out}"));
        let unasked = told(Some("stdin is not a terminal"));
        assert_eq!(unasked, format!("not approved: why (stdin is not a terminal). {way_out}"));
    }

    #[test]
    fn a_hooks_words_that_were_just_shown_are_not_said_again() {
        let said = Some("2 tests fail");
        assert_eq!(why(Outcome::Unverified, "2 tests fail", said, None).as_deref(), Some("not verified"));
        let broken = why(Outcome::Error, "extension verify: 2 tests fail", said, None);
        assert_eq!(broken.as_deref(), Some("error: extension verify failed"));
        assert_eq!(why(Outcome::Limit, "another", said, None).as_deref(), Some("stopped at a limit: another"));
    }
}
