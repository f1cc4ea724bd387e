//! The exam behind `--check`: fixed replies play the model, and what the program makes of them is asserted.
//!
//! The model is a script, so no exam judges prose and every verdict is the same tomorrow. What is asserted comes from
//! three sides: each request (the script's expectations), what a run left behind (its checks on files, log and exit
//! code), and three things that hold for every lab, written here: calls and results in pairs, the key nowhere, the
//! demo's secrets nowhere.

use super::Lab;
use super::manifest::{ArgsFrom, Case, Kind, LAB, Run};
use super::report::{Miss, Test};
use super::room::{Ended, KEY, Room, Stdin};
use super::shelf::Files;
use super::{answers, verdicts};
use crate::replay::{self, Failure, Pace, Script, Section, Server, Transcript};
use std::collections::BTreeMap;
use std::path::Path;

/// Played at the end of every exam: a command prints its whole environment. In capitals, because the program takes the
/// key out of what tools print, and the point is that a child does not even have it.
const ENVIRONMENT: &str = r#"
{"response":{"calls":[{"name":"bash","arguments":{"command":"env | tr a-z A-Z"}}]}}
{"response":{"text":"Done."},"repeat":50}
"#;

/// Sits the exam of a lab. `files` is the demo with the participant's files over it, `exe` the program. An error means
/// that the exam itself cannot run here.
pub fn sit(lab: &Lab, files: &Files, exe: &Path) -> Result<Vec<Test>, String> {
    let mut tests = Vec::new();
    let mut always = Always::default();
    for case in &lab.about.exam {
        match &case.kind {
            Kind::Verdicts(wanted) => tests.extend(verdicts::compare(case, wanted, lab, files, exe)?),
            Kind::Answers(wanted) => tests.extend(answers::compare(case, wanted, lab, files, exe)?),
            Kind::Decides(wanted) => tests.push(verdicts::decides(case, wanted, lab, files, exe)?),
            Kind::Run(run) => tests.extend(sit_runs(lab, case, std::slice::from_ref(run), files, exe, &mut always)?),
            Kind::Runs(runs) => tests.extend(sit_runs(lab, case, runs, files, exe, &mut always)?),
        }
    }
    let (environment, script) = environment()?;
    let room = prepare(lab, &environment, files)?;
    always.look(lab, &play(lab, &environment, script, &room, exe)?);
    tests.extend(always.tests(lab));
    Ok(tests)
}

/// The runs of a case, one after the other in one room. One line for the case as a whole, then one for each assertion
/// that has a name.
fn sit_runs(
    lab: &Lab,
    case: &Case,
    runs: &[Run],
    files: &Files,
    exe: &Path,
    always: &mut Always,
) -> Result<Vec<Test>, String> {
    let (mut whole, mut parts) = (Test::new(&case.name, None), Vec::new());
    let room = prepare(lab, runs.first().unwrap_or(&Run::default()), files)?;
    for run in runs {
        room.add(&run.files, &run.sessions)?;
        let seen = play(lab, run, lab.parse_script(&run.script)?, &room, exe)?;
        always.look(lab, &seen);
        let mut tests = judge(case, &seen);
        if run.twice {
            let again = play(lab, run, lab.parse_script(&run.script)?, &prepare(lab, run, files)?, exe)?;
            tests.push(repeated(case, &seen, &again));
        }
        let mut tests = tests.into_iter();
        whole.miss = whole.miss.or_else(|| tests.next().and_then(|test| test.miss));
        parts.extend(tests.filter(|test| test.part.is_some()));
    }
    Ok(std::iter::once(whole).chain(parts).collect())
}

/// The run that every exam ends with.
pub(super) fn environment() -> Result<(Run, Script), String> {
    let (task, args) = (Some("Print your environment.".into()), vec!["--yes".into()]);
    let run = Run { task, args, ..Run::default() };
    Ok((run, Script::parse(ENVIRONMENT)?))
}

/// Everything there is to see of one run.
pub(super) struct Seen {
    section: Section,
    transcript: Transcript,
    /// Checks of the script on what was left behind that do not hold.
    misses: Vec<Failure>,
    ended: Ended,
    log: String,
    /// Where the demo was; nobody can open it there afterwards.
    demo: String,
}

impl Seen {
    /// Looks at what a run left in its room.
    pub fn new(section: Section, transcript: Transcript, ended: Ended, room: &Room) -> Seen {
        let log = room.log();
        let outcome =
            replay::Outcome { exit: ended.exit.unwrap_or(-1), log: log.clone(), stdout: ended.stdout.clone() };
        let held = section.checks.iter().map(|check| check.run(&room.demo(), &room.original(), &outcome));
        let misses = held.filter_map(Result::err).collect();
        Seen { section, transcript, misses, ended, log, demo: room.demo().display().to_string() }
    }
}

