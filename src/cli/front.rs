//! The front end of a process: who watches, who is asked, and the recipe by which its agents are made.
//!
//! There is one [`Front`] a process. `/new` makes another agent by the same recipe, and nothing is carried over.

use super::options::{Mode, Options, Resume};
use super::{Stop, help, open_workspace, places, root, sessions};
use crate::agent::{Agent, End};
use crate::approve::{Approver, PlanMode, Script, Yes};
use crate::attach::{Known, attach, check};
use crate::cancel::Cancel;
use crate::config::{self, Found, Reach};
use crate::endpoint::{Endpoint, Settings, Unnamed, Wire};
use crate::event::{Event, Observer, Outcome, Stamp, line, unix_ms};
use crate::permissions::Permissions;
use crate::prices;
use crate::process::{Processes, environment};
use crate::record::Recorder;
use crate::replay::{Pace, Server};
use crate::sandbox::{Sandbox, Wanted};
use crate::setup::Setup;
use crate::terminal::{
    Answers, Console, Ended, Ink, Lines, Paint, Patient, Person, Screen, SharedLines, Stdout, Step, Volume, confirm,
    wire_printer,
};
use crate::tool::{Budget, Context};
use crate::workspace::Workspace;
use std::cell::Cell;
use std::io::{IsTerminal, Read, Write};
use std::path::{Path, PathBuf};
use std::rc::Rc;

/// The project's rules are read up to here, in bytes.
const MOST_RULES: u64 = 16 << 10;

/// What a process has one of.
pub(crate) struct Front<'a> {
    pub options: &'a Options,
    known: &'a [Known],
    found: Found,
    pub cancel: Cancel,
    pub console: Console,
    pub screen: Screen,
    pub lines: SharedLines,
    /// Somebody is there to answer: stdin and stderr are terminals, and it is not CI.
    pub interactive: bool,
    /// What `--json` has printed of the process.
    printed: Rc<Printed>,
    /// A recorded model in place of an endpoint.
    pub recorded: Option<Recorded>,
    pub wire: Rc<Cell<bool>>,
    /// `--record`
    recorder: Option<Recorder>,
    /// Words for `--ext` beside those on the command line: a lab's.
    pub attached: Vec<String>,
    /// The session to go on with; the first agent takes it, `/new` begins another.
    resume: Cell<Option<Resume>>,
    /// The words that go on with a session of this process.
    pub go_on: String,
    /// The directory whose files stand in for the user's own configuration, in a lab that brings some.
    pub config: Option<PathBuf>,
    /// Limits of a sample, where the command line names none.
    pub usual: Options,
    /// Plan mode at the start, and the model's window: of the command line, or of a lab's sample.
    pub plan: bool,
    pub context_window: Option<u64>,
}

/// A recorded model, playing on loopback, and the person's recorded answers.
pub(crate) struct Recorded {
    pub server: Server,
    pub answers: Vec<String>,
}

/// An agent that is ready to work.
pub(crate) struct Ready {
    pub agent: Agent,
    pub cx: Context,
    pub plan: PlanMode,
    /// The id of its log, if it has one.
    pub session: Option<String>,
}

