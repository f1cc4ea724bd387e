//! Keeping secrets out of what is shown, logged and sent.
//!
//! The key is in one place, but text comes from everywhere: a server quotes it in an error, a tool prints a file that
//! holds it. So whatever leaves is searched for it.

/// Shorter values are not searched for: a local server's key is often `none` or `ollama`, and every such word of the
/// conversation would be blotted out.
const SHORTEST: usize = 8;

/// Texts that must not be seen.
#[derive(Clone, Default)]
pub struct Secrets(Vec<String>);

impl Secrets {
    /// These texts. Of `Bearer abc` the `abc` counts, too.
    pub fn new<'a>(texts: impl Iterator<Item = &'a str>) -> Secrets {
        let mut secrets: Vec<String> = texts
            .flat_map(|text| [text.trim(), text.trim().rsplit(' ').next().unwrap_or_default()])
            .filter(|text| text.len() >= SHORTEST)
            .map(str::to_owned)
            .collect();
        // The longest first, so that no rest of one remains.
        secrets.sort_by_key(|secret| std::cmp::Reverse(secret.len()));
        secrets.dedup();
        Secrets(secrets)
    }

    /// The text without them.
    pub fn redact(&self, mut text: String) -> String {
        for secret in &self.0 {
            if text.contains(secret.as_str()) {
                text = text.replace(secret.as_str(), "[secret]");
            }
        }
        text
    }
}

impl Secrets {
    /// The same for text that comes in pieces: what may be the beginning of a secret stays in `held` until the next
    /// piece shows whether it is one.
    pub fn redact_piece(&self, held: &mut String, piece: &str) -> String {
        let text = self.redact(std::mem::take(held) + piece);
        let begins = |secret: &String| {
            (1..secret.len()).rev().find(|n| secret.is_char_boundary(*n) && text.ends_with(&secret[..*n]))
        };
        let kept = self.0.iter().filter_map(begins).max().unwrap_or(0);
        let (shown, rest) = text.split_at(text.len() - kept);
        *held = rest.to_owned();
        shown.to_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_secret_in_pieces_is_found_and_what_only_begins_like_one_comes_out_later() {
        let secrets = Secrets::new(["sk-12345678"].into_iter());
        let mut held = String::new();
        let shown: Vec<String> = ["key=sk-123", "45678\nsk", "-other s", "k-1234567", "9"]
            .iter()
            .map(|piece| secrets.redact_piece(&mut held, piece))
            .collect();
        assert_eq!(shown, ["key=", "[secret]\n", "sk-other ", "", "sk-12345679"]);
        assert_eq!(held, "");
    }

    #[test]
    fn every_occurrence_goes_and_short_words_stay() {
        let secrets = Secrets::new(["sk-12345678", "Bearer abcdefgh", "none"].into_iter());
        let text = "sk-12345678, xsk-12345678x, Bearer abcdefgh, abcdefgh, none";
        assert_eq!(secrets.redact(text.into()), "[secret], x[secret]x, [secret], [secret], none");
    }
}
