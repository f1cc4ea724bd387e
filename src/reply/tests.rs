use super::*;
use crate::message::Call;
use proptest::prelude::*;
use serde_json::json;

/// What a body becomes: the message, its pieces as shown, and the trouble.
fn assemble(body: &str) -> (Assembly, String, Option<Trouble>) {
    let (mut assembly, mut shown, mut trouble) = (Assembly::default(), String::new(), None);
    let mut parser = sse::Parser::new();
    let mut take = |event: sse::Event| {
        let taken = assembly.take(event, &mut |piece| match piece {
            Piece::Text(text) => shown.push_str(text),
            Piece::Reasoning(text) => shown.push_str(&format!("({text})")),
        });
        trouble = trouble.take().or(taken.err());
    };
    parser.feed(body.as_bytes(), &mut take).unwrap();
    parser.finish(&mut take);
    (assembly, shown, trouble)
}

/// A stream of these deltas, ended by a reason.
fn stream(deltas: &[Value], reason: &str) -> String {
    let event = |choice: Value| format!("data: {}\n\n", json!({"choices": [choice]}));
    let mut body: String = deltas.iter().map(|delta| event(json!({"delta": delta}))).collect();
    body.push_str(&event(json!({"delta": {}, "finish_reason": reason})));
    body + "data: [DONE]\n\n"
}

fn message(deltas: &[Value], reason: &str) -> Assistant {
    let (assembly, _, trouble) = assemble(&stream(deltas, reason));
    assert_eq!(trouble, None);
    assembly.into_message(&mut || "invented1".into())
}

/// The calls as `id name arguments`, arguments that cannot be used as `?`.
fn calls(fragments: &[Value]) -> Vec<String> {
    let deltas: Vec<Value> = fragments.iter().map(|list| json!({"tool_calls": list})).collect();
    let show = |call: Call| {
        let arguments = call.arguments.map_or("?".into(), |arguments| Value::from(arguments).to_string());
        format!("{} {} {arguments}", call.id, call.name)
    };
    message(&deltas, "tool_calls").calls.into_iter().map(show).collect()
}

fn piece(index: u64, id: &str, name: &str, arguments: &str) -> Value {
    json!({"index": index, "id": id, "type": "function", "function": {"name": name, "arguments": arguments}})
}

#[test]
fn fragments_find_their_call() {
    let one = &["a f {\"x\":1}"][..];
    let two = &["a f {\"x\":1}", "b g {\"y\":2}"][..];
    let rows: &[(&str, Vec<Value>, &[&str])] = &[
        (
            "plain",
            vec![json!([piece(0, "a", "f", "{\"x\"")]), json!([{"index": 0, "function": {"arguments": ":1}"}}])],
            one,
        ),
        (
            "B2 same index",
            vec![json!([piece(0, "a", "f", "{\"x\":1}")]), json!([piece(0, "b", "g", "{\"y\":2}")])],
            two,
        ),
        ("B3 same id", vec![json!([piece(0, "a", "f", "{\"x\"")]), json!([piece(0, "a", "f", ":1}")])], one),
        ("B4 B8 empty later", vec![json!([piece(0, "a", "f", "{\"x\"")]), json!([piece(0, "", "", ":1}")])], one),
        ("B6 gaps", vec![json!([piece(7, "a", "f", "{\"x\":1}")]), json!([piece(3, "b", "g", "{\"y\":2}")])], two),
        ("B7 name again", vec![json!([piece(0, "a", "f", "{\"x\"")]), json!([piece(0, "", "f", ":1}")])], one),
        ("B9 name later", vec![json!([piece(0, "a", "", "{\"x\"")]), json!([piece(0, "", "f", ":1}")])], one),
        ("id later", vec![json!([piece(0, "", "f", "{\"x\"")]), json!([piece(0, "a", "", ":1}")])], one),
        (
            "B1 no index",
            vec![
                json!([{"id": "a", "function": {"name": "f", "arguments": "{\"x\""}}]),
                json!([{"function": {"arguments": ":1}"}}]),
                json!([{"id": "b", "function": {"name": "g", "arguments": "{\"y\":2}"}}]),
            ],
            two,
        ),
        (
            "B1 neither index nor id",
            vec![
                json!([{"function": {"name": "f", "arguments": "{}"}}]),
                json!([{"function": {"name": "f", "arguments": "{}"}}]),
            ],
            &["invented1 f {}", "invented1 f {}"],
        ),
        (
            "B19 interleaved",
            vec![
                json!([piece(0, "a", "f", ""), piece(1, "b", "g", "")]),
                json!([{"index": 1, "function": {"arguments": "{\"y\":"}}, {"index": 0, "function": {"arguments": "{\"x\":"}}]),
                json!([{"index": 0, "function": {"arguments": "1}"}}]),
                json!([{"index": 1, "function": {"arguments": "2}"}}]),
            ],
            two,
        ),
        ("B11 object", vec![json!([{"index": 0, "id": "a", "function": {"name": "f", "arguments": {"x": 1}}}])], one),
        ("B12 none", vec![json!([{"index": 0, "id": "a", "function": {"name": "f", "arguments": null}}])], &["a f {}"]),
        (
            "nulls",
            vec![json!([piece(0, "a", "f", "{\"x\":1}")]), json!([{"index": 0, "id": null, "function": null}])],
            one,
        ),
    ];
    for (row, fragments, wanted) in rows {
        assert_eq!(calls(fragments), *wanted, "{row}");
    }
}

