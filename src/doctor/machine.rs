//! The machine: programs, directories, terminal. Nothing is asked of the network, and nothing is written.
//!
//! What is missing is said with what it is for, so that a teacher can decide whether it matters today.

use super::{Finding, Tell};
use rustix::fs::{Access, access};
use std::ffi::OsStr;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

/// What is looked at; arguments, so that tests need no other machine.
pub struct Machine<'a> {
    /// Where the agent works.
    pub workspace: &'a Path,
    /// Where logs and the private directories of runs are kept, or why there is no such place.
    pub state: Result<PathBuf, String>,
    /// `PATH`.
    pub path: &'a OsStr,
    /// Columns of the terminal; `None` if standard error is none.
    pub columns: Option<usize>,
    /// Whether the terminal shows colours.
    pub colours: bool,
}

/// Looks at the machine.
pub fn machine(machine: &Machine, tell: Tell) {
    tell(shell(machine.path));
    tell(programs(machine.path));
    tell(workspace(machine.workspace));
    tell(state(&machine.state));
    tell(terminal(machine.columns, machine.colours));
    tell(sandbox());
}

/// What commands run in.
fn shell(path: &OsStr) -> Finding {
    match (is_there("bash", path), is_there("sh", path)) {
        (true, true) => Finding::ok("shell", "bash and sh"),
        (false, true) => {
            Finding::note("shell", "no bash: commands run in sh, and some that models write do not work there")
        }
        (_, false) => Finding::fail("shell", "no sh in PATH: no command can be run; install one, or mend PATH"),
    }
}

/// What models, labs and the gate's list use.
const PROGRAMS: &[(&str, &str)] = &[
    ("git", "reviewing changes, and some labs"),
    ("awk", "some labs"),
    ("rg", "fast searching; models can use grep"),
    ("tree", "listing; models can use ls"),
];

fn programs(path: &OsStr) -> Finding {
    let missing = PROGRAMS.iter().filter(|(name, _)| !is_there(name, path));
    let missing: Vec<String> = missing.map(|(name, what)| format!("{name} ({what})")).collect();
    let names = PROGRAMS.iter().map(|(name, _)| *name).collect::<Vec<_>>().join(", ");
    match missing.is_empty() {
        true => Finding::ok("programs", names),
        false => Finding::note("programs", format!("missing: {}; install what you need", missing.join(", "))),
    }
}

fn is_there(name: &str, path: &OsStr) -> bool {
    std::env::split_paths(path)
        .map(|dir| dir.join(name))
        .any(|file| file.metadata().is_ok_and(|found| found.is_file() && found.permissions().mode() & 0o111 != 0))
}

fn workspace(dir: &Path) -> Finding {
    let shown = dir.display();
    match access(dir, Access::READ_OK | Access::WRITE_OK | Access::EXEC_OK) {
        _ if !dir.is_dir() => {
            Finding::fail("workspace", format!("{shown} is not a directory; name one with --workspace"))
        }
        Ok(()) => Finding::ok("workspace", format!("{shown} can be written")),
        Err(why) => {
            let words = format!(
                "{shown} cannot be written ({why}): nothing can be changed there; name another with --workspace"
            );
            Finding::fail("workspace", words)
        }
    }
}

/// The directory need not be there yet: then the nearest one above it has to be writable.
fn state(dir: &Result<PathBuf, String>) -> Finding {
    let dir = match dir {
        Ok(dir) => dir,
        Err(why) => return Finding::note("state", format!("{why}: no session log is kept")),
    };
    let nearest = dir.ancestors().find(|dir| dir.exists()).unwrap_or(Path::new("/"));
    match access(nearest, Access::WRITE_OK | Access::EXEC_OK) {
        Ok(()) if nearest.is_dir() => Finding::ok("state", format!("{} can be written", dir.display())),
        _ => Finding::note("state", format!("{} cannot be written: no session log is kept", dir.display())),
    }
}

