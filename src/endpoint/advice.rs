//! What the person can do about a complaint: one sentence, or none.
//!
//! A server says what it refuses; it cannot know that the base URL lacks `/v1`, or which of four variables the key came
//! from. These few sentences answer the questions people ask in issue trackers again and again.

use crate::complaint::{Complaint, HTML, Meaning};
use crate::endpoint::settings::Settings;
use crate::endpoint::url::Place;

/// The next step.
pub fn on(complaint: &Complaint, place: &Place, settings: &Settings) -> String {
    let said = complaint.said();
    let about_model = ["not found", "not exist", "invalid model", "unknown model", "no such model", "not supported"];
    match complaint.status {
        _ if complaint.meaning() == Meaning::Overflow => {
            "Start a new one (/new), give a smaller task, or let the server have a larger window.".into()
        }
        Some(401 | 403) if settings.identity().is_empty() && settings.key_source.is_empty() => {
            "No key was sent.".into()
        }
        Some(401 | 403) if settings.identity().is_empty() => format!("No key was sent: set {}.", settings.key_source),
        Some(401 | 403) => format!("The key came from {}.", settings.identity()),
        Some(400) if said.contains("no connected db") => "LiteLLM says this of a key that it does not know.".into(),
        Some(400 | 404) if said.contains("model") && about_model.iter().any(|part| said.contains(part)) => {
            "Choose a model with --model; --doctor lists them.".into()
        }
        Some(200 | 404 | 405) if place.bare => "Most servers want /v1 at the end of the base URL.".into(),
        Some(300..400) => "It was not followed: correct the base URL.".into(),
        Some(503) if said.contains("loading") => "The server is still loading the model: try again in a minute.".into(),
        _ if complaint.words == HTML => "Check the base URL: it leads to a web page.".into(),
        Some(404 | 405) => "Check the base URL: /chat/completions is appended to it.".into(),
        Some(402) => "Check the account's credit.".into(),
        _ if complaint.meaning() == Meaning::Quota => "Check the account's credit.".into(),
        _ => String::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::endpoint::url::chat_url;

    fn advice(status: u16, words: &str, base: &str, key: &str) -> String {
        let complaint = Complaint { status: Some(status), ..Complaint::of(words) };
        let sent = (!key.is_empty()).then(|| "sk-1".to_owned());
        let settings = Settings { key: sent, key_source: "OPENAI_API_KEY".into(), ..Settings::default() };
        on(&complaint, &Place::of(&chat_url(base).unwrap()), &settings)
    }

    #[test]
    fn the_next_step_fits_the_complaint() {
        let rows = [
            (401, "bad key", "http://h/v1", "OPENAI_API_KEY", "came from OPENAI_API_KEY"),
            (401, "bad key", "http://h/v1", "", "No key was sent: set OPENAI_API_KEY."),
            (404, "", "http://h", "", "want /v1"),
            (404, "", "http://h/v1", "", "Check the base URL"),
            (404, "model `m` not found", "http://h", "", "--model"),
            (308, "", "http://h/v1", "", "not followed"),
            (400, "No connected db.", "http://h/v1", "", "does not know"), // LiteLLM
            (503, "Loading model", "http://h/v1", "", "still loading"),    // llama.cpp
        ];
        for (status, words, base, key, wanted) in rows {
            let advice = advice(status, words, base, key);
            assert!(advice.contains(wanted), "{status} {words}: {advice}");
        }
        assert_eq!(advice(500, "x", "http://h/v1", ""), "");
    }
}
