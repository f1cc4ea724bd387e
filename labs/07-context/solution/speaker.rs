// Exercise B: in place of `speaker` in extensions/context.rs.

/// Who speaks in a user message. A hook's words are user messages, too.
pub fn speaker(text: &str) -> &'static str {
    if text.starts_with("<summary>") {
        "summary of what was before"
    } else if text.starts_with("<verifier>") {
        "verifier, a program"
    } else {
        "user"
    }
}
