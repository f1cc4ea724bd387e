//! `kill -9` at any moment leaves the old file or the new one, and the next run removes what the dead one left.

use crate::support::Test;
use serde_json::json;
use std::time::Duration;

/// Kills in this suite; `MINI_TORN=200` for the full count.
fn rounds() -> u64 {
    std::env::var("MINI_TORN").ok().and_then(|n| n.parse().ok()).unwrap_or(25)
}

#[test]
fn kill_9_never_tears_a_file_and_the_next_run_cleans_up() {
    let (old, new) = ("old line\n".repeat(4_000), "new line, longer\n".repeat(4_000));
    for round in 0..rounds() {
        let mut test = Test::new().file("big.txt", &old);
        for _ in 0..6 {
            test = test
                .call("write", json!({"path": "big.txt", "content": new}))
                .call("write", json!({"path": "big.txt", "content": old}));
        }
        let mut running = test.args(["--yes", "go"]).start();
        running.until_request(1);
        std::thread::sleep(Duration::from_micros(1000 + (round * 7919) % 90_000));
        running.child.kill().expect("kill -9");
        let ran = running.wait();
        let got = std::fs::read(ran.test.workspace().join("big.txt")).expect("the file is there");
        assert!(got == old.as_bytes() || got == new.as_bytes(), "torn after {} bytes", got.len());
        ran.next_run_leaves_only(&["big.txt"]);
    }
}
