//! What write and edit have in common: a file's new bytes, shown as a diff, put in place if the file is still the one
//! that the diff was made from.

use crate::diff::{self, Diff};
use crate::tool::{Act, Check, Context, Preview, Question, Scope};
use crate::workspace::{Place, Seen, Trouble, Workspace};
use std::fs::File;
use std::io::Read;

/// A proposed change of one file.
pub struct Change {
    /// The tool's name: begins every message.
    pub verb: &'static str,
    /// Which file.
    pub place: Place,
    /// What the file was when the change was made up.
    pub seen: Seen,
    /// All of its new bytes.
    pub new: Vec<u8>,
}

impl Change {
    /// Asks with the diff; `report` makes the result's text of what the file was changed to.
    pub fn ask<'a>(self, diff: Diff, report: impl FnOnce(&[u8]) -> String + 'a) -> Check<'a> {
        let path = display(&self.place);
        let question = Question {
            text: format!("{} {path} ({})", self.verb, diff.counts()),
            why: None,
            preview: Preview::Diff(diff.text),
            scope: Scope::Files,
        };
        let act: Act = Box::new(move |cx: &mut Context| {
            if let Err(why) = cx.kept.before(&cx.workspace, &self.place, &self.new) {
                cx.events.notice(why);
            }
            cx.workspace.replace(&self.place, &self.new, &self.seen)?;
            cx.changed(&path);
            Ok(report(&self.new))
        });
        Check::Ask(question, act)
    }
}

/// A file as it is now: its bytes, and what to recognise it by. `Ok(Err(size))` if it has more than `most` bytes.
pub fn snapshot(
    workspace: &Workspace,
    place: &Place,
    verb: &str,
    most: u64,
) -> Result<(Seen, Result<Vec<u8>, u64>), Trouble> {
    let file = workspace.open_place(place)?;
    read(&file, most).map_err(|e| Trouble::Error(format!("{verb} {:?}: cannot be read: {e}", display(place))))
}

fn read(file: &File, most: u64) -> std::io::Result<(Seen, Result<Vec<u8>, u64>)> {
    let (seen, mut bytes) = (Seen::of(file)?, Vec::new());
    let size = file.metadata()?.len();
    if size > most {
        return Ok((seen, Err(size)));
    }
    file.take(most).read_to_end(&mut bytes)?;
    Ok((seen, Ok(bytes)))
}

/// The diff of two files' bytes, as a person sees them.
pub fn diff(old: &[u8], new: &[u8], place: &Place) -> Diff {
    diff::unified(&String::from_utf8_lossy(old), &String::from_utf8_lossy(new), &display(place))
}

/// The path below the workspace.
pub fn display(place: &Place) -> String {
    place.relative().to_string_lossy().into_owned()
}
