//! Name and description first, the body on demand, and a script is still a command like any other.
//!
//! A skill is a directory with a `SKILL.md` in it: instructions for one kind of task, with front matter that says when they
//! are of use (the public Agent Skills format). One line of each is in the system text; the model loads a body with
//! `load_skill` when it needs it. Whatever the body says, what it makes the model do goes through the one door: `inspect.sh`
//! of a skill asks as `inspect.sh` of anybody else would. The field `allowed-tools` is read over for that reason: a file
//! cannot allow itself anything.
//!
//! A skill that breaks a rule of the format is left out, and the person is told why: a typing error in one of thirty should
//! not stop the other twenty-nine. Two of one name do stop the start, since nobody could say which one was meant.
//!
//! Left out: loading a skill's other files (in the workspace, `read` reads them; outside of it they stay unread), and skills
//! that appear while the conversation runs.

use super::front_matter::FrontMatter;
use mini::extension::Extension;
use mini::setup::Setup;
use mini::tool::{Check, Context, Failure, Json, Spec, Tool};
use mini::workspace::{Trouble, Workspace};
use serde_json::json;
use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

/// Where the skills of a project are: the common place, and the one that most published skills come in.
const PLACES: [&str; 2] = [".agents/skills", ".claude/skills"];
/// So long may a body be, in bytes: about 8,000 tokens. The format asks for less than 5,000.
const BODY_LIMIT: u64 = 32_000;
/// The format's limits, in characters.
const NAME_LIMIT: usize = 64;
const DESCRIPTION_LIMIT: usize = 1024;

/// Attaches the extension: `arg` is a directory of skills; without it, those of the workspace and the operator's own.
pub fn attach(setup: &mut Setup, arg: Option<&str>) -> Result<(), String> {
    let root = setup.workspace.root().to_owned();
    let places: Vec<PathBuf> = match arg {
        Some(dir) if !Path::new(dir).is_dir() => return Err(format!("there is no directory {dir}")),
        Some(dir) => vec![dir.into()],
        None => PLACES.iter().map(|place| root.join(place)).chain(mini::config::user_file("skills")).collect(),
    };
    let mut shelf = Shelf::default();
    for place in &places {
        shelf.add(place, &setup.workspace, &mut setup.notices)?;
    }
    if shelf.0.is_empty() {
        let places: Vec<String> = places.iter().map(|place| shown(place, &root)).collect();
        setup.notices.push(format!("skills: there are none in {}", places.join(", ")));
        return Ok(());
    }
    setup.extensions.push(Box::new(shelf));
    Ok(())
}

/// The skills of a run, as they were found at the start.
#[derive(Clone, Default)]
struct Shelf(Vec<Skill>);

/// One skill.
#[derive(Clone)]
struct Skill {
    name: String,
    description: String,
    /// Its `SKILL.md`, without links.
    file: PathBuf,
    /// Its directory as a person would write it.
    shown: String,
}

impl Shelf {
    /// Adds the skills below a directory, if there is one. Fails where a name is taken.
    fn add(&mut self, place: &Path, workspace: &Workspace, notices: &mut Vec<String>) -> Result<(), String> {
        let Ok(real) = place.canonicalize() else { return Ok(()) };
        // No link leads out of the project, or out of the operator's own directory.
        let bounds = if place.starts_with(workspace.root()) { workspace.root() } else { &real };
        for dir in directories(place)? {
            match Skill::read(&dir, bounds, workspace) {
                Err(why) => notices.push(format!("skills: {} is left out: {why}", shown(&dir, workspace.root()))),
                // Often the one place is a link to the other.
                Ok(skill) if self.0.iter().any(|known| known.file == skill.file) => {}
                Ok(skill) => match self.0.iter().find(|known| known.name == skill.name) {
                    Some(known) => {
                        return Err(format!(
                            "two skills are named {}: {} and {}",
                            skill.name, known.shown, skill.shown
                        ));
                    }
                    None => self.0.push(skill),
                },
            }
        }
        Ok(())
    }
}

/// The directories (and links) in `place` that hold a `SKILL.md`, sorted by name.
fn directories(place: &Path) -> Result<Vec<PathBuf>, String> {
    let failed = |e: std::io::Error| format!("list {}: {e}", place.display());
    let entries = std::fs::read_dir(place).map_err(failed)?.collect::<Result<Vec<_>, _>>().map_err(failed)?;
    let mut dirs: Vec<PathBuf> = entries.iter().map(|entry| entry.path()).collect();
    dirs.retain(|dir| dir.join("SKILL.md").symlink_metadata().is_ok());
    dirs.sort();
    Ok(dirs)
}

