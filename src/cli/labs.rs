//! `--lab` and what goes with it. A lab is data; playing one is an ordinary run with its extensions attached, in its
//! staged demo, with a recorded model unless a real one was set up for mini.

use super::front::{Front, Ready, Recorded, pace};
use super::options::{self, LabAction, Options, Resume};
use super::talk::{self, Source};
use super::{Exit, Stop, print, root, sessions, watch_signals, work};
use crate::agent::End;
use crate::attach::Known;
use crate::config::{Reach, user_file};
use crate::event::Outcome;
use crate::lab::{self, Home, Lab, Staged, run_words};
use crate::replay::{Script, Server};
use crate::sandbox::Wanted;
use crate::terminal::{Entry, Ink, slash, width, wrap_words};
use std::ffi::OsString;
use std::io::Write;

/// `--lab`: the list.
pub(crate) fn list() -> Result<Exit, Stop> {
    show(&lab::list(&Home::find(None, &here()?), run_words())?)
}

/// `--lab NAME` with one of its actions.
pub(crate) fn run(name: &str, action: &LabAction, options: &Options, known: &[Known]) -> Result<Exit, Stop> {
    let home = Home::find(options.workspace.as_deref(), &here()?);
    if name == "all" {
        return match action {
            LabAction::Check => check_all(&home, options.json),
            _ => Err(Stop::Usage("`all` goes with --check: mini --lab all --check".into())),
        };
    }
    let lab = lab::find(name)?;
    match action {
        LabAction::Play => play(&lab, &home, options, known),
        LabAction::Check => check(&lab, &home, options.json),
        LabAction::Hint => show(&lab.hint(&home, run_words())?),
        LabAction::Solution => print(&lab.solution()), // files, as they are
        LabAction::Why(command) => {
            let dir = stage(&lab, &home)?.dir;
            let rules = "permissions.json";
            super::why(command, &dir, lab.config(&dir).map_or_else(|| user_file(rules), |dir| Some(dir.join(rules))))
        }
        LabAction::Reset => reset(&lab, &home, options, known),
        LabAction::Serve => serve(&lab, &home, options, known),
    }
}

/// A text of a lab is read on a terminal as wide as it is, up to this.
const WIDEST: usize = 100;

/// Text on stdout, wrapped where that is a terminal.
fn show(text: &str) -> Result<Exit, Stop> {
    print(&wrapped(text, width(std::io::stdout())))
}

/// Text on stderr, wrapped where that is a terminal.
fn say(front: &Front, ink: Ink, text: &str) {
    front.console.say(&[(ink, &wrapped(text, front.console.columns()))]);
}

/// Lines stay as they are where no terminal has a width: a script looks for them.
fn wrapped(text: &str, columns: Option<usize>) -> String {
    columns.map_or_else(|| text.to_owned(), |columns| wrap_words(text, columns.min(WIDEST)).join("\n"))
}

fn here() -> Result<std::path::PathBuf, Stop> {
    root(&Options::default())
}

fn exe() -> Result<std::path::PathBuf, Stop> {
    std::env::current_exe().map_err(|e| Stop::Usage(format!("cannot tell where this program is: {e}")))
}

/// Lays the demo out, and says on stderr if something of the participant's had to make room.
fn stage(lab: &Lab, home: &Home) -> Result<Staged, Stop> {
    let staged = lab.stage(home)?;
    if let Some(notice) = &staged.notice {
        // A closed stderr leaves nobody to tell.
        let _ = writeln!(std::io::stderr(), "{}", wrapped(notice, width(std::io::stderr())));
    }
    Ok(staged)
}

fn check(lab: &Lab, home: &Home, json: bool) -> Result<Exit, Stop> {
    stage(lab, home)?;
    let report = lab.check(home, &exe()?)?;
    match json {
        true => print(&format!("{}\n", report.json()))?,
        false => show(&format!("{}{}", report.text(), lab.after(&report, run_words())?))?,
    };
    Ok(Exit { code: report.exit(), cause: None })
}

