//! One endpoint, asked step by step: as soon as a step fails that the next ones need, the visit is over.
//!
//! It uses the endpoint as the loop does, so what works here works there: the same retries, the same adaptions, the same
//! words for errors. What the endpoint does not tell (status, how the body came) is seen through a tap on its wire.

use super::call::{self, Made};
use super::seen::{Seen, Watch, reasoning, tap, usage};
use super::window::{self, Kind};
use super::{Finding, Tell};
use crate::cancel::{Cancel, Cause};
use crate::complaint::cut;
use crate::endpoint::{Ask, Endpoint, Failure, Reply, Settings, Tap, Unnamed};
use crate::event::Events;
use crate::message::History;
use crate::nearest::nearest;
use std::cell::RefCell;
use std::rc::Rc;
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::{Duration, Instant};

/// The longest a reply may take. A model that is loaded from a disk first needs most of it.
pub const LONGEST_REPLY: Duration = Duration::from_secs(60);
/// The longest a list of models may take.
const LONGEST_LIST: Duration = Duration::from_secs(15);
/// How many models a finding lists.
const MOST_NAMES: usize = 20;

/// Visits an endpoint and tells what it finds. `longest` bounds each reply; `taps` see the wire. When the cancel flag is
/// raised it stops, and says nothing about what was not looked at.
pub fn endpoint(settings: Settings, taps: Vec<Tap>, longest: Duration, cancel: &Cancel, tell: Tell) {
    let settings = Settings { idle_ms: settings.idle_ms.min(longest.as_millis() as u64), ..settings };
    match Endpoint::new(settings.clone()) {
        Err(why) => tell(Finding::fail("server", why)),
        Ok(mut endpoint) => {
            let seen: Rc<RefCell<Seen>> = Rc::default();
            taps.into_iter().chain([tap(Rc::clone(&seen))]).for_each(|tap| endpoint.tap(tap));
            let events = Events::new(vec![Box::new(Watch(Rc::clone(&seen)))]);
            let (names, kind) = (Vec::new(), Kind::Other);
            let mut visit =
                Visit { endpoint, settings, seen, events, longest, cancel, tell, names, kind, window: None };
            let _ = visit.go(); // an early end has been told
        }
    }
}

struct Visit<'a> {
    endpoint: Endpoint,
    settings: Settings,
    seen: Rc<RefCell<Seen>>,
    events: Events,
    longest: Duration,
    cancel: &'a Cancel,
    tell: Tell<'a>,
    /// The models that the server lists; none if it does not.
    names: Vec<String>,
    kind: Kind,
    /// The model's window, in tokens, if the list of models tells it.
    window: Option<u64>,
}

/// Why a step ended the visit: it has been told, or the person interrupted.
struct Over;

