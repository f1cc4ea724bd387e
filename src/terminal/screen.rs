//! Events in words, for a person.
//!
//! The answer goes to standard output (as it streams on a terminal, otherwise once, at the end); everything else to
//! standard error. What counts as the answer is known only afterwards: text that is followed by a call or by another
//! reply was talk on the way, and goes to standard error when that shows.
//!
//! A child agent's steps are indented; its text is a tool result in the end, and is not shown twice.

use super::console::{Answers, Console};
use super::ending::Ended;
use super::folding::{account, cut, fold, more, one_line, seconds, summary};
use super::ink::{Ink, Paint};
use super::live::Live;
use super::spinner::BYTES_A_TOKEN;
use crate::event::{By, Event, Observer, Outcome, Stamp, Usage};
use serde_json::Value;
use std::cell::RefCell;
use std::rc::Rc;

/// Lines of a hook's words that are shown: they go to the model as a message, and a person wants to read along.
const HOOK_LINES: usize = 12;

/// Lines of a result that are shown.
const RESULT_LINES: usize = 3;

/// Columns of a line where no terminal says its width.
const COLUMNS: usize = 200;

/// Columns that are left for what stands before and behind a text: an indent, a time.
const MARGIN: usize = 16;

/// How much is told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Volume {
    /// Every step, in short.
    Normal,
    /// Only the answer, notices, and how it ended (`--quiet`).
    Quiet,
}

/// The screen. Clones are the same one: one is the run's observer, one stays with whoever runs the tasks of a talk.
#[derive(Clone)]
pub struct Screen(Rc<RefCell<State>>);

struct State {
    console: Console,
    volume: Volume,
    task: Task,
}

/// What is remembered of the task at hand.
#[derive(Default)]
struct Task {
    /// Unix time of its first and its newest event, in ms.
    started: Option<u64>,
    newest: u64,
    turns: u32,
    usage: Usage,
    /// Text of the reply that is coming.
    coming: String,
    /// Text of the newest finished reply, until something follows it; not kept where it has been streamed.
    answer: String,
    /// It stands on standard error already.
    told_answer: bool,
    /// The newest finished reply has text.
    spoke: bool,
    /// What the model thought aloud before it spoke.
    thoughts: String,
    live: Live,
    /// Its end has been told.
    told: bool,
}

impl Screen {
    /// A screen that writes on this console.
    pub fn new(console: Console, volume: Volume) -> Screen {
        if volume == Volume::Quiet {
            console.answer_once();
            console.may_spin(false);
        }
        Screen(Rc::new(RefCell::new(State { console, volume, task: Task::default() })))
    }

    /// Tells how a task ended, once: the `end` event of a single task, or whoever runs the tasks of a talk.
    pub fn task_ended(&self, ended: &Ended) {
        self.0.borrow_mut().ended(ended);
    }
}

impl Observer for Screen {
    fn event(&mut self, stamp: &Stamp, event: &Event) -> Result<(), String> {
        let state = &mut *self.0.borrow_mut();
        if let Event::End { outcome, reason, cost, .. } = event {
            state.ended(&Ended { outcome: *outcome, reason: reason.as_deref(), cost: *cost });
            return Ok(());
        }
        state.keep_time(stamp.at, event);
        let whose = if stamp.agent.is_some() { Whose::Child } else { Whose::Own };
        state.show(whose, event);
        Ok(())
    }
}

/// Whose event it is.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Whose {
    Own,
    Child,
}

impl Whose {
    fn indent(self) -> &'static str {
        match self {
            Whose::Own => "",
            Whose::Child => "  ",
        }
    }
}

impl State {
    /// The first request or message behind an end starts the next task.
    fn keep_time(&mut self, at: u64, event: &Event) {
        if self.task.told && matches!(event, Event::Message { .. } | Event::Request { .. }) {
            self.task = Task::default();
        }
        self.task.started.get_or_insert(at);
        self.task.newest = at;
    }

