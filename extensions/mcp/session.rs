//! The conversation with one server: JSON-RPC messages, both ways, over any [`Transport`].
//!
//! ```text
//! client                                   server
//!   initialize {protocolVersion} ───────────►
//!   ◄──────────────────── {protocolVersion, capabilities, instructions}
//!   notifications/initialized ──────────────►
//!   tools/list ─────────────────────────────►
//!   ◄──────────────────────────────── {tools}
//!   tools/call {name, arguments} ───────────►
//!   ◄─ notifications/progress, ping, roots/list …   answered while we wait
//!   ◄────────────────────────── {content, isError}
//! ```
//!
//! The server may ask, too, and it numbers its requests by itself, often from 0: a message with a `method` is a request
//! *of the server* whatever its `id`, and only one without is an answer. Who looks at the id first takes the server's
//! ping 1 for the answer to his own request 1.
//!
//! Left out: sampling and elicitation (a server that uses our model, or asks our person, is refused politely), and more
//! than one request under way.

use super::transport::{Heard, Lost, Transport, Wait};
use mini::cancel::Cancel;
use serde_json::{Value, json};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// The versions that are spoken here, newest first. We ask for the first and take what the server answers, if it is one
/// of them.
const VERSIONS: [&str; 4] = ["2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05"];
/// How long a server may take to get ready. An interpreter on a busy machine needs five seconds.
const READY: Duration = Duration::from_secs(15);
/// How long a server has to ask for the roots that it was offered.
const SETTLE: Duration = Duration::from_millis(1000);
/// How often we look whether it has.
const PAUSE: Duration = Duration::from_millis(5);
/// How long we wait for the telling that we wait no longer.
const FAREWELL: Duration = Duration::from_millis(200);
/// JSON-RPC: there is no such method.
const NO_METHOD: i32 = -32601;

/// The tools of a server.
pub struct Listed {
    /// As the server describes them.
    pub tools: Vec<Value>,
    /// There are further pages, which were not read.
    pub more: bool,
}

/// A conversation.
pub struct Session {
    name: String,
    transport: Box<dyn Transport>,
    /// The longest call.
    limit: Duration,
    /// Told to a server that asks for roots.
    root: PathBuf,
    /// Whether it is offered the roots.
    roots: bool,
    /// Of the last request.
    id: u64,
    /// Why the server is no more, if it is not.
    gone: Option<String>,
    /// What nobody could be shown yet.
    unsaid: String,
    /// The server was told the roots.
    knows_roots: bool,
}

impl Session {
    /// A conversation that has not begun.
    pub fn new(name: &str, transport: Box<dyn Transport>, limit: Duration, root: &Path, roots: bool) -> Session {
        let (name, root) = (name.to_owned(), root.to_owned());
        Session { name, transport, limit, root, roots, id: 0, gone: None, unsaid: String::new(), knows_roots: false }
    }

    /// What the server is called.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// What came up before there was anybody to tell: noise of the handshake, a list that has more pages.
    pub fn unsaid(&mut self) -> Option<String> {
        let text = std::mem::take(&mut self.unsaid);
        (!text.is_empty()).then(|| text.trim_end().to_owned())
    }

    /// The handshake. Returns the server's instructions, which may be empty.
    pub fn initialize(&mut self, cancel: &Cancel) -> Result<String, String> {
        let capabilities = if self.roots { json!({"roots": {}}) } else { json!({}) };
        let client = json!({"name": "mini", "version": env!("CARGO_PKG_VERSION")});
        let params = json!({"protocolVersion": VERSIONS[0], "capabilities": capabilities, "clientInfo": client});
        let result = self.quietly("initialize", params, cancel)?;
        let version = result["protocolVersion"].as_str().unwrap_or("none");
        if !VERSIONS.contains(&version) {
            return Err(format!("speaks version {version} of MCP; known here are {}", VERSIONS.join(", ")));
        }
        self.transport.agreed(version);
        let ready = json!({"jsonrpc": "2.0", "method": "notifications/initialized"});
        let wait = Wait { until: Instant::now() + READY, cancel };
        self.transport.send(&ready, &wait).map_err(|lost| say("notifications/initialized", lost, READY))?;
        if self.roots {
            self.settle(cancel)?;
        }
        Ok(result["instructions"].as_str().unwrap_or_default().trim().to_owned())
    }

