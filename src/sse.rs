//! The event-stream parser: bytes in, the JSON texts of a stream out.
//!
//! A strict parser of the WHATWG rules would do for a strict server. The servers that exist end lines with LF, CRLF or CR,
//! leave out the blank after the colon, the blank line between events and the one at the end, send heartbeats of several
//! kinds, answer with one JSON object or an HTML page where a stream was asked for, and glue an error to a half-written
//! event (the table is section A of wire.md; each rule below is one of its rows). So the rule is:
//!
//! * whole lines of **bytes** are collected; nothing is decoded before a line is complete, because a read can end inside
//!   a character;
//! * data is handed on **as soon as it is a balanced JSON text**, not at the blank line that should follow it;
//! * what is still unbalanced at a blank line or at the end is tried line by line, and the rest is [`Event::Broken`].
//!
//! Whether a text is balanced is decided by counting brackets outside strings, which is a few nanoseconds a line and can
//! go on where the last line stopped. Rejected: to try a JSON parse after every line (quadratic for a pretty-printed
//! object), and to trust the content type (gateways label streams `application/json` and the other way round).
//!
//! Left out on purpose: `id:` and `retry:` (nothing here reconnects to the middle of an answer).

/// Longest line, and longest event of several lines, in bytes. A tool argument is one line at most in servers that do not
/// stream arguments, so it has to be generous; a server that never ends a line must not fill the memory.
pub const MAX_LINE: usize = 16 << 20;

