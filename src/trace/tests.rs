//! Runs as events, and what a tracer makes of them.

use super::*;
use crate::event::Usage;
use crate::trace::Kind;
use serde_json::json;

/// The spans of a session log, each as `kind name parent`, with its times.
fn traced(events: &[Value]) -> Vec<Span> {
    let mut tracer = Tracer::new(1);
    let mut spans: Vec<Span> = events.iter().flat_map(|event| tracer.event(event)).collect();
    spans.extend(tracer.finish());
    spans
}

/// `kind name ⊂ parent's name start..end`
fn shape(spans: &[Span]) -> Vec<String> {
    let parent =
        |span: &Span| spans.iter().find(|other| span.parent.as_ref() == Some(&other.id)).map(|p| p.name.clone());
    let show = |span: &Span| {
        format!("{:?} {} < {} {}..{}", span.kind, span.name, parent(span).unwrap_or("-".into()), span.start, span.end)
    };
    spans.iter().map(show).collect()
}

fn start(session: &str) -> Value {
    json!({"type": "start", "session": session, "model": "m", "at": 0, "agent": null})
}
fn user(text: &str, at: u64) -> Value {
    json!({"type": "message", "message": {"role": "user", "content": text}, "finish": null, "at": at, "agent": null})
}
fn request(turn: u32, attempt: u32, at: u64) -> Value {
    json!({"type": "request", "turn": turn, "attempt": attempt, "at": at, "agent": null})
}
fn usage(input: u64, output: u64, at: u64) -> Value {
    json!({"type": "usage", "input": input, "cached": 1, "output": output, "reasoning": 0, "at": at, "agent": null})
}
fn answer(text: &str, at: u64) -> Value {
    json!({"type": "message", "message": {"role": "assistant", "content": text}, "finish": "stop", "at": at, "agent": null})
}
fn call(id: &str, name: &str, at: u64) -> Value {
    json!({"type": "call", "id": id, "name": name, "arguments": {}, "raw": "{}", "at": at, "agent": null})
}
fn result(id: &str, ok: bool, text: &str, at: u64) -> Value {
    json!({"type": "result", "id": id, "name": "x", "ok": ok, "text": text, "ms": 0, "at": at, "agent": null})
}
fn end(outcome: &str, reason: Option<&str>, at: u64) -> Value {
    json!({"type": "end", "outcome": outcome, "reason": reason, "at": at, "agent": null})
}

#[test]
fn a_run_holds_turns_and_a_turn_its_model_and_tools_side_by_side() {
    let spans = traced(&[
        start("s1"),
        user("fix it", 10),
        request(1, 1, 12),
        usage(100, 7, 90),
        answer("", 91),
        call("c1", "read", 92),
        result("c1", true, "text", 95),
        request(2, 1, 96),
        answer("Fixed.", 150),
        end("done", None, 151),
    ]);
    assert_eq!(
        shape(&spans),
        [
            "Run agent.run < - 10..150",
            "Turn turn 1 < agent.run 12..95",
            "Model model < turn 1 12..91",
            "Tool read < turn 1 92..95",
            "Turn turn 2 < agent.run 96..150",
            "Model model < turn 2 96..150",
        ]
    );
    assert_eq!(spans[2].usage, Some(Usage { input: 100, cached: 1, output: 7, reasoning: 0 }));
    assert_eq!((spans[0].input.as_str(), spans[0].output.as_str()), ("fix it", "Fixed."));
    assert_eq!(spans[0].details["outcome"], "done");
    assert!(spans.iter().all(|span| span.session == "s1" && span.error.is_none() && span.trace == spans[0].trace));
}

#[test]
fn a_failed_call_is_the_tools_error_and_not_the_runs() {
    let spans = traced(&[
        start("s"),
        user("go", 1),
        request(1, 1, 1),
        answer("", 2),
        call("c1", "edit", 3),
        result("c1", false, "Error: 0 matches", 4),
        request(2, 1, 5),
        answer("Done.", 6),
        end("done", None, 7),
    ]);
    let failed: Vec<(Kind, Option<&str>)> =
        spans.iter().filter(|span| span.error.is_some()).map(|span| (span.kind, span.error.as_deref())).collect();
    assert_eq!(failed, [(Kind::Tool, Some("Error: 0 matches"))]);
}

