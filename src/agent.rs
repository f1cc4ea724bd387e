//! The loop and the one door, nothing else.
//!
//! ```text
//! the model proposes   →  endpoint.ask()  returns text and tool calls
//! the gate decides     →  execute()       parse → find the tool → check → approvers
//! the program executes →  the act         its result joins the history, and the model reads it next
//! ```
//!
//! Everything that makes one agent differ from another is behind four traits: what *acts* is a [`Tool`] or an
//! [`Extension`], what *watches* an [`Observer`](crate::event::Observer), what *allows* an
//! [`Approver`](crate::approve::Approver). Adding a lab, a front end or a policy changes no line here.
//!
//! Left out on purpose: running calls in parallel (the results would need an order anyway, and a person can only
//! answer one question at a time), and planning, memory or sub-agents (labs attach them from outside).

use crate::approve::{Approvers, PlanMode, Request, Ruling};
use crate::endpoint::{Ask, Failure as AskFailure, Reply};
use crate::event::{By, Event, Outcome, Usage, Verdict};
use crate::extension::{Extension, Next, Stop};
use crate::message::{Call, History};
use crate::reply;
use crate::tool::{self, Act, Check, Context, Failure, Json, Question, Spec, Tool};
use crate::window::Window;
use crate::workspace::Workspace;
use std::time::Instant;

/// An agent: a conversation, and everything that takes part in it. Built by [`Setup`](crate::setup::Setup).
pub struct Agent {
    /// The base prompt and the project's rules.
    base: String,
    tools: Vec<(Spec, Box<dyn Tool>)>,
    /// The tools as a request offers them, serialised once.
    offered: String,
    pub(crate) extensions: Vec<Box<dyn Extension>>,
    approvers: Approvers,
    pub(crate) plan: PlanMode,
    window: Window,
    pub(crate) history: History,
    task: Task,
}

/// What is remembered of the task at hand.
#[derive(Default)]
struct Task {
    text: String,
    turns: u32,
    /// The text of the newest reply.
    answer: String,
    /// How often a hook sent the loop on.
    attempt: u32,
    /// Acts that may have changed something.
    changes: u32,
    /// Why a call was denied that nobody could approve, if one was.
    unapproved: Option<String>,
    /// Whether the model has been told once that a call written as text is not a call.
    told: bool,
    /// Whether it has been said once that the server counts no tokens.
    uncounted: bool,
}

/// How a task ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct End {
    /// The kind of end; decides the exit code.
    pub outcome: Outcome,
    /// Why, unless it is simply done.
    pub reason: Option<String>,
    /// The text of the task's last reply.
    pub text: String,
    /// Turns the task took.
    pub turns: u32,
    /// Only the limit of turns ended it: [`Agent::go_on`] would take it further.
    pub may_go_on: bool,
}

impl End {
    /// An end with nothing to say, such as that of a talk without a task.
    pub fn done() -> End {
        End { outcome: Outcome::Done, reason: None, text: String::new(), turns: 0, may_go_on: false }
    }
}

/// What came of a call: whether it went well, and the text the model reads.
struct Executed {
    ok: bool,
    text: String,
}

/// How the loop comes to its end by itself.
enum Stopped {
    /// The model made no further call, and no hook objected.
    Satisfied,
    /// A task may take so many turns, and no more.
    OutOfTurns,
}

/// Why the loop stops short.
struct Halt(Outcome, String);

impl Agent {
    /// An agent of these parts and no others: no extensions, no plan mode, an empty history. [`Setup`](crate::setup::Setup)
    /// builds the agent of a run with it, and an act a child agent, which it lends its own [`Context`]. Tools keep their
    /// order; their names must differ.
    pub fn new(base: String, tools: Vec<Box<dyn Tool>>, approvers: Approvers, window: Window) -> Agent {
        let tools: Vec<_> = tools.into_iter().map(|tool| (tool.spec(), tool)).collect();
        let offered: Json = tools.iter().map(|(spec, _)| spec.to_json()).collect();
        let (extensions, plan) = (Vec::new(), PlanMode::default());
        let (history, task) = (History::new(), Task::default());
        Agent { base, offered: offered.to_string(), tools, extensions, approvers, plan, window, history, task }
    }

    /// Works on a task until it ends. The history is valid afterwards, whatever happened.
    pub fn run(&mut self, task: &str, cx: &mut Context) -> End {
        self.task = Task { text: task.into(), ..Task::default() };
        self.say(task.into(), cx);
        self.go_on(cx)
    }

