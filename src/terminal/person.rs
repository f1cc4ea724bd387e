//! The person: asked before a call runs that nobody else has decided about.
//!
//! What is asked about is shown whole and made safe, also where it does not go to a terminal: the command exactly as
//! it would run, the diff exactly as it would be written. The last words before the answer are ours, not the model's.

use super::console::Console;
use super::folding::{more, one_line, summary, wrap};
use super::ink::Ink;
use super::lines::{Line, SharedLines};
use super::sanitize::sanitize;
use crate::approve::{Answer, Approver, Decision, Rank, Request, parse_answer};
use crate::cancel::Cancel;
use crate::event::By;
use crate::permissions::Permissions;
use crate::tool::{Preview, Question, Scope};

/// Lines of a diff that are shown before somebody asks for all of it.
const DIFF_LINES: usize = 60;

/// Asks on standard error and reads the answer from the front end's lines.
pub struct Person {
    console: Console,
    lines: SharedLines,
    cancel: Cancel,
    rules: Permissions,
}

impl Person {
    /// A person who reads this console and writes these lines; `s` adds to these rules.
    pub fn new(console: Console, lines: SharedLines, cancel: Cancel, rules: Permissions) -> Person {
        Person { console, lines, cancel, rules }
    }
}

impl Approver for Person {
    fn rank(&self) -> Rank {
        Rank::Person
    }

    fn by(&self) -> By {
        By::User
    }

    /// `None` when there is nothing to ask, and when input has ended: then nobody is there.
    fn decide(&mut self, request: &Request) -> Option<Decision> {
        if request.question.is_none() && request.asked.is_none() {
            return None;
        }
        self.console.dot(Ink::Yellow);
        self.show_reasons(request);
        self.show_preview(request, DIFF_LINES);
        self.lines.borrow_mut().forget();
        loop {
            match self.ask(request) {
                Line::End => return None,
                Line::Cancelled => return Some(Decision::Deny("interrupted".into())),
                Line::Text(words) if matches!(words.trim(), "v" | "V" | "view") => {
                    self.show_preview(request, usize::MAX)
                }
                Line::Text(words) => match parse_answer(&words, request) {
                    Answer::Decided(decision) => return Some(decision),
                    Answer::Save(wanted) => match self.rules.save(request, &wanted) {
                        Ok(saved) => {
                            self.console.say(&[(Ink::Dim, &format!("  {}", one_line(&saved)))]);
                            return Some(Decision::Allow);
                        }
                        Err(why) => self.console.say(&[(Ink::Yellow, &format!("  not saved: {}", one_line(&why)))]),
                    },
                    Answer::Unclear => {
                        self.console.say(&[(Ink::Dim, &format!("  {}", hint(request, self.offers(request))))])
                    }
                },
            }
        }
    }
}

impl Person {
    /// What would happen, and why that is a question.
    fn show_reasons(&self, request: &Request) {
        let head = match request.question {
            Some(Question { preview: Preview::Command(_), .. }) => format!("{} would run:", request.call.name),
            Some(question) => question.text.clone(),
            None => format!("{}, which would run without a question:", request.call.name),
        };
        self.console.say(&[(Ink::Bold, &format!("  {}", one_line(&head)))]);
        let why = request.question.and_then(|question| question.why.as_deref());
        for why in [why, request.asked.as_deref()].into_iter().flatten() {
            self.console.say(&[(Ink::Dim, &format!("  {}", one_line(why)))]);
        }
    }

    fn show_preview(&self, request: &Request, most: usize) {
        match request.question.map(|question| &question.preview) {
            Some(Preview::Command(command)) => self.show_command(command),
            Some(Preview::Diff(diff)) => self.show_diff(diff, most),
            Some(Preview::None) => {}
            None => self.show_command(&summary(request.call.arguments.as_ref().ok(), &request.call.raw)),
        }
    }

    fn show_command(&self, command: &str) {
        command.split('\n').for_each(|line| self.quote(Ink::Plain, line));
    }

    /// A foreign line behind a bar. A line that the terminal would wrap goes on behind a broken bar: so no part of it
    /// stands at the left edge, where it could look like one of ours.
    fn quote(&self, ink: Ink, line: &str) {
        let (line, room) = (sanitize(line), self.console.columns().map_or(usize::MAX, |columns| columns - 5));
        for (at, piece) in wrap(&line, room).into_iter().enumerate() {
            self.console.say(&[(Ink::Dim, if at == 0 { "  │ " } else { "  ┆ " }), (ink, piece)]);
        }
    }