impl<'a> Front<'a> {
    /// Looks at the terminal and the configuration; nothing is asked of the network yet.
    pub fn new(options: &'a Options, known: &'a [Known], cancel: Cancel, reach: Reach) -> Result<Front<'a>, Stop> {
        options.extensions.iter().try_for_each(|word| check(word, known))?;
        let found = config::find(&options.endpoint, &places(), reach)?;
        let console = match options.json {
            // stdout belongs to the events.
            true => {
                let err = stream(std::io::stderr(), &cancel)?;
                Console::new(Box::new(std::io::sink()), Box::new(err), Answers::Once, Paint::Plain)
            }
            false => Console::stdio(&cancel)?,
        };
        console.may_spin(!options.wire); // it would write over the wire
        let unasked = unasked();
        let screen = Screen::new(console.clone(), volume(options), unasked.filter(|_| !options.talk));
        let front = Front {
            options,
            known,
            found,
            screen,
            console,
            lines: Lines::stdin()?,
            interactive: unasked.is_none(),
            printed: Rc::default(),
            recorded: options.replay.as_deref().map(replayed).transpose()?,
            wire: Rc::new(Cell::new(options.wire)),
            recorder: options.record.as_deref().map(Recorder::create).transpose()?,
            attached: Vec::new(),
            resume: Cell::new(options.resume.clone()),
            go_on: sessions::go_on_words(options),
            config: None,
            usual: Options::default(),
            plan: options.plan,
            context_window: options.context_window,
            cancel,
        };
        front.start_timer();
        Ok(front)
    }

    /// The settings of the endpoint: a recorded model's, or what the configuration says.
    pub fn settings(&self) -> Result<Settings, Stop> {
        let found = self.found.settings.clone();
        match &self.recorded {
            Some(recorded) => {
                let base = Settings { retry_base_ms: 1, idle_ms: 60_000, progress_ms: 60_000, ..Settings::default() };
                let (base_url, model) = (recorded.server.base_url(), crate::replay::MODEL.to_owned());
                Ok(Settings { base_url, model, key_source: "recorded".into(), ..base })
            }
            None => found.ok_or_else(|| Stop::Usage(self.no_endpoint())),
        }
    }

    fn no_endpoint(&self) -> String {
        match &self.found.model_alone {
            Some(name) => format!("{name} names a model, but {}", help::NO_ENDPOINT),
            None => help::NO_ENDPOINT.into(),
        }
    }

    /// Something that is known of the endpoint before it is asked: where it comes from if that is a stranger's file,
    /// or which key was passed over.
    pub fn found(&self) -> &Found {
        &self.found
    }

    /// The recipe: an agent in this workspace, its observers and approvers, and the `start` event.
    pub fn make(&self, workspace: Workspace, notices: Vec<String>) -> Result<Ready, Stop> {
        let (mut endpoint, model_url) = self.endpoint()?;
        self.tap(&mut endpoint);
        let model = endpoint.resolve_model(&self.cancel).map(String::from);
        let model = model.map_err(|unnamed| match (self.cancel.cause(), unnamed) {
            (Some(cause), _) => Stop::Cancelled(cause),
            (None, Unnamed::Choose(why)) => Stop::Usage(why),
            (None, Unnamed::Unknown(why)) => Stop::Failed(why),
        })?;
        self.ready(workspace, endpoint, (model, model_url), notices)
    }

    /// The same without a model: for `--call`.
    pub fn make_without_model(&self, workspace: Workspace, notices: Vec<String>) -> Result<Ready, Stop> {
        let settings =
            Settings { base_url: "http://127.0.0.1:9/none".into(), model: "none".into(), ..Settings::default() };
        let endpoint = Endpoint::new(settings)?;
        self.ready(workspace, endpoint, (String::new(), String::new()), notices)
    }

    fn endpoint(&self) -> Result<(Endpoint, String), Stop> {
        let settings = self.settings()?;
        let url = settings.base_url.clone();
        Ok((Endpoint::new(settings)?, url))
    }

    fn ready(
        &self,
        ws: Workspace,
        endpoint: Endpoint,
        model: (String, String),
        notices: Vec<String>,
    ) -> Result<Ready, Stop> {
        let mut notices = notices;
        let processes = self.processes(&ws, &mut notices)?;
        let mut setup = Setup::new(ws, endpoint, self.cancel.clone(), processes);
        setup.plan.set(self.plan);
        setup.budget = self.budget(&model)?;
        if self.recorded.is_none() || setup.budget.price.is_some() {
            self.screen.price(setup.budget.price);
        }
        setup.window = self.context_window;
        setup.rules = if self.options.no_rules { None } else { rules(&setup.workspace)? };
        let (permissions, ignored) = Permissions::load(self.user_file("permissions.json"), &setup.workspace)?;
        setup.permissions = permissions.clone();
        for word in self.attached.iter().chain(&self.options.extensions) {
            attach(&mut setup, word, self.known).map_err(|why| match self.cancel.cause() {
                Some(cause) => Stop::Cancelled(cause),
                None => Stop::Usage(why),
            })?;
        }
        notices.append(&mut setup.notices);
        notices.extend(ignored);
        notices.extend(self.found.notice.clone().filter(|_| self.recorded.is_none()));
        let session = self.observe(&mut setup, &mut notices)?;
        let (session, added) = session.map_or((None, 0), |opened| (Some(opened.id), opened.added));
        self.approve(&mut setup, permissions);
        let (plan, workspace) = (setup.plan.clone(), setup.workspace.root().display().to_string());
        let extensions = setup.extensions.iter().map(|extension| extension.name().to_owned()).collect();
        let (agent, mut cx) = setup.build()?;
        let (version, tools, (model, base_url)) = (env!("CARGO_PKG_VERSION"), agent.tool_names(), model);
        let base_url = cx.endpoint.redact(base_url);
        let start = Event::Start { version, model, base_url, workspace, extensions, tools, session: session.clone() };
        cx.events.emit(start);
        agent.history().messages().iter().rev().take(added).rev().for_each(|message| cx.events.message(message, None));
        notices.into_iter().for_each(|notice| cx.events.notice(notice));
        Ok(Ready { agent, cx, plan, session })
    }

    /// The log first: what happens is on disk before anybody acts on it.
    fn observe(&self, setup: &mut Setup, notices: &mut Vec<String>) -> Result<Option<sessions::Opened>, Stop> {
        let session = match self.options.no_session {
            true => None,
            false => sessions::open(self.resume.take(), setup, notices)?,
        };
        if self.options.json {
            let out = stream(std::io::stdout(), &self.cancel)?;
            setup.observers.push(Box::new(JsonLines { out, printed: Rc::clone(&self.printed) }));
        }
        setup.observers.extend(self.recorder.as_ref().map(Recorder::observer));
        setup.observers.push(Box::new(self.screen.clone()));
        if self.options.step {
            setup.observers.push(Box::new(Step::new(
                self.console.clone(),
                Rc::clone(&self.lines),
                self.cancel.clone(),
            )));
        }
        Ok(session)
    }

    fn approve(&self, setup: &mut Setup, permissions: Permissions) {
        let mut add = |approver: Box<dyn Approver>| setup.approvers.push(approver);
        if self.options.yes {
            add(Box::new(Yes));
        }
        if self.interactive || self.options.talk {
            let (console, lines, cancel) = (self.console.clone(), Rc::clone(&self.lines), self.cancel.clone());
            add(Box::new(Person::new(console, lines, cancel, permissions)));
        } else if let Some(recorded) = &self.recorded {
            add(Box::new(Script(recorded.answers.clone().into())));
        }
    }

    /// How children are started: in which environment, and with `--sandbox`, what the kernel lets commands do.
    fn processes(&self, ws: &Workspace, notices: &mut Vec<String>) -> Result<Processes, Stop> {
        let Found { secret_names, secret_values, .. } = &self.found;
        let mut processes = Processes::new(environment(std::env::vars_os(), secret_names, secret_values));
        if self.options.sandbox != Wanted::No {
            match (Sandbox::new(ws.root(), &ws.run().path().join("tmp")), self.options.sandbox) {
                (Ok(sandbox), _) => {
                    notices.push(sandbox.notice());
                    processes.confine(sandbox);
                }
                (Err(why), Wanted::Yes) => return Err(Stop::Usage(format!("--sandbox: there can be none: {why}"))),
                (Err(why), _) => notices.push(format!("commands run without a sandbox: {why}")),
            }
        }
        Ok(processes)
    }

    /// The limits, for a model at a base URL. A limit on costs needs a price: one that limits nothing would be a lie.
    fn budget(&self, (model, base_url): &(String, String)) -> Result<Budget, Stop> {
        let default = Budget::default();
        let (file, failed) = (self.user_file("prices.json"), |path: &Path, why| format!("{}: {why}", path.display()));
        let own = match &file {
            Some(path) if path.exists() => {
                Some(std::fs::read_to_string(path).map_err(|e| failed(path, e.to_string()))?)
            }
            _ => None,
        };
        let price = prices::price(own.as_deref(), base_url, model);
        let price = price.map_err(|why| failed(file.as_deref().unwrap_or(Path::new("prices.json")), why))?;
        let (said, usual) = (self.options, &self.usual);
        let max_turns = said.max_turns.or(usual.max_turns).unwrap_or(default.max_turns);
        let (max_tokens, max_cost) = (said.token_budget.or(usual.token_budget), said.max_cost.or(usual.max_cost));
        if max_cost.is_some() && price.is_none() && !model.is_empty() {
            return Err(Stop::Usage(format!(
                "--max-cost needs a price, and that of {model} is unknown; put it into ~/.config/mini/prices.json: \
                 {{\"{model}\": {{\"input\": 0.5, \"output\": 1.5}}}} (US dollars for a million tokens)"
            )));
        }
        Ok(Budget { max_turns, max_tokens, max_cost, price, ..default })
    }

    /// A file of the user's own configuration, or the one that a lab has in its place.
    fn user_file(&self, name: &str) -> Option<PathBuf> {
        self.config.as_ref().map_or_else(|| config::user_file(name), |dir| Some(dir.join(name)))
    }

    /// `--record`; and `--wire`, with the talk's `/wire`, which turns it on later. Without it, a sign of life is all
    /// that is shown.
    fn tap(&self, endpoint: &mut Endpoint) {
        if let Some(recorder) = &self.recorder {
            endpoint.tap(recorder.tap(endpoint.redactor()));
        }
        let (on, console) = (Rc::clone(&self.wire), self.console.clone());
        let mut printer = wire_printer(console.clone(), endpoint.redactor());
        endpoint.tap(Box::new(move |wire| match (on.get(), wire) {
            (true, wire) => printer(wire),
            (false, Wire::Bytes(_)) => console.more_came(),
            (false, _) => {}
        }));
    }

    /// `--timeout`: counts from the start of the process, so waiting for piped input counts as well.
    fn start_timer(&self) {
        if let Some(limit) = self.options.timeout {
            let cancel = self.cancel.clone();
            std::thread::spawn(move || {
                std::thread::sleep(limit);
                cancel.raise(crate::cancel::Cause::TimeLimit);
            });
        }
    }

    /// The `end` event of the process, and its exit code. 130 is for a signal; `main` dies by the one that came.
    pub fn end(&self, end: &End, cx: &mut Context) -> super::Exit {
        self.printed.ending.set(true);
        let exit = self.close(end, cx);
        let code = match self.console.stdout() {
            Stdout::Failed(why) => {
                cx.events.notice(format!("cannot write to stdout: {why}"));
                exit.max(1)
            }
            // The reader of the answer went away (`| head`): whatever there was to say, that is no failure of ours.
            Stdout::Closed if end.outcome == Outcome::Done => 0,
            _ if self.printed.failed.get() => exit.max(1),
            _ => exit,
        };
        super::Exit { code, cause: self.cancel.cause().filter(|_| end.outcome == Outcome::Interrupted) }
    }

    /// Ends an agent's log; returns the exit code that goes with the end.
    pub fn close(&self, end: &End, cx: &mut Context) -> u8 {
        let End { outcome, reason, text, turns, .. } = end.clone();
        let (usage, cost, changed, exit) = (cx.budget.used, cx.budget.cost(), cx.changed.clone(), outcome.exit());
        cx.events.emit(Event::End { outcome, reason, text, turns, usage, cost, changed, exit });
        exit
    }

    /// Another agent by the same recipe, for `/new`: the old one's log ends, and the new one's is named.
    pub fn renew(&self, end: &End, ready: &mut Ready) -> Result<(), Stop> {
        let (workspace, notices) = self.open()?;
        let renewed = self.make(workspace, notices)?;
        self.close(end, &mut ready.cx);
        *ready = renewed;
        if let Some(session) = &ready.session {
            ready.cx.events.notice(format!("a new conversation, session {session}"));
        }
        Ok(())
    }

    /// Tells the screen how a task of a talk ended; its log has no `end` before the talk's.
    pub fn task_ended(&self, end: &End) {
        let (outcome, reason) = (end.outcome, end.reason.as_deref());
        self.screen.task_ended(&Ended { outcome, reason, at: unix_ms() });
    }

    /// Says how to go on with a session; nothing where there is none, or nobody wants to hear it.
    pub fn how_to_go_on(&self, session: Option<&str>) {
        if session.is_some() && !self.options.quiet && !self.options.json {
            self.note(&format!("{} goes on from here", self.go_on));
        }
    }

    /// A word beside the run, such as that piped input is waited for.
    pub fn note(&self, text: &str) {
        self.console.say(&[(Ink::Dim, &format!("mini: {text}"))]);
    }

    /// Puts a yes-or-no question of mini's own to the person; anything but yes is no.
    pub fn says_yes(&self, question: &str) -> bool {
        confirm(&self.console, &self.lines, &self.cancel, question)
    }

    /// The workspace that the options name.
    pub fn open(&self) -> Result<(Workspace, Vec<String>), Stop> {
        open_workspace(&root(self.options)?)
    }
}

