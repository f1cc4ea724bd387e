//! `--sandbox`: what the kernel refuses to a command, whatever its words were.
//!
//! The gate judges words, and a command that was allowed can do more than its words show (`make`, `npm test`). Landlock, a part
//! of Linux, restricts a process and everything it starts: here, commands may read and execute everywhere, but write only in
//! the workspace and in a private TMPDIR, and use no network as far as the kernel knows how to refuse it.
//!
//! The restriction is a property of a *thread*, which its children inherit and nobody can take off again; set-user-ID programs
//! (`sudo`) lose their rights in it. So one helper thread
//! restricts itself and starts every command; the loop's thread stays free, and the tools write as before. Rejected: `pre_exec`
//! (needs `unsafe`), starting our own program again as a jailer (a second `main`, and a binary that must be found), and a
//! thread per command (each would be a domain of its own, and Landlock lets no domain signal another: `kill` could not end the
//! server that the command before has started). bubblewrap and containers were not considered: mini needs no other program.
//!
//! Choices: the whole workspace can be written, `.git` as well, since people expect `git commit` to work (a repository *above*
//! the workspace cannot). Not `/tmp`, not `/dev/shm`: other programs live there. Not `/dev/tty`: what is written there could
//! look like a question of ours. Nothing is kept from being read: Landlock cannot forbid a part of what it allows, so `.env`
//! is protected by the gate alone. UDP, chmod, touch and sockets in the file system are open on kernels that cannot refuse
//! them; the notice says what this one can.

use std::io;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Sender, channel};
use std::thread;

/// Files that commands may write although they lie outside.
const DEVICES: [&str; 5] = ["/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom"];

/// Whether commands run in a sandbox.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Wanted {
    /// No.
    #[default]
    No,
    /// Where the kernel can; else a notice says why not. For labs: their commands are known, and a beginner runs them.
    IfPossible,
    /// Yes, or nothing runs at all.
    Yes,
}

/// Work for the helper thread.
type Job = Box<dyn FnOnce() + Send>;

/// A thread that is restricted, and starts programs.
pub struct Sandbox {
    /// Dropping it ends the thread; what it has started stays restricted.
    jobs: Sender<Job>,
    tmp: PathBuf,
    abi: i32,
}

impl Sandbox {
    /// A sandbox in which only `root` and `tmp` (which is made, 0700) can be written. `Err` says in words why there can be
    /// none; nothing runs unrestricted because of it.
    pub fn new(root: &Path, tmp: &Path) -> Result<Sandbox, String> {
        make_private(tmp).map_err(|e| format!("cannot make {}: {e}", tmp.display()))?;
        let (jobs, work) = channel::<Job>();
        let (told, hears) = channel();
        let (root, private) = (root.to_path_buf(), tmp.to_path_buf());
        let helper = move || {
            let restricted = restrict(&root, &private);
            let serves = restricted.is_ok();
            // The other end waits for exactly this; if it is gone, so is the sandbox.
            let _ = told.send(restricted);
            while let Some(job) = work.recv().ok().filter(|_| serves) {
                job();
            }
        };
        thread::Builder::new()
            .name("sandbox".into())
            .spawn(helper)
            .map_err(|e| format!("cannot start its thread: {e}"))?;
        let abi = hears.recv().map_err(|_| "its thread has ended".to_string())??;
        Ok(Sandbox { jobs, tmp: tmp.to_path_buf(), abi })
    }

    /// Does something on the restricted thread: the programs it starts are in the sandbox.
    pub fn within<T: Send + 'static>(&self, work: impl FnOnce() -> T + Send + 'static) -> io::Result<T> {
        let gone = || io::Error::other("the sandbox's thread has ended");
        let (done, result) = channel();
        let job = move || drop(done.send(work()));
        self.jobs.send(Box::new(job)).map_err(|_| gone())?;
        result.recv().map_err(|_| gone())
    }

    /// The variables that send a command's temporary files where it may write.
    pub fn variables(&self) -> [(&'static str, &Path); 3] {
        ["TMPDIR", "TMP", "TEMP"].map(|name| (name, self.tmp.as_path()))
    }

    /// What is enforced, for the person.
    pub fn notice(&self) -> String {
        enforced(self.abi)
    }

    /// The same for the model, as a line of the system prompt: else it takes a refusal for a fault to be mended.
    pub fn system_prompt(&self) -> String {
        let network = if self.abi >= 4 { ", and there is no network" } else { "" };
        format!("- Commands of bash run in a sandbox: they write only in the workspace and in $TMPDIR{network}.")
    }
}

