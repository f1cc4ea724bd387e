//! Where and how to ask: what a configuration amounts to, and what of it goes into headers.
//!
//! Where the values come from (flags, environment, files) is not known here; that they are usable is checked here, before
//! anything is sent, so that a key pasted with its line break is an error in words and not a strange answer.

use super::secrets::Secrets;
use std::fmt;
use ureq::http::{HeaderName, HeaderValue};

/// Where and how to ask a model.
#[derive(Clone)]
pub struct Settings {
    /// Base URL as configured, such as `https://api.openai.com/v1`.
    pub base_url: String,
    /// Model name; empty means: ask `/models` and use the only one.
    pub model: String,
    /// The key; `None` or blank sends no Authorization header.
    pub key: Option<String>,
    /// Where the key comes from, for errors: `OPENAI_API_KEY`.
    pub key_source: String,
    /// Further headers; values are secrets.
    pub headers: Vec<(String, String)>,
    /// First pause before a retry, in ms (doubles; never shortens a Retry-After).
    pub retry_base_ms: u64,
    /// Longest silence between two reads, in ms.
    pub idle_ms: u64,
    /// Longest time since the last data event, in ms.
    pub progress_ms: u64,
    /// Limit of output tokens; not sent unless set.
    pub max_output_tokens: Option<u64>,
    /// Not sent unless set.
    pub temperature: Option<f64>,
}

impl Default for Settings {
    fn default() -> Settings {
        Settings {
            base_url: String::new(),
            model: String::new(),
            key: None,
            key_source: String::new(),
            headers: Vec::new(),
            retry_base_ms: 500,
            idle_ms: 300_000,
            progress_ms: 900_000,
            max_output_tokens: None,
            temperature: None,
        }
    }
}

/// Without the key and the headers' values.
impl fmt::Debug for Settings {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        let names: Vec<&String> = self.headers.iter().map(|(name, _)| name).collect();
        let key = self.key.as_ref().map(|_| "[secret]");
        write!(
            f,
            "Settings {{ base_url: {:?}, model: {:?}, key: {key:?}, headers: {names:?} }}",
            self.base_url, self.model
        )
    }
}

impl Settings {
    /// With a key that is trimmed, and present only if it is not blank.
    pub(super) fn cleaned(mut self) -> Settings {
        self.key = self.key.map(|key| key.trim().to_owned()).filter(|key| !key.is_empty());
        self
    }

    /// Where what identifies us comes from, in words; empty if nothing does.
    pub(super) fn identity(&self) -> &str {
        match (&self.key, self.key_source.as_str(), self.headers.is_empty()) {
            (Some(_), "", _) => "the settings",
            (Some(_), source, _) => source,
            (None, _, false) => "the configured headers",
            (None, _, true) => "",
        }
    }

    /// Takes the secrets of these settings out of a text, where no endpoint is at hand.
    pub fn redactor(&self) -> super::Redactor {
        let secrets = self.secrets();
        Box::new(move |text| secrets.redact(text))
    }

    /// What must not be seen anywhere.
    pub(super) fn secrets(&self) -> Secrets {
        let values = self.headers.iter().map(|(_, value)| value.as_str());
        Secrets::new(self.key.as_deref().into_iter().chain(values).chain(super::url::secrets(&self.base_url)))
    }

    /// The headers of every request. A configured Authorization header takes the place of the key's.
    pub(super) fn http_headers(&self) -> Result<Vec<(HeaderName, HeaderValue)>, String> {
        let mut headers = Vec::new();
        for (name, value) in &self.headers {
            let header: HeaderName =
                name.trim().parse().map_err(|_| format!("`{}` is not the name of a header", name.trim()))?;
            headers.push((header, secret(value, &format!("the value of the header {}", name.trim()))?));
        }
        if let Some(key) = &self.key
            && !headers.iter().any(|(name, _)| name == "authorization")
        {
            let what =
                if self.key_source.is_empty() { "the key" } else { &format!("the key from {}", self.key_source) };
            headers.push((HeaderName::from_static("authorization"), secret(&format!("Bearer {key}"), what)?));
        }
        Ok(headers)
    }
}

/// A header's value that no debug output shows. The error does not hold it either.
fn secret(value: &str, what: &str) -> Result<HeaderValue, String> {
    let mut header = HeaderValue::from_str(value.trim()).map_err(|_| {
        format!("{what} holds a line break or another character that a header cannot hold; was it pasted whole?")
    })?;
    header.set_sensitive(true);
    Ok(header)
}
