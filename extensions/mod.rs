//! The extensions that come with `mini`: the visible list.
//!
//! They are written against the library's public API only, as a stranger's crate would be. To add one, write its file
//! beside this one and give it a line here; nothing else has to know of it.

mod context;
mod evaluation;
mod front_matter;
mod mcp;
mod memory;
mod observability;
mod plan_words;
mod skills;
mod subagent;
mod todo;
mod verify;

use mini::attach::Known;
use std::ffi::OsStr;
use std::process::ExitCode;

/// Name, how it attaches itself, one line of help.
pub const ALL: &[Known] = &[
    ("context", context::attach, "earlier tasks become a summary: =FILE says what it keeps"),
    ("evaluation", evaluation::attach, "conditions for --eval: only read is offered; =FILE with other rules"),
    ("mcp", mcp::attach, "tools of MCP servers: =FILE.json (default ~/.config/mini/mcp.json)"),
    ("memory", memory::attach, "rules and records of the project, from .mini/MEMORY.md and .mini/memories/"),
    ("observability", observability::attach, "traces every task: =FILE.jsonl, or =URL of a collector such as Phoenix"),
    ("plan-words", plan_words::attach, "your own words for plan mode: =FILE (default ~/.config/mini/plan.txt)"),
    (
        "skills",
        skills::attach,
        "instructions loaded on demand: =DIRECTORY (default .agents/skills, .claude/skills, ~/.config/mini/skills)",
    ),
    (
        "subagent",
        subagent::attach,
        "questions about many files go to a sub-agent that may only read: =FILE with its rules",
    ),
    ("todo", todo::attach, "a list of steps that the model keeps and sees in every request"),
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
