//! Who may say yes. An [`Approver`] sees every call and gives an opinion, or none and passes it on.
//!
//! Approvers form one list, sorted by [`Rank`]: the first opinion wins. That list *is* the order of authority, so
//! nobody has to remember that a deny rule beats `--yes`: it sits above it. Refusals are above the list altogether:
//! a refused call never gets here.
//!
//! Rejected: one function full of flags (`if yes && !plan && …`). Every new policy would edit every old one.

use crate::event::By;
use crate::message::Call;
use crate::nearest::nearest;
use crate::tool::{Question, Scope};
use std::cell::Cell;
use std::collections::VecDeque;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::{Path, PathBuf};
use std::rc::Rc;

/// The order of authority, highest first (design.md 5). Refusals rank above all of these and are not asked about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Rank {
    /// A rule that forbids.
    DenyRule,
    /// Plan mode: look and propose.
    Plan,
    /// A child agent that may only read.
    Child,
    /// The loop guard, and rules that ask.
    Guard,
    /// Rules that allow, and "always".
    AllowRule,
    /// `--yes`.
    Yes,
    /// A recorded lab's answers.
    Script,
    /// The person at the terminal.
    Person,
}

/// A call to be decided on.
pub struct Request<'a> {
    /// The call.
    pub call: &'a Call,
    /// The tool's question; `None` if the tool would run it at once.
    pub question: Option<&'a Question>,
    /// Without a question, it changes nothing.
    pub read_only: bool,
    /// The path below the workspace that its `path` argument leads to, whatever its spelling; as it was given where it leads
    /// to no such place.
    pub path: Option<String>,
    /// Whether an "always" of this session covers it.
    pub remembered: bool,
    /// It will not run, whatever anybody says: it is refused, or no usable call. Only the loop guard counts it.
    pub settled: bool,
    /// Why an approver of higher rank wants a person to decide, if one does.
    pub asked: Option<String>,
}

impl<'a> Request<'a> {
    /// A call without a path that nobody else has had a say about.
    pub fn new(call: &'a Call, question: Option<&'a Question>, read_only: bool) -> Request<'a> {
        Request { call, question, read_only, path: None, remembered: false, settled: false, asked: None }
    }

    /// The command that a call of bash would run.
    pub fn command(&self) -> Option<&str> {
        let arguments = self.call.arguments.as_ref().ok()?;
        arguments.get("command")?.as_str().filter(|_| self.call.name == "bash")
    }

    /// What an "always" would cover: what the question says, else the exact command.
    pub fn scope(&self) -> Option<Scope> {
        let exact = || Some(Scope::Command { text: self.command()?.into(), parts: None });
        self.question.map(|question| question.scope.clone()).or_else(exact)
    }
}

/// An approver's opinion.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Decision {
    /// Run it.
    Allow,
    /// Run it, and everything within this scope for the rest of the session.
    Always(Scope),
    /// Do not run it; the reason goes to the model.
    Deny(String),
    /// Only a person (or a script in his place) may decide: skips allow rules, the list and `--yes`.
    AskPerson {
        /// Why, for the question.
        why: String,
        /// Where there is nobody to ask: end the run (the loop guard) instead of denying the call (a rule).
        or_end: bool,
    },
    /// End the run: a limit.
    End(String),
}

/// What the whole list says of a call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Ruling {
    /// Run it.
    Allow,
    /// Do not run it; the model is told why.
    Deny(String),
    /// End the run: a limit.
    End(String),
}

/// Decides about calls.
pub trait Approver {
    /// Where it stands in the order of authority.
    fn rank(&self) -> Rank;
    /// Under which name its decisions are reported.
    fn by(&self) -> By;
    /// An opinion, or `None` to pass the call on.
    fn decide(&mut self, request: &Request) -> Option<Decision>;
}

/// Somebody wants a person to decide.
struct Asked {
    why: String,
    or_end: bool,
    by: By,
}

/// The approvers of a run, in order of authority.
#[derive(Default)]
pub struct Approvers {
    list: Vec<Box<dyn Approver>>,
    /// What the person allowed for the rest of the session.
    always: Vec<Scope>,
}

impl Approvers {
    /// Adds an approver at its rank, behind others of the same rank.
    pub fn add(&mut self, approver: Box<dyn Approver>) {
        let at = self.list.partition_point(|other| other.rank() <= approver.rank());
        self.list.insert(at, approver);
    }

