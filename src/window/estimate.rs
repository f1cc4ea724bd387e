//! How much of the window a text takes, before the server has counted it.
//!
//! Characters a token, by kind of text: Chinese, Japanese and Korean 1.5, code 2.8, prose 3.4. Three figures that fit
//! on a slide, and that everybody can check by hand. What is wrong with them for a given model shows in the server's own
//! count, which corrects them (`window.rs`). `tokens.rs` is the finer estimate, shown with each request; it was fitted to
//! one vendor's tokenizer and cannot be worked out on paper.

use crate::message::Message;

/// Characters a token.
const CJK: f64 = 1.5;
const CODE: f64 = 2.8;
const PROSE: f64 = 3.4;

/// What is written often in code and seldom in prose. One in this many characters makes a text code.
const MARKS: &str = "{}[]()<>;=_/\\|&$#*\"";
const SHARE: usize = 20;

/// Tokens of a text, about.
pub fn text(text: &str) -> f64 {
    let (mut cjk, mut marks, mut others) = (0, 0, 0);
    for char in text.chars() {
        match char {
            _ if is_cjk(char) => cjk += 1,
            _ if MARKS.contains(char) => marks += 1,
            _ => others += 1,
        }
    }
    let others = others + marks;
    let rate = if marks * SHARE > others { CODE } else { PROSE };
    cjk as f64 / CJK + others as f64 / rate
}

/// Tokens of a message: all its text, its calls and the reasoning that travels back with them.
pub fn message(message: &Message) -> f64 {
    match message {
        Message::User(text) | Message::Tool { text, .. } => self::text(text),
        Message::Assistant(reply) => {
            let calls: f64 = reply.calls.iter().map(|call| self::text(&call.name) + self::text(&call.raw)).sum();
            let reasoning = reply.reasoning.as_ref().filter(|_| !reply.calls.is_empty());
            self::text(&reply.text) + calls + reasoning.map_or(0.0, |(_, text)| self::text(text))
        }
    }
}

/// Tokens of some messages.
pub fn messages(messages: &[Message]) -> f64 {
    messages.iter().map(message).sum()
}

/// Chinese and Japanese characters, kana, Hangul, and their punctuation in full width.
fn is_cjk(char: char) -> bool {
    matches!(char, '\u{2E80}'..='\u{9FFF}' | '\u{AC00}'..='\u{D7AF}' | '\u{F900}'..='\u{FAFF}'
        | '\u{FF00}'..='\u{FFEF}' | '\u{20000}'..='\u{3FFFF}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_is_weighed_by_its_kind() {
        let rows = [
            ("the same words again ", 3.4),
            ("if (a[i] == b) { go(); }", 2.8),
            ("目录里的文件都已经读过了。", 1.5),
            ("ファイルを読む", 1.5),
            ("파일", 1.5),
        ];
        for (kind, rate) in rows {
            let long = kind.repeat(50);
            let wanted = long.chars().filter(|c| rate > 2.0 || !c.is_ascii()).count() as f64 / rate;
            assert!((text(&long) - wanted).abs() < 1.0, "{kind}: {} is not {wanted}", text(&long));
        }
    }

    #[test]
    fn a_mixed_text_is_weighed_by_the_character() {
        let mixed = format!("{}{}", "word ".repeat(34), "字".repeat(30));
        assert!((text(&mixed) - (50.0 + 20.0)).abs() < 0.01, "{}", text(&mixed));
    }
}
