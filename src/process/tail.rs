//! What is kept of a command's output: the end of it in bounded memory, all of it in a spill file.
//!
//! The end, since that is where a compiler says how it went. A spill file is only made once something would be lost;
//! until then the output is in memory whole, so the file can begin with its first byte.

use super::Flow;
use std::fmt::Write as _;
use std::fs::File;
use std::io::Write;
use std::path::PathBuf;

/// Most lines a tool shows.
pub const MAX_LINES: usize = 2_000;
/// Most bytes a tool shows.
pub const MAX_BYTES: usize = 50 * 1024;
/// Most bytes of output altogether; then the command is killed, or it would fill the disk.
const MAX_SPILL: u64 = 512 << 20;

/// Makes a spill file (0600).
pub type Spill<'a> = &'a mut dyn FnMut() -> Result<(File, PathBuf), String>;

/// Collects output: shows the last 2,000 lines or 50 KiB, keeps all of it.
pub struct Tail<'a> {
    /// All output until the limit is passed, then the end of it: more than is shown, so that the first line shown is
    /// whole, and at most three times as much.
    kept: Vec<u8>,
    bytes: u64,
    newlines: u64,
    make: Spill<'a>,
    all: All,
}

/// Where all of the output is.
enum All {
    /// In memory.
    Kept,
    /// In this file.
    Spilled(File, PathBuf),
    /// Nowhere: this is why.
    Lost(String),
}

impl<'a> Tail<'a> {
    /// Nothing yet. `make` is called once the limit is passed.
    pub fn new(make: Spill<'a>) -> Tail<'a> {
        Tail { kept: Vec::new(), bytes: 0, newlines: 0, make, all: All::Kept }
    }

    /// Takes more output; [`Flow::Stop`] after 512 MiB.
    pub fn push(&mut self, bytes: &[u8]) -> Flow {
        self.bytes += bytes.len() as u64;
        self.newlines += bytes.iter().filter(|byte| **byte == b'\n').count() as u64;
        self.kept.extend_from_slice(bytes);
        if self.bytes > MAX_BYTES as u64 || self.newlines > MAX_LINES as u64 {
            self.spill(bytes);
        }
        if self.kept.len() > 3 * MAX_BYTES {
            self.kept.drain(..self.kept.len() - 2 * MAX_BYTES);
        }
        if self.bytes > MAX_SPILL { Flow::Stop } else { Flow::More }
    }

    /// Writes `newest` to the file; the first time, everything so far.
    fn spill(&mut self, newest: &[u8]) {
        let written = match &mut self.all {
            All::Kept => (self.make)().and_then(|(mut file, path)| {
                let written = file.write_all(&self.kept).map_err(|e| e.to_string());
                self.all = All::Spilled(file, path);
                written
            }),
            All::Spilled(file, _) => file.write_all(newest).map_err(|e| e.to_string()),
            All::Lost(_) => Ok(()),
        };
        if let Err(why) = written {
            self.all = All::Lost(why);
        }
    }

    /// How much of it all is shown.
    fn extent(&self, text: &str, shown: &str) -> String {
        let left_out = &text[..text.len() - shown.len()];
        if !left_out.is_empty() && !left_out.ends_with('\n') {
            return format!("the end of a line, of {} bytes of output", self.bytes);
        }
        let lines = shown.split_inclusive('\n').count();
        let all = self.newlines + u64::from(self.kept.last().is_some_and(|byte| *byte != b'\n'));
        format!("the last {lines} of {all} lines ({} bytes)", self.bytes)
    }

    /// What is shown: the end in whole lines, below a notice of what is missing, if anything is.
    pub fn finish(mut self) -> String {
        let text = visible(&self.kept);
        let shown = end_of(&text);
        if shown.len() < text.len() && matches!(self.all, All::Kept) {
            self.spill(b""); // within the limit as it came, beyond it as it is shown: control characters take more room
        }
        let notice = match &self.all {
            All::Kept => return text,
            _ if shown.len() == text.len() && self.kept.len() as u64 == self.bytes => return text, // it was only CRs
            All::Spilled(_, path) => format!("read all of it in {}", path.display()),
            All::Lost(why) => format!("the rest is lost: {why}"),
        };
        format!("[{}; {notice}]\n{shown}", self.extent(&text, shown))
    }
}

/// The last lines of a text within the limits; the end of the last one, if it alone is too long.
fn end_of(text: &str) -> &str {
    let mut from = text.len();
    for line in text.split_inclusive('\n').rev().take(MAX_LINES) {
        if text.len() - from + line.len() > MAX_BYTES {
            break;
        }
        from -= line.len();
    }
    if from == text.len() {
        from = text.len().saturating_sub(MAX_BYTES);
        while !text.is_char_boundary(from) {
            from += 1;
        }
    }
    &text[from..]
}

/// Output as text for the model: CRLF as a newline, bytes that are not UTF-8 as U+FFFD, other control characters as
/// `\x1b`. Some servers reject a NUL; and a sequence that colours or hides text is better seen than obeyed.
pub fn visible(bytes: &[u8]) -> String {
    let lossy = String::from_utf8_lossy(bytes);
    let mut text = String::with_capacity(lossy.len());
    let mut chars = lossy.chars().peekable();
    while let Some(c) = chars.next() {
        match c {
            '\r' if chars.peek() == Some(&'\n') => {}
            '\n' | '\t' => text.push(c),
            c if c.is_ascii_control() => drop(write!(text, "\\x{:02x}", u32::from(c))), // a String takes everything
            c => text.push(c),
        }
    }
    text
}

/// Cuts a stream of bytes into texts without ever splitting a character; what is not UTF-8 becomes U+FFFD.
#[derive(Default)]
pub struct Pieces {
    /// The start of a character whose end has not come yet: at most 3 bytes between calls.
    rest: Vec<u8>,
}

impl Pieces {
    /// The text up to the last whole character.
    pub fn push(&mut self, bytes: &[u8]) -> String {
        self.rest.extend_from_slice(bytes);
        let whole = self.rest.len() - unfinished(&self.rest);
        let text = String::from_utf8_lossy(&self.rest[..whole]).into_owned();
        self.rest.drain(..whole);
        text
    }

