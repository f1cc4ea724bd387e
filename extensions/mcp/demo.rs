//! A small MCP server to play with: `mini --mcp-demo FILE`. What it offers stands in the file; it can be polite, lie,
//! make noise and die, which is what a client has to live with.
//!
//! ```json
//! {"instructions": "Look first.", "transcript": "notes.log", "noise": ["ready!"], "asks": ["ping", "roots/list"], "page": 2,
//!  "tools": [{"tool": {"name": "read_note", "inputSchema": {…}, "annotations": {…}}, "does": {"read": "notes"}}]}
//! ```
//!
//! `tool` is told to clients as it stands. `does` is what happens: `{"list": DIR}`, `{"read": DIR}` (of `name`),
//! `{"add": DIR}` (`name`, `text`), `{"delete_all": DIR}`, `{"say": TEXT}`, `{"steps": N}` (progress), `"environment"`
//! (in capitals), `"die"`, `"hang"`. `noise` is printed before each answer. `asks` are requests of the server's own,
//! made once the client is ready; their ids begin at 0, as those of real servers do. `transcript` names a file that
//! gets a line for each message, so that one can see who spoke when. Every member but `tools` can be left out.
//!
//! Nothing of this is part of the client: it is the other end of the wire, for the lab and the tests.

use serde::Deserialize;
use serde_json::{Value, json};
use std::ffi::OsStr;
use std::fs::{self, File};
use std::io::{BufRead, Write};
use std::path::{Component, Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

/// JSON-RPC's numbers.
const NO_METHOD: i32 = -32601;
const BAD_PARAMS: i32 = -32602;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Play {
    #[serde(default)]
    instructions: String,
    transcript: Option<PathBuf>,
    #[serde(default)]
    noise: Vec<String>,
    #[serde(default)]
    asks: Vec<String>,
    /// How many tools a page of the list holds.
    page: Option<usize>,
    tools: Vec<Offer>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Offer {
    tool: Value,
    does: Does,
}

#[derive(Deserialize)]
#[serde(rename_all = "snake_case")]
enum Does {
    List(PathBuf),
    Read(PathBuf),
    Add(PathBuf),
    DeleteAll(PathBuf),
    Say(String),
    Steps(u32),
    Environment,
    Die,
    Hang,
}

/// Serves the play in this file on standard input and output, until the input ends.
pub fn serve(file: &OsStr) -> ExitCode {
    let play = fs::read_to_string(file).map_err(|e| e.to_string());
    let play = play.and_then(|text| serde_json::from_str::<Play>(&text).map_err(|e| e.to_string()));
    let served = play.map_err(|why| format!("{}: {why}", file.display())).and_then(|play| {
        let transcript = play.transcript.as_ref().map(File::create).transpose();
        let transcript = transcript.map_err(|e| format!("cannot write the transcript: {e}"))?;
        Server { play, transcript, out: std::io::stdout() }.run(std::io::stdin().lock()).map_err(|e| e.to_string())
    });
    match served {
        Ok(()) => ExitCode::SUCCESS,
        Err(why) => {
            let _ = writeln!(std::io::stderr(), "{why}"); // with nobody to tell, the status says enough
            ExitCode::FAILURE
        }
    }
}

struct Server<W> {
    play: Play,
    transcript: Option<File>,
    out: W,
}

impl<W: Write> Server<W> {
    fn run(mut self, input: impl BufRead) -> std::io::Result<()> {
        for line in input.lines() {
            let message: Value = serde_json::from_str(&line?).unwrap_or_default();
            self.note("client", &message)?;
            // Anything else is an answer to what we asked, or a notification: nothing to say.
            if let (Some(method), Some(id)) = (message["method"].as_str(), message.get("id")) {
                self.answer(method, id, &message["params"])?;
            }
        }
        Ok(())
    }

    fn answer(&mut self, method: &str, id: &Value, params: &Value) -> std::io::Result<()> {
        for line in &self.play.noise {
            writeln!(self.out, "{line}")?;
        }
        if method == "tools/list" {
            self.ask()?; // while the client waits for us, so that the order of the transcript is always the same
        }
        let answer = match method {
            "initialize" => Ok(json!({"protocolVersion": params["protocolVersion"], "capabilities": {"tools": {}},
                "serverInfo": {"name": "mini-demo", "version": env!("CARGO_PKG_VERSION")}, "instructions": self.play.instructions})),
            "ping" => Ok(json!({})),
            "tools/list" => Ok(self.page(&params["cursor"])),
            "tools/call" => self.call(params)?,
            _ => Err((NO_METHOD, "no such method".to_owned())),
        };
        self.say(match answer {
            Ok(result) => json!({"jsonrpc": "2.0", "id": id, "result": result}),
            Err((code, message)) => json!({"jsonrpc": "2.0", "id": id, "error": {"code": code, "message": message}}),
        })
    }

    /// Requests of our own.
    fn ask(&mut self) -> std::io::Result<()> {
        let asks = std::mem::take(&mut self.play.asks);
        asks.iter()
            .enumerate()
            .try_for_each(|(id, method)| self.say(json!({"jsonrpc": "2.0", "id": id, "method": method})))
    }

    /// A page of tools; the cursor is the number of the first.
    fn page(&self, cursor: &Value) -> Value {
        let first = cursor.as_str().and_then(|at| at.parse().ok()).unwrap_or(0);
        let (all, size) = (&self.play.tools, self.play.page.unwrap_or(usize::MAX));
        let tools: Vec<&Value> = all.iter().skip(first).take(size).map(|offer| &offer.tool).collect();
        let next = first.saturating_add(size);
        if next < all.len() { json!({"tools": tools, "nextCursor": next.to_string()}) } else { json!({"tools": tools}) }
    }

    fn call(&mut self, params: &Value) -> std::io::Result<Result<Value, (i32, String)>> {
        let name = params["name"].as_str().unwrap_or_default();
        let Some(Offer { does, .. }) = self.play.tools.iter().find(|offer| offer.tool["name"] == name) else {
            return Ok(Err((BAD_PARAMS, format!("Unknown tool: {name}"))));
        };
        if let Does::Steps(steps) = *does {
            self.steps(steps, &params["_meta"]["progressToken"])?;
            return Ok(Ok(text(&format!("{steps} steps done"), false)));
        }
        let args = &params["arguments"];
        let word = |name: &str| args[name].as_str().unwrap_or_default();
        Ok(Ok(match does.act(word("name"), word("text")) {
            Ok(said) => text(&said, false),
            Err(why) => text(&why, true),
        }))
    }

    fn steps(&mut self, steps: u32, token: &Value) -> std::io::Result<()> {
        for step in 1..=steps {
            let params = json!({"progressToken": token, "progress": step, "total": steps, "message": "working"});
            self.say(json!({"jsonrpc": "2.0", "method": "notifications/progress", "params": params}))?;
            std::thread::sleep(Duration::from_millis(20));
        }
        Ok(())
    }

    fn say(&mut self, message: Value) -> std::io::Result<()> {
        self.note("server", &message)?;
        writeln!(self.out, "{message}")?;
        self.out.flush()
    }

    /// A line of the transcript: who speaks, and what kind of message it is.
    fn note(&mut self, who: &str, message: &Value) -> std::io::Result<()> {
        let Some(file) = &mut self.transcript else { return Ok(()) };
        let tool = message["params"]["name"].as_str().map_or(String::new(), |name| format!(" {name}"));
        match (message["method"].as_str(), message.get("error")) {
            (Some(method), _) => writeln!(file, "{who}: {method}{tool}"),
            (None, None) => writeln!(file, "{who}: result"),
            (None, Some(error)) => writeln!(file, "{who}: error {}", error["code"]),
        }
    }
}

fn text(text: &str, is_error: bool) -> Value {
    json!({"content": [{"type": "text", "text": text}], "isError": is_error})
}

impl Does {
    fn act(&self, name: &str, text: &str) -> Result<String, String> {
        let why = |e: std::io::Error| e.to_string();
        match self {
            Does::List(dir) => Ok(files(dir)?.join("\n")),
            Does::Read(dir) => {
                let file = within(dir, name)?;
                fs::read_to_string(file).map_err(|_| {
                    format!("there is no note called {name}; there are: {}", files(dir).unwrap_or_default().join(", "))
                })
            }
            Does::Add(dir) => {
                fs::write(within(dir, name)?, format!("{}\n", text.trim_end())).map_err(why)?;
                Ok(format!("added {name}"))
            }
            Does::DeleteAll(dir) => {
                let files = files(dir)?;
                files.iter().try_for_each(|name| fs::remove_file(dir.join(name))).map_err(why)?;
                Ok(format!("deleted {} notes", files.len()))
            }
            Does::Say(text) => Ok(text.clone()),
            Does::Steps(_) => Ok(String::new()),
            // In capitals, since a key that is spelled as we know it is taken out on the way.
            Does::Environment => {
                Ok(std::env::vars().map(|(name, value)| format!("{name}={value}\n")).collect::<String>().to_uppercase())
            }
            Does::Die => std::process::exit(9),
            Does::Hang => loop {
                std::thread::park();
            },
        }
    }
}

/// A note's file: a plain name, so nothing outside the directory. Who serves files to a stranger checks that himself,
/// and does not rely on the client to have done so.
fn within(dir: &Path, name: &str) -> Result<PathBuf, String> {
    let mut parts = Path::new(name).components();
    let plain = matches!((parts.next(), parts.next()), (Some(Component::Normal(_)), None)) && !name.starts_with('.');
    let file = dir.join(name);
    match plain && !file.is_symlink() {
        true => Ok(file),
        false => Err(format!("{name:?} is no name of a note: a plain name, no path")),
    }
}

/// The names of the files in a directory, sorted.
fn files(dir: &Path) -> Result<Vec<String>, String> {
    let entries = fs::read_dir(dir).map_err(|e| format!("cannot list {}: {e}", dir.display()))?;
    let mut names: Vec<String> =
        entries.flatten().map(|entry| entry.file_name().to_string_lossy().into_owned()).collect();
    names.sort();
    Ok(names)
}
