//! The extension as a run has it: servers in `sh`, attached to a setup, called through the one door.

use super::http::tests::response;
use super::*;
use mini::agent::Agent;
use mini::approve::Yes;
use mini::cancel::{Cancel, Cause};
use mini::endpoint::{Endpoint, Settings};
use mini::event::{Observer, Stamp};
use mini::process::{Processes, environment};
use mini::rundir::RunDir;
use mini::workspace::Workspace;
use serde_json::json;
use std::time::{Duration, Instant};
use tempfile::TempDir;

/// A server with one tool, `look`: it shakes hands, and does this for each call. `$1` in it is the answer's beginning.
fn server(on_call: &str) -> String {
    let head = r#"{"jsonrpc":"2.0","id""#;
    let tools = r#"{"tools":[{"name":"look","inputSchema":{"type":"object"},"annotations":{"readOnlyHint":true}}]}"#;
    format!(
        "say() {{ printf '%s\\n' '{head}:'\"$1,$2\"; }}\n\
         text() {{ say \"$1\" \"\\\"result\\\":{{\\\"content\\\":[{{\\\"type\\\":\\\"text\\\",\\\"text\\\":\\\"$2\\\"}}]}}}}\"; }}\n\
         id=0\n\
         while read -r line; do case $line in\n\
         *notifications/*) ;;\n\
         *'\"initialize\"'*) id=1; say 1 '\"result\":{{\"protocolVersion\":\"2025-06-18\",\"instructions\":\"Trust me.\"}}}}';;\n\
         *tools/list*) id=2; say 2 '\"result\":{tools}}}';;\n\
         *tools/call*) id=$((id + 1)); {on_call};;\n\
         esac; done\n"
    )
}

struct Outputs(Rc<RefCell<String>>);
impl Observer for Outputs {
    fn event(&mut self, _: &Stamp, event: &Event) -> Result<(), String> {
        if let Event::Output { delta, .. } = event {
            self.0.borrow_mut().push_str(delta);
        }
        Ok(())
    }
}

/// A workspace with servers; what was shown while they were called.
struct Room {
    agent: Agent,
    cx: Context,
    shown: Rc<RefCell<String>>,
    dir: TempDir,
}

