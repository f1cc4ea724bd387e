//! The connection to one server: ureq, set up once and kept, so that a run is one connection.
//!
//! What is switched off matters more than what is on. Redirects: following one turns a POST into a GET without its key.
//! Time limits for the whole answer: they kill long healthy ones. Status codes as errors: the server's words would be
//! lost. The proxy's own reading of the environment: it sends 127.0.0.1 through the proxy, and ignores a SOCKS proxy
//! silently and connects directly.
//!
//! Compression is not asked for (tokens would arrive in one lump at the end), but decoded where a gateway does it anyway.

use crate::endpoint::url::Place;
use std::time::Duration;
use ureq::http::{HeaderName, HeaderValue, Response};
use ureq::tls::{PemItem, RootCerts, TlsConfig, parse_pem};
use ureq::{Agent, Body, Proxy};

/// Name lookup, and connecting with TLS: the part of a request that Ctrl-C cannot end.
const CONNECT: Duration = Duration::from_secs(10);

/// A connection that may be open, and how to open it again.
pub struct Transport {
    agent: Agent,
    headers: Vec<(HeaderName, HeaderValue)>,
    /// The variable that names the proxy, if there is one between us and the server.
    pub proxied_by: Option<&'static str>,
}

impl Transport {
    /// For one server; nothing is sent yet. `idle_ms` bounds the silence between two reads. `env` looks up environment
    /// variables: proxies, and SSL_CERT_FILE.
    pub fn new(
        place: &Place,
        headers: Vec<(HeaderName, HeaderValue)>,
        idle_ms: u64,
        env: impl Fn(&str) -> Option<String>,
    ) -> Result<Transport, String> {
        let idle = Some(Duration::from_millis(idle_ms.max(1)));
        let (proxied_by, proxy) = proxy(place, &env)?.unzip();
        let config = Agent::config_builder()
            .http_status_as_error(false)
            .max_redirects(0)
            .user_agent(concat!("mini/", env!("CARGO_PKG_VERSION")))
            .accept_encoding("identity")
            .timeout_resolve(Some(CONNECT))
            .timeout_connect(Some(CONNECT))
            .timeout_per_read(idle)
            .timeout_per_write(idle)
            .proxy(proxy)
            .tls_config(TlsConfig::builder().root_certs(roots(place, &env)?).build())
            .build();
        Ok(Transport { agent: config.new_agent(), headers, proxied_by })
    }

    /// Posts a JSON body, or gets if there is none. Returns when the response's headers are there.
    pub fn send(&self, url: &str, body: Option<&[u8]>) -> Result<Response<Body>, ureq::Error> {
        match body {
            None => self.headers.iter().fold(self.agent.get(url), |request, (n, v)| request.header(n, v)).call(),
            Some(body) => {
                let request = self.agent.post(url).header("content-type", "application/json");
                self.headers.iter().fold(request, |request, (n, v)| request.header(n, v)).send(body)
            }
        }
    }

    /// What another thread can close the connection with, under a blocked read.
    pub fn handle(&self) -> Agent {
        self.agent.clone()
    }

    /// Forgets a connection that was closed or is in doubt.
    pub fn renew(&mut self) {
        self.agent = self.agent.config().new_agent();
    }
}

/// The proxy for this server and the variable that names it, if any, by the names curl uses. Never for this machine.
fn proxy(place: &Place, env: &impl Fn(&str) -> Option<String>) -> Result<Option<(&'static str, Proxy)>, String> {
    let names = match place.https {
        true => ["HTTPS_PROXY", "https_proxy", "ALL_PROXY", "all_proxy"],
        false => ["HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy"],
    };
    let set = |name: &str| env(name).map(|value| value.trim().to_owned()).filter(|value| !value.is_empty());
    let no_proxy = set("NO_PROXY").or_else(|| set("no_proxy")).unwrap_or_default();
    if place.is_loopback() || is_excluded(&place.host, &no_proxy) {
        return Ok(None);
    }
    let Some((name, value)) = names.into_iter().find_map(|name| Some((name, set(name)?))) else { return Ok(None) };
    if value.to_ascii_lowercase().starts_with("socks") {
        return Err(format!("{name} names a SOCKS proxy, which mini does not speak; name an HTTP proxy, or unset it"));
    }
    match Proxy::new(&value) {
        Ok(proxy) => Ok(Some((name, proxy))),
        Err(_) => Err(format!("{name} is not the URL of a proxy, such as http://proxy.example:3128")),
    }
}

