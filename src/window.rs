//! Fitting the conversation into the model's window.
//!
//! Two small duties so far: one tool result may not fill the window, and a server that cuts the prompt behind our
//! back is noticed. (Ollama's default window is 4,096 tokens; what does not fit is dropped without a word, and the
//! tools go with it: wire.md C18.) Shortening old turns, tier by tier, belongs here too.

use crate::event::{Events, Usage};
use crate::message::History;

/// Estimated bytes of text a token takes; on the low side, so that a result is cut rather than the window overrun.
const BYTES_A_TOKEN: usize = 3;

/// The model's window, as far as it is known.
#[derive(Default)]
pub struct Window {
    /// Size in tokens; `None` if nobody said.
    tokens: Option<u64>,
    /// Messages and prompt tokens at the last reply that reported them.
    last: Option<(usize, u64)>,
    warned: bool,
}

impl Window {
    /// A window of this many tokens, if known (`--context-window`).
    pub fn new(tokens: Option<u64>) -> Window {
        Window { tokens, ..Window::default() }
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
        let now = (history.messages().len(), usage.input);
        if let Some((messages, tokens)) = self.last
            && (1..=tokens).contains(&usage.input)
            && now.0 > messages
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