fn terminal(columns: Option<usize>, colours: bool) -> Finding {
    match (columns, colours) {
        (None, _) => Finding::note("terminal", "standard error is none: plain words, no questions"),
        (Some(columns @ 0..80), _) => Finding::note("terminal", format!("{columns} columns: 80 or more read better")),
        (Some(columns), false) => Finding::note("terminal", format!("{columns} columns, no colours (TERM, NO_COLOR)")),
        (Some(columns), true) => Finding::ok("terminal", format!("{columns} columns, with colours")),
    }
}

/// Whether commands can be confined by the kernel. Its own list of security modules is the proof; where that cannot be
/// read (containers), the kernel's version says only that it may be so.
fn sandbox() -> Finding {
    let read = |path: &str| std::fs::read_to_string(path).ok();
    landlock(read("/sys/kernel/security/lsm").as_deref(), read("/proc/sys/kernel/osrelease").as_deref())
}

fn landlock(modules: Option<&str>, release: Option<&str>) -> Finding {
    match (modules, release.and_then(version)) {
        (Some(modules), _) if modules.trim().split(',').any(|name| name == "landlock") => {
            Finding::ok("sandbox", "the kernel has Landlock")
        }
        (Some(_), _) => {
            Finding::note("sandbox", "Landlock is switched off in this kernel: commands cannot be confined")
        }
        (None, Some(version)) if version >= (5, 13) => {
            Finding::ok("sandbox", "the kernel is new enough for Landlock; whether it is on cannot be seen from here")
        }
        (None, _) => Finding::note("sandbox", "no Landlock here (it needs Linux 5.13): commands cannot be confined"),
    }
}

/// Major and minor number of `6.1.0-13-amd64`.
fn version(release: &str) -> Option<(u32, u32)> {
    let mut numbers = release.split(|c: char| !c.is_ascii_digit()).map(str::parse);
    Some((numbers.next()?.ok()?, numbers.next()?.ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::doctor::Verdict;

    #[test]
    fn a_program_counts_if_it_can_be_run() {
        let dir = tempfile::tempdir().unwrap();
        std::fs::write(dir.path().join("sh"), "").unwrap();
        assert_eq!(shell(dir.path().as_os_str()).verdict, Verdict::Fail);
        std::fs::set_permissions(dir.path().join("sh"), std::fs::Permissions::from_mode(0o755)).unwrap();
        assert_eq!(shell(dir.path().as_os_str()).verdict, Verdict::Note);
        assert!(programs(dir.path().as_os_str()).text.contains("rg (fast searching"));
    }

    #[test]
    fn a_place_that_is_not_there_yet_is_judged_by_the_one_above() {
        let dir = tempfile::tempdir().unwrap();
        assert_eq!(state(&Ok(dir.path().join("a/b"))).verdict, Verdict::Ok);
        std::fs::write(dir.path().join("file"), "").unwrap();
        assert_eq!(state(&Ok(dir.path().join("file/b"))).verdict, Verdict::Note);
        assert_eq!(workspace(&dir.path().join("nowhere")).verdict, Verdict::Fail);
        assert_eq!(workspace(dir.path()).verdict, Verdict::Ok);
    }

    #[test]
    fn landlock_is_proved_by_the_list_and_guessed_by_the_version() {
        assert_eq!(landlock(Some("lockdown,landlock,yama\n"), None).verdict, Verdict::Ok);
        assert_eq!(landlock(Some("lockdown,yama"), Some("6.1.0")).verdict, Verdict::Note);
        assert!(landlock(None, Some("6.1.0-13-amd64\n")).text.contains("cannot be seen"));
        assert_eq!(landlock(None, Some("4.19.0")).verdict, Verdict::Note);
        assert_eq!(landlock(None, None).verdict, Verdict::Note);
    }

    #[test]
    fn a_narrow_terminal_is_a_note() {
        assert_eq!(terminal(Some(40), true).verdict, Verdict::Note);
        assert_eq!(terminal(Some(120), true).verdict, Verdict::Ok);
        assert_eq!(terminal(None, false).verdict, Verdict::Note);
    }
}
