//! Which endpoint: base URL, key and model, from *one* source.
//!
//! The order, first hit wins: flags · `MINI_*` · `OPENAI_*` · `DEEPSEEK_*` · `~/.config/mini/env` · the `.env` of
//! the current directory. A source is hit when it names a base URL or a non-empty key. Nothing is mixed: were the
//! URL taken from one source and the key from another, a stranger's `.env` could send your key to a stranger's
//! server. (`--model` alone may override: a model's name redirects nothing.)
//!
//! Files are parsed with dotenvy but never into the process environment, where every child would inherit them. Lines
//! that name nothing of ours are not even parsed, and `$` is refused outside single quotes: dotenvy would replace
//! `$OPENAI_API_KEY` by the key, and `MINI_BASE_URL=http://evil/$OPENAI_API_KEY` would send it away.

use crate::endpoint::Settings;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// Names of variables that hold a key, in every source.
const KEY_NAMES: [&str; 3] = ["MINI_API_KEY", "OPENAI_API_KEY", "DEEPSEEK_API_KEY"];

/// The families of names, in their order, with the public URL that goes without saying.
const FAMILIES: [(&str, Option<&str>); 3] =
    [("MINI", None), ("OPENAI", Some("https://api.openai.com/v1")), ("DEEPSEEK", Some("https://api.deepseek.com"))];

/// What the flags say.
#[derive(Clone, Debug, Default)]
pub struct Flags {
    /// `--base-url`
    pub base_url: Option<String>,
    /// `--model`
    pub model: Option<String>,
    /// `--api-key-env`: the name of the variable that holds the key.
    pub api_key_env: Option<String>,
}

/// Where to look besides the flags; an argument, so that tests need no process environment.
pub struct Places {
    /// The environment.
    pub env: BTreeMap<String, String>,
    /// The user's own file, if there is a home.
    pub user_file: Option<PathBuf>,
    /// The `.env` of the current directory.
    pub here: PathBuf,
}

impl Places {
    /// The real ones.
    pub fn real() -> Places {
        let env: BTreeMap<String, String> =
            std::env::vars_os().filter_map(|(k, v)| Some((k.into_string().ok()?, v.into_string().ok()?))).collect();
        Places { user_file: config_dir(&env).map(|dir| dir.join("env")), here: PathBuf::from(".env"), env }
    }
}

/// `$XDG_CONFIG_HOME/mini` or `~/.config/mini`.
pub fn config_dir(env: &BTreeMap<String, String>) -> Option<PathBuf> {
    let named = |name: &str| env.get(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    Some(named("XDG_CONFIG_HOME").or_else(|| Some(named("HOME")?.join(".config")))?.join("mini"))
}

/// A file of the user's own configuration, such as what an extension may start without being asked. It need not exist.
pub fn user_file(name: &str) -> Option<PathBuf> {
    config_dir(&Places::real().env).map(|dir| dir.join(name))
}

/// Which sources may be used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reach {
    /// All of them.
    All,
    /// Those that were meant for mini: a key exported for other tools is named, not used.
    Ours,
}

/// What was found.
#[derive(Debug, Default)]
pub struct Found {
    /// The settings, or `None` if no source names an endpoint.
    pub settings: Option<Settings>,
    /// Something to say before the first request.
    pub notice: Option<String>,
    /// A key of other tools that was passed over, by name ([`Reach::Ours`]).
    pub passed_over: Option<&'static str>,
    /// A variable that names a model, where no source names an endpoint: a model alone selects none.
    pub model_alone: Option<String>,
    /// Names of variables that hold a key: no child gets them.
    pub secret_names: Vec<String>,
    /// Keys and header values, wherever they were seen: no child gets a variable that holds one.
    pub secret_values: Vec<String>,
}

