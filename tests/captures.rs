//! Bytes that real servers sent, from the socket up to the reply: llama.cpp, LiteLLM in front of it, and two mock servers
//! that inject faults. The files hold whole HTTP responses as they came, chunked coding included.

use mini::cancel::Cancel;
use mini::endpoint::{Ask, Endpoint, Failure, Reply, Settings};
use mini::event::Events;
use mini::message::History;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::thread::JoinHandle;

/// Answers each of up to four connections with the same bytes, then closes it.
fn serve(response: Vec<u8>) -> (String, JoinHandle<()>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/v1", listener.local_addr().unwrap());
    let server = std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            if !request(&stream) {
                return;
            }
            let _ = (&stream).write_all(&response);
        }
    });
    (url, server)
}

/// Reads one request; false if there is none, which ends the server.
fn request(stream: &TcpStream) -> bool {
    let mut reader = BufReader::new(stream);
    let (mut line, mut length) = (String::new(), 0);
    while reader.read_line(&mut line).unwrap_or(0) > 2 {
        if let Some(value) = line.to_ascii_lowercase().strip_prefix("content-length:") {
            length = value.trim().parse().unwrap_or(0);
        }
        line.clear();
    }
    std::io::copy(&mut reader.take(length), &mut std::io::sink()).is_ok_and(|n| n > 0)
}

/// What a capture becomes, in one line.
fn play(name: &str) -> String {
    let (base_url, server) = serve(std::fs::read(format!("tests/cases/captures/{name}.txt")).unwrap());
    let address = base_url.replace("http://", "").replace("/v1", "");
    let settings = Settings { base_url, model: "m".into(), retry_base_ms: 1, ..Settings::default() };
    let mut endpoint = Endpoint::within(settings, |_| None).unwrap();
    let mut history = History::new();
    history.user("go");
    let ask = Ask { turn: 1, system: "s", history: &mut history, tools: "[]" };
    let result = endpoint.ask(ask, &mut Events::new(Vec::new()), &Cancel::new());
    drop(endpoint);
    drop(TcpStream::connect(&address));
    server.join().unwrap();
    match result {
        Ok(reply) => show(&reply),
        Err(Failure::Overflow(why)) => format!("overflow: {}", why.replace(&address, "HOST")),
        Err(Failure::Failed(why)) => format!("failed: {}", why.replace(&address, "HOST")),
        Err(Failure::Interrupted) => "interrupted".into(),
    }
}

fn show(reply: &Reply) -> String {
    let calls: Vec<String> = reply
        .message
        .calls
        .iter()
        .map(|call| match &call.arguments {
            Ok(arguments) => format!("{} {}", call.name, serde_json::Value::from(arguments.clone())),
            Err(_) => format!("{} unusable {:?}", call.name, call.raw),
        })
        .collect();
    let text: String = reply.message.text.chars().take(24).collect();
    format!("{:?} {text:?} {} {}/{}", reply.finish, calls.join(", "), reply.usage.input, reply.usage.output)
}

