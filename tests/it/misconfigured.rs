//! What goes wrong before class: each mistake in the set-up gives one message that names the cause, the URL and the next
//! step, and ends the run with 1 (or with 2 where the setting itself cannot work).

use crate::support::{KEY, Test};
use serde_json::{Value, json};
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::process::{Child, Command, Stdio};

/// A mistake, and what its message has to say.
struct Row {
    what: &'static str,
    env: Vec<(&'static str, String)>,
    /// The server's answer, where it gives one.
    response: Option<Value>,
    exit: i32,
    cause: &'static str,
    /// `URL` stands for the one that is asked.
    url: String,
    next: &'static str,
}

fn row(what: &'static str, cause: &'static str, next: &'static str) -> Row {
    Row { what, env: vec![], response: None, exit: 1, cause, url: "/v1/chat/completions".into(), next }
}

impl Row {
    fn answers(mut self, status: u16, body: &str) -> Row {
        self.response =
            Some(json!({"status": status, "headers": {"Content-Type": "application/json"}, "chunks": [body]}));
        self
    }

    fn env(mut self, name: &'static str, value: impl Into<String>) -> Row {
        self.env.push((name, value.into()));
        self
    }

    /// At another base URL.
    fn at(mut self, base: &str) -> Row {
        self.url = format!("{base}/chat/completions");
        self.env("MINI_BASE_URL", base)
    }

    /// The setting itself cannot work: exit 2, before anything is asked.
    fn unusable(mut self) -> Row {
        self.exit = 2;
        self.url.clear();
        self
    }

    /// What is wrong with the message.
    fn play(self) -> Vec<String> {
        let mut test = Test::new().args(["hi"]).env("MINI_IDLE_TIMEOUT_MS", "3000");
        if let Some(response) = &self.response {
            test = test.script(&json!({"response": response, "repeat": 8}).to_string());
        }
        test = self.env.iter().fold(test, |test, (name, value)| test.env(name, value));
        let ran = test.run();
        let stderr = String::from_utf8_lossy(&ran.output.stderr).into_owned();
        let message = stderr.lines().rfind(|line| line.contains(self.cause)).unwrap_or_default().to_owned();
        let said = [self.cause, &self.url, self.next].map(|part| (part, message.contains(part)));
        let mut wrong: Vec<String> =
            said.iter().filter(|(_, is_said)| !is_said).map(|(part, _)| format!("{part:?} is not said")).collect();
        if ran.output.status.code() != Some(self.exit) {
            wrong.push(format!("it ended with {}", ran.output.status));
        }
        wrong.into_iter().map(|wrong| format!("{}: {wrong} in\n{stderr}", self.what)).collect()
    }
}

/// A port where nobody listens.
fn free_port() -> u16 {
    TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port()
}

/// A server that answers everything with these bytes, and closes.
fn server(answer: &'static [u8]) -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    std::thread::spawn(move || {
        for mut stream in listener.incoming().flatten() {
            let _ = stream.read(&mut [0; 4096]);
            let _ = stream.write_all(answer);
            // Closing with bytes unread would reset the connection, and the answer with it.
            let _ = stream.shutdown(std::net::Shutdown::Write);
            let _ = stream.set_read_timeout(Some(std::time::Duration::from_millis(300)));
            while stream.read(&mut [0; 4096]).is_ok_and(|read| read > 0) {}
        }
    });
    port
}