    /// The first opinion on a call, and whose it is. Without any: what needs no question runs, the rest is denied.
    pub fn decide(&mut self, mut request: Request) -> (Ruling, By) {
        let mut asked: Option<Asked> = None;
        let mut consulted = 0;
        request.remembered = self.remembers(&request);
        while let Some(rank) = self.list.get(consulted).map(|approver| approver.rank()) {
            if asked.is_none() && rank > Rank::AllowRule && request.remembered {
                return (Ruling::Allow, By::Always);
            }
            let approver = &mut self.list[consulted];
            consulted += 1;
            if asked.is_some() && matches!(rank, Rank::AllowRule | Rank::Yes) {
                continue;
            }
            request.asked = asked.as_ref().map(|asked| asked.why.clone());
            let (by, decision) = (approver.by(), approver.decide(&request));
            match decision {
                None => {}
                Some(Decision::AskPerson { why, or_end }) => asked = asked.or(Some(Asked { why, or_end, by })),
                Some(Decision::Always(scope)) => {
                    self.always.push(scope);
                    return (Ruling::Allow, by);
                }
                Some(Decision::Allow) => return (Ruling::Allow, by),
                Some(Decision::Deny(why)) => return (Ruling::Deny(why), by),
                Some(Decision::End(why)) => return (Ruling::End(why), by),
            }
        }
        self.without_opinion(&request, asked)
    }

    fn without_opinion(&self, request: &Request, asked: Option<Asked>) -> (Ruling, By) {
        match asked {
            Some(Asked { why, or_end: true, by }) => (Ruling::End(why), by),
            Some(Asked { why, .. }) => (Ruling::Deny(format!("{why}, and nobody is there to ask")), By::Nobody),
            None if request.question.is_none() => (Ruling::Allow, By::Gate),
            None if request.remembered => (Ruling::Allow, By::Always),
            None => (Ruling::Deny("this needs an approval, and nobody is there to give it".into()), By::Nobody),
        }
    }

    /// Whether an "always" covers the call's question.
    fn remembers(&self, request: &Request) -> bool {
        let Some(scope) = request.scope() else { return false };
        self.always.iter().any(|known| is_same(known, &scope)) || self.parts_are_known(&scope)
    }

    /// Whether every asking part of a chain begins with the words of some remembered command.
    fn parts_are_known(&self, scope: &Scope) -> bool {
        let Scope::Command { parts: Some(parts), .. } = scope else { return false };
        let known = |words: &Vec<String>| {
            self.always.iter().any(|scope| match scope {
                Scope::Command { parts: Some(known), .. } => known.iter().any(|first| words.starts_with(first)),
                _ => false,
            })
        };
        !parts.is_empty() && parts.iter().all(known)
    }
}

/// Whether an "always" was given for exactly this. One for an exact command has no parts; what is asked about may have.
fn is_same(known: &Scope, asked: &Scope) -> bool {
    match (known, asked) {
        (Scope::Command { text: known, parts: None }, Scope::Command { text, .. }) => known == text,
        _ => known == asked,
    }
}

/// `--yes`: allows what would ask.
pub struct Yes;

impl Approver for Yes {
    fn rank(&self) -> Rank {
        Rank::Yes
    }
    fn by(&self) -> By {
        By::Yes
    }
    fn decide(&mut self, request: &Request) -> Option<Decision> {
        request.question.map(|_| Decision::Allow)
    }
}

/// Plan mode's switch: look and propose, change nothing. Clones are the same switch: one is turned by the talk's
/// `/plan` and `/approve`, one says so to the model, one denies.
#[derive(Clone)]
pub struct PlanMode {
    on: Rc<Cell<bool>>,
    /// What the model is told beside [`PLAN_OPENING`].
    words: Rc<str>,
}

impl Default for PlanMode {
    fn default() -> PlanMode {
        PlanMode { on: Rc::default(), words: PLAN_WORDS.into() }
    }
}

impl PlanMode {
    /// Turns it on or off.
    pub fn set(&self, on: bool) {
        self.on.set(on);
    }

    /// Whether it is on.
    pub fn is_on(&self) -> bool {
        self.on.get()
    }

    /// The operator's own words for what a plan shall be. Clones made before keep the old ones.
    pub fn set_words(&mut self, words: &str) {
        self.words = words.into();
    }

    /// The section of the system prompt, only while it is on.
    pub fn system_prompt(&self) -> String {
        if self.is_on() { format!("{PLAN_OPENING} {}", self.words) } else { String::new() }
    }
}

