//! Writes responses: every chunk in one go and flushed, so that the script decides what the client
//! reads at once.

use super::request::find;
use std::io::{self, Write};
use std::time::{SystemTime, UNIX_EPOCH};

/// How the body of a response is marked off.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Framing {
    /// Transfer-Encoding: chunked.
    Chunked,
    /// Content-Length, as the script says; what is missing can only be shown by closing.
    Length,
}

/// Writes status line and headers; the framing follows from them.
pub fn write_head(
    out: &mut impl Write,
    status: u16,
    headers: &[(String, String)],
    now: SystemTime,
) -> io::Result<Framing> {
    let framing = if find(headers, "content-length").is_some() { Framing::Length } else { Framing::Chunked };
    let mut head = format!("HTTP/1.1 {status} {}\r\n", reason(status));
    for (name, value) in headers {
        head += &format!("{name}: {}\r\n", with_dates(value, now));
    }
    if framing == Framing::Chunked {
        head += "Transfer-Encoding: chunked\r\n";
    }
    head += "\r\n";
    out.write_all(head.as_bytes())?;
    out.flush()?;
    Ok(framing)
}

/// Writes bytes of the body in one go.
pub fn write_chunk(out: &mut impl Write, framing: Framing, bytes: &[u8]) -> io::Result<()> {
    if bytes.is_empty() {
        return Ok(()); // A chunk of no bytes would be the last one.
    }
    match framing {
        Framing::Length => out.write_all(bytes)?,
        Framing::Chunked => {
            let head = format!("{:x}\r\n", bytes.len());
            out.write_all(&[head.as_bytes(), bytes, b"\r\n"].concat())?;
        }
    }
    out.flush()
}

/// Writes the proper end of the body.
pub fn write_end(out: &mut impl Write, framing: Framing) -> io::Result<()> {
    match framing {
        Framing::Length => Ok(()),
        Framing::Chunked => out.write_all(b"0\r\n\r\n").and_then(|()| out.flush()),
    }
}

/// A whole JSON answer.
pub fn write_json(out: &mut impl Write, status: u16, body: &str) -> io::Result<()> {
    let reason = reason(status);
    let head = format!(
        "HTTP/1.1 {status} {reason}\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\r\n",
        body.len()
    );
    out.write_all(&[head.as_bytes(), body.as_bytes()].concat())?;
    out.flush()
}

fn reason(status: u16) -> &'static str {
    match status {
        200..=299 => "OK",
        300..=399 => "Redirect",
        404 => "Not Found",
        429 => "Too Many Requests",
        400..=499 => "Bad Request",
        _ => "Server Error",
    }
}

/// Replaces `{{http_date:+N}}` by now + N seconds; anything else stays as it is.
fn with_dates(value: &str, now: SystemTime) -> String {
    let seconds = |value: &str| {
        let (before, rest) = value.split_once("{{http_date:")?;
        let (offset, after) = rest.split_once("}}")?;
        let now = now.duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs()) as i64;
        Some(format!("{before}{}{after}", http_date(now.saturating_add(offset.parse().ok()?))))
    };
    seconds(value).unwrap_or_else(|| value.to_string())
}

/// Unix seconds as `Sun, 06 Nov 1994 08:49:37 GMT` (RFC 9110, 5.6.7).
fn http_date(unix: i64) -> String {
    const DAYS: [&str; 7] = ["Thu", "Fri", "Sat", "Sun", "Mon", "Tue", "Wed"]; // 1 January 1970 was a Thursday.
    const MONTHS: [&str; 12] = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];
    let (day, second) = (unix.max(0) / 86_400, unix.max(0) % 86_400);
    let (mut year, mut left) = (1970, day);
    while left >= days_of(year) {
        left -= days_of(year);
        year += 1;
    }
    let lengths = [31, days_of(year) - 337, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31];
    let mut month = 0;
    while left >= lengths[month] {
        left -= lengths[month];
        month += 1;
    }
    let weekday = DAYS[(day % 7) as usize];
    let (hours, minutes) = (second / 3600, second / 60 % 60);
    format!("{weekday}, {:02} {} {year} {hours:02}:{minutes:02}:{:02} GMT", left + 1, MONTHS[month], second % 60)
}

fn days_of(year: i64) -> i64 {
    let leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
    if leap { 366 } else { 365 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_are_those_of_the_rfc() {
        assert_eq!(http_date(784_111_777), "Sun, 06 Nov 1994 08:49:37 GMT");
        assert_eq!(http_date(951_782_400), "Tue, 29 Feb 2000 00:00:00 GMT");
        assert_eq!(http_date(1_735_689_599), "Tue, 31 Dec 2024 23:59:59 GMT");
        let now = UNIX_EPOCH + std::time::Duration::from_secs(784_111_770);
        assert_eq!(with_dates("{{http_date:+7}}", now), "Sun, 06 Nov 1994 08:49:37 GMT");
        assert_eq!(with_dates("{{http_date:soon}}", now), "{{http_date:soon}}");
    }
}
