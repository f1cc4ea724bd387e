//! A kind of exam case: answers to questions about a file, each with the command that shows it.
//!
//! An answer can be copied from a neighbour, a command can print what its author has counted. So each command is run a
//! second time, on a file that the participant has not seen: only one that really looks shows the other answer, too. And
//! it has to *find* it: printing the whole file shows every answer, and none.
//!
//! The commands are the participant's own words for the shell, run in the exam's room as he runs them in the demo.

use super::Lab;
use super::manifest::{Answers, Case, Question};
use super::report::{Miss, Test};
use super::room::{Ended, Room, Stdin};
use super::shelf::Files;
use std::path::Path;

/// A command that finds something prints so many lines at most.
const MOST_LINES: usize = 3;

/// What the participant wrote about one question.
#[derive(Debug, Default, PartialEq, Eq)]
struct Given {
    answer: String,
    command: String,
}

/// One line for the file, and three for each question: the answer, the command, the command on the hidden file.
pub fn compare(case: &Case, wanted: &Answers, lab: &Lab, files: &Files, exe: &Path) -> Result<Vec<Test>, String> {
    let text = files.get(&wanted.file).map_or(String::new(), |bytes| String::from_utf8_lossy(bytes).into_owned());
    let hidden = lab.files.get(&wanted.hidden).ok_or_else(|| format!("lab.json names no file: {}", wanted.hidden))?;
    let mut others = files.clone();
    others.insert(wanted.about.clone(), hidden.clone());
    let rooms = [Room::new(files, lab.about.git, &[])?, Room::new(&others, lab.about.git, &[])?];
    let open = || Some(wanted.file.clone());
    let unfilled = (1..=wanted.questions.len()).find(|number| given(&text, *number) == Given::default());
    let miss = unfilled.map(|number| Miss {
        expected: format!("lines that begin with `answer {number}:` and `command {number}:`"),
        got: "neither".into(),
        open: open(),
    });
    let mut tests = vec![Test::new(&case.name, miss)];
    for (number, question) in (1..).zip(&wanted.questions) {
        let given = given(&text, number);
        let mut add = |part: String, wrong: Option<(String, String)>| {
            let miss = wrong.map(|(expected, got)| Miss { expected, got, open: open() });
            tests.push(Test { case: case.name.clone(), part: Some(part), miss });
        };
        add(format!("answer {number}: {}", question.ask), disagreement(question, &given));
        let [here, there] = &rooms;
        let shown = question.answers.first().map_or("", String::as_str);
        add(format!("command {number} shows it"), unshown(&given, wanted, shown, here, exe)?);
        let elsewhere = unshown(&given, wanted, &question.hidden, there, exe)?;
        let elsewhere = elsewhere.map(|(_, got)| ("the answer of another run, with the same command".into(), got));
        add(format!("command {number} shows it in a run you have not seen, too"), elsewhere);
    }
    Ok(tests)
}

/// What the file says to a question. Indented lines go on with a command.
fn given(text: &str, number: usize) -> Given {
    let (mut given, mut open) = (Given::default(), false);
    for line in text.lines() {
        let value = |what: &str| line.strip_prefix(&format!("{what} {number}:")).map(|rest| rest.trim().to_owned());
        if let Some(answer) = value("answer") {
            given.answer = answer;
            open = false;
        } else if let Some(command) = value("command") {
            given.command = command;
            open = true;
        } else if open && line.starts_with([' ', '\t']) {
            given.command = format!("{} {}", given.command, line.trim());
        } else {
            open = false;
        }
    }
    given
}

/// (expected, got) where the answer is none of the right ones. The right one is not told.
fn disagreement(question: &Question, given: &Given) -> Option<(String, String)> {
    let plain = |text: &str| text.to_lowercase().split_whitespace().collect::<Vec<_>>().join(" ");
    let right = question.answers.iter().any(|answer| plain(answer) == plain(&given.answer));
    let got = if given.answer.is_empty() { "no answer yet".into() } else { format!("{:?}", given.answer) };
    (!right).then(|| ("the right answer, spelt as the tree has it".into(), got))
}

