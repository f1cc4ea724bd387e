//! SECURITY.md names the test that keeps each promise; a test that is gone or renamed is found here.

use std::fs;
use std::path::Path;

/// The sources of every test, joined.
fn sources(dir: &Path) -> String {
    let entries = fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().path());
    let text = |path: std::path::PathBuf| match path.is_dir() {
        true => sources(&path),
        false if path.extension().is_some_and(|ext| ext == "rs") => fs::read_to_string(path).unwrap(),
        false => String::new(),
    };
    entries.map(text).collect()
}

#[test]
fn every_test_that_security_md_names_exists() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let page = fs::read_to_string(root.join("SECURITY.md")).unwrap();
    let tests = sources(&root.join("src")) + &sources(&root.join("tests")) + &sources(&root.join("extensions"));
    let is_name = |word: &&str| {
        word.matches('_').count() >= 2
            && word.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'_')
    };
    let named: Vec<&str> = page.split('`').skip(1).step_by(2).filter(is_name).collect();
    let missing: Vec<_> = named
        .iter()
        .filter(|name| {
            !tests.contains(&format!("#[test]\nfn {name}()")) && !tests.contains(&format!("#[test]\n    fn {name}()"))
        })
        .collect();
    assert!(missing.is_empty(), "SECURITY.md names tests that do not exist: {missing:?}");
    assert!(named.len() >= 25, "SECURITY.md names only {} tests", named.len());
}

/// Each row of its table of promises has a test.
#[test]
fn every_promise_has_a_test() {
    let page = fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("SECURITY.md")).unwrap();
    let table = page.split("## What is promised").nth(1).and_then(|rest| rest.split("\n## ").next()).unwrap();
    let rows: Vec<&str> =
        table.lines().filter(|line| line.starts_with("| ") && !line.starts_with("| promise")).collect();
    assert!(rows.len() >= 8, "{} promises", rows.len());
    for row in rows {
        assert!(row.rsplit('|').nth(1).unwrap_or_default().contains('`'), "no test: {row}");
    }
}
