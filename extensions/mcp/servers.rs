//! The file of servers: whom to start, whom to reach, and whom to trust. Its format is in `mod.rs`.
//!
//! A misspelt member is an error: a `"trsut"` that is passed over would ask for ever, and nobody would know why. So is
//! the name of a trusted tool that the server does not have.

use serde::Deserialize;
use serde_json::Value;
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

/// How long a call may take where the file does not say.
const LIMIT: Duration = Duration::from_secs(120);
/// The command that stands for this program.
const OURSELVES: &str = "{mini}";

/// One server.
#[derive(Debug)]
pub struct Server {
    /// What it is called here; its tools' names begin with it.
    pub name: String,
    /// How it is reached.
    pub way: Way,
    /// Whose calls run without a question.
    pub trust: Trust,
    /// The longest call.
    pub limit: Duration,
    /// Whether to offer the workspace as a root.
    pub roots: bool,
}

/// How a server is reached.
#[derive(Debug)]
pub enum Way {
    /// It is started, and spoken to by its standard input and output.
    Command(Command),
    /// It runs somewhere, and is spoken to by HTTP.
    Url(Address),
}

/// How to start a server.
#[derive(Debug)]
pub struct Command {
    /// An executable; looked up in PATH if it holds no `/`.
    pub program: PathBuf,
    /// Its arguments.
    pub args: Vec<String>,
    /// Further variables.
    pub env: Vec<(String, String)>,
}

/// Where a server is.
#[derive(Debug)]
pub struct Address {
    /// The one URL of a streamable HTTP server.
    pub url: String,
    /// Sent with every request.
    pub headers: Vec<(String, String)>,
}

/// Whose calls run without a question.
#[derive(Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(try_from = "Value")]
pub enum Trust {
    /// Nobody's.
    #[default]
    None,
    /// Every tool's.
    All,
    /// Those of these tools.
    Tools(Vec<String>),
}

impl TryFrom<Value> for Trust {
    type Error = String;

    fn try_from(value: Value) -> Result<Trust, String> {
        match value {
            Value::Bool(true) => Ok(Trust::All),
            Value::Bool(false) => Ok(Trust::None),
            Value::Array(names) if names.is_empty() => Ok(Trust::None),
            Value::Array(_) => serde_json::from_value(value).map(Trust::Tools).map_err(|_| wrong_trust()),
            _ => Err(wrong_trust()),
        }
    }
}

fn wrong_trust() -> String {
    "`trust` is true, false, or a list of tools' names, such as [\"read_note\"]".into()
}

/// The file as it is written. Files of other clients call the servers `mcpServers`; those can be used as they are.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Written {
    #[serde(alias = "mcpServers")]
    servers: BTreeMap<String, Entry>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Entry {
    command: Option<String>,
    #[serde(default)]
    args: Vec<String>,
    #[serde(default)]
    env: BTreeMap<String, String>,
    url: Option<String>,
    #[serde(default)]
    headers: BTreeMap<String, String>,
    #[serde(default)]
    trust: Trust,
    timeout: Option<u64>,
    #[serde(default)]
    roots: bool,
}

/// The servers of the file that was named, or of the operator's own, and which file that is.
pub fn find(arg: Option<&str>, own: Option<PathBuf>) -> Result<(PathBuf, Vec<Server>), String> {
    let own = own.filter(|file| file.exists());
    let file = arg.map(PathBuf::from).or(own).ok_or(
        "no servers are named: give a file (--ext mcp=servers.json), or write ~/.config/mini/mcp.json, such as \
         {\"servers\": {\"notes\": {\"command\": \"notes-server\", \"args\": [\"notes\"]}}}",
    )?;
    let text = std::fs::read_to_string(&file).map_err(|e| format!("cannot read {}: {e}", file.display()))?;
    let servers = parse(&text).map_err(|why| format!("{}: {why}", file.display()))?;
    Ok((file, servers))
}

fn parse(text: &str) -> Result<Vec<Server>, String> {
    let written: Written = serde_json::from_str(text).map_err(|e| e.to_string())?;
    written.servers.into_iter().map(|(name, entry)| entry.server(name)).collect()
}

impl Entry {
    fn server(self, name: String) -> Result<Server, String> {
        let plain = name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-' || b == b'_');
        if name.is_empty() || !plain || name.contains("__") {
            return Err(format!("{name:?} is no name for a server: letters, digits, - and single _"));
        }
        let of_server = |why: String| format!("server {name}: {why}");
        let way = match (self.command, self.url) {
            (Some(command), None) if self.headers.is_empty() => Way::Command(Command {
                program: program(command)?,
                args: self.args,
                env: filled(self.env).map_err(of_server)?,
            }),
            (None, Some(url)) if self.args.is_empty() && self.env.is_empty() => {
                Way::Url(Address { url, headers: filled(self.headers).map_err(of_server)? })
            }
            _ => return Err(of_server("needs either `command` (with `args`, `env`) or `url` (with `headers`)".into())),
        };
        let limit = self.timeout.map_or(LIMIT, Duration::from_secs);
        Ok(Server { name, way, trust: self.trust, limit, roots: self.roots })
    }
}