impl Skill {
    /// Reads what a skill says of itself, and holds it against the format. The error is the rule that it breaks.
    fn read(dir: &Path, bounds: &Path, workspace: &Workspace) -> Result<Skill, String> {
        let file = dir.join("SKILL.md").canonicalize().map_err(|e| format!("its SKILL.md cannot be read: {e}"))?;
        if !file.starts_with(bounds) {
            return Err(format!("it is a link that leads out, to {}", file.display()));
        }
        let about = FrontMatter::of(&head(open(&file, workspace).map_err(|trouble| trouble.to_string())?)?)?;
        let (name, description) = (about.line("name")?, about.line("description")?);
        let called = dir.file_name().unwrap_or_default().to_string_lossy();
        if name != called {
            return Err(format!("its name is {name:?} and its directory is called {called:?}"));
        }
        well_formed(&name)?;
        if description.chars().count() > DESCRIPTION_LIMIT {
            return Err(format!("its description is longer than {DESCRIPTION_LIMIT} characters"));
        }
        Ok(Skill { name, description, file, shown: shown(dir, workspace.root()) })
    }
}

/// The format's rule for names.
fn well_formed(name: &str) -> Result<(), String> {
    let letters = name.chars().all(|c| c == '-' || c.is_alphanumeric() && !c.is_uppercase());
    if letters
        && !name.starts_with('-')
        && !name.ends_with('-')
        && !name.contains("--")
        && name.chars().count() <= NAME_LIMIT
    {
        return Ok(());
    }
    Err(format!(
        "its name is {name:?}; at most {NAME_LIMIT} small letters, digits and single hyphens between them make a name"
    ))
}

/// Opens a skill's file: in the workspace through the workspace, elsewhere (the operator's own) only if it is a regular file.
fn open(file: &Path, workspace: &Workspace) -> Result<File, Trouble> {
    if let Ok(inside) = file.strip_prefix(workspace.root()) {
        return workspace.open_read(&inside.to_string_lossy()).map(|(file, _)| file);
    }
    let failed = |why: String| Trouble::Error(format!("read {}: {why}", file.display()));
    match std::fs::metadata(file) {
        Ok(about) if about.is_file() => File::open(file).map_err(|e| failed(e.to_string())),
        Ok(_) => Err(failed("not a regular file".into())),
        Err(e) => Err(failed(e.to_string())),
    }
}

/// As much of a file as a body may have; front matter is at its start.
fn head(file: File) -> Result<String, String> {
    let mut bytes = Vec::new();
    file.take(BODY_LIMIT).read_to_end(&mut bytes).map_err(|e| format!("read SKILL.md: {e}"))?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

/// A path as the model can use it: relative to the workspace where it is inside.
fn shown(path: &Path, root: &Path) -> String {
    path.strip_prefix(root).unwrap_or(path).display().to_string()
}

impl Extension for Shelf {
    fn name(&self) -> &str {
        "skills"
    }

    fn tools(&mut self) -> Result<Vec<Box<dyn Tool>>, String> {
        Ok(vec![Box::new(LoadSkill(self.clone()))])
    }

    fn system_prompt(&mut self) -> String {
        let line = |skill: &Skill| format!("\n- {} ({}): {}", skill.name, skill.shown, skill.description);
        format!(
            "Skills are instructions for certain tasks. If one fits, load it with load_skill before you begin. Paths in it are \
             relative to its directory, and its scripts are run with bash like any command.{}",
            self.0.iter().map(line).collect::<String>()
        )
    }
}

/// The tool.
struct LoadSkill(Shelf);

impl Tool for LoadSkill {
    fn spec(&self) -> Spec {
        Spec {
            name: "load_skill".into(),
            description: "Load the instructions of one of the listed skills.".into(),
            parameters: json!({"type": "object", "required": ["name"], "properties": {"name": {"type": "string"}}}),
            read_only: true,
        }
    }

    fn check<'a>(&'a mut self, args: &Json, _: &mut Context) -> Check<'a> {
        let name = args["name"].as_str().unwrap_or_default().trim();
        if name.contains('/') || name.contains("..") {
            return Check::Refuse(format!(
                "load_skill: a skill is called by its name in the list, not by a path: {name:?}"
            ));
        }
        match self.0.0.iter().find(|skill| skill.name == name) {
            None => Check::Bad(unknown(name, &self.0)),
            Some(skill) => Check::Run(Box::new(move |cx: &mut Context| load(&skill.file, &cx.workspace))),
        }
    }
}

fn unknown(name: &str, shelf: &Shelf) -> String {
    let known: Vec<&str> = shelf.0.iter().map(|skill| skill.name.as_str()).collect();
    format!("load_skill: there is no skill {name:?}. The skills are: {}", known.join(", "))
}

