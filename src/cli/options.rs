//! The command line as data: words in, [`Options`] out. Nothing here acts.
//!
//! lexopt gives words one by one and has no help text and no "did you mean": both are here, beside the table of
//! names they come from.

use crate::config::Flags;
use crate::sandbox::Wanted;
use lexopt::{Arg, Parser, ValueExt};
use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

/// What the command line says.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// What to do.
    pub mode: Mode,
    /// The task: several words are one task.
    pub task: Option<String>,
    /// `--base-url`, `--model`, `--api-key-env`.
    pub endpoint: Flags,
    /// `--workspace`
    pub workspace: Option<PathBuf>,
    /// `--ext`, in order.
    pub extensions: Vec<String>,
    /// `--yes`
    pub yes: bool,
    /// `--plan`
    pub plan: bool,
    /// `--sandbox`
    pub sandbox: Wanted,
    /// `--offline`: the recorded model of a lab, whatever endpoint there is.
    pub offline: bool,
    /// `--record FILE`
    pub record: Option<PathBuf>,
    /// `--replay FILE`
    pub replay: Option<PathBuf>,
    /// `--wire`
    pub wire: bool,
    /// `--step`
    pub step: bool,
    /// `--json`
    pub json: bool,
    /// `--quiet`
    pub quiet: bool,
    /// `--talk`
    pub talk: bool,
    /// `--no-session`
    pub no_session: bool,
    /// `--continue`, `--resume ID`
    pub resume: Option<Resume>,
    /// `--no-rules`
    pub no_rules: bool,
    /// `--max-turns`
    pub max_turns: Option<u32>,
    /// `--token-budget`
    pub token_budget: Option<u64>,
    /// `--max-cost`, in US dollars.
    pub max_cost: Option<f64>,
    /// `--timeout`, in seconds on the command line.
    pub timeout: Option<Duration>,
    /// `--context-window`, in tokens.
    pub context_window: Option<u64>,
    /// `--versions`, for `--eval`.
    pub versions: Vec<String>,
}

/// Which session a run goes on with.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Resume {
    /// The newest of the workspace.
    Newest,
    /// The one that this is the id of, or the beginning of its id.
    Named(String),
}

/// What to do.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Mode {
    /// A task, or a talk.
    #[default]
    Work,
    /// `--lab` alone.
    Labs,
    /// `--lab NAME`.
    Lab(String, LabAction),
    /// `--doctor`
    Doctor,
    /// `--eval CASES`
    Eval(PathBuf),
    /// `--why COMMAND`
    Why(String),
    /// `--call TOOL JSON`
    Call(String, String),
    /// `--sessions`
    Sessions,
    /// `--undo`
    Undo,
    /// `--diff`
    Diff,
    /// `--trace FILE`
    Trace(PathBuf),
    /// `--help`, or `--help labs`.
    Help {
        /// The page on labs.
        labs: bool,
    },
    /// `--version`
    Version,
}

/// What to do with a lab.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum LabAction {
    /// Play it.
    #[default]
    Play,
    /// `--check`: the exam.
    Check,
    /// `--hint`: the next hint.
    Hint,
    /// `--reset`: the demo as shipped.
    Reset,
    /// `--serve`: the exam for an agent of the participant's own.
    Serve,
    /// `--solution`: print it.
    Solution,
    /// `--why COMMAND`: the gate's verdict in the staged demo.
    Why(String),
}

/// What may go with a lab.
const ACTIONS: &str = "--check, --hint, --reset, --serve, --solution and --why";

/// Every long option, for "did you mean".
#[rustfmt::skip]
const NAMES: &[&str] = &[
    "api-key-env", "base-url", "call", "check", "context-window", "continue", "diff", "doctor", "eval", "ext", "help",
    "hint", "json", "lab", "max-cost", "max-turns", "model", "no-rules", "no-session", "offline", "plan", "quiet",
    "record", "replay", "reset", "resume", "sandbox", "serve", "sessions", "solution", "step", "talk", "timeout",
    "token-budget", "trace", "undo", "version", "versions", "why", "wire", "workspace", "yes",
];

