//! What a version of the agent is: a small JSON file, or a recording.
//!
//! ```json
//! {"model":"small","prompt":"Answer in one sentence.","extensions":["verify=test.sh"]}
//! {"recording":"recorded/v1.jsonl"}
//! ```
//!
//! Every member may be left out. `base_url` and `api_key_env` name another server. `prompt` becomes the AGENTS.md of the
//! run, which is how a project says its rules. Paths are relative to the file.
//!
//! A recording answers a case with the section that is named like the case's task (`{"section":"hello"}`), else with the
//! one named `*`; one without any headings answers every case.

use crate::replay::Script;
use serde::Deserialize;
use serde_json::Value;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// A version of the agent.
#[derive(Clone, Debug, Default)]
pub struct Version {
    /// In the report: its file's name without the end.
    pub name: String,
    /// What is appended to the AGENTS.md of the run.
    pub prompt: Option<String>,
    /// Its options on the command line, such as `--model NAME`.
    options: Vec<String>,
    /// Words for `--ext`.
    extensions: Vec<String>,
    /// A recording's lines by section.
    recording: Option<BTreeMap<String, String>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    model: Option<String>,
    base_url: Option<String>,
    api_key_env: Option<String>,
    prompt: Option<String>,
    #[serde(default)]
    extensions: Vec<String>,
    recording: Option<PathBuf>,
}

/// Answers whatever no other section is named like.
const ANY: &str = "*";

/// Reads versions by their names. Each is a file as it is named, or with `.json` or `.jsonl` behind it, here or beside the
/// cases. Without any, what the command line says is the only version.
pub fn read(names: &[String], beside: &Path) -> Result<Vec<Version>, String> {
    if names.is_empty() {
        return Ok(vec![Version { name: "now".into(), ..Version::default() }]);
    }
    let mut versions: Vec<Version> = Vec::new();
    for name in names {
        let version = Version::read(&find(name, beside)?)?;
        if versions.iter().any(|other| other.name == version.name) {
            return Err(format!("two versions are called {}", version.name));
        }
        versions.push(version);
    }
    Ok(versions)
}

fn find(name: &str, beside: &Path) -> Result<PathBuf, String> {
    let places = [PathBuf::from(name), beside.join(name)].into_iter();
    let mut files = places.flat_map(|path| ["", ".json", ".jsonl"].map(|end| format!("{}{end}", path.display())));
    let found = files.find(|file| Path::new(file).is_file());
    found.map(PathBuf::from).ok_or_else(|| {
        format!(
            "there is no version {name}: neither the file, nor {name}.json, nor {name}.jsonl, here or beside the cases"
        )
    })
}

impl Version {
    fn read(file: &Path) -> Result<Version, String> {
        let failed = |why: String| format!("version {}: {why}", file.display());
        let name = file.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        let text = std::fs::read_to_string(file).map_err(|e| failed(e.to_string()))?;
        if file.extension().is_some_and(|end| end == "jsonl") {
            return Ok(Version { name, recording: Some(sections(&text).map_err(failed)?), ..Version::default() });
        }
        let file_says: File = serde_json::from_str(&text).map_err(|e| failed(e.to_string()))?;
        let File { model, base_url, api_key_env, prompt, extensions, recording } = file_says;
        let dir = file.parent().unwrap_or(Path::new(""));
        let recording = recording.map(|path| {
            let path = dir.join(path);
            let text = std::fs::read_to_string(&path).map_err(|e| e.to_string());
            text.and_then(|text| sections(&text)).map_err(|why| failed(format!("{}: {why}", path.display())))
        });
        let flags = [("--model", model), ("--base-url", base_url), ("--api-key-env", api_key_env)];
        let options = flags.into_iter().filter_map(|(flag, value)| Some([flag.into(), value?])).flatten().collect();
        let extensions = extensions.iter().map(|word| absolute(word, dir)).collect();
        Ok(Version { name, prompt, options, extensions, recording: recording.transpose()? })
    }

    pub(super) fn needs_endpoint(&self) -> bool {
        self.recording.is_none() && !self.options.iter().any(|option| option == "--base-url")
    }

    /// Its own arguments, beside those of every run: an extension that is attached already is not attached twice.
    pub(super) fn args(&self, common: &[String]) -> Vec<String> {
        let new = self.extensions.iter().filter(|word| !common.contains(word));
        self.options.iter().cloned().chain(new.flat_map(|word| ["--ext".into(), word.clone()])).collect()
    }

