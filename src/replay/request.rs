//! Reads requests: just enough HTTP/1.1 for one kind of client, with bodies by Content-Length or
//! chunked.
//!
//! Left out: TLS, compression, trailers' meaning. What the client sends is not trusted: lines and
//! bodies have limits, nothing is allocated on its word, and every fault is a value.

use std::io::{self, BufRead, Read, Write};

/// The longest line of a head, the most header lines, and the largest body.
const LINE_BYTES: u64 = 64 * 1024;
const HEADERS: usize = 200;
const BODY_BYTES: u64 = 256 * 1024 * 1024;

/// One request, read to its end.
pub struct Request {
    pub method: String,
    pub path: String,
    /// Without the question mark; empty if there is none.
    pub query: String,
    /// Names in lower case.
    pub headers: Vec<(String, String)>,
    pub body: Vec<u8>,
}

/// Why there is no request.
pub enum Fault {
    /// The client left, or the connection broke.
    Gone,
    /// Not HTTP that this server understands; the words go into the answer.
    Bad(String),
}

impl From<io::Error> for Fault {
    fn from(_: io::Error) -> Self {
        Fault::Gone
    }
}

impl Request {
    /// Reads the next request of a connection. `out` is needed for clients that wait for `100
    /// Continue` before they send a body.
    pub fn read(from: &mut impl BufRead, out: &mut impl Write) -> Result<Self, Fault> {
        let first = line(from)?;
        let mut words = first.split_ascii_whitespace();
        let (Some(method), Some(target), Some("HTTP/1.1" | "HTTP/1.0"), None) =
            (words.next(), words.next(), words.next(), words.next())
        else {
            return Err(Fault::Bad(format!("not a request line: {:?}", first.chars().take(80).collect::<String>())));
        };
        let (path, query) = target.split_once('?').unwrap_or((target, ""));
        let headers = headers(from)?;
        let mut request = Self {
            method: method.to_string(),
            path: path.to_string(),
            query: query.to_string(),
            headers,
            body: vec![],
        };
        if request.header("expect").is_some_and(|value| value.eq_ignore_ascii_case("100-continue")) {
            out.write_all(b"HTTP/1.1 100 Continue\r\n\r\n")?;
        }
        request.body = request.read_body(from)?;
        Ok(request)
    }

    /// The value of a header, its name in lower case.
    pub fn header(&self, name: &str) -> Option<&str> {
        find(&self.headers, name)
    }

    fn read_body(&self, from: &mut impl BufRead) -> Result<Vec<u8>, Fault> {
        if self.header("transfer-encoding").is_some_and(|value| value.eq_ignore_ascii_case("chunked")) {
            return chunked(from);
        }
        let length = match self.header("content-length") {
            Some(length) => length.parse().map_err(|_| Fault::Bad(format!("not a Content-Length: {length:?}")))?,
            None => 0,
        };
        let mut body = vec![];
        exactly(from, length, &mut body)?;
        Ok(body)
    }
}

/// The value of a header; `name` in lower case.
pub fn find<'a>(headers: &'a [(String, String)], name: &str) -> Option<&'a str> {
    headers.iter().find(|(known, _)| known.eq_ignore_ascii_case(name)).map(|(_, value)| value.as_str())
}

/// A line without its end. Blank before a request line is not skipped: no client sends it.
fn line(from: &mut impl BufRead) -> Result<String, Fault> {
    let mut bytes = vec![];
    from.by_ref().take(LINE_BYTES).read_until(b'\n', &mut bytes)?;
    match bytes.pop() {
        Some(b'\n') => Ok(String::from_utf8_lossy(&bytes).trim_end_matches('\r').to_string()),
        Some(_) if bytes.len() as u64 + 1 >= LINE_BYTES => {
            Err(Fault::Bad("a line of the head is too long".to_string()))
        }
        _ => Err(Fault::Gone),
    }
}

fn headers(from: &mut impl BufRead) -> Result<Vec<(String, String)>, Fault> {
    let mut headers = vec![];
    loop {
        let line = line(from)?;
        if line.is_empty() {
            return Ok(headers);
        }
        let (name, value) = line.split_once(':').ok_or_else(|| Fault::Bad("a header without a colon".to_string()))?;
        headers.push((name.to_ascii_lowercase(), value.trim().to_string()));
        if headers.len() > HEADERS {
            return Err(Fault::Bad("too many headers".to_string()));
        }
    }
}