#[test]
fn captures_of_real_servers() {
    let wrong: Vec<String> = ROWS
        .iter()
        .map(|(name, wanted)| (name, wanted, play(name)))
        .filter(|(_, wanted, got)| got != *wanted)
        .map(|(name, wanted, got)| format!("{name}:\n  wanted {wanted}\n  got    {got}"))
        .collect();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

const ROWS: &[(&str, &str)] = &[
    (
        "aimock__length",
        r#"failed: gave up after 4 attempts. http://HOST/v1/chat/completions: the server closed the connection in the middle of its answer."#,
    ),
    ("aimock__plain_usage", r#"Some("stop") "Hello from aimock, a tes"  6/9"#),
    ("aimock__tool_parallel", r#"Some("tool_calls") "" read_file {"path":"a.txt"}, read_file {"path":"b.txt"} 25/13"#),
    (
        "litellm-dead__plain",
        r#"failed: gave up after 4 attempts. http://HOST/v1/chat/completions: 500: litellm.InternalServerError: InternalServerError: OpenAIException - Connection error. LiteLLM: model group 'dead' failed with the error above. No fallback was attempted."#,
    ),
    (
        "litellm-llamacpp__err_context_overflow",
        r#"overflow: http://HOST/v1/chat/completions: 400: the conversation is too long for the model's context window: litellm.ContextWindowExceededError: litellm.BadRequestError: ContextWindowExceededError: OpenAIException - request (9030 tokens) exceeds the available context size (4096 tokens), try increasing it model=local-qwen. context_window_fallbacks=None. fallbacks=None. Set 'context_window_fallback' - https://docs.litellm.ai/docs/routing#fallbacks LiteLLM: model group 'local-qwen' failed with the error above. No fallback was attempted. Start a new one (/new), give a smaller task, or let the server have a larger window."#,
    ),
    ("litellm-llamacpp__plain_usage", r#"Some("stop") "Hello!"  35/3"#),
    ("litellm-llamacpp__toolb_bash", r#"Some("tool_calls") "" bash {"command":"ls -la","timeout_s":0} 232/34"#),
    (
        "litellm-llamacpp__toolb_nostream",
        r#"Some("length") "```json\n{\n  \"name\": \"rea" bash unusable "{\n  \"command\": \"cat src/main.rs\",\n  \"timeout_s\": 10\n}", bash unusable "{\n  \"command\": \"echo 'Hello, World!'\",\n  \"timeout_s\": 5\n}", bash unusable "{\n  \"command\":" 229/110"#,
    ),
    (
        "litellm-mock__err_bad_model",
        r#"failed: http://HOST/v1/chat/completions: 400: /chat/completions: Invalid model name passed in model=no-such-model. Call `/v1/models` to view available models for your key. Choose a model with --model; --doctor lists them."#,
    ),
    ("llamacpp-b20__toolb_truncated", r#"Some("length") "" read_file unusable "{\"path\": \"" 229/16"#),
    ("llamacpp-b24__toolb_bash", r#"Some("tool_calls") "" bash {"command":"ls -la","timeout_s":0} 232/34"#),
    ("llamacpp-badkey__plain", r#"failed: http://HOST/v1/chat/completions: 401: Invalid API Key. No key was sent."#),
    (
        "llamacpp__err_bad_tool_args",
        r#"failed: gave up after 4 attempts. http://HOST/v1/chat/completions: 500: Failed to parse tool call arguments as JSON: [json.exception.parse_error.101] parse error at line 1, column 12: syntax error while parsing value - invalid string: missing closing quote; last read: '"a'."#,
    ),
    (
        "llamacpp__err_context_overflow",
        r#"overflow: http://HOST/v1/chat/completions: 400: the conversation is too long for the model's context window: request (9030 tokens) exceeds the available context size (4096 tokens), try increasing it. Start a new one (/new), give a smaller task, or let the server have a larger window."#,
    ),
    ("llamacpp__length", r#"Some("length") "One to fifty is a sequen"  37/6"#),
    ("llamacpp__plain_usage", r#"Some("stop") "Hello!"  35/3"#),
    ("llamacpp__tool_nostream", r#"Some("length") "```json\n{\n  \"name\": \"rea"  229/60"#),
    (
        "llmock-py-429__plain",
        r#"failed: gave up after 4 attempts. http://HOST/v1/chat/completions: 429: Rate limit exceeded."#,
    ),
    (
        "llmock-py-disconnect__plain_usage",
        r#"failed: gave up after 4 attempts. http://HOST/v1/chat/completions: the server closed the connection in the middle of its answer."#,
    ),
    ("llmock-py-disconnect__tool_auto", r#"Some("tool_calls") "" read_file {"path":"mock-path"} 20/5"#),
    (
        "llmock-py-malformed__tool_auto",
        r#"failed: gave up after 4 attempts. http://HOST/v1/chat/completions: the server sent broken JSON: {"id":"chatcmpl-d5836fb7dc964e7cb88a24ca","object":"chat.completion.chunk","crea…."#,
    ),
    ("llmock-py-truncate__plain_usage", r#"None "gpt-4o mock reply: I saw"  0/0"#),
    ("llmock-py-truncate__tool_auto", r#"Some("tool_calls") "" read_file {"path":"mock-path"} 20/5"#),
    ("llmock-py__err_no_messages", r#"failed: http://HOST/v1/chat/completions: 422: body → messages: Field required."#),
    ("llmock-py__plain_usage", r#"Some("stop") "gpt-4o mock reply: I saw"  5/12"#),
    ("llmock-py__tool_auto", r#"Some("tool_calls") "" read_file {"path":"mock-path"} 20/5"#),
];
