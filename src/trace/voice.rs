//! What the events of one agent do to its spans: the main agent, or the child of a call.
//!
//! Some things no event says, and they are found out here. Where a task of a talk begins: at a user message that is
//! followed by a request with `turn` 1 (after a hook's message comes a later turn). When a task ended: at the last event
//! before the next one, since nobody worked while the person was typing.

use super::desk::{Desk, Place, newest, text, trimmed};
use super::{Kind, Span, cut};
use serde_json::{Value, json};

/// One agent.
#[derive(Default)]
pub(super) struct Voice {
    /// The call whose child it is, and that call's span.
    call: Option<String>,
    parent: Option<Place>,
    run: Option<Span>,
    turn: Option<Span>,
    /// A model or a tool, one at a time.
    step: Option<Span>,
    /// A user message that no request has followed yet: when it came, and its text.
    said: Option<(u64, String)>,
    messages: Vec<Value>,
    /// When the last reply was there.
    replied: u64,
    /// When the last thing happened.
    last: u64,
}

impl Voice {
    pub fn child(call: &str, parent: Option<Place>) -> Voice {
        Voice { call: Some(call.into()), parent, ..Voice::default() }
    }

    pub fn call(&self) -> Option<&str> {
        self.call.as_deref()
    }

    /// The open span of this call, if it is this agent's.
    pub fn open_call(&self, id: &str) -> Option<Place> {
        self.step.as_ref().filter(|step| step.details.get("call").is_some_and(|call| call == id)).map(Place::of)
    }

    /// Whether a task begins with this request.
    pub fn begins(&self, request: &Value) -> bool {
        request["turn"] == 1 && request["attempt"] == 1 && self.said.is_some()
    }

    pub fn event(&mut self, event: &Value, at: u64, desk: &mut Desk) {
        match text(&event["type"]) {
            "request" => self.request(event, at, desk),
            "message" => self.message(&event["message"], &event["finish"], at, desk),
            "retry" => self.retry(event),
            "usage" => self.usage(event),
            "call" => self.call_began(event, at, desk),
            "approval" => self.approval(event, at),
            "result" => self.answered(text(&event["id"]), event["ok"] == true, text(&event["text"]), at, desk),
            "hook" => self.hook(event, at, desk),
            "compacted" => self.compacted(event),
            _ => {}
        }
        // The person's next task, and the end, may come an hour after the last thing that happened.
        if event["message"]["role"] != "user" && event["type"] != "end" {
            self.last = self.last.max(at);
        }
    }

    fn request(&mut self, event: &Value, at: u64, desk: &mut Desk) {
        if let Some(model) = self.model()
            && event["attempt"].as_u64().is_some_and(|attempt| attempt > 1)
        {
            model.details.insert("attempts".into(), event["attempt"].clone());
            return;
        }
        if self.begins(event) {
            self.close(None, desk); // a child agent that is given another task
        }
        let (began, task) = self.said.take().unwrap_or((at, String::new()));
        self.close_turn(None, desk);
        let run = self.run.get_or_insert_with(|| {
            let mut run = desk.open(Kind::Run, "agent.run", began, self.parent.as_ref());
            run.input = cut(&task);
            run
        });
        let turn = desk.open(Kind::Turn, &format!("turn {}", event["turn"]), at, Some(&Place::of(run)));
        let mut model = desk.open(Kind::Model, "model", at, Some(&Place::of(&turn)));
        model.details.insert("request".into(), event["turn"].clone());
        model.details.insert("model".into(), desk.model().into());
        model.input = self.messages.last().map_or_else(String::new, |message| text(&message["content"]).to_owned());
        if desk.conversation {
            model.sent = newest(&self.messages);
        }
        (self.turn, self.step) = (Some(turn), Some(model));
    }

    fn message(&mut self, message: &Value, finish: &Value, at: u64, desk: &mut Desk) {
        let (message, content) = (trimmed(message), cut(text(&message["content"])));
        match text(&message["role"]) {
            "user" => self.said = Some((at, content)),
            "assistant" => {
                if let Some(mut model) = self.step.take_if(|step| step.kind == Kind::Model) {
                    model.output.clone_from(&content);
                    model.reply = desk.conversation.then(|| message.clone());
                    model.details.insert("finish".into(), finish.clone());
                    desk.close(model, at);
                }
                self.replied = at;
                self.run.iter_mut().for_each(|run| run.output.clone_from(&content));
            }
            // Each result is followed by its message; one that comes alone is an interrupted call's.
            _ => self.answered(text(&message["tool_call_id"]), false, &content, at, desk),
        }
        if !desk.conversation {
            self.messages.clear(); // the newest is enough: a long log is many conversations' worth
        }
        self.messages.push(message);
    }

