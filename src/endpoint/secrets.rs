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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_occurrence_goes_and_short_words_stay() {
        let secrets = Secrets::new(["sk-12345678", "Bearer abcdefgh", "none"].into_iter());
        let text = "sk-12345678, xsk-12345678x, Bearer abcdefgh, abcdefgh, none";
        assert_eq!(secrets.redact(text.into()), "[secret], x[secret]x, [secret], [secret], none");
    }
}