fn program(command: String) -> Result<PathBuf, String> {
    match command.as_str() {
        OURSELVES => std::env::current_exe().map_err(|e| format!("cannot tell where this program is: {e}")),
        _ => Ok(command.into()),
    }
}

/// `$NAME` is the variable's value, so that a key need not stand in the file.
fn filled(values: BTreeMap<String, String>) -> Result<Vec<(String, String)>, String> {
    let fill = |(name, value): (String, String)| match value.strip_prefix('$') {
        Some(variable) => match std::env::var(variable) {
            Ok(value) => Ok((name, value)),
            Err(_) => Err(format!("{name} is to be ${variable}, and there is no such variable")),
        },
        None => Ok((name, value)),
    };
    values.into_iter().map(fill).collect()
}

impl Server {
    /// Whether a call of this tool runs without a question.
    pub fn trusts(&self, tool: &str) -> bool {
        match &self.trust {
            Trust::None => false,
            Trust::All => true,
            Trust::Tools(names) => names.iter().any(|name| name == tool),
        }
    }

    /// Whether every trusted name is a tool's. With further pages unread, nobody can tell.
    pub fn check_trust(&self, tools: &[Value], more: bool) -> Result<(), String> {
        let Trust::Tools(trusted) = &self.trust else { return Ok(()) };
        let names: Vec<&str> = tools.iter().filter_map(|tool| tool["name"].as_str()).collect();
        match trusted.iter().find(|name| !more && !names.contains(&name.as_str())) {
            Some(name) => Err(format!("trusts `{name}`, and has no such tool; it has: {}", names.join(", "))),
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn error(json: &str) -> String {
        parse(json).unwrap_err()
    }

    #[test]
    fn a_file_says_who_is_started_reached_and_trusted() {
        let servers = parse(
            r#"{"mcpServers": {
                "a": {"command": "a-server", "args": ["x"], "trust": ["look"], "timeout": 3},
                "b": {"url": "http://127.0.0.1:1/mcp", "headers": {"X-Path": "$PATH"}, "trust": true},
                "c": {"command": "{mini}", "roots": true}}}"#,
        );
        let servers = servers.unwrap();
        assert_eq!([servers[0].trusts("look"), servers[0].trusts("touch")], [true, false]);
        assert_eq!([servers[1].trusts("any"), servers[2].trusts("any")], [true, false]);
        assert_eq!((servers[0].limit, servers[1].limit), (Duration::from_secs(3), LIMIT));
        let Way::Url(address) = &servers[1].way else { panic!("a URL") };
        assert_eq!(address.headers, [("X-Path".to_owned(), std::env::var("PATH").unwrap())]);
        let Way::Command(command) = &servers[2].way else { panic!("a command") };
        assert_eq!(command.program, std::env::current_exe().unwrap());
    }

    #[test]
    fn a_slip_is_named() {
        for (json, words) in [
            (r#"{"servers": {"a": {"command": "x", "trsut": true}}}"#, "unknown field `trsut`"),
            (r#"{"servers": {"a": {"command": "x", "trust": "yes"}}}"#, "`trust` is true, false, or a list"),
            (r#"{"servers": {"a": {"command": "x", "trust": [1]}}}"#, "`trust` is true, false, or a list"),
            (r#"{"servers": {"a": {}}}"#, "server a: needs either `command`"),
            (r#"{"servers": {"a": {"command": "x", "url": "y"}}}"#, "server a: needs either `command`"),
            (r#"{"servers": {"a": {"url": "y", "args": ["x"]}}}"#, "server a: needs either `command`"),
            (r#"{"servers": {"a__b": {"command": "x"}}}"#, "\"a__b\" is no name for a server"),
            (
                r#"{"servers": {"a": {"command": "x", "env": {"K": "$NO_SUCH"}}}}"#,
                "K is to be $NO_SUCH, and there is no such variable",
            ),
            (r#"{"server": {}}"#, "unknown field `server`"),
        ] {
            assert!(error(json).contains(words), "{json}: {}", error(json));
        }
    }

    #[test]
    fn a_trusted_name_that_no_tool_has_is_told_the_tools() {
        let servers = parse(r#"{"servers": {"a": {"command": "x", "trust": ["reed"]}}}"#).unwrap();
        let tools = [serde_json::json!({"name": "read"}), serde_json::json!({"name": "write"})];
        assert_eq!(
            servers[0].check_trust(&tools, false),
            Err("trusts `reed`, and has no such tool; it has: read, write".into())
        );
        assert_eq!(servers[0].check_trust(&tools, true), Ok(()));
    }

    #[test]
    fn without_a_file_it_is_said_how_to_name_one() {
        assert!(find(None, None).err().unwrap().starts_with("no servers are named: give a file"));
        assert!(find(Some("/no/such.json"), None).err().unwrap().starts_with("cannot read /no/such.json: "));
    }
}