/// (expected, got) where the command does not show this text, in few lines.
fn unshown(
    given: &Given,
    wanted: &Answers,
    shown: &str,
    room: &Room,
    exe: &Path,
) -> Result<Option<(String, String)>, String> {
    let expected = format!("a line or two with the answer, by a command with `{}`", wanted.uses);
    let command = given.command.replace("cargo run -q --", "mini");
    if !command.contains(&wanted.uses) {
        return Ok(Some((expected, format!("the command {command:?}"))));
    }
    let Ended { stdout, last_words, overdue, .. } = shell(&command, room, exe)?;
    let lines: Vec<&str> = stdout.lines().filter(|line| !line.trim().is_empty()).collect();
    let got = match lines[..] {
        _ if overdue => "it took too long and was stopped".into(),
        [] => format!("nothing was printed: {last_words}"),
        [..] if lines.len() > MOST_LINES => format!("{} lines: which of them is the answer?", lines.len()),
        _ if lines.iter().any(|line| has_word(line, shown)) => return Ok(None),
        [first, ..] => format!("`{}`", first.trim()),
    };
    Ok(Some((expected, got)))
}

/// Runs a command of the participant's in the demo, with this very program as `mini`.
fn shell(command: &str, room: &Room, exe: &Path) -> Result<Ended, String> {
    let bin = room.demo().with_file_name("bin");
    let failed = |e: std::io::Error| format!("make {}: {e}", bin.display());
    std::fs::create_dir_all(&bin).map_err(failed)?;
    let program = bin.join("mini");
    if program.symlink_metadata().is_err() {
        std::os::unix::fs::symlink(exe, &program).map_err(failed)?;
    }
    // A slip like `| yes` must not fill the disk: a megabyte at most, in blocks of 512 bytes.
    let script = "ulimit -f 2048; PATH=$0:$PATH; export PATH; eval \"$1\"";
    let args = ["-c", script, &bin.display().to_string(), command].map(str::to_owned);
    room.run(Path::new("/bin/sh"), &args, Stdin::default(), None)
}

/// Whether a line holds a text that is not a part of a longer word or number.
fn has_word(line: &str, text: &str) -> bool {
    let joins = |c: char| c.is_alphanumeric() || c == '.';
    line.match_indices(text).any(|(at, _)| {
        let (before, behind) = (&line[..at], &line[at + text.len()..]);
        !before.ends_with(joins) && !behind.starts_with(joins)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str =
        "# 1. What?\nanswer 1:  Edit  it \ncommand 1: mini --x f |\n    grep a\n\n  stray\nanswer 2: b\n";

    #[test]
    fn answers_and_commands_are_found_by_their_number() {
        let want = Given { answer: "Edit  it".into(), command: "mini --x f | grep a".into() };
        assert_eq!(given(TEXT, 1), want);
        assert_eq!(given(TEXT, 2), Given { answer: "b".into(), command: String::new() });
        assert_eq!(given(TEXT, 3), Given::default());
    }

    #[test]
    fn an_answer_may_be_spelt_in_several_ways_and_a_wrong_one_does_not_tell_the_right_one() {
        let question = Question { ask: "What?".into(), answers: vec!["edit it".into()], hidden: "x".into() };
        assert_eq!(disagreement(&question, &given(TEXT, 1)), None);
        let (expected, got) = disagreement(&question, &given(TEXT, 2)).unwrap();
        assert!(got == "\"b\"" && !expected.contains("edit"), "{expected} {got}");
    }

    #[test]
    fn a_number_is_found_as_a_whole_only() {
        assert!(has_word("  41.600   - |##| write a", "41.600") && has_word("write a", "write"));
        assert!(!has_word("141.600 x", "41.600") && !has_word("41.6001", "41.600") && !has_word("rewrite", "write"));
    }

    #[test]
    fn a_command_has_to_find_the_answer_with_the_program_itself() {
        let room = Room::new(&Files::from([("f".into(), b"one\ntwo\nthree\nfour\n".to_vec())]), false, &[]).unwrap();
        let wanted = Answers {
            file: "a".into(),
            about: "f".into(),
            hidden: "h".into(),
            uses: "mini f".into(),
            questions: vec![],
        };
        let see = |command: &str| {
            let given = Given { answer: String::new(), command: command.into() };
            // `cat` plays the program.
            unshown(&given, &wanted, "two", &room, Path::new("/bin/cat")).unwrap().map(|(_, got)| got)
        };
        assert_eq!(see("mini f | grep t"), None);
        assert_eq!(see("cargo run -q -- f | grep two"), None);
        assert_eq!(see("mini f").unwrap(), "4 lines: which of them is the answer?");
        assert_eq!(see("mini f | grep one").unwrap(), "`one`");
        assert_eq!(see("echo two").unwrap(), "the command \"echo two\"");
        assert!(see("mini f | grep five; nonsense").unwrap().starts_with("nothing was printed: "));
        assert!(see("mini f | yes").unwrap().ends_with("lines: which of them is the answer?"));
    }
}