/// Whether NO_PROXY covers a host: `*`, the host, or a domain it is in (with or without a dot in front).
fn is_excluded(host: &str, no_proxy: &str) -> bool {
    no_proxy.split([',', ' ']).filter(|entry| !entry.is_empty()).any(|entry| {
        let domain = entry.trim_start_matches("*.").trim_start_matches('.').to_ascii_lowercase();
        let inside = host.strip_suffix(domain.as_str()).is_some_and(|rest| rest.is_empty() || rest.ends_with('.'));
        entry == "*" || inside
    })
}

/// Mozilla's roots, or those of SSL_CERT_FILE in their place (as OpenSSL and curl read it): that is how a company's
/// intercepting proxy or a self-signed local server is trusted.
fn roots(place: &Place, env: &impl Fn(&str) -> Option<String>) -> Result<RootCerts, String> {
    let Some(file) = env("SSL_CERT_FILE").filter(|file| place.https && !file.is_empty()) else {
        return Ok(RootCerts::WebPki);
    };
    let pem = std::fs::read(&file).map_err(|error| format!("read SSL_CERT_FILE {file}: {error}"))?;
    let mut certificates = Vec::new();
    for item in parse_pem(&pem) {
        match item {
            Ok(PemItem::Certificate(certificate)) => certificates.push(certificate),
            Ok(_) => {}
            Err(error) => return Err(format!("SSL_CERT_FILE {file} is not PEM: {error}")),
        }
    }
    match certificates.is_empty() {
        true => Err(format!("SSL_CERT_FILE {file} holds no certificate")),
        false => Ok(certificates.into_iter().into()),
    }
}

/// A connection that failed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure {
    /// What happened, and what may be the reason.
    pub words: String,
    /// Whether it can pass.
    pub again: bool,
    /// The server closed the connection before it said anything.
    pub unanswered: bool,
}

impl Failure {
    /// In words. `idle_ms` as given to [`Transport::new`]; `answering` when a response had begun.
    pub fn of(error: &ureq::Error, place: &Place, idle_ms: u64, answering: bool) -> Failure {
        use std::io::ErrorKind;
        let unanswered = !answering && is_closed(error);
        let again = |words: String| Failure { words, again: true, unanswered };
        let never = |words: String| Failure { words, again: false, unanswered };
        let host = &place.host;
        match error {
            ureq::Error::Timeout(ureq::Timeout::Connect | ureq::Timeout::Resolve) => {
                again(format!("timed out: no connection to {host} within {} s", CONNECT.as_secs()))
            }
            ureq::Error::Timeout(_) => {
                again(format!("timed out: no byte from the server for {}", crate::endpoint::retry::human(idle_ms)))
            }
            ureq::Error::HostNotFound => again(format!("there is no host {host}; is the base URL right?")),
            ureq::Error::Io(error) if error.kind() == ErrorKind::ConnectionRefused => {
                again("connection refused: is the server running, and is the port right?".into())
            }
            ureq::Error::Io(error) if error.to_string().contains("lookup address") => again(format!(
                "the host {host} cannot be looked up: is its name right, and is there a network? ({error})"
            )),
            ureq::Error::Io(error) if is_tls(&error.to_string()) => never(tls(&error.to_string())),
            ureq::Error::Io(error) if error.kind() == ErrorKind::UnexpectedEof => {
                again(match (answering, place.https) {
                    (true, _) => "the server closed the connection in the middle of its answer".into(),
                    (false, true) => "the server closed the connection without an answer".into(),
                    (false, false) => "the server closed the connection without an answer; does it want https?".into(),
                })
            }
            ureq::Error::Io(error) => again(format!("the connection failed: {error}")),
            ureq::Error::ConnectProxyFailed(words) => never(format!("the proxy refused to connect: {words}")),
            ureq::Error::Protocol(error) => again(match place.https {
                true => format!("the server does not speak HTTP here: {error}; is the port right?"),
                false => {
                    format!("the server does not speak HTTP here: {error}; should the base URL begin with https://?")
                }
            }),
            ureq::Error::Decompress(_, error) => again(format!("the compressed answer is broken: {error}")),
            error => never(tls(&error.to_string())),
        }
    }
}