/// Why nobody can be asked; `None` where somebody is there to answer.
fn unasked() -> Option<&'static str> {
    if !std::io::stdin().is_terminal() {
        return Some("stdin is not a terminal");
    }
    if !std::io::stderr().is_terminal() {
        return Some("stderr is not a terminal");
    }
    let ci = std::env::var_os("CI").is_some_and(|ci| ci == "true");
    ci.then_some("CI is true")
}

fn volume(options: &Options) -> Volume {
    match options.mode {
        _ if options.quiet => Volume::Quiet,
        Mode::Call(..) => Volume::Calls,
        _ => Volume::Normal,
    }
}

/// `--replay FILE`.
fn replayed(path: &std::path::Path) -> Result<Recorded, String> {
    let text =
        std::fs::read_to_string(path).map_err(|e| format!("cannot read the recording {}: {e}", path.display()))?;
    let script = crate::replay::Script::parse(&text).map_err(|why| format!("{}: {why}", path.display()))?;
    let first = script.sections.first().map(|section| section.name.clone()).unwrap_or_default();
    let server = Server::start(script, pace())?;
    Ok(Recorded { answers: server.answers(&first), server })
}

/// A person reads along; a program does not.
pub(crate) fn pace() -> Pace {
    if std::io::stdout().is_terminal() { Pace::Reading } else { Pace::AtOnce }
}

