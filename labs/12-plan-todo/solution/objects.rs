// For extensions/todo.rs. In item(), in place of its first line:
//
//     let text = match value.as_str() {
//         Some(text) => text.to_owned(),
//         None => object(value)?,
//     };

/// An object such as {"content": …, "status": …} as a text with its box.
fn object(value: &Json) -> Result<String, String> {
    let names = ["content", "text", "title"];
    let text = names.iter().find_map(|name| value[*name].as_str());
    let text = text.ok_or_else(|| {
        format!("must be a text such as \"[ ] run the test\", not {value}")
    })?;
    let sign = match value["status"].as_str().unwrap_or("pending") {
        "pending" => "[ ]",
        "in_progress" => "[>]",
        "completed" => "[x]",
        other => return Err(format!("has the unknown status {other:?}")),
    };
    Ok(format!("{sign} {text}"))
}
