//! What the task consists of: the words, what is piped in, and the files that `@name` includes.
//!
//! Everything that did not come from the person's fingers stands in a marked block, so that the model can tell the
//! task from the material.

use crate::cancel::Cancel;
use crate::workspace::Workspace;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use std::fs::File;
use std::io::{ErrorKind, Read, Write};
use std::os::fd::AsFd;
use std::path::PathBuf;
use std::time::{Duration, Instant};

/// How much of piped input, or of an included file, goes to the model, in bytes. The rest is in a spill file.
const MOST: usize = 256 << 10;
/// After this long without a byte, it is said that stdin is waited for.
const PATIENCE: Duration = Duration::from_secs(2);

/// Reads `input` to its end. `say` is told once if nothing comes for two seconds; a raised flag ends the wait with
/// `None`. Input over 256 KiB is kept whole in a spill file, and the text says where.
pub fn piped<R: Read + AsFd>(
    mut input: R,
    workspace: &Workspace,
    cancel: &Cancel,
    say: impl FnOnce(&str),
) -> Result<Option<String>, String> {
    let (mut collected, mut say, started) = (Collected::new(workspace), Some(say), Instant::now());
    let mut buffer = [0; 16 << 10];
    while !cancel.is_raised() {
        if !readable(&input) {
            if collected.total == 0
                && started.elapsed() > PATIENCE
                && let Some(say) = say.take()
            {
                say("waiting for piped input (end it with Ctrl-D, or run with </dev/null)");
            }
            continue;
        }
        match input.read(&mut buffer) {
            Ok(0) => return Ok(Some(collected.text())),
            Ok(read) => collected.take(&buffer[..read])?,
            Err(e) if matches!(e.kind(), ErrorKind::Interrupted | ErrorKind::WouldBlock) => {}
            Err(e) => return Err(format!("cannot read stdin: {e}")),
        }
    }
    Ok(None)
}

/// Input as it comes: the beginning in memory, and all of it in a file once that is not enough.
struct Collected<'a> {
    workspace: &'a Workspace,
    kept: Vec<u8>,
    spill: Option<(File, PathBuf)>,
    total: usize,
}

impl Collected<'_> {
    fn new(workspace: &Workspace) -> Collected<'_> {
        Collected { workspace, kept: Vec::new(), spill: None, total: 0 }
    }

    fn take(&mut self, bytes: &[u8]) -> Result<(), String> {
        self.total += bytes.len();
        if self.spill.is_none() && self.total > MOST {
            let (mut file, path) = self.workspace.run().spill("stdin")?;
            file.write_all(&self.kept).map_err(lost)?;
            self.spill = Some((file, path));
        }
        if let Some((file, _)) = &mut self.spill {
            file.write_all(bytes).map_err(lost)?;
        }
        self.kept.extend_from_slice(&bytes[..bytes.len().min(MOST - self.kept.len())]);
        Ok(())
    }

    fn text(self) -> String {
        let text = String::from_utf8_lossy(&self.kept).into_owned();
        let Some((_, path)) = self.spill else { return text };
        let (kept, total, path) = (self.kept.len(), self.total, path.display());
        format!("{text}\n[the first {kept} of {total} bytes; all of it is in {path}, which read may open]")
    }
}

fn lost(e: std::io::Error) -> String {
    format!("cannot keep piped input: {e}")
}

/// Whether a read would not block; looks for at most 50 ms.
fn readable(input: &impl AsFd) -> bool {
    let wait = Timespec { tv_sec: 0, tv_nsec: 50_000_000 };
    let mut fds = [PollFd::new(input, PollFlags::IN)];
    match poll(&mut fds, Some(&wait)) {
        Ok(ready) => ready > 0,
        Err(rustix::io::Errno::INTR) => false,
        Err(_) => true, // let the read itself say what is wrong
    }
}

