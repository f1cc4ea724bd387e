//! The one table of names and places that neither a tool nor a command touches.
//!
//! A name is protected wherever it stands as a *component* of a path, so `.environment.md`, `docs/sudo.md` or `x.git/` do not
//! nag. Names are compared in the form the laxest file system would see: composed, folded, without invisible characters
//! (HFS+ drops them), without what Windows drops from an end (dots, blanks, `:stream`).
//!
//! Left out on purpose, although they can hold secrets: `.npmrc`, `.aws`, `.kube`, `.docker`, `*.pem`, `*.key`. Honest
//! repositories commit them (registry settings, deployment manifests, test certificates), and a guard that refuses daily work
//! is switched off. Outside the workspace they ask, like everything else there.

use std::path::{Component, Path, PathBuf};
use unicode_normalization::UnicodeNormalization;

/// Whole names. `git~1` is the short name NTFS gives to `.git`.
const NAMES: [&str; 11] =
    [".git", "git~1", ".ssh", ".env", ".envrc", ".gnupg", ".netrc", ".pgpass", ".pypirc", "id_rsa", "id_ed25519"];
/// `.env.<anything>` is protected, unless it ends in one of these: templates are meant to be read and written.
const TEMPLATES: [&str; 6] = [".example", ".sample", ".template", ".dist", ".defaults", ".schema"];

/// The protected component of a path or pattern, in its folded form, if there is one.
pub fn component(path: &str) -> Option<String> {
    path.split(['/', '\\']).map(folded).find(|name| is_name(name))
}

fn is_name(name: &str) -> bool {
    let template = || TEMPLATES.iter().any(|ending| name.ends_with(ending));
    NAMES.contains(&name) || name.ends_with(".env") || (name.starts_with(".env.") && !template())
}

/// The protected place that an absolute path without `..` lies in, if it does.
pub fn place(path: &Path) -> Option<String> {
    let path = path.to_str()?;
    // macOS keeps /etc below /private.
    let path = path.strip_prefix("/private").filter(|rest| rest.starts_with('/')).unwrap_or(path);
    let mut parts = path.split('/').filter(|part| !part.is_empty());
    let (first, second) = (parts.next()?, parts.next());
    match (first.to_ascii_lowercase().as_str(), second) {
        ("etc", _) => Some("/etc".to_string()),
        ("dev", second) if second.is_some() && path != "/dev/null" => Some(path.to_string()),
        ("proc", Some(process)) if is_process(process) => Some(format!("/proc/{process}")),
        _ => None,
    }
}

fn is_process(name: &str) -> bool {
    matches!(name, "self" | "thread-self") || name.bytes().all(|b| b.is_ascii_digit())
}

/// Examples of protected names, for asking whether a shell pattern could match one.
pub fn samples() -> impl Iterator<Item = &'static str> {
    NAMES.into_iter().chain([".env.local", ".env.production"])
}

/// Examples of protected places, for the same question.
pub const PLACES: [&[&str]; 5] = [&["etc"], &["dev"], &["proc", "self"], &["proc", "thread-self"], &["proc", "1"]];

/// File name patterns that cover every protected *file* a recursive search could print, in lower case and in the syntax that
/// grep, ripgrep and git share (`*`, `?`, `[!x]`). `.env.example` stays visible, since people keep the names of settings
/// there; the other templates are hidden with the rest: a pattern has no "except".
pub fn file_patterns() -> Vec<String> {
    let mut patterns: Vec<String> = NAMES.iter().chain(&["*.env"]).map(ToString::to_string).collect();
    let kept = "example";
    for (at, next) in kept.char_indices() {
        let same = &kept[..at];
        patterns.push(format!(".env.{same}[!{next}]*"));
        patterns.push(format!(".env.{same}"));
    }
    patterns.push(format!(".env.{kept}?*"));
    patterns
}

/// The same for directories: everything below one is hidden.
pub fn directory_patterns() -> Vec<String> {
    NAMES.iter().chain(&["*.env", ".env.*"]).map(ToString::to_string).collect()
}

/// Folds `.` and `..` in the text of an absolute path, without looking at the disk.
pub fn fold(path: &Path) -> PathBuf {
    let mut folded = PathBuf::from("/");
    for part in path.components() {
        match part {
            Component::Normal(name) => folded.push(name),
            Component::ParentDir => drop(folded.pop()),
            Component::RootDir | Component::CurDir | Component::Prefix(_) => {}
        }
    }
    folded
}

/// A component as the laxest file system compares it.
fn folded(component: &str) -> String {
    let lower = if component.is_ascii() {
        component.to_ascii_lowercase()
    } else {
        // By way of upper case, which is how `ſ` comes to be `s` and `ß` `ss`, as case-insensitive file systems have it.
        let composed = component.nfc().filter(|c| !is_invisible(*c));
        composed.flat_map(char::to_uppercase).flat_map(char::to_lowercase).collect()
    };
    let name = lower.split(':').next().unwrap_or_default();
    name.trim_end_matches(['.', ' ']).to_string()
}

/// Characters that Unicode lets a display leave out (Default_Ignorable_Code_Point), bidi controls among them.
pub fn is_invisible(c: char) -> bool {
    matches!(u32::from(c),
        0xAD | 0x34F | 0x61C | 0x115F..=0x1160 | 0x17B4..=0x17B5 | 0x180B..=0x180F | 0x200B..=0x200F | 0x202A..=0x202E
        | 0x2060..=0x206F | 0x3164 | 0xFE00..=0xFE0F | 0xFEFF | 0xFFA0 | 0xFFF0..=0xFFF8 | 0x1BCA0..=0x1BCA3
        | 0x1D173..=0x1D17A | 0xE0000..=0xE0FFF)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn protected_names_in_every_spelling() {
        let yes = [
            ".env",
            "a/.env",
            ".ENV",
            ".env.local",
            "prod.env",
            ".envrc",
            ".git/config",
            "sub/.git",
            ".GIT",
            "GIT~1/config",
            ".git /config",
            ".git./x",
            ".git::$INDEX_ALLOCATION/config",
            ".g\u{200c}it/config",
            ".e\u{200b}nv",
            "a\\.env",
            ".ssh/id_rsa",
            ".env.example.local",
            "id_ed25519",
            ".netrc",
            ".\u{17f}\u{17f}h/x",
            ".\u{df}h",
            "id_r\u{17f}a",
        ];
        for path in yes {
            assert!(component(path).is_some(), "{path} should be protected");
        }
    }

    #[test]
    fn names_that_only_look_like_it() {
        let no = [
            ".env.example",
            ".env.sample",
            ".env.local.example",
            ".environment.md",
            ".github/x",
            ".gitignore",
            "x.git/",
            "environment.ts",
            "docs/sudo.md",
            ".\u{435}nv",
            "envrc",
            "id_rsa.pub",
            "git",
            ".npmrc",
            "a.pem",
        ];
        for path in no {
            assert_eq!(component(path), None, "{path}");
        }
    }

    #[test]
    fn places() {
        for path in
            ["/etc", "/etc/passwd", "/dev/zero", "/dev/fd/0", "/proc/self/fd", "/proc/1/environ", "/private/etc/hosts"]
        {
            assert!(place(Path::new(path)).is_some(), "{path}");
        }
        for path in ["/", "/dev/null", "/etcetera", "/proc/cpuinfo", "/sys/class", "/tmp/etc", "/proc"] {
            assert_eq!(place(Path::new(path)), None, "{path}");
        }
    }

    #[test]
    fn folding() {
        assert_eq!(fold(Path::new("/a/../../etc/./x")), Path::new("/etc/x"));
    }
}