impl Visit<'_> {
    fn go(&mut self) -> Result<(), Over> {
        self.server()?;
        self.model()?;
        self.hello()?;
        let cut = self.tool_call();
        self.look_for_window(cut?)
    }

    /// Is there a server, and which models does it list?
    fn server(&mut self) -> Result<(), Over> {
        let begin = Instant::now();
        let list = self.within("server", LONGEST_LIST, |endpoint, _, cancel| endpoint.models(cancel))?;
        let (ms, status, at) = (begin.elapsed().as_millis(), self.seen.borrow().status, self.settings.base_url.clone());
        match (list, status) {
            (Ok(names), _) => {
                self.kind = window::kind(&self.seen.borrow().body);
                self.say(Finding::ok("server", format!("{at} answers in {ms} ms; models: {}", names.len())));
                self.names = names;
            }
            (Err(why), None) => return self.over(Finding::fail("server", why)),
            (Err(_), Some(404 | 405 | 501)) => {
                self.say(Finding::ok("server", format!("{at} answers in {ms} ms; it does not list its models")));
            }
            (Err(why), Some(_)) => self.say(Finding::note("server", format!("{at} answers, but {why}"))),
        }
        Ok(())
    }

    /// Which model? What a server answers to a name that it does not list is seen with the first reply.
    fn model(&mut self) -> Result<(), Over> {
        let listed = self.names.iter().any(|name| name == self.endpoint.model());
        if self.endpoint.model().is_empty() {
            let named = self.within("model", LONGEST_LIST, |endpoint, _, cancel| {
                endpoint.resolve_model(cancel).map(|name| format!("{name}, the only one of the server"))
            })?;
            match named {
                Ok(text) => self.say(Finding::ok("model", text)),
                Err(Unnamed::Choose(why) | Unnamed::Unknown(why)) => {
                    let check = if matches!(self.seen.borrow().status, Some(401 | 403)) { "key" } else { "model" };
                    return self.over(Finding::fail(check, why));
                }
            }
        } else if listed {
            self.say(Finding::ok("model", format!("{}, which the server lists", self.endpoint.model())));
        }
        self.window = window::tokens(&self.seen.borrow().body, self.endpoint.model());
        Ok(())
    }

    /// Does it answer? With that it is known whether the key is right, and how replies come.
    fn hello(&mut self) -> Result<(), Over> {
        let mut history = History::new();
        history.user("Say hello in at most five words.");
        let begin = Instant::now();
        let reply = match self.ask(&mut history, "[]")? {
            Err(why) => return self.over(self.refused(&why)),
            Ok(reply) => reply,
        };
        self.say(self.key());
        if let Some(finding) = self.unlisted() {
            self.say(finding);
        }
        self.describe(&reply, begin, begin.elapsed());
        Ok(())
    }

    fn describe(&mut self, reply: &Reply, begin: Instant, took: Duration) {
        let text = cut(reply.message.text.trim(), 60);
        self.say(match reply.finish.as_deref() {
            Some("length") => Finding::note(
                "answer",
                format!("cut at the output limit (`{text}`): raise or unset MINI_MAX_OUTPUT_TOKENS"),
            ),
            _ => Finding::ok("answer", format!("`{text}` after {:.1} s", took.as_secs_f64())),
        });
        let streaming = self.seen.borrow().streaming(begin, took);
        [streaming, usage(reply.usage), reasoning(reply)].into_iter().for_each(|finding| self.say(finding));
    }

    /// Does the model call a tool, and does the server take the result? Returns the count of prompt tokens if it did not
    /// grow with the prompt. A model may have a bad moment, so there are two tries.
    fn tool_call(&mut self) -> Result<Option<u64>, Over> {
        let mut last = Made::Words;
        for _ in 0..2 {
            let mut history = History::new();
            history.user(call::REQUEST);
            let reply = match self.ask(&mut history, call::OFFER)? {
                Err(why) => {
                    self.say(call::refused(&why));
                    return Ok(None);
                }
                Ok(reply) => reply,
            };
            last = call::made(&reply.message);
            if last == Made::Call {
                return self.result_of(history, reply);
            }
        }
        self.say(call::missing(&last));
        Ok(None)
    }

    /// Sends a result back for each call.
    fn result_of(&mut self, mut history: History, reply: Reply) -> Result<Option<u64>, Over> {
        let before = reply.usage.input;
        history.assistant(reply.message);
        while history.answer("ready").is_some() {}
        match self.ask(&mut history, call::OFFER)? {
            Err(why) => {
                self.say(Finding::fail(
                    "tool call",
                    format!("the model calls a tool, but its result is refused: {why}"),
                ));
                Ok(None)
            }
            Ok(reply) => {
                self.say(Finding::ok("tool call", "the model called a tool, and went on with its result"));
                Ok(Some(reply.usage.input).filter(|after| (1..=before).contains(after)))
            }
        }
    }

    /// How wide is the window? Ollama and llama.cpp tell it elsewhere, and only of a model that is loaded: hence last.
    fn look_for_window(&mut self, cut: Option<u64>) -> Result<(), Over> {
        let elsewhere = match self.kind.page() {
            None => None,
            Some(page) => {
                let document =
                    self.within("window", LONGEST_LIST, |endpoint, _, cancel| endpoint.page(page, cancel))?;
                document.ok().and_then(|document| window::tokens(&document, self.endpoint.model()))
            }
        };
        self.say(match cut {
            Some(tokens) => window::cut(tokens, self.kind),
            None => window::finding(elsewhere.or(self.window), self.kind),
        });
        Ok(())
    }

    /// One reply, or why there is none. Notices and retries on the way are findings.
    fn ask(&mut self, history: &mut History, tools: &str) -> Result<Result<Reply, String>, Over> {
        let reply = self.within("answer", self.longest, |endpoint, events, cancel| {
            endpoint.ask(Ask { turn: 1, system: "", history, tools }, events, cancel)
        })?;
        let mut notices = std::mem::take(&mut self.seen.borrow_mut().notices);
        notices.dedup();
        notices.into_iter().for_each(|text| self.say(Finding::note("on the way", text)));
        match reply {
            Ok(reply) => Ok(Ok(reply)),
            Err(Failure::Overflow(why) | Failure::Failed(why)) => Ok(Err(why)),
            Err(Failure::Interrupted) => Err(Over),
        }
    }

    /// Runs a step that must not take longer than `longest`. The time limit and Ctrl-C share the one flag that ends a
    /// blocked read; which of them it was is seen afterwards.
    fn within<T>(
        &mut self,
        check: &'static str,
        longest: Duration,
        step: impl FnOnce(&mut Endpoint, &mut Events, &Cancel) -> T,
    ) -> Result<T, Over> {
        let (over, waiting) = channel::<()>();
        let theirs = self.cancel.clone();
        let timer = std::thread::spawn(move || {
            if waiting.recv_timeout(longest) == Err(RecvTimeoutError::Timeout) {
                theirs.raise(Cause::TimeLimit);
            }
        });
        let result = step(&mut self.endpoint, &mut self.events, self.cancel);
        drop(over);
        let _ = timer.join(); // it has nothing to panic about
        match self.cancel.cause() {
            None => Ok(result),
            Some(Cause::TimeLimit) => {
                self.cancel.clear();
                let (url, s) = (self.endpoint.url(), longest.as_secs_f64().ceil());
                let words = format!("{url}: no whole reply within {s} s: a smaller model, or a faster machine for it?");
                self.over(Finding::fail(check, words))
            }
            Some(_) => Err(Over),
        }
    }

    fn say(&mut self, finding: Finding) {
        (self.tell)(Finding { text: self.endpoint.redact(finding.text), ..finding });
    }

    fn over<T>(&mut self, finding: Finding) -> Result<T, Over> {
        self.say(finding);
        Err(Over)
    }

    /// No reply at all: the status says which part of the settings is wrong.
    fn refused(&self, why: &str) -> Finding {
        match self.seen.borrow().status {
            Some(401 | 403) => Finding::fail("key", why),
            Some(400 | 404) if why.contains("--model") => Finding::fail("model", self.with_names(why)),
            _ => Finding::fail("answer", why),
        }
    }

    fn with_names(&self, why: &str) -> String {
        let near = nearest(self.endpoint.model(), self.names.iter().map(String::as_str));
        let near = near.map_or(String::new(), |name| format!(" Did you mean {name}?"));
        let more = if self.names.len() > MOST_NAMES { ", …" } else { "" };
        let names = self.names.iter().take(MOST_NAMES).map(String::as_str).collect::<Vec<_>>().join(", ");
        let list = if names.is_empty() { String::new() } else { format!(" It lists: {names}{more}") };
        format!("{why}{near}{list}")
    }

    fn key(&self) -> Finding {
        let Settings { key, key_source, headers, .. } = &self.settings;
        Finding::ok(
            "key",
            match (key.as_deref().is_some_and(|key| !key.trim().is_empty()), headers.is_empty()) {
                (true, _) => format!("accepted ({key_source})"),
                (false, false) => "none; the headers of MINI_HEADERS are accepted".into(),
                (false, true) => "none is sent, and none is wanted".into(),
            },
        )
    }

    /// A model that answers although it is not in the list, or where there is no list.
    fn unlisted(&self) -> Option<Finding> {
        let model = self.endpoint.model();
        match (self.names.is_empty(), self.names.iter().any(|name| name == model)) {
            (_, true) => None,
            (true, false) => Some(Finding::ok("model", model)),
            (false, false) => Some(Finding::note(
                "model",
                self.with_names(&format!("{model} answers, and the server does not list it.")),
            )),
        }
    }
}
