//! Where the labs' files come from: the binary itself, so that `cargo install` users have them; or `labs/` of this
//! repository, when run inside it, so that an author sees a change at once.
//!
//! A lab is small (some 30 KB), so it is read whole: one way to look at a file, wherever it came from.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

#[path = "../../labs/embedded.rs"]
mod embedded;

/// The files of one lab: path relative to the lab's directory (with `/`), and content.
pub type Files = BTreeMap<String, Vec<u8>>;

/// Every lab's files by its id, as they are for somebody who works in `cwd`.
pub fn labs(cwd: &Path) -> Result<BTreeMap<String, Files>, String> {
    match repository(cwd) {
        Some(root) => from_directory(&root.join("labs")),
        None => Ok(from_binary()),
    }
}

/// The nearest directory upward whose Cargo.toml is this project's; the nearest Cargo.toml decides.
fn repository(cwd: &Path) -> Option<PathBuf> {
    let root = cwd.ancestors().find(|dir| dir.join("Cargo.toml").is_file())?;
    let manifest = std::fs::read_to_string(root.join("Cargo.toml")).ok()?;
    let ours = manifest.lines().any(|line| line.trim() == "name = \"mini-agent\"");
    (ours && root.join("labs").is_dir()).then(|| root.to_path_buf())
}

fn from_binary() -> BTreeMap<String, Files> {
    let mut labs: BTreeMap<String, Files> = BTreeMap::new();
    for (path, bytes) in embedded::FILES {
        if let Some((id, file)) = path.split_once('/') {
            labs.entry(id.into()).or_default().insert(file.into(), bytes.to_vec());
        }
    }
    labs
}

/// Reads every `NN-name/` of a `labs/` directory.
fn from_directory(root: &Path) -> Result<BTreeMap<String, Files>, String> {
    let mut labs: BTreeMap<String, Files> = BTreeMap::new();
    for path in walk(root)? {
        let Some((id, file)) = path.split_once('/').filter(|(id, _)| is_id(id)) else { continue };
        let bytes = std::fs::read(root.join(&path)).map_err(|e| format!("read labs/{path}: {e}"))?;
        labs.entry(id.into()).or_default().insert(file.into(), bytes);
    }
    Ok(labs)
}

/// `05-name`: two digits, a dash, and more.
fn is_id(name: &str) -> bool {
    matches!(name.as_bytes(), [a, b, b'-', _, ..] if a.is_ascii_digit() && b.is_ascii_digit())
}

/// Every file (and link) below `root`, sorted, relative to it, with `/`. A `.git` is not looked into.
pub fn walk(root: &Path) -> Result<Vec<String>, String> {
    let (mut found, mut todo) = (Vec::new(), vec![String::new()]);
    while let Some(dir) = todo.pop() {
        let here = root.join(&dir);
        let failed = |e: std::io::Error| format!("list {}: {e}", here.display());
        for entry in std::fs::read_dir(&here).map_err(failed)? {
            let entry = entry.map_err(failed)?;
            let name = entry.file_name().to_string_lossy().into_owned();
            let path = if dir.is_empty() { name.clone() } else { format!("{dir}/{name}") };
            match entry.file_type().map_err(failed)?.is_dir() {
                true if name == ".git" => {}
                true => todo.push(path),
                false => found.push(path),
            }
        }
    }
    found.sort();
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_in_the_binary_is_the_directory() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("labs");
        let on_disk = from_directory(&root).unwrap();
        let in_binary = from_binary();
        let names = |labs: &BTreeMap<String, Files>| -> Vec<String> {
            labs.iter().flat_map(|(id, files)| files.keys().map(move |file| format!("{id}/{file}"))).collect()
        };
        assert_eq!(names(&in_binary), names(&on_disk), "labs/embedded.rs and labs/ differ");
        assert_eq!(in_binary, on_disk);
    }

    #[test]
    fn no_lab_holds_a_cargo_manifest() {
        // Cargo leaves every directory with one out of the package.
        assert!(from_binary().values().flat_map(|files| files.keys()).all(|file| !file.ends_with("Cargo.toml")));
    }

    #[test]
    fn only_this_project_s_directory_wins_over_the_binary() {
        let here = Path::new(env!("CARGO_MANIFEST_DIR"));
        assert_eq!(repository(&here.join("src")), Some(here.to_path_buf()));
        let other = tempfile::tempdir().unwrap();
        assert_eq!(repository(other.path()), None);
        std::fs::write(other.path().join("Cargo.toml"), "[package]\nname = \"shop\"\n").unwrap();
        std::fs::create_dir(other.path().join("labs")).unwrap();
        assert_eq!(repository(other.path()), None);
    }
}