/// Finds the endpoint. The error is a configuration error: what is wrong, where, and what to do.
pub fn find(flags: &Flags, places: &Places, reach: Reach) -> Result<Found, String> {
    let mut found = Found::default();
    let user = read_file(places.user_file.as_deref(), Whose::Ours)?;
    let here = read_file(Some(&places.here), Whose::Shared)?;
    found.remember_secrets(flags, [&places.env, &user, &here]);
    let user_name = places.user_file.as_deref().map(|path| path.display().to_string()).unwrap_or_default();

    let source = from_flags(flags, &places.env)?
        .or_else(|| from_names("MINI", None, &places.env, "the environment"))
        .or_else(|| found.other_tools(&places.env, reach))
        .or_else(|| from_file(&user, &user_name))
        .or_else(|| {
            let source = from_file(&here, ".env of this directory")?;
            found.notice = Some(format!("endpoint from the .env of this directory: {}", source.base_url.as_deref()?));
            Some(source)
        });
    let Some(source) = source else {
        let named = FAMILIES.iter().map(|(family, _)| format!("{family}_MODEL"));
        found.model_alone = named.into_iter().find(|name| places.env.contains_key(name));
        return Ok(found);
    };
    let file = if found.notice.is_some() { &here } else { &user };
    found.settings = Some(settle(source, flags, places, file)?);
    Ok(found)
}

/// What names an endpoint, or a part of one, in words: `MINI_BASE_URL, MINI_MODEL in the environment`.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Sources {
    /// The source that [`find`] takes its values from.
    pub used: Option<String>,
    /// What is set besides, and not looked at.
    pub ignored: Vec<String>,
}

/// Says which source is used and which are not, in the order of [`find`]. The same errors.
pub fn sources(flags: &Flags, places: &Places) -> Result<Sources, String> {
    let (user, here) =
        (read_file(places.user_file.as_deref(), Whose::Ours)?, read_file(Some(&places.here), Whose::Shared)?);
    let user_name = places.user_file.as_deref().map(|path| path.display().to_string()).unwrap_or_default();
    let used = from_flags(flags, &places.env)?.map(|_| "the command line".to_owned());
    let mut sources = Sources { used, ignored: Vec::new() };
    for (vars, place) in
        [(&places.env, "the environment"), (&user, user_name.as_str()), (&here, ".env of this directory")]
    {
        for (family, public) in FAMILIES {
            let names = ["BASE_URL", "API_KEY", "MODEL"].map(|name| format!("{family}_{name}"));
            let is_set = |name: &&String| vars.get(*name).is_some_and(|value| !value.trim().is_empty());
            let set: Vec<&str> = names.iter().filter(is_set).map(String::as_str).collect();
            let words = format!("{} in {place}", set.join(", "));
            match (&sources.used, from_names(family, public, vars, place)) {
                (None, Some(_)) => sources.used = Some(words),
                _ if !set.is_empty() => sources.ignored.push(words),
                _ => {}
            }
        }
    }
    Ok(sources)
}

/// One source's values.
struct Source {
    /// Where the key would come from, in words.
    key_source: String,
    base_url: Option<String>,
    key: Option<String>,
    model: Option<String>,
    /// Whether the settings beside (`MINI_TEMPERATURE` …) may stand in the same file.
    is_file: bool,
}

fn from_flags(flags: &Flags, env: &BTreeMap<String, String>) -> Result<Option<Source>, String> {
    if flags.base_url.is_none() && flags.api_key_env.is_none() {
        return Ok(None);
    }
    let key = match &flags.api_key_env {
        None => None,
        Some(name) => Some(env.get(name).cloned().ok_or(format!("--api-key-env {name}: no such variable is set"))?),
    };
    // Without one, nothing else is looked at: a key meant for another server would be sent to this one.
    let key_source = flags.api_key_env.clone().unwrap_or_else(|| "--api-key-env NAME beside --base-url".into());
    Ok(Some(Source { key_source, base_url: flags.base_url.clone(), key, model: None, is_file: false }))
}

/// The source `FAMILY_BASE_URL`, `FAMILY_API_KEY`, `FAMILY_MODEL` in these variables, if it is hit.
fn from_names(family: &str, public: Option<&str>, vars: &BTreeMap<String, String>, place: &str) -> Option<Source> {
    let get = |name: &str| vars.get(&format!("{family}_{name}")).filter(|value| !value.trim().is_empty()).cloned();
    let (base_url, key) = (get("BASE_URL"), get("API_KEY"));
    if base_url.is_none() && key.is_none() {
        return None;
    }
    let base_url = base_url.or_else(|| public.map(String::from));
    Some(Source {
        key_source: format!("{family}_API_KEY in {place}"),
        base_url,
        key,
        model: get("MODEL"),
        is_file: false,
    })
}

fn from_file(vars: &BTreeMap<String, String>, name: &str) -> Option<Source> {
    let source = FAMILIES.iter().find_map(|(family, public)| from_names(family, *public, vars, name))?;
    Some(Source { is_file: true, ..source })
}

