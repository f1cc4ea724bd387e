//! The extensions that come with `mini`: the visible list.
//!
//! They are written against the library's public API only, as a stranger's crate would be. To add one, write its file
//! beside this one and give it a line here; nothing else has to know of it.

mod observability;
mod verify;

use mini::attach::Known;

/// Name, how it attaches itself, one line of help.
pub const ALL: &[Known] = &[
    ("observability", observability::attach, "traces every task: =FILE.jsonl, or =URL of a collector such as Phoenix"),
    (
        "verify",
        verify::attach,
        "checks the work when the model stops: =COMMAND, or =FILE.json (default ~/.config/mini/verify.json)",
    ),
];
