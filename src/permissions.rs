//! Permission rules: what a person allows, is asked about or forbids once, in a file, instead of at every question.
//!
//! ```json
//! {"bash": {"cargo test": "allow", "git push": "deny"}, "edit": {"src/**": "allow", "*.secret": "deny"}}
//! ```
//!
//! Rules come from mini's own defaults, the user's file, the project's file and this session (the "always" answers), in
//! this order. Within one file the last match wins; between files a deny stays, and otherwise the later file wins. No match
//! is no opinion: the call is judged as if there were no rules. The project's file may only tighten, since a stranger's
//! repository must not grant anything: what it allows is ignored, with a notice. The session's part is kept by
//! [`Approvers`](crate::approve::Approvers), which tell in [`Request::remembered`].
//!
//! A rule's three effects stand at three ranks, and need no order of their own: [`Rank::DenyRule`], [`Rank::Guard`],
//! [`Rank::AllowRule`]. What is refused never gets here, so no rule can allow it.
//!
//! Left out on purpose: rules on the *content* of a change, and on what a command does. A rule for bash compares words; it is
//! a habit put down in writing, and no sandbox: `find -exec rm` is no `rm` to it.
//!
//! Rejected: the first match wins. A file then has to be read from its end to see what an exception is an exception to.

mod file;
mod pattern;

use crate::approve::{Approver, Decision, Rank, Request};
use crate::event::By;
use crate::gate;
use crate::tool::{Question, Scope};
use crate::workspace::{Trouble, WAY_OUT, Workspace};
use file::{Effect, Rule, Subject};
use std::cell::RefCell;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::rc::Rc;

/// The project's rules, below the workspace.
pub const PROJECT_FILE: &str = ".mini/permissions.json";

/// Rules are read up to here, in bytes.
const MOST: u64 = 256 << 10;

/// The rules of a run. Clones are the same rules: three approvers ask them, and the person's `s` adds to them.
#[derive(Clone, Default)]
pub struct Permissions(Rc<RefCell<Layers>>);

#[derive(Default)]
struct Layers {
    /// In order of precedence, lowest first: defaults, user, project.
    list: Vec<Layer>,
    /// Where the user's rules are, or would be.
    user_file: Option<PathBuf>,
}

/// The rules of one file.
struct Layer {
    /// How it is called where one of its rules decides.
    name: String,
    rules: Vec<Rule>,
}

/// A call, as rules see it.
#[derive(Clone, Copy, Debug, Default)]
pub struct Asked<'a> {
    /// The tool's name.
    pub tool: &'a str,
    /// The path below the workspace that it is about, if it is about one: where it leads, not how it was spelled.
    pub path: Option<&'a str>,
    /// The command, for bash.
    pub command: Option<&'a str>,
    /// Those parts of the command that would ask by themselves, word by word; `None` if that cannot be told.
    pub asking: Option<&'a [Vec<String>]>,
}

/// What the rules say of a call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Ruled {
    /// It may run; this rule says so.
    Allow(String),
    /// A person decides; this rule says so.
    Ask(String),
    /// It may not run; this rule says so.
    Deny(String),
}

impl Permissions {
    /// Reads the user's file (`None`: there is no home) and the project's. Also the notices about what was ignored. The
    /// error names the file and the line.
    pub fn load(user_file: Option<PathBuf>, workspace: &Workspace) -> Result<(Permissions, Vec<String>), String> {
        // A link is followed once: it is the file behind it that is named, and written when a rule is saved.
        let user_file = user_file.map(|path| path.canonicalize().unwrap_or(path));
        let user = match &user_file {
            Some(path) => Layer { name: path.display().to_string(), rules: read_user(path)? },
            None => Layer { name: String::new(), rules: Vec::new() },
        };
        let (project, ignored) = read_project(workspace)?;
        let list = vec![defaults(user_file.as_deref(), workspace), user, project];
        Ok((Permissions(Rc::new(RefCell::new(Layers { list, user_file }))), ignored))
    }

    /// What the rules say; `None` is no opinion.
    pub fn ruling(&self, asked: &Asked) -> Option<Ruled> {
        self.0.borrow().ruling(asked)
    }

    /// The approvers that speak for these rules, one a rank.
    pub fn approvers(&self) -> impl Iterator<Item = Box<dyn Approver>> + use<> {
        let rules = self.clone();
        let speaker = move |rank| Box::new(Speaker { rank, rules: rules.clone() }) as Box<dyn Approver>;
        [Rank::DenyRule, Rank::Guard, Rank::AllowRule].into_iter().map(speaker)
    }

    /// Whether it is a rule that asks about this.
    pub fn asks(&self, request: &Request) -> bool {
        matches!(self.ruling(&asked(request)), Some(Ruled::Ask(_)))
    }