/// What the stream says next.
#[derive(Debug, PartialEq, Eq)]
pub enum Event<'a> {
    /// A balanced JSON object or array (only its brackets have been checked).
    Json(&'a [u8]),
    /// The same or plain text, marked as an error by `event: error` or by a field named `error` (old llama.cpp).
    Error(&'a [u8]),
    /// `[DONE]`: the reply is complete.
    Done,
    /// The start of a JSON text whose rest never came, or was never JSON.
    Broken(&'a [u8]),
    /// The body is an HTML page. Nothing follows.
    Html,
}

/// The state between two reads.
#[derive(Default)]
pub struct Parser {
    /// The bytes of a line whose end has not come yet.
    line: Vec<u8>,
    /// The last byte was CR: an LF directly behind it belongs to the same line end.
    after_cr: bool,
    lines: Lines,
}

impl Parser {
    /// A parser at the start of a body.
    pub fn new() -> Parser {
        Parser::default()
    }

    /// Takes the next bytes of the body and says what they complete. How the body is cut into calls changes nothing.
    /// Fails when a line or an event grows beyond [`MAX_LINE`].
    pub fn feed(&mut self, mut bytes: &[u8], say: &mut impl FnMut(Event)) -> Result<(), String> {
        if self.after_cr && !bytes.is_empty() {
            self.after_cr = false;
            bytes = bytes.strip_prefix(b"\n").unwrap_or(bytes);
        }
        while let Some(end) = bytes.iter().position(|byte| matches!(byte, b'\n' | b'\r')) {
            if self.line.is_empty() {
                self.lines.line(&bytes[..end], say);
            } else {
                self.line.extend_from_slice(&bytes[..end]);
                self.lines.line(&self.line, say);
                self.line.clear();
            }
            let crlf = bytes[end..].starts_with(b"\r\n");
            self.after_cr = bytes[end..] == *b"\r";
            bytes = &bytes[end + if crlf { 2 } else { 1 }..];
        }
        self.line.extend_from_slice(bytes);
        self.check_size()
    }

    /// The body has ended. A last line without a line end, and a last event without a blank line, count (the
    /// specification drops them, and with them the finish_reason of some proxies).
    pub fn finish(&mut self, say: &mut impl FnMut(Event)) {
        let line = std::mem::take(&mut self.line);
        if !line.is_empty() {
            self.lines.line(&line, say);
        }
        self.lines.blank(say);
    }

    fn check_size(&self) -> Result<(), String> {
        if self.line.len() <= MAX_LINE && self.lines.text.len() <= MAX_LINE {
            return Ok(());
        }
        Err(format!("the server sent a line of more than {} MiB", MAX_LINE >> 20))
    }
}

/// The state between two lines.
#[derive(Default)]
struct Lines {
    /// Something other than blank lines has come: the byte order mark and the kind of body are behind us.
    begun: bool,
    html: bool,
    /// The event is named `error`.
    error: bool,
    /// The text is made of bare lines, without `data:`.
    bare: bool,
    /// The data of the event so far, lines joined with LF; empty between events.
    text: Vec<u8>,
    /// How `text` stands.
    balance: Balance,
}

impl Lines {
    fn line(&mut self, mut line: &[u8], say: &mut impl FnMut(Event)) {
        if self.html {
            return;
        }
        if !self.begun {
            line = line.strip_prefix(b"\xEF\xBB\xBF").unwrap_or(line);
            self.begun = !line.trim_ascii().is_empty();
            self.html = line.trim_ascii_start().starts_with(b"<");
            if self.html {
                return say(Event::Html);
            }
        }
        match field(line) {
            Field::Blank => self.blank(say),
            Field::Data(value) => self.data(value, false, say),
            Field::Error(value) => say(Event::Error(value)),
            Field::Name(value) => self.error = value == b"error",
            Field::Bare => self.data(line, true, say),
            Field::Other if self.bare => self.data(line, true, say),
            Field::Other => {}
        }
    }

    /// One more line of data.
    fn data(&mut self, line: &[u8], bare: bool, say: &mut impl FnMut(Event)) {
        if bare != self.bare {
            self.flush(say);
            self.bare = bare;
        }
        if self.text.is_empty() {
            match line.trim_ascii() {
                b"" => return,
                done if done.starts_with(b"[DONE]") => return say(Event::Done),
                _ => {}
            }
            // The usual case: one line, one JSON text, not copied.
            self.balance = Balance::default();
            self.balance.scan(line);
            if self.balance.whole() {
                return say(self.named(line));
            }
        } else {
            self.text.push(b'\n');
            self.balance.scan(line);
        }
        self.text.extend_from_slice(line);
        if self.balance.whole() {
            let text = std::mem::take(&mut self.text);
            say(self.named(&text));
        }
    }

    fn named<'a>(&self, text: &'a [u8]) -> Event<'a> {
        if self.error { Event::Error(text) } else { Event::Json(text) }
    }

    /// The end of an event.
    fn blank(&mut self, say: &mut impl FnMut(Event)) {
        self.flush(say);
        (self.error, self.bare) = (false, false);
    }

    /// What never became whole. A line that does not even begin like JSON is a heartbeat, unless it is named an error.
    fn flush(&mut self, say: &mut impl FnMut(Event)) {
        let text = std::mem::take(&mut self.text);
        if self.error && !text.is_empty() && !is_json(&text) {
            return say(Event::Error(&text));
        }
        for line in text.split(|byte| *byte == b'\n').filter(|line| is_json(line)) {
            let mut balance = Balance::default();
            balance.scan(line);
            match balance.whole() {
                true => say(self.named(line)),
                false => say(Event::Broken(line)),
            }
        }
    }
}

/// Whether it begins like a JSON object or array.
fn is_json(text: &[u8]) -> bool {
    matches!(text.trim_ascii_start().first(), Some(b'{' | b'['))
}

