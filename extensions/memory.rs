//! Rules that always apply are few; experiences are a catalogue, read on demand.
//!
//! A project's memory is files that anybody can read, edit and commit. `.mini/MEMORY.md` holds the rules; it is in every
//! request, so it is kept short: what is over the limit is cut, and the cut is said. `.mini/memories/*.md` are records of
//! what happened; only one line of each is in the request, and the model reads the record (with the ordinary `read`) when
//! its work is about that. Remembering is an ordinary `write`, so a person sees it before it is so.
//!
//! The snapshot is taken once, at the start of a conversation. What is remembered meanwhile is in the conversation anyway;
//! putting it into the system text, too, would change the first bytes of every request, and the server's cache of all that
//! follows would be lost.
//!
//! Left out: searching records by meaning (at some hundred records the catalogue would be too long, and a search tool would
//! come in its place), forgetting, and memory beyond the workspace.

use super::front_matter::FrontMatter;
use mini::extension::Extension;
use mini::setup::Setup;
use mini::workspace::{Kind, Workspace};
use std::io::Read;

const RULES: &str = ".mini/MEMORY.md";
const RECORDS: &str = ".mini/memories";
/// So many characters of the rules are in every request.
const RULES_LIMIT: usize = 1600;
/// So many records are listed, and so many characters of each type and description.
const LISTED: usize = 100;
const TYPE_LIMIT: usize = 40;
const DESCRIPTION_LIMIT: usize = 200;
/// So much of a file is looked at, in bytes: front matter is short, and the rules are cut long before.
const HEAD: u64 = 16 * 1024;

/// Attaches the extension. Memory that is not there yet is no error: the model is told how to begin.
pub fn attach(setup: &mut Setup, arg: Option<&str>) -> Result<(), String> {
    if arg.is_some() {
        return Err(format!("it takes no argument: the memory is in {RULES} and {RECORDS}/ of the workspace"));
    }
    let section = section(&setup.workspace, &mut setup.notices)?;
    setup.extensions.push(Box::new(Memory { section }));
    Ok(())
}

/// The extension: its section of the system text, as it was when the conversation began.
struct Memory {
    section: String,
}

impl Extension for Memory {
    fn name(&self) -> &str {
        "memory"
    }

    fn system_prompt(&mut self) -> String {
        self.section.clone()
    }
}

/// The section, and in `notices` what the person should mend.
fn section(workspace: &Workspace, notices: &mut Vec<String>) -> Result<String, String> {
    let rules = match head(workspace, RULES)? {
        Some(text) => format!("The project's rules, from {RULES}:\n{}", fitted(text.trim(), notices)),
        None => format!("There are no rules yet in {RULES}."),
    };
    let records = match catalogue(workspace, notices)? {
        lines if lines.is_empty() => format!("There are no records yet in {RECORDS}/."),
        lines => {
            format!("Records of what happened. Before you work on what one is about, read it:\n{}", lines.join("\n"))
        }
    };
    Ok(format!("{rules}\n\n{records}\n\n{HOW}"))
}

/// How the model adds to the memory.
const HOW: &str = "Asked to remember something, write a new record .mini/memories/SHORT-NAME.md: a line `---`, the lines \
`name:`, `type:` (incident, decision, preference) and `description:` (one line that tells when to read it), a line `---`, \
then what happened. It is listed here from the next conversation on. Change MEMORY.md only if asked for a rule.";

/// The rules up to the limit, in whole lines. A cut is said to both, the model and the person.
fn fitted(rules: &str, notices: &mut Vec<String>) -> String {
    let Some((limit, _)) = rules.char_indices().nth(RULES_LIMIT) else { return rules.into() };
    let cut = rules[..limit].rfind('\n').unwrap_or(limit);
    let why = format!("{RULES} is longer than {RULES_LIMIT} characters");
    notices.push(format!("memory: {why}, so its end is cut; move what happened into {RECORDS}/"));
    format!("{}\n[cut: {why}]", &rules[..cut])
}

