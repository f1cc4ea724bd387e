//! Fitting the conversation into the model's window.
//!
//! Before each request the conversation is measured, and what is cheapest is given up first:
//!
//! ```text
//! from 50 %   old tool results over 1,500 characters become their first 3 and last 3 lines   (can be read again)
//! from 70 %   old turns become one summary; the newest 8 messages stay                       (costs a request)
//! from 90 %   the same; the newest 4 stay
//! ```
//!
//! Each tier is entered only if the ones before it were not enough. Below 50 % not a byte changes, so the server's prompt
//! cache holds. Where nobody said how large the window is, nothing is given up until the server says that it is full.
//!
//! Two small duties beside it: one tool result may not fill the window, and a server that cuts the prompt behind our
//! back is noticed. (Ollama's default window is 4,096 tokens; what does not fit is dropped without a word, and the
//! tools go with it: wire.md C18.)
//!
//! Rejected: asking the server for the size of its window (each has its own way, most have none), and dropping the
//! oldest messages without a summary (the model then does the same work again).

mod estimate;
mod shorten;
mod summary;

use crate::event::{Event, Events, Usage};
use crate::message::{History, Message, Style};
use crate::tool::Context;
use shorten::NEWEST_TURN;

/// Estimated bytes of text a token takes; on the low side, so that a result is cut rather than the window overrun.
const BYTES_A_TOKEN: usize = 3;
/// From these shares of the window on something is given up.
const RESULTS: f64 = 0.5;
const TURNS: f64 = 0.7;
const MOST_TURNS: f64 = 0.9;
/// How many of the newest messages stay whole: at 50 and 90 %, and at 70 %.
const KEEP: usize = 4;
const KEEP_MORE: usize = 8;
/// Turns that take less than this share are not worth a request.
const WORTH: f64 = 0.1;
/// The longest summary, and what its message takes beside it, in bytes.
const MOST_SUMMARY: usize = 4000;
const FRAME: usize = 400;

/// The model's window, as far as it is known.
pub struct Window {
    /// Size in tokens; `None` if nobody said.
    tokens: Option<u64>,
    /// Which history it was, its messages and prompt tokens at the last reply that reported them.
    last: Option<(u64, usize, u64)>,
    warned: bool,
    measure: Measure,
}

/// The estimate of the conversation, counted once for each message.
struct Measure {
    /// Which history that was: [`History::replaced`].
    of: u64,
    messages: usize,
    tokens: f64,
    /// Tokens of the system text and the tools.
    fixed: f64,
    /// What the server counts for one token of ours.
    ratio: f64,
}

/// How much has to be given up.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Need {
    /// What the share of the window asks for.
    Measured,
    /// As much as can be: the server says that the window is full, or the person wants it.
    Most,
}

impl Default for Window {
    fn default() -> Window {
        Window::new(None)
    }
}

impl Window {
    /// A window of this many tokens, if known (`--context-window`).
    pub fn new(tokens: Option<u64>) -> Window {
        let measure = Measure { of: 0, messages: 0, tokens: 0.0, fixed: 0.0, ratio: 1.0 };
        Window { tokens, last: None, warned: false, measure }
    }

    /// Before each request: gives up what has to be given up. `fixed` is what goes along with the conversation, the
    /// system text and the tools.
    pub fn fit(&mut self, history: &mut History, fixed: [&str; 2], cx: &mut Context) {
        if self.tokens.is_none() {
            return;
        }
        self.measure.fixed = fixed.into_iter().map(estimate::text).sum();
        self.measure.count(history);
        if self.share(self.measure.tokens) >= RESULTS {
            self.give_up(history, Need::Measured, cx);
        }
    }

    /// Gives up as much as can be, now: on the server's word that the window is full, or on the person's. Whether
    /// there was anything to give up.
    pub fn compact(&mut self, history: &mut History, cx: &mut Context) -> bool {
        self.give_up(history, Need::Most, cx)
    }

