//! The key goes to its server and nowhere else. (Every test's `run()` looks for it in bodies, output and log.)

use crate::support::{KEY, Test};
use serde_json::json;

#[test]
fn no_child_gets_the_key_or_a_variable_that_holds_it() {
    let ran = Test::new()
        .env("OTHER_TOOLS_SECRET", "x")
        .env("INNOCENT", KEY)
        .env("OPENAI_API_KEY", "sk-other-0123456789")
        .env("KEPT", "yes")
        .call("bash", json!({"command": "env | sort"}))
        .text("Done.")
        .args(["--yes", "go"])
        .run()
        .exit(0)
        .result_has(0, "KEPT=yes")
        .result_has(0, "GIT_TERMINAL_PROMPT=0");
    let env = &ran.results()[0];
    for name in ["OTHER_TOOLS_SECRET", "INNOCENT", "OPENAI_API_KEY", "MINI_API_KEY", "sk-other"] {
        assert!(!env.contains(name), "{name} in\n{env}");
    }
}

#[test]
fn a_key_in_a_file_does_not_reach_a_request() {
    Test::new()
        .file("config.txt", format!("key = {KEY}\n"))
        .call("read", json!({"path": "config.txt"}))
        .text("Done.")
        .args(["go"])
        .run()
        .exit(0)
        .result_has(0, "key = [secret]");
}

#[test]
fn a_servers_error_that_quotes_the_key_is_shown_without_it() {
    let body = json!({"error": {"message": format!("bad key {KEY}")}}).to_string();
    let refused =
        json!({"response": {"status": 401, "headers": {"Content-Type": "application/json"}, "chunks": [body]}});
    Test::new().script(&refused.to_string()).args(["hi"]).run().exit(1).stderr_has("bad key [secret]");
}

#[test]
fn a_dot_env_of_the_directory_cannot_redirect_the_key() {
    let ran = Test::new().file(".env", "MINI_BASE_URL=http://127.0.0.1:9/v1\n").text("Hi.").args(["hi"]).run().exit(0);
    assert_eq!(ran.requests[0].header("authorization"), Some(format!("Bearer {KEY}").as_str()));
}

#[test]
fn the_endpoint_of_a_dot_env_is_named_before_it_is_asked() {
    let test = Test::new().without_endpoint().file(".env", "MINI_BASE_URL=http://127.0.0.1:9/v1\nMINI_MODEL=m\n");
    test.args(["hi"]).run().exit(1).stderr_has("endpoint from the .env of this directory: http://127.0.0.1:9/v1");
}

#[test]
fn the_log_is_for_the_user_alone() {
    use std::os::unix::fs::PermissionsExt;
    let ran = Test::new().text("Hi.").args(["hi"]).run().exit(0);
    let sessions = ran.test.state().join("mini/sessions");
    let log = std::fs::read_dir(sessions).unwrap().next().unwrap().unwrap();
    assert_eq!(log.metadata().unwrap().permissions().mode() & 0o777, 0o600);
}
