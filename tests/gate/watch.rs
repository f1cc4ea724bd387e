//! Runs one program and says what it did beside reading in the workspace.
//!
//! With strace, where it is installed and allowed: every file opened, every change, every program started, every socket. Else
//! with what is left: the programs that the listed commands are known to call are tripwires in PATH, and the caller compares
//! the directory before and after.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use super::fixture::executable;
use mini::gate::Argv;
use mini::workspace::{fold, protected_component};

/// Where programs look by themselves: libraries, locales, user names, git's settings of the person. Nothing of it was named.
const SYSTEM: [&str; 8] = ["/etc", "/lib", "/lib64", "/usr", "/proc", "/sys", "/dev/null", "/var/run/nscd"];
/// System calls that change something, whatever their arguments.
const CHANGES: &str = "unlink unlinkat rename renameat renameat2 mkdir mkdirat rmdir symlink symlinkat link linkat chmod fchmod \
    fchmodat chown lchown fchown fchownat utime utimes utimensat futimesat truncate ftruncate mknod mknodat setxattr lsetxattr \
    fsetxattr removexattr mount ptrace";
const OPENS: &str = "open openat openat2 creat";
const OTHERS: &str = "execve execveat socket connect bind";
/// Programs that options of the listed commands, or settings of git, can name.
const TRIPWIRES: &str =
    "sh bash gzip bzip2 xz zstd lz4 brotli lzip less cat vi false gpg ssh gpgv git-lfs tee touch uname hostname";

pub struct Watch {
    strace: bool,
    tripwires: PathBuf,
    base: PathBuf,
    ws: PathBuf,
}

/// What a program printed, and what it must not have done.
pub struct Seen {
    pub stdout: Vec<u8>,
    pub wrong: Vec<String>,
}

impl Watch {
    /// `base` holds the workspace `ws` and everything that is to stay unread; the watch keeps its own files in `own`.
    pub fn new(base: &Path, ws: &Path, own: &Path) -> Watch {
        let tripwires = own.join("tripwires");
        std::fs::create_dir_all(&tripwires).unwrap();
        for name in TRIPWIRES.split_whitespace() {
            executable(&tripwires.join(name), &format!("#!/bin/sh\necho {name} >> {}/sprung\n", own.display()));
        }
        let tried = Command::new("strace").args(["-o", "/dev/null", "true"]).stderr(Stdio::null()).status();
        let strace = tried.is_ok_and(|status| status.success());
        Watch { strace, tripwires, base: base.to_path_buf(), ws: ws.to_path_buf() }
    }

    /// Whether strace watches.
    pub fn is_close(&self) -> bool {
        self.strace
    }

    /// Runs a program of a plan. `command` is the whole line, for telling what was named in it.
    pub fn run(&self, argv: &Argv, command: &str, input: &[u8]) -> Seen {
        let trace = self.tripwires.with_file_name("trace");
        let program = argv.program.as_ref().expect("installed");
        let mut child = match self.strace {
            true => {
                let calls: Vec<String> = [CHANGES, OPENS, OTHERS]
                    .iter()
                    .flat_map(|list| list.split_whitespace())
                    .map(|call| format!("?{call}"))
                    .collect();
                let mut strace = Command::new("strace");
                strace.args(["-f", "-qq", "-y", "-s", "4096", "-e", "signal=none", "-e"]);
                strace.arg(format!("trace={}", calls.join(","))).arg("-o").arg(&trace).arg(program);
                strace
            }
            false => Command::new(program),
        };
        child
            .args(&argv.args)
            .current_dir(&argv.dir)
            .env_clear()
            .envs(argv.env.iter().map(|(name, value)| (name, value)));
        if !self.strace {
            child.env("PATH", &self.tripwires);
        }
        let stdout = feed(child, input);
        let mut wrong = Vec::new();
        if self.strace {
            let text = String::from_utf8_lossy(&std::fs::read(&trace).unwrap()).into_owned();
            wrong.extend(text.lines().skip(1).filter_map(|line| self.judge(line, argv, command)));
        }
        wrong.extend(
            std::fs::read_to_string(self.tripwires.with_file_name("sprung")).map(|names| format!("started {names}")),
        );
        Seen { stdout, wrong }
    }

