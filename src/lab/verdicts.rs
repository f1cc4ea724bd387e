//! Two kinds of exam case about decisions, `RUN | ls -la`, and what the program itself decides (`--why`): a participant's
//! file of decisions that has to agree with the program, and a list that the program has to agree with, set up as the
//! participant has set it up.
//!
//! A wrong line is named, and its answer is not: the participant shall ask `--why` and read the reason.

use super::manifest::{Case, Decides, LAB, Verdicts};
use super::report::{Miss, Test};
use super::room::{Room, Stdin};
use super::shelf::Files;
use super::words::run_words;
use super::{Lab, exam};
use std::path::Path;

/// The words a decision can be.
const WORDS: [&str; 3] = ["RUN", "ASK", "REFUSE"];

/// One line of the file.
#[derive(Debug, PartialEq, Eq)]
struct Row {
    /// From 1.
    line: usize,
    verdict: String,
    command: String,
}

/// Two assertions: the commands are the shipped ones, and every verdict is the program's own.
pub fn compare(case: &Case, wanted: &Verdicts, lab: &Lab, files: &Files, exe: &Path) -> Result<Vec<Test>, String> {
    let file = &wanted.file;
    let shipped = lab.files.get(&format!("demo/{file}")).ok_or_else(|| format!("lab.json names no file: {file}"))?;
    let (shipped, theirs) = (rows(shipped), rows(files.get(file).map_or(&[], Vec::as_slice)));
    let room = Room::new(files, lab.about.git, &lab.about.config)?;
    let mut decided = Vec::new();
    for row in &shipped {
        let (word, said) = why(&room, exe, &row.command)?;
        if !WORDS.contains(&word.as_str()) {
            return Err(format!("`--why` gave no verdict on `{}`: {said}", row.command));
        }
        decided.push((row.command.as_str(), word));
    }
    let miss = |(expected, got)| Miss { expected, got, open: Some(file.clone()) };
    Ok(vec![
        Test::new(format!("{file} still holds its {} commands", shipped.len()), altered(&shipped, &theirs).map(miss)),
        Test::new(&case.name, disagreement(&theirs, &decided, lab.number()).map(miss)),
    ])
}

/// One assertion: the program decides every row as it stands there. The first that it does not is shown whole.
pub fn decides(case: &Case, wanted: &Decides, lab: &Lab, files: &Files, exe: &Path) -> Result<Test, String> {
    let rows = rows(lab.files.get(&wanted.rows).ok_or_else(|| format!("lab.json names no file: {}", wanted.rows))?);
    let room = Room::new(&exam::over(files, &wanted.files), lab.about.git, &lab.about.config)?;
    let (mut wrong, mut agree) = (None, 0);
    for row in &rows {
        let (word, said) = why(&room, exe, &row.command)?;
        match word == row.verdict && said.contains(&wanted.says) {
            true => agree += 1,
            false => wrong = wrong.or(Some((row, said))),
        }
    }
    let miss = wrong.map(|(row, said)| {
        let says = if wanted.says.is_empty() { String::new() } else { format!(", with `{}`", wanted.says) };
        let expected = format!("{} for `{}`{says}; {agree} of {} are so", row.verdict, row.command, rows.len());
        Miss { expected, got: said.replace(&room.demo().display().to_string(), LAB), open: case.open.clone() }
    });
    Ok(Test::new(&case.name, miss))
}

/// What the program decides on a command, as a word and in full: its verdict, or `ERROR` where it cannot be set up so.
fn why(room: &Room, exe: &Path, command: &str) -> Result<(String, String), String> {
    let ended = room.run(exe, &["--why".into(), command.into()], Stdin::default(), None)?;
    let word = ended.stdout.split(|c: char| !c.is_ascii_uppercase()).next().unwrap_or_default();
    Ok(match (ended.exit, WORDS.contains(&word)) {
        (_, true) => (word.into(), ended.stdout.trim().into()),
        (Some(2), _) => ("ERROR".into(), ended.last_words),
        _ => (String::new(), format!("{}{}", ended.stdout.trim(), ended.last_words)),
    })
}