    fn show_diff(&self, diff: &str, most: usize) {
        let lines: Vec<&str> = lines_of(diff).collect();
        for line in lines.iter().take(most) {
            let ink = match line.as_bytes().first() {
                Some(b'+') => Ink::Green,
                Some(b'-') => Ink::Red,
                Some(b'@') => Ink::Cyan,
                _ => Ink::Plain,
            };
            self.quote(ink, line);
        }
        if let Some(hidden) = lines.len().checked_sub(most).filter(|hidden| *hidden > 0) {
            self.console.say(&[(Ink::Yellow, &format!("  {}; v shows all", more(hidden)))]);
        }
    }

    /// Whether an "always" and a saved rule would do anything: not about the loop guard's question, which comes all the same.
    fn offers(&self, request: &Request) -> (bool, bool) {
        let lasting = request.question.is_some() || self.rules.asks(request);
        (lasting && request.scope().is_some(), lasting)
    }

    fn ask(&self, request: &Request) -> Line {
        let (always, save) = self.offers(request);
        let always = if always { "[a]lways, " } else { "" };
        let save = if save { "[s]ave, " } else { "" };
        let cut = matches!(request.question.map(|question| &question.preview),
            Some(Preview::Diff(diff)) if lines_of(diff).count() > DIFF_LINES);
        let view = if cut { "[v]iew all, " } else { "" };
        let words = format!("  Run it? [y]es, {always}{save}[n]o, {view}or say why not: ");
        self.console.ask(&[(Ink::Yellow, &words)], &self.lines, &self.cancel)
    }
}

/// Not `lines()`: it would hide a carriage return at a line's end, which is written to the file.
fn lines_of(diff: &str) -> std::str::Split<'_, char> {
    diff.strip_suffix('\n').unwrap_or(diff).split('\n')
}

/// A question of mini's own, such as whether to go on at a limit. Enter alone, the end of input and Ctrl-C are no.
pub fn confirm(console: &Console, lines: &SharedLines, cancel: &Cancel, question: &str) -> bool {
    lines.borrow_mut().forget();
    let line = console.ask(&[(Ink::Yellow, &format!("{question} [y]es, [n]o: "))], lines, cancel);
    matches!(line, Line::Text(words) if matches!(words.trim().to_lowercase().as_str(), "y" | "yes"))
}

