//! What one reply shows of its server, beside its text: how it came, what it cost, whether there was thinking in it.

use super::Finding;
use crate::endpoint::{Reply, Tap, Wire};
use crate::event::{Event, Observer, Stamp, Usage};
use std::cell::RefCell;
use std::rc::Rc;
use std::time::{Duration, Instant};

/// So much of a body is remembered, in bytes: the list of models.
const MOST_OF_A_BODY: usize = 4 << 20;

/// What passed over the wire and happened on the way, of the newest request.
#[derive(Default)]
pub struct Seen {
    /// The status of the response, if there is one.
    pub status: Option<u16>,
    /// The beginning of its body.
    pub body: Vec<u8>,
    /// Pieces of text and reasoning, and when the first one came.
    pieces: usize,
    first: Option<Instant>,
    /// Of all requests since they were last taken out.
    pub notices: Vec<String>,
}

impl Seen {
    /// How a reply came that was asked for at `begin` and took so long.
    pub fn streaming(&self, begin: Instant, took: Duration) -> Finding {
        let blank = |byte: &&u8| byte.is_ascii_whitespace();
        if self.body.iter().find(|byte| !blank(byte)) == Some(&b'{') {
            let words = "the server sends an answer in one piece at its end; all works, but nobody can watch it come";
            return Finding::note("streaming", words);
        }
        let waited = self.first.map_or(took, |first| first - begin);
        if took > Duration::from_secs(3) && self.pieces > 5 && waited > took.mul_f64(0.95) {
            let words = "the pieces arrive all at once at the end: a proxy on the way holds them back";
            return Finding::note("streaming", words);
        }
        Finding::ok("streaming", format!("{} pieces, the first after {:.1} s", self.pieces, waited.as_secs_f64()))
    }
}

/// Whether tokens are counted.
pub fn usage(usage: Usage) -> Finding {
    match usage {
        Usage { input: 0, output: 0, .. } => Finding::note(
            "usage",
            "the server counts no tokens: --token-budget has nothing to count, and a full window is not seen coming",
        ),
        Usage { input, output, .. } => Finding::ok("usage", format!("{input} tokens in, {output} out")),
    }
}

/// Whether the model thinks aloud, and where.
pub fn reasoning(reply: &Reply) -> Finding {
    match &reply.message.reasoning {
        Some((field, _)) => {
            Finding::ok("reasoning", format!("comes as `{field}`: shown, and sent back with tool calls"))
        }
        None if reply.message.text.trim_start().starts_with("<think>") => Finding::note(
            "reasoning",
            "comes inside the answer as <think>: let the server part it (llama.cpp: --reasoning-format auto; vLLM: \
             --reasoning-parser NAME), or it fills the conversation",
        ),
        None => Finding::ok("reasoning", "none; that is fine"),
    }
}

/// Notes what passes over the wire.
pub fn tap(seen: Rc<RefCell<Seen>>) -> Tap {
    Box::new(move |wire| {
        let mut seen = seen.borrow_mut();
        match wire {
            Wire::Request { .. } => {
                let notices = std::mem::take(&mut seen.notices);
                *seen = Seen { notices, ..Seen::default() };
            }
            Wire::Status { code, .. } => seen.status = Some(*code),
            Wire::Bytes(bytes) => {
                let room = MOST_OF_A_BODY.saturating_sub(seen.body.len());
                seen.body.extend_from_slice(&bytes[..bytes.len().min(room)]);
            }
            Wire::End { .. } => {}
        }
    })
}

/// Notes what the endpoint says on the way.
pub struct Watch(pub Rc<RefCell<Seen>>);

impl Observer for Watch {
    fn event(&mut self, _: &Stamp, event: &Event) -> Result<(), String> {
        let mut seen = self.0.borrow_mut();
        match event {
            Event::Text { .. } | Event::Reasoning { .. } => {
                seen.pieces += 1;
                seen.first.get_or_insert_with(Instant::now);
            }
            Event::Notice { text } => seen.notices.push(text.clone()),
            Event::Retry { reason, .. } => seen.notices.push(format!("asked again after: {reason}")),
            _ => {}
        }
        Ok(())
    }
}