    fn show(&mut self, whose: Whose, event: &Event) {
        match event {
            Event::Request { .. } => self.request(whose),
            Event::Reasoning { delta } => self.reasoning(delta),
            Event::Text { delta } => self.text(whose, delta),
            Event::Message { message, .. } => self.message(whose, message),
            Event::Call { name, arguments, raw, .. } => self.call(whose, name, &summary(arguments.as_ref(), raw)),
            Event::Approval { by, reason: None, .. } => self.allowed(*by),
            Event::Output { delta, .. } => self.output(delta),
            Event::Result { ok, text, ms, .. } => self.result(whose, *ok, text, *ms),
            Event::Retry { attempt, wait_ms, reason } => self.retry(*attempt, *wait_ms, reason),
            Event::Hook { extension, text, .. } => self.hook(extension, text),
            Event::Compacted { before, after, .. } => {
                self.step(Ink::Dim, &format!("history shortened: {before} messages became {after}"));
            }
            Event::Usage(usage) => self.task.usage.add(*usage),
            Event::Notice { text } => {
                self.tell_answer();
                self.console.say(&[(Ink::Yellow, "note: "), (Ink::Plain, text)]);
            }
            // A denial's reason stands in the result that follows. Start has nothing that happened yet.
            Event::Start { .. } | Event::Approval { .. } | Event::End { .. } => {}
        }
    }

    fn request(&mut self, whose: Whose) {
        if whose == Whose::Own {
            self.was_no_answer();
            self.task.coming.clear(); // of an attempt that failed
        }
        self.task.thoughts.clear();
        self.console.spin();
    }

    fn reasoning(&mut self, delta: &str) {
        self.console.count(delta.len());
        self.task.thoughts.push_str(delta);
    }

    fn text(&mut self, whose: Whose, delta: &str) {
        self.console.count(delta.len());
        if whose == Whose::Child || delta.is_empty() {
            return;
        }
        self.thoughts(whose);
        match self.console.answers() {
            Answers::Streamed => self.console.stream(delta),
            Answers::Once => self.task.coming.push_str(delta),
        }
    }

    /// What was thought before the first word: its first line, and how much more.
    fn thoughts(&mut self, whose: Whose) {
        let thoughts = std::mem::take(&mut self.task.thoughts);
        if let Some(first) = thoughts.lines().find(|line| !line.trim().is_empty()) {
            let tokens = thoughts.len() / BYTES_A_TOKEN;
            let line = format!("{}thought (~{tokens} tokens): {first}", whose.indent());
            self.step(Ink::Dim, &self.fitted(&line));
        }
    }

    fn message(&mut self, whose: Whose, message: &Value) {
        if message["role"] != "assistant" {
            return;
        }
        self.thoughts(whose);
        if whose == Whose::Child {
            return;
        }
        self.task.turns += 1;
        self.task.spoke = message["content"].as_str().is_some_and(|text| !text.trim().is_empty());
        self.task.answer = std::mem::take(&mut self.task.coming);
        self.task.told_answer = false;
        self.console.fresh_line();
    }

    /// Something follows the text of the newest reply: it was talk on the way.
    fn was_no_answer(&mut self) {
        self.tell_answer();
        self.task.answer.clear();
    }

    /// A hook has its say before the end, and what it speaks about should stand above its words: so an answer that
    /// has to wait for standard output is told on standard error first.
    fn tell_answer(&mut self) {
        if !self.task.answer.trim().is_empty() && !std::mem::replace(&mut self.task.told_answer, true) {
            self.step(Ink::Plain, self.task.answer.trim_end());
        }
    }

    fn call(&mut self, whose: Whose, name: &str, about: &str) {
        self.was_no_answer();
        self.task.live = Live::default();
        if self.volume == Volume::Normal {
            self.console.call(whose.indent(), ink_of(name), name, about);
        }
    }

    /// Only what is not plain from the screen: the person has just answered, and has set `--yes` himself.
    fn allowed(&mut self, by: By) {
        let by = match by {
            By::Rule => "a rule",
            By::Always => "an earlier \"always\"",
            By::Script => "the script",
            _ => return,
        };
        if self.volume == Volume::Normal {
            self.console.note(&format!("allowed by {by}"));
        }
    }

    /// The first lines of a running command as they come, then a count: on a terminal, where somebody waits.
    fn output(&mut self, delta: &str) {
        if self.volume == Volume::Quiet || self.console.paint() == Paint::Plain {
            return;
        }
        for line in self.task.live.take(delta) {
            self.console.say(&[(Ink::Dim, "    "), (Ink::Dim, &self.fitted(&line))]);
        }
        if self.task.live.hidden > 0 {
            self.console.passing(&format!("    {}", more(self.task.live.hidden)));
        }
    }