    /// Goes on with a task that a limit of turns has ended.
    pub fn go_on(&mut self, cx: &mut Context) -> End {
        let result = self.turns(cx);
        for message in self.history.close(crate::message::INTERRUPTED) {
            cx.events.message(message, None);
        }
        let may_go_on = matches!(result, Ok(Stopped::OutOfTurns));
        let (outcome, reason) = match (result, self.task.unapproved.take()) {
            (Err(Halt(outcome, why)), _) => (outcome, Some(why)),
            (Ok(Stopped::OutOfTurns), _) => {
                let (most, plural) = (cx.budget.max_turns, if cx.budget.max_turns == 1 { "" } else { "s" });
                (Outcome::Limit, Some(format!("the limit of {most} turn{plural} is reached")))
            }
            (Ok(Stopped::Satisfied), Some(why)) => (Outcome::Unapproved, Some(why)),
            (Ok(Stopped::Satisfied), None) => (Outcome::Done, None),
        };
        End { outcome, reason, text: self.task.answer.clone(), turns: self.task.turns, may_go_on }
    }

    /// Tries one tool through the one door, without a model (`--call`). `arguments` is JSON, as a model would send it;
    /// the end's text is the result. Nothing joins the history.
    pub fn call(&mut self, name: &str, arguments: &str, cx: &mut Context) -> End {
        let (id, name, raw) = ("call-1".into(), name.into(), arguments.into());
        let call = Call { id, name, raw, arguments: reply::arguments::read(arguments), extra: Default::default() };
        let (outcome, reason, text) = match (self.execute(&call, cx), self.task.unapproved.take()) {
            (Err(Halt(outcome, why)), _) => (outcome, Some(why), String::new()),
            (Ok(executed), Some(why)) => (Outcome::Unapproved, Some(why), executed.text),
            (Ok(Executed { ok: true, text }), None) => (Outcome::Done, None, text),
            (Ok(Executed { ok: false, text }), None) => (Outcome::Error, Some("the call failed".into()), text),
        };
        End { outcome, reason, text, turns: 0, may_go_on: false }
    }

    /// The names of the offered tools, in order.
    pub fn tool_names(&self) -> Vec<String> {
        self.tools.iter().map(|(spec, _)| spec.name.clone()).collect()
    }

    /// Shortens the conversation now (`/compact`); whether there was anything to give up.
    pub fn compact(&mut self, cx: &mut Context) -> bool {
        self.window.compact(&mut self.history, cx)
    }

    /// The conversation so far.
    pub fn history(&self) -> &History {
        &self.history
    }

    /// THE LOOP.
    fn turns(&mut self, cx: &mut Context) -> Result<Stopped, Halt> {
        for _ in 0..cx.budget.max_turns {
            let reply = self.ask(cx)?;
            let (calls, finish) = (reply.message.calls.clone(), reply.finish.clone());
            self.task.turns += 1;
            self.task.answer.clone_from(&reply.message.text);
            cx.events.message(self.history.assistant(reply.message), reply.finish);
            if calls.is_empty() {
                match self.stop(finish.as_deref(), cx)? {
                    None => return Ok(Stopped::Satisfied),
                    Some(more) => self.say(more, cx),
                }
            }
            for call in &calls {
                if cx.cancel.is_raised() {
                    return Err(interrupted(cx)); // go_on() answers the open calls
                }
                let executed = self.execute(call, cx)?;
                if let Some(message) = self.history.answer(executed.text) {
                    cx.events.message(message, None);
                }
            }
        }
        Ok(Stopped::OutOfTurns)
    }

    /// Asks the model for the next reply.
    fn ask(&mut self, cx: &mut Context) -> Result<Reply, Halt> {
        if let Some(why) = cx.budget.exhausted() {
            return Err(Halt(Outcome::Limit, why));
        }
        let system = self.system_prompt();
        self.window.fit(&mut self.history, [&system, &self.offered], cx);
        let reply = match self.send(&system, cx) {
            Err(AskFailure::Overflow(_)) if self.compact(cx) => self.send(&system, cx), // once
            reply => reply,
        };
        let reply = reply.map_err(|failure| match failure {
            AskFailure::Interrupted => interrupted(cx),
            AskFailure::Overflow(why) | AskFailure::Failed(why) => Halt(Outcome::Error, why),
        })?;
        cx.budget.used.add(reply.usage);
        if reply.usage == Usage::default()
            && cx.budget.counts_tokens()
            && !std::mem::replace(&mut self.task.uncounted, true)
        {
            cx.events.notice("the server does not say how many tokens it used: a limit on tokens or costs counts none");
        }
        self.window.learn(&self.history, reply.usage, &mut cx.events);
        Ok(reply)
    }

