//! Events in words, for a person.
//!
//! The answer goes to standard output (as it streams on a terminal, otherwise once, at the end); everything else to
//! standard error. What counts as the answer is known only afterwards: text that is followed by a call or by another
//! reply was talk on the way, and goes to standard error when that shows.
//!
//! Times: an account's is all that passed since the task was given, a result's only that of the act.
//!
//! A child agent's steps are indented; its text is a tool result in the end, and is not shown twice.

use super::console::{Answers, Console};
use super::ending::Ended;
use super::folding::{account, counted, cut, fold, more, one_line, seconds, summary, wrap_words};
use super::ink::Ink;
use super::outcome::Live;
use super::spinner::BYTES_A_TOKEN;
use crate::event::{By, Event, Observer, Stamp, Usage};
use crate::prices::Price;
use serde_json::Value;
use std::cell::RefCell;
use std::rc::Rc;

/// Lines of a hook's words that are shown: they go to the model as a message, and a person wants to read along.
const HOOK_LINES: usize = 12;

/// Columns of a line where no terminal says its width.
const COLUMNS: usize = 200;

/// Columns that are left for what stands before a text: an indent, a bar.
const MARGIN: usize = 8;

/// Columns, on several lines, that the last words of a result may take: most errors are a sentence or two.
const ENDING: usize = 240;

/// Bytes that are shown of an answer that did not become one: a server may have streamed megabytes of it.
const MOST_CUT_SHORT: usize = 4096;

/// How much is told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Volume {
    /// Every step, in short.
    Normal,
    /// Every step but results: whoever makes a single call (`--call`) shows its result as the answer.
    Calls,
    /// Only the answer and how it ended, with the notices that may explain an end that is not done (`--quiet`).
    Quiet,
}

/// The screen. Clones are the same one: one is the run's observer, one stays with whoever runs the tasks of a talk.
#[derive(Clone)]
pub struct Screen(Rc<RefCell<State>>);

struct State {
    console: Console,
    volume: Volume,
    /// Why nobody can be asked; `None` where somebody is there.
    unasked: Option<&'static str>,
    /// Notices that wait for an end which they may explain.
    withheld: Vec<String>,
    task: Task,
    price: Pricing,
}

/// What is said of the price beside the figures of a task.
enum Pricing {
    Known(Price),
    /// To be said with the next figures.
    Unknown,
    Unsaid,
}

/// What is remembered of the task at hand.
#[derive(Default)]
struct Task {
    /// Unix time of its first message or request, in ms. None for a single call, and for a talk without a task.
    started: Option<u64>,
    turns: u32,
    usage: Usage,
    /// Text of the reply that is coming.
    coming: String,
    /// Text of the newest finished reply, until something follows it; not kept where it has been streamed.
    answer: String,
    /// It stands on standard error already.
    told_answer: bool,
    /// A hook's words that were shown, until the next request.
    hook: Option<String>,
    /// The newest finished reply has text.
    spoke: bool,
    /// What the model thought aloud before it spoke.
    thoughts: String,
    live: Live,
    /// Its end has been told.
    told: bool,
}

impl Screen {
    /// A screen that writes on this console. `unasked` is why nobody can be asked, if so.
    pub fn new(console: Console, volume: Volume, unasked: Option<&'static str>) -> Screen {
        if volume == Volume::Quiet {
            console.answer_once();
            console.may_spin(false);
        }
        let (withheld, task) = (Vec::new(), Task::default());
        Screen(Rc::new(RefCell::new(State { console, volume, unasked, withheld, task, price: Pricing::Unsaid })))
    }

    /// What tokens cost from now on; an unknown price is said once.
    pub fn price(&self, price: Option<Price>) {
        self.0.borrow_mut().price = price.map_or(Pricing::Unknown, Pricing::Known);
    }

    /// Tells how a task ended, once: the `end` event of a single task, or whoever runs the tasks of a talk.
    pub fn task_ended(&self, ended: &Ended) {
        self.0.borrow_mut().ended(ended);
    }
}

