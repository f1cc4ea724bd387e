//! Foreign text made safe to show.
//!
//! Models, commands and files can hold bytes that move the cursor, colour a line like one of ours, reverse the
//! reading order or hide a word. On a terminal that is an attack on the person who has to say yes or no. So such
//! characters are not removed (that would hide them once more) but made visible as `\u{1b}`.
//!
//! Rejected: letting colours of tools through. Telling harmless sequences from harmful ones is a parser of its own,
//! and terminals disagree about the rest.

use std::borrow::Cow;
use std::fmt::Write;

/// The text with everything that is invisible, or more than text, written as `\u{…}`. Newlines and tabs stay.
/// Borrowed when there is nothing to do, which is nearly always.
pub fn sanitize(text: &str) -> Cow<'_, str> {
    sanitize_behind(' ', text)
}

/// The same for a text that comes in pieces: `before` is the last character of the piece before.
pub fn sanitize_behind(mut before: char, text: &str) -> Cow<'_, str> {
    let hidden = text.char_indices().find(|(_, c)| !shows(*c, std::mem::replace(&mut before, *c)));
    let Some((start, _)) = hidden else { return Cow::Borrowed(text) };
    let mut safe = String::from(&text[..start]);
    let mut before = ' '; // The first one does not show behind anything that stands there.
    for c in text[start..].chars() {
        if shows(c, before) {
            safe.push(c);
        } else {
            // Writing to a String cannot fail.
            let _ = write!(safe, "\\u{{{:x}}}", u32::from(c));
        }
        before = c;
    }
    Cow::Owned(safe)
}

/// Whether a character shows as what it is, behind `before`.
fn shows(c: char, before: char) -> bool {
    match c {
        ' '..='~' | '\n' | '\t' => true,
        // Asks for the coloured form of the emoji before it; models write it all the time, and there it hides nothing.
        '\u{fe0f}' => is_emoji(before),
        _ => !(c.is_control() || c.is_whitespace() || is_invisible(c)),
    }
}

/// Signs that come in a text and a coloured form.
fn is_emoji(c: char) -> bool {
    matches!(c, '\u{203c}'..='\u{2bff}' if !is_invisible(c)) || matches!(c, '\u{1f000}'..='\u{1faff}')
}

/// Characters without a width or a shape of their own: Unicode's Default_Ignorable_Code_Point, and the blanks that
/// are not white space by name. Bidirectional marks, overrides and isolates are among them.
fn is_invisible(c: char) -> bool {
    matches!(c,
        '\u{ad}' | '\u{34f}' | '\u{61c}' | '\u{115f}'..='\u{1160}' | '\u{17b4}'..='\u{17b5}' | '\u{180b}'..='\u{180f}'
        | '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{2800}' | '\u{3164}'
        | '\u{fe00}'..='\u{fe0f}' | '\u{feff}' | '\u{ffa0}' | '\u{fff0}'..='\u{fffb}' | '\u{1bca0}'..='\u{1bca3}'
        | '\u{1d159}' | '\u{1d173}'..='\u{1d17a}' | '\u{e0000}'..='\u{e0fff}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_invisible_or_more_than_text_is_made_visible() {
        for (text, safe) in [
            ("\x1b[2J", "\\u{1b}[2J"),
            ("a\rb\x07", "a\\u{d}b\\u{7}"),
            ("\u{7f}\u{9b}31m", "\\u{7f}\\u{9b}31m"),
            ("rm \u{202e}txt.exe", "rm \\u{202e}txt.exe"),
            ("\u{2066}x\u{2069}", "\\u{2066}x\\u{2069}"),
            ("pass\u{200b}word\u{feff}", "pass\\u{200b}word\\u{feff}"),
            ("a\u{a0}b\u{3000}c\u{2028}", "a\\u{a0}b\\u{3000}c\\u{2028}"),
            ("\u{2800}\u{3164}\u{ad}", "\\u{2800}\\u{3164}\\u{ad}"),
            ("\u{e0041}", "\\u{e0041}"),
            ("a\u{fe0f}", "a\\u{fe0f}"),
            ("⚠\u{fe0f}\u{fe0f}", "⚠\u{fe0f}\\u{fe0f}"),
            ("👩\u{200d}💻", "👩\\u{200d}💻"),
        ] {
            assert_eq!(sanitize(text), safe, "{text:?}");
        }
    }

    #[test]
    fn an_emoji_and_its_form_may_come_in_two_pieces() {
        assert_eq!(sanitize_behind('⚠', "\u{fe0f} ok"), "\u{fe0f} ok");
        assert_eq!(sanitize_behind('a', "\u{fe0f}"), "\\u{fe0f}");
    }

    proptest::proptest! {
        #[test]
        fn what_is_safe_stays_as_it_is(text: String) {
            let safe = sanitize(&text).into_owned();
            proptest::prop_assert!(!safe.chars().any(|c| c.is_control() && c != '\n' && c != '\t'));
            proptest::prop_assert_eq!(sanitize(&safe), safe.as_str());
        }
    }

    #[test]
    fn plain_text_in_any_script_is_borrowed_as_it_is() {
        for text in ["", "fn main() {\n\tlet x = \"é\";\n}", "日本語 العربية", "⚠\u{fe0f} 🚀 ● └ …"]
        {
            assert!(matches!(sanitize(text), Cow::Borrowed(same) if same == text), "{text:?}");
        }
    }
}