impl Found {
    /// `OPENAI_*` and `DEEPSEEK_*` are shared with other tools.
    fn other_tools(&mut self, env: &BTreeMap<String, String>, reach: Reach) -> Option<Source> {
        let (family, source) = FAMILIES[1..]
            .iter()
            .find_map(|(family, public)| Some((*family, from_names(family, *public, env, "the environment")?)))?;
        if reach == Reach::All {
            return Some(source);
        }
        self.passed_over = KEY_NAMES.into_iter().find(|name| name.starts_with(family));
        None
    }

    fn remember_secrets(&mut self, flags: &Flags, sources: [&BTreeMap<String, String>; 3]) {
        self.secret_names = KEY_NAMES.iter().map(|name| name.to_string()).collect();
        self.secret_names.push("MINI_HEADERS".into());
        self.secret_names.extend(flags.api_key_env.clone());
        for vars in sources {
            self.secret_values.extend(self.secret_names.iter().filter_map(|name| vars.get(name)).cloned());
        }
        self.secret_values.retain(|value| !value.trim().is_empty());
    }
}

/// Turns a source into settings.
fn settle(source: Source, flags: &Flags, places: &Places, file: &BTreeMap<String, String>) -> Result<Settings, String> {
    let Some(base_url) = source.base_url else {
        return Err(format!("{} names a key but no base URL; set the base URL beside it", source.key_source));
    };
    let get = |name: &str| {
        let beside = if source.is_file { file.get(name) } else { None };
        places.env.get(name).or(beside).map(|value| value.trim()).filter(|value| !value.is_empty())
    };
    Ok(Settings {
        base_url,
        model: flags.model.clone().or(source.model).unwrap_or_default(),
        key: source.key.map(|key| key.trim().to_owned()).filter(|key| !key.is_empty()),
        key_source: source.key_source,
        headers: get("MINI_HEADERS").map(headers).transpose()?.unwrap_or_default(),
        retry_base_ms: number("MINI_RETRY_BASE_MS", get("MINI_RETRY_BASE_MS"))?.unwrap_or(500),
        idle_ms: number("MINI_IDLE_TIMEOUT_MS", get("MINI_IDLE_TIMEOUT_MS"))?.unwrap_or(300_000),
        progress_ms: number("MINI_PROGRESS_TIMEOUT_MS", get("MINI_PROGRESS_TIMEOUT_MS"))?.unwrap_or(900_000),
        max_output_tokens: number("MINI_MAX_OUTPUT_TOKENS", get("MINI_MAX_OUTPUT_TOKENS"))?,
        temperature: number("MINI_TEMPERATURE", get("MINI_TEMPERATURE"))?,
    })
}

fn number<T: std::str::FromStr>(name: &str, value: Option<&str>) -> Result<Option<T>, String> {
    let Some(value) = value else { return Ok(None) };
    value.parse().map(Some).map_err(|_| format!("{name}={value}: a number is wanted"))
}

/// `Name: value` lines. Values are secrets, so errors quote names only.
fn headers(lines: &str) -> Result<Vec<(String, String)>, String> {
    let lines = lines.lines().map(str::trim).filter(|line| !line.is_empty());
    lines
        .map(|line| match line.split_once(':') {
            Some((name, value)) if !name.trim().is_empty() => Ok((name.trim().to_owned(), value.trim().to_owned())),
            _ => Err("MINI_HEADERS: every line must be `Name: value`".to_owned()),
        })
        .collect()
}

/// Whose file it is.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Whose {
    /// Mini's own: a name of ours that is none is a slip, and worth an error.
    Ours,
    /// The `.env` of a project, where another program may have names that look like ours.
    Shared,
}

/// Every setting of our own.
#[rustfmt::skip]
const NAMES: [&str; 9] = [
    "MINI_API_KEY", "MINI_BASE_URL", "MINI_MODEL", "MINI_HEADERS", "MINI_RETRY_BASE_MS", "MINI_IDLE_TIMEOUT_MS",
    "MINI_PROGRESS_TIMEOUT_MS", "MINI_MAX_OUTPUT_TOKENS", "MINI_TEMPERATURE",
];