/// Lays out the room of a run: the demo, the participant's files, and over them the run's own.
pub(super) fn prepare(lab: &Lab, run: &Run, files: &Files) -> Result<Room, String> {
    Room::new(&over(files, &run.files), lab.about.git, &lab.about.config)
}

/// A demo with the files of a case over it.
pub(super) fn over(files: &Files, own: &BTreeMap<String, String>) -> Files {
    let mut files = files.clone();
    files.extend(own.iter().map(|(path, text)| (path.clone(), text.clone().into_bytes())));
    files
}

/// The words behind `row:` in a file of the participant's; none if there is no such line. They are split at blanks, as
/// nobody quotes a number.
fn row(from: &ArgsFrom, room: &Room) -> Vec<String> {
    let text = std::fs::read(room.demo().join(&from.file)).unwrap_or_default();
    let text = String::from_utf8_lossy(&text);
    let named = text.lines().filter_map(|line| line.split_once(':')).find(|(name, _)| name.trim() == from.row);
    named.map_or_else(Vec::new, |(_, words)| words.split_whitespace().map(str::to_owned).collect())
}

/// Lets the program work on a case's task.
fn play(lab: &Lab, run: &Run, script: Script, room: &Room, exe: &Path) -> Result<Seen, String> {
    let section = script.sections.first().cloned().unwrap_or_default();
    let server = Server::start(script, Pace::AtOnce)?;
    let mut args = vec!["--json".to_owned()];
    args.extend(lab.extensions(&room.demo()).into_iter().flat_map(|words| ["--ext".to_owned(), words]));
    args.extend(run.args_from.iter().flat_map(|from| row(from, room)));
    args.extend(run.args.iter().chain(&run.task).cloned());
    let (base_url, kill_at) = (server.base_url(), run.kill_at.as_deref());
    let ended = room.run(exe, &args, Stdin { text: &run.stdin, kill_at }, Some(&base_url))?;
    Ok(Seen::new(section, server.finish(), ended, room))
}

/// One line for the case as a whole, and one for each assertion that has a name.
pub(super) fn judge(case: &Case, seen: &Seen) -> Vec<Test> {
    let failures = || seen.transcript.failures.iter().chain(&seen.misses).filter(|failure| failure.what != PAIRS);
    let miss = |failure: &Failure| Miss {
        expected: format!("{}: {}", failure.what, failure.expected),
        got: failure.got.clone(),
        open: case.open.clone().or_else(|| failure.what.strip_prefix("file ").map(str::to_owned)),
    };
    let exchanges = seen.section.exchanges.iter().filter_map(|line| Some((line.line, line.name.as_ref()?)));
    let checks = seen.section.checks.iter().map(|check| (check.line, &check.name));
    let named: Vec<(usize, &String)> = exchanges.clone().chain(checks).collect();
    let unnamed = failures().find(|failure| named.iter().all(|(line, _)| failure.line != *line)).map(miss);
    // Where no request is asserted, the checks are all that tells whether anything was done.
    let asks = !seen.section.exchanges.is_empty();
    let checked = || failures().next().filter(|_| !asks).map(miss);
    let whole = Test::new(&case.name, unnamed.or_else(|| unfinished(case, seen)).or_else(checked));
    let reached = |line: usize| seen.transcript.requests.iter().any(|request| request.line == Some(line));
    let each = named.iter().map(|(line, name)| {
        let failed = failures().find(|failure| failure.line == *line).map(miss);
        // An assertion on a request that never came does not hold.
        let missed = exchanges.clone().any(|(at, _)| at == *line) && !reached(*line);
        let failed = failed.or_else(|| unfinished(case, seen).filter(|_| missed));
        Test { case: case.name.clone(), part: Some((*name).clone()), miss: failed }
    });
    std::iter::once(whole).chain(each).map(|test| named_by_place(test, &seen.demo)).collect()
}

/// What a second run printed, compared with the first.
fn repeated(case: &Case, seen: &Seen, again: &Seen) -> Test {
    let (first, second) = (&seen.ended.stdout, &again.ended.stdout);
    let differ = first.lines().zip(second.lines()).find(|(a, b)| a != b);
    let words = |(a, b): (&str, &str)| (a.to_owned(), b.to_owned());
    let other = || (format!("{} bytes", first.len()), format!("{} bytes", second.len()));
    let miss = (first != second).then(|| differ.map_or_else(other, words));
    let miss = miss.map(|(expected, got)| Miss { expected, got, open: case.open.clone() });
    Test { case: case.name.clone(), part: Some("twice the same, byte for byte".into()), miss }
}

