//! The conversation, with a server that says what it is told to.

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
    /// The roots are what servers ask for unasked.
    fn unasked(&mut self) -> Option<Heard> {
        let is_roots = |m: &Value| m["method"] == "roots/list" && m["id"] == 0;
        let next = self.says.front().is_some_and(|next| matches!(next, Ok(Heard::Message(m)) if is_roots(m)));
        if next { self.says.pop_front()?.ok() } else { None }
    }
}

type HeardMessages = Rc<RefCell<Vec<Value>>>;

fn session(says: Vec<Value>) -> (Session, HeardMessages) {
    let heard: HeardMessages = Rc::default();
    let says = says.into_iter().map(|message| match message {
        Value::String(line) => Ok(Heard::Noise(line)),
        Value::Null => Err(Lost::TimedOut),
        Value::Number(_) => Err(Lost::Forgotten), // 404
        message => Ok(Heard::Message(message)),
    });
    let transport = Scripted { says: says.collect(), heard: Rc::clone(&heard) };
    (Session::new("s", Box::new(transport), Duration::from_secs(5), Path::new("/my work"), false), heard)
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
        assert_eq!(session.initialize(&Cancel::new()), Ok("Look first.".into()));
        let heard = heard.borrow();
        assert_eq!(heard[0]["params"]["protocolVersion"], "2025-11-25");
        assert_eq!(heard[0]["params"]["capabilities"], json!({}));
        assert_eq!(heard[1], json!({"jsonrpc": "2.0", "method": "notifications/initialized"}));
    }
    let why = session(vec![hello("1999-01-01")]).0.initialize(&Cancel::new()).unwrap_err();
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
fn a_server_that_is_offered_the_roots_knows_them_before_the_first_call() {
    let (mut session, heard) = session(vec![
        hello("2025-11-25"),
        json!({"id": 0, "method": "roots/list"}), // comes unasked, see `Scripted`
        json!({"id": 2, "result": {}}),
    ]);
    session.roots = true;
    session.initialize(&Cancel::new()).unwrap();
    let methods: Vec<Value> = heard.borrow().iter().map(|message| message["method"].clone()).collect();
    assert_eq!(methods, [json!("initialize"), json!("notifications/initialized"), Value::Null, json!("ping")]);
    assert_eq!(heard.borrow()[0]["params"]["capabilities"], json!({"roots": {}}));
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
fn a_forgotten_session_begins_anew_and_the_call_is_made_again_once() {
    let hello = json!({"id": 2, "result": {"protocolVersion": "2025-06-18"}});
    let (mut session, heard) = session(vec![json!(404), hello.clone(), json!({"id": 3, "result": "seen"})]);
    assert_eq!(call(&mut session).0, Ok(json!("seen")));
    let methods: Vec<Value> = heard.borrow().iter().map(|message| message["method"].clone()).collect();
    assert_eq!(methods, ["tools/call", "initialize", "notifications/initialized", "tools/call"]);
    let (mut session, _) = self::session(vec![json!(404), hello, json!(404)]);
    assert_eq!(call(&mut session).0, Err("tools/call: the server forgets every session at once".into()));
}

#[test]
fn a_server_that_is_gone_stays_gone_and_that_is_said() {
    let (mut session, heard) = session(vec![]);
    assert_eq!(call(&mut session).0, Err("has ended".into()));
    assert_eq!(call(&mut session).0, Err("has ended; it is not started again in this run".into()));
    assert_eq!(heard.borrow().len(), 1);
}

#[test]
fn a_further_page_is_something_to_be_said_once() {
    let page = json!({"id": 1, "result": {"tools": [{"name": "t"}], "nextCursor": "2"}});
    let (mut session, _) = session(vec![page]);
    let listed = session.list_tools(&Cancel::new()).unwrap();
    assert!(listed.more && listed.tools.len() == 1);
    let said = "s has more tools than the 1 on its first page; the rest is not offered";
    assert_eq!((session.unsaid().as_deref(), session.unsaid()), (Some(said), None));
}

#[test]
fn noise_before_a_failed_handshake_is_part_of_its_error() {
    let (mut session, _) = session(vec![json!("usage: ls [FILE]")]);
    let why = session.initialize(&Cancel::new()).unwrap_err();
    assert_eq!(why, "has ended; (not a message of MCP, skipped) usage: ls [FILE]");
}

include!("../../../labs/04-mcp/solution/paging.rs");

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