/// The task with its material: `@name` files that exist in the workspace, then piped text. `None` if there is
/// nothing to do at all. A file that is named and cannot be read is an error; a word that merely begins with `@`
/// stays what it is, and `say` is told of it.
pub fn task(
    words: Option<&str>,
    piped: Option<&str>,
    workspace: &Workspace,
    mut say: impl FnMut(&str),
) -> Result<Option<String>, String> {
    let piped = piped.filter(|text| !text.trim().is_empty());
    let (mut text, block) = match (words.filter(|words| !words.trim().is_empty()), piped) {
        (None, None) => return Ok(None),
        (None, Some(piped)) => return Ok(Some(piped.into())),
        (Some(words), piped) => (words.to_owned(), piped),
    };
    for path in text.clone().split_whitespace().filter_map(|word| word.strip_prefix('@')) {
        match include(path, workspace)? {
            Some(included) => text.push_str(&included),
            None => say(&format!("there is no file {path} here, so @{path} stays a word")),
        }
    }
    if let Some(block) = block {
        text.push_str(&format!("\n\n<stdin>\n{}\n</stdin>", block.trim_end_matches('\n')));
    }
    Ok(Some(text))
}

/// A file as a marked block; `None` if there is no such file.
fn include(path: &str, workspace: &Workspace) -> Result<Option<String>, String> {
    let path = path.trim_end_matches([',', ';', ':', '?', '!', ')']);
    let path = path.strip_suffix('.').unwrap_or(path);
    if path.is_empty() || !workspace.root().join(path).exists() {
        return Ok(None); // a word like @types/node
    }
    let (file, _) = workspace.open_read(path).map_err(|trouble| format!("@{path}: {trouble}"))?;
    let mut bytes = Vec::new();
    file.take(MOST as u64 + 1).read_to_end(&mut bytes).map_err(|e| format!("@{path}: cannot read it: {e}"))?;
    let cut = bytes.len() > MOST;
    bytes.truncate(MOST);
    let note = if cut { "\n[cut here; read has the rest]" } else { "" };
    Ok(Some(format!(
        "\n\n<file path=\"{path}\">\n{}{note}\n</file>",
        String::from_utf8_lossy(&bytes).trim_end_matches('\n')
    )))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rundir::RunDir;

    fn workspace() -> (tempfile::TempDir, Workspace) {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path().join("ws");
        std::fs::create_dir(&root).unwrap();
        std::fs::write(root.join("a.txt"), "alpha\n").unwrap();
        std::fs::write(root.join(".env"), "KEY=x\n").unwrap();
        let workspace = Workspace::open(&root, RunDir::create(&dir.path().join("state")).unwrap()).unwrap();
        (dir, workspace)
    }

    #[test]
    fn piped_text_and_named_files_stand_in_marked_blocks() {
        let (_dir, ws) = workspace();
        let text = task(Some("compare @a.txt, please"), Some("beta\n"), &ws, |_| {}).unwrap().unwrap();
        assert_eq!(text, "compare @a.txt, please\n\n<file path=\"a.txt\">\nalpha\n</file>\n\n<stdin>\nbeta\n</stdin>");
        assert_eq!(task(None, Some("do it\n"), &ws, |_| {}).unwrap().as_deref(), Some("do it\n"));
        assert_eq!(task(Some(" "), Some("\n"), &ws, |_| {}).unwrap(), None);
    }

    #[test]
    fn a_word_with_an_at_sign_stays_and_a_protected_file_is_an_error() {
        let (_dir, ws) = workspace();
        assert_eq!(task(Some("add @types/node"), None, &ws, |_| {}).unwrap().as_deref(), Some("add @types/node"));
        assert!(task(Some("show @.env"), None, &ws, |_| {}).unwrap_err().starts_with("@.env: Blocked"));
    }

    #[test]
    fn input_over_the_limit_is_kept_whole_in_a_spill_file() {
        let (_dir, ws) = workspace();
        let (reader, mut writer) = std::io::pipe().unwrap();
        let feeder = std::thread::spawn(move || writer.write_all(&b"x\n".repeat(200_000)));
        let text = piped(reader, &ws, &Cancel::new(), |_| {}).unwrap().unwrap();
        feeder.join().unwrap().unwrap();
        assert!(text.contains("[the first 262144 of 400000 bytes; all of it is in "), "{}", &text[text.len() - 200..]);
        let path = text.rsplit("is in ").next().unwrap().split(", which").next().unwrap();
        assert_eq!(std::fs::metadata(path).unwrap().len(), 400_000);
    }
}