#[test]
fn no_call_of_a_cut_reply_can_be_used() {
    let reply = message(&[json!({"tool_calls": [piece(0, "a", "f", "{}")]})], "length");
    assert!(reply.calls[0].arguments.as_ref().unwrap_err().contains("length"));
    assert_eq!(reply.calls[0].raw, "{}");
}

#[test]
fn unknown_members_of_a_call_are_kept() {
    let mut fragment = piece(0, "a", "f", "{}");
    fragment["extra_content"] = json!({"google": {"thought_signature": "s"}});
    let reply = message(&[json!({"tool_calls": [fragment]})], "stop");
    assert_eq!(
        Value::from(reply.calls[0].extra.clone()),
        json!({"extra_content": {"google": {"thought_signature": "s"}}})
    );
}

#[test]
fn reasoning_keeps_its_name_and_is_not_taken_twice() {
    let both = json!({"reasoning_content": "hm", "reasoning": "hm"});
    assert_eq!(message(&[both], "stop").reasoning, Some(("reasoning_content".into(), "hm".into())));
    let detailed = json!({"reasoning": "a", "reasoning_details": [{"text": "a"}]});
    let reply = message(&[detailed, json!({"reasoning": "b"})], "stop");
    assert_eq!(reply.reasoning, Some(("reasoning".into(), "ab".into())));
    assert_eq!(reply.extra["reasoning_details"], json!([{"text": "a"}]));
}

#[test]
fn content_may_be_parts_and_pieces_are_shown_in_order() {
    let parts =
        json!({"content": [{"type": "thinking", "thinking": [{"text": "hm"}]}, {"type": "text", "text": "Yes"}]});
    let (assembly, shown, _) = assemble(&stream(&[parts, json!({"content": "."})], "stop"));
    assert_eq!((shown.as_str(), assembly.text.as_str()), ("(hm)Yes.", "Yes."));
}

#[test]
fn a_whole_message_fills_in_what_deltas_did_not_bring() {
    let whole = json!({"choices": [{"message": {"content": "hi", "tool_calls": [piece(0, "a", "f", "{}")]}, "finish_reason": "stop"}]});
    let (assembly, shown, _) = assemble(&whole.to_string());
    assert!(assembly.complete() && assembly.has_calls());
    assert_eq!(shown, "hi");
    let (_, shown, _) =
        assemble(&format!("data: {{\"choices\":[{{\"delta\":{{\"content\":\"ho\"}}}}]}}\n\ndata: {whole}\n\n"));
    assert_eq!(shown, "ho");
}

