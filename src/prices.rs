//! What tokens cost: a small table of public prices, with its date, and the user's own file over it.
//!
//! Small on purpose. A list of every model is wrong somewhere on the day it is made; these are the two endpoints that mini
//! knows by name. A price belongs to a model *at a server*, so the table never speaks for another host that offers a model
//! of the same name. `~/.config/mini/prices.json` speaks for whatever the person uses:
//!
//! ```json
//! {"my-model": {"input": 0.5, "cached": 0.05, "output": 1.5}}
//! ```
//!
//! US dollars for a million tokens; `cached` may be left out and is then `input`. Where nothing is known the price is
//! *unknown*, never 0: a limit on costs that counts nothing would be a lie.

use crate::event::Usage;
use serde::Deserialize;
use std::collections::BTreeMap;

/// When the table was put together.
pub const AS_OF: &str = "2025-12";

/// US dollars for a million tokens.
#[derive(Clone, Copy, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Price {
    /// Of a request.
    pub input: f64,
    /// Of a request, where the server's prompt cache held them; the same as `input` if `None`.
    #[serde(default)]
    pub cached: Option<f64>,
    /// Of a reply, reasoning included.
    pub output: f64,
}

/// Host, model, input, cached, output.
#[rustfmt::skip]
const TABLE: [(&str, &str, f64, f64, f64); 14] = [
    ("api.openai.com", "gpt-5.1", 1.25, 0.125, 10.0),
    ("api.openai.com", "gpt-5", 1.25, 0.125, 10.0),
    ("api.openai.com", "gpt-5-codex", 1.25, 0.125, 10.0),
    ("api.openai.com", "gpt-5-mini", 0.25, 0.025, 2.0),
    ("api.openai.com", "gpt-5-nano", 0.05, 0.005, 0.4),
    ("api.openai.com", "gpt-4.1", 2.0, 0.5, 8.0),
    ("api.openai.com", "gpt-4.1-mini", 0.4, 0.1, 1.6),
    ("api.openai.com", "gpt-4.1-nano", 0.1, 0.025, 0.4),
    ("api.openai.com", "gpt-4o", 2.5, 1.25, 10.0),
    ("api.openai.com", "gpt-4o-mini", 0.15, 0.075, 0.6),
    ("api.openai.com", "o3", 2.0, 0.5, 8.0),
    ("api.openai.com", "o4-mini", 1.1, 0.275, 4.4),
    ("api.deepseek.com", "deepseek-chat", 0.28, 0.028, 0.42),
    ("api.deepseek.com", "deepseek-reasoner", 0.28, 0.028, 0.42),
];

impl Price {
    /// What these tokens cost, in US dollars. Cached tokens are a part of the input, whatever a server claims.
    pub fn of(&self, usage: &Usage) -> f64 {
        let cached = usage.cached.min(usage.input);
        let fresh = usage.input - cached;
        let dollars = fresh as f64 * self.input
            + cached as f64 * self.cached.unwrap_or(self.input)
            + usage.output as f64 * self.output;
        dollars / 1e6
    }
}

/// The price of a model: the user's own (the text of `prices.json`), else the table's for this server. The error is about
/// the user's text and ends in line and column.
pub fn price(own: Option<&str>, base_url: &str, model: &str) -> Result<Option<Price>, String> {
    let own = own.map_or(Ok(BTreeMap::new()), parse)?;
    Ok(own.get(model).copied().or_else(|| listed(host(base_url), model)))
}

fn parse(text: &str) -> Result<BTreeMap<String, Price>, String> {
    let prices: BTreeMap<String, Price> = serde_json::from_str(text).map_err(|e| e.to_string())?;
    let numbers = |price: &Price| [price.input, price.output, price.cached.unwrap_or(0.0)];
    match prices.iter().find(|(_, price)| numbers(price).iter().any(|number| *number < 0.0)) {
        Some((model, _)) => Err(format!("the price of {model} is below 0")),
        None => Ok(prices),
    }
}

fn listed(host: &str, model: &str) -> Option<Price> {
    let model = undated(model);
    let entry = TABLE.iter().find(|(at, name, ..)| *at == host && *name == model)?;
    Some(Price { input: entry.2, cached: Some(entry.3), output: entry.4 })
}

/// `gpt-4o-2024-11-20` is `gpt-4o`, as it was on that day.
fn undated(model: &str) -> &str {
    let is_date = |tail: &str| {
        tail.chars().enumerate().all(|(at, c)| if matches!(at, 0 | 5 | 8) { c == '-' } else { c.is_ascii_digit() })
    };
    let cut = model.len().checked_sub("-2024-11-20".len()).filter(|at| *at > 0 && model.is_char_boundary(*at));
    cut.map_or(model, |at| if is_date(&model[at..]) { &model[..at] } else { model })
}

/// The host of a base URL, without a port.
fn host(base_url: &str) -> &str {
    let rest = base_url.split_once("://").map_or(base_url, |(_, rest)| rest);
    let authority = rest.split(['/', '?', '#']).next().unwrap_or_default();
    let host = authority.rsplit('@').next().unwrap_or_default();
    host.split(':').next().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    const OPENAI: &str = "https://api.openai.com/v1";

    #[test]
    fn the_table_speaks_for_its_own_servers_only() {
        assert_eq!(price(None, OPENAI, "gpt-5-mini").unwrap().unwrap().output, 2.0);
        assert_eq!(price(None, OPENAI, "gpt-4o-2024-11-20"), price(None, OPENAI, "gpt-4o"));
        for (url, model) in [
            ("http://localhost:11434/v1", "gpt-5"),
            ("https://api.openai.com.evil.example/v1", "gpt-5"),
            ("https://evil.example/api.openai.com", "gpt-5"),
            ("https://api.openai.com@evil.example/v1", "gpt-5"),
            (OPENAI, "gpt-6"),
            (OPENAI, "gpt-5-2024"),
            (OPENAI, ""),
        ] {
            assert_eq!(price(None, url, model), Ok(None), "{url} {model}");
        }
        assert!(price(None, "https://api.deepseek.com:443/v1", "deepseek-chat").unwrap().is_some());
    }

    #[test]
    fn the_users_own_file_comes_first_and_a_slip_in_it_has_a_line() {
        let own = "{\n  \"gpt-5\": {\"input\": 1, \"output\": 2}\n}";
        let mine = price(Some(own), OPENAI, "gpt-5").unwrap().unwrap();
        assert_eq!((mine.input, mine.cached, mine.output), (1.0, None, 2.0));
        let slip = price(Some("{\n  \"m\": {\"inptu\": 1}\n}"), OPENAI, "m").unwrap_err();
        assert!(slip.contains("unknown field `inptu`") && slip.contains("line 2"), "{slip}");
        assert!(price(Some("{\"m\": {\"input\": -1, \"output\": 0}}"), OPENAI, "m").unwrap_err().contains("below 0"));
    }

    #[test]
    fn cached_tokens_are_cheaper_and_never_more_than_the_input() {
        let price = Price { input: 2.0, cached: Some(1.0), output: 10.0 };
        let usage = |input, cached, output| Usage { input, cached, output, reasoning: 0 };
        assert_eq!(price.of(&usage(1_000_000, 0, 100_000)), 3.0);
        assert_eq!(price.of(&usage(1_000_000, 400_000, 0)), 1.6);
        assert_eq!(price.of(&usage(10, u64::MAX, 0)), 1e-5);
        assert_eq!(Price { cached: None, ..price }.of(&usage(1_000_000, 400_000, 0)), 2.0);
    }
}