/// Reads the words behind the program's name. The error is one sentence, for exit code 2.
pub fn parse(words: impl IntoIterator<Item = OsString>) -> Result<Options, String> {
    let (mut parser, mut read) = (Parser::from_args(words), Read::default());
    while let Some(arg) = parser.next().map_err(words_of)? {
        match arg {
            Arg::Value(word) => read.task.push(word.string().map_err(words_of)?),
            Arg::Short(letter) => read.option(long(letter)?, &mut parser)?,
            Arg::Long(name) => {
                let name = name.to_owned();
                read.option(&name, &mut parser)?;
            }
        }
    }
    let options = read.options()?;
    options.fits_together().map(|()| options)
}

/// The long name of a short option.
fn long(letter: char) -> Result<&'static str, String> {
    match letter {
        'h' => Ok("help"),
        'V' => Ok("version"),
        'y' => Ok("yes"),
        'q' => Ok("quiet"),
        _ => Err(format!("unknown option -{letter}; see mini --help")),
    }
}

/// What was read so far.
#[derive(Default)]
struct Read {
    options: Options,
    task: Vec<String>,
    /// `--lab`, with its name if one follows.
    lab: Option<Option<String>>,
    /// What to do with it, with the option's name.
    action: Option<(String, LabAction)>,
}

impl Read {
    fn option(&mut self, name: &str, parser: &mut Parser) -> Result<(), String> {
        match name {
            "lab" if self.lab.is_some() => return Err("one --lab at a time".into()),
            "lab" => self.lab = Some(optional_word(parser)?),
            "check" => self.act(name, LabAction::Check)?,
            "hint" => self.act(name, LabAction::Hint)?,
            "reset" => self.act(name, LabAction::Reset)?,
            "serve" => self.act(name, LabAction::Serve)?,
            "solution" => self.act(name, LabAction::Solution)?,
            "why" => self.act(name, LabAction::Why(word(parser)?))?,
            "help" => self.options.mode = Mode::Help { labs: optional_word(parser)?.as_deref() == Some("labs") },
            "version" => self.options.mode = Mode::Version,
            "doctor" => self.options.mode = Mode::Doctor,
            "sessions" => self.options.mode = Mode::Sessions,
            "undo" => self.options.mode = Mode::Undo,
            "diff" => self.options.mode = Mode::Diff,
            "trace" => self.options.mode = Mode::Trace(parser.value().map_err(words_of)?.into()),
            "eval" => self.options.mode = Mode::Eval(parser.value().map_err(words_of)?.into()),
            "call" => {
                let values = word(parser).and_then(|tool| Ok((tool, word(parser)?)));
                let (tool, json) =
                    values.map_err(|_| "--call wants TOOL and JSON: --call read '{\"path\":\"a.txt\"}'")?;
                self.options.mode = Mode::Call(tool, json);
            }
            name => self.options.set(name, parser)?,
        }
        Ok(())
    }

    /// An option that says what to do. Two of them contradict each other, and neither may win in silence.
    fn act(&mut self, name: &str, action: LabAction) -> Result<(), String> {
        match self.action.replace((name.into(), action)) {
            Some(_) => Err(format!("one of {ACTIONS} at a time")),
            None => Ok(()),
        }
    }

    /// All of it together: what is to be done.
    fn options(self) -> Result<Options, String> {
        let Read { options, task, lab, action } = self;
        let task = (!task.is_empty()).then(|| task.join(" "));
        if let (Mode::Work, Some((name, _)), Some(task)) = (&options.mode, &action, &task) {
            return Err(format!("--{name} takes no task; `{task}` is too many (quotes make a command one word)"));
        }
        let mode = match (lab, action.map(|(_, action)| action), options.mode) {
            (_, _, mode @ (Mode::Help { .. } | Mode::Version)) => mode,
            (Some(Some(lab)), action, Mode::Work) => Mode::Lab(lab, action.unwrap_or_default()),
            (Some(None), None, Mode::Work) => Mode::Labs,
            (None, None, mode) => mode,
            (None, Some(LabAction::Why(command)), Mode::Work) => Mode::Why(command),
            (_, _, Mode::Sessions | Mode::Undo | Mode::Diff) => {
                return Err(format!("--sessions, --undo and --diff do not go with --lab, nor with {ACTIONS}"));
            }
            (_, _, Mode::Call(..)) => return Err(format!("--call does not go with --lab, nor with {ACTIONS}")),
            (_, _, Mode::Eval(_)) => return Err(format!("--eval does not go with --lab, nor with {ACTIONS}")),
            (_, _, Mode::Doctor) => return Err(format!("--doctor does not go with --lab, nor with {ACTIONS}")),
            (_, _, Mode::Trace(_)) => return Err(format!("--trace does not go with --lab, nor with {ACTIONS}")),
            _ => return Err(format!("{ACTIONS} go with a lab: mini --lab 05 --check")),
        };
        Ok(Options { mode, task, ..options })
    }
}

