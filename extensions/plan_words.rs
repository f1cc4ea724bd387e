//! Your own words for plan mode: what a plan shall be.
//!
//! That nothing changes in plan mode is not up to words: an approver denies every call that could change something, and
//! it outranks `--yes` (`src/approve.rs`). The words only decide what the model does with its time: a good plan, or one
//! blocked call after the other. They are part of the system text while plan mode is on, and read once, at start.
//!
//! The file comes from `--ext plan-words=FILE` or `~/.config/mini/plan.txt`, and never unasked from the workspace: it would be a
//! stranger's words in the operator's place.

use mini::setup::Setup;
use std::path::Path;

/// More than this would be sent with every request, in bytes.
const MOST: usize = 4096;

/// Attaches the words of a file: `arg`, or the operator's own.
pub fn attach(setup: &mut Setup, arg: Option<&str>) -> Result<(), String> {
    let file = match arg {
        Some(file) => file.into(),
        None => mini::config::user_file("plan.txt").filter(|file| file.exists()).ok_or(
            "no words: give a file (--ext plan-words=FILE), or write ~/.config/mini/plan.txt, such as: Read what you need, \
             answer with a numbered plan, then stop.",
        )?,
    };
    setup.plan.set_words(&read(&file)?);
    Ok(())
}

fn read(file: &Path) -> Result<String, String> {
    let text = std::fs::read_to_string(file).map_err(|e| format!("cannot read {}: {e}", file.display()))?;
    match text.trim() {
        "" => Err(format!("{} is empty: say what a plan shall be", file.display())),
        text if text.len() > MOST => Err(format!(
            "{} has {} bytes; at most {MOST}, since they go along with every request",
            file.display(),
            text.len()
        )),
        text => Ok(text.into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_that_cannot_be_used_is_named() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("plan.txt");
        assert!(read(&file).unwrap_err().starts_with(&format!("cannot read {}", file.display())));
        let rows = [(" \n".to_owned(), "is empty"), ("x".repeat(MOST + 1), "4097 bytes")];
        for (text, wanted) in rows {
            std::fs::write(&file, text).unwrap();
            assert!(read(&file).unwrap_err().contains(wanted));
        }
        std::fs::write(&file, "A numbered plan.\n").unwrap();
        assert_eq!(read(&file), Ok("A numbered plan.".into()));
    }
}