    fn result(&mut self, whose: Whose, ok: bool, text: &str, ms: u64) {
        if self.volume == Volume::Quiet {
            return;
        }
        let ink = if ok { Ink::Green } else { Ink::Red };
        self.console.dot(ink);
        let live = std::mem::take(&mut self.task.live);
        if live.hidden > 0 {
            self.console.say(&[(Ink::Dim, &format!("    {}", more(live.hidden)))]);
        }
        self.folded(whose, ink, &live.beyond(text), if ms >= 1000 { Some(ms) } else { None });
    }

    /// A result's first lines behind a corner in the colour of how it went.
    fn folded(&self, whose: Whose, ink: Ink, text: &str, ms: Option<u64>) {
        let (lines, hidden) = fold(text, RESULT_LINES);
        let time = ms.map(|ms| format!(" ({})", seconds(ms))).unwrap_or_default();
        if lines.is_empty() {
            let words = if ink == Ink::Green { "done" } else { "failed" };
            return self.console.say(&[
                (ink, &format!("{}  └ ", whose.indent())),
                (Ink::Dim, words),
                (Ink::Dim, &time),
            ]);
        }
        for (at, line) in lines.iter().enumerate() {
            let corner = format!("{}{}", whose.indent(), if at == 0 { "  └ " } else { "    " });
            let last = at + 1 == lines.len() && hidden == 0;
            let line = self.fitted(line);
            self.console.say(&[(ink, &corner), (Ink::Dim, &line), (Ink::Dim, if last { &time } else { "" })]);
        }
        if hidden > 0 {
            self.console.say(&[(Ink::Dim, &format!("{}    {}{time}", whose.indent(), more(hidden)))]);
        }
    }

    fn retry(&mut self, attempt: u32, wait_ms: u64, reason: &str) {
        self.task.coming.clear();
        let words = format!("retry {attempt} in {}: {}", seconds(wait_ms), one_line(reason));
        self.console.say(&[(Ink::Yellow, &words)]);
    }

    fn hook(&mut self, extension: &str, text: &str) {
        self.tell_answer();
        if self.volume == Volume::Quiet {
            return;
        }
        let (lines, hidden) = fold(text, HOOK_LINES);
        let name = format!("{extension}: ");
        if let [only] = lines[..] {
            return self.console.say(&[(Ink::Cyan, &name), (Ink::Plain, &self.fitted(only))]);
        }
        self.console.say(&[(Ink::Cyan, name.trim_end())]);
        for line in lines {
            self.console.say(&[(Ink::Cyan, "  │ "), (Ink::Plain, &self.fitted(line))]);
        }
        if hidden > 0 {
            self.console.say(&[(Ink::Dim, &format!("    {}", more(hidden)))]);
        }
    }

    /// A foreign text on one line that does not wrap, behind at most an indent and a name.
    fn fitted(&self, text: &str) -> String {
        cut(&one_line(text), self.console.columns().unwrap_or(COLUMNS).saturating_sub(MARGIN))
    }

    /// A line about a step; not with `--quiet`.
    fn step(&self, ink: Ink, text: &str) {
        if self.volume == Volume::Normal {
            self.console.say(&[(ink, text)]);
        }
    }

    fn ended(&mut self, ended: &Ended) {
        if std::mem::replace(&mut self.task.told, true) {
            return;
        }
        self.console.fresh_line();
        let cut_short = std::mem::take(&mut self.task.coming);
        if !cut_short.is_empty() {
            self.step(Ink::Dim, &cut_short);
        }
        let answer = std::mem::take(&mut self.task.answer);
        if !answer.is_empty() {
            self.console.answer(&answer);
        }
        if ended.outcome == Outcome::Done && !self.task.spoke {
            self.console.say(&[(Ink::Yellow, "mini: done, without an answer")]);
        }
        if let Some(why) = ended.why() {
            self.console.say(&[(Ink::Red, "mini: "), (Ink::Plain, &why)]);
        }
        let ms = self.task.newest.saturating_sub(self.task.started.unwrap_or(self.task.newest));
        let cost = ended.cost.map(|dollars| format!(" · ${dollars:.4}")).unwrap_or_default();
        self.step(Ink::Dim, &format!("{}{cost}", account(self.task.turns, self.task.usage, ms)));
    }
}

