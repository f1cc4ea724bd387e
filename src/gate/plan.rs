//! What runs at once: programs with their arguments, and the limits they run under. No shell is in it.
//!
//! The gate only writes the plan. The bash tool wires the pipes, spawns and reads.

use std::env;
use std::ffi::{OsStr, OsString};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::workspace::Workspace;

/// Wall clock for one listed command, unless the call's `timeout` asks for more; then its process group is killed.
pub const TIME_LIMIT: Duration = Duration::from_secs(10);
/// RLIMIT_CPU, in seconds: a 30-byte regular expression can compute for ever.
pub const CPU_SECONDS: u64 = 10;
/// RLIMIT_AS, in bytes. git maps packs in windows of 1 GiB, so not less; `tail /dev/zero` ends by it.
pub const MEMORY_BYTES: u64 = 4 << 30;
/// RLIMIT_FSIZE, in bytes: no file can grow. (Creating an empty one or truncating still works: it is no substitute for the tables.)
pub const FILE_BYTES: u64 = 0;
/// RLIMIT_CORE, in bytes.
pub const CORE_BYTES: u64 = 0;
/// Output that is read from a plan before it is cut and its programs are killed, in bytes.
pub const OUTPUT_BYTES: usize = 256 << 10;

/// A chain of pipelines, in order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Plan {
    /// At least one.
    pub steps: Vec<Step>,
}

/// One pipeline of a chain. Its exit status is that of its last program.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Step {
    /// Whether it runs, given how the steps before it ended.
    pub join: Join,
    /// At least one; each one's stdout is the next one's stdin. The first one's stdin is empty.
    pub pipeline: Vec<Argv>,
}

/// When a step runs. As in a shell, a step that is skipped leaves the status of the one before it standing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Join {
    /// After `;`, and the first step.
    Always,
    /// After `&&`: if the status so far is 0.
    AndThen,
    /// After `||`: if the status so far is not 0.
    OrElse,
}

/// One program call, ready for exec.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Argv {
    /// The name as it was typed; argument 0.
    pub name: String,
    /// The file to execute. None: not installed; the executor says `NAME: not found` and takes 127 for its status.
    pub program: Option<PathBuf>,
    /// The arguments after the name.
    pub args: Vec<OsString>,
    /// The working directory; in the workspace.
    pub dir: PathBuf,
    /// The whole environment: clear what is inherited.
    pub env: Vec<(String, OsString)>,
    /// What becomes of its error output.
    pub stderr: Stderr,
    /// Protected files were there to be found and were left out. To be told to the model, else it wonders.
    pub hides: bool,
}

/// What becomes of a program's error output.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stderr {
    /// To the tool's result, as without any redirection.
    Keep,
    /// `2>&1`: where its stdout goes, so also into a pipe.
    Merge,
    /// `2>/dev/null`.
    Null,
}

/// What a child keeps of our environment: where the person's git settings are, and the language. No key, no `LD_PRELOAD`, no
/// `GREP_OPTIONS`, no `RIPGREP_CONFIG_PATH` gets through, because nothing does that is not named here.
const KEPT: [&str; 4] = ["HOME", "XDG_CONFIG_HOME", "LANG", "LANGUAGE"];
const SET: [(&str, &str); 3] = [("PAGER", "cat"), ("TERM", "dumb"), ("NO_COLOR", "1")];

/// The environment of every listed command; git adds to it.
pub fn environment(search_path: &[PathBuf]) -> Vec<(String, OsString)> {
    let kept = env::vars_os().filter_map(|(name, value)| {
        let name = name.into_string().ok()?;
        (KEPT.contains(&name.as_str()) || name.starts_with("LC_")).then_some((name, value))
    });
    let path = env::join_paths(search_path).unwrap_or_default();
    let set = SET.iter().map(|(name, value)| (name.to_string(), OsString::from(value)));
    kept.chain(set).chain([("PATH".to_string(), path)]).collect()
}

/// The file that a listed name means. Looked up where nobody but the person puts programs: a `./ls` in the tree is never used,
/// nor a link to one.
pub fn program(name: &str, search_path: &[PathBuf], workspace: &Workspace) -> Option<PathBuf> {
    let mut candidates = search_path.iter().map(|dir| dir.join(name));
    candidates.find(|file| is_executable(file) && is_outside(file, workspace))
}

/// PATH without empty, relative and in-workspace entries.
pub fn search_path(workspace: &Workspace) -> Vec<PathBuf> {
    let path = env::var_os("PATH").unwrap_or_else(|| OsString::from("/usr/local/bin:/usr/bin:/bin"));
    env::split_paths(&path).filter(|dir| dir.is_absolute() && is_outside(dir, workspace)).collect()
}

/// Below `/` everything is inside; whoever starts there has no other programs.
fn is_outside(path: &Path, workspace: &Workspace) -> bool {
    let root = workspace.root();
    path.canonicalize().is_ok_and(|path| root == Path::new("/") || !path.starts_with(root))
}

fn is_executable(file: &Path) -> bool {
    file.metadata().is_ok_and(|meta| meta.is_file() && meta.permissions().mode() & 0o111 != 0)
}

/// Sets a variable that may already be there.
pub fn set(env: &mut Vec<(String, OsString)>, name: &str, value: impl AsRef<OsStr>) {
    env.retain(|(known, _)| known != name);
    env.push((name.to_string(), value.as_ref().to_os_string()));
}