impl Options {
    /// Sets what is not a mode.
    fn set(&mut self, name: &str, parser: &mut Parser) -> Result<(), String> {
        match name {
            "base-url" => self.endpoint.base_url = Some(word(parser)?),
            "model" => self.endpoint.model = Some(word(parser)?),
            "api-key-env" => self.endpoint.api_key_env = Some(word(parser)?),
            "workspace" => self.workspace = Some(parser.value().map_err(words_of)?.into()),
            "replay" => self.replay = Some(parser.value().map_err(words_of)?.into()),
            "record" => self.record = Some(parser.value().map_err(words_of)?.into()),
            "ext" => self.extensions.push(word(parser)?),
            "versions" => self.versions = word(parser)?.split(',').map(|name| name.trim().to_owned()).collect(),
            "yes" => self.yes = true,
            "plan" => self.plan = true,
            "sandbox" => self.sandbox = Wanted::Yes,
            "offline" => self.offline = true,
            "wire" => self.wire = true,
            "step" => self.step = true,
            "json" => self.json = true,
            "quiet" => self.quiet = true,
            "talk" => self.talk = true,
            "no-session" => self.no_session = true,
            "continue" => self.resume_with(Resume::Newest)?,
            "resume" => self.resume_with(Resume::Named(word(parser)?))?,
            "no-rules" => self.no_rules = true,
            "max-turns" => self.max_turns = Some(positive(name, parser)?),
            "token-budget" => self.token_budget = Some(positive(name, parser)?),
            "max-cost" => self.max_cost = Some(dollars(name, parser)?),
            "context-window" => self.context_window = Some(positive(name, parser)?),
            "timeout" => self.timeout = Some(Duration::from_secs(positive(name, parser)?)),
            unknown => return Err(not_known(unknown)),
        }
        Ok(())
    }

    fn resume_with(&mut self, which: Resume) -> Result<(), String> {
        match self.resume.replace(which) {
            Some(_) => Err("one of --continue and --resume, once".into()),
            None => Ok(()),
        }
    }

