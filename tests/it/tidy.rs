//! The repository keeps its own promises: floors, names, and files that belong to no machine.

use std::fs;
use std::path::{Path, PathBuf};

/// The floors, lowest first (design.md 2): a module may use those of its own floor and below.
const FLOORS: &[&[&str]] = &[
    &["cancel", "nearest", "message", "event", "sse", "diff", "rundir", "sandbox", "tokens", "jsonl", "prices"],
    &["workspace", "kept", "gate", "reply", "complaint"],
    &["dialect", "endpoint", "process"],
    &["tool", "tools"],
    &["extension", "approve", "permissions", "window"],
    &["agent"],
    &["setup"],
    &["session", "terminal", "replay", "record", "attach"],
    &["lab", "doctor", "trace", "eval"],
    &["config", "cli"],
];

fn root() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
}

/// Every Rust file below a directory.
fn rust_files(dir: &Path) -> Vec<PathBuf> {
    let mut files = Vec::new();
    for entry in fs::read_dir(dir).unwrap_or_else(|e| panic!("{}: {e}", dir.display())) {
        let path = entry.unwrap().path();
        if path.is_dir() {
            files.extend(rust_files(&path));
        } else if path.extension().is_some_and(|ext| ext == "rs") && !path.ends_with("tests.rs") {
            files.push(path);
        }
    }
    files
}

/// A file without its tests and comments.
fn code(path: &Path) -> String {
    let text = fs::read_to_string(path).unwrap();
    let code = text.split("#[cfg(test)]").next().unwrap_or_default();
    code.lines().filter(|line| !line.trim_start().starts_with("//")).collect::<Vec<_>>().join("\n")
}

/// The top-level module that a file below src/ belongs to.
fn module(path: &Path) -> String {
    let relative = path.strip_prefix(root().join("src")).unwrap();
    let first = relative.components().next().unwrap().as_os_str().to_string_lossy();
    first.trim_end_matches(".rs").to_owned()
}

fn floor(module: &str) -> Option<usize> {
    FLOORS.iter().position(|floor| floor.contains(&module))
}

#[test]
fn imports_run_downward_only() {
    let mut seen = 0;
    for path in rust_files(&root().join("src")) {
        let from = module(&path);
        if from == "lib" || from == "main" {
            continue;
        }
        let own = floor(&from).unwrap_or_else(|| panic!("{from} stands on no floor: add it to FLOORS"));
        for piece in code(&path).split("crate::").skip(1) {
            let to: String = piece.chars().take_while(|c| c.is_ascii_alphanumeric() || *c == '_').collect();
            let theirs = floor(&to).unwrap_or_else(|| panic!("{}: crate::{to} stands on no floor", path.display()));
            assert!(theirs <= own, "{}: {from} imports {to}, which stands above it", path.display());
            seen += 1;
        }
    }
    assert!(seen > 50, "only {seen} imports were seen: does this test still read them?");
}

#[test]
fn no_kernel_file_holds_a_lab_id_or_an_extensions_name() {
    let names = |dir: &str, ext: &str| -> Vec<String> {
        let entries =
            fs::read_dir(root().join(dir)).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap());
        entries
            .filter(|name| name.ends_with(ext) && name != "mod.rs")
            .map(|name| name.trim_end_matches(ext).to_owned())
            .collect()
    };
    let labs: Vec<String> = names("labs", "").into_iter().filter(|name| name.starts_with(char::is_numeric)).collect();
    let extensions: Vec<String> = names("extensions", ".rs").into_iter().map(|name| format!("\"{name}\"")).collect();
    assert!(labs.len() >= 2 && !extensions.is_empty());
    for path in rust_files(&root().join("src")).iter().filter(|path| !path.ends_with("src/main.rs")) {
        for name in labs.iter().chain(&extensions) {
            assert!(!code(path).contains(name.as_str()), "{} holds {name}", path.display());
        }
    }
}

#[test]
fn extensions_use_the_public_api_only() {
    for path in rust_files(&root().join("extensions")) {
        let code = code(&path);
        let own = code.replace("crate::extensions::", "");
        assert!(!own.contains("crate::"), "{} reaches into the binary", path.display());
    }
}

#[test]
fn nothing_panics_on_what_input_can_cause() {
    // `unwrap` and `expect` outside tests are for what the line itself proves; each one says so in words.
    let mut found = Vec::new();
    for path in rust_files(&root().join("src")).into_iter().chain(rust_files(&root().join("extensions"))) {
        for line in code(&path).lines().filter(|line| line.contains(".unwrap()") || line.contains("todo!(")) {
            found.push(format!("{}: {}", path.display(), line.trim()));
        }
    }
    assert!(found.is_empty(), "{found:#?}");
}

#[test]
fn every_file_says_what_it_is() {
    for path in rust_files(&root().join("src")).into_iter().chain(rust_files(&root().join("extensions"))) {
        let text = fs::read_to_string(&path).unwrap();
        assert!(text.starts_with("//!") || path.ends_with("src/main.rs"), "{} has no module comment", path.display());
        assert!(!text.contains("TODO") && !text.contains("FIXME"), "{} is not finished", path.display());
    }
}
