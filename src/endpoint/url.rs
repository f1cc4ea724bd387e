//! Base URLs: what people configure, and what is called.
//!
//! One rule: blanks and trailing slashes go, the query stays, `/chat/completions` is appended unless it is there. A `/v1`
//! is never added or removed: DeepSeek needs none, z.ai has `/v4`, Gemini `/v1beta/openai`. Where it is missing the server
//! answers 404, and the error says so (see advice.rs).

use ureq::http::Uri;

const CHAT: &str = "/chat/completions";

/// The URL that a base URL means, or what is wrong with it.
pub fn chat_url(base: &str) -> Result<String, String> {
    let base = base.trim();
    let (path, query) = base.split_once('?').map_or((base, None), |(path, query)| (path, Some(query)));
    let path = path.trim_end_matches('/');
    let path = path.strip_suffix(CHAT).unwrap_or(path).trim_end_matches('/');
    let path = if matches!(path, "http:" | "https:") { base } else { path };
    check(path).map_err(|why| format!("the base URL `{}` {why}", shown(base)))?;
    Ok(match query {
        Some(query) => format!("{path}{CHAT}?{query}"),
        None => format!("{path}{CHAT}"),
    })
}

/// A URL for an error: without the name and password that it should not have.
fn shown(base: &str) -> String {
    match (base.find("://"), base.rfind('@')) {
        (Some(scheme), Some(at)) if at > scheme => format!("{}…{}", &base[..scheme + 3], &base[at..]),
        _ => base.to_owned(),
    }
}

/// Values of the query that are secrets by their names: some gateways want the key there.
pub fn secrets(base: &str) -> Vec<&str> {
    let query = base.split_once('?').map_or("", |(_, query)| query);
    let is_secret = |name: &str| {
        let name = name.to_lowercase();
        ["key", "token", "secret", "sig", "password"].iter().any(|part| name.contains(part))
    };
    let pairs = query.split('&').filter_map(|pair| pair.split_once('='));
    pairs.filter(|(name, _)| is_secret(name)).map(|(_, value)| value).collect()
}

/// Where the models of the same server are listed.
pub fn models_url(chat_url: &str) -> String {
    chat_url.replacen(CHAT, "/models", 1)
}

/// A page at the root of the same server; its OpenAI-compatible part is at `/v1`, or is the root itself.
pub fn page_url(chat_url: &str, path: &str) -> String {
    let base = chat_url.split_once(CHAT).map_or(chat_url, |(base, _)| base);
    format!("{}{path}", base.strip_suffix("/v1").unwrap_or(base))
}

fn check(url: &str) -> Result<(), String> {
    let after_scheme = url.strip_prefix("http://").or_else(|| url.strip_prefix("https://"));
    let Some(rest) = after_scheme else { return Err("must begin with http:// or https://".into()) };
    let authority = rest.split('/').next().unwrap_or_default();
    if authority.contains('@') {
        return Err("must not hold a name and password; send them as a header (MINI_HEADERS)".into());
    }
    match url.parse::<Uri>() {
        Ok(uri) if uri.host().is_some_and(|host| !host.is_empty()) => Ok(()),
        Ok(_) => Err("has no host".into()),
        Err(error) => Err(format!("is not a URL: {error}")),
    }
}

/// What an address says about the way there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Place {
    /// Encrypted.
    pub https: bool,
    /// The host, without brackets and in lower case.
    pub host: String,
    /// The base URL has no path.
    pub bare: bool,
}

impl Place {
    /// Of a URL made by [`chat_url`].
    pub fn of(chat_url: &str) -> Place {
        let uri: Uri = chat_url.parse().unwrap_or_default();
        Place {
            https: uri.scheme_str() == Some("https"),
            host: uri.host().unwrap_or_default().trim_matches(['[', ']']).to_ascii_lowercase(),
            bare: uri.path() == CHAT,
        }
    }

    /// Whether it is this machine.
    pub fn is_loopback(&self) -> bool {
        let by_name = self.host == "localhost" || self.host.ends_with(".localhost");
        by_name || self.host.parse::<std::net::IpAddr>().is_ok_and(|ip| ip.is_loopback() || ip.is_unspecified())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_spellings_mean_one_url() {
        for base in ["http://h/v1", "http://h/v1/", "http://h/v1//", " http://h/v1 ", "http://h/v1/chat/completions/"] {
            assert_eq!(chat_url(base).as_deref(), Ok("http://h/v1/chat/completions"), "{base}");
        }
        assert_eq!(chat_url("https://api.deepseek.com").as_deref(), Ok("https://api.deepseek.com/chat/completions"));
        assert_eq!(
            chat_url("http://h/openai/deployments/d1?api-version=2024-10-21").as_deref(),
            Ok("http://h/openai/deployments/d1/chat/completions?api-version=2024-10-21")
        );
    }

    #[test]
    fn a_password_is_not_shown_and_a_key_in_the_query_is_known() {
        let error = chat_url("http://user:PASSWORD@h/v1").unwrap_err();
        assert!(error.starts_with("the base URL `http://…@h/v1` must not hold"), "{error}");
        assert_eq!(secrets("http://h/v1?api-version=2024&api_key=SECRET"), ["SECRET"]);
    }

    #[test]
    fn models_stand_beside_the_chat_and_keep_the_query() {
        assert_eq!(models_url("http://h/v1/chat/completions?a=b"), "http://h/v1/models?a=b");
    }

    #[test]
    fn other_pages_stand_at_the_root() {
        assert_eq!(page_url("http://h:1/v1/chat/completions?a=b", "/api/ps"), "http://h:1/api/ps");
        assert_eq!(page_url("http://h/gate/v1/chat/completions", "/props"), "http://h/gate/props");
    }

    #[test]
    fn what_is_no_url_is_said_to_be_none() {
        for base in ["", "localhost:8080/v1", "ftp://h", "http://", "http:///v1", "http://a b/v1"] {
            assert!(chat_url(base).is_err(), "{base}");
        }
        assert!(chat_url("http://me:secret@h/v1").unwrap_err().contains("MINI_HEADERS"));
    }

    #[test]
    fn loopback_is_known_by_name_and_number() {
        let loopback = |base: &str| Place::of(&chat_url(base).unwrap()).is_loopback();
        assert!(
            ["http://LocalHost:1", "http://127.9.0.1/v1", "http://[::1]:8080/v1"].map(loopback).iter().all(|yes| *yes)
        );
        assert!(!loopback("http://localhost.example/v1") && !loopback("http://10.0.0.1/v1"));
    }
}
