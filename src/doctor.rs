//! `--doctor`: does everything work that a class will need? For a teacher, an hour before it begins.
//!
//! Real requests are made, small ones, in the order in which things can be wrong: is there a server, does it know the
//! model, does it take the key, does it stream, does the model call a tool. Each answer is one line: [`Verdict`], what
//! was looked at, and what to change. What is not needed is never a failure: a server without token counts gets a note.
//!
//! | file | its idea |
//! |---|---|
//! | `visit` | one endpoint, asked step by step |
//! | `seen` | what one reply shows of its server: streaming, usage, reasoning |
//! | `call` | whether a reply is a tool call, and what to do if it is none |
//! | `window` | how much of a conversation the server keeps |
//! | `machine` | programs, directories, terminal |
//!
//! Left out on purpose: repairing anything, judging how *good* a model is (that is what the labs' exams and `--eval` are
//! for), and measuring the window by sending a long prompt: on a slow local server that takes minutes.

mod call;
mod machine;
mod seen;
mod visit;
mod window;

pub use machine::{Machine, machine};
pub use visit::{LONGEST_REPLY, endpoint};

use serde::Serialize;

/// What was found about one thing.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Finding {
    /// What was looked at: `server`, `tool call`.
    pub check: &'static str,
    /// How it is.
    pub verdict: Verdict,
    /// One line: what was seen, and what to change if it is not right.
    pub text: String,
}

/// How a thing is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Verdict {
    /// As it should be.
    Ok,
    /// Worth knowing; nothing that is needed is missing.
    Note,
    /// Needed, and not working.
    Fail,
}

impl Finding {
    fn ok(check: &'static str, text: impl Into<String>) -> Finding {
        Finding { check, verdict: Verdict::Ok, text: text.into() }
    }

    /// Something worth knowing.
    pub fn note(check: &'static str, text: impl Into<String>) -> Finding {
        Finding { check, verdict: Verdict::Note, text: text.into() }
    }

    /// Something that is needed and does not work.
    pub fn fail(check: &'static str, text: impl Into<String>) -> Finding {
        Finding { check, verdict: Verdict::Fail, text: text.into() }
    }
}

/// Hears each finding as it is made.
pub type Tell<'a> = &'a mut dyn FnMut(Finding);