/// A colour for each of mini's own tools; one for all others.
fn ink_of(tool: &str) -> Ink {
    match tool {
        "read" => Ink::Yellow,
        "write" => Ink::Blue,
        "edit" => Ink::Green,
        "bash" => Ink::Magenta,
        _ => Ink::Cyan,
    }
}

#[cfg(test)]
mod tests {
    use super::super::console::tests::{Sink, console};
    use super::*;
    use serde_json::json;

    /// What a run of these events leaves on standard output and standard error.
    fn show(answers: Answers, paint: Paint, volume: Volume, events: Vec<Event>) -> (String, String) {
        let (out, err, console) = console(answers, paint);
        let mut screen = Screen::new(console, volume);
        for (at, event) in events.into_iter().enumerate() {
            screen.event(&Stamp { at: at as u64 * 100, agent: None }, &event).unwrap();
        }
        (Sink::text(&out), Sink::text(&err))
    }

    fn plain(events: Vec<Event>) -> (String, String) {
        show(Answers::Once, Paint::Plain, Volume::Normal, events)
    }

    fn request() -> Event {
        Event::Request { turn: 1, attempt: 1, messages: 1, bytes: 10, estimated_tokens: 3 }
    }

    /// A reply of this text: its deltas, and the message.
    fn reply(text: &str) -> Vec<Event> {
        let delta = Event::Text { delta: text.into() };
        let message = json!({"role": "assistant", "content": text});
        vec![request(), delta, Event::Message { message, finish: Some("stop".into()) }]
    }

    fn call(name: &str, arguments: Value) -> Event {
        let arguments = arguments.as_object().cloned();
        Event::Call { id: "c".into(), name: name.into(), arguments, raw: String::new() }
    }

    fn result(ok: bool, text: &str) -> Event {
        Event::Result { id: "c".into(), name: "t".into(), ok, text: text.into(), ms: 5 }
    }

    fn end(outcome: Outcome, reason: Option<&str>) -> Event {
        let reason = reason.map(String::from);
        let (text, usage, changed) = (String::new(), Usage::default(), vec![]);
        Event::End { outcome, reason, text, turns: 1, usage, cost: None, changed, exit: outcome.exit() }
    }

    #[test]
    fn piped_the_last_answer_comes_once_and_earlier_text_goes_to_standard_error() {
        let mut events = reply("let me look");
        events.extend([call("read", json!({"path": "a.rs"})), result(true, "1\tfn a\n2\t}")]);
        events.extend(reply("all\ngood"));
        events.push(Event::Usage(Usage { input: 1200, cached: 0, output: 5, reasoning: 0 }));
        events.push(end(Outcome::Done, None));
        let (out, err) = plain(events);
        assert_eq!(out, "all\ngood\n");
        assert_eq!(err, "let me look\n● read a.rs\n  └ 1 fn a\n    2 }\n2 turns · 1,200 in · 5 out · 0.8 s\n");
    }

    #[test]
    fn on_a_terminal_text_streams_and_is_not_repeated() {
        let mut events = reply("hello");
        events.push(end(Outcome::Done, None));
        let (out, err) = show(Answers::Streamed, Paint::Plain, Volume::Normal, events);
        assert_eq!(out, "hello\n");
        assert_eq!(err, "1 turn · 0.2 s\n");
    }

    #[test]
    fn a_hooks_words_stand_whole_below_the_text_they_speak_about() {
        let hook = |text: &str| Event::Hook { extension: "checker".into(), mount: "on_stop", text: text.into() };
        let mut events = reply("done, I think");
        events.push(hook("two tests fail:\na\nb"));
        events.extend(reply("mended"));
        events.push(hook("no"));
        events.push(end(Outcome::Unverified, Some("no")));
        let (out, err) = plain(events);
        assert_eq!(out, "mended\n");
        let begins = "done, I think\nchecker:\n  │ two tests fail:\n  │ a\n  │ b\nmended\nchecker: no\n";
        assert!(err.starts_with(begins), "{err}");
    }

    #[test]
    fn a_failed_attempts_text_is_not_the_answer() {
        let mut events = vec![request(), Event::Text { delta: "hal".into() }];
        events.push(Event::Retry { attempt: 2, wait_ms: 500, reason: "the stream was cut".into() });
        events.extend(reply("whole"));
        events.push(end(Outcome::Done, None));
        let (out, err) = plain(events);
        assert_eq!(out, "whole\n");
        assert!(err.starts_with("retry 2 in 0.5 s: the stream was cut\n"), "{err}");
    }