#[test]
fn a_persons_time_at_a_question_and_the_pause_before_a_retry_are_waiting() {
    let spans = traced(&[
        start("s"),
        user("go", 0),
        request(1, 1, 0),
        json!({"type": "retry", "attempt": 1, "wait_ms": 400, "reason": "busy", "at": 100, "agent": null}),
        request(1, 2, 500),
        answer("", 900),
        call("c1", "write", 1_000),
        json!({"type": "approval", "id": "c1", "question": "write a?", "decision": "allowed", "by": "user", "reason": null, "at": 43_000, "agent": null}),
        result("c1", true, "wrote a", 43_010),
        end("done", None, 43_011),
    ]);
    let steps: Vec<(u64, u64)> = spans.iter().map(|span| (span.waited, span.worked())).collect();
    assert_eq!(steps[2..], [(400, 500), (42_000, 10)]);
    assert_eq!((&spans[2].details["attempts"], &spans[3].details["by"]), (&json!(2), &json!("user")));
}

#[test]
fn whatever_is_open_at_an_interrupt_is_closed_with_its_reason() {
    let spans = traced(&[
        start("s"),
        user("go", 1),
        request(1, 1, 2),
        answer("", 3),
        call("c1", "bash", 4),
        end("interrupted", Some("interrupted"), 900),
    ]);
    assert_eq!(shape(&spans)[3], "Tool bash < turn 1 4..900");
    assert_eq!((spans[0].end, spans[0].error.as_deref()), (900, Some("interrupted")));
    assert_eq!(spans[3].error.as_deref(), Some("interrupted"));
}

#[test]
fn a_request_without_a_reply_is_an_error_of_model_and_run() {
    let spans = traced(&[start("s"), user("go", 1), request(1, 1, 2), end("error", Some("connection refused"), 9)]);
    let errors: Vec<_> = spans.iter().map(|span| span.error.as_deref()).collect();
    assert_eq!(errors, [Some("connection refused"), None, Some("connection refused")]);
    assert_eq!(spans[2].end, 9);
}

#[test]
fn a_log_that_breaks_off_or_goes_on_after_a_crash_has_every_span_closed() {
    let begun = [start("s"), user("go", 1), request(1, 1, 2), answer("", 3), call("c1", "bash", 4)];
    let spans = traced(&begun);
    assert_eq!(spans.len(), 4);
    assert_eq!(spans[3].error.as_deref(), Some("it did not come to its end"));
    let resumed =
        traced(&[&begun[..], &[start("s"), user("again", 50), request(1, 1, 51), answer("Ok.", 60)]].concat());
    assert_eq!(shape(&resumed).iter().filter(|line| line.starts_with("Run")).count(), 2);
}

#[test]
fn each_task_of_a_talk_is_a_run_and_the_person_typing_is_in_none() {
    let spans = traced(&[
        start("s"),
        user("one", 10),
        request(1, 1, 11),
        answer("1", 20),
        user("two", 500),
        request(1, 1, 501),
        answer("2", 510),
        user("the verifier says", 511),
        request(2, 1, 512),
        answer("3", 520),
        end("done", None, 9_000),
    ]);
    let runs: Vec<_> = spans.iter().filter(|span| span.kind == Kind::Run).collect();
    assert_eq!(runs.iter().map(|run| (run.start, run.end)).collect::<Vec<_>>(), [(10, 20), (500, 520)]);
    assert!(runs[0].trace != runs[1].trace && runs[0].session == runs[1].session);
}

#[test]
fn a_new_conversation_is_a_new_session_and_one_without_a_log_has_an_id_too() {
    let mut tracer = Tracer::unique();
    let mut session = |start: Value| {
        tracer.event(&start);
        tracer.event(&user("go", 1));
        tracer.event(&request(1, 1, 1));
        tracer.event(&end("done", None, 2))[0].session.clone()
    };
    assert_eq!([session(start("a")), session(start("b"))], ["a", "b"]);
    let unnamed = json!({"type": "start", "session": null, "model": "m", "at": 0, "agent": null});
    let (first, second) = (session(unnamed.clone()), session(unnamed));
    assert!(first.len() == 16 && first != second);
}

#[test]
fn a_childs_run_is_a_part_of_the_call_that_started_it() {
    let child = |mut event: Value| {
        event["agent"] = "c1".into();
        event
    };
    let spans = traced(&[
        start("s"),
        user("go", 1),
        request(1, 1, 2),
        answer("", 3),
        call("c1", "task", 4),
        child(user("look", 5)),
        child(request(1, 1, 6)),
        child(answer("", 7)),
        child(call("c9", "read", 8)),
        child(result("c9", true, "x", 9)),
        child(request(2, 1, 10)),
        child(answer("found", 11)),
        result("c1", true, "found", 12),
        request(2, 1, 13),
        answer("Done.", 14),
        end("done", None, 15),
    ]);
    let shape = shape(&spans);
    assert!(shape.contains(&"Run agent.run < task 5..11".into()), "{shape:#?}");
    assert!(shape.contains(&"Tool read < turn 1 8..9".into()), "{shape:#?}");
    assert_eq!(spans.len(), 12, "{shape:#?}");
    assert!(spans.iter().all(|span| span.error.is_none() && span.trace == spans[0].trace));
}