fn check_all(home: &Home, json: bool) -> Result<Exit, Stop> {
    let reports = lab::check_all(home, &exe()?)?;
    match json {
        true => print(&reports.iter().map(|report| format!("{}\n", report.json())).collect::<String>())?,
        false => show(&reports.iter().map(|report| report.line() + "\n").collect::<String>())?,
    };
    Ok(Exit { code: reports.iter().map(lab::Report::exit).max().unwrap_or(0), cause: None })
}

/// Asks first: the participant's own work is moved away. `--yes` answers; with nobody there it is not done.
fn reset(lab: &Lab, home: &Home, options: &Options, known: &[Known]) -> Result<Exit, Stop> {
    let staged = stage(lab, home)?;
    let front = Front::new(options, known, watch_signals()?, Reach::Ours)?;
    let question = format!("Reset {}? What you changed moves to .before.", lab.id);
    match options.yes || (front.interactive && front.says_yes(&question)) {
        true => show(&(staged.reset()? + "\n")),
        false if front.interactive => print("Nothing was changed.\n"),
        false => Err(Stop::Unapproved(format!(
            "--reset asks first, and nobody is there to answer; --yes answers for {}",
            lab.id
        ))),
    }
}

/// Each Enter says that the participant's own agent has ended with a case.
fn serve(lab: &Lab, home: &Home, options: &Options, known: &[Known]) -> Result<Exit, Stop> {
    stage(lab, home)?;
    let front = Front::new(options, known, watch_signals()?, Reach::Ours)?;
    let report = lab.serve(home, &mut |words| {
        say(&front, Ink::Plain, words);
        matches!(front.lines.borrow_mut().next_line(&front.cancel), crate::terminal::Line::Text(_))
    })?;
    match options.json {
        true => print(&format!("{}\n", report.json()))?,
        false => show(&report.text())?,
    };
    Ok(Exit { code: report.exit(), cause: front.cancel.cause() })
}

/// What a run that was cut off is told when nobody says anything else.
const GO_ON: &str = "The run was cut off. Go on where it stopped.";

/// What was typed at the prompt of the recorded model.
enum Typed {
    Sample(usize),
    Help,
    Leave,
    Other,
}

/// The conversation so far, in a lab whose samples are one.
struct SoFar {
    ready: Ready,
    /// The number of the sample that was played last.
    played: usize,
    last: End,
}

impl SoFar {
    fn play_next(&mut self, front: &Front, task: &str, quiet: bool) -> Result<(), Stop> {
        self.played += 1;
        if let Some(recorded) = &front.recorded {
            recorded.server.select(&self.played.to_string())?;
        }
        if !quiet {
            say(front, Ink::Bold, &format!("\n› {task}"));
        }
        self.last = work::to_its_end(front, &mut self.ready.agent, &mut self.ready.cx, task);
        front.task_ended(&self.last);
        Ok(())
    }

    fn end(mut self, front: &Front) -> Exit {
        front.end(&self.last, &mut self.ready.cx)
    }
}

/// A lab being played.
struct Play<'a> {
    lab: &'a Lab,
    staged: Staged,
    options: Options,
}

fn play(lab: &Lab, home: &Home, options: &Options, known: &[Known]) -> Result<Exit, Stop> {
    let staged = stage(lab, home)?;
    let sandbox = if options.sandbox == Wanted::No { Wanted::IfPossible } else { options.sandbox };
    let options = Options { workspace: Some(staged.dir.clone()), sandbox, ..options.clone() };
    let play = Play { lab, staged, options };
    let mut front = Front::new(&play.options, known, watch_signals()?, Reach::Ours)?;
    front.attached = lab.extensions(&play.staged.dir);
    front.go_on = format!("{} --lab {} --continue", run_words(), lab.number());
    front.config = lab.config(&play.staged.dir);
    let recorded = play.options.offline || front.found().settings.is_none();
    if !play.options.quiet && play.options.resume.is_none() {
        let model = play.model_line(&front, recorded);
        say(&front, Ink::Plain, lab.intro(&play.staged, run_words(), &model).trim_end());
    }
    let first = if play.options.resume.is_some() { GO_ON } else { "1" };
    if let (Some(which), true) = (&play.options.resume, recorded) {
        let exit = play.go_on(&mut front, which)?;
        return if front.interactive { play.samples(&mut front) } else { Ok(exit) };
    }
    match (&play.options.task, front.interactive) {
        (None, true) if recorded => play.samples(&mut front),
        (None, true) => play.talk(&front),
        (task, _) if recorded => play.one_sample(&mut front, task.as_deref().unwrap_or("1")),
        (task, _) => play.real(&front, &play.task(task.as_deref().unwrap_or(first))),
    }
}