/// Appends exactly `length` bytes. Nothing is allocated on the client's word alone.
fn exactly(from: &mut impl BufRead, length: u64, body: &mut Vec<u8>) -> Result<(), Fault> {
    if length.saturating_add(body.len() as u64) > BODY_BYTES {
        return Err(Fault::Bad("the body is too large".to_string()));
    }
    let read = from.by_ref().take(length).read_to_end(body)?;
    if read as u64 == length { Ok(()) } else { Err(Fault::Gone) }
}

fn chunked(from: &mut impl BufRead) -> Result<Vec<u8>, Fault> {
    let mut body = vec![];
    loop {
        let head = line(from)?;
        let size = head.split(';').next().unwrap_or_default().trim();
        let size = u64::from_str_radix(size, 16).map_err(|_| Fault::Bad("not the size of a chunk".to_string()))?;
        exactly(from, size, &mut body)?;
        // After the last chunk come trailers up to a blank line; after any other, just the line's
        // end.
        while !line(from)?.is_empty() {}
        if size == 0 {
            return Ok(body);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(bytes: &[u8]) -> Result<Request, String> {
        Request::read(&mut &bytes[..], &mut Vec::new()).map_err(|fault| match fault {
            Fault::Gone => "gone".to_string(),
            Fault::Bad(what) => what,
        })
    }

    #[test]
    fn bodies_are_read_by_length_and_by_chunks() {
        let request = read(b"POST /v1/x?a=b HTTP/1.1\r\nContent-Length: 3\r\nX-Y:  z \r\n\r\nabcdef").unwrap();
        assert_eq!((request.path.as_str(), request.query.as_str(), &request.body[..]), ("/v1/x", "a=b", &b"abc"[..]));
        assert_eq!(request.header("x-y"), Some("z"));
        let request = read(
            b"POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nab\r\nA;x=y\r\n0123456789\r\n0\r\nT: t\r\n\r\n",
        )
        .unwrap();
        assert_eq!(request.body, b"ab0123456789");
    }

    #[test]
    fn a_client_that_waits_for_leave_to_send_gets_it() {
        let bytes = b"POST / HTTP/1.1\r\nExpect: 100-continue\r\nContent-Length: 1\r\n\r\nx";
        let mut out = vec![];
        assert!(Request::read(&mut &bytes[..], &mut out).is_ok_and(|request| request.body == b"x"));
        assert_eq!(out, b"HTTP/1.1 100 Continue\r\n\r\n");
    }

    #[test]
    fn what_is_not_a_request_is_an_error() {
        for (bytes, word) in [
            (&b"hello\r\n\r\n"[..], "request line"),
            (b"\x16\x03\x01\x02\x00\n", "request line"),
            (b"GET / HTTP/1.1\r\nnonsense\r\n\r\n", "colon"),
            (b"POST / HTTP/1.1\r\nContent-Length: -1\r\n\r\n", "Content-Length"),
            (b"POST / HTTP/1.1\r\nContent-Length: 99999999999999\r\n\r\n", "too large"),
            (b"POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n", "size of a chunk"),
            (b"POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\nffffffffffffffff\r\n", "too large"),
            (b"POST / HTTP/1.1\r\nContent-Length: 9\r\n\r\nabc", "gone"),
            (b"", "gone"),
        ] {
            let error = read(bytes).err().unwrap_or_default();
            assert!(error.contains(word), "{:?}: {error}", String::from_utf8_lossy(bytes));
        }
        let endless = [b"GET / HTTP/1.1\r\nA: ".to_vec(), vec![b'x'; LINE_BYTES as usize]].concat();
        assert!(read(&endless).err().unwrap_or_default().contains("too long"));
    }

    proptest::proptest! {
        #[test]
        fn no_bytes_make_the_reader_panic(bytes in proptest::collection::vec(proptest::num::u8::ANY, 0..200), chunked: bool) {
            let marking = if chunked { "Transfer-Encoding: chunked" } else { "Content-Length: 5" };
            let head = format!("POST / HTTP/1.1\r\n{marking}\r\n\r\n");
            let _ = read(&bytes);
            let _ = read(&[head.as_bytes(), &bytes].concat());
        }
    }
}
