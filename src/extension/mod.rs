//! What an extension may add: tools, a piece of the system prompt, and a say when the model wants to stop.
//!
//! Exactly these three mounts, and no more. Every lab of the workshop attaches through them, so the loop never
//! changes for one. An extension can be compiled in (implement [`Extension`]) or be any executable: `describe.rs` is
//! what such a program says of itself, `host.rs` and `program.rs` run it, and `serve.rs` is the other end, which turns an [`Extension`]
//! into such a program.

mod describe;
mod host;
mod program;
mod serve;

pub use host::Executable;
pub use program::Limits;
pub use serve::serve;

use crate::event::Event;
use crate::message::{History, Message, Style};
use crate::tool::{Context, Tool};

/// What a hook says when the model wants to stop.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Next {
    /// Nothing to object.
    Done,
    /// Not yet: the loop goes on with this text as a user message.
    Continue(String),
    /// Stop, and say that the work is not verified.
    Fail(String),
    /// The hook itself is broken: the run ends with an error.
    Broken(String),
}

/// What a hook may look at, and change, when the model wants to stop.
pub struct Stop<'a> {
    /// The task, as the person gave it.
    pub task: &'a str,
    /// How often a hook has sent the loop on in this task.
    pub attempt: u32,
    /// How many acts that may have changed something ran since the task began: every write and edit, every command
    /// that the gate did not run at once, every extension tool that is not read-only.
    pub changes: u32,
    /// The conversation. A hook may replace it, in whole pairs only.
    pub history: &'a mut History,
}

impl Stop<'_> {
    /// Puts one message in place of the first `dropped`, and says so as a `compacted` event, from which a log's reader
    /// can tell what the model saw afterwards. Refused, and nothing changes, where that would part a call from its result.
    pub fn shorten(&mut self, dropped: usize, instead: Message, cx: &mut Context) -> Result<(), String> {
        let (before, kept) =
            (self.history.messages().len(), self.history.messages().get(dropped..).unwrap_or_default());
        let (kept, stands) = (kept.len(), instead.to_json(Style::default()));
        let tail = self.history.messages()[before - kept..].iter().cloned();
        self.history.replace(std::iter::once(instead).chain(tail).collect())?;
        cx.events.emit(Event::Compacted { tier: 0, before, after: kept + 1, messages: vec![stands], kept });
        Ok(())
    }
}

/// An addition to the agent.
pub trait Extension {
    /// Its name, for events and error messages.
    fn name(&self) -> &str;
    /// Mount 1: tools, asked for once at start.
    fn tools(&mut self) -> Result<Vec<Box<dyn Tool>>, String> {
        Ok(Vec::new())
    }
    /// Mount 2: a piece of the system prompt, asked for before every request.
    fn system_prompt(&mut self) -> String {
        String::new()
    }
    /// Mount 3: the model made no further call and wants to stop.
    fn on_stop(&mut self, _stop: &mut Stop, _cx: &mut Context) -> Next {
        Next::Done
    }
}
