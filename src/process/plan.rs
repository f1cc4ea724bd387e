//! Runs what the gate lets run at once: programs wired by hand, without a shell that could read a word again.

use super::running::Running;
use super::{End, Ended, Flow, Processes};
use crate::cancel::Cancel;
use crate::gate::plan::{Argv, Join, OUTPUT_BYTES, Plan, Stderr, Step};
use std::io::{self, PipeReader, PipeWriter};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::process::{Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

impl Processes {
    /// Runs a chain of pipelines within `limit` altogether; `sink` gets at most 256 KiB, then the programs are killed
    /// ([`End::Flooded`]). Nothing of it stays in the background. `Err` if a program could not be started.
    pub fn plan(
        &mut self,
        plan: &Plan,
        limit: Duration,
        cancel: &Cancel,
        sink: &mut dyn FnMut(&[u8]) -> Flow,
    ) -> Result<Ended, String> {
        let (until, mut room) = (Instant::now() + limit, OUTPUT_BYTES);
        let mut bounded = |bytes: &[u8]| {
            let taken = bytes.len().min(room);
            room -= taken;
            let flow = sink(&bytes[..taken]);
            if taken < bytes.len() { Flow::Stop } else { flow }
        };
        let mut ended = Ended { end: End::Exited, status: Some(ExitStatus::default()), leftover: false, shell: "none" };
        for step in &plan.steps {
            let success = ended.status.is_some_and(|status| status.success());
            if !matches!((step.join, success), (Join::Always, _) | (Join::AndThen, true) | (Join::OrElse, false)) {
                continue;
            }
            (ended.end, ended.status) = self.step(step, until, limit, cancel, &mut bounded)?;
            if ended.end != End::Exited {
                break;
            }
        }
        Ok(ended)
    }

    /// Runs one pipeline; its status is that of the last program.
    fn step(
        &mut self,
        step: &Step,
        until: Instant,
        limit: Duration,
        cancel: &Cancel,
        sink: &mut dyn FnMut(&[u8]) -> Flow,
    ) -> Result<(End, Option<ExitStatus>), String> {
        if let Some(missing) = step.pipeline.iter().find(|argv| argv.program.is_none()) {
            sink(format!("{}: not found\n", missing.name).as_bytes());
            return Ok((End::Exited, Some(ExitStatus::from_raw(127 << 8)))); // as a wait status: the code is the high byte
        }
        let names: Vec<&str> = step.pipeline.iter().map(|argv| argv.name.as_str()).collect();
        let mut running = wire(&step.pipeline)
            .and_then(|(commands, output)| Running::start(commands, b"", vec![output], self.sandbox.as_ref()))
            .map_err(|e| format!("cannot start {}: {e}", names.join(" | ")))?;
        running.limit(limit);
        let end = self.watch(&mut running, until, cancel, &mut |_, bytes| sink(bytes));
        running.signal(rustix::process::Signal::KILL);
        Ok((end, running.status()))
    }
}

/// The programs, each reading what the one before it prints, and the pipe that all of their output ends in.
fn wire(pipeline: &[Argv]) -> io::Result<(Vec<Command>, PipeReader)> {
    let (output, writer) = io::pipe()?;
    let mut stdin = Stdio::null();
    let mut commands = Vec::new();
    for (i, argv) in pipeline.iter().enumerate() {
        let (next, stdout) = match i + 1 == pipeline.len() {
            true => (Stdio::null(), writer.try_clone()?),
            false => io::pipe().map(|(reader, writer)| (reader.into(), writer))?,
        };
        commands.push(command(argv, std::mem::replace(&mut stdin, next), stdout, &writer)?);
    }
    Ok((commands, output))
}

/// One program with all of its surroundings set by the plan.
fn command(argv: &Argv, stdin: Stdio, stdout: PipeWriter, result: &PipeWriter) -> io::Result<Command> {
    let stderr = match argv.stderr {
        Stderr::Keep => result.try_clone()?.into(),
        Stderr::Merge => stdout.try_clone()?.into(),
        Stderr::Null => Stdio::null(),
    };
    let program = argv.program.as_ref().ok_or(io::ErrorKind::NotFound)?;
    let mut command = Command::new(program);
    command.arg0(&argv.name).args(&argv.args).current_dir(&argv.dir);
    command.env_clear().envs(argv.env.iter().map(|(name, value)| (name, value)));
    command.stdin(stdin).stdout(stdout).stderr(stderr);
    Ok(command)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::Path;

    fn sh(script: &str, dir: &Path) -> Argv {
        Argv {
            name: "sh".into(),
            program: Some("/bin/sh".into()),
            args: vec!["-c".into(), script.into()],
            dir: dir.into(),
            env: vec![("PATH".into(), "/usr/bin:/bin".into())],
            stderr: Stderr::Keep,
            hides: false,
        }
    }

    fn run(steps: Vec<(Join, Vec<Argv>)>, limit: Duration) -> (String, Ended) {
        let plan = Plan { steps: steps.into_iter().map(|(join, pipeline)| Step { join, pipeline }).collect() };
        let mut printed = Vec::new();
        let ended = Processes::default().plan(&plan, limit, &Cancel::new(), &mut |bytes| {
            printed.extend_from_slice(bytes);
            Flow::More
        });
        (String::from_utf8(printed).unwrap(), ended.unwrap())
    }

    #[test]
    fn a_skipped_step_leaves_the_status_standing() {
        let (long, here) = (Duration::from_secs(5), Path::new("/"));
        let step = |join, script| (join, vec![sh(script, here)]);
        let (printed, ended) = run(
            vec![
                step(Join::Always, "exit 3"),
                step(Join::AndThen, "echo skipped"),
                step(Join::OrElse, "echo or; exit 4"),
                step(Join::AndThen, "echo skipped too"),
            ],
            long,
        );
        assert_eq!((printed.as_str(), ended.status.unwrap().code()), ("or\n", Some(4)));
    }

    #[test]
    fn a_program_that_is_not_installed_is_status_127() {
        let missing = Argv { name: "rg".into(), program: None, ..sh("", Path::new("/")) };
        let (printed, ended) = run(vec![(Join::Always, vec![missing])], Duration::from_secs(5));
        assert_eq!((printed.as_str(), ended.status.unwrap().code()), ("rg: not found\n", Some(127)));
    }

    #[test]
    fn a_pipeline_ends_with_its_last_program_and_within_its_time() {
        let here = Path::new("/");
        let (printed, ended) =
            run(vec![(Join::Always, vec![sh("yes", here), sh("head -n 1", here)])], Duration::from_secs(5));
        assert_eq!((printed.as_str(), ended.end, ended.status.unwrap().code()), ("y\n", End::Exited, Some(0)));
        let slow = vec![
            (Join::Always, vec![sh("echo a; sleep 30", here), sh("cat", here)]),
            (Join::Always, vec![sh("echo b", here)]),
        ];
        let started = Instant::now();
        let (printed, ended) = run(slow, Duration::from_millis(200));
        assert_eq!((printed.as_str(), ended.end), ("a\n", End::TimedOut));
        assert!(started.elapsed() < Duration::from_secs(2));
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn no_file_can_grow() {
        let dir = tempfile::tempdir().unwrap();
        let script = "sleep 0.2; ulimit -c; ulimit -v; echo x > file";
        let (printed, ended) = run(vec![(Join::Always, vec![sh(script, dir.path())])], Duration::from_secs(5));
        assert!(printed.starts_with("0\n4194304\n"), "{printed}");
        assert!(!ended.status.unwrap().success());
        assert_eq!(std::fs::metadata(dir.path().join("file")).unwrap().len(), 0);
    }
}