    /// What is wrong with one system call. The first line was the start of the program itself.
    fn judge(&self, line: &str, argv: &Argv, command: &str) -> Option<String> {
        let call = line.trim_start_matches(|c: char| c.is_ascii_digit() || c == ' ');
        let (name, arguments) = call.split_once('(')?;
        let listed = |list: &str| list.split_whitespace().any(|known| known == name);
        match name {
            _ if call.starts_with("<...") => None,
            "execve" | "execveat" => Some(format!("starts another program: {line}")),
            "socket" | "bind" => (!arguments.starts_with("AF_UNIX") && !arguments.contains("AF_UNIX"))
                .then(|| format!("network: {line}")),
            "connect" => (!arguments.contains("/var/run/nscd")).then(|| format!("network: {line}")),
            _ if listed(CHANGES) => Some(format!("changes something: {line}")),
            _ if listed(OPENS) => self.opened(name, arguments, argv, command).map(|why| format!("{why}: {line}")),
            _ => None,
        }
    }

    fn opened(&self, call: &str, arguments: &str, argv: &Argv, command: &str) -> Option<&'static str> {
        let mut quoted = arguments.split('"');
        let (before, path, flags) = (quoted.next()?, quoted.next()?, quoted.next().unwrap_or_default());
        // `openat(5</the/directory>, "name", …`
        let dir = before
            .split_once('<')
            .and_then(|(_, rest)| rest.split_once('>'))
            .map_or(argv.dir.as_path(), |(dir, _)| Path::new(dir));
        // `… = 3</where/it/really/is>` for one that was opened.
        let real =
            arguments.rsplit_once(" = ").and_then(|(_, fd)| fd.split_once('<')?.1.strip_suffix('>')).map(Path::new);
        let path = real.map_or_else(|| fold(&dir.join(path)), Path::to_path_buf);
        let writes = ["O_WRONLY", "O_RDWR", "O_CREAT", "O_TRUNC", "O_APPEND", "O_TMPFILE"]
            .iter()
            .any(|flag| flags.contains(flag));
        let system =
            SYSTEM.iter().any(|place| path.starts_with(place)) || path.to_str() == argv.program.as_ref()?.to_str();
        let home = std::env::var_os("HOME").is_some_and(|home| path.starts_with(home))
            && matches!(argv.name.as_str(), "git" | "rg");
        match () {
            () if path == Path::new("/dev/null") => None,
            () if writes || call == "creat" => Some("opens to write"),
            () if arguments.contains("= -1 ENOENT") => None,
            () if path.starts_with(&self.ws) => {
                let below = path.strip_prefix(&self.ws).ok()?.to_string_lossy().into_owned();
                // tree and rg look there for what to leave out; they print none of it.
                let rules = below.ends_with("info/exclude") || below.ends_with(".gitignore");
                let exempt = argv.name == "git" || flags.contains("O_DIRECTORY") || rules;
                let protected = protected_component(&below).is_some() && !exempt;
                protected.then_some("reads a protected file")
            }
            () if path.starts_with(&self.base) => Some("reads beside the workspace"),
            () if path.components().count() > 2 && command.contains(path.to_str()?) => {
                Some("reads what was named outside")
            }
            () if system || home => None,
            () => Some("reads outside"),
        }
    }
}

/// Runs it with an input; its standard output. It has ten seconds, like everything that the gate lets run.
fn feed(mut command: Command, input: &[u8]) -> Vec<u8> {
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
    let mut pipe = child.stdin.take().unwrap();
    let input = input.to_vec();
    // A reader such as `head` may leave early; a writer must not wait for us to read.
    let writer = std::thread::spawn(move || drop(std::io::Write::write_all(&mut pipe, &input)));
    let stdout = child.wait_with_output().unwrap().stdout;
    writer.join().unwrap();
    stdout
}
