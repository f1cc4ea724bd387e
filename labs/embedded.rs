//! The files of the labs, compiled into the binary: one visible list. A test compares it with the directory.

/// Path and content, without writing each path twice: `include_bytes!` takes only literals, so no function can do it.
macro_rules! files {
    ($($path:literal)*) => { &[$(($path, include_bytes!($path))),*] };
}

/// Every file of every lab, by its path below `labs/`.
pub const FILES: &[(&str, &[u8])] = files! {
    "01-mini-agent/README.md"
    "01-mini-agent/demo/.env"
    "01-mini-agent/demo/.env.example"
    "01-mini-agent/demo/gate.txt"
    "01-mini-agent/demo/greet.sh"
    "01-mini-agent/demo/notes.txt"
    "01-mini-agent/demo/src/lib.sh"
    "01-mini-agent/demo/src/main.sh"
    "01-mini-agent/exam/broken-arguments.jsonl"
    "01-mini-agent/exam/denied-in-words.jsonl"
    "01-mini-agent/exam/denied.jsonl"
    "01-mini-agent/exam/edit-places.jsonl"
    "01-mini-agent/exam/newline.jsonl"
    "01-mini-agent/exam/reads-and-edits.jsonl"
    "01-mini-agent/exam/secret.jsonl"
    "01-mini-agent/exercise/A.md"
    "01-mini-agent/exercise/B.md"
    "01-mini-agent/lab.json"
    "01-mini-agent/script.jsonl"
    "01-mini-agent/solution/delete_file"
    "01-mini-agent/solution/gate.txt"
    "05-verify/README.md"
    "05-verify/demo/pricing.sh"
    "05-verify/demo/test.sh"
    "05-verify/demo/verify.json"
    "05-verify/exam/bare.jsonl"
    "05-verify/exam/denied.jsonl"
    "05-verify/exam/edits-the-tests-by-bash.jsonl"
    "05-verify/exam/edits-the-tests.jsonl"
    "05-verify/exam/gives-up.jsonl"
    "05-verify/exam/greeting.jsonl"
    "05-verify/exam/honest.jsonl"
    "05-verify/exam/only-discount.jsonl"
    "05-verify/exam/rewrites-the-rule.jsonl"
    "05-verify/exam/three-attempts.jsonl"
    "05-verify/exercise/A.md"
    "05-verify/exercise/B.md"
    "05-verify/lab.json"
    "05-verify/script.jsonl"
    "05-verify/solution/guarded-verify"
    "05-verify/solution/verify.json"
};