/// One line for each record, sorted by name. A record that cannot be understood is listed with the reason: it is still
/// there to be read, and somebody should mend it.
fn catalogue(workspace: &Workspace, notices: &mut Vec<String>) -> Result<Vec<String>, String> {
    let names = names(workspace)?;
    let mut lines = Vec::new();
    for name in names.iter().take(LISTED) {
        let path = format!("{RECORDS}/{name}");
        match describe(workspace, &path) {
            Ok((kind, description)) => lines.push(format!("- {path} ({kind}): {description}")),
            Err(why) => {
                let broken = format!("{path}: its front matter cannot be read ({why})");
                lines.push(format!("- {broken}"));
                notices.push(format!("memory: {broken}"));
            }
        }
    }
    if names.len() > LISTED {
        lines.push(format!("[{} more in {RECORDS}/ are not listed]", names.len() - LISTED));
    }
    Ok(lines)
}

/// The record's type and description.
fn describe(workspace: &Workspace, path: &str) -> Result<(String, String), String> {
    let text = head(workspace, path)?.ok_or("it is not there")?;
    let about = FrontMatter::of(&text)?;
    about.line("name")?;
    let (kind, description) = (about.line("type")?, about.line("description")?);
    Ok((kind.chars().take(TYPE_LIMIT).collect(), description.chars().take(DESCRIPTION_LIMIT).collect()))
}

/// The names of the files that are records.
fn names(workspace: &Workspace) -> Result<Vec<String>, String> {
    let failed = |why: String| format!("list {RECORDS}: {why}");
    // Where it really is: a link that leads out of the workspace is not followed.
    let place =
        workspace.locate(workspace.root(), RECORDS).map_err(|fault| fault.trouble("list records").to_string())?;
    match place.kind() {
        Kind::Missing => return Ok(Vec::new()),
        Kind::Directory => {}
        Kind::File | Kind::Special(_) => return Err(failed("it is not a directory".into())),
    }
    let mut names = Vec::new();
    for entry in std::fs::read_dir(place.absolute()).map_err(|e| failed(e.to_string()))? {
        let name = entry.map_err(|e| failed(e.to_string()))?.file_name().to_string_lossy().into_owned();
        if name.ends_with(".md") && !name.chars().any(char::is_control) {
            names.push(name);
        }
    }
    names.sort();
    Ok(names)
}

