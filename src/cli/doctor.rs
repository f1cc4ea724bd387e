//! `--doctor`: the settings, the endpoint and the machine, one line a check on stdout. Exit 0 when all that is needed
//! works, 1 otherwise.
//!
//! The checks themselves are in [`doctor`](crate::doctor); here they are given the settings, and words their columns.

use super::options::Options;
use super::{Exit, Stop, places, root, watch_signals};
use crate::config::{self, Reach, Sources};
use crate::doctor::{self, Finding, LONGEST_REPLY, Machine, Verdict};
use crate::endpoint::Tap;
use crate::rundir::state_dir;
use crate::terminal::{Console, Paint, Stdout, sanitize, wire_printer};

pub(crate) fn run(options: &Options) -> Result<Exit, Stop> {
    let cancel = watch_signals()?;
    let (console, workspace) = (Console::stdio(&cancel)?, root(options)?);
    let mut report = Report { console: console.clone(), json: options.json, checks: 0, failed: 0 };

    let found = settings(options, &mut |finding| report.add(finding));
    let has_endpoint = found.is_some();
    if let Some(settings) = found {
        let printer = || wire_printer(console.clone(), settings.redactor());
        let taps: Vec<Tap> = options.wire.then(printer).into_iter().collect();
        let longest = options.timeout.unwrap_or(LONGEST_REPLY).min(LONGEST_REPLY);
        doctor::endpoint(settings, taps, longest, &cancel, &mut |finding| report.add(finding));
    }
    if let Some(cause) = cancel.cause() {
        console.fresh_line();
        return Err(Stop::Cancelled(cause));
    }
    let path = std::env::var_os("PATH").unwrap_or_default();
    let (columns, colours) = (console.columns(), console.paint() == Paint::Colour);
    let machine = Machine { workspace: &workspace, state: state_dir(), path: &path, columns, colours };
    doctor::machine(&machine, &mut |finding| report.add(finding));
    report.end(has_endpoint)
}

/// The settings of the endpoint, if there are any that can be used; which source they come from is a finding.
fn settings(options: &Options, tell: doctor::Tell) -> Option<crate::endpoint::Settings> {
    let (flags, places) = (&options.endpoint, places());
    let found =
        config::find(flags, &places, Reach::All).and_then(|found| Ok((found, config::sources(flags, &places)?)));
    let (found, Sources { used, ignored }) = match found {
        Ok(found) => found,
        Err(why) => {
            tell(Finding::fail("settings", why));
            return None;
        }
    };
    let beside =
        if ignored.is_empty() { String::new() } else { format!("; set, and not used: {}", ignored.join("; ")) };
    tell(match used {
        Some(used) => Finding { check: "settings", verdict: Verdict::Ok, text: format!("{used}{beside}") },
        None => Finding::note("settings", format!("no endpoint is set up{beside}; see mini --help. Labs need none")),
    });
    found.settings
}

/// What has been found so far, printed as it comes.
struct Report {
    console: Console,
    json: bool,
    checks: usize,
    failed: usize,
}

impl Report {
    fn add(&mut self, finding: Finding) {
        self.checks += 1;
        self.failed += usize::from(finding.verdict == Verdict::Fail);
        self.console.answer(&if self.json { json(&finding) } else { line(&finding) });
        self.console.passing("…");
    }

    fn end(self, has_endpoint: bool) -> Result<Exit, Stop> {
        let summary = match (self.failed, has_endpoint) {
            (0, true) => "Ready: all that is needed works.".to_owned(),
            (0, false) => {
                "The machine is ready. Without an endpoint, only labs with their recorded model work.".to_owned()
            }
            (failed, _) => format!("Not ready: {failed} of {} checks failed.", self.checks),
        };
        match self.json {
            true => self.console.fresh_line(),
            false => self.console.answer(&summary),
        }
        match self.console.stdout() {
            Stdout::Failed(why) => Err(Stop::Failed(why)),
            _ => Ok(Exit { code: u8::from(self.failed > 0), cause: None }),
        }
    }
}

/// `FAIL  key        …`, in one line and safe to show: much of it is a server's words.
fn line(finding: &Finding) -> String {
    let verdict = match finding.verdict {
        Verdict::Ok => "ok",
        Verdict::Note => "note",
        Verdict::Fail => "FAIL",
    };
    let text = finding.text.split_whitespace().collect::<Vec<_>>().join(" ");
    format!("{verdict:<5} {:<10} {}", finding.check, sanitize(&text))
}

fn json(finding: &Finding) -> String {
    serde_json::to_string(finding).unwrap_or_default() // three texts cannot fail to serialise
}