/// Our names in an env file; an absent file has none.
fn read_file(path: Option<&Path>, whose: Whose) -> Result<BTreeMap<String, String>, String> {
    let Some(path) = path else { return Ok(BTreeMap::new()) };
    match std::fs::read(path) {
        Ok(bytes) => parse(&String::from_utf8_lossy(&bytes), whose).map_err(|why| format!("{}: {why}", path.display())),
        Err(e) if matches!(e.kind(), std::io::ErrorKind::NotFound | std::io::ErrorKind::NotADirectory) => {
            Ok(BTreeMap::new())
        }
        Err(e) => Err(format!("cannot read {}: {e}", path.display())),
    }
}

/// Parses the lines of an env file that name something of ours; other lines are none of our business.
fn parse(text: &str, whose: Whose) -> Result<BTreeMap<String, String>, String> {
    let mut vars = BTreeMap::new();
    for (at, line) in text.trim_start_matches('\u{feff}').lines().enumerate() {
        let bare = line.trim_start();
        let bare = bare.strip_prefix("export ").unwrap_or(bare).trim_start();
        if !FAMILIES.iter().any(|(family, _)| bare.strip_prefix(family).is_some_and(|rest| rest.starts_with('_'))) {
            continue;
        }
        if dollar_outside_quotes(bare) {
            return Err(format!(
                "line {}: `$` would be replaced by a variable; put the value in 'single quotes'",
                at + 1
            ));
        }
        for pair in dotenvy::from_read_iter(bare.as_bytes()) {
            // dotenvy's own error quotes the line, and the line may hold a key.
            let (name, value) =
                pair.map_err(|_| format!("line {}: not NAME=value; quote a value with blanks", at + 1))?;
            if whose == Whose::Ours && name.starts_with("MINI_") && !NAMES.contains(&name.as_str()) {
                return Err(format!("line {}: there is no setting {name}{}", at + 1, meant(&name)));
            }
            vars.insert(name, value);
        }
    }
    Ok(vars)
}

fn meant(name: &str) -> String {
    crate::nearest::nearest(name, NAMES).map_or(String::new(), |known| format!("; did you mean {known}?"))
}

