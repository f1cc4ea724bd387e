//! git without what a stranger's repository could make it do.
//!
//! `git status` and `git diff` run programs that the repository's settings name: of 37 settings tried, 29 ran one. So three
//! layers: an environment that switches off what can be switched off; overrides for every such setting; and a look at the
//! repository's own settings, where each key is known to be harmless, is neutralised by the overrides, or asks.
//!
//! An allowlist of keys, so it survives what a future git invents (2.54 has hooks in settings, which `core.hooksPath` does not
//! stop). The person's own settings (global, system) stay in force: they wrote them, and `safe.directory` is among them.
//!
//! Not `-c`: a filter named `a=b` cannot be overridden that way. Not `--attr-source`: unknown to git 2.39, and blind to
//! `.git/info/attributes`.
//!
//! Not remembered from one command to the next, although each costs one more start of git (1.5 ms). The times of the files that
//! were read would not do for a key: an include may name a file that is not there yet, and `includeIf` depends on the branch,
//! the remotes and the directory. What is saved is less than the doubt about a stale answer.

use std::ffi::OsString;
use std::io::Read;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};

use super::arguments::Arguments;
use super::plan::set;

/// Variables for every call.
const ENVIRONMENT: [(&str, &str); 7] = [
    // No write of the index, so no post-index-change hook.
    ("GIT_OPTIONAL_LOCKS", "0"),
    // A partial clone fetches missing objects through a program; the second is for gits without the first.
    ("GIT_NO_LAZY_FETCH", "1"),
    ("GIT_ALLOW_PROTOCOL", "none"),
    ("GIT_TERMINAL_PROMPT", "0"),
    ("GIT_PAGER", "cat"),
    ("GIT_EDITOR", "false"),
    ("GIT_ASKPASS", "false"),
];

/// Settings that would run something, set to what does not.
const OVERRIDES: [(&str, &str); 18] = [
    ("core.fsmonitor", "false"),
    // `git diff` refreshes the index whatever GIT_OPTIONAL_LOCKS says, and the file-size limit would kill it halfway.
    ("diff.autoRefreshIndex", "false"),
    ("core.hooksPath", "/dev/null"),
    ("core.pager", "cat"),
    ("core.editor", "false"),
    ("log.showSignature", "false"),
    // `remerge` would run merge drivers.
    ("log.diffMerges", "separate"),
    ("gpg.program", "false"),
    ("gpg.openpgp.program", "false"),
    ("gpg.ssh.program", "false"),
    ("gpg.x509.program", "false"),
    ("protocol.allow", "never"),
    ("safe.bareRepository", "explicit"),
    ("submodule.recurse", "false"),
    ("status.submoduleSummary", "false"),
    ("diff.submodule", "short"),
    ("diff.ignoreSubmodules", "dirty"),
    ("color.ui", "never"),
];

/// What makes a filter do nothing. All four: with `required` left true, diff dies.
const FILTER_OFF: [(&str, &str); 4] = [("clean", ""), ("smudge", ""), ("process", ""), ("required", "false")];

/// Sections in which no key runs anything in status, diff, log or branch: because these commands do not use it, or because of
/// the environment, the overrides above, `--no-ext-diff` or `--no-textconv`.
const SECTIONS: &str = "advice alias am annex apply author blame branch browser checkout clean color column commit committer \
    credential diff difftool extensions feature fetch filter format gc gitbutler gitflow github gitlab gpg grep gui http hub i18n \
    include includeif index init interactive lfs log maintenance man merge mergetool notes pack pager protocol pull push rebase \
    receive remote rerere reset revert sequence sendemail showbranch sourcetree stash status submodule svn svn-remote tag transfer \
    url user versionsort web worktree";