    /// The three tiers. Returns whether the history is shorter now.
    fn give_up(&mut self, history: &mut History, need: Need, cx: &mut Context) -> bool {
        let old = history.messages();
        let mut new = old.to_vec();
        let newest = if need == Need::Most { NEWEST_TURN } else { KEEP };
        let mut tier = if shorten::cut_results(&mut new, shorten::boundary(old, newest)) { 50 } else { 0 };
        let share = self.share_of(&new);
        let keep = if need == Need::Most || share >= MOST_TURNS { KEEP } else { KEEP_MORE };
        if (need == Need::Most || share >= TURNS)
            && let Some(shorter) = self.summarise(&new, keep, need, cx)
        {
            (new, tier) = (shorter, if keep == KEEP { 90 } else { 70 });
        }
        // The last resort: results that the model has seen, however new.
        let last = shorten::boundary(&new, NEWEST_TURN);
        if self.share_of(&new) >= MOST_TURNS && shorten::cut_results(&mut new, last) {
            tier = 90;
        }
        tier != 0 && self.put(history, new, tier, cx)
    }

    /// The messages with one summary in place of old turns; `None` if there are none, they are not worth it, or the
    /// summary would be no shorter.
    fn summarise(&self, messages: &[Message], keep: usize, need: Need, cx: &mut Context) -> Option<Vec<Message>> {
        let head = shorten::head(messages);
        let mut end = shorten::boundary(messages, keep);
        if need == Need::Most && end <= head {
            end = shorten::boundary(messages, NEWEST_TURN);
        }
        let dropped = messages.get(head..end)?;
        let (room, most) = self.room(dropped);
        if !self.is_worth_it(dropped, most, need) {
            return None;
        }
        let summary = summary::of(dropped, room, most, cx)?;
        let mut shorter = messages[..head].to_vec();
        shorter.push(summary);
        shorter.extend(last_words(dropped, &messages[end..]).cloned());
        shorter.extend_from_slice(&messages[end..]);
        (size(&shorter) < size(messages)).then_some(shorter)
    }

    /// How much of the dropped turns a request for their summary can hold, in characters, and how long the summary may
    /// be, in bytes.
    fn room(&self, dropped: &[Message]) -> (usize, usize) {
        let length = size(dropped);
        let window = self.tokens.map_or(length, |tokens| tokens as usize);
        (if self.tokens.is_some() { window * 3 / 2 } else { length / 2 }, (window / 4).min(MOST_SUMMARY))
    }

    /// Puts shorter messages in place of the history, and says so.
    fn put(&mut self, history: &mut History, new: Vec<Message>, tier: u8, cx: &mut Context) -> bool {
        let old = history.messages();
        let kept = old.iter().rev().zip(new.iter().rev()).take_while(|(a, b)| a == b).count();
        let (before, after) = (old.len(), new.len());
        let messages = new[..after - kept].iter().map(|message| message.to_json(Style::default())).collect();
        if let Err(why) = history.replace(new) {
            cx.events.notice(format!("the history stays as it is: {why}"));
            return false;
        }
        self.measure.count(history);
        cx.events.emit(Event::Compacted { tier, before, after, messages, kept });
        true
    }

    fn share_of(&self, messages: &[Message]) -> f64 {
        self.share(estimate::messages(messages))
    }

    /// The share of the window that so many estimated tokens of conversation take; 0 if nobody knows.
    fn share(&self, tokens: f64) -> f64 {
        self.tokens.map_or(0.0, |window| (tokens + self.measure.fixed) * self.measure.ratio / window as f64)
    }

    /// Whether turns are worth a request, and will be longer than their summary. An old summary alone is not.
    fn is_worth_it(&self, dropped: &[Message], most: usize, need: Need) -> bool {
        let fresh: f64 = dropped.iter().filter(|message| !summary::is_one(message)).map(estimate::message).sum();
        match (need, self.tokens) {
            (Need::Most, _) => fresh > 0.0 && size(dropped) > FRAME,
            (Need::Measured, Some(window)) => {
                fresh * self.measure.ratio >= WORTH * window as f64 && size(dropped) > most + FRAME
            }
            (Need::Measured, None) => false,
        }
    }