    /// What is left when nothing more comes.
    pub fn finish(self) -> String {
        String::from_utf8_lossy(&self.rest).into_owned()
    }
}

/// How many bytes at the end begin a character that is not complete.
fn unfinished(bytes: &[u8]) -> usize {
    for (back, byte) in (1..=3).zip(bytes.iter().rev()) {
        match byte {
            0x80..=0xbf => continue,
            0xc2..=0xdf if back < 2 => return back,
            0xe0..=0xef if back < 3 => return back,
            0xf0..=0xf4 => return back,
            _ => return 0,
        }
    }
    0
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Pushes the chunks; what is shown, and what is in the spill file, if there is one.
    fn collected<'a>(chunks: impl IntoIterator<Item = &'a [u8]>) -> (String, Option<Vec<u8>>) {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("spill");
        let mut make = || Ok((File::create(&path).unwrap(), path.clone()));
        let mut tail = Tail::new(&mut make);
        chunks.into_iter().for_each(|chunk| assert_eq!(tail.push(chunk), Flow::More));
        assert!(tail.kept.len() <= 3 * MAX_BYTES);
        let text = tail.finish();
        (text.replace(&path.display().to_string(), "SPILL"), std::fs::read(&path).ok())
    }

    #[test]
    fn short_output_is_shown_whole_and_makes_no_file() {
        assert_eq!(collected([&b"a\r\n"[..], b"\x1b[31mb\0"]), ("a\n\\x1b[31mb\\x00".into(), None));
        assert_eq!(collected([]), (String::new(), None));
    }

    #[test]
    fn too_many_lines_leave_the_last_2000_and_a_file_with_all() {
        let all: String = (1..=2500).map(|n| format!("{n}\n")).collect();
        let (text, spill) = collected(all.as_bytes().chunks(7));
        assert!(
            text.starts_with("[the last 2000 of 2500 lines (11393 bytes); read all of it in SPILL]\n501\n"),
            "{text}"
        );
        assert!(text.ends_with("\n2500\n"));
        assert_eq!(spill.unwrap(), all.as_bytes());
    }

    #[test]
    fn too_many_bytes_leave_whole_lines() {
        let all: String = (0..1000).map(|n| format!("{n:099}\n")).collect();
        let (text, spill) = collected(all.as_bytes().chunks(4096));
        assert!(text.starts_with("[the last 512 of 1000 lines (100000 bytes); read all of it in SPILL]\n000"));
        assert_eq!(text.lines().count(), 513);
        assert_eq!(spill.unwrap().len(), 100_000);
    }

    #[test]
    fn what_fits_without_carriage_returns_is_shown_whole() {
        let (text, _) = collected([("x".repeat(50) + "\r\n").repeat(1000).as_bytes()]);
        assert_eq!(text, ("x".repeat(50) + "\n").repeat(1000));
    }

    #[test]
    fn one_long_line_is_cut_at_a_character() {
        for n in [40_000, 400_000] {
            let all = "é".repeat(n);
            let (text, _) = collected(all.as_bytes().chunks(1001));
            let (notice, shown) = text.split_once('\n').unwrap();
            assert_eq!(notice, format!("[the end of a line, of {} bytes of output; read all of it in SPILL]", 2 * n));
            assert!(shown.len() <= MAX_BYTES && shown.chars().all(|c| c == 'é'));
        }
    }

    #[test]
    fn output_that_grows_when_shown_is_spilled_too() {
        let (text, spill) = collected([&[27; 20_000][..]]);
        assert!(text.starts_with("[the end of a line, of 20000 bytes of output; read all of it in SPILL]\n"));
        assert_eq!(spill.unwrap().len(), 20_000);
    }

    #[test]
    fn what_cannot_be_kept_is_said() {
        let mut make = || Err("no space".into());
        let mut tail = Tail::new(&mut make);
        tail.push(&b"x\n".repeat(3000));
        assert!(tail.finish().starts_with("[the last 2000 of 3000 lines (6000 bytes); the rest is lost: no space]\n"));
    }

    proptest! {
        #[test]
        fn pieces_put_together_are_the_whole(text in any::<String>(), junk in any::<Vec<u8>>(), at in 1usize..6) {
            for bytes in [text.as_bytes(), &junk] {
                let mut pieces = Pieces::default();
                let mut joined: String = bytes.chunks(at).map(|chunk| pieces.push(chunk)).collect();
                prop_assert!(pieces.rest.len() <= 3);
                joined.push_str(&pieces.finish());
                if bytes == text.as_bytes() {
                    prop_assert_eq!(&joined, &text);
                } else {
                    prop_assert_eq!(joined, String::from_utf8_lossy(bytes));
                }
            }
        }
    }
}