    fn send(&mut self, system: &str, cx: &mut Context) -> Result<Reply, AskFailure> {
        let ask = Ask { turn: self.task.turns + 1, system, history: &mut self.history, tools: &self.offered };
        cx.endpoint.ask(ask, &mut cx.events, &cx.cancel)
    }

    /// The system text: put together for every request, since extensions may have something new to say.
    fn system_prompt(&mut self) -> String {
        let mut text = self.base.clone();
        let parts = self.extensions.iter_mut().map(|extension| extension.system_prompt());
        for part in std::iter::once(self.plan.system_prompt()).chain(parts).filter(|part| !part.is_empty()) {
            text.push_str("\n\n");
            text.push_str(&part);
        }
        text
    }

    /// The model made no call: it wants to stop. `Some` is what it is told instead.
    fn stop(&mut self, finish: Option<&str>, cx: &mut Context) -> Result<Option<String>, Halt> {
        if finish == Some("length") {
            return Err(Halt(Outcome::Limit, "the answer was cut at the output limit (finish_reason length)".into()));
        }
        let offered = self.tools.iter().map(|(spec, _)| spec.name.as_str());
        if let Some(name) = reply::call_as_text(&self.task.answer, offered) {
            return self.not_a_call(&name).map(Some);
        }
        self.ask_hooks(cx)
    }

    /// Models without tool support write a call as text. It is never run: text is not a call.
    fn not_a_call(&mut self, name: &str) -> Result<String, Halt> {
        if std::mem::replace(&mut self.task.told, true) {
            let why = format!(
                "the model wrote its call of `{name}` as text, twice: the server has no tool support for this model"
            );
            return Err(Halt(Outcome::Error, why));
        }
        Ok(format!("That was a call of `{name}` written as text, and it was not run. Use the tool call interface."))
    }

    /// Every hook is asked, in order, until one objects.
    fn ask_hooks(&mut self, cx: &mut Context) -> Result<Option<String>, Halt> {
        for extension in &mut self.extensions {
            let Task { text, attempt, changes, .. } = &self.task;
            let before = self.history.messages().len();
            let mut stop = Stop { task: text, attempt: *attempt, changes: *changes, history: &mut self.history };
            let next = extension.on_stop(&mut stop, cx);
            if self.history.messages().len() < before {
                self.window.forget();
            }
            if cx.cancel.is_raised() {
                return Err(interrupted(cx));
            }
            let (Next::Continue(text) | Next::Fail(text) | Next::Broken(text)) = &next else { continue };
            let (extension, text) = (extension.name().to_owned(), text.clone());
            cx.events.emit(Event::Hook { extension: extension.clone(), mount: "on_stop", text });
            match next {
                Next::Done => {}
                Next::Continue(text) => {
                    self.task.attempt += 1;
                    return Ok(Some(text));
                }
                Next::Fail(why) => return Err(Halt(Outcome::Unverified, why)),
                Next::Broken(why) => return Err(Halt(Outcome::Error, format!("extension {extension}: {why}"))),
            }
        }
        Ok(None)
    }

    /// THE ONE DOOR. Every call goes through here; whatever refuses it, the model reads a result that says so.
    fn execute(&mut self, call: &Call, cx: &mut Context) -> Result<Executed, Halt> {
        let (id, name, raw) = (call.id.clone(), call.name.clone(), call.raw.clone());
        cx.events.emit(Event::Call { id, name, arguments: call.arguments.as_ref().ok().cloned(), raw });
        cx.call.clone_from(&call.id);

        let Judged { act, question, read_only, settled } = judge(call, &mut self.tools, cx);
        let (path, question) = (place(call, &cx.workspace), question.as_ref());
        let request = Request { path, settled, ..Request::new(call, question, read_only) };
        let (ruling, by) = self.approvers.decide(request);
        decided(call, question, &ruling, by, cx);
        let started = Instant::now(); // a person who thinks about a question is not the time that a call takes
        let result = match ruling {
            Ruling::Allow => act(cx),
            Ruling::Deny(why) => {
                if by == By::Nobody {
                    self.task.unapproved =
                        Some(format!("a {} call needed an approval, and nobody was there to give it", call.name));
                }
                Err(Failure::Blocked(why))
            }
            Ruling::End(why) => return Err(Halt(Outcome::Limit, why)),
        };
        self.task.changes += u32::from(may_have_changed(&result, question.is_some() || !read_only));
        Ok(report(call, result, &self.window, started, cx))
    }

    /// Adds a user message, such as a note to the model between two tasks.
    pub fn say(&mut self, text: String, cx: &mut Context) {
        let message = self.history.user(text);
        cx.events.message(message, None);
    }
}