    /// Cuts a tool result that would take more than a quarter of a known window; says so at the cut.
    pub fn cap(&self, text: String) -> String {
        let Some(tokens) = self.tokens else { return text };
        let most = tokens as usize / 4 * BYTES_A_TOKEN;
        if text.len() <= most {
            return text;
        }
        let cut =
            text[..text.floor_char_boundary(most)].rfind('\n').map_or(text.floor_char_boundary(most), |at| at + 1);
        let left_out = text.len() - cut;
        format!(
            "{}[{left_out} bytes left out: a result may take a quarter of the window of {tokens} tokens]",
            &text[..cut]
        )
    }

    /// The conversation was shortened on purpose: what was counted before says nothing about what comes.
    pub fn forget(&mut self) {
        self.last = None;
    }

    /// Learns from a reply's usage. When the reported prompt tokens stand still or fall while messages were added,
    /// the server is cutting the prompt: said once.
    pub fn learn(&mut self, history: &History, usage: Usage, events: &mut Events) {
        self.measure.learn(history, usage.input);
        let now = (history.replaced(), history.messages().len(), usage.input);
        if let Some((same, messages, tokens)) = self.last
            && now.0 == same // a shortened history takes fewer tokens
            && (1..=tokens).contains(&usage.input)
            && now.1 > messages
            && !std::mem::replace(&mut self.warned, true)
        {
            events.notice(format!(
                "the server counted {} prompt tokens although messages were added since it counted {tokens}: it cuts \
                 the prompt to its window. Widen it on the server (Ollama: OLLAMA_CONTEXT_LENGTH=32768)",
                usage.input
            ));
        }
        if usage.input > 0 {
            self.last = Some(now);
        }
    }
}

impl Measure {
    /// Counts what was added since the last time; all of it, if the history is another one.
    fn count(&mut self, history: &History) {
        if self.of != history.replaced() {
            (self.of, self.messages, self.tokens) = (history.replaced(), 0, 0.0);
        }
        self.tokens += estimate::messages(history.messages().get(self.messages..).unwrap_or_default());
        self.messages = history.messages().len();
    }

    /// The server's own count of the request that was measured last. Some report only what their cache did not hold, so
    /// a count far below ours is not believed.
    fn learn(&mut self, history: &History, input: u64) {
        let ours = self.tokens + self.fixed;
        if input > 0 && ours > 0.0 && self.of == history.replaced() {
            self.ratio = (input as f64 / ours).clamp(0.7, 3.0);
        }
    }
}

/// The person's last words, where they would be lost with the dropped turns: what is being worked on.
fn last_words<'a>(dropped: &'a [Message], kept: &[Message]) -> Option<&'a Message> {
    let said = |message: &&Message| matches!(message, Message::User(_)) && !summary::is_one(message);
    if kept.iter().any(|message| said(&message)) { None } else { dropped.iter().rfind(said) }
}

/// Bytes of the messages as a server gets them.
fn size(messages: &[Message]) -> usize {
    messages.iter().map(|message| message.to_json(Style::default()).to_string().len()).sum()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::RefCell;
    use std::rc::Rc;

    /// Counts events.
    struct Count(Rc<RefCell<usize>>);
    impl crate::event::Observer for Count {
        fn event(&mut self, _: &crate::event::Stamp, _: &crate::event::Event) -> Result<(), String> {
            *self.0.borrow_mut() += 1;
            Ok(())
        }
    }

    #[test]
    fn fewer_prompt_tokens_are_the_server_s_doing_unless_the_conversation_was_shortened() {
        for (shortened, notices) in [(false, 1), (true, 0)] {
            let (said, mut history, mut window) = (Rc::default(), History::new(), Window::default());
            let mut events = Events::new(vec![Box::new(Count(Rc::clone(&said)))]);
            for input in [900, 300] {
                history.user("go on");
                window.learn(&history, Usage { input, ..Usage::default() }, &mut events);
                if shortened {
                    window.forget();
                }
            }
            assert_eq!(*said.borrow(), notices);
        }
    }

    #[test]
    fn a_result_takes_at_most_a_quarter_of_a_known_window() {
        let text = "line\n".repeat(1000);
        assert_eq!(Window::default().cap(text.clone()), text);
        let cut = Window::new(Some(400)).cap(text);
        assert!(cut.starts_with("line\n") && cut.len() < 400, "{cut}");
        assert!(
            cut.ends_with("[4700 bytes left out: a result may take a quarter of the window of 400 tokens]"),
            "{cut}"
        );
    }
}
