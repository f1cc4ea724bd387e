//! What commands leave in the background: `server &`. It lives until the run ends, and no longer.
//!
//! Each is a process group whose leader has been reaped, so is its number still ours? POSIX keeps a number out of use as
//! long as a *group* of that number has a living member, so a signal to a leftover cannot hit a stranger. It could if all
//! of the group ended and the number came round to a new group before we look again. So we look at every command, and
//! forget what is gone; what remains would take a whole cycle of process numbers between two looks. Rejected: leaving
//! every leader a zombie until the end, which closes that gap at the price of a zombie a command. (Where a group is
//! killed before its leader is reaped, as in `Running::kill`, there is no gap at all.)

use super::running::{GRACE, Running, SOON};
use rustix::process::{Pid, Signal, kill_process_group, test_kill_process_group};
use std::fs;
use std::io::{PipeReader, Read};
use std::time::Instant;

/// Pipes that are kept open; beyond that the oldest is closed.
const KEPT_PIPES: usize = 32;

/// The groups that still live.
#[derive(Default)]
pub(super) struct Leftovers {
    groups: Vec<Leftover>,
}

struct Leftover {
    group: Pid,
    /// Kept open and emptied, so that the process neither dies of SIGPIPE nor blocks on a full pipe.
    output: Option<PipeReader>,
}

impl Leftovers {
    /// Remembers what a command that has exited leaves behind; says whether there is something.
    pub(super) fn keep(&mut self, mut running: Running) -> bool {
        let alive = exists(running.group) && !only_zombies(running.group);
        if alive {
            let output = running.outputs.iter_mut().find_map(Option::take);
            self.groups.push(Leftover { group: running.group, output });
        }
        alive
    }

    /// Forgets groups that are gone, and empties the pipes of the others: what they print now belongs to no command.
    pub(super) fn look_after(&mut self) {
        self.groups.retain(|leftover| exists(leftover.group));
        let surplus = self.groups.len().saturating_sub(KEPT_PIPES);
        for (i, leftover) in self.groups.iter_mut().enumerate() {
            let Some(pipe) = &mut leftover.output else { continue };
            let closed = matches!(pipe.read(&mut [0; 4096]), Ok(0));
            if closed || i < surplus {
                leftover.output = None;
            }
        }
    }

    /// Ends all of them: SIGTERM, a short grace, SIGKILL.
    pub(super) fn end(&mut self) {
        self.signal(Signal::TERM);
        let until = Instant::now() + GRACE;
        while !self.groups.is_empty() && Instant::now() < until {
            std::thread::sleep(SOON);
            self.look_after();
        }
        self.signal(Signal::KILL);
        self.groups.clear();
    }

    /// ESRCH: it has ended by itself. EPERM: it has become another user's; then it is not ours to end.
    fn signal(&self, signal: Signal) {
        for leftover in &self.groups {
            let _ = kill_process_group(leftover.group, signal);
        }
    }
}

impl Drop for Leftovers {
    fn drop(&mut self) {
        self.end();
    }
}

fn exists(group: Pid) -> bool {
    test_kill_process_group(group).is_ok()
}

/// Whether all that is left of a group is dead. A zombie answers a signal as if it lived; and in a container whose first
/// process reaps nobody, an orphan stays a zombie for ever. Only /proc can tell; elsewhere nobody is accused.
fn only_zombies(group: Pid) -> bool {
    let Ok(processes) = fs::read_dir("/proc") else { return false };
    let stats = processes.flatten().filter_map(|process| fs::read_to_string(process.path().join("stat")).ok());
    let mut states = stats.filter_map(|stat| state(&stat, group)).peekable();
    states.peek().is_some() && states.all(|state| matches!(state, 'Z' | 'X'))
}

/// The state of a process in this group, from its /proc/PID/stat: `PID (NAME) STATE PARENT GROUP …`. The name may hold
/// anything, but no field after it holds a parenthesis.
fn state(stat: &str, group: Pid) -> Option<char> {
    let mut fields = stat.rsplit_once(')')?.1.split_ascii_whitespace();
    let state = fields.next()?.chars().next()?;
    let number: i32 = fields.nth(1)?.parse().ok()?;
    (number == group.as_raw_nonzero().get()).then_some(state)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_with_parentheses_in_its_name_is_read_right() {
        let group = Pid::from_raw(77).unwrap();
        assert_eq!(state("80 (a) Z 9 (b)) S 1 77 5 0", group), Some('S'));
        assert_eq!(state("80 (a) S 1 78 5 0", group), None);
        assert_eq!(state("", group), None);
    }
}
