//! What can be given up of a conversation, and where it may be cut. Pure: messages in, messages out.
//!
//! Three things are never given up: the first task, the newest turn (which holds the results that the model has not
//! seen yet), and the last thing the person said. And no cut goes through a batch of results: a boundary steps back off
//! tool messages until it stands before the reply that made the calls.

use crate::message::Message;

/// A result that is longer than this, in characters, is cut.
pub const LONG: usize = 1500;
/// What stays of it: so many lines at each end, each up to so many characters.
const LINES: usize = 3;
const LINE: usize = 200;

/// Where the newest `keep` messages begin; earlier, if that is inside a batch of results. Everything from there on is
/// a conversation in whole pairs, and so is everything before it.
pub fn boundary(messages: &[Message], keep: usize) -> usize {
    let mut at = messages.len().saturating_sub(keep);
    while at > 0 && matches!(messages.get(at), Some(Message::Tool { .. })) {
        at -= 1;
    }
    at
}

/// The newest turn alone: a message of the user's, or a reply with the results that the model has not seen.
pub const NEWEST_TURN: usize = 1;

/// How many messages stand at the front for good: the first task.
pub fn head(messages: &[Message]) -> usize {
    usize::from(matches!(messages.first(), Some(Message::User(_))))
}

/// Cuts the long results among the messages before `end`. Returns whether there were any.
pub fn cut_results(messages: &mut [Message], end: usize) -> bool {
    let mut any = false;
    for message in &mut messages[..end] {
        if let Message::Tool { text, .. } = message
            && let Some(short) = first_and_last(text)
        {
            *text = short;
            any = true;
        }
    }
    any
}

/// The first and last lines of a long text; `None` if it is short enough as it is.
pub fn first_and_last(text: &str) -> Option<String> {
    text.chars().nth(LONG)?;
    let lines: Vec<&str> = text.lines().collect();
    let ends = if lines.len() > 2 * LINES { LINES } else { lines.len().div_ceil(2).min(LINES) };
    let (first, rest) = lines.split_at(ends);
    let (between, last) = rest.split_at(rest.len().saturating_sub(ends));
    let note = match between.len() {
        0 => "[long lines cut to save room; call the tool again if you need them]".into(),
        n => format!("[{n} lines left out to save room; call the tool again if you need them]"),
    };
    let kept: Vec<String> = first.iter().map(clip).chain([note]).chain(last.iter().map(clip)).collect();
    Some(kept.join("\n"))
}

fn clip(line: &&str) -> String {
    clipped(line, LINE)
}

/// At most `most` characters of a text, with a mark where it was cut.
pub fn clipped(text: &str, most: usize) -> String {
    match text.char_indices().nth(most) {
        Some((cut, _)) => format!("{}…", &text[..cut]),
        None => text.into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::message::{Assistant, Call, check_pairs};

    fn batch(ids: &[&str]) -> Vec<Message> {
        let call = |id: &&str| {
            let (id, name, raw) = ((*id).into(), "read".into(), "{}".into());
            Call { id, name, raw, arguments: Ok(Default::default()), extra: Default::default() }
        };
        let reply = Assistant { calls: ids.iter().map(call).collect(), ..Assistant::default() };
        let results = ids.iter().map(|id| Message::Tool { id: (*id).into(), text: "out".into() });
        std::iter::once(Message::Assistant(reply)).chain(results).collect()
    }

    #[test]
    fn a_boundary_steps_back_off_a_batch() {
        let messages = [vec![Message::User("go".into())], batch(&["a", "b", "c"]), batch(&["d"])].concat();
        for (keep, at) in [(0, 7), (1, 5), (2, 5), (3, 1), (5, 1), (6, 1), (7, 0), (9, 0)] {
            assert_eq!(boundary(&messages, keep), at, "keep {keep}");
            assert_eq!(check_pairs(&messages[at..]), Ok(()));
            assert_eq!(check_pairs(&messages[..at]), Ok(()));
        }
    }

    #[test]
    fn of_a_long_result_both_ends_stay() {
        let text = (1..=200).map(|n| format!("{n}\tline number {n}")).collect::<Vec<_>>().join("\n");
        let short = first_and_last(&text).expect("it is long");
        assert!(
            short.starts_with("1\tline number 1\n2\tline number 2\n3\tline number 3\n[194 lines left out"),
            "{short}"
        );
        assert!(short.ends_with("\n198\tline number 198\n199\tline number 199\n200\tline number 200"), "{short}");
        assert_eq!(first_and_last(&short), None);
        assert_eq!(first_and_last(&"x".repeat(LONG)), None);
    }

    #[test]
    fn a_result_of_few_long_lines_becomes_shorter_too() {
        for lines in 1..8 {
            let text = vec!["字".repeat(2000); lines].join("\n");
            let short = first_and_last(&text).expect("it is long");
            assert!(short.chars().count() < LONG, "{lines} lines: {short}");
            assert_eq!(short.lines().count(), lines.min(6) + 1, "{lines}");
        }
    }
}