/// The beginning of a file as text; `None` if there is none.
fn head(workspace: &Workspace, path: &str) -> Result<Option<String>, String> {
    let place = workspace.resolve(path, "read").map_err(|trouble| trouble.to_string())?;
    if !place.exists() {
        return Ok(None);
    }
    let file = workspace.open_place(&place).map_err(|trouble| trouble.to_string())?;
    let mut bytes = Vec::new();
    file.take(HEAD).read_to_end(&mut bytes).map_err(|e| format!("read {path}: {e}"))?;
    Ok(Some(String::from_utf8_lossy(&bytes).into_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use mini::rundir::RunDir;
    use std::fs;
    use tempfile::TempDir;

    struct Room {
        dir: TempDir,
        workspace: Workspace,
    }

    impl Room {
        fn new(files: &[(&str, &str)]) -> Room {
            let dir = TempDir::new().unwrap();
            let root = dir.path().join("ws");
            fs::create_dir_all(root.join(RECORDS)).unwrap();
            let workspace = Workspace::open(&root, RunDir::create(&dir.path().join("state")).unwrap()).unwrap();
            let room = Room { dir, workspace };
            files.iter().for_each(|(path, text)| room.write(path, text));
            room
        }

        fn write(&self, path: &str, text: &str) {
            fs::write(self.workspace.root().join(path), text).unwrap();
        }

        fn section(&self) -> String {
            self.told().0
        }

        fn told(&self) -> (String, Vec<String>) {
            let mut notices = Vec::new();
            (section(&self.workspace, &mut notices).unwrap(), notices)
        }
    }

    const RECORD: &str =
        "---\nname: even\ntype: incident\ndescription: >\n  median of an\n  even number\n---\nThe body.\n";

    #[test]
    fn rules_are_whole_and_of_a_record_only_its_description() {
        let room = Room::new(&[(RULES, "- No bash.\n"), (".mini/memories/even.md", RECORD)]);
        let text = room.section();
        assert!(text.starts_with("The project's rules, from .mini/MEMORY.md:\n- No bash.\n\n"), "{text}");
        assert!(text.contains("\n- .mini/memories/even.md (incident): median of an even number\n"), "{text}");
        assert!(!text.contains("The body"), "{text}");
    }

    #[test]
    fn without_memory_the_model_is_told_how_to_begin() {
        let room = Room::new(&[]);
        fs::remove_dir_all(room.workspace.root().join(".mini")).unwrap();
        let text = room.section();
        assert!(text.starts_with("There are no rules yet") && text.contains("no records yet") && text.ends_with(HOW));
    }

    #[test]
    fn long_rules_are_cut_between_lines_and_the_cut_is_said() {
        let line = "- a rule with an ö in it\n";
        let room = Room::new(&[(RULES, &line.repeat(64))]);
        assert!(!room.section().contains("[cut:"), "64 lines of 25 characters are 1600");
        room.write(RULES, &line.repeat(65));
        let (text, notices) = room.told();
        assert_eq!(text.matches("- a rule with an ö in it\n").count(), 64, "{text}");
        assert!(text.contains("\n[cut: .mini/MEMORY.md is longer than 1600 characters]"), "{text}");
        assert!(notices[0].starts_with("memory: .mini/MEMORY.md is longer than 1600 characters"), "{notices:?}");
    }

    #[test]
    fn a_record_that_cannot_be_understood_is_listed_with_the_reason() {
        let room = Room::new(&[
            (".mini/memories/bare.md", "no front matter"),
            (".mini/memories/colon.md", "---\nname: a\ntype: b\ndescription: c: d\n---\n"),
            (".mini/memories/typeless.md", "---\nname: a\ndescription: c\n---\n"),
        ]);
        fs::create_dir(room.workspace.root().join(".mini/memories/dir.md")).unwrap();
        let (text, notices) = room.told();
        assert_eq!(notices.len(), 4);
        for wanted in [
            "- .mini/memories/bare.md: its front matter cannot be read (line 1 is not `---`: there is no front matter)",
            "- .mini/memories/colon.md: its front matter cannot be read (line 4: ",
            "- .mini/memories/dir.md: its front matter cannot be read (Error: read \".mini/memories/dir.md\": is a directory",
            "- .mini/memories/typeless.md: its front matter cannot be read (`type` is missing)",
        ] {
            assert!(text.contains(wanted), "{wanted}\n{text}");
        }
    }

    #[test]
    fn what_lies_outside_is_not_read() {
        let room = Room::new(&[]);
        let secret = room.dir.path().join("secret.md");
        fs::write(&secret, RECORD).unwrap();
        std::os::unix::fs::symlink(&secret, room.workspace.root().join(".mini/memories/link.md")).unwrap();
        let text = room.section();
        assert!(
            text.contains("link.md: its front matter cannot be read (Blocked: ") && !text.contains("median"),
            "{text}"
        );
        fs::remove_dir_all(room.workspace.root().join(".mini/memories")).unwrap();
        std::os::unix::fs::symlink(room.dir.path(), room.workspace.root().join(".mini/memories")).unwrap();
        assert!(section(&room.workspace, &mut Vec::new()).unwrap_err().starts_with("Blocked: "));
    }

    #[test]
    fn the_catalogue_has_an_end() {
        let room = Room::new(&[]);
        for number in 0..103 {
            room.write(&format!(".mini/memories/{number:03}.md"), &RECORD.replace("even\n", &"even ".repeat(90)));
        }
        let text = room.section();
        assert!(text.contains("/099.md") && !text.contains("/100.md") && text.contains("[3 more in .mini/memories/"));
        assert!(text.len() < LISTED * (DESCRIPTION_LIMIT + 60) + 1500, "{}", text.len());
    }
}
