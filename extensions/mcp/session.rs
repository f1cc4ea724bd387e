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
//! *of the server* whatever its `id`, and only one without is an answer. Who looks at the id first takes the server's ping
//! 1 for the answer to his own request 1.
//!
//! Left out: sampling and elicitation (a server that uses our model, or asks our person, is refused politely), and more
//! than one request under way.

use mini::cancel::Cancel;
use serde_json::{Value, json};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// The versions that are spoken here, newest first. We ask for the first and take what the server answers, if it is one
/// of them.
const VERSIONS: [&str; 4] = ["2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05"];
/// How long a server may take to get ready. An interpreter on a busy machine needs several seconds.
const READY: Duration = Duration::from_secs(30);
/// How long we wait for the telling that we wait no longer.
const FAREWELL: Duration = Duration::from_millis(200);
/// JSON-RPC: there is no such method.
const NO_METHOD: i32 = -32601;

/// Carries messages.
pub trait Transport {
    /// Sends one message. If it is a request, what [`next`](Transport::next) gives may be part of its answer.
    fn send(&mut self, message: &Value, wait: &Wait) -> Result<(), Lost>;
    /// Waits for the server's next message.
    fn next(&mut self, wait: &Wait) -> Result<Heard, Lost>;
    /// Which version of the protocol was agreed on.
    fn agreed(&mut self, _version: &str) {}
}

/// How long to wait, and whether to stop before.
pub struct Wait<'a> {
    /// No longer than until then.
    pub until: Instant,
    /// Nor when this is raised.
    pub cancel: &'a Cancel,
}

impl Wait<'_> {
    /// Why to wait no longer, if there is a reason.
    pub fn over(&self) -> Option<Lost> {
        match (self.cancel.is_raised(), Instant::now() >= self.until) {
            (true, _) => Some(Lost::Interrupted),
            (_, true) => Some(Lost::TimedOut),
            _ => None,
        }
    }
}

/// What came from a server.
#[derive(Debug)]
pub enum Heard {
    /// A message.
    Message(Value),
    /// Something that is no message: a `print` in the wrong place. It is shown, and does no harm.
    Noise(String),
}

/// Why no message came.
#[derive(Debug, PartialEq, Eq)]
pub enum Lost {
    /// It took too long.
    TimedOut,
    /// The run was told to stop.
    Interrupted,
    /// This request failed; the next may not.
    Failed(String),
    /// The server is no more.
    Gone(String),
}

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
    /// Of the last request.
    id: u64,
    /// Why the server is no more, if it is not.
    gone: Option<String>,
    /// What nobody could be shown yet.
    unsaid: String,
}

impl Session {
    /// A conversation that has not begun.
    pub fn new(name: &str, transport: Box<dyn Transport>, limit: Duration, root: &Path) -> Session {
        let (name, root) = (name.to_owned(), root.to_owned());
        Session { name, transport, limit, root, id: 0, gone: None, unsaid: String::new() }
    }