    fn fits_together(&self) -> Result<(), String> {
        match self {
            Options { json: true, step: true, .. } => {
                Err("--step waits for a person; it does not go with --json".into())
            }
            Options { talk: true, task: Some(_), .. } => {
                Err("--talk takes its tasks from stdin, not from the command line".into())
            }
            Options { resume: Some(_), no_session: true, .. } => {
                Err("--continue and --resume go on with a session, and --no-session keeps none; give one".into())
            }
            Options { resume: Some(_), mode, .. } if !matches!(mode, Mode::Work | Mode::Lab(_, LabAction::Play)) => {
                Err("--continue and --resume go with a task or a talk".into())
            }
            Options { mode: Mode::Sessions | Mode::Undo | Mode::Diff, task: Some(task), .. } => {
                Err(format!("--sessions, --undo and --diff take no task; `{task}` is too much"))
            }
            Options { replay: Some(_), offline: true, .. } => {
                Err("--replay and --offline each bring a model; give one".into())
            }
            Options { mode: Mode::Why(_) | Mode::Call(..), record: Some(_), .. } => {
                Err("--record keeps what a model says; --why and --call ask none".into())
            }
            Options { mode: Mode::Why(_), task: Some(task), .. } => {
                Err(format!("--why takes one word, so quote the command: --why 'COMMAND' (`{task}` is too much)"))
            }
            Options { mode: Mode::Work, offline: true, .. } => {
                Err("--offline is the recorded model of a lab: mini --lab 05 --offline".into())
            }
            Options { replay: Some(_), endpoint: Flags { base_url: Some(_), .. }, .. } => {
                Err("--replay and --base-url each bring a model; give one".into())
            }
            Options { mode: Mode::Version | Mode::Help { .. }, task: Some(task), .. } => {
                Err(format!("`{task}` is too much: there is mini --help, mini --help labs and mini --version"))
            }
            Options { mode: Mode::Doctor, task: Some(task), .. } => {
                Err(format!("--doctor takes no task; `{task}` is too much"))
            }
            Options { mode: Mode::Doctor, offline: true, .. } | Options { mode: Mode::Doctor, replay: Some(_), .. } => {
                Err("--doctor looks at the real endpoint; it does not go with --offline or --replay".into())
            }
            Options { mode: Mode::Trace(_), task: Some(task), .. } => {
                Err(format!("--trace reads one file, and takes no task; `{task}` is too much"))
            }
            Options { mode: Mode::Eval(_), task: Some(task), .. } => {
                Err(format!("--eval takes its tasks from the cases; `{task}` is too much"))
            }
            Options { mode: Mode::Eval(_), replay: Some(_), .. } => {
                Err("--eval takes recordings as versions: --versions one.jsonl,other.jsonl".into())
            }
            Options { mode: Mode::Eval(_), record: Some(_), .. }
            | Options { mode: Mode::Eval(_), step: true, .. }
            | Options { mode: Mode::Eval(_), talk: true, .. } => {
                Err("--eval makes many runs; it does not go with --record, --step or --talk".into())
            }
            Options { versions, mode, .. } if !versions.is_empty() && !matches!(mode, Mode::Eval(_)) => {
                Err("--versions goes with --eval: mini --eval cases.jsonl --versions a,b".into())
            }
            Options { quiet: true, json: true, .. } => Err("--quiet and --json contradict each other; give one".into()),
            Options { mode: Mode::Call(..), task: Some(task), .. } => {
                Err(format!("--call takes a tool and its arguments as JSON; `{task}` is one word too many"))
            }
            _ => Ok(()),
        }
    }
}

fn not_known(name: &str) -> String {
    match crate::nearest::nearest(name, NAMES.iter().copied()) {
        Some(known) => format!("unknown option --{name}; did you mean --{known}?"),
        None => format!("unknown option --{name}; see mini --help"),
    }
}

/// An option's value.
fn word(parser: &mut Parser) -> Result<String, String> {
    parser.value().and_then(|value| value.string()).map_err(words_of)
}

/// The next word, unless it is an option.
fn optional_word(parser: &mut Parser) -> Result<Option<String>, String> {
    if let Some(value) = parser.optional_value() {
        return value.string().map(Some).map_err(words_of);
    }
    let next = parser.try_raw_args().and_then(|mut raw| raw.next_if(|next| !next.as_encoded_bytes().starts_with(b"-")));
    next.map(|value| value.string().map_err(words_of)).transpose()
}

fn positive<T: std::str::FromStr + PartialOrd + Default>(name: &str, parser: &mut Parser) -> Result<T, String> {
    let value = word(parser)?;
    let number = value.parse().ok().filter(|number| *number > T::default());
    number.ok_or(format!("--{name} {value}: a whole number above 0 is wanted"))
}

fn dollars(name: &str, parser: &mut Parser) -> Result<f64, String> {
    let value = word(parser)?;
    let number = value.trim_start_matches('$').parse().ok().filter(|number: &f64| number.is_finite() && *number > 0.0);
    number.ok_or(format!("--{name} {value}: an amount in US dollars above 0 is wanted, such as 0.50"))
}