/// The first command that is not the shipped one, as (expected, got).
fn altered(shipped: &[Row], theirs: &[Row]) -> Option<(String, String)> {
    let at = shipped.iter().zip(theirs).position(|(a, b)| a.command != b.command);
    let at = at.or((shipped.len() != theirs.len()).then(|| shipped.len().min(theirs.len())))?;
    let say = |row: Option<&Row>| row.map_or("nothing".into(), |row| format!("`{}`", row.command));
    Some((format!("command {}: {}", at + 1, say(shipped.get(at))), say(theirs.get(at))))
}

/// The first line that is not what the program decides, as (expected, got). `number` is the lab's, to ask in its demo.
fn disagreement(theirs: &[Row], decided: &[(&str, String)], number: &str) -> Option<(String, String)> {
    let right = |row: &&Row| decided.iter().any(|(command, word)| *command == row.command && *word == row.verdict);
    let agree = theirs.iter().filter(right).count();
    if agree == decided.len() && theirs.len() == agree {
        return None;
    }
    let wrong = theirs.iter().find(|row| !right(row));
    let got = wrong.map_or("too few lines".into(), |row| match WORDS.contains(&row.verdict.as_str()) {
        true => {
            let ask = format!("{} --lab {number} --why", run_words());
            format!("line {}: {} for `{}`. Ask `{ask}` for the reason", row.line, row.verdict, row.command)
        }
        false => format!("line {}: {:?} for `{}`, which is no verdict yet", row.line, row.verdict, row.command),
    });
    Some((format!("the gate's verdict on all {}; {agree} agree", decided.len()), got))
}

/// The lines of a file of decisions; blank lines and those that begin with `#` are left out.
fn rows(text: &[u8]) -> Vec<Row> {
    let text = String::from_utf8_lossy(text).into_owned();
    let lines = (1..).zip(text.lines()).filter(|(_, line)| !line.trim().is_empty() && !line.starts_with('#'));
    let row = |(line, text): (usize, &str)| {
        let (verdict, command) = text.split_once('|').unwrap_or(("", text));
        Row { line, verdict: verdict.trim().into(), command: command.trim().into() }
    };
    lines.map(row).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const SHIPPED: &str = "# two\n? | ls | wc -l\n\n? | rm a\n";

    fn decided() -> Vec<(&'static str, String)> {
        vec![("ls | wc -l", "RUN".into()), ("rm a", "ASK".into())]
    }

    fn wrong(theirs: &str) -> (bool, bool) {
        let (shipped, theirs) = (rows(SHIPPED.as_bytes()), rows(theirs.as_bytes()));
        (altered(&shipped, &theirs).is_some(), disagreement(&theirs, &decided(), "07").is_some())
    }

    #[test]
    fn the_command_begins_behind_the_first_bar() {
        let row = Row { line: 2, verdict: "?".into(), command: "ls | wc -l".into() };
        assert_eq!(rows(SHIPPED.as_bytes())[0], row);
    }

    #[test]
    fn right_answers_pass_and_every_trick_is_seen() {
        assert_eq!(wrong("RUN | ls | wc -l\nASK|rm a"), (false, false));
        assert_eq!(wrong(SHIPPED), (false, true));
        assert_eq!(wrong("ASK | ls | wc -l\nASK | rm a"), (false, true));
        assert_eq!(wrong("RUN | ls | wc -l"), (true, true));
        assert_eq!(wrong("RUN | ls | wc -l\nRUN | ls | wc -l"), (true, false));
        assert_eq!(wrong("RUN | ls\nASK | rm a"), (true, true));
        assert_eq!(wrong("RUN | ls | wc -l\nASK | rm a\nASK | rm a"), (true, true));
        assert_eq!(wrong(""), (true, true));
    }

    #[test]
    fn a_wrong_line_is_named_and_its_answer_is_not() {
        let (expected, got) = disagreement(&rows(b"RUN | ls | wc -l\nRUN | rm a"), &decided(), "07").unwrap();
        assert_eq!(expected, "the gate's verdict on all 2; 1 agree");
        assert!(
            got.starts_with("line 2: RUN for `rm a`") && got.contains("--lab 07 --why") && !got.contains("ASK"),
            "{got}"
        );
    }
}