    /// What the server is called.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The handshake. Returns the server's instructions, which may be empty.
    pub fn initialize(&mut self, roots: bool, cancel: &Cancel) -> Result<String, String> {
        let capabilities = if roots { json!({"roots": {}}) } else { json!({}) };
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

    /// Calls a tool. `show` gets what the server says on the way. The result may be an error of the tool (`isError`); `Err`
    /// is one of the protocol or of the connection.
    pub fn call_tool(
        &mut self,
        tool: &str,
        arguments: Value,
        cancel: &Cancel,
        show: &mut dyn FnMut(String),
    ) -> Result<Value, String> {
        if !self.unsaid.is_empty() {
            show(std::mem::take(&mut self.unsaid));
        }
        // The token asks for news of the progress; the number of the request is as good as any.
        let params = json!({"name": tool, "arguments": arguments, "_meta": {"progressToken": self.id + 1}});
        self.request("tools/call", params, self.limit, cancel, show)
    }

    /// A request before there is anybody to show something to: that is done with the first call.
    fn quietly(&mut self, method: &str, params: Value, cancel: &Cancel) -> Result<Value, String> {
        let mut said = String::new();
        let result = self.request(method, params, READY, cancel, &mut |text| said.push_str(&text));
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
        self.id += 1;
        let wait = Wait { until: Instant::now() + limit, cancel };
        let request = json!({"jsonrpc": "2.0", "id": self.id, "method": method, "params": params});
        match self.exchange(&request, &wait, show) {
            Ok(answer) => result_of(method, answer),
            Err(lost) => {
                match &lost {
                    Lost::Gone(why) => self.gone = Some(why.clone()),
                    Lost::TimedOut | Lost::Interrupted if method != "initialize" => self.give_up(&lost),
                    _ => {}
                }
                Err(say(method, lost, limit))
            }
        }
    }

    /// Sends a request and waits for its answer; deals with whatever else comes before.
    fn exchange(&mut self, request: &Value, wait: &Wait, show: &mut dyn FnMut(String)) -> Result<Value, Lost> {
        self.transport.send(request, wait)?;
        loop {
            let message = match self.transport.next(wait)? {
                Heard::Message(message) => message,
                Heard::Noise(line) => {
                    show(format!("(not a message of MCP, skipped) {line}\n"));
                    continue;
                }
            };
            // The method first, then the id: see above.
            match (message["method"].as_str(), message.get("id")) {
                (Some(method), Some(id)) => {
                    let answer = answer(method, id, &self.root);
                    self.transport.send(&answer, wait)?;
                }
                (Some(method), None) => news(method, &message["params"]).into_iter().for_each(&mut *show),
                (None, Some(id)) if *id == request["id"] => return Ok(message),
                _ => {} // an answer that we no longer wait for
            }
        }
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
mod tests {
    use super::*;
    use std::cell::RefCell;
    use std::collections::VecDeque;
    use std::rc::Rc;

    /// Says what it is told to, and keeps what it hears.
    struct Scripted {
        says: VecDeque<Result<Heard, Lost>>,
        heard: Rc<RefCell<Vec<Value>>>,
    }

    impl Transport for Scripted {
        fn send(&mut self, message: &Value, _: &Wait) -> Result<(), Lost> {
            self.heard.borrow_mut().push(message.clone());
            Ok(())
        }
        fn next(&mut self, _: &Wait) -> Result<Heard, Lost> {
            self.says.pop_front().unwrap_or_else(|| Err(Lost::Gone("has ended".into())))
        }
    }

    type HeardMessages = Rc<RefCell<Vec<Value>>>;

    fn session(says: Vec<Value>) -> (Session, HeardMessages) {
        let heard: HeardMessages = Rc::default();
        let says = says.into_iter().map(|message| match message {
            Value::String(line) => Ok(Heard::Noise(line)),
            Value::Null => Err(Lost::TimedOut),
            message => Ok(Heard::Message(message)),
        });
        let transport = Scripted { says: says.collect(), heard: Rc::clone(&heard) };
        (Session::new("s", Box::new(transport), Duration::from_secs(5), Path::new("/my work")), heard)
    }

    fn hello(version: &str) -> Value {
        json!({"id": 1, "result": {"protocolVersion": version, "instructions": " Look first. "}})
    }

    fn call(session: &mut Session) -> (Result<Value, String>, Vec<String>) {
        let mut shown = Vec::new();
        let result = session.call_tool("t", json!({"a": 1}), &Cancel::new(), &mut |text| shown.push(text));
        (result, shown)
    }

    #[test]
    fn the_handshake_asks_for_the_newest_version_and_takes_a_known_one() {
        for version in VERSIONS {
            let (mut session, heard) = session(vec![hello(version)]);
            assert_eq!(session.initialize(false, &Cancel::new()), Ok("Look first.".into()));
            let heard = heard.borrow();
            assert_eq!(heard[0]["params"]["protocolVersion"], "2025-11-25");
            assert_eq!(heard[0]["params"]["capabilities"], json!({}));
            assert_eq!(heard[1], json!({"jsonrpc": "2.0", "method": "notifications/initialized"}));
        }
        let why = session(vec![hello("1999-01-01")]).0.initialize(true, &Cancel::new()).unwrap_err();
        assert!(why.starts_with("speaks version 1999-01-01 of MCP; known here are 2025-11-25, "), "{why}");
    }

    #[test]
    fn requests_of_the_server_are_answered_although_their_ids_are_ours() {
        let asks = ["ping", "roots/list", "sampling/createMessage"].map(|method| json!({"id": 1, "method": method}));
        let (mut session, heard) = session([asks.to_vec(), vec![json!({"id": 1, "result": {"content": []}})]].concat());
        assert_eq!(call(&mut session).0, Ok(json!({"content": []})));
        let heard = heard.borrow();
        assert_eq!(heard[1], json!({"jsonrpc": "2.0", "id": 1, "result": {}}));
        assert_eq!(heard[2]["result"]["roots"], json!([{"uri": "file:///my%20work", "name": "workspace"}]));
        assert_eq!(heard[3]["error"]["code"], NO_METHOD);
        assert_eq!(heard.len(), 4);
    }

    #[test]
    fn progress_log_and_noise_are_shown() {
        let (mut session, heard) = session(vec![
            json!({"method": "notifications/progress", "params": {"progress": 1, "total": 3, "message": "half"}}),
            json!({"method": "notifications/progress", "params": {"progress": 2}}),
            json!({"method": "notifications/message", "params": {"level": "info", "data": {"a": 1}}}),
            json!({"method": "notifications/tools/list_changed"}),
            json!("Debugging!"),
            json!({"id": 77, "result": {}}),
            json!({"id": 1, "result": {}}),
        ]);
        let (result, shown) = call(&mut session);
        assert_eq!(result, Ok(json!({})));
        let skipped = "(not a message of MCP, skipped) Debugging!\n";
        assert_eq!(shown, ["1/3 half\n", "2\n", "[info] {\"a\":1}\n", skipped]);
        assert_eq!(heard.borrow()[0]["params"]["_meta"]["progressToken"], 1);
    }

    #[test]
    fn an_error_of_the_protocol_is_told_with_its_code() {
        let (mut session, _) =
            session(vec![json!({"id": 1, "error": {"code": -32602, "message": "Unknown tool"}}), json!({"id": 2})]);
        assert_eq!(call(&mut session).0, Err("tools/call: Unknown tool (code -32602)".into()));
        assert_eq!(call(&mut session).0, Err("tools/call: the answer has neither result nor error".into()));
    }

    #[test]
    fn a_call_that_took_too_long_is_taken_back_and_the_next_one_goes_on() {
        let (mut session, heard) =
            session(vec![Value::Null, json!({"id": 1, "result": "late"}), json!({"id": 2, "result": "in time"})]);
        assert_eq!(call(&mut session).0, Err("tools/call: no answer within 5s".into()));
        assert_eq!(heard.borrow()[1]["method"], "notifications/cancelled");
        assert_eq!(heard.borrow()[1]["params"]["requestId"], 1);
        assert_eq!(call(&mut session).0, Ok(json!("in time")));
    }

    #[test]
    fn a_server_that_is_gone_stays_gone_and_that_is_said() {
        let (mut session, heard) = session(vec![]);
        assert_eq!(call(&mut session).0, Err("has ended".into()));
        assert_eq!(call(&mut session).0, Err("has ended; it is not started again in this run".into()));
        assert_eq!(heard.borrow().len(), 1);
    }

    #[test]
    fn a_further_page_is_said_with_the_first_call() {
        let page = json!({"id": 1, "result": {"tools": [{"name": "t"}], "nextCursor": "2"}});
        let (mut session, _) = session(vec![page, json!({"id": 2, "result": {}})]);
        let listed = session.list_tools(&Cancel::new()).unwrap();
        assert!(listed.more && listed.tools.len() == 1);
        assert_eq!(call(&mut session).1, ["s has more tools than the 1 on its first page; the rest is not offered\n"]);
    }

    #[test]
    fn noise_before_a_failed_handshake_is_part_of_its_error() {
        let (mut session, _) = session(vec![json!("usage: ls [FILE]")]);
        let why = session.initialize(false, &Cancel::new()).unwrap_err();
        assert_eq!(why, "has ended; (not a message of MCP, skipped) usage: ls [FILE]");
    }

    include!("../../labs/04-mcp/solution/paging.rs");

    #[test]
    fn the_solution_of_exercise_b_reads_every_page() {
        let page = |id: u64, name: &str, next: Option<&str>| json!({"id": id, "result": {"tools": [{"name": name}], "nextCursor": next}});
        let (mut session, heard) = session(vec![page(1, "a", Some("x")), page(2, "b", Some("y")), page(3, "c", None)]);
        let listed = session.list_all_tools(&Cancel::new()).unwrap();
        assert_eq!((listed.tools.len(), listed.more), (3, false));
        assert_eq!(heard.borrow()[2]["params"], json!({"cursor": "y"}));
        let endless = (1..=101).map(|id| page(id, "a", Some("again"))).collect();
        assert!(self::session(endless).0.list_all_tools(&Cancel::new()).is_err());
    }
}