fn is_closed(error: &ureq::Error) -> bool {
    use std::io::ErrorKind::{BrokenPipe, ConnectionAborted, ConnectionReset, UnexpectedEof};
    let closed = [BrokenPipe, ConnectionAborted, ConnectionReset, UnexpectedEof];
    matches!(error, ureq::Error::Io(error) if closed.contains(&error.kind()))
}

fn is_tls(words: &str) -> bool {
    ["certificate", "InvalidContentType", "corrupt message", "handshake", "TLS"].iter().any(|part| words.contains(part))
}

/// What usually stands behind an error of TLS.
fn tls(words: &str) -> String {
    if words.contains("not valid for name") {
        return format!("{words}. Does the base URL name the host as its certificate does?");
    }
    if words.contains("expired") || words.contains("not valid yet") {
        return format!("{words}. Is the clock of this machine right?");
    }
    if words.contains("certificate") {
        return format!("{words}. If a company's proxy or your own server signed it, name its CA in SSL_CERT_FILE");
    }
    if words.contains("InvalidContentType") || words.contains("corrupt message") {
        return format!("{words}. The server does not speak TLS: should the base URL begin with http://?");
    }
    words.into()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::endpoint::url::chat_url;

    fn place(base: &str) -> Place {
        Place::of(&chat_url(base).unwrap())
    }

    /// The proxy's URI, given these variables.
    fn proxy_for(base: &str, variables: &[(&str, &str)]) -> Result<Option<String>, String> {
        let env = |name: &str| variables.iter().find(|(n, _)| *n == name).map(|(_, value)| (*value).to_owned());
        Ok(proxy(&place(base), &env)?.map(|(_, proxy)| proxy.uri().to_string()))
    }

    #[test]
    fn proxies_go_by_scheme_and_never_to_this_machine() {
        let set = [("HTTPS_PROXY", "http://p:1"), ("http_proxy", "http://q:2")];
        assert_eq!(proxy_for("https://h/v1", &set), Ok(Some("http://p:1/".into())));
        assert_eq!(proxy_for("http://h/v1", &set), Ok(Some("http://q:2/".into())));
        assert_eq!(proxy_for("http://127.0.0.1/v1", &set), Ok(None));
        assert_eq!(proxy_for("http://h/v1", &[("ALL_PROXY", "")]), Ok(None));
    }

    #[test]
    fn no_proxy_covers_hosts_and_domains() {
        for no_proxy in ["*", "h.example", "a.b, example", ".example", "*.example"] {
            let set = [("ALL_PROXY", "http://p:1"), ("NO_PROXY", no_proxy)];
            assert_eq!(proxy_for("https://h.example/v1", &set), Ok(None), "{no_proxy}");
        }
        let set = [("ALL_PROXY", "http://p:1"), ("NO_PROXY", "xample,other")];
        assert!(proxy_for("https://h.example/v1", &set).unwrap().is_some());
    }

    #[test]
    fn proxies_that_cannot_be_used_are_named_without_their_value() {
        let why = proxy_for("https://h/v1", &[("ALL_PROXY", "socks5://me:secret@p")]).unwrap_err();
        assert!(why.starts_with("ALL_PROXY names a SOCKS proxy") && !why.contains("secret"), "{why}");
        let why = proxy_for("https://h/v1", &[("HTTPS_PROXY", "ht tp:secret")]).unwrap_err();
        assert!(why.starts_with("HTTPS_PROXY is not") && !why.contains("secret"), "{why}");
    }

    #[test]
    fn a_bad_certificate_file_is_named() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let name = file.path().to_str().unwrap().to_owned();
        let with = |file: &str, base: &str| roots(&place(base), &|_: &str| Some(file.to_owned())).map(drop);
        assert_eq!(with(&name, "https://h/v1"), Err(format!("SSL_CERT_FILE {name} holds no certificate")));
        assert!(
            with("/nowhere/ca.pem", "https://h/v1").unwrap_err().starts_with("read SSL_CERT_FILE /nowhere/ca.pem: ")
        );
        assert_eq!(with("/nowhere/ca.pem", "http://h/v1"), Ok(()));
    }
}