/// Keys of `core` for which the same holds. `core.worktree` is not among them: it moves the working tree anywhere, and no
/// override is portable.
const CORE: &str = "abbrev attributesfile autocrlf bare bigfilethreshold checkroundtripencoding checkstat commentchar \
    commentstring commitgraph compression createobject deltabasecachelimit editor eol excludesfile filemode fscache fsmonitor \
    fsmonitorhookversion fsync fsyncmethod fsyncobjectfiles hidedotfiles hookspath ignorecase logallrefupdates longpaths loosecompression maxtreedepth \
    multipackindex notesref packedgitlimit packedgitwindowsize packedrefstimeout pager precomposeunicode preloadindex protecthfs \
    protectntfs quotepath repositoryformatversion safecrlf sharedrepository sparsecheckout sparsecheckoutcone splitindex sshcommand \
    symlinks trustctime untrackedcache usereplacerefs warnambiguousrefs whitespace";

/// How long the look at the settings may take: an include can be a FIFO.
const LOOK_LIMIT: Duration = Duration::from_secs(3);
const LOOK_BYTES: usize = 1 << 20;

/// The directory that holds the `.git` which a git command in `dir` would find. None also for a bare layout without `.git`, which
/// `safe.bareRepository` makes git refuse. It may lie above the workspace: the person chose to start there.
pub fn repository(dir: &Path) -> Option<&Path> {
    dir.ancestors().find(|dir| dir.join(".git").symlink_metadata().is_ok())
}

/// Completes the environment of a git command in `dir`, after a look at the repository's settings. Err: why it asks.
pub fn harden(env: &mut Vec<(String, OsString)>, program: &Path, dir: &Path) -> Result<(), String> {
    for (name, value) in ENVIRONMENT {
        set(env, name, value);
    }
    let mut overrides: Vec<(String, &str)> = OVERRIDES.iter().map(|(key, value)| (key.to_string(), *value)).collect();
    for key in local_keys(&settings(program, dir, env)?) {
        match section(&key) {
            ("filter", Some(name), _) => {
                overrides.extend(FILTER_OFF.map(|(last, value)| (format!("filter.{name}.{last}"), value)))
            }
            ("core", None, last) if listed(CORE, last) => {}
            (name, _, _) if listed(SECTIONS, name) => {}
            _ => {
                return Err(format!("repository setting {key} is not known to be harmless"));
            }
        }
    }
    set(env, "GIT_CONFIG_COUNT", overrides.len().to_string());
    for (at, (key, value)) in overrides.iter().enumerate() {
        set(env, &format!("GIT_CONFIG_KEY_{at}"), key);
        set(env, &format!("GIT_CONFIG_VALUE_{at}"), value);
    }
    Ok(())
}

fn listed(list: &str, name: &str) -> bool {
    list.split_whitespace().any(|known| known == name)
}

/// `filter.a.b.clean` → section `filter`, subsection `a.b`, name `clean`. git has lower-cased the first and the last.
fn section(key: &str) -> (&str, Option<&str>, &str) {
    let (first, rest) = key.split_once('.').unwrap_or((key, ""));
    rest.rsplit_once('.').map_or((first, None, rest), |(subsection, last)| (first, Some(subsection), last))
}

/// The keys of the scopes that a repository brings along.
fn local_keys(listing: &str) -> Vec<String> {
    // scope NUL key LF value NUL; a key without a value has no LF.
    let fields: Vec<&str> = listing.split('\0').collect();
    let local = fields.chunks_exact(2).filter(|pair| matches!(pair[0], "local" | "worktree"));
    local.map(|pair| pair[1].split('\n').next().unwrap_or_default().to_string()).collect()
}