/// What the answers mean, above all what an "always" would cover.
fn hint(request: &Request, (always, save): (bool, bool)) -> String {
    let always = match request.scope().filter(|_| always) {
        None => "",
        Some(Scope::Files) => " · a: all writes and edits of this session",
        Some(Scope::Tool(_)) => " · a: every call of this tool in this session",
        Some(Scope::Command { parts: None, .. }) => " · a: this exact command, for this session",
        Some(Scope::Command { .. }) => " · a: this exact command, for this session · a FIRST WORDS: all that begin so",
    };
    let view = match request.question.map(|question| &question.preview) {
        Some(Preview::Diff(_)) => " · v: all of the diff",
        _ => "",
    };
    let save = if save { " · s: save a rule that allows it" } else { "" };
    format!("y: run it{always}{save}{view} · n or a reason: do not")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::message::Call;
    use crate::terminal::Lines;
    use crate::terminal::console::tests::{Sink, console};
    use crate::terminal::{Answers, Paint};
    use serde_json::Map;
    use std::cell::RefCell;
    use std::io::Write;
    use std::rc::Rc;

    /// What the person decides after typing `input`, and what stood on standard error.
    fn decide(question: Option<Question>, asked: Option<&str>, input: &str) -> (Option<Decision>, String) {
        let (reader, mut writer) = std::io::pipe().unwrap();
        writer.write_all(input.as_bytes()).unwrap();
        drop(writer);
        let lines = Rc::new(RefCell::new(Lines::new(reader.into())));
        let (_, err, console) = console(Answers::Once, Paint::Plain);
        let mut person = Person::new(console, lines, Cancel::new(), Permissions::default());
        let (id, name, raw) = ("c".into(), "bash".into(), "{}".into());
        let call = Call { id, name, raw, arguments: Ok(Map::new()), extra: Map::new() };
        let asked = asked.map(String::from);
        let decision = person.decide(&Request { asked, ..Request::new(&call, question.as_ref(), false) });
        (decision, Sink::text(&err))
    }

    fn command(text: &str) -> Option<Question> {
        let scope = Scope::Command { text: text.into(), parts: None };
        let (why, preview) = (Some("make may do anything".into()), Preview::Command(text.into()));
        Some(Question { text: text.into(), why, preview, scope })
    }

    fn edit(diff: &str) -> Option<Question> {
        let (text, preview) = ("edit a.rs (+1 −1)".into(), Preview::Diff(diff.into()));
        Some(Question { text, why: None, preview, scope: Scope::Files })
    }

    #[test]
    fn a_question_shows_the_whole_command_and_why_made_safe() {
        let (decision, shown) = decide(command("make all\nrm \u{202e}x\x1b[1A"), None, "y\n");
        assert_eq!(decision, Some(Decision::Allow));
        assert_eq!(
            shown,
            "  bash would run:\n  make may do anything\n  │ make all\n  │ rm \\u{202e}x\\u{1b}[1A\n  \
             Run it? [y]es, [a]lways, [s]ave, [n]o, or say why not: \n"
        );
    }

    #[test]
    fn a_long_diff_is_cut_and_v_shows_all() {
        let diff = (0..70).map(|n| format!("+line {n}\r\n")).collect::<String>();
        let (decision, shown) = decide(edit(&diff), None, "v\nno, too long\n");
        assert_eq!(decision, Some(Decision::Deny("the person said: no, too long".into())));
        let (first, second) = shown.split_once("Run it?").unwrap();
        assert!(first.contains("line 59\\u{d}\n") && !first.contains("line 60"), "{first}");
        assert!(first.contains("… 10 more lines; v shows all") && shown.matches("[v]iew all").count() == 2, "{shown}");
        assert!(second.contains("line 69"));
    }

    #[test]
    fn an_unclear_answer_is_asked_again_with_what_always_covers() {
        let (decision, shown) = decide(edit("+a"), None, "\na\n");
        assert_eq!(decision, Some(Decision::Always(Scope::Files)));
        assert_eq!(shown.matches("Run it?").count(), 2);
        assert!(shown.contains("a: all writes and edits of this session") && !shown.contains("[v]iew"));
    }

    #[test]
    fn a_slip_of_the_finger_is_asked_again_and_no_reason() {
        let (decision, shown) = decide(command("make"), None, "ye\nyep\nalway\ny\n");
        assert_eq!((decision, shown.matches("Run it?").count()), (Some(Decision::Allow), 4));
    }

    #[test]
    fn nothing_to_ask_and_nobody_to_answer_are_no_opinion() {
        assert_eq!(decide(None, None, "y\n"), (None, String::new()));
        assert_eq!(decide(command("make"), None, "").0, None);
    }

    #[test]
    fn the_loop_guards_question_offers_no_always() {
        let (decision, shown) = decide(None, Some("the same read call came 3 times in a row"), "n\n");
        assert_eq!(decision, Some(Decision::Deny("the person said no".into())));
        assert!(shown.contains("3 times in a row") && shown.contains("[y]es, [n]o,"), "{shown}");
    }

    #[test]
    fn only_a_yes_confirms() {
        for (input, yes) in [("Yes\n", true), ("y\n", true), ("\n", false), ("", false), ("yes please\n", false)] {
            let (reader, mut writer) = std::io::pipe().unwrap();
            writer.write_all(input.as_bytes()).unwrap();
            drop(writer);
            let lines = Rc::new(RefCell::new(Lines::new(reader.into())));
            let (_, err, console) = console(Answers::Once, Paint::Plain);
            assert_eq!(confirm(&console, &lines, &Cancel::new(), "Go on?"), yes, "{input:?}");
            assert_eq!(Sink::text(&err), "Go on? [y]es, [n]o: \n");
        }
    }

    #[test]
    fn an_interrupt_denies() {
        let (reader, _writer) = std::io::pipe().unwrap();
        let cancel = Cancel::new();
        cancel.raise(crate::cancel::Cause::Interrupt);
        let (_, _, console) = console(Answers::Once, Paint::Plain);
        let mut person =
            Person::new(console, Rc::new(RefCell::new(Lines::new(reader.into()))), cancel, Permissions::default());
        let (question, arguments) = (command("make"), Ok(Map::new()));
        let call = Call { id: "c".into(), name: "bash".into(), raw: "{}".into(), arguments, extra: Map::new() };
        let request = Request::new(&call, question.as_ref(), false);
        assert_eq!(person.decide(&request), Some(Decision::Deny("interrupted".into())));
    }
}
