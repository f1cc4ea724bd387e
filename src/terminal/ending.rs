//! How a task ended, in words: each kind of end its own, with the way out where there is one.

use crate::event::Outcome;

/// How a task ended, for [`Screen::task_ended`](super::Screen::task_ended).
pub struct Ended<'a> {
    /// The kind of end.
    pub outcome: Outcome,
    /// Why, unless it is simply done.
    pub reason: Option<&'a str>,
    /// In US dollars, if prices are known.
    pub cost: Option<f64>,
}

impl Ended<'_> {
    /// Why it did not simply end; nothing for an end that is simply done.
    pub fn why(&self) -> Option<String> {
        let words = match self.outcome {
            Outcome::Done => return None,
            Outcome::Interrupted => return Some("interrupted".into()),
            Outcome::Error => "error",
            Outcome::Limit => "stopped at a limit",
            Outcome::Unapproved => "not approved",
            Outcome::Unverified => "not verified",
        };
        let reason = self.reason.unwrap_or("no reason was given");
        let way_out = match self.outcome {
            Outcome::Unapproved => ". Run it on a terminal to be asked, or approve everything with --yes",
            _ => "",
        };
        Some(format!("{words}: {reason}{way_out}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_end_has_words_of_its_own() {
        for (outcome, words) in [
            (Outcome::Done, None),
            (Outcome::Error, Some("error: why")),
            (Outcome::Limit, Some("stopped at a limit: why")),
            (Outcome::Unverified, Some("not verified: why")),
            (Outcome::Interrupted, Some("interrupted")),
        ] {
            assert_eq!(Ended { outcome, reason: Some("why"), cost: None }.why().as_deref(), words);
        }
        let nobody = Ended { outcome: Outcome::Unapproved, reason: Some("why"), cost: None }.why().unwrap();
        assert!(nobody.starts_with("not approved: why") && nobody.contains("--yes"), "{nobody}");
    }
}