    /// The lines that answer a task; `None` where a real model does. An error where the recording has none.
    pub(super) fn recording_for(&self, task: &str) -> Result<Option<&str>, String> {
        let Some(sections) = &self.recording else { return Ok(None) };
        let named = |wanted: &str| sections.iter().find(|(name, _)| name.eq_ignore_ascii_case(wanted));
        match named(task.trim()).or_else(|| named(ANY)).or_else(|| named("")) {
            Some((_, lines)) => Ok(Some(lines)),
            None => Err(format!(
                "version {}: its recording has no answer to {task:?}, only to: {}",
                self.name,
                sections.keys().cloned().collect::<Vec<_>>().join(" · ")
            )),
        }
    }
}

/// A recording's lines by section; without headings they are one without a name.
fn sections(text: &str) -> Result<BTreeMap<String, String>, String> {
    Script::parse(text)?;
    let (mut sections, mut name): (BTreeMap<String, String>, _) = (BTreeMap::new(), String::new());
    for line in text.lines().filter(|line| !line.trim().is_empty()) {
        let heading: Value = serde_json::from_str(line).map_err(|e| e.to_string())?;
        match (heading["section"].as_str(), heading["sample"].as_u64()) {
            (Some(section), _) => name = section.trim().into(),
            (_, Some(sample)) => name = sample.to_string(),
            _ => {
                let lines = sections.entry(name.clone()).or_default();
                lines.push_str(line);
                lines.push('\n');
            }
        }
    }
    Ok(sections)
}

/// A word for `--ext` that means the same from another directory: where it names a file (`NAME=FILE`, or an executable's
/// path), the file's whole path.
pub fn absolute(word: &str, dir: &Path) -> String {
    let whole = |path: &str| dir.join(path).canonicalize().ok().map(|path| path.display().to_string());
    match word.split_once('=') {
        Some((name, arg)) => whole(arg).map_or_else(|| word.into(), |file| format!("{name}={file}")),
        None if word.contains('/') => whole(word).unwrap_or_else(|| word.into()),
        None => word.into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn version(recording: &str) -> Version {
        Version { name: "v".into(), recording: Some(sections(recording).unwrap()), ..Version::default() }
    }

    #[test]
    fn a_section_answers_the_task_it_is_named_like_and_a_star_the_rest() {
        let lines =
            |name: &str, text: &str| format!("{{\"section\":\"{name}\"}}\n{{\"response\":{{\"text\":\"{text}\"}}}}\n");
        let both = version(&(lines("hello", "Hi.") + &lines("*", "What?")));
        assert!(both.recording_for("Hello ").unwrap().unwrap().contains("Hi."));
        assert!(both.recording_for("other").unwrap().unwrap().contains("What?"));
        let error = version(&lines("hello", "Hi.")).recording_for("other").unwrap_err();
        assert_eq!(error, "version v: its recording has no answer to \"other\", only to: hello");
        let plain = version("{\"response\":{\"text\":\"Yes.\"}}\n");
        assert!(plain.recording_for("anything").unwrap().is_some());
        assert_eq!(Version::default().recording_for("x"), Ok(None));
    }

    #[test]
    fn a_file_is_found_beside_the_cases_and_its_paths_are_relative_to_it() {
        let dir = tempfile::tempdir().unwrap();
        let write = |name: &str, text: &str| std::fs::write(dir.path().join(name), text).unwrap();
        write("p.md", "rules");
        write("a.json", r#"{"model":"m","prompt":"Be brief.","extensions":["x=p.md","y=no such"]}"#);
        write("b.jsonl", "{\"response\":{\"text\":\"Yes.\"}}\n");
        let versions = read(&["a".into(), "b".into()], dir.path()).unwrap();
        let file = dir.path().canonicalize().unwrap().join("p.md").display().to_string();
        let args = ["--model", "m", "--ext", &format!("x={file}"), "--ext", "y=no such"];
        assert_eq!((versions[0].name.as_str(), versions[0].args(&[])), ("a", args.map(String::from).to_vec()));
        assert_eq!(versions[0].args(&[format!("x={file}")]), ["--model", "m", "--ext", "y=no such"]);
        assert!(versions[1].recording_for("t").unwrap().is_some());
        assert!(read(&["a".into(), "a".into()], dir.path()).unwrap_err().contains("two versions are called a"));
        assert!(read(&["c".into()], dir.path()).unwrap_err().contains("there is no version c"));
        write("a.json", r#"{"modell":"m"}"#);
        assert!(read(&["a".into()], dir.path()).unwrap_err().contains("unknown field `modell`"));
    }
}