#[test]
fn a_hook_that_speaks_takes_the_time_since_the_reply() {
    let spans = traced(&[
        start("s"),
        user("go", 1),
        request(1, 1, 2),
        answer("Done.", 10),
        json!({"type": "hook", "extension": "check", "mount": "on_stop", "text": "no", "at": 70, "agent": null}),
        user("<check> no", 71),
        request(2, 1, 72),
        answer("Really.", 80),
        end("done", None, 81),
    ]);
    assert!(shape(&spans).contains(&"Hook check < turn 1 10..70".into()), "{:#?}", shape(&spans));
}

#[test]
fn a_request_carries_the_newest_of_the_conversation() {
    let mut events = vec![start("s")];
    for turn in 0..20 {
        let at = 10 * turn;
        events.extend([user(&format!("{turn}{}", "x".repeat(9_000)), at), request(1, 1, at), answer("ok", at)]);
    }
    let mut tracer = Tracer::new(1).with_conversation();
    let mut spans: Vec<Span> = events.iter().flat_map(|event| tracer.event(event)).collect();
    spans.extend(tracer.finish());
    let models: Vec<_> = spans.iter().filter(|span| span.kind == Kind::Model).collect();
    let last = models.last().unwrap();
    assert!((2..6).contains(&last.sent.len()), "{}", last.sent.len());
    assert!(last.reply.is_some() && traced(&events).iter().all(|span| span.sent.is_empty() && span.reply.is_none()));
    assert!(
        last.input.starts_with("19xxx") && last.input.ends_with("[cut: 1002 more characters]"),
        "{}",
        last.input.len()
    );
}

#[test]
fn a_compaction_stands_in_place_of_what_was_dropped() {
    let mut tracer = Tracer::new(1).with_conversation();
    let compacted = json!({"type": "compacted", "messages": [{"role": "user", "content": "summary"}], "kept": 1, "at": 4, "agent": null});
    let events =
        [start("s"), user("one", 1), request(1, 1, 1), answer("1", 2), user("two", 3), compacted, request(1, 1, 5)];
    let mut spans: Vec<Span> = events.iter().flat_map(|event| tracer.event(event)).collect();
    spans.extend(tracer.finish());
    let sent: Vec<&Value> = spans.last().unwrap().sent.iter().map(|message| &message["content"]).collect();
    assert_eq!(sent, ["summary", "two"]);
}

proptest::proptest! {
    #[test]
    fn any_order_of_events_gives_closed_spans_in_a_tree(picks in proptest::collection::vec(0..12usize, 0..60)) {
        let mut events = vec![start("s")];
        for (at, pick) in (1..).zip(picks) {
            let mut event = match pick {
                0 => start("t"),
                1 => user("go", at),
                2 | 3 => request(1 + (at % 3) as u32, 1 + (at % 2) as u32, at),
                4 => answer("ok", at),
                5 | 6 => call(&format!("c{}", at % 4), "bash", at),
                7 => result(&format!("c{}", at % 4), at % 2 == 0, "x", at),
                8 => end("error", Some("why"), at),
                9 => usage(1, 2, at),
                10 => json!({"type": "hook", "extension": "h", "text": "t", "at": at, "agent": null}),
                _ => json!({"type": "compacted", "messages": [], "kept": at % 5, "at": at, "agent": null}),
            };
            if at % 5 == 0 && pick != 0 && pick != 8 {
                event["agent"] = format!("c{}", at % 4).into();
            }
            events.push(event);
        }
        let spans = traced(&events);
        let mut ids: Vec<&String> = spans.iter().map(|span| &span.id).collect();
        ids.sort();
        ids.dedup();
        proptest::prop_assert_eq!(ids.len(), spans.len());
        for span in &spans {
            proptest::prop_assert!(span.end >= span.start && span.waited <= span.end - span.start);
            if let Some(parent) = &span.parent {
                proptest::prop_assert!(spans.iter().any(|other| &other.id == parent && other.trace == span.trace), "{:?}", span);
            }
        }
    }
}