    /// The first page of tools.
    pub fn list_tools(&mut self, cancel: &Cancel) -> Result<Listed, String> {
        let page = self.quietly("tools/list", json!({}), cancel)?;
        let tools = page["tools"].as_array().cloned().ok_or("tools/list gave no list of tools")?;
        let more = page["nextCursor"].is_string();
        if more {
            self.unsaid.push_str(&format!(
                "{} has more tools than the {} on its first page; the rest is not offered\n",
                self.name,
                tools.len()
            ));
        }
        Ok(Listed { tools, more })
    }

    /// Calls a tool. `show` gets what the server says on the way. The result may be an error of the tool (`isError`);
    /// `Err` is one of the protocol or of the connection.
    pub fn call_tool(
        &mut self,
        tool: &str,
        arguments: Value,
        cancel: &Cancel,
        show: &mut dyn FnMut(String),
    ) -> Result<Value, String> {
        // The token asks for news of the progress; the number of the request is as good as any.
        let params = json!({"name": tool, "arguments": arguments, "_meta": {"progressToken": self.id + 1}});
        self.request("tools/call", params, self.limit, cancel, show)
    }

    /// A request before there is anybody to show something to: the first thing that would have been shown is kept.
    fn quietly(&mut self, method: &str, params: Value, cancel: &Cancel) -> Result<Value, String> {
        let mut said = String::new();
        let result = self.request(method, params, READY, cancel, &mut |text| keep_first(&mut said, text));
        self.unsaid.push_str(&said);
        result.map_err(|why| if said.is_empty() { why } else { format!("{why}; {}", said.trim_end()) })
    }

    fn request(
        &mut self,
        method: &str,
        params: Value,
        limit: Duration,
        cancel: &Cancel,
        show: &mut dyn FnMut(String),
    ) -> Result<Value, String> {
        if let Some(why) = &self.gone {
            return Err(format!("{why}; it is not started again in this run"));
        }
        let answer = match self.attempt(method, &params, limit, cancel, show) {
            // What was refused for want of a session has not been done, and can be asked for again.
            Err(Lost::Forgotten) if method != "initialize" => {
                show("(the server has forgotten the session; a new one begins)\n".into());
                self.initialize(cancel)?;
                self.attempt(method, &params, limit, cancel, show)
            }
            answer => answer,
        };
        match answer {
            Ok(answer) => result_of(method, answer),
            Err(lost) => Err(say(method, lost, limit)),
        }
    }

    /// Sends a request once; remembers, and tells the server, why there is no answer.
    fn attempt(
        &mut self,
        method: &str,
        params: &Value,
        limit: Duration,
        cancel: &Cancel,
        show: &mut dyn FnMut(String),
    ) -> Result<Value, Lost> {
        self.id += 1;
        let wait = Wait { until: Instant::now() + limit, cancel };
        let request = json!({"jsonrpc": "2.0", "id": self.id, "method": method, "params": params});
        let answer = self.exchange(&request, &wait, show);
        match &answer {
            Err(Lost::Gone(why)) => self.gone = Some(why.clone()),
            Err(lost @ (Lost::TimedOut | Lost::Interrupted)) if method != "initialize" => self.give_up(lost),
            _ => {}
        }
        answer
    }

    /// Sends a request and waits for its answer; deals with whatever else comes before.
    fn exchange(&mut self, request: &Value, wait: &Wait, show: &mut dyn FnMut(String)) -> Result<Value, Lost> {
        // What came since the last call; a server that never pauses does not keep us from ours.
        while wait.over().is_none()
            && let Some(heard) = self.transport.unasked()
        {
            self.deal_with(heard, wait, show)?;
        }
        self.transport.send(request, wait)?;
        loop {
            let heard = self.transport.next(wait)?;
            if let Some(message) = self.deal_with(heard, wait, show)?
                && message["id"] == request["id"]
            {
                return Ok(message);
            }
        }
    }

    /// Answers the server's requests, shows its news, and hands back what is an answer to us, if only to something that
    /// we no longer wait for.
    fn deal_with(&mut self, heard: Heard, wait: &Wait, show: &mut dyn FnMut(String)) -> Result<Option<Value>, Lost> {
        let message = match heard {
            Heard::Message(message) => message,
            Heard::Noise(line) => {
                show(format!("(not a message of MCP, skipped) {line}\n"));
                return Ok(None);
            }
        };
        // The method first, then the id: see above.
        match (message["method"].as_str(), message.get("id")) {
            (Some(method), Some(id)) => {
                self.knows_roots |= method == "roots/list";
                self.transport.send(&answer(method, id, &self.root), wait)?;
            }
            (Some(method), None) => news(method, &message["params"]).into_iter().for_each(show),
            (None, _) => return Ok(Some(message)),
        }
        Ok(None)
    }