/// What Landlock refuses at this level of the kernel's interface (ABI); each is told that a person would rely on.
fn enforced(abi: i32) -> String {
    let network = match abi {
        10.. => "no TCP, no UDP",
        4..10 => "no TCP, but UDP is open",
        _ => "but the network is open",
    };
    let truncate = if abi < 3 { ", and a file elsewhere can still be emptied" } else { "" };
    format!(
        "sandbox: commands write only in the workspace and a private TMPDIR; {network}{truncate} (Landlock ABI {abi}; \
         reading is not restricted)"
    )
}

fn make_private(dir: &Path) -> io::Result<()> {
    std::fs::DirBuilder::new().recursive(true).mode(0o700).create(dir)
}

/// Restricts this thread for good, as far as the kernel can; returns the level it can.
#[cfg(target_os = "linux")]
fn restrict(root: &Path, tmp: &Path) -> Result<i32, String> {
    use landlock::{
        ABI, Access, AccessFs, AccessNet, LandlockStatus, Ruleset, RulesetAttr, RulesetCreatedAttr, RulesetError,
        RulesetStatus, Scope, path_beneath_rules,
    };
    // Asked for as a whole; what an older kernel does not know is left out of it (best effort is the crate's default).
    let all = ABI::V10;
    let devices = AccessFs::MakeChar | AccessFs::MakeBlock | AccessFs::IoctlDev;
    let rules = || -> Result<landlock::RestrictionStatus, RulesetError> {
        Ruleset::default()
            .handle_access(AccessFs::from_all(all))?
            .handle_access(AccessNet::from_all(all))?
            .scope(Scope::from_all(all))?
            .create()?
            .add_rules(path_beneath_rules(["/"], AccessFs::from_read(all)))?
            .add_rules(path_beneath_rules([root, tmp], AccessFs::from_all(all) & !devices))?
            .add_rules(path_beneath_rules(DEVICES, AccessFs::from_file(all)))?
            .restrict_self()
    };
    let status = rules().map_err(|e| format!("Landlock failed: {e}"))?;
    match (status.ruleset, status.landlock) {
        (RulesetStatus::NotEnforced, LandlockStatus::NotEnabled) => Err("Landlock is off in this kernel".into()),
        (RulesetStatus::NotEnforced, _) => Err("this kernel has no Landlock (it came with Linux 5.13)".into()),
        (_, LandlockStatus::Available { effective_abi, .. }) => Ok(effective_abi as i32),
        _ => Err("Landlock does not say what it enforces".into()),
    }
}

#[cfg(not(target_os = "linux"))]
fn restrict(_root: &Path, _tmp: &Path) -> Result<i32, String> {
    Err("only Linux has Landlock".into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_notice_promises_no_more_than_the_kernel_can_keep() {
        assert!(enforced(1).contains("the network is open") && enforced(1).contains("emptied"));
        assert!(enforced(3).contains("the network is open") && !enforced(3).contains("emptied"));
        assert!(enforced(7).contains("no TCP, but UDP is open") && enforced(7).contains("ABI 7"));
        assert!(enforced(10).contains("no TCP, no UDP"));
    }

    /// Only where the kernel has Landlock; elsewhere the words of the refusal are all there is to see.
    #[test]
    fn its_thread_is_restricted_and_ours_is_not() {
        let dir = tempfile::tempdir().unwrap();
        let (root, tmp, outside) = (dir.path().join("ws"), dir.path().join("tmp"), dir.path().join("outside"));
        std::fs::create_dir(&root).unwrap();
        let sandbox = match Sandbox::new(&root, &tmp) {
            Ok(sandbox) => sandbox,
            Err(why) => return assert!(why.contains("Landlock"), "{why}"),
        };
        let write = |path: PathBuf| move || std::fs::write(path, "x").is_ok();
        assert!(sandbox.within(write(root.join("a"))).unwrap());
        assert!(sandbox.within(write(tmp.join("a"))).unwrap());
        assert!(!sandbox.within(write(outside.clone())).unwrap());
        assert!(write(outside)(), "this thread must stay free");
    }
}