fn words_of(error: lexopt::Error) -> String {
    error.to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(line: &str) -> Result<Options, String> {
        parse(shell_words::split(line).unwrap().into_iter().map(OsString::from))
    }

    #[test]
    fn several_words_are_one_task() {
        let options = parsed("--yes rename foo 'to bar' in src").unwrap();
        assert_eq!(options.task.as_deref(), Some("rename foo to bar in src"));
        assert!(options.yes && options.mode == Mode::Work);
        assert_eq!(parsed("-- --weird task").unwrap().task.as_deref(), Some("--weird task"));
    }

    #[test]
    fn a_lab_takes_a_name_an_action_and_a_task() {
        assert_eq!(parsed("--lab").unwrap().mode, Mode::Labs);
        assert_eq!(parsed("--lab 05 --check").unwrap().mode, Mode::Lab("05".into(), LabAction::Check));
        assert_eq!(parsed("--lab=5 --offline fix it").unwrap().task.as_deref(), Some("fix it"));
        assert!(parsed("--check").unwrap_err().contains("go with a lab"));
        let why = LabAction::Why("git log -p".into());
        assert_eq!(parsed("--lab 01 --why 'git log -p'").unwrap().mode, Mode::Lab("01".into(), why));
        assert_eq!(parsed("--why ls").unwrap().mode, Mode::Why("ls".into()));
    }

    #[test]
    fn what_contradicts_itself_is_an_error() {
        for line in [
            "--lab 01 --check --solution",
            "--lab 01 --reset --hint",
            "--lab 01 --why ls --check",
            "--why ls --why pwd",
        ] {
            let error = parsed(line).unwrap_err();
            assert_eq!(error, "one of --check, --hint, --reset, --serve, --solution and --why at a time", "{line}");
        }
        assert_eq!(parsed("--lab 01 --lab 05").unwrap_err(), "one --lab at a time");
        assert!(parsed("--lab 01 --check fix it").unwrap_err().starts_with("--check takes no task; `fix it`"));
        assert!(parsed("--why git status").unwrap_err().starts_with("--why takes no task; `status`"));
        for line in [
            "--lab 01 --call ls {}",
            "--why ls --call ls {}",
            "--call ls {} --why ls",
            "--lab --hint",
            "--trace a b",
            "--trace a --lab 01",
        ] {
            assert!(parsed(line).is_err(), "{line}");
        }
        assert!(matches!(parsed("--lab 01 --check --help").unwrap().mode, Mode::Help { .. }));
    }

    #[test]
    fn an_unknown_option_names_the_nearest() {
        assert_eq!(parsed("--modl x").unwrap_err(), "unknown option --modl; did you mean --model?");
        assert_eq!(parsed("--xyzzy").unwrap_err(), "unknown option --xyzzy; see mini --help");
        assert_eq!(parsed("-z").unwrap_err(), "unknown option -z; see mini --help");
    }

    #[test]
    fn values_are_wanted_and_checked() {
        assert!(parsed("--max-turns 0").unwrap_err().contains("a whole number above 0"));
        for wrong in ["0", "-1", "nan", "inf", "free"] {
            assert!(parsed(&format!("--max-cost={wrong}")).unwrap_err().contains("US dollars above 0"), "{wrong}");
        }
        assert_eq!(parsed("--max-cost '$0.5'").unwrap().max_cost, Some(0.5));
        assert!(parsed("--model").unwrap_err().contains("--model"));
        assert_eq!(parsed("--call greet '{\"a\":1}'").unwrap().mode, Mode::Call("greet".into(), "{\"a\":1}".into()));
        assert_eq!(parsed("--timeout 5").unwrap().timeout, Some(Duration::from_secs(5)));
        assert!(parsed("--yes=no").is_err());
    }

    #[test]
    fn every_name_in_the_table_is_known_and_every_option_of_the_help_is_in_the_table() {
        for name in NAMES {
            let error = parsed(&format!("--{name}")).err().unwrap_or_default();
            assert!(!error.starts_with("unknown option"), "{name}: {error}");
        }
        let help = [crate::cli::help::MAIN, crate::cli::help::LABS].concat();
        for word in
            help.split(|c: char| !(c.is_ascii_alphanumeric() || c == '-')).filter_map(|word| word.strip_prefix("--"))
        {
            assert!(word.is_empty() || NAMES.contains(&word), "--{word} is in the help and not in the table");
        }
        for name in NAMES {
            assert!(help.contains(&format!("--{name}")), "--{name} is not in the help");
        }
    }
}