const PLAN_OPENING: &str = "Plan mode is on: nothing may be changed.";
const PLAN_WORDS: &str = "Read what you need, then answer with a numbered plan of what you would change, and stop.";

/// Plan mode and a child's read-only limit: denies every call with a question, and every tool that may change
/// something without one.
pub struct ReadOnly {
    rank: Rank,
    by: By,
    on: PlanMode,
    why: &'static str,
}

impl ReadOnly {
    /// Plan mode, by this switch.
    pub fn plan(on: PlanMode) -> ReadOnly {
        let why = "plan mode is on: only look, and propose; nothing may change until the plan is approved";
        ReadOnly { rank: Rank::Plan, by: By::Plan, on, why }
    }

    /// The limit of a child agent that may only read.
    pub fn child() -> ReadOnly {
        let on = PlanMode::default();
        on.set(true);
        ReadOnly { rank: Rank::Child, by: By::Child, on, why: "a sub-agent may only read" }
    }
}

impl Approver for ReadOnly {
    fn rank(&self) -> Rank {
        self.rank
    }
    fn by(&self) -> By {
        self.by
    }
    fn decide(&mut self, request: &Request) -> Option<Decision> {
        let changes = request.question.is_some() || !request.read_only;
        (self.on.is_on() && changes).then(|| Decision::Deny(self.why.into()))
    }
}

/// Keeps `write` and `edit` away from one file: one that was read at start and says what the agent may do, or how its
/// work is judged. A change would do nothing in this run; but there is a next one.
///
/// It sees paths, not bytes: a command that writes to the file is bash's question, and the person sees it.
pub struct FileGuard {
    root: PathBuf,
    file: PathBuf,
    why: &'static str,
}

impl FileGuard {
    /// A guard of `file`; the model's paths are relative to `root`. `why` follows the file's name in what the model is
    /// told, such as "says how this work is checked". Fails if there is no such file.
    pub fn new(file: &Path, root: &Path, why: &'static str) -> Result<FileGuard, String> {
        let file = file.canonicalize().map_err(|e| format!("cannot find {}: {e}", file.display()))?;
        Ok(FileGuard { root: root.into(), file, why })
    }

    /// Whether a path of the model's means the file: by any name, also where a link leads to it, and also while the
    /// file is not there.
    fn is_meant(&self, path: &str) -> bool {
        let path = self.root.join(path);
        let real =
            path.canonicalize().ok().or_else(|| Some(path.parent()?.canonicalize().ok()?.join(path.file_name()?)));
        real.is_some_and(|real| real == self.file)
    }
}

impl Approver for FileGuard {
    fn rank(&self) -> Rank {
        Rank::DenyRule
    }
    fn by(&self) -> By {
        By::Rule
    }
    fn decide(&mut self, request: &Request) -> Option<Decision> {
        let writes = matches!(request.call.name.as_str(), "write" | "edit");
        let path = request.call.arguments.as_ref().ok()?.get("path")?.as_str()?;
        let name = self.file.file_name()?.to_string_lossy();
        (writes && self.is_meant(path))
            .then(|| Decision::Deny(format!("{name} {}; the tools do not change it", self.why)))
    }
}

/// Notices the same call again and again, whatever came of it. The third in a row needs a person.
#[derive(Default)]
pub struct LoopGuard {
    /// The fingerprint of the last call: the call itself may hold a whole file.
    last: Option<u64>,
    times: u32,
}

impl LoopGuard {
    /// How many identical calls in a row are one too many.
    pub const LIMIT: u32 = 3;
}

impl Approver for LoopGuard {
    fn rank(&self) -> Rank {
        Rank::Guard
    }
    fn by(&self) -> By {
        By::LoopGuard
    }
    fn decide(&mut self, request: &Request) -> Option<Decision> {
        let this = Some(fingerprint(request.call));
        self.times = if self.last == this { self.times + 1 } else { 1 };
        self.last = this;
        let why = format!("the same {} call came {} times in a row", request.call.name, self.times);
        (self.times >= LoopGuard::LIMIT).then_some(Decision::AskPerson { why, or_end: true })
    }
}

/// The same for the same tool with the same arguments, their keys in any order; unusable arguments as they were written.
fn fingerprint(call: &Call) -> u64 {
    let mut hasher = DefaultHasher::new();
    (&call.name, call.arguments.as_ref().map_err(|_| &call.raw)).hash(&mut hasher);
    hasher.finish()
}