#[test]
fn every_mistake_has_one_message_with_cause_url_and_next_step() {
    let error = |words: &str, code: &str| json!({"error": {"message": words, "code": code}}).to_string();
    let (closed, refuses) = (free_port(), server(b"HTTP/1.1 407 Proxy Authentication Required\r\n\r\n"));
    let (plain, tls) = (server(b"HTTP/1.1 400 Bad Request\r\n\r\n"), server(b"\x15\x03\x01\x00\x02\x02\x46"));
    let rows = [
        row("a wrong key", "401: Incorrect API key", "The key came from MINI_API_KEY")
            .answers(401, &error(&format!("Incorrect API key provided: {KEY}"), "invalid_api_key")),
        row("no key", "401: Missing bearer", "No key was sent: set MINI_API_KEY")
            .answers(401, &error("Missing bearer", ""))
            .env("MINI_API_KEY", ""),
        row("a wrong path", "404: Not Found", "Check the base URL: /chat/completions is appended to it.")
            .answers(404, &error("Not Found", "")),
        row("a wrong model", "404: The model `m-test` does not exist", "Choose a model with --model")
            .answers(404, &error("The model `m-test` does not exist", "model_not_found")),
        row("a web page", "an HTML page came back", "Check the base URL: it leads to a web page.")
            .answers(200, "<!DOCTYPE html><html></html>"),
        row("quota", "429: You exceeded your current quota", "Check the account's credit.")
            .answers(429, &error("You exceeded your current quota", "insufficient_quota")),
        row("context overflow", "the conversation is too long", "Start a new one")
            .answers(400, &error("This model's maximum context length is 4096 tokens", "context_length_exceeded")),
        row("nobody listens", "connection refused", "is the server running, and is the port right?")
            .at(&format!("http://127.0.0.1:{closed}/v1")),
        row("no such host", "the host nowhere.invalid cannot be looked up", "is there a network?")
            .at("http://nowhere.invalid/v1"),
        row("https to a plain server", "The server does not speak TLS", "should the base URL begin with http://?")
            .at(&format!("https://127.0.0.1:{plain}/v1")),
        row("http to a TLS server", "the server does not speak HTTP here", "should the base URL begin with https://?")
            .at(&format!("http://127.0.0.1:{tls}/v1")),
        row("a proxy that is not there", "connection refused", "HTTP_PROXY")
            .at("http://api.example/v1")
            .env("HTTP_PROXY", format!("http://127.0.0.1:{closed}")),
        row("a proxy that refuses", "the proxy refused", "HTTPS_PROXY")
            .at("https://api.example/v1")
            .env("HTTPS_PROXY", format!("http://127.0.0.1:{refuses}")),
        row("a SOCKS proxy", "ALL_PROXY names a SOCKS proxy", "name an HTTP proxy, or unset it")
            .env("MINI_BASE_URL", "http://api.example/v1")
            .env("ALL_PROXY", "socks5://127.0.0.1:1080")
            .unusable(),
        row("no scheme", "`localhost:8080`", "must begin with http:// or https://")
            .env("MINI_BASE_URL", "localhost:8080")
            .unusable(),
        row("a lost CA file", "read SSL_CERT_FILE /nowhere/ca.pem", "No such file")
            .env("MINI_BASE_URL", "https://api.example/v1")
            .env("SSL_CERT_FILE", "/nowhere/ca.pem")
            .unusable(),
    ];
    let wrong: Vec<String> = rows.into_iter().flat_map(Row::play).collect();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// A TLS server with a certificate of its own CA, from the openssl program.
struct OwnCa {
    dir: tempfile::TempDir,
    server: Child,
    port: u16,
}

impl OwnCa {
    /// `None` where there is no openssl that can do it.
    fn start() -> Option<OwnCa> {
        let dir = tempfile::tempdir().unwrap();
        let openssl = |words: &str| {
            let mut command = Command::new("openssl");
            command.args(words.split(' ')).current_dir(dir.path()).stdin(Stdio::null());
            command.stdout(Stdio::null()).stderr(Stdio::null());
            command
        };
        let curve = "-newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 2";
        std::fs::write(dir.path().join("san"), "subjectAltName=DNS:localhost\nbasicConstraints=CA:FALSE\n").ok()?;
        for words in [
            format!("req -x509 {curve} -subj /CN=test-ca -keyout ca.key -out ca.pem"),
            format!("req -new {curve} -subj /CN=localhost -keyout key.pem -out req.pem"),
            "x509 -req -in req.pem -CA ca.pem -CAkey ca.key -CAcreateserial -days 2 -extfile san -out cert.pem".into(),
        ] {
            openssl(&words).status().ok().filter(|status| status.success())?;
        }
        let port = free_port();
        // It sends each line back reversed: that it answers is all that is wanted.
        let server =
            openssl(&format!("s_server -quiet -rev -accept {port} -cert cert.pem -key key.pem")).spawn().ok()?;
        let own = OwnCa { dir, server, port };
        let is_up = (0..100).any(|_| {
            std::thread::sleep(std::time::Duration::from_millis(20));
            TcpStream::connect(("127.0.0.1", own.port)).is_ok()
        });
        is_up.then_some(own)
    }

    fn file(&self, name: &str) -> String {
        Path::new(self.dir.path()).join(name).display().to_string()
    }
}

impl Drop for OwnCa {
    fn drop(&mut self) {
        let _ = self.server.kill();
        let _ = self.server.wait();
    }
}

#[test]
fn a_certificate_of_an_own_ca_is_refused_until_ssl_cert_file_names_it() {
    let Some(own) = OwnCa::start() else {
        eprintln!("skipped: no openssl that makes a certificate and serves it");
        return;
    };
    let at = |what, cause, next| row(what, cause, next).at(&format!("https://localhost:{}/v1", own.port));
    let rows = [
        at("an unknown CA", "certificate", "name its CA in SSL_CERT_FILE"),
        at("the CA is named", "the server does not speak HTTP here", "is the port right?")
            .env("SSL_CERT_FILE", own.file("ca.pem")),
        at("another name", "certificate", "Does the base URL name the host as its certificate does?")
            .at(&format!("https://127.0.0.1:{}/v1", own.port))
            .env("SSL_CERT_FILE", own.file("ca.pem")),
        at("no certificate in the file", "holds no certificate", "SSL_CERT_FILE")
            .env("SSL_CERT_FILE", own.file("san"))
            .unusable(),
    ];
    let wrong: Vec<String> = rows.into_iter().flat_map(Row::play).collect();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