    /// Saves an allow rule for what a request asks about in the user's file; it holds from now on. `wanted` narrows or
    /// widens it: the first words of a command, or a pattern of paths. Returns what was saved. Nothing is saved where
    /// another rule would still stand against it.
    pub fn save(&self, request: &Request, wanted: &str) -> Result<String, String> {
        let mut layers = self.0.borrow_mut();
        let file = layers.user_file.clone().ok_or("there is no home directory to save a rule in")?;
        let grants = grants(request, wanted.trim())?;
        let text = file::with_allowed(&read_text(&file)?.unwrap_or_default(), &request.call.name, &grants)
            .map_err(|why| format!("{}: {why}", file.display()))?;
        let rules = file::parse(&text).map_err(|why| format!("{}: {why}", file.display()))?;
        let Some(user) = layers.list.get_mut(1) else { return Err("no rules were loaded".into()) };
        let before = std::mem::replace(&mut user.rules, rules);
        if wanted.is_empty()
            && let Some(Ruled::Ask(rule) | Ruled::Deny(rule)) = layers.ruling(&asked(request))
        {
            layers.list[1].rules = before;
            return Err(format!("a saved rule would change nothing, since this one stands: {rule}"));
        }
        file::write(&file, &text).map_err(|e| format!("cannot write {}: {e}", file.display()))?;
        Ok(format!("saved in {}: {}", file.display(), file::shown(&request.call.name, &grants)))
    }
}

impl Layers {
    fn ruling(&self, asked: &Asked) -> Option<Ruled> {
        match asked.command {
            Some(command) => self.command(asked, command),
            None => {
                let subject = asked.path.map_or(Subject::Whole, Subject::Path);
                self.decides(asked.tool, &subject).map(|(layer, rule)| rule.ruled(&layer.name))
            }
        }
    }

    /// A chain is denied or asked about if one part is, and allowed only if every part that would ask is. A line that needs
    /// a shell for more than a chain is asked about if some rule might have stopped a part of it.
    fn command(&self, asked: &Asked, command: &str) -> Option<Ruled> {
        let commands = gate::commands(command);
        let of = |words: &Vec<String>| self.decides(asked.tool, &Subject::Words(words));
        let inside = |words: &Vec<String>| self.decides(asked.tool, &Subject::Inner(words));
        let found: Vec<_> =
            commands.plain.iter().filter_map(of).chain(commands.inner.iter().filter_map(inside)).collect();
        for effect in [Effect::Deny, Effect::Ask] {
            if let Some((layer, rule)) = found.iter().find(|(_, rule)| rule.effect == effect) {
                return Some(rule.ruled(&layer.name));
            }
        }
        let mut rules = self.list.iter().flat_map(|layer| layer.rules.iter().map(move |rule| (layer, rule)));
        if !commands.complete
            && let Some((layer, rule)) = rules.find(|(_, rule)| rule.may_stop(asked.tool))
        {
            let rule = rule.shown(&layer.name);
            return Some(Ruled::Ask(format!("{rule}, which cannot be compared with a line that needs a shell")));
        }
        let all_of = |parts: &[Vec<String>]| parts.iter().map(of).collect::<Option<Vec<_>>>()?.first().copied();
        let allowed = match asked.asking {
            Some([]) => all_of(&commands.plain), // it would run anyway
            Some(parts) => all_of(parts),
            None => self.decides(asked.tool, &Subject::Whole),
        };
        allowed.map(|(layer, rule)| rule.ruled(&layer.name))
    }

    /// The rule that decides about one thing: the first deny, else the last opinion of the last file that has one.
    fn decides(&self, tool: &str, subject: &Subject) -> Option<(&Layer, &Rule)> {
        let mut opinion = None;
        for layer in &self.list {
            match layer.rules.iter().rev().find(|rule| rule.matches(tool, subject)) {
                Some(rule) if rule.effect == Effect::Deny => return Some((layer, rule)),
                Some(rule) => opinion = Some((layer, rule)),
                None => {}
            }
        }
        opinion
    }
}

/// What mini itself denies: files of rules are the person's to write, wherever they are.
fn defaults(user_file: Option<&Path>, workspace: &Workspace) -> Layer {
    let inside = user_file.and_then(|path| path.strip_prefix(workspace.root()).ok());
    let own = inside.map(|path| path.to_string_lossy().into_owned());
    let files = std::iter::once(PROJECT_FILE.to_owned()).chain(own);
    let rules = files.map(|path| Rule::path("edit", &path, Effect::Deny)).collect();
    Layer { name: format!("a rule of mini's own; {WAY_OUT}"), rules }
}

