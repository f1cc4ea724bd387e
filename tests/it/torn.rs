//! `kill -9` at any moment leaves the old file or the new one, and the next run removes what the dead one left.

use crate::support::{Running, Test};
use serde_json::json;
use std::time::Duration;

/// Kills in this suite; `MINI_TORN=200` for the full count.
fn rounds() -> u64 {
    std::env::var("MINI_TORN").ok().and_then(|n| n.parse().ok()).unwrap_or(10)
}

/// A reply that writes a large file, its arguments in one piece: most of the run's time should be the write's.
fn write(content: &str, at: usize) -> String {
    let arguments = json!({"path": "big.txt", "content": content}).to_string();
    let call = json!({"index": 0, "id": format!("c{at}"), "function": {"name": "write", "arguments": arguments}});
    let delta = json!({"choices": [{"index": 0, "delta": {"tool_calls": [call]}}]});
    let finish = json!({"choices": [{"index": 0, "delta": {}, "finish_reason": "tool_calls"}]});
    let chunks = [format!("data: {delta}\n\n"), format!("data: {finish}\n\ndata: [DONE]\n\n")];
    json!({"response": {"chunks": chunks}}).to_string()
}

#[test]
fn kill_9_never_tears_a_file_and_the_next_run_cleans_up() {
    let line = |word: &str| format!("{}\n", word.repeat(250));
    let (old, new) = (line("old ").repeat(4_000), line("new ").repeat(4_000));
    let mut caught = 0;
    for round in 0..rounds() {
        let test = Test::new().file("big.txt", &old).script(&write(&new, 0)).text("Done.");
        let mut running = test.args(["--yes", "go"]).start();
        // Every second time as soon as a temporary file shows itself, the other times wherever it may be.
        match round % 2 {
            0 => {
                let before = inode(&running);
                running.until("a temporary file", |run| names(run).len() > 1 || inode(run) != before);
            }
            _ => std::thread::sleep(Duration::from_micros(10_000 + (round * 7_919) % 200_000)),
        }
        running.child.kill().expect("kill -9");
        let ran = running.wait();
        let got = std::fs::read(ran.test.workspace().join("big.txt")).expect("the file is there");
        assert!(got == old.as_bytes() || got == new.as_bytes(), "torn after {} bytes", got.len());
        caught += usize::from(std::fs::read_dir(ran.test.workspace()).expect("the workspace").count() > 1);
        ran.next_run_leaves_only(&["big.txt"]);
    }
    println!("{caught} of {} kills came in the middle of the write", rounds());
}

fn names(run: &Running) -> Vec<std::ffi::OsString> {
    let entries = std::fs::read_dir(run.test.workspace()).expect("the workspace");
    entries.filter_map(|entry| Some(entry.ok()?.file_name())).collect()
}

fn inode(run: &Running) -> Option<u64> {
    use std::os::unix::fs::MetadataExt;
    std::fs::metadata(run.test.workspace().join("big.txt")).ok().map(|meta| meta.ino())
}