/// The project's rules: `AGENTS.md`, read once. A file that cannot be read is as good as none, but one that is
/// protected or outside is not followed.
fn rules(workspace: &Workspace) -> Result<Option<String>, Stop> {
    let Ok((file, _)) = workspace.open_read("AGENTS.md") else { return Ok(None) };
    let mut bytes = Vec::new();
    file.take(MOST_RULES).read_to_end(&mut bytes).map_err(|e| Stop::Usage(format!("cannot read AGENTS.md: {e}")))?;
    let text = String::from_utf8_lossy(&bytes).trim().to_owned();
    Ok(Some(text).filter(|text| !text.is_empty()))
}

/// A stream of the process.
fn stream(of: impl std::os::fd::AsFd, cancel: &Cancel) -> Result<Patient, String> {
    Patient::new(of, cancel).map_err(|e| format!("cannot use the standard streams: {e}"))
}

/// `--json`: every event as a line on stdout. There is one start and one end a process, whatever `/new` does.
struct JsonLines {
    out: Patient,
    printed: Rc<Printed>,
}

/// What `--json` has printed of the process.
#[derive(Default)]
struct Printed {
    started: Cell<bool>,
    /// The next `end` is that of the process.
    ending: Cell<bool>,
    /// stdout's reader went away: what would have been said is said to nobody, and that is no failure.
    closed: Cell<bool>,
    /// stdout failed in another way: the run cannot end with 0.
    failed: Cell<bool>,
}

impl Observer for JsonLines {
    fn event(&mut self, stamp: &Stamp, event: &Event) -> Result<(), String> {
        let own = match event {
            Event::Start { .. } => !self.printed.started.replace(true),
            Event::End { .. } => self.printed.ending.get(),
            _ => true,
        };
        if !own || self.printed.closed.get() {
            return Ok(());
        }
        match self.out.write_all(format!("{}\n", line(stamp, event)).as_bytes()) {
            Err(e) if e.kind() == std::io::ErrorKind::BrokenPipe => self.printed.closed.set(true),
            Err(e) => {
                self.printed.failed.set(true);
                return Err(format!("cannot write events to stdout: {e}"));
            }
            Ok(()) => {}
        }
        Ok(())
    }
}