/// What kind of line it is.
enum Field<'a> {
    Blank,
    Data(&'a [u8]),
    Error(&'a [u8]),
    Name(&'a [u8]),
    /// JSON without a field name: an error, or a whole answer that is no stream.
    Bare,
    Other,
}

fn field(line: &[u8]) -> Field<'_> {
    let value = |name: &[u8]| {
        let rest = line.strip_prefix(name)?.strip_prefix(b":")?;
        Some(rest.strip_prefix(b" ").unwrap_or(rest))
    };
    if line.is_empty() {
        Field::Blank
    } else if let Some(value) = value(b"data") {
        Field::Data(value)
    } else if let Some(value) = value(b"event") {
        Field::Name(value)
    } else if let Some(value) = value(b"error") {
        Field::Error(value)
    } else if is_json(line) {
        Field::Bare
    } else {
        Field::Other
    }
}

/// Bytes that change no count inside a JSON text: nearly all.
const PLAIN: [bool; 256] = {
    let mut plain = [true; 256];
    let (special, mut at) = (b"{}[]\"\\", 0);
    while at < special.len() {
        plain[special[at] as usize] = false;
        at += 1;
    }
    plain
};

/// Counts brackets outside strings.
#[derive(Default)]
struct Balance {
    depth: u32,
    string: bool,
    escaped: bool,
    /// A bracket has been opened.
    opened: bool,
    /// Something stands outside the brackets.
    outside: bool,
}

impl Balance {
    fn scan(&mut self, line: &[u8]) {
        for byte in line {
            if self.depth > 0 && PLAIN[usize::from(*byte)] && !self.escaped {
                continue;
            }
            match (self.string, byte) {
                (true, _) if self.escaped => self.escaped = false,
                (true, b'\\') => self.escaped = true,
                (true, b'"') => self.string = false,
                (true, _) => {}
                (false, b'"') if self.depth > 0 => self.string = true,
                (false, b'{' | b'[') => {
                    self.outside |= self.opened && self.depth == 0; // a second text behind the first
                    (self.depth, self.opened) = (self.depth + 1, true);
                }
                (false, b'}' | b']') if self.depth > 0 => self.depth -= 1,
                (false, byte) => self.outside |= self.depth == 0 && !byte.is_ascii_whitespace(),
            }
        }
    }

    fn whole(&self) -> bool {
        self.opened && self.depth == 0 && !self.outside
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn show(event: Event) -> String {
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        match event {
            Event::Json(bytes) => text(bytes),
            Event::Error(bytes) => format!("error {}", text(bytes)),
            Event::Broken(bytes) => format!("broken {}", text(bytes)),
            Event::Done => "done".into(),
            Event::Html => "html".into(),
        }
    }

    fn events_of(reads: &[&[u8]]) -> Vec<String> {
        let (mut parser, mut seen) = (Parser::new(), Vec::new());
        for read in reads {
            parser.feed(read, &mut |event| seen.push(show(event))).unwrap();
        }
        parser.finish(&mut |event| seen.push(show(event)));
        seen
    }

    /// The rows of table A, each as (row, body, events).
    const ROWS: &[(&str, &str, &[&str])] = &[
        ("LF", "data: {}\n\ndata: [DONE]\n\n", &["{}", "done"]),
        ("A1 CRLF", "data: {\"a\":1}\r\n\r\ndata: [DONE]\r\n\r\n", &["{\"a\":1}", "done"]),
        ("A3 CR", "data: {}\r\rdata: {}\r\r", &["{}", "{}"]),
        ("A4 comments", ": OPENROUTER PROCESSING\n\n:\n\ndata: {}\n\n", &["{}"]),
        ("A5 no blank after the colon", "data:{}\n\ndata:[DONE]\n\n", &["{}", "done"]),
        ("A6 heartbeats", "\n\ndata:\n\ndata: \n\ndata: ping\n\ndata: {}\n\n", &["{}"]),
        ("A7 several data lines", "data: {\ndata: \"a\":\ndata: 1}\n\n", &["{\n\"a\":\n1}"]),
        ("A9 no end of line", "data: {}", &["{}"]),
        ("A11 byte order mark", "\u{feff}data: {}\n\n", &["{}"]),
        ("A13 one object", "{\n \"a\": {\n  \"b\": 1\n }\n}\n", &["{\n \"a\": {\n  \"b\": 1\n }\n}"]),
        ("A13 an array", "[{\"error\":{}}]", &["[{\"error\":{}}]"]),
        ("A13 a page", "\n <!DOCTYPE html>\ndata: {}\n", &["html"]),
        ("A14 no blank lines", "data: {\"a\":1}\ndata: {\"b\":2}\ndata: [DONE]\n", &["{\"a\":1}", "{\"b\":2}", "done"]),
        ("A6 a heartbeat without a blank line", "data: ping\ndata: {}\n\n", &["{}"]),
        ("A14 glued", "data: {\"a\":\"x\ndata: {\"error\":1}\n\n", &["broken {\"a\":\"x", "{\"error\":1}"]),
        ("A15 blanks behind", "data: [DONE]  \n\n", &["done"]),
        ("brackets in strings", "data: {\"a\":\"}\\\"{[\"}\n\n", &["{\"a\":\"}\\\"{[\"}"]),
        ("E1 named", "event: error\ndata: {\"m\":1}\n\ndata: {}\n\n", &["error {\"m\":1}", "{}"]),
        ("E1 named, plain", "event: error\ndata: upstream died\n\n", &["error upstream died"]),
        ("E1 field", "error: {\"code\":500}\n\n", &["error {\"code\":500}"]),
        ("E1 bare line", "data: {}\n\n{\"error\":\"x\"}\n", &["{}", "{\"error\":\"x\"}"]),
        ("noise", "retry: 3000\n\nid: 1\nfoo: bar\ndata: {}\n\n", &["{}"]),
    ];

    #[test]
    fn every_row_of_the_table() {
        for (row, body, events) in ROWS {
            assert_eq!(events_of(&[body.as_bytes()]), *events, "{row}");
        }
    }

    #[test]
    fn an_event_without_end_is_an_error_and_not_the_memory() {
        let (mut parser, line) = (Parser::new(), format!("data: [{}\n", "1,".repeat(1 << 19)));
        let result = (0..20).try_for_each(|_| parser.feed(line.as_bytes(), &mut |_| {}));
        assert_eq!(result, Err("the server sent a line of more than 16 MiB".into()));
    }

    #[test]
    fn a_line_without_end_is_an_error_and_not_the_memory() {
        let mut parser = Parser::new();
        let piece = vec![b'x'; 1 << 20];
        let result = (0..20).try_for_each(|_| parser.feed(&piece, &mut |_| {}));
        assert_eq!(result, Err("the server sent a line of more than 16 MiB".into()));
    }

    /// So many cases for each property; more with MINI_CASES.
    fn cases() -> ProptestConfig {
        let cases = std::env::var("MINI_CASES").ok().and_then(|text| text.parse().ok()).unwrap_or(256);
        ProptestConfig { cases, failure_persistence: None, ..ProptestConfig::default() }
    }

    proptest! {
        #![proptest_config(cases())]

        #[test]
        fn any_bytes_can_come(bytes in prop::collection::vec(prop::sample::select(b"data:{}[]\"\\\n\r <\xEF\xBB\xBFerrorvnt".to_vec()), 0..200)) {
            events_of(&[&bytes]);
        }

        #[test]
        fn cuts_between_reads_change_nothing(rows in prop::collection::vec(0..ROWS.len(), 1..4), seed: u64) {
            let body: String = rows.iter().map(|row| ROWS[*row].1).collect();
            let bytes = body.as_bytes();
            let (mut reads, mut rest, mut state) = (Vec::new(), bytes, seed | 1);
            while !rest.is_empty() {
                state = state.wrapping_mul(6364136223846793005).wrapping_add(1);
                let (read, later) = rest.split_at(((state >> 33) as usize % 9).min(rest.len()));
                reads.push(read);
                rest = later;
            }
            prop_assert_eq!(events_of(&reads), events_of(&[bytes]));
        }
    }
}