/// All settings that git would see in `dir`, includes followed. This command runs nothing.
fn settings(program: &Path, dir: &Path, env: &[(String, OsString)]) -> Result<String, String> {
    let child = Command::new(program)
        .args(["config", "--list", "-z", "--show-scope", "--includes"])
        .current_dir(dir)
        .env_clear()
        .envs(env.iter().map(|(name, value)| (name, value)))
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .process_group(0)
        .spawn();
    let mut child = child.map_err(|e| format!("git's settings cannot be looked at: {e}"))?;
    let output = read_until(&mut child, Instant::now() + LOOK_LIMIT);
    // Ends it if it has not ended; then there is nothing left to wait for. Both fail only for a child that is gone.
    let _ = child.kill();
    let status = child.wait();
    match output {
        Ok(output) if status.is_ok_and(|status| status.success()) => {
            String::from_utf8(output).map_err(|_| "git's settings are not UTF-8".to_string())
        }
        Ok(_) => Err("git cannot read the repository's settings".to_string()),
        Err(why) => Err(why),
    }
}

fn read_until(child: &mut Child, deadline: Instant) -> Result<Vec<u8>, String> {
    let mut pipe = child.stdout.take().ok_or("git has no output")?;
    let (mut all, mut buffer) = (Vec::new(), [0; 8192]);
    loop {
        let left = deadline.saturating_duration_since(Instant::now());
        let left = Timespec::try_from(left).map_err(|e| e.to_string())?;
        let ready = poll(&mut [PollFd::new(&pipe, PollFlags::IN)], Some(&left));
        match ready {
            Ok(0) => return Err("git's settings take too long to read".to_string()),
            Ok(_) => {}
            Err(rustix::io::Errno::INTR) => continue,
            Err(e) => return Err(format!("git's settings cannot be read: {e}")),
        }
        match pipe.read(&mut buffer) {
            // End of output: git closed it by ending.
            Ok(0) => return wait_until(child, deadline).map(|()| all),
            Ok(n) => all.extend_from_slice(&buffer[..n]),
            Err(e) => return Err(format!("git's settings cannot be read: {e}")),
        }
        if all.len() > LOOK_BYTES {
            return Err("the repository has too many settings".to_string());
        }
    }
}

/// Its status must not be that of our own kill.
fn wait_until(child: &mut Child, deadline: Instant) -> Result<(), String> {
    while Instant::now() < deadline {
        match child.try_wait() {
            Ok(Some(_)) => return Ok(()),
            Ok(None) => std::thread::sleep(Duration::from_micros(200)),
            Err(e) => return Err(format!("git's settings cannot be read: {e}")),
        }
    }
    Err("git's settings take too long to read".to_string())
}

/// Whether `git diff` compares single files, each named by its path (`HEAD:src/x.rs`, or a file that is there now). git takes no
/// excludes then. With any other word among them the excludes stay, and git refuses: an id or a tag can name the content of a
/// protected file, and `git log --raw` tells the ids.
pub fn compares_files(arguments: &Arguments, base: &Path, repository: &Path) -> bool {
    let blob = |word: &str| {
        word.split_once(':').is_some_and(|(revision, path)| {
            !revision.is_empty() && Path::new(path).is_relative() && repository.join(path).is_file()
        })
    };
    let mut words = arguments.git_words.iter().map(|part| part.text.as_str());
    words.clone().any(blob) && words.all(|word| blob(word) || base.join(word).is_file())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_the_repository_brings_is_judged() {
        let listing = "global\0alias.x\n!sh\0local\0core.worktree\n/etc\0worktree\0filter.a=b.clean\nsh\0local\0a.flag\0command\0x.y\nz\0";
        assert_eq!(local_keys(listing), ["core.worktree", "filter.a=b.clean", "a.flag"]);
    }

    #[test]
    fn keys_have_sections() {
        assert_eq!(section("core.bare"), ("core", None, "bare"));
        assert_eq!(section("filter.a.b.clean"), ("filter", Some("a.b"), "clean"));
    }

    #[test]
    fn what_could_run_a_program_is_overridden_or_not_listed() {
        for key in ["worktree", "alternaterefscommand", "gitproxy", "askpass"] {
            assert!(!listed(CORE, key), "{key}");
        }
        for section in ["hook", "trace2", "uploadpack", "safe", "core"] {
            assert!(!listed(SECTIONS, section), "{section}");
        }
    }
}
