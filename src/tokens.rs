//! How many tokens a text will be, roughly.
//!
//! Only the server knows; its count comes with the reply. Before that, an estimate is shown with each request. The
//! weights were fitted on prose, code, diffs, JSON, logs and Chinese against a current tokenizer: mean error 0, nine in
//! ten within -25 % and +17 %. The usual "bytes / 4" is 46 % too low on JSON and on `ls` output, which is what fills an
//! agent's conversation.
//!
//! Rejected: a real tokenizer. Its vocabulary is larger than this program, and it fits one vendor.

/// An estimate in hundredths of a token; add up parts, then round once.
pub fn hundredths(text: &[u8]) -> u64 {
    text.iter().map(|byte| u64::from(WEIGHTS[usize::from(*byte)])).sum()
}

/// The weight of a character stands at its first byte.
const WEIGHTS: [u8; 256] = {
    let mut weights = [0; 256];
    let mut byte = 0;
    while byte < 256 {
        weights[byte] = weight(byte as u8);
        byte += 1;
    }
    weights
};

const fn weight(byte: u8) -> u8 {
    match byte {
        b'a'..=b'z' | b'A'..=b'Z' => 23,
        b'0'..=b'9' => 75,
        b' ' | b'\t' | b'\n' | b'\r' => 15,
        0x80..=0xBF => 0, // inside a character
        0xE0..=0xFF => 80,
        _ => 55,
    }
}

/// A running estimate of a text that usually only grows: what has been counted is not read again.
#[derive(Default)]
pub struct Running {
    hundredths: u64,
    /// How many bytes have been counted, and the last of them: whether the text is still the same one.
    counted: usize,
    tail: Vec<u8>,
}

/// Enough bytes to tell one conversation from another; this is an estimate, and a mistake costs nothing.
const TAIL: usize = 64;

impl Running {
    /// Tokens of `text`. Counts only what was added since the last call, or all if the text is another one.
    pub fn of(&mut self, text: &[u8]) -> u64 {
        if !text.get(..self.counted).is_some_and(|known| known.ends_with(&self.tail)) {
            *self = Running::default();
        }
        self.hundredths += hundredths(&text[self.counted..]);
        self.counted = text.len();
        self.tail = text[text.len().saturating_sub(TAIL)..].to_vec();
        self.hundredths / 100
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn characters_are_weighed_by_kind_and_once() {
        assert_eq!(hundredths(b"ab 1{"), 23 + 23 + 15 + 75 + 55);
        assert_eq!(hundredths("日é".as_bytes()), 80 + 55);
    }

    #[test]
    fn a_running_estimate_equals_a_fresh_one_whatever_came_before() {
        let texts = ["{\"a\":1}", "{\"a\":1},{\"b\":2}", "{\"c\"", "", &"x1 ".repeat(100), "{\"a\":1}"];
        let mut running = Running::default();
        for text in texts {
            assert_eq!(running.of(text.as_bytes()), hundredths(text.as_bytes()) / 100, "{text}");
        }
    }
}