impl Observer for Screen {
    fn event(&mut self, stamp: &Stamp, event: &Event) -> Result<(), String> {
        let state = &mut *self.0.borrow_mut();
        if let Event::End { outcome, reason, .. } = event {
            state.ended(&Ended { outcome: *outcome, reason: reason.as_deref(), at: stamp.at });
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
    /// A task begins with its first message or request, not while somebody is still writing it.
    fn keep_time(&mut self, at: u64, event: &Event) {
        if !matches!(event, Event::Message { .. } | Event::Request { .. }) {
            return;
        }
        if self.task.told {
            self.task = Task::default();
        }
        self.task.started.get_or_insert(at);
    }

    fn show(&mut self, whose: Whose, event: &Event) {
        match event {
            Event::Request { .. } => self.request(whose),
            Event::Reasoning { delta } => self.reasoning(delta),
            Event::Text { delta } => self.text(whose, delta),
            Event::Message { message, .. } => self.message(whose, message),
            Event::Call { name, arguments, raw, .. } => self.call(whose, name, &summary(arguments.as_ref(), raw)),
            Event::Approval { by, reason: None, .. } => self.allowed(*by),
            Event::Output { delta, .. } => self.output(whose, delta),
            Event::Result { ok, text, ms, .. } => self.result(whose, *ok, text, *ms),
            Event::Retry { attempt, wait_ms, reason } => self.retry(*attempt, *wait_ms, reason),
            Event::Hook { extension, text, .. } => self.hook(extension, text),
            Event::Compacted { tier: 50, .. } => {
                self.step(Ink::Dim, "history shortened (50 %): of old tool results the first and last lines stay");
            }
            Event::Compacted { tier, before, after, .. } => {
                let (before, why) =
                    (counted(*before, "message"), if *tier > 0 { format!(" ({tier} %)") } else { String::new() });
                self.step(Ink::Dim, &format!("history shortened{why}: {before} became {after}"));
            }
            Event::Usage(usage) => self.task.usage.add(*usage),
            Event::Notice { text } => self.notice(text),
            // A denial's reason stands in the result that follows. Start has nothing that happened yet.
            Event::Start { .. } | Event::Approval { .. } | Event::End { .. } => {}
        }
    }

    fn request(&mut self, whose: Whose) {
        if whose == Whose::Own {
            self.was_no_answer();
            self.task.coming.clear(); // of an attempt that failed
            self.task.hook = None;
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
            let line = format!("{}thought (~{}): {first}", whose.indent(), counted(tokens, "token"));
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
        let tells = self.volume != Volume::Quiet && !self.task.answer.trim().is_empty();
        if tells && !std::mem::replace(&mut self.task.told_answer, true) {
            match self.console.is_joined() {
                true => self.console.answer(&self.task.answer),
                false => self.step(Ink::Plain, self.task.answer.trim_end()),
            }
        }
    }

    /// With `--quiet` it is said only if the end needs explaining.
    fn notice(&mut self, text: &str) {
        if self.volume == Volume::Quiet && !self.task.told {
            return self.withheld.push(text.into());
        }
        self.tell_answer();
        self.console.say(&[(Ink::Yellow, "note: "), (Ink::Plain, text)]);
    }

    fn call(&mut self, whose: Whose, name: &str, about: &str) {
        self.was_no_answer();
        self.task.live = Live::default();
        if self.volume != Volume::Quiet {
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
        if self.volume != Volume::Quiet {
            self.console.note(&format!("allowed by {by}"));
        }
    }

    /// The first lines of a running command as they come, then a count.
    fn output(&mut self, whose: Whose, delta: &str) {
        if self.volume != Volume::Normal {
            return;
        }
        for line in self.task.live.take(delta) {
            self.behind_bar(whose, &line);
        }
        if self.task.live.hidden > 0 {
            self.console.passing(&format!("{}    {}", whose.indent(), more(self.task.live.hidden)));
        }
    }

    fn behind_bar(&self, whose: Whose, line: &str) {
        self.console.say(&[(Ink::Dim, whose.indent()), (Ink::Dim, "  │ "), (Ink::Dim, &self.fitted(line))]);
    }

    /// What is left to show of a result, and behind a corner in the colour of how it went how that was. The time
    /// stands there, and never behind a line that is not ours.
    fn result(&mut self, whose: Whose, ok: bool, text: &str, ms: u64) {
        let live = std::mem::take(&mut self.task.live);
        if self.volume == Volume::Quiet {
            return;
        }
        let ink = if ok { Ink::Green } else { Ink::Red };
        self.console.dot(ink);
        if self.volume == Volume::Calls {
            return;
        }
        let finished = live.finish(ok, text);
        finished.lines.iter().for_each(|line| self.behind_bar(whose, line));
        let ending = cut(&one_line(&finished.ending), ENDING);
        let time = if ms >= 1000 { format!(" · {}", seconds(ms)) } else { String::new() };
        self.console.say(&[(ink, whose.indent()), (ink, "  └ "), (Ink::Dim, &ending), (Ink::Dim, &time)]);
    }

    fn retry(&mut self, attempt: u32, wait_ms: u64, reason: &str) {
        self.task.coming.clear();
        let words = format!("retry {attempt} in {}: {}", seconds(wait_ms), one_line(reason));
        self.step(Ink::Yellow, &words);
    }

    fn hook(&mut self, extension: &str, text: &str) {
        self.tell_answer();
        if self.volume == Volume::Quiet {
            return;
        }
        self.task.hook = Some(text.into());
        let (lines, hidden) = fold(text, HOOK_LINES);
        let name = format!("{extension}: ");
        if let [only] = lines[..] {
            return self.console.say(&[(Ink::Cyan, &name), (Ink::Plain, only)]);
        }
        self.console.say(&[(Ink::Cyan, name.trim_end())]);
        let room = self.console.columns().map_or(usize::MAX, |columns| columns - MARGIN);
        for piece in lines.iter().flat_map(|line| wrap_words(&one_line(line), room)) {
            self.console.say(&[(Ink::Cyan, "  │ "), (Ink::Plain, &piece)]);
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
        if self.volume != Volume::Quiet {
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
            let shown = &cut_short[..cut_short.floor_char_boundary(MOST_CUT_SHORT)];
            let left_out = cut_short.len() - shown.len();
            let more = if left_out > 0 { format!(" … [{left_out} bytes more]") } else { String::new() };
            self.step(Ink::Dim, &format!("{shown}{more}"));
        }
        let answer = std::mem::take(&mut self.task.answer);
        let stands_there = self.task.told_answer && self.console.is_joined();
        if !answer.is_empty() && !stands_there {
            self.console.answer(&answer);
        }
        self.how_it_ended(ended);
        self.account(ended);
    }

    fn how_it_ended(&mut self, ended: &Ended) {
        let notices = std::mem::take(&mut self.withheld);
        if let Some(why) = ended.why(self.task.hook.as_deref(), self.unasked) {
            notices.iter().for_each(|text| self.console.say(&[(Ink::Yellow, "note: "), (Ink::Plain, text)]));
            self.console.say(&[(Ink::Red, "mini: "), (Ink::Plain, &why)]);
        } else if self.task.started.is_some() && !self.task.spoke {
            self.console.say(&[(Ink::Yellow, "mini: done, without an answer")]);
        }
    }

    /// What the task took: all of its time, questions and waits included. Nothing where no model was asked.
    fn account(&mut self, ended: &Ended) {
        let Some(started) = self.task.started else { return };
        let cost = match self.price {
            Pricing::Known(price) => format!(" · ${:.4}", price.of(&self.task.usage)),
            Pricing::Unknown => " · price unknown".into(),
            Pricing::Unsaid => String::new(),
        };
        if matches!(self.price, Pricing::Unknown) {
            self.price = Pricing::Unsaid; // once is enough
        }
        let account = account(self.task.turns, self.task.usage, ended.at.saturating_sub(started));
        self.step(Ink::Dim, &format!("{account}{cost}"));
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
    use super::super::ink::Paint;
    use super::*;
    use crate::event::Outcome;
    use serde_json::json;

    /// What a run of these events leaves on standard output and standard error.
    fn show(answers: Answers, paint: Paint, volume: Volume, events: Vec<Event>) -> (String, String) {
        let (out, err, console) = console(answers, paint);
        let mut screen = Screen::new(console, volume, None);
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
        assert_eq!(
            err,
            "let me look\n● read a.rs\n  │ 1 fn a\n  │ 2 }\n  └ done\n2 turns · 1,200 in · 5 out · 0.9 s\n"
        );
    }

    #[test]
    fn on_a_terminal_text_streams_and_is_not_repeated() {
        let mut events = reply("hello");
        events.push(end(Outcome::Done, None));
        let (out, err) = show(Answers::Streamed, Paint::Plain, Volume::Normal, events);
        assert_eq!(out, "hello\n");
        assert_eq!(err, "1 turn · 0.3 s\n");
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
        let begins =
            "done, I think\nchecker:\n  │ two tests fail:\n  │ a\n  │ b\nmended\nchecker: no\nmini: not verified\n";
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
        let mut screen = Screen::new(console, Volume::Normal, None);
        let mut stamp = Stamp { at: 0, agent: None };
        for text in ["one", "two"] {
            stamp.at += 60_000; // somebody writes the task
            reply(text).iter().for_each(|event| screen.event(&stamp, event).unwrap());
            screen.task_ended(&Ended { outcome: Outcome::Done, reason: None, at: stamp.at + 3_000 });
        }
        screen.event(&stamp, &end(Outcome::Done, None)).unwrap();
        assert_eq!(Sink::text(&out), "one\ntwo\n");
        assert_eq!(Sink::text(&err), "1 turn · 3.0 s\n1 turn · 3.0 s\n");
    }

    #[test]
    fn an_end_that_is_not_simply_done_says_why_and_nothing_is_never_said() {
        let said =
            |outcome| show(Answers::Once, Paint::Plain, Volume::Quiet, vec![request(), end(outcome, Some("why"))]);
        assert_eq!(said(Outcome::Done), (String::new(), "mini: done, without an answer\n".into()));
        assert_eq!(said(Outcome::Limit), (String::new(), "mini: stopped at a limit: why\n".into()));
    }

    #[test]
    fn quiet_leaves_the_answer_and_how_it_ended() {
        let mut events = reply("on the way");
        events.extend([call("bash", json!({"command": "ls"})), result(true, "a"), Event::Notice { text: "n".into() }]);
        events.push(Event::Retry { attempt: 2, wait_ms: 500, reason: "busy".into() });
        events.extend(reply("answer"));
        let said = |outcome, reason| {
            let events = events.iter().cloned().chain([end(outcome, reason)]).collect();
            show(Answers::Streamed, Paint::Plain, Volume::Quiet, events)
        };
        assert_eq!(said(Outcome::Done, None), ("answer\n".into(), String::new()));
        assert_eq!(said(Outcome::Error, Some("e")), ("answer\n".into(), "note: n\nmini: error: e\n".into()));
    }

    #[test]
    fn a_wait_that_fails_last_counts() {
        let (_, err, console) = console(Answers::Once, Paint::Plain);
        let mut screen = Screen::new(console, Volume::Normal, None);
        for (at, event) in [(1_000, request()), (4_000, end(Outcome::Limit, Some("the time limit")))] {
            screen.event(&Stamp { at, agent: None }, &event).unwrap();
        }
        assert_eq!(Sink::text(&err), "mini: stopped at a limit: the time limit\n0 turns · 3.0 s\n");
    }

    #[test]
    fn a_single_call_has_no_result_here_and_no_account() {
        let output = Event::Output { id: "c".into(), delta: "a\n".into() };
        let events =
            vec![call("bash", json!({"command": "ls"})), output, result(true, "a\n"), end(Outcome::Done, None)];
        let (out, err) = show(Answers::Once, Paint::Plain, Volume::Calls, events);
        assert_eq!((out.as_str(), err.as_str()), ("", "● bash ls\n"));
    }

    #[test]
    fn where_both_streams_are_one_the_answer_stands_there_once_above_what_follows_it() {
        let (out, err, console) = console(Answers::Once, Paint::Plain);
        console.join();
        let mut screen = Screen::new(console, Volume::Normal, None);
        let mut events = reply("answer");
        events.extend([Event::Notice { text: "n".into() }, end(Outcome::Done, None)]);
        let stamp = Stamp { at: 0, agent: None };
        events.iter().for_each(|event| screen.event(&stamp, event).unwrap());
        assert_eq!((Sink::text(&out), Sink::text(&err)), ("answer\n".into(), "note: n\n1 turn · 0.0 s\n".into()));
    }

    #[test]
    fn the_time_stands_behind_our_own_words() {
        let slow = |text: &str| {
            let result = Event::Result { id: "c".into(), name: "t".into(), ok: true, text: text.into(), ms: 1_800 };
            plain(vec![call("t", json!({})), result]).1
        };
        assert_eq!(slow("edited a.sh (+1 −1)"), "● t \n  └ edited a.sh (+1 −1) · 1.8 s\n");
        assert_eq!(slow("8 echo\n9 fi"), "● t \n  │ 8 echo\n  │ 9 fi\n  └ done · 1.8 s\n");
    }

    #[test]
    fn a_commands_output_looks_the_same_on_a_terminal_and_in_a_file() {
        let shown = |paint| {
            let output = Event::Output { id: "c".into(), delta: "a\nb\n".into() };
            let events = vec![call("bash", json!({"command": "ls"})), output, result(true, "a\nb\n")];
            show(Answers::Once, paint, Volume::Normal, events).1
        };
        assert_eq!(shown(Paint::Plain), "● bash ls\n  │ a\n  │ b\n  └ done\n");
        let coloured = shown(Paint::Colour);
        assert!(coloured.matches("│ ").count() == 2 && coloured.matches("└ ").count() == 1, "{coloured:?}");
    }

    #[test]
    fn a_hooks_words_are_wrapped_behind_their_bar() {
        let (_, err, console) = console(Answers::Once, Paint::Plain);
        console.set_columns(|| Some(24));
        let mut screen = Screen::new(console, Volume::Normal, None);
        let hook = Event::Hook { extension: "v".into(), mount: "on_stop", text: "one two three four\nfive".into() };
        screen.event(&Stamp { at: 0, agent: None }, &hook).unwrap();
        assert_eq!(Sink::text(&err), "v:\n  │ one two three\n  │ four\n  │ five\n");
    }

    #[test]
    fn a_long_result_is_folded() {
        let text = (1..=45).map(|n| format!("line {n}\n")).collect::<String>();
        let (_, err) = plain(vec![call("read", json!({"path": "a"})), result(true, &text)]);
        assert_eq!(err, "● read a\n  │ line 1\n  │ line 2\n  │ line 3\n  └ done · 3 of 45 lines shown\n");
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
        assert!(many.contains("[exit status 1] · 10 of 30 lines shown"), "{many}");
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
