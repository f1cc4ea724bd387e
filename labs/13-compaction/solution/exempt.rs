// For src/window/shorten.rs. In cut_results, before the loop:
//
//     let whole = exempt(&messages[..end]);
//
// and in the loop, beside the name of the text, the id of its call:
//
//     if let Message::Tool { id, text } = message
//         && !whole.contains(id)
//         && let Some(short) = first_and_last(text)

/// The ids of calls whose results stay whole: what a skill says is needed until
/// its work is done.
fn exempt(messages: &[Message]) -> Vec<String> {
    let replies = messages.iter().filter_map(|message| match message {
        Message::Assistant(reply) => Some(reply),
        _ => None,
    });
    let calls = replies.flat_map(|reply| &reply.calls);
    let skills = calls.filter(|call| call.name == "load_skill");
    skills.map(|call| call.id.clone()).collect()
}