/// The file as it is now.
fn load(file: &Path, workspace: &Workspace) -> Result<String, Failure> {
    let file = open(file, workspace)?;
    let bytes = file.metadata().map_err(|e| format!("load_skill: {e}"))?.len();
    if bytes > BODY_LIMIT {
        return Err(format!("load_skill: SKILL.md has {bytes} bytes, and {BODY_LIMIT} are the most").into());
    }
    Ok(head(file)?)
}

#[cfg(test)]
mod tests {
    use super::*;
    use mini::agent::{Agent, End};
    use mini::cancel::Cancel;
    use mini::endpoint::{Endpoint, Settings};
    use mini::event::Outcome;
    use mini::process::{Processes, environment};
    use mini::rundir::RunDir;
    use std::fs;
    use std::os::unix::fs::symlink;
    use tempfile::TempDir;

    struct Room(TempDir);

    impl Room {
        fn new(skills: &[(&str, &str)]) -> Room {
            let room = Room(TempDir::new().unwrap());
            fs::create_dir(room.path("ws")).unwrap();
            skills.iter().for_each(|(dir, text)| room.skill(dir, text));
            room
        }

        fn path(&self, path: &str) -> PathBuf {
            self.0.path().join(path)
        }

        fn skill(&self, dir: &str, text: &str) {
            fs::create_dir_all(self.path("ws").join(dir)).unwrap();
            fs::write(self.path("ws").join(dir).join("SKILL.md"), text).unwrap();
        }

        fn setup(&self) -> Setup {
            let run = RunDir::create(&self.path("state")).unwrap();
            let workspace = Workspace::open(&self.path("ws"), run).unwrap();
            let settings = Settings { base_url: "http://127.0.0.1:0/v1".into(), ..Settings::default() };
            let processes = Processes::new(environment(std::env::vars_os(), &[], &[]));
            Setup::new(workspace, Endpoint::new(settings).unwrap(), Cancel::new(), processes)
        }

        /// The system text, and what the person is told.
        fn listed(&self, arg: Option<&str>) -> Result<(String, Vec<String>), String> {
            let mut setup = self.setup();
            attach(&mut setup, arg)?;
            let text = setup.extensions.iter_mut().map(|extension| extension.system_prompt()).collect();
            Ok((text, setup.notices))
        }

        fn agent(&self) -> (Agent, Context) {
            let mut setup = self.setup();
            attach(&mut setup, None).unwrap();
            setup.build().unwrap()
        }

        fn load(&self, name: &str) -> End {
            let (mut agent, mut cx) = self.agent();
            agent.call("load_skill", &json!({"name": name}).to_string(), &mut cx)
        }
    }

    fn skill(name: &str) -> String {
        format!(
            "---\nname: {name}\ndescription: >-\n  Use it\n  for {name}.\nmetadata:\n  author: x\nallowed-tools: Bash\n---\n\n# Body\r\n"
        )
    }

    #[test]
    fn a_line_of_each_is_listed_and_the_exact_file_loaded() {
        let room = Room::new(&[(".agents/skills/a-b", &skill("a-b")), (".claude/skills/c2", &skill("c2"))]);
        let (text, notices) = room.listed(None).unwrap();
        assert!(text.ends_with(
            "any command.\n- a-b (.agents/skills/a-b): Use it for a-b.\n- c2 (.claude/skills/c2): Use it for c2."
        ));
        assert!(!text.contains("Body") && notices.is_empty(), "{notices:?}");
        let end = room.load("c2");
        assert_eq!((end.outcome, end.text), (Outcome::Done, skill("c2")));
    }

    #[test]
    fn an_unknown_name_lists_the_known_and_a_path_is_refused() {
        let room = Room::new(&[(".agents/skills/a", &skill("a")), (".agents/skills/b", &skill("b"))]);
        assert_eq!(room.load("c").text, "Error: load_skill: there is no skill \"c\". The skills are: a, b");
        for name in ["../a", "a/SKILL.md", "..", "/etc/passwd"] {
            assert!(room.load(name).text.starts_with("Blocked: load_skill: a skill is called by its name"), "{name}");
        }
    }

