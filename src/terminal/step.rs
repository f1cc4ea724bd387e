//! `--step`: waits for Enter before each request and each call, so that a room can follow.
//!
//! An observer that takes its time is all it needs: the loop waits for its observers anyway. It comes behind the
//! [`Screen`](super::Screen), so that what is waited for stands there already.

use super::console::Console;
use super::folding::{counted, one_line, summary};
use super::ink::Ink;
use super::lines::SharedLines;
use crate::cancel::Cancel;
use crate::event::{Event, Observer, Stamp};

/// Waits for Enter. When input ends or the flag is raised it waits no more.
pub struct Step {
    console: Console,
    lines: SharedLines,
    cancel: Cancel,
}

impl Step {
    /// Waits on this console for these lines.
    pub fn new(console: Console, lines: SharedLines, cancel: Cancel) -> Step {
        Step { console, lines, cancel }
    }

    fn wait(&self, before: &str) {
        self.lines.borrow_mut().forget();
        // Whatever comes, an end or Ctrl-C included: it goes on.
        let _ = self.console.ask(&[(Ink::Cyan, &format!("[Enter] {before} "))], &self.lines, &self.cancel);
    }
}

impl Observer for Step {
    fn event(&mut self, _: &Stamp, event: &Event) -> Result<(), String> {
        match event {
            Event::Request { turn, messages, bytes, .. } => {
                self.wait(&format!("request {turn} ({}, {})", counted(*messages, "message"), counted(*bytes, "byte")));
                self.console.spin();
            }
            Event::Call { name, arguments, raw, .. } => {
                self.wait(&format!("call {name} {}", one_line(&summary(arguments.as_ref(), raw))));
            }
            _ => {}
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::terminal::console::tests::{Sink, console};
    use crate::terminal::{Answers, Paint};
    use crate::terminal::{Line, Lines};
    use std::cell::RefCell;
    use std::io::Write;
    use std::rc::Rc;

    #[test]
    fn requests_and_calls_wait_for_a_line_each_and_go_on_at_the_end_of_input() {
        let (reader, mut writer) = std::io::pipe().unwrap();
        writer.write_all(b"\nnext\n").unwrap();
        drop(writer);
        let lines = Rc::new(RefCell::new(Lines::new(reader.into())));
        let (_, err, console) = console(Answers::Once, Paint::Plain);
        let mut step = Step::new(console, Rc::clone(&lines), Cancel::new());
        let stamp = Stamp { at: 0, agent: None };
        let request = Event::Request { turn: 3, attempt: 1, messages: 5, bytes: 900, estimated_tokens: 200 };
        step.event(&stamp, &request).unwrap();
        let arguments = serde_json::from_str(r#"{"path":"a.rs"}"#).ok();
        step.event(&stamp, &Event::Call { id: "c".into(), name: "read".into(), arguments, raw: String::new() })
            .unwrap();
        assert_eq!(lines.borrow_mut().next_line(&Cancel::new()), Line::End);
        step.event(&stamp, &request).unwrap();
        let shown = Sink::text(&err);
        assert!(shown.starts_with("[Enter] request 3 (5 messages, 900 bytes) \n[Enter] call read a.rs \n"), "{shown}");
    }
}