fn read_user(path: &Path) -> Result<Vec<Rule>, String> {
    let text = read_text(path)?;
    text.map_or(Ok(Vec::new()), |text| file::parse(&text)).map_err(|why| format!("{}: {why}", path.display()))
}

/// A file's text; `None` if there is no file.
fn read_text(path: &Path) -> Result<Option<String>, String> {
    match std::fs::read_to_string(path) {
        Ok(text) => Ok(Some(text)),
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => Ok(None),
        Err(e) => Err(format!("cannot read {}: {e}", path.display())),
    }
}

/// The project's rules without those that allow, and a notice about these. A file that cannot be read is an error: who put it
/// there wanted something to be denied.
fn read_project(workspace: &Workspace) -> Result<(Layer, Vec<String>), String> {
    let failed = |why: String| format!("{PROJECT_FILE}: {why}");
    let name = PROJECT_FILE.to_owned();
    let trouble = |trouble: Trouble| failed(trouble.to_string());
    if !workspace.resolve(PROJECT_FILE, "read").map_err(trouble)?.exists() {
        return Ok((Layer { name, rules: Vec::new() }, Vec::new()));
    }
    let (mut opened, mut text) = (workspace.open_read(PROJECT_FILE).map_err(trouble)?.0.take(MOST), String::new());
    opened.read_to_string(&mut text).map_err(|e| failed(format!("cannot be read: {e}")))?;
    let (allows, rules): (Vec<_>, Vec<_>) =
        file::parse(&text).map_err(failed)?.into_iter().partition(|rule| rule.effect == Effect::Allow);
    let words: Vec<String> = allows.iter().map(Rule::to_string).collect();
    let notice = format!("{PROJECT_FILE} may only deny and ask; ignored: {}", words.join(", "));
    Ok((Layer { name, rules }, if words.is_empty() { Vec::new() } else { vec![notice] }))
}

/// A request, as rules see it.
fn asked<'a>(request: &'a Request) -> Asked<'a> {
    let tool = request.call.name.as_str();
    // Without a question no part would ask.
    let parts = request.question.map_or(Some(&[][..]), asking);
    Asked { tool, path: request.path.as_deref(), command: request.command(), asking: parts }
}

/// The parts of a command that ask by themselves.
fn asking(question: &Question) -> Option<&[Vec<String>]> {
    match &question.scope {
        Scope::Command { parts, .. } => parts.as_deref(),
        _ => None,
    }
}

/// The patterns that a saved rule has for a request; none for all calls of the tool.
fn grants(request: &Request, wanted: &str) -> Result<Vec<String>, String> {
    if let Some(command) = request.command() {
        let parts = request.question.and_then(asking).map(<[_]>::to_vec).or_else(|| gate::parts(command));
        let parts = parts.filter(|parts| !parts.is_empty());
        let parts = parts.ok_or("only chains of simple commands can be saved; y runs this one")?;
        let first: Vec<String> = wanted.split_whitespace().map(String::from).collect();
        return match () {
            () if first.is_empty() => Ok(parts.iter().map(|words| pattern::of_words(words)).collect()),
            () if parts.iter().any(|words| words.starts_with(&first)) => Ok(vec![pattern::of_words(&first)]),
            () => Err(format!("no part of the command begins with `{wanted}`")),
        };
    }
    match (request.path.as_deref(), wanted) {
        (Some(path), "") => Ok(vec![pattern::of_path(path)]),
        (Some(path), wanted) if pattern::path(wanted, path) => Ok(vec![wanted.into()]),
        (Some(path), wanted) => Err(format!("the pattern `{wanted}` does not match {path}")),
        (None, "") => Ok(Vec::new()),
        (None, _) => Err("a rule for this tool takes no pattern; s alone saves it".into()),
    }
}

/// One rank's voice of the rules.
struct Speaker {
    rank: Rank,
    rules: Permissions,
}

impl Approver for Speaker {
    fn rank(&self) -> Rank {
        self.rank
    }
    fn by(&self) -> By {
        By::Rule
    }
    fn decide(&mut self, request: &Request) -> Option<Decision> {
        if request.settled {
            return None;
        }
        match (self.rules.ruling(&asked(request))?, self.rank) {
            (Ruled::Deny(rule), Rank::DenyRule) => {
                Some(Decision::Deny(format!("a permission rule denies this: {rule}")))
            }
            (Ruled::Ask(rule), Rank::Guard) if !request.remembered => {
                Some(Decision::AskPerson { why: format!("a permission rule asks: {rule}"), or_end: false })
            }
            (Ruled::Allow(_), Rank::AllowRule) => request.question.map(|_| Decision::Allow),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests;
