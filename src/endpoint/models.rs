//! The server's list of models, where none is configured.
//!
//! A local server usually has one, and then there is nothing to ask the person. With several, a default would be a guess
//! about money and quality.

use serde_json::Value;

/// How many names an error lists.
const MOST: usize = 20;

/// The names in the answer of `/models`: OpenAI's `data`, Ollama's and others' `models`, or a bare array.
pub fn names(body: &[u8]) -> Result<Vec<String>, String> {
    let list: Value = serde_json::from_slice(body).map_err(|error| error.to_string())?;
    let models = [&list["data"], &list["models"], &list].into_iter().find_map(Value::as_array);
    let name = |model: &Value| ["id", "name"].iter().find_map(|member| model[*member].as_str()).map(str::to_owned);
    Ok(models.into_iter().flatten().filter_map(name).collect())
}

/// The only name, or what to tell the person.
pub fn only(mut names: Vec<String>) -> Result<String, String> {
    match names.len() {
        0 => Err("the server lists no models: name one with --model".into()),
        1 => Ok(names.remove(0)),
        count => {
            let more = if count > MOST { format!(" and {} more", count - MOST) } else { String::new() };
            names.truncate(MOST);
            Err(format!("the server has {count} models, choose one with --model: {}{more}", names.join(", ")))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_found_in_all_forms() {
        for body in
            [r#"{"data":[{"id":"m"}],"models":[{"name":"x"}]}"#, r#"{"models":[{"name":"m"}]}"#, r#"[{"id":"m"}]"#]
        {
            assert_eq!(names(body.as_bytes()), Ok(vec!["m".into()]), "{body}");
        }
        assert_eq!(names(b"{}"), Ok(Vec::new()));
        assert!(names(b"<html>").is_err());
    }

    #[test]
    fn one_is_taken_and_several_are_listed() {
        assert_eq!(only(vec!["m".into()]), Ok("m".into()));
        assert_eq!(
            only(vec!["a".into(), "b".into()]),
            Err("the server has 2 models, choose one with --model: a, b".into())
        );
        let many = only((0..22).map(|n| format!("m{n}")).collect()).unwrap_err();
        assert!(many.ends_with("m18, m19 and 2 more"), "{many}");
    }
}