    /// Gives a server that was offered the roots the time to ask for them: some obey other limits until they know, and
    /// the first call should not come before that. It need not ask at all.
    fn settle(&mut self, cancel: &Cancel) -> Result<(), String> {
        let wait = Wait { until: Instant::now() + SETTLE, cancel };
        let mut said = String::new();
        while wait.over().is_none() && !self.knows_roots {
            match self.transport.unasked() {
                Some(heard) => {
                    let dealt = self.deal_with(heard, &wait, &mut |text| keep_first(&mut said, text));
                    dealt.map_err(|lost| say("roots/list", lost, SETTLE))?;
                }
                None => std::thread::sleep(PAUSE),
            }
        }
        self.unsaid.push_str(&said);
        // A round trip: when this is answered, our answer has been read.
        self.quietly("ping", json!({}), cancel).map(drop)
    }

    /// Tells the server that nobody waits any more. It may go on nevertheless; its answer will be passed over.
    fn give_up(&mut self, lost: &Lost) {
        let reason = if *lost == Lost::TimedOut { "it took too long" } else { "the person stopped it" };
        let params = json!({"requestId": self.id, "reason": reason});
        let (never, until) = (Cancel::new(), Instant::now() + FAREWELL);
        let cancelled = json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": params});
        let wait = Wait { until, cancel: &never };
        let _ = self.transport.send(&cancelled, &wait); // a courtesy: whether it arrives changes nothing for us
    }
}

fn keep_first(kept: &mut String, text: String) {
    if kept.is_empty() {
        *kept = text;
    }
}

fn result_of(method: &str, mut answer: Value) -> Result<Value, String> {
    match (answer.get_mut("result").map(Value::take), &answer["error"]) {
        (Some(result), _) => Ok(result),
        (None, Value::Null) => Err(format!("{method}: the answer has neither result nor error")),
        (None, error) => {
            Err(format!("{method}: {} (code {})", error["message"].as_str().unwrap_or("no message"), error["code"]))
        }
    }
}

fn say(method: &str, lost: Lost, limit: Duration) -> String {
    match lost {
        Lost::TimedOut => format!("{method}: no answer within {limit:?}"),
        Lost::Interrupted => format!("{method}: interrupted"),
        Lost::Failed(why) => format!("{method}: {why}"),
        Lost::Forgotten => format!("{method}: the server forgets every session at once"),
        Lost::Gone(why) => why,
    }
}

/// What we answer when the server asks.
fn answer(method: &str, id: &Value, root: &Path) -> Value {
    let result = match method {
        "ping" => json!({}),
        "roots/list" => json!({"roots": [{"uri": file_uri(root), "name": "workspace"}]}),
        _ => {
            let error = json!({"code": NO_METHOD, "message": format!("mini does not offer {method}")});
            return json!({"jsonrpc": "2.0", "id": id, "error": error});
        }
    };
    json!({"jsonrpc": "2.0", "id": id, "result": result})
}

/// What a notification has to say to the person.
fn news(method: &str, params: &Value) -> Option<String> {
    let text = |value: &Value| value.as_str().map_or_else(|| value.to_string(), str::to_owned);
    match method {
        "notifications/progress" => {
            let of = params.get("total").map_or(String::new(), |total| format!("/{total}"));
            let message = params.get("message").map_or(String::new(), |message| format!(" {}", text(message)));
            Some(format!("{}{of}{message}\n", params["progress"]))
        }
        "notifications/message" => {
            Some(format!("[{}] {}\n", params["level"].as_str().unwrap_or("log"), text(&params["data"])))
        }
        _ => None,
    }
}

/// `file:///home/me/my%20work`
fn file_uri(path: &Path) -> String {
    let plain = |b: &u8| b.is_ascii_alphanumeric() || b"/-._~".contains(b);
    let encode = |b: &u8| if plain(b) { char::from(*b).to_string() } else { format!("%{b:02X}") };
    format!("file://{}", path.as_os_str().as_bytes().iter().map(encode).collect::<String>())
}

#[cfg(test)]
mod tests;
