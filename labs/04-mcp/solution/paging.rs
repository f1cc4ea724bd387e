// Exercise B: every page of a server's tools. It goes into `extensions/mcp/session.rs`, and `open` in
// `extensions/mcp/mod.rs` calls it in place of `list_tools`. (A test of that file includes it, so it is known to work.)

/// A server could hand out cursors for ever.
const MOST_PAGES: usize = 100;

impl Session {
    /// The tools of every page. A cursor is the server's own word: it is handed back as it came.
    pub fn list_all_tools(&mut self, cancel: &Cancel) -> Result<Listed, String> {
        let (mut tools, mut params) = (Vec::new(), json!({}));
        for _ in 0..MOST_PAGES {
            let page = self.quietly("tools/list", params, cancel)?;
            tools.extend(page["tools"].as_array().cloned().ok_or("tools/list gave no list of tools")?);
            match page["nextCursor"].as_str() {
                Some(cursor) => params = json!({"cursor": cursor}),
                None => return Ok(Listed { tools, more: false }),
            }
        }
        Err(format!("tools/list has more than {MOST_PAGES} pages"))
    }
}