/// A script's answers, in the person's place: one for each question, in order. Used by recorded labs.
pub struct Script(pub VecDeque<String>);

impl Approver for Script {
    fn rank(&self) -> Rank {
        Rank::Script
    }
    fn by(&self) -> By {
        By::Script
    }
    fn decide(&mut self, request: &Request) -> Option<Decision> {
        if request.question.is_none() && request.asked.is_none() {
            return None;
        }
        self.0.pop_front().map(|answer| match parse_answer(&answer, request) {
            Answer::Decided(decision) => decision,
            Answer::Unclear | Answer::Save(_) => Decision::Deny(answer),
        })
    }
}

/// What a person's words at a question mean.
pub enum Answer {
    /// A decision.
    Decided(Decision),
    /// Yes, and save an allow rule for it. Words behind it say for what: first words of a command, a pattern of paths.
    Save(String),
    /// Enter alone, a word that is nearly an answer, or a yes with more words, which may be a condition: ask again.
    Unclear,
}

/// Reads an answer: y, yes · n, no · a, always (or `a FIRST WORDS`, for every command that begins so) · s, save (or
/// `s FIRST WORDS`, `s PATTERN`) · other words deny, and are told to the model.
pub fn parse_answer(answer: &str, request: &Request) -> Answer {
    let answer = answer.trim();
    let (first, rest) = answer.split_once(char::is_whitespace).unwrap_or((answer, ""));
    Answer::Decided(match (first.to_lowercase().as_str(), rest.trim()) {
        ("", _) => return Answer::Unclear,
        ("y" | "yes", "") => Decision::Allow,
        ("n" | "no", "") => Decision::Deny("the person said no".into()),
        ("n" | "no", reason) => Decision::Deny(format!("the person said no: {reason}")),
        ("s", words) => return Answer::Save(words.into()),
        ("save", "") => return Answer::Save(String::new()),
        ("a" | "always", "") => match request.scope() {
            // Exact: first words count only where they are spelled out.
            Some(Scope::Command { text, .. }) => Decision::Always(Scope::Command { text, parts: None }),
            Some(scope) => Decision::Always(scope),
            None => return Answer::Unclear, // there is nothing that it could cover
        },
        ("a" | "always", words) => match first_words(words, request.scope()) {
            Some(scope) => Decision::Always(scope),
            None => return Answer::Unclear,
        },
        (word, _) if matches!(word.trim_end_matches([',', '.', '!', ';', ':']), "y" | "yes") => return Answer::Unclear,
        (word, "") if is_nearly_an_answer(word) => return Answer::Unclear,
        _ => Decision::Deny(format!("the person said: {answer}")),
    })
}

/// A single word that is no reason for a no: the beginning of an answer, a slip of the finger, an everyday yes or no.
fn is_nearly_an_answer(word: &str) -> bool {
    const EVERYDAY: [&str; 9] = ["yeah", "yep", "yup", "ok", "okay", "sure", "nope", "nah", "nay"];
    let is_near = |answer: &str| answer.starts_with(word) || nearest(word, [answer]).is_some();
    EVERYDAY.contains(&word) || ["yes", "no", "always", "save"].into_iter().any(is_near)
}