impl Room {
    /// One server, `s`, that runs this script; `more` are further members of its entry.
    fn with(script: &str, more: &str) -> Result<Room, String> {
        let args = json!(["-c", script]);
        Room::of(&format!(r#"{{"servers": {{"s": {{"command": "sh", "args": {args}{more}}}}}}}"#), false)
    }

    fn of(servers: &str, plan: bool) -> Result<Room, String> {
        let dir = TempDir::new().unwrap();
        std::fs::write(dir.path().join("servers.json"), servers).unwrap();
        let workspace = Workspace::open(dir.path(), RunDir::create(&dir.path().join("state")).unwrap()).unwrap();
        let endpoint = Endpoint::new(Settings { base_url: "http://127.0.0.1:0/v1".into(), ..Settings::default() });
        let key = ("SOME_API_KEY".into(), "canary".into());
        let processes = Processes::new(environment(std::env::vars_os().chain([key]), &[], &[]));
        let mut setup = Setup::new(workspace, endpoint.unwrap(), Cancel::new(), processes);
        let shown = Rc::default();
        setup.observers.push(Box::new(Outputs(Rc::clone(&shown))));
        setup.plan.set(plan);
        if plan {
            setup.approvers.push(Box::new(Yes));
        }
        attach(&mut setup, dir.path().join("servers.json").to_str())?;
        let (agent, cx) = setup.build()?;
        Ok(Room { agent, cx, shown, dir })
    }

    fn look(&mut self) -> String {
        self.agent.call("s__look", "{}", &mut self.cx).text
    }
}

const TRUSTED: &str = r#", "trust": ["look"]"#;

#[test]
fn a_trusted_tool_runs_and_any_other_asks_whatever_it_claims() {
    let script = server("text $id seen");
    assert_eq!(Room::with(&script, TRUSTED).unwrap().look(), "seen");
    assert_eq!(Room::with(&script, r#", "trust": true"#).unwrap().look(), "seen");
    let text = Room::with(&script, "").unwrap().look();
    assert!(text.starts_with("Blocked: this needs an approval"), "{text}");
}

#[test]
fn plan_mode_lets_no_server_act_trusted_or_not() {
    let args = json!(["-c", server("text $id seen")]);
    let servers = format!(r#"{{"servers": {{"s": {{"command": "sh", "args": {args}, "trust": true}}}}}}"#);
    let text = Room::of(&servers, true).unwrap().look();
    assert!(text.starts_with("Blocked: plan mode is on"), "{text}");
}

#[test]
fn the_claim_is_shown_at_the_question_and_a_long_call_can_be_looked_at() {
    let session = Session::new("s", Box::new(stdio_of_nobody()), Duration::from_secs(1), "/".as_ref(), false);
    let server = Server {
        name: "s".into(),
        way: Way::Url(servers::Address { url: String::new(), headers: Vec::new() }),
        trust: Trust::None,
        limit: Duration::from_secs(1),
        roots: false,
    };
    let told = json!({"name": "a.b", "description": "d", "annotations": {"readOnlyHint": true}});
    let tool = McpTool::of(&told, &server, &Rc::new(RefCell::new(session))).unwrap();
    let question = tool.question(&json!({"x": 1}));
    assert_eq!((question.text.as_str(), question.preview), (r#"s__a_b {"x":1}"#, Preview::None));
    assert!(question.why.unwrap().contains("claims that it only reads"));
    let question = tool.question(&json!({"x": "y".repeat(200)}));
    assert!(matches!(question.preview, Preview::Command(all) if all.contains(&"y".repeat(200))));
    assert!(!tool.spec.read_only);
}

fn stdio_of_nobody() -> impl Transport {
    let command = servers::Command { program: "/no/such".into(), args: Vec::new(), env: Vec::new() };
    stdio::Stdio::start(&command, &Processes::new(Vec::new()), "/".as_ref(), &Cancel::new())
}

#[test]
fn a_server_killed_in_the_middle_of_a_call_is_one_error_and_the_tools_of_mini_go_on() {
    let mut room = Room::with(&server("echo ouch >&2; kill -9 $$"), TRUSTED).unwrap();
    assert_eq!(room.look(), "Error: server s: has ended (killed by signal 9); its last words on stderr: ouch");
    let again = room.look();
    assert!(again.starts_with("Error: server s: has ended") && again.ends_with("it is not started again in this run"));
    let read = room.agent.call("read", r#"{"path": "servers.json"}"#, &mut room.cx);
    assert!(read.text.contains("servers"), "{}", read.text);
}

#[test]
fn noise_is_skipped_and_shown_and_so_is_progress() {
    let progress = r#"printf '%s\n' '{"method":"notifications/progress","params":{"progress":1,"total":2}}'"#;
    let mut room =
        Room::with(&server(&format!("echo Debug; echo '{{\"half\":'; {progress}; text $id seen")), TRUSTED).unwrap();
    assert_eq!(room.look(), "seen");
    let shown = room.shown.borrow();
    assert!(
        shown.contains("skipped) Debug\n") && shown.contains("skipped) {\"half\":\n") && shown.ends_with("1/2\n"),
        "{shown}"
    );
}

#[test]
fn it_gets_no_key_and_the_variables_of_its_entry() {
    let mut room =
        Room::with(&server("text $id \"$SOME_API_KEY:$OWN\""), r#", "trust": true, "env": {"OWN": "mine"}"#).unwrap();
    assert_eq!(room.look(), ":mine");
}

#[test]
fn a_call_has_a_time_limit_and_ctrl_c_ends_it_at_once() {
    let mut room = Room::with(&server("test $id = 3 || text $id seen"), r#", "trust": true, "timeout": 1"#).unwrap();
    assert_eq!(room.look(), "Error: server s: tools/call: no answer within 1s");
    assert_eq!(room.look(), "seen");
    let chatter = r#"while :; do printf '%s\n' '{"method":"notifications/x"}'; done"#;
    let mut room = Room::with(&server(chatter), r#", "trust": true, "timeout": 1"#).unwrap();
    assert_eq!([room.look(), room.look()], ["Error: server s: tools/call: no answer within 1s"; 2]);
    let mut room = Room::with(&server(":"), TRUSTED).unwrap();
    let cancel = room.cx.cancel.clone();
    let raise = std::thread::spawn(move || {
        std::thread::sleep(Duration::from_millis(100));
        cancel.raise(Cause::Interrupt);
    });
    let started = Instant::now();
    assert_eq!(room.look(), "Error: server s: tools/call: interrupted");
    drop(room);
    assert!(started.elapsed() < Duration::from_secs(1), "{:?}", started.elapsed());
    raise.join().unwrap();
}

#[test]
fn what_is_no_server_is_one_clear_sentence() {
    let told = |script: &str| Room::with(script, "").err().unwrap();
    assert_eq!(told("echo no >&2; exit 3"), "server s: has ended (exit status 3); its last words on stderr: no");
    assert_eq!(told("echo hello"), "server s: has ended (exit status 0); (not a message of MCP, skipped) hello");
    assert_eq!(told("exec >&-; sleep 9"), "server s: has closed its output");
    let endless = "was given up: it printed more than 1,000 lines that are no messages; ";
    assert_eq!(told("yes"), format!("server s: {endless}(not a message of MCP, skipped) y"));
    let long = told("tr '\\0' x < /dev/zero");
    assert_eq!(long, "server s: was given up: it printed a line of more than 16 MiB");
    let missing = Room::of(r#"{"servers": {"s": {"command": "no-such-server"}}}"#, false).err().unwrap();
    assert_eq!(missing, "server s: cannot start no-such-server: No such file or directory (os error 2)");
    let refused = Room::of(r#"{"servers": {"s": {"url": "http://127.0.0.1:9/mcp"}}}"#, false).err().unwrap();
    assert!(refused.starts_with("server s: initialize: http://127.0.0.1:9/mcp: "), "{refused}");
}

#[test]
fn a_server_by_http_is_shaken_hands_with_listed_called_and_left() {
    let json = |body: &str| response("200 OK", "content-type: application/json\r\nmcp-session-id: s\r\n", body);
    let events = "data: {\"method\":\"notifications/progress\",\"params\":{\"progress\":1}}\n\n\
                  data: {\"id\":1,\"method\":\"ping\"}\n\n\
                  data: {\"id\":3,\"result\":{\"content\":[{\"type\":\"text\",\"text\":\"seen\"}]}}\n\n";
    let (url, asked) = http::tests::server(vec![
        json(r#"{"id":1,"result":{"protocolVersion":"2025-06-18"}}"#),
        response("202 Accepted", "", ""),
        json(r#"{"id":2,"result":{"tools":[{"name":"look","inputSchema":{"type":"object"}}]}}"#),
        response("200 OK", "content-type: text/event-stream\r\n", events),
        response("202 Accepted", "", ""),
        response("200 OK", "", ""),
    ]);
    let mut room = Room::of(&format!(r#"{{"servers": {{"s": {{"url": "{url}", "trust": true}}}}}}"#), false).unwrap();
    assert_eq!(room.look(), "seen");
    assert_eq!(*room.shown.borrow(), "1\n");
    drop(room);
    let asked = asked.join().unwrap();
    let ends =
        ["\"initialize\"", "\"notifications/initialized\"", "\"tools/list\"", "\"tools/call\"", "\"result\":{}", ""];
    for (request, part) in asked.iter().zip(ends) {
        assert!(request.contains(part), "{part}: {request}");
    }
    assert!(asked[5].starts_with("DELETE") && asked[2].contains("mcp-protocol-version: 2025-06-18"));
}

#[test]
fn names_that_no_model_takes_are_refused_with_the_reason() {
    assert_eq!(offered_name("s", "a/b.c"), Ok("s__a_b_c".into()));
    assert!(offered_name("s", &"x".repeat(80)).unwrap_err().contains("64 is the limit"));
}

/// Whether a process is there, zombies not counted.
fn alive(pid: &str) -> bool {
    let output = std::process::Command::new("ps").args(["-o", "stat=", "-p", pid]).output().unwrap();
    let stat = String::from_utf8(output.stdout).unwrap();
    !stat.trim().is_empty() && !stat.starts_with('Z')
}

#[test]
fn a_server_that_will_not_leave_is_ended_with_all_of_its_group() {
    let stubborn = format!("trap '' TERM; sleep 300 & echo $$ $! > pids; {}while :; do sleep 1; done", server(":"));
    let room = Room::with(&stubborn, "").unwrap();
    let pids = std::fs::read_to_string(room.dir.path().join("pids")).unwrap();
    assert!(pids.split_whitespace().all(alive));
    room.cx.cancel.raise(Cause::Interrupt); // the person waits: the graces are short
    drop((room.agent, room.cx));
    assert!(!pids.split_whitespace().any(alive), "{pids}");
}

#[test]
fn closing_its_input_is_enough_for_a_server_that_behaves() {
    let room = Room::with(&(server(":") + "echo left > farewell\n"), "").unwrap();
    let started = Instant::now();
    drop((room.agent, room.cx));
    assert!(started.elapsed() < Duration::from_millis(900), "{:?}", started.elapsed());
    assert_eq!(std::fs::read_to_string(room.dir.path().join("farewell")).unwrap(), "left\n");
}

#[test]
fn only_trusted_servers_have_a_word_in_the_system_prompt() {
    let said = |trust: Trust| {
        let mut mcp = Mcp { prefixes: vec!["s__".into()], ..Mcp::default() };
        if trust != Trust::None {
            mcp.instructions.push("The server s says of its tools: Trust me.".into());
        }
        mcp.system_prompt()
    };
    assert!(!said(Trust::None).contains("Trust me") && said(Trust::All).contains("Trust me"));
}

#[test]
fn a_message_larger_than_every_pipe_goes_both_ways() {
    let mut room = Room::with(&server("text $id ${#line}"), TRUSTED).unwrap();
    let args = json!({"text": "x".repeat(1 << 20)}).to_string();
    let length: usize = room.agent.call("s__look", &args, &mut room.cx).text.parse().unwrap();
    assert!(length > 1 << 20);
}