    #[test]
    fn each_task_of_a_talk_has_its_own_answer_and_the_end_says_nothing_twice() {
        let (out, err, console) = console(Answers::Once, Paint::Plain);
        let mut screen = Screen::new(console, Volume::Normal);
        let stamp = Stamp { at: 0, agent: None };
        for text in ["one", "two"] {
            reply(text).iter().for_each(|event| screen.event(&stamp, event).unwrap());
            screen.task_ended(&Ended { outcome: Outcome::Done, reason: None, cost: None });
        }
        screen.event(&stamp, &end(Outcome::Done, None)).unwrap();
        assert_eq!(Sink::text(&out), "one\ntwo\n");
        assert_eq!(Sink::text(&err), "1 turn · 0.0 s\n1 turn · 0.0 s\n");
    }

    #[test]
    fn an_end_that_is_not_simply_done_says_why_and_nothing_is_never_said() {
        let said = |outcome| show(Answers::Once, Paint::Plain, Volume::Quiet, vec![end(outcome, Some("why"))]);
        assert_eq!(said(Outcome::Done), (String::new(), "mini: done, without an answer\n".into()));
        assert_eq!(said(Outcome::Limit), (String::new(), "mini: stopped at a limit: why\n".into()));
    }

    #[test]
    fn quiet_leaves_the_answer_and_notices() {
        let mut events = reply("on the way");
        events.extend([call("bash", json!({"command": "ls"})), result(true, "a"), Event::Notice { text: "n".into() }]);
        events.extend(reply("answer"));
        events.push(end(Outcome::Done, None));
        let (out, err) = show(Answers::Streamed, Paint::Plain, Volume::Quiet, events);
        assert_eq!((out.as_str(), err.as_str()), ("answer\n", "note: n\n"));
    }

    #[test]
    fn a_long_result_is_folded() {
        let text = (1..=45).map(|n| format!("line {n}\n")).collect::<String>();
        let (_, err) = plain(vec![call("read", json!({"path": "a"})), result(true, &text)]);
        assert_eq!(err, "● read a\n  └ line 1\n    line 2\n    line 3\n    … 42 more lines\n");
        assert_eq!(plain(vec![call("read", json!({})), result(false, "\n")]).1, "● read \n  └ failed\n");
    }

    #[test]
    fn live_output_is_shown_once_and_its_rest_counted() {
        let live = |lines: u32| {
            let printed: String = (1..=lines).map(|n| format!("line {n}\n")).collect();
            let output = Event::Output { id: "c".into(), delta: printed.clone() };
            let text = format!("{printed}[exit status 1]");
            show(
                Answers::Once,
                Paint::Colour,
                Volume::Normal,
                vec![call("bash", json!({"command": "make"})), output, result(false, &text)],
            )
            .1
        };
        let few = live(2);
        assert_eq!((few.matches("line 2").count(), few.matches("[exit status 1]").count()), (1, 1), "{few}");
        let many = live(30);
        assert!(!many.contains("line 11") && many.contains("… 20 more lines"), "{many}");
        assert!(many.contains("[exit status 1]"), "{many}");
    }

    #[test]
    fn what_a_model_or_a_tool_says_reaches_no_terminal_raw() {
        let evil = "\x1b]0;x\x07\u{202e}";
        let mut events = vec![request(), Event::Reasoning { delta: evil.into() }];
        events.extend(reply(evil));
        events.extend([
            call(evil, json!({ "path": evil })),
            Event::Output { id: "c".into(), delta: format!("{evil}\n") },
        ]);
        events.extend([result(false, evil), Event::Notice { text: evil.into() }]);
        events.push(Event::Hook { extension: evil.into(), mount: "on_stop", text: evil.into() });
        events.push(Event::Retry { attempt: 2, wait_ms: 1, reason: evil.into() });
        events.push(end(Outcome::Error, Some(evil)));
        let (out, err) = show(Answers::Streamed, Paint::Plain, Volume::Normal, events);
        let raw = |text: &str| text.chars().any(|c| (c.is_control() && c != '\n') || c == '\u{202e}');
        assert!(!raw(&out) && !raw(&err), "{out:?} {err:?}");
    }
}
