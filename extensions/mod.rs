//! The extensions that come with `mini`: the visible list.
//!
//! They are written against the library's public API only, as a stranger's crate would be. To add one, write its file
//! beside this one and give it a line here; nothing else has to know of it.

mod context;
mod evaluation;
mod mcp;
mod verify;

use mini::attach::Known;
use std::ffi::OsStr;
use std::process::ExitCode;

/// Name, how it attaches itself, one line of help.
pub const ALL: &[Known] = &[
    ("context", context::attach, "earlier tasks become a summary: =FILE says what it keeps"),
    ("evaluation", evaluation::attach, "conditions for --eval: only read is offered; =FILE with other rules"),
    ("mcp", mcp::attach, "tools of MCP servers: =FILE.json (default ~/.config/mini/mcp.json)"),
    (
        "verify",
        verify::attach,
        "checks the work when the model stops: =COMMAND, or =FILE.json (default ~/.config/mini/verify.json)",
    ),
];

/// A program that an extension brings along: a hidden first word, and what then runs, with a file, in place of the agent.
pub type Program = (&'static str, fn(&OsStr) -> ExitCode);

/// Those there are.
pub const PROGRAMS: &[Program] = &[("--mcp-demo", mcp::demo::serve)];