/// `a cargo test`: every command that begins with these words, if the one asked about does.
fn first_words(words: &str, scope: Option<Scope>) -> Option<Scope> {
    let words: Vec<String> = words.split_whitespace().map(String::from).collect();
    match scope? {
        Scope::Command { text, parts: Some(parts) } if parts.iter().any(|part| part.starts_with(&words)) => {
            Some(Scope::Command { text, parts: Some(vec![words]) })
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tool::Preview;
    use serde_json::Map;

    struct Says(Rank, By, Option<Decision>);
    impl Approver for Says {
        fn rank(&self) -> Rank {
            self.0
        }
        fn by(&self) -> By {
            self.1
        }
        fn decide(&mut self, _: &Request) -> Option<Decision> {
            self.2.clone()
        }
    }

    fn list(approvers: Vec<Says>) -> Approvers {
        let mut list = Approvers::default();
        approvers.into_iter().for_each(|a| list.add(Box::new(a)));
        list
    }

    fn call() -> Call {
        Call { id: "c".into(), name: "bash".into(), raw: "{}".into(), arguments: Ok(Map::new()), extra: Map::new() }
    }

    fn question(command: &str, parts: &[&str]) -> Question {
        let words = |part: &&str| part.split(' ').map(String::from).collect();
        let scope = Scope::Command { text: command.into(), parts: Some(parts.iter().map(words).collect()) };
        Question { text: command.into(), why: None, preview: Preview::None, scope }
    }

    fn decide(approvers: &mut Approvers, question: Option<&Question>) -> (Ruling, By) {
        approvers.decide(Request::new(&call(), question, true))
    }

    /// Ranks with the name each decides under, highest first.
    const ORDER: [(Rank, By); 8] = [
        (Rank::DenyRule, By::Rule),
        (Rank::Plan, By::Plan),
        (Rank::Child, By::Child),
        (Rank::Guard, By::LoopGuard),
        (Rank::AllowRule, By::Rule),
        (Rank::Yes, By::Yes),
        (Rank::Script, By::Script),
        (Rank::Person, By::User),
    ];

    #[test]
    fn of_every_pair_the_higher_rank_decides_whatever_the_order_of_adding() {
        for (i, (high, by_high)) in ORDER.iter().enumerate() {
            for (low, by_low) in &ORDER[i + 1..] {
                let mut both = list(vec![
                    Says(*low, *by_low, Some(Decision::Allow)),
                    Says(*high, *by_high, Some(Decision::Deny("high".into()))),
                ]);
                let decided = decide(&mut both, Some(&question("rm x", &[])));
                assert_eq!(decided, (Ruling::Deny("high".into()), *by_high), "{high:?} over {low:?}");
            }
        }
    }

    #[test]
    fn without_opinion_a_question_is_denied_and_the_rest_runs() {
        assert_eq!(decide(&mut Approvers::default(), None), (Ruling::Allow, By::Gate));
        assert_eq!(decide(&mut Approvers::default(), Some(&question("rm x", &[]))).1, By::Nobody);
    }

    #[test]
    fn ask_person_skips_allow_rules_and_yes() {
        let ask = |or_end| Says(Rank::Guard, By::LoopGuard, Some(Decision::AskPerson { why: "again".into(), or_end }));
        let yes = || Says(Rank::Yes, By::Yes, Some(Decision::Allow));
        let rule = || Says(Rank::AllowRule, By::Rule, Some(Decision::Allow));
        let person = Says(Rank::Person, By::User, Some(Decision::Allow));
        assert_eq!(decide(&mut list(vec![ask(true), rule(), yes(), person]), None), (Ruling::Allow, By::User));
        assert_eq!(decide(&mut list(vec![ask(true), yes()]), None), (Ruling::End("again".into()), By::LoopGuard));
        assert!(matches!(decide(&mut list(vec![ask(false), yes()]), None), (Ruling::Deny(_), By::Nobody)));
    }

    #[test]
    fn always_covers_the_exact_command_or_chains_of_its_first_words() {
        let mut approvers = list(vec![Says(Rank::Person, By::User, Some(Decision::Deny("no".into())))]);
        let exact = question("make all", &["make all"]);
        approvers
            .always
            .push(Scope::Command { text: "x".into(), parts: Some(vec![vec!["cargo".into(), "test".into()]]) });
        assert_eq!(decide(&mut approvers, Some(&exact)).1, By::User);
        assert_eq!(decide(&mut approvers, Some(&question("cargo test -q && ls", &["cargo test -q"]))).1, By::Always);
        assert_eq!(decide(&mut approvers, Some(&question("cargo tests", &["cargo tests"]))).1, By::User);
        assert_eq!(decide(&mut approvers, Some(&question("cargo test; rm x", &["cargo test", "rm x"]))).1, By::User);
        approvers.always.push(exact.scope.clone());
        assert_eq!(decide(&mut approvers, Some(&exact)).1, By::Always);
    }

    #[test]
    fn an_answered_always_covers_the_same_command_and_no_longer_one() {
        let (call, make) = (call(), question("make all", &["make all"]));
        let request = Request::new(&call, Some(&make), true);
        let Answer::Decided(always) = parse_answer("a", &request) else { panic!("not decided") };
        let mut approvers = list(vec![Says(Rank::Person, By::User, Some(always))]);
        assert_eq!(decide(&mut approvers, Some(&make)), (Ruling::Allow, By::User));
        assert_eq!(decide(&mut approvers, Some(&make)), (Ruling::Allow, By::Always));
        assert_eq!(decide(&mut approvers, Some(&question("make all x", &["make all x"]))).1, By::User);
    }

    #[test]
    fn an_always_outlives_the_call_and_a_deny_rule_still_beats_it() {
        let scope = Scope::Files;
        let ask = Question { text: "edit a".into(), why: None, preview: Preview::None, scope: scope.clone() };
        let mut approvers = list(vec![Says(Rank::Person, By::User, Some(Decision::Always(scope)))]);
        assert_eq!(decide(&mut approvers, Some(&ask)), (Ruling::Allow, By::User));
        assert_eq!(decide(&mut approvers, Some(&ask)), (Ruling::Allow, By::Always));
        approvers.add(Box::new(Says(Rank::DenyRule, By::Rule, Some(Decision::Deny("rule".into())))));
        assert_eq!(decide(&mut approvers, Some(&ask)).1, By::Rule);
    }

    #[test]
    fn answers_read_as_people_write_them() {
        let (call, question) = (call(), question("cargo test -q", &["cargo test -q"]));
        let request = Request::new(&call, Some(&question), true);
        let read = |words: &str| match parse_answer(words, &request) {
            Answer::Decided(decision) => Some(decision),
            Answer::Save(_) | Answer::Unclear => None,
        };
        assert_eq!(read(" Y "), Some(Decision::Allow));
        assert_eq!(read(""), None);
        assert_eq!(read("no, wrong file"), Some(Decision::Deny("the person said: no, wrong file".into())));
        assert_eq!(read("use make instead"), Some(Decision::Deny("the person said: use make instead".into())));
        assert!(matches!(read("a"), Some(Decision::Always(Scope::Command { parts: None, .. }))));
        assert!(matches!(read("a cargo test"), Some(Decision::Always(Scope::Command { parts: Some(_), .. }))));
        assert_eq!(read("a rm"), None);
        for unclear in ["ye", "Yep", "yse", "ok", "nope", "nn", "alway", "awlays", "yes please", "yes, but not there"] {
            assert_eq!(read(unclear), None, "{unclear}");
        }
        for reason in ["stop", "later", "wrong", "make", "nothing", "yesterday's file"] {
            assert!(matches!(read(reason), Some(Decision::Deny(_))), "{reason}");
        }
    }

    #[test]
    fn the_third_identical_call_needs_a_person_and_another_call_starts_anew() {
        let call = call();
        let mut guard = LoopGuard::default();
        let mut see = |call: &Call| guard.decide(&Request::new(call, None, true)).is_some();
        assert_eq!([see(&call), see(&call), see(&call)], [false, false, true]);
        let other = Call { name: "read".into(), ..call.clone() };
        assert_eq!([see(&other), see(&call), see(&call)], [false, false, false]);
    }

    #[test]
    fn plan_mode_denies_questions_and_tools_that_may_change_something() {
        let (call, on) = (call(), PlanMode::default());
        let mut plan = ReadOnly::plan(on.clone());
        let asked = question("rm x", &[]);
        let mut denies = |read_only, question| plan.decide(&Request::new(&call, question, read_only)).is_some();
        assert!(!denies(false, Some(&asked)));
        on.set(true);
        assert!(!denies(true, None));
        assert!(denies(true, Some(&asked)));
        assert!(denies(false, None));
    }

    #[test]
    fn a_guarded_file_is_not_changed_by_any_of_its_names() {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path().canonicalize().unwrap();
        let file = root.join("rules.json");
        std::fs::create_dir(root.join("src")).unwrap();
        std::fs::write(&file, "{}").unwrap();
        std::os::unix::fs::symlink("rules.json", root.join("link")).unwrap();
        let mut guard = FileGuard::new(&file, &root, "decides").unwrap();
        let mut decide = |name: &str, path: &str| {
            let arguments = Ok([("path".to_string(), path.into())].into_iter().collect());
            let call = Call { name: name.into(), arguments, ..call() };
            guard.decide(&Request::new(&call, None, false))
        };
        let denied = Some(Decision::Deny("rules.json decides; the tools do not change it".into()));
        for path in ["rules.json", "./rules.json", "src/../rules.json", "link", file.to_str().unwrap()] {
            assert_eq!([decide("write", path), decide("edit", path)], [denied.clone(), denied.clone()], "{path}");
        }
        for (name, path) in [("read", "rules.json"), ("write", "src/rules.json"), ("write", "new/rules.json")] {
            assert_eq!(decide(name, path), None, "{name} {path}");
        }
        std::fs::remove_file(&file).unwrap();
        assert_eq!(decide("write", "rules.json"), denied, "also when it is not there");
        assert!(FileGuard::new(&file, &root, "decides").err().unwrap().starts_with("cannot find "));
    }
}