#[test]
fn every_form_of_an_error_is_trouble_and_null_is_not() {
    for error in [
        r#"data: {"error":{"message":"boom"}}"#,
        r#"data: {"error":"boom"}"#,
        r#"data: {"object":"error","message":"boom","code":500}"#,
        r#"data: {"choices":[{"delta":{},"error":{"message":"boom"}}]}"#,
        "event: error\ndata: boom",
        r#"error: {"message":"boom"}"#,
        r#"{"error":"boom"}"#,
        r#"[{"error":{"message":"boom"}}]"#,
    ] {
        let (_, _, trouble) = assemble(error);
        assert!(matches!(trouble, Some(Trouble::Complaint(complaint)) if complaint.words == "boom"), "{error}");
    }
    let (_, shown, trouble) = assemble(r#"data: {"error":null,"choices":[{"delta":{"content":"fine"}}]}"#);
    assert_eq!((shown.as_str(), trouble), ("fine", None));
}

#[test]
fn trouble_behind_a_complete_reply_is_too_late_to_matter() {
    let (assembly, _, trouble) = assemble(&(stream(&[json!({"content": "x"})], "stop") + "data: {\"error\":1}\n\n"));
    assert!(assembly.complete() && trouble.is_none());
    let tail = "data: {\"choices\":[{\"finish_reason\":\"stop\"}]}\n\ndata: {\"error\":{\"code\":500}}\n\n";
    assert_eq!(assemble(tail).2, None);
    assert!(assemble("data: {\"choices\":[{\"delta\":\n\n").2.is_some());
}

#[test]
fn the_last_usage_wins_wherever_it_stands() {
    let body = "data: {\"choices\":[{\"usage\":{\"prompt_tokens\":1}}],\"usage\":null}\n\n\
                data: {\"choices\":[],\"usage\":{\"prompt_tokens\":40,\"completion_tokens\":7,\
                \"prompt_tokens_details\":{\"cached_tokens\":30},\"completion_tokens_details\":null}}\n\n";
    assert_eq!(assemble(body).0.usage(), Usage { input: 40, cached: 30, output: 7, reasoning: 0 });
}

#[test]
fn a_reply_that_does_not_end_is_trouble_and_not_the_memory() {
    let mut assembly = Assembly::default();
    let chunk = json!({"choices": [{"delta": {"content": "x".repeat(1 << 20)}}]}).to_string();
    let mut take = |_| assembly.take(sse::Event::Json(chunk.as_bytes()), &mut |_| {});
    assert_eq!((0..70).try_for_each(&mut take), Err(Trouble::TooLong));
    assert!(assembly.text.len() <= MAX_REPLY + (1 << 20));
}

#[test]
fn one_id_for_two_calls_is_two_calls_and_the_second_gets_an_id_of_its_own() {
    let whole = [json!([piece(0, "a", "read", r#"{"path":"x"}"#), piece(1, "a", "read", r#"{"path":"y"}"#)])];
    assert_eq!(calls(&whole), [r#"a read {"path":"x"}"#, r#"invented1 read {"path":"y"}"#]);
    let pieces = [
        json!([piece(0, "a", "read", r#"{"path":"#)]),
        json!([piece(1, "a", "read", r#"{"path":"y"}"#)]),
        json!([piece(0, "a", "", r#""x"}"#)]),
    ];
    assert_eq!(calls(&pieces), [r#"a read {"path":"x"}"#, r#"invented1 read {"path":"y"}"#]);
}

#[test]
fn calls_that_are_begun_for_ever_are_trouble_too() {
    let begin = |n: u32| json!({"choices": [{"delta": {"tool_calls": [{"id": format!("c{n}")}]}}]}).to_string();
    let extend = |n: u32| {
        json!({"choices": [{"delta": {"tool_calls": [{"index": 0, format!("x{n}"): "y".repeat(4096)}]}}]}).to_string()
    };
    for endless in [&begin as &dyn Fn(u32) -> String, &extend] {
        let mut assembly = Assembly::default();
        let mut take = |n| assembly.take(sse::Event::Json(endless(n).as_bytes()), &mut |_| {});
        assert_eq!((0..20_000).try_for_each(&mut take), Err(Trouble::TooLong));
    }
}

/// Pieces of streams: what is common, what is odd, and what breaks them.
const PIECES: [&str; 16] = [
    "data: {\"choices\":[{\"delta\":{\"content\":\"grüße \"}}]}",
    "data: {\"choices\":[{\"delta\":{\"reasoning\":\"hm\",\"content\":null}}]}",
    "data: {\"choices\":[{\"delta\":{\"tool_calls\":[{\"index\":0,\"id\":\"a\",\"function\":{\"name\":\"f\",\"arguments\":\"{\\\"x\\\":\"}}]}}]}",
    "data: {\"choices\":[{\"delta\":{\"tool_calls\":[{\"index\":0,\"function\":{\"arguments\":\"1}\"}}]}}]}",
    "data: {\"choices\":[{\"delta\":{\"tool_calls\":[{\"id\":\"b\",\"function\":{\"name\":\"g\"}}]}}]}",
    "data: {\"choices\":[{\"delta\":{},\"finish_reason\":\"stop\"}]}",
    "data: [DONE]",
    "{\"choices\":[",
    "]}",
    ": keep-alive",
    "event: error",
    "data: {\"error\":{\"message\":\"no\"}}",
    "\n",
    "\r\n",
    "\r",
    "\u{feff}",
];

/// So many cases for each property; more with MINI_CASES.
fn cases() -> ProptestConfig {
    let cases = std::env::var("MINI_CASES").ok().and_then(|text| text.parse().ok()).unwrap_or(256);
    ProptestConfig { cases, failure_persistence: None, ..ProptestConfig::default() }
}

/// All that can be seen of a body read in these pieces.
fn outcome(reads: &[&[u8]]) -> (String, String, Option<String>) {
    let (mut assembly, mut shown, mut trouble) = (Assembly::default(), String::new(), None);
    let mut parser = sse::Parser::new();
    let mut take = |event: sse::Event| {
        let taken = assembly.take(event, &mut |piece| match piece {
            Piece::Text(text) => shown.push_str(text),
            Piece::Reasoning(text) => shown.push_str(&format!("({text})")),
        });
        trouble = trouble.take().or(taken.err());
    };
    for read in reads {
        parser.feed(read, &mut take).unwrap();
    }
    parser.finish(&mut take);
    let end = (assembly.complete(), assembly.finish_reason().map(str::to_owned), assembly.usage());
    let message = assembly.into_message(&mut || "new".into());
    (format!("{end:?} {message:?}"), shown, trouble.map(|trouble| format!("{trouble:?}")))
}

proptest! {
    #![proptest_config(cases())]

    /// The same bytes are the same reply, wherever the reads cut them: also inside a character, a line end, a mark.
    #[test]
    fn cuts_between_reads_change_nothing_of_a_reply(
        pieces in prop::collection::vec((0..PIECES.len(), any::<bool>()), 0..24),
        damage in prop::option::of((0usize..2000, any::<u8>())),
        cuts in prop::collection::vec(0usize..2000, 0..40),
    ) {
        let piece = |(at, ended): &(usize, bool)| PIECES[*at].to_owned() + if *ended { "\n\n" } else { "" };
        let mut bytes = pieces.iter().map(piece).collect::<String>().into_bytes();
        if let Some((at, with)) = damage && let Some(byte) = bytes.get_mut(at) {
            *byte = with;
        }
        let mut cuts: Vec<usize> = cuts.into_iter().map(|cut| cut.min(bytes.len())).chain([0, bytes.len()]).collect();
        cuts.sort_unstable();
        let reads: Vec<&[u8]> = cuts.windows(2).map(|pair| &bytes[pair[0]..pair[1]]).collect();
        prop_assert_eq!(outcome(&reads), outcome(&[&bytes]));
        let single: Vec<&[u8]> = bytes.chunks(1).collect();
        prop_assert_eq!(outcome(&single), outcome(&[&bytes]));
    }

    #[test]
    fn any_bytes_are_a_reply_or_trouble(bytes in prop::collection::vec(any::<u8>(), 0..400)) {
        outcome(&[b"data: ", &bytes, b"\n\n", &bytes]);
    }

    /// Whatever a damaged stream says, nothing panics, and what is shown is what is kept.
    #[test]
    fn a_damaged_stream_is_a_reply_or_trouble(at in 0usize..400, with: u8, cut in 0usize..600) {
        let fragments = json!([piece(0, "a", "f", "{\"x\":1}"), {"id": null, "function": {"arguments": {}}}]);
        let delta = json!({"content": "one", "reasoning": "hm", "tool_calls": fragments});
        let mut bytes = stream(&[delta, json!({"content": [{"text": "two"}]})], "tool_calls").into_bytes();
        if let Some(byte) = bytes.get_mut(at) {
            *byte = with;
        }
        bytes.truncate(cut.max(1));
        let (mut assembly, mut shown, mut parser) = (Assembly::default(), String::new(), sse::Parser::new());
        let mut take = |event: sse::Event| {
            let _ = assembly.take(event, &mut |piece| if let Piece::Text(text) = piece { shown.push_str(text) });
        };
        parser.feed(&bytes, &mut take).unwrap();
        parser.finish(&mut take);
        let message = assembly.into_message(&mut || "new".into());
        prop_assert_eq!(message.text, shown);
        prop_assert!(message.calls.iter().all(|call| !call.id.is_empty()));
    }
}