fn dollar_outside_quotes(line: &str) -> bool {
    let mut quoted = false;
    line.chars().any(|c| {
        quoted ^= c == '\'';
        c == '$' && !quoted
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn places(env: &[(&str, &str)], user: &str, here: &str) -> (tempfile::TempDir, Places) {
        let dir = tempfile::tempdir().unwrap();
        let (user_file, here_file) = (dir.path().join("env"), dir.path().join(".env"));
        std::fs::write(&user_file, user).unwrap();
        std::fs::write(&here_file, here).unwrap();
        let env = env.iter().map(|(k, v)| (k.to_string(), v.to_string())).collect();
        (dir, Places { env, user_file: Some(user_file), here: here_file })
    }

    fn found(flags: Flags, env: &[(&str, &str)], user: &str, here: &str) -> Result<Found, String> {
        let (_dir, places) = places(env, user, here);
        find(&flags, &places, Reach::All)
    }

    /// URL, key and model of what was found.
    fn triple(found: Result<Found, String>) -> (String, Option<String>, String) {
        let settings = found.unwrap().settings.unwrap();
        (settings.base_url, settings.key, settings.model)
    }

    #[test]
    fn the_first_source_wins_and_nothing_is_mixed() {
        let env = [("MINI_BASE_URL", "http://mini/v1"), ("OPENAI_API_KEY", "sk-openai"), ("OPENAI_MODEL", "gpt")];
        assert_eq!(triple(found(Flags::default(), &env, "", "")), ("http://mini/v1".into(), None, String::new()));
        let flags = Flags { base_url: Some("http://flag".into()), ..Flags::default() };
        assert_eq!(triple(found(flags, &env, "", "")), ("http://flag".into(), None, String::new()));
        let openai = triple(found(Flags::default(), &env[1..], "MINI_BASE_URL=http://file", ""));
        assert_eq!(openai, ("https://api.openai.com/v1".into(), Some("sk-openai".into()), "gpt".into()));
    }

    #[test]
    fn what_is_set_and_not_used_is_known() {
        let env = [
            ("MINI_BASE_URL", "http://m"),
            ("OPENAI_API_KEY", "sk-o"),
            ("OPENAI_MODEL", "gpt"),
            ("DEEPSEEK_API_KEY", ""),
        ];
        let (_dir, places) = places(&env, "", "MINI_MODEL=x\n");
        let found = sources(&Flags::default(), &places).unwrap();
        assert_eq!(found.used.as_deref(), Some("MINI_BASE_URL in the environment"));
        let ignored = ["OPENAI_API_KEY, OPENAI_MODEL in the environment", "MINI_MODEL in .env of this directory"];
        assert_eq!(found.ignored, ignored);
        let flags = Flags { base_url: Some("http://f".into()), ..Flags::default() };
        assert_eq!(sources(&flags, &places).unwrap().used.as_deref(), Some("the command line"));
    }

    #[test]
    fn a_dot_env_cannot_redirect_a_key_from_elsewhere() {
        let env = [("OPENAI_API_KEY", "sk-secret-openai")];
        let evil = "MINI_BASE_URL=http://evil\nOPENAI_BASE_URL=http://evil\n";
        assert_eq!(triple(found(Flags::default(), &env, "", evil)).0, "https://api.openai.com/v1");
        let substituted = found(Flags::default(), &[], "", "MINI_BASE_URL=http://evil/$HOME\n").unwrap_err();
        assert!(substituted.contains("line 1: `$` would be replaced"), "{substituted}");
    }

    #[test]
    fn the_endpoint_of_a_dot_env_is_named() {
        let found = found(Flags::default(), &[], "", "X=1\nMINI_BASE_URL='http://here/v1'\n").unwrap();
        assert_eq!(found.notice.unwrap(), "endpoint from the .env of this directory: http://here/v1");
    }

    #[test]
    fn a_model_alone_selects_no_source_and_the_flag_overrides() {
        assert!(found(Flags::default(), &[("MINI_MODEL", "m")], "", "").unwrap().settings.is_none());
        let flags = Flags { model: Some("mine".into()), ..Flags::default() };
        assert_eq!(triple(found(flags, &[("DEEPSEEK_API_KEY", "sk-d")], "", "")).2, "mine");
    }

    #[test]
    fn an_empty_key_is_no_key_and_a_key_without_url_is_an_error() {
        let env = [("MINI_BASE_URL", "http://m"), ("MINI_API_KEY", " ")];
        assert_eq!(triple(found(Flags::default(), &env, "", "")).1, None);
        let error = found(Flags::default(), &[("MINI_API_KEY", "sk-secret")], "", "").unwrap_err();
        assert!(
            error.contains("MINI_API_KEY in the environment names a key but no base URL") && !error.contains("sk-"),
            "{error}"
        );
    }

    #[test]
    fn errors_name_file_and_line_and_never_quote_a_key() {
        let error = found(Flags::default(), &[], "A=b c\nMINI_API_KEY=sk-secret with blanks\n", "").unwrap_err();
        assert!(error.contains("env: line 2: not NAME=value") && !error.contains("sk-secret"), "{error}");
        let error = found(Flags::default(), &[("MINI_BASE_URL", "u"), ("MINI_HEADERS", "secret")], "", "").unwrap_err();
        assert!(error.contains("MINI_HEADERS") && !error.contains("secret"), "{error}");
        let error =
            found(Flags::default(), &[("MINI_BASE_URL", "u"), ("MINI_TEMPERATURE", "hot")], "", "").unwrap_err();
        assert_eq!(error, "MINI_TEMPERATURE=hot: a number is wanted");
    }

    #[test]
    fn a_slip_in_the_users_own_file_is_an_error_and_in_a_projects_file_it_is_somebody_elses() {
        let error = found(Flags::default(), &[], "MINI_BASE_URL=http://m\nMINI_MODLE=x\n", "").unwrap_err();
        assert!(error.ends_with("line 2: there is no setting MINI_MODLE; did you mean MINI_MODEL?"), "{error}");
        assert!(found(Flags::default(), &[], "", "MINI_BASE_URL=http://m\nMINI_MODLE=x\n").is_ok());
    }

    #[test]
    fn labs_pass_over_keys_of_other_tools_and_say_so() {
        let (_dir, places) = places(&[("OPENAI_API_KEY", "sk-o")], "", "");
        let found = find(&Flags::default(), &places, Reach::Ours).unwrap();
        assert!(found.settings.is_none());
        assert_eq!(found.passed_over, Some("OPENAI_API_KEY"));
        assert!(found.secret_values.contains(&"sk-o".to_string()));
    }
}
