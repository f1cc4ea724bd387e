//! When to send a request again, and after how long.
//!
//! Before a reply is complete no tool has run, so the same request can be sent again without harm; the cost is tokens and
//! repeated text on the screen, which is announced. What passes (a busy server, a broken connection) is tried three more
//! times with growing pauses. A server that names a time is believed: the pause is never shorter. But beyond a minute it
//! is not a pause any more, and the person should decide.
//!
//! Left out on purpose: jitter. It spreads a crowd of clients; here is one, whose pauses should be predictable.

/// How often a request is sent again.
pub const MOST: u32 = 3;
/// Longest pause, in ms.
pub const LONGEST_MS: u64 = 60_000;

/// The pause before retry number `retry` (from 1), in ms: `base_ms`, doubled each time, and at least what the server
/// asked for. The error is what the server asked for, in ms, when that is longer than [`LONGEST_MS`].
pub fn pause(retry: u32, base_ms: u64, asked_ms: Option<u64>) -> Result<u64, u64> {
    let growing = base_ms.saturating_mul(1 << retry.clamp(1, 10).saturating_sub(1)).min(LONGEST_MS);
    match asked_ms {
        Some(asked) if asked > LONGEST_MS => Err(asked),
        Some(asked) => Ok(growing.max(asked)),
        None => Ok(growing),
    }
}

/// The pause a server asks for, in ms: `retry-after-ms`, or `retry-after` as seconds or as a date. `now_ms` is Unix time.
pub fn asked<'a>(header: impl Fn(&str) -> Option<&'a str>, now_ms: u64) -> Option<u64> {
    let number = |text: &str| text.trim().parse::<f64>().ok().filter(|n| n.is_finite() && *n >= 0.0);
    if let Some(ms) = header("retry-after-ms").and_then(number) {
        return Some(ms.ceil() as u64);
    }
    let value = header("retry-after")?;
    match number(value) {
        Some(seconds) => Some((seconds * 1000.0).ceil() as u64),
        None => Some((http_date(value)? * 1000).saturating_sub(now_ms)),
    }
}

/// The Unix time in seconds of `Sun, 06 Nov 1994 08:49:37 GMT`.
fn http_date(text: &str) -> Option<u64> {
    const MONTHS: [&str; 12] = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];
    let mut words = text.split_once(',')?.1.split_whitespace();
    let day: u64 = words.next()?.parse().ok().filter(|day| (1..=31).contains(day))?;
    let name = words.next()?;
    let month = MONTHS.iter().position(|month| *month == name)? as u64 + 1;
    let year: u64 = words.next()?.parse().ok().filter(|year| (1970..=9999).contains(year))?;
    let clock: Vec<u64> = words.next()?.split(':').map(|part| part.parse().ok()).collect::<Option<_>>()?;
    let [hour, minute, second] = clock.try_into().ok()?;
    (hour < 24 && minute < 60 && second < 61)
        .then_some(days(year, month, day) * 86400 + hour * 3600 + minute * 60 + second)
}

/// Days since 1970-01-01. Years begin in March here, so that a leap day is the last day of one.
fn days(year: u64, month: u64, day: u64) -> u64 {
    let year = if month <= 2 { year - 1 } else { year };
    let day_of_year = (153 * ((month + 9) % 12) + 2) / 5 + day - 1;
    year * 365 + year / 4 - year / 100 + year / 400 + day_of_year - 719_468
}

/// A time for people: `45 s`, `60 min`, `12 h`.
pub fn human(ms: u64) -> String {
    match ms {
        0..1000 => format!("{ms} ms"),
        1000..120_000 => format!("{} s", ms.div_ceil(1000)),
        120_000..7_200_000 => format!("{} min", ms.div_ceil(60_000)),
        _ => format!("{} h", ms.div_ceil(3_600_000)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_double_and_are_never_shorter_than_asked() {
        assert_eq!([1, 2, 3].map(|retry| pause(retry, 500, None)), [Ok(500), Ok(1000), Ok(2000)]);
        assert_eq!(pause(1, 1, Some(2000)), Ok(2000));
        assert_eq!(pause(1, 500, Some(0)), Ok(500));
        assert_eq!(pause(1, 500, Some(3_600_000)), Err(3_600_000));
    }

    #[test]
    fn all_three_forms_of_asking() {
        let asked_by = |name: &'static str, value: &'static str| {
            asked(|wanted| (wanted == name).then_some(value), 784_111_770_500)
        };
        assert_eq!(asked_by("retry-after-ms", "150"), Some(150));
        assert_eq!(asked_by("retry-after", "1.5"), Some(1500));
        assert_eq!(asked_by("retry-after", "Sun, 06 Nov 1994 08:49:37 GMT"), Some(6500));
        assert_eq!(asked_by("retry-after", "Sun, 06 Nov 1994 08:49:00 GMT"), Some(0));
        for nonsense in ["soon", "-1", "NaN", "Sun, 99 Nov 1994 08:49:37 GMT", "Sun, 06 Nov"] {
            assert_eq!(asked_by("retry-after", nonsense), None, "{nonsense}");
        }
    }

    #[test]
    fn dates_before_and_behind_a_leap_day() {
        assert_eq!(days(1970, 1, 1), 0);
        assert_eq!(days(2024, 3, 1) - days(2024, 2, 28), 2);
        assert_eq!(days(2100, 3, 1) - days(2100, 2, 28), 1);
    }
}