    #[test]
    fn what_breaks_the_format_is_left_out_and_told() {
        for (dir, text, why) in [
            ("a", "no front matter", "line 1 is not `---`"),
            ("a", "---\nname: a\ndescription: Use it so: like this\n---\n", "line 3: "),
            ("a", "---\nname: a\n---\n", "`description` is missing"),
            ("a", "---\nname: a\ndescription: [x]\n---\n", "`description` must be text"),
            ("a", &skill("b"), "its name is \"b\" and its directory is called \"a\""),
            ("A", &skill("A"), "small letters"),
            ("a--b", &skill("a--b"), "single hyphens"),
            ("-a", &skill("-a"), "single hyphens"),
            ("a_b", &skill("a_b"), "small letters"),
            (&"a".repeat(65), &skill(&"a".repeat(65)), "at most 64"),
            ("a", &skill("a").replace("Use it", &"x".repeat(1024)), "longer than 1024 characters"),
        ] {
            let room = Room::new(&[(&format!(".agents/skills/{dir}"), text), (".agents/skills/fine", &skill("fine"))]);
            let (text, notices) = room.listed(None).unwrap();
            assert_eq!(text.matches("\n- ").count(), 1, "{text}");
            let start = format!("skills: .agents/skills/{dir} is left out: ");
            assert!(
                notices.len() == 1 && notices[0].starts_with(&start) && notices[0].contains(why),
                "{why}: {notices:?}"
            );
        }
    }

    #[test]
    fn two_of_one_name_stop_the_start_with_both_paths_but_a_link_to_the_same_does_not() {
        let room = Room::new(&[(".agents/skills/a", &skill("a")), (".claude/skills/a", &skill("a"))]);
        assert_eq!(room.listed(None).unwrap_err(), "two skills are named a: .agents/skills/a and .claude/skills/a");
        let room = Room::new(&[(".agents/skills/a", &skill("a"))]);
        fs::create_dir(room.path("ws/.claude")).unwrap();
        symlink("../.agents/skills", room.path("ws/.claude/skills")).unwrap();
        assert_eq!(room.listed(None).unwrap().0.matches("\n- ").count(), 1);
    }

    #[test]
    fn a_link_that_leads_out_is_left_out_also_if_it_is_made_later() {
        let room = Room::new(&[(".agents/skills/fine", &skill("fine"))]);
        fs::create_dir(room.path("secret")).unwrap();
        fs::write(room.path("secret/SKILL.md"), skill("secret")).unwrap();
        symlink(room.path("secret"), room.path("ws/.agents/skills/secret")).unwrap();
        let (text, notices) = room.listed(None).unwrap();
        assert!(!text.contains("secret") && notices[0].contains("a link that leads out"), "{notices:?}");
        let (mut agent, mut cx) = room.agent();
        fs::remove_file(room.path("ws/.agents/skills/fine/SKILL.md")).unwrap();
        symlink(room.path("secret/SKILL.md"), room.path("ws/.agents/skills/fine/SKILL.md")).unwrap();
        let end = agent.call("load_skill", r#"{"name":"fine"}"#, &mut cx);
        assert!(end.text.starts_with("Blocked: ") && !end.text.contains("# Body"), "{}", end.text);
    }

    #[test]
    fn a_place_that_is_a_link_and_leads_out_gives_nothing() {
        let room = Room::new(&[]);
        fs::create_dir_all(room.path("mine/out")).unwrap();
        fs::write(room.path("mine/out/SKILL.md"), skill("out")).unwrap();
        fs::create_dir(room.path("ws/.agents")).unwrap();
        symlink(room.path("mine"), room.path("ws/.agents/skills")).unwrap();
        let (text, notices) = room.listed(None).unwrap();
        assert!(text.is_empty() && notices[0].contains("a link that leads out"), "{notices:?}");
    }

    #[test]
    fn a_body_over_the_limit_is_listed_and_not_loaded() {
        let long = skill("a") + &"x".repeat(32_000);
        let room = Room::new(&[(".agents/skills/a", &long)]);
        assert!(room.listed(None).unwrap().0.contains("\n- a ("));
        assert!(room.load("a").text.contains("bytes, and 32000 are the most"));
    }

    #[test]
    fn a_directory_of_the_operators_may_lie_anywhere() {
        let room = Room::new(&[(".agents/skills/inside", &skill("inside"))]);
        fs::create_dir_all(room.path("mine/out")).unwrap();
        fs::write(room.path("mine/out/SKILL.md"), skill("out")).unwrap();
        let (text, _) = room.listed(room.path("mine").to_str()).unwrap();
        assert!(text.contains("\n- out (") && !text.contains("inside"), "{text}");
        assert_eq!(room.listed(Some("no/such/dir")).unwrap_err(), "there is no directory no/such/dir");
    }

    #[test]
    fn without_any_skill_no_tool_is_offered_and_the_person_is_told() {
        let (text, notices) = Room::new(&[]).listed(None).unwrap();
        assert!(text.is_empty() && notices[0].starts_with("skills: there are none in .agents/skills, .claude/skills"));
    }
}