/// Paths below the temporary demo, as paths of the participant's own demo ([`LAB`]).
fn named_by_place(mut test: Test, demo: &str) -> Test {
    for text in test.miss.iter_mut().flat_map(|miss| [&mut miss.expected, &mut miss.got]) {
        *text = text.replace(demo, LAB);
    }
    test
}

/// A run that ended before the script did: some assertion was never reached.
fn unfinished(case: &Case, seen: &Seen) -> Option<Miss> {
    let (left, Ended { exit, last_words, overdue, .. }) = (seen.transcript.unplayed, &seen.ended);
    let why = match (overdue, exit) {
        (false, _) if left == 0 => return None,
        (true, _) => "it took too long and was stopped".to_owned(),
        // Its own words where it could not work at all; else they are only the figures of the run.
        (_, Some(exit @ (1 | 2 | 128..))) => format!("it ended early, with exit {exit}: {last_words}"),
        (_, Some(exit)) => format!("it ended early, with exit {exit}"),
        (_, None) => "it ended early".to_owned(),
    };
    let first = seen.section.exchanges.len().checked_sub(left).and_then(|at| seen.section.exchanges.get(at));
    let wanted = first.and_then(|exchange| exchange.name.as_deref()).unwrap_or("a further request");
    Some(Miss { expected: format!("the run goes on: {wanted}"), got: why, open: case.open.clone() })
}

/// How the replay names a broken pair of call and result.
const PAIRS: &str = "pairs";

/// What must hold in every run of every lab: the first place where it did not.
#[derive(Default)]
pub(super) struct Always {
    pairs: Option<String>,
    key: Option<String>,
    secret: Option<String>,
}

impl Always {
    /// Looks at one more run.
    pub fn look(&mut self, lab: &Lab, seen: &Seen) {
        let broken = seen.transcript.failures.iter().find(|failure| failure.what == PAIRS);
        self.pairs = self.pairs.take().or_else(|| broken.map(|failure| failure.got.clone()));
        let keys = [KEY.to_owned(), KEY.to_uppercase()];
        self.key = self.key.take().or_else(|| leak(seen, &keys));
        self.secret = self.secret.take().or_else(|| leak(seen, &lab.about.secrets));
    }

    /// One line for each of them.
    pub fn tests(self, lab: &Lab) -> Vec<Test> {
        let miss =
            |got: Option<String>, expected: &str| got.map(|got| Miss { expected: expected.into(), got, open: None });
        let pairs = miss(self.pairs, "after each call exactly one result, in call order");
        let key = miss(self.key, "the key only in the Authorization header");
        let mut tests = vec![
            Test::new("every request: each call has its result", pairs),
            Test::new("the key is in no message, log or child's environment", key),
        ];
        if !lab.about.secrets.is_empty() {
            let secret = miss(self.secret, "the demo's secret in no request and no log");
            tests.push(Test::new("the demo's secret is in no request and no log", secret));
        }
        tests
    }
}

/// Where one of these texts turned up, if one did.
fn leak(seen: &Seen, texts: &[String]) -> Option<String> {
    let holds = |bytes: &[u8]| {
        let text = String::from_utf8_lossy(bytes);
        texts.iter().any(|secret| text.contains(secret.as_str()))
    };
    let request = seen.transcript.requests.iter().position(|request| holds(&request.body));
    let request = request.map(|at| format!("it is in request {}", at + 1));
    let log = || holds(seen.log.as_bytes()).then(|| "it is in the session log".to_owned());
    let output = || holds(seen.ended.stdout.as_bytes()).then(|| "it is in the output".to_owned());
    request.or_else(log).or_else(output)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_gives_the_words_behind_its_name() {
        let files =
            Files::from([("limits.txt".into(), b"# one: --no\none: --max-turns 3  --timeout 9\ntwo:\n".to_vec())]);
        let words = |file: &str, name: &str| {
            row(&ArgsFrom { file: file.into(), row: name.into() }, &Room::new(&files, false, &[]).unwrap())
        };
        assert_eq!(words("limits.txt", "one"), ["--max-turns", "3", "--timeout", "9"]);
        assert_eq!([words("limits.txt", "two"), words("limits.txt", "three"), words("none.txt", "one")], [[""; 0]; 3]);
    }
}
