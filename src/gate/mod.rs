//! Decides which commands run at once, which ask, and which are refused.

pub mod expand;
pub mod plan;
pub mod words;

pub use plan::{Argv, Join, Plan, Stderr, Step};

use crate::workspace::Workspace;

/// What is to be done with a command.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Verdict {
    /// Read-only by the tables: run this plan now, without a shell.
    Run(Plan),
    /// Show the command with this reason; on a yes run it in a shell, exactly as shown.
    Ask(Reason),
    /// Never; the text is for the model and the person.
    Refuse(String),
}

/// Why a command asks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reason {
    /// For example "leaves the workspace: /tmp/x".
    pub why: String,
    /// What it would touch, where that can be told.
    pub touches: Vec<String>,
}

/// Judges a command of the bash tool.
pub fn decide(command: &str, _workspace: &Workspace) -> Verdict {
    Verdict::Ask(Reason {
        why: format!("nothing is listed yet: {command}"),
        touches: Vec::new(),
    })
}

/// The words of each simple command of a chain, for "always" rules; None where it is more than simple commands.
pub fn parts(_command: &str) -> Option<Vec<Vec<String>>> {
    None
}