/// A call that has been judged: what would run, and what stands between.
struct Judged<'a> {
    act: Act<'a>,
    question: Option<Question>,
    /// Without a question, the act changes nothing.
    read_only: bool,
    /// The act only says why nothing is done.
    settled: bool,
}

/// Parse → find the tool → check. A call that cannot run becomes an act that says why: so the approvers see every
/// call, and the loop guard counts the ones that fail, too.
fn judge<'a>(call: &Call, tools: &'a mut [(Spec, Box<dyn Tool>)], cx: &mut Context) -> Judged<'a> {
    let (read_only, checked) = match prepare(call, tools) {
        Ok((spec, tool, arguments)) => (spec.read_only, tool.check(&arguments, cx)),
        Err(why) => (true, Check::Bad(why)),
    };
    match checked {
        Check::Run(act) => Judged { act, question: None, read_only, settled: false },
        Check::Ask(question, act) => Judged { act, question: Some(question), read_only, settled: false },
        Check::Refuse(why) => {
            let (id, reason) = (call.id.clone(), Some(why.clone()));
            cx.events.emit(Event::Approval { id, question: None, decision: Verdict::Refused, by: By::Gate, reason });
            says(Failure::Blocked(why))
        }
        Check::Bad(why) => says(Failure::Error(why)),
    }
}

/// Finds the tool and fits the arguments to it; the error is for the model.
fn prepare<'a>(
    call: &Call,
    tools: &'a mut [(Spec, Box<dyn Tool>)],
) -> Result<(&'a Spec, &'a mut Box<dyn Tool>, Json), String> {
    let arguments =
        call.arguments.clone().map_err(|why| format!("nothing was run, the arguments cannot be used: {why}"))?;
    let Some(at) = tools.iter().position(|(spec, _)| spec.name == call.name) else {
        let known: Vec<&str> = tools.iter().map(|(spec, _)| spec.name.as_str()).collect();
        return Err(format!("there is no tool `{}`. The tools are: {}", call.name, known.join(", ")));
    };
    let (spec, tool) = &mut tools[at];
    let arguments = tool::fit(arguments, spec).map_err(|why| format!("bad arguments: {why}"))?;
    Ok((spec, tool, arguments))
}

/// Where a call's path leads. Approvers judge by that, or another spelling or a link would lead past a rule.
fn place(call: &Call, workspace: &Workspace) -> Option<String> {
    let spelled = call.arguments.as_ref().ok()?.get("path")?.as_str()?;
    let place = workspace.locate(workspace.root(), spelled);
    Some(place.map_or_else(|_| spelled.to_owned(), |place| place.relative().to_string_lossy().into_owned()))
}

fn says(failure: Failure) -> Judged<'static> {
    Judged { act: Box::new(|_| Err(failure)), question: None, read_only: true, settled: true }
}

/// Says what was decided, and by whom; nothing where no question was needed and none was raised.
fn decided(call: &Call, question: Option<&Question>, ruling: &Ruling, by: By, cx: &mut Context) {
    let (decision, reason) = match ruling {
        Ruling::Allow if by == By::Gate => return,
        Ruling::Allow => (Verdict::Allowed, None),
        Ruling::Deny(why) | Ruling::End(why) => (Verdict::Denied, Some(why.clone())),
    };
    let question = question.map(|question| question.text.clone());
    cx.events.emit(Event::Approval { id: call.id.clone(), question, decision, by, reason });
}

/// Puts a result into words: `Error:` and `Blocked:` at its start are a contract.
fn report(
    call: &Call,
    result: Result<String, Failure>,
    window: &Window,
    started: Instant,
    cx: &mut Context,
) -> Executed {
    let (ok, text) = match result {
        Ok(text) => (true, text),
        Err(Failure::Status(text)) => (false, text),
        Err(Failure::Error(why)) => (false, format!("Error: {why}")),
        Err(Failure::Blocked(why)) => (false, format!("Blocked: {why}")),
    };
    let text = window.cap(cx.endpoint.redact(text));
    let (id, name, ms) = (call.id.clone(), call.name.clone(), started.elapsed().as_millis() as u64);
    cx.events.emit(Event::Result { id, name, ok, text: text.clone(), ms });
    Executed { ok, text }
}

/// An act that failed before it did anything has changed nothing; a command's exit status says nothing of the kind.
fn may_have_changed(result: &Result<String, Failure>, may_change: bool) -> bool {
    may_change && matches!(result, Ok(_) | Err(Failure::Status(_)))
}

fn interrupted(cx: &Context) -> Halt {
    match cx.cancel.cause() {
        Some(crate::cancel::Cause::TimeLimit) => Halt(Outcome::Limit, "the time limit (--timeout) is reached".into()),
        _ => Halt(Outcome::Interrupted, "interrupted".into()),
    }
}