    fn retry(&mut self, event: &Value) {
        let Some(model) = self.model() else { return };
        model.waited += event["wait_ms"].as_u64().unwrap_or_default();
        let retries = model.details.entry("retries").or_insert_with(|| json!([]));
        let reason = cut(text(&event["reason"]));
        retries.as_array_mut().into_iter().for_each(|reasons| reasons.push(reason.clone().into()));
    }

    fn usage(&mut self, event: &Value) {
        if let Some(model) = self.model() {
            model.usage = serde_json::from_value(event.clone()).ok(); // numbers that are none are no usage
        }
    }

    fn call_began(&mut self, event: &Value, at: u64, desk: &mut Desk) {
        self.close_step(at, None, desk);
        let turn = self.turn.as_ref().or(self.run.as_ref()).map(Place::of);
        let mut tool = desk.open(Kind::Tool, text(&event["name"]), at, turn.as_ref());
        tool.input = cut(text(&event["raw"]));
        tool.details.insert("call".into(), event["id"].clone());
        self.step = Some(tool);
    }

    fn approval(&mut self, event: &Value, at: u64) {
        let Some(tool) = self.step.as_mut().filter(|step| step.details.get("call") == Some(&event["id"])) else {
            return;
        };
        for name in ["question", "decision", "by"] {
            tool.details.insert(name.into(), event[name].as_str().map_or(Value::Null, |text| cut(text).into()));
        }
        if event["question"].is_string() {
            tool.waited = at.saturating_sub(tool.start);
        }
    }

    /// A call has its result, unless it had one already.
    fn answered(&mut self, id: &str, ok: bool, words: &str, at: u64, desk: &mut Desk) {
        let is_meant = |step: &mut Span| step.details.get("call").is_some_and(|call| call == id);
        if let Some(mut tool) = self.step.take_if(is_meant) {
            tool.output = cut(words);
            tool.error = (!ok).then(|| tool.output.clone());
            desk.close(tool, at);
        }
    }

    /// It began when the model's reply was there.
    fn hook(&mut self, event: &Value, at: u64, desk: &mut Desk) {
        self.close_step(at, None, desk);
        let turn = self.turn.as_ref().or(self.run.as_ref()).map(Place::of);
        let mut hook = desk.open(Kind::Hook, text(&event["extension"]), self.replied.min(at), turn.as_ref());
        hook.output = cut(text(&event["text"]));
        desk.close(hook, at);
    }

    fn compacted(&mut self, event: &Value) {
        // `messages` stand in place of the dropped ones, and `kept` stayed behind them.
        let kept = event["kept"].as_u64().and_then(|kept| usize::try_from(kept).ok()).unwrap_or_default();
        self.messages.drain(..self.messages.len().saturating_sub(kept));
        let instead = event["messages"].as_array().into_iter().flatten().map(trimmed);
        self.messages.splice(0..0, instead);
    }

    /// The `end` event. What is still open was cut short now; a task that is not was over long before, maybe.
    pub fn end(&mut self, event: &Value, at: u64) {
        if self.step.is_some() {
            self.last = self.last.max(at);
        }
        if let Some(run) = self.run.as_mut() {
            run.details.insert("outcome".into(), event["outcome"].clone());
            run.error = event["reason"].as_str().filter(|_| event["outcome"] != "done").map(cut);
        }
    }

    /// Closes the run with all that is open in it. `why`: what cut it short.
    pub fn close(&mut self, why: Option<&str>, desk: &mut Desk) {
        self.close_turn(why, desk);
        self.run.take().into_iter().for_each(|run| desk.close(run, self.last));
    }

    fn close_turn(&mut self, why: Option<&str>, desk: &mut Desk) {
        self.close_step(self.last, why, desk);
        self.turn.take().into_iter().for_each(|turn| desk.close(turn, self.last));
    }

    /// Closes a step that did not come to an end of its own.
    fn close_step(&mut self, at: u64, why: Option<&str>, desk: &mut Desk) {
        let Some(mut step) = self.step.take() else { return };
        // A request that a hook made has its tokens, and no message follows: it went well.
        step.error = step.usage.is_none().then(|| cut(why.unwrap_or("it did not come to its end")));
        desk.close(step, at);
    }

    fn model(&mut self) -> Option<&mut Span> {
        self.step.as_mut().filter(|step| step.kind == Kind::Model)
    }
}