impl Play<'_> {
    fn model_line(&self, front: &Front, recorded: bool) -> String {
        let found = front.found();
        match (&found.settings, found.passed_over) {
            (Some(settings), _) if !recorded => {
                let model = if settings.model.is_empty() { "the server's only one" } else { &settings.model };
                let key =
                    if settings.key.is_some() { format!(", key from {}", settings.key_source) } else { String::new() };
                format!("model: {model} at {}{key}", settings.base_url)
            }
            (_, Some(name)) => format!("model: recorded ({name} is set for other tools, and labs do not use it)"),
            _ => "model: recorded".into(),
        }
    }

    /// Which sample a participant means: Enter is the first, else its number or its very words.
    fn number(&self, words: &str) -> Option<usize> {
        let words = words.trim();
        let samples = &self.lab.about.samples;
        let at = if words.is_empty() { Some(1) } else { words.parse().ok() };
        at.filter(|at| (1..=samples.len()).contains(at))
            .or_else(|| samples.iter().position(|sample| sample.task.eq_ignore_ascii_case(words)).map(|at| at + 1))
    }

    /// What was typed at the prompt of the recorded model.
    fn meant(&self, words: &str) -> Typed {
        match (slash(words).map_or(words.trim(), |(command, _)| command), self.number(words)) {
            (_, Some(number)) => Typed::Sample(number),
            ("quit" | "exit" | "q", _) => Typed::Leave,
            ("help" | "h" | "?", _) => Typed::Help,
            _ => Typed::Other,
        }
    }

    /// A wrong number or command gets one line; other words were meant as a task.
    fn not_understood(&self, words: &str) -> String {
        let short = format!("Type {} to play a sample; /help lists what can be typed.", self.lab.choices());
        let is_task = !words.trim().starts_with('/') && words.trim().parse::<i64>().is_err();
        if is_task { format!("{short}\n{}", self.lab.needs_model(run_words())) } else { short }
    }

    /// A sample's task, or the words themselves.
    fn task(&self, words: &str) -> String {
        let sample = self.number(words).and_then(|number| self.lab.about.samples.get(number - 1));
        sample.map_or_else(|| words.to_owned(), |sample| sample.task.clone())
    }

    /// A sample without a prompt: from the command line, or the first one.
    fn one_sample(&self, front: &mut Front, words: &str) -> Result<Exit, Stop> {
        let Some(number) = self.number(words) else {
            return Err(Stop::Usage(wrapped(&self.lab.needs_model(run_words()), front.console.columns())));
        };
        let mut so_far = None;
        let exit = self.recorded(front, number, &mut so_far)?;
        Ok(so_far.map_or(exit, |so_far| so_far.end(front)))
    }

    /// Plays a sample with the recorded model: fresh demo, fresh conversation. In a lab whose samples are one
    /// conversation (`so_far`), those before it that it has not had yet are played first.
    fn recorded(&self, front: &mut Front, number: usize, so_far: &mut Option<SoFar>) -> Result<Exit, Stop> {
        self.conditions(front, number)?;
        if !self.lab.about.conversation {
            self.begin(front, self.lab.script(number)?)?;
            return self.real(front, &self.task(&number.to_string()));
        }
        let mut talk = match so_far.take() {
            Some(talk) if talk.played < number => talk,
            earlier => {
                earlier.map(|talk| talk.end(front));
                self.begin(front, self.lab.whole_script()?)?;
                let (workspace, notices) = front.open()?;
                SoFar { ready: front.make(workspace, notices)?, played: 0, last: End::done() }
            }
        };
        while talk.played < number && !front.cancel.is_raised() {
            talk.play_next(front, &self.task(&(talk.played + 1).to_string()), self.options.quiet)?;
        }
        let code = talk.last.outcome.exit();
        *so_far = Some(talk);
        Ok(Exit { code, cause: None })
    }

    /// What a sample sets where the command line does not: limits, plan mode, the model's window.
    fn conditions(&self, front: &mut Front, number: usize) -> Result<(), Stop> {
        let sample = self.lab.about.samples.get(number - 1);
        let args = sample.map_or(&[][..], |sample| &sample.args);
        front.usual = options::parse(args.iter().map(OsString::from))?;
        front.plan = self.options.plan || sample.is_some_and(|sample| sample.plan);
        front.context_window = self.options.context_window.or(sample.and_then(|sample| sample.context_window));
        Ok(())
    }

    /// The shipped demo, and a recorded model for these sections.
    fn begin(&self, front: &mut Front, script: Script) -> Result<(), Stop> {
        if let Some(moved) = self.staged.refresh()? {
            say(front, Ink::Dim, &moved);
        }
        let answers = script.sections.iter().flat_map(|section| section.answers.clone()).collect();
        front.recorded = Some(Recorded { server: Server::start(script, pace())?, answers });
        Ok(())
    }

    /// Goes on with a sample that was cut off: the demo stays as it is, and the recording plays on behind the replies that
    /// the log has.
    fn go_on(&self, front: &mut Front, which: &Resume) -> Result<Exit, Stop> {
        let so_far = sessions::so_far(which, &self.staged.dir)?;
        let again = format!("{} --lab {}", run_words(), self.lab.number());
        let Some(number) = self.number(&so_far.task) else {
            return Err(Stop::Usage(format!(
                "the recorded model has no more to say to that session; {again} plays a sample"
            )));
        };
        let script = self.lab.script(number)?.after(so_far.replies);
        if script.sections.iter().all(|section| section.exchanges.is_empty()) {
            return Err(Stop::Usage(format!("sample {number} was played to its end; {again} plays it again")));
        }
        let server = Server::start(script, pace())?;
        let answers = server.answers(&number.to_string()).into_iter().skip(so_far.answers).collect();
        front.recorded = Some(Recorded { server, answers });
        self.real(front, GO_ON)
    }

    fn real(&self, front: &Front, task: &str) -> Result<Exit, Stop> {
        if !self.options.quiet {
            say(front, Ink::Bold, &format!("\n› {task}"));
        }
        let (workspace, notices) = front.open()?;
        let Ready { mut agent, mut cx, session, .. } = front.make(workspace, notices)?;
        let end = work::to_its_end(front, &mut agent, &mut cx, task);
        let exit = front.end(&end, &mut cx);
        if end.outcome == Outcome::Interrupted {
            front.how_to_go_on(session.as_deref());
        }
        Ok(exit)
    }

    /// The prompt of a recorded lab: numbers, until somebody leaves.
    fn samples(&self, front: &mut Front) -> Result<Exit, Stop> {
        let choices = self.lab.choices();
        say(front, Ink::Dim, &format!("\nType {choices} to play a sample (Enter plays the first); /quit leaves."));
        let (mut source, mut so_far) = (Source::open(front)?, None);
        loop {
            match source.next(front, false) {
                Entry::Text(words) => match self.meant(&words) {
                    Typed::Sample(number) => {
                        self.recorded(front, number, &mut so_far)?;
                    }
                    Typed::Help => say(front, Ink::Plain, &self.lab.prompt_help(run_words())),
                    Typed::Other => say(front, Ink::Plain, &self.not_understood(&words)),
                    Typed::Leave => break,
                },
                Entry::Failed(why) => return Err(Stop::Failed(why)),
                Entry::Interrupt | Entry::End => break,
            }
            match front.cancel.cause() {
                Some(cause) if cause != crate::cancel::Cause::Interrupt => return Err(Stop::Cancelled(cause)),
                _ => front.cancel.clear(),
            }
        }
        so_far.map(|so_far| so_far.end(front));
        Ok(Exit { code: 0, cause: None })
    }

    /// A real model: a talk in the demo, in which a number means a sample's task.
    fn talk(&self, front: &Front) -> Result<Exit, Stop> {
        let (workspace, notices) = front.open()?;
        talk::run_with(front, front.make(workspace, notices)?, &|words| self.task(words))
    }
}
