//! The author's gate: what every lab must do before a participant sees it.
//!
//! A lab fails as shipped, passes with its solution, and fails with each cheat of `tests/cases/cheats/`. Its samples
//! end as its `lab.json` says. All of it with the real binary, in scratch directories, and quickly.

use mini::lab::{self, Home, Lab, Report, Status};
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// A classroom waits 5 s at most for a verdict, and waits 0.3 s; a machine that is busy with other tests may take longer.
const PATIENCE: Duration = Duration::from_secs(60);

fn exe() -> &'static Path {
    Path::new(env!("CARGO_BIN_EXE_mini"))
}

fn labs() -> Vec<Lab> {
    lab::all().expect("every lab.json can be read")
}

/// A `mini-labs/` of its own, which goes when it is dropped.
struct Desk {
    home: Home,
    dir: tempfile::TempDir,
}

impl Desk {
    fn new() -> Desk {
        let dir = tempfile::tempdir().expect("a scratch directory");
        Desk { home: Home::find(None, dir.path()), dir }
    }

    /// The exam, with these files over the demo.
    fn check(&self, lab: &Lab, files: &[(String, Vec<u8>)]) -> Report {
        self.check_program(lab, files, exe())
    }

    fn check_program(&self, lab: &Lab, files: &[(String, Vec<u8>)], exe: &Path) -> Report {
        let staged = lab.stage(&self.home).expect("the demo is laid out");
        for (path, bytes) in files {
            put(&staged.dir.join(path), bytes);
        }
        let started = Instant::now();
        let report = lab.check(&self.home, exe).expect("the results are written");
        assert!(started.elapsed() < PATIENCE, "{} took {:?}", lab.id, started.elapsed());
        report
    }

    /// The program as a participant runs it: the labs in the binary, no terminal, no key.
    fn mini(&self, args: &[&str]) -> (i32, String) {
        self.ran(Command::new(exe()).args(args).env("PATH", std::env::var_os("PATH").unwrap_or_default()))
    }

    /// A command's exit code and all that it printed; it sees nothing of this machine but what was set.
    fn ran(&self, command: &mut Command) -> (i32, String) {
        let set: Vec<_> =
            command.get_envs().filter_map(|(name, value)| Some((name.to_owned(), value?.to_owned()))).collect();
        command.current_dir(self.dir.path()).stdin(Stdio::null()).env_clear().envs(set).env("HOME", self.dir.path());
        command.env("XDG_STATE_HOME", self.dir.path().join("state")).env("NO_COLOR", "1");
        let output = command.output().expect("the program runs");
        let text = [output.stdout, output.stderr].concat();
        (output.status.code().unwrap_or(-1), String::from_utf8_lossy(&text).into_owned())
    }

    /// Writes the reference solution into the staged demo.
    fn solve(&self, lab: &Lab) {
        let staged = lab.stage(&self.home).expect("the demo is laid out");
        for (path, bytes) in solution(lab) {
            put(&staged.dir.join(path), &bytes);
        }
    }
}

/// Writes a file, in a directory that may have to be made.
fn put(file: &Path, bytes: &[u8]) {
    std::fs::create_dir_all(file.parent().expect("a parent")).expect("parents");
    std::fs::write(file, bytes).expect("a file");
}

/// The participant's own files, as the reference solution has them.
fn solution(lab: &Lab) -> Vec<(String, Vec<u8>)> {
    let files = lab.files.iter().filter_map(|(path, bytes)| Some((path.strip_prefix("solution/")?.to_owned(), bytes)));
    files.filter(|(path, _)| is_yours(lab, path)).map(|(path, bytes)| (path, bytes.clone())).collect()
}

/// Whether a file of the demo is the participant's own.
fn is_yours(lab: &Lab, path: &str) -> bool {
    lab.about.yours.iter().any(|own| own == path || own.ends_with('/') && path.starts_with(own.as_str()))
}

/// The executable extensions of a solution (exercise B); a script of the participant's own is none.
fn extensions_of(lab: &Lab) -> impl Iterator<Item = (&String, &Vec<u8>)> {
    lab.files.iter().filter(|(path, bytes)| {
        path.strip_prefix("solution/").is_some_and(|path| !is_yours(lab, path)) && bytes.starts_with(b"#!")
    })
}

/// A cheat: its name, and the files it writes.
type Cheat = (String, Vec<(String, Vec<u8>)>);

/// Every cheat of a lab.
fn cheats(lab: &Lab) -> Vec<Cheat> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/cases/cheats").join(&lab.id);
    let entries = std::fs::read_dir(&root).expect("every lab lists its cheats");
    let dirs = entries.map(|entry| entry.expect("an entry").path());
    dirs.map(|dir| (dir.file_name().expect("a name").to_string_lossy().into_owned(), files_of(&dir))).collect()
}

/// Every file below a directory, by its path in it.
fn files_of(dir: &Path) -> Vec<(String, Vec<u8>)> {
    let mut files = Vec::new();
    for entry in std::fs::read_dir(dir).expect("a cheat's files").map(|entry| entry.expect("an entry")) {
        let name = entry.file_name().to_string_lossy().into_owned();
        match entry.path().is_dir() {
            true => {
                files.extend(files_of(&entry.path()).into_iter().map(|(path, bytes)| (format!("{name}/{path}"), bytes)))
            }
            false => files.push((name, std::fs::read(entry.path()).expect("a readable file"))),
        }
    }
    files
}

/// The names of the assertions that do not hold.
fn missed(report: &Report) -> Vec<String> {
    report.tests.iter().filter(|test| test.miss.is_some()).map(lab::Test::name).collect()
}

#[test]
fn as_shipped_every_lab_fails_and_only_at_the_exercise() {
    for lab in labs() {
        let report = Desk::new().check(&lab, &[]);
        assert_eq!(report.status(), Status::Fail, "{}\n{}", lab.id, report.text());
        let first = report.tests.iter().find_map(|test| test.miss.as_ref()).expect("a miss");
        let open = first.open.as_ref().expect("a file to open");
        let yours = lab.about.yours.iter().any(|own| open.ends_with(&format!("{}/{own}", lab.id)));
        assert!(yours, "{}: points at {open}, which is not the participant's", lab.id);
    }
}

#[test]
fn with_its_solution_every_lab_passes() {
    for lab in labs() {
        let desk = Desk::new();
        let report = desk.check(&lab, &solution(&lab));
        assert_eq!(report.status(), Status::Pass, "{}\n{}", lab.id, report.text());
        assert_eq!(desk.home.passed(), [lab.id.as_str()]);
        let results = std::fs::read_to_string(desk.home.join("results.json")).expect("results.json");
        assert_eq!(serde_json::from_str::<serde_json::Value>(&results).expect("JSON")["status"], "pass");
        assert!(lab.after(&report, "mini").expect("words").contains(&lab.about.why));
    }
}

#[test]
fn no_cheat_passes() {
    for lab in labs() {
        let cheats = cheats(&lab);
        assert!(!cheats.is_empty(), "{}", lab.id);
        for (name, files) in cheats {
            let report = Desk::new().check(&lab, &files);
            assert_eq!(report.status(), Status::Fail, "{}: the cheat {name} passes", lab.id);
        }
    }
}

/// A program in place of ours.
fn program(desk: &Desk, script: &str) -> PathBuf {
    use std::os::unix::fs::PermissionsExt;
    let file = desk.dir.path().join("program");
    std::fs::write(&file, format!("#!/bin/sh\n{script}\n")).expect("a file");
    std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o755)).expect("a mode");
    file
}

#[test]
fn a_program_that_asks_no_model_passes_no_case() {
    for lab in labs() {
        let desk = Desk::new();
        let report = desk.check_program(&lab, &solution(&lab), &program(&desk, "echo RUN"));
        let runs = lab.about.exam.iter().filter(|case| matches!(case.kind, lab::Kind::Run(_) | lab::Kind::Runs(_)));
        let missed = missed(&report);
        for case in runs {
            assert!(
                missed.iter().any(|name| name.starts_with(&case.name)),
                "{}: {} holds of nothing\n{}",
                lab.id,
                case.name,
                report.text()
            );
        }
    }
}

#[test]
fn a_key_that_comes_out_anywhere_is_found() {
    for lab in labs() {
        let desk = Desk::new();
        let report = desk.check_program(&lab, &solution(&lab), &program(&desk, "echo \"RUN $MINI_API_KEY\""));
        let key = "the key is in no message, log or child's environment";
        assert!(missed(&report).iter().any(|name| name == key), "{}\n{}", lab.id, report.text());
    }
}

#[test]
fn a_program_that_cannot_be_started_is_no_failure_of_the_participant() {
    for lab in labs() {
        let report = Desk::new().check_program(&lab, &[], Path::new("/nonexistent/program"));
        assert_eq!((report.status(), report.exit()), (Status::Error, 2), "{}", report.text());
    }
}

#[test]
fn a_played_demo_does_not_change_a_verdict() {
    for lab in labs() {
        let desk = Desk::new();
        let mut files = solution(&lab);
        let demo = lab.files.keys().filter_map(|path| path.strip_prefix("demo/"));
        let played = demo.filter(|path| !is_yours(&lab, path));
        files.extend(played.map(|path| (path.to_owned(), b"played with\n".to_vec())));
        let report = desk.check(&lab, &files);
        assert_eq!(missed(&report), Vec::<String>::new(), "{}", lab.id);
    }
}

#[test]
fn every_sample_ends_as_its_lab_says_twice_in_a_row() {
    for lab in labs() {
        let desk = Desk::new();
        for _ in 0..2 {
            for sample in &lab.about.samples {
                let (exit, text) = desk.mini(&["--lab", lab.number(), "--offline", &sample.task]);
                assert_eq!(exit, sample.exit, "{}: {}\n{text}", lab.id, sample.task);
                assert!(text.contains("model: recorded"), "{text}");
            }
        }
    }
}

#[test]
fn where_samples_are_one_conversation_those_before_are_played_first() {
    for lab in labs().iter().filter(|lab| lab.about.conversation) {
        let count = lab.about.samples.len();
        let (_, text) = Desk::new().mini(&["--lab", lab.number(), "--offline", &count.to_string()]);
        let at = |task: &str| text.find(&format!("› {task}")).unwrap_or_else(|| panic!("{task} is missing: {text}"));
        let order: Vec<usize> = lab.about.samples.iter().map(|sample| at(&sample.task)).collect();
        assert!(order.is_sorted(), "{text}");
        let (_, text) = Desk::new().mini(&["--lab", lab.number(), "--offline", "--json", &count.to_string()]);
        for kind in ["start", "end"] {
            let events = text.matches(&format!("{{\"type\":\"{kind}\"")).count();
            assert_eq!(events, 1, "one conversation is one run: {text}");
        }
    }
}

#[test]
fn without_a_task_and_a_terminal_the_first_sample_plays() {
    for lab in labs() {
        let (exit, text) = Desk::new().mini(&["--lab", lab.name()]);
        assert_eq!(exit, 0, "{text}");
        assert!(text.contains(&lab.about.goal) && text.contains("mini-labs/"), "{text}");
    }
}

#[test]
fn another_task_says_that_it_needs_a_real_model() {
    for lab in labs() {
        let (exit, text) = Desk::new().mini(&["--lab", lab.number(), "--offline", "write me a poem"]);
        assert_eq!(exit, 2, "{text}");
        assert!(text.contains("MINI_BASE_URL"), "{text}");
    }
}

#[test]
fn the_binary_alone_lists_hints_solves_and_checks() {
    let desk = Desk::new();
    let (exit, list) = desk.mini(&["--lab"]);
    assert_eq!(exit, 0, "{list}");
    for lab in labs() {
        assert!(list.contains(&lab.id) && list.contains(&lab.about.goal), "{list}");
        for hint in &lab.about.hints {
            let (exit, text) = desk.mini(&["--lab", lab.number(), "--hint"]);
            assert!(exit == 0 && text.contains(hint), "{text}");
        }
        let (exit, text) = desk.mini(&["--lab", lab.number(), "--solution"]);
        assert_eq!((exit, text), (0, lab.solution()));
        let (exit, text) = desk.mini(&["--lab", lab.number(), "--check"]);
        assert_eq!(exit, 1, "{text}");
        assert!(text.contains("expected:") && text.contains("got:") && text.contains("open:"), "{text}");
    }
}

/// Plays the participant of `--serve`, with this program as the agent of his own. Returns the exit code and what was
/// said at the end.
fn sit_with_our_own(desk: &Desk, lab: &Lab) -> (Option<i32>, String) {
    let mut serve = Command::new(exe());
    serve.args(["--lab", lab.number(), "--serve"]).current_dir(desk.dir.path()).env("HOME", desk.dir.path());
    serve.env("XDG_STATE_HOME", desk.dir.path().join("state"));
    serve.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut serve = serve.spawn().expect("the program runs");
    let mut enter = serve.stdin.take().expect("a pipe");
    let said = BufReader::new(serve.stderr.take().expect("a pipe"));
    let mut known = std::collections::HashMap::new();
    for line in said.lines() {
        let line = line.expect("text");
        if let Some((name, value)) = line.trim().split_once(": ") {
            known.insert(name.to_owned(), value.trim().to_owned());
        }
        if line.starts_with("Run your agent") {
            let mut agent = Command::new(exe());
            let dir = Path::new(&known["directory"]);
            agent.current_dir(dir).env("MINI_BASE_URL", &known["base URL"]).env("MINI_API_KEY", &known["key"]);
            agent.env("MINI_MODEL", &known["model"]).env("HOME", desk.dir.path());
            agent.env("XDG_STATE_HOME", desk.dir.path().join("state"));
            for words in lab.extensions(dir) {
                agent.args(["--ext", &words]);
            }
            if known["questions"] == "answer yes" {
                agent.arg("--yes");
            }
            agent.arg(&known["task"]).stdin(Stdio::null()).output().expect("the agent runs");
            enter.write_all(b"\n").expect("the line is read");
        }
    }
    let ended = serve.wait_with_output().expect("it ends");
    (ended.status.code(), String::from_utf8_lossy(&ended.stdout).into_owned())
}

#[test]
fn another_agent_is_graded_by_the_same_cases() {
    for lab in labs().iter().filter(|lab| lab.about.serve.is_some()) {
        let desk = Desk::new();
        let (exit, text) = sit_with_our_own(&desk, lab);
        let expected = i32::from(text.contains("FAIL"));
        assert_eq!(exit, Some(expected), "{text}");
        desk.check(lab, &solution(lab));
        let (exit, text) = sit_with_our_own(&desk, lab);
        assert_eq!(exit, Some(0), "{}\n{text}", lab.id);
    }
}

#[test]
fn executables_of_a_solution_describe_themselves() {
    for lab in labs() {
        let desk = Desk::new();
        desk.check(&lab, &[]);
        for (path, bytes) in extensions_of(&lab) {
            let file = desk.dir.path().join("extension");
            std::fs::write(&file, bytes).expect("a file");
            let mut command = Command::new("sh");
            command.arg(&file).arg("describe").env("TMPDIR", desk.dir.path());
            let output = command.env_remove("XDG_RUNTIME_DIR").output().expect("sh runs");
            let said: serde_json::Value = serde_json::from_slice(&output.stdout).expect("describe prints JSON");
            assert!(said["tools"].is_array() || said["on_stop"] == true, "{}/{path}: {said}", lab.id);
        }
    }
}

#[test]
fn executables_of_a_solution_leave_no_more_than_the_note_of_the_last_run() {
    for lab in labs() {
        for (path, bytes) in extensions_of(&lab) {
            let desk = Desk::new();
            let (file, notes) = (desk.dir.path().join("extension"), desk.dir.path().join("notes"));
            std::fs::write(&file, bytes).expect("a file");
            std::fs::create_dir(&notes).expect("a directory");
            for _ in 0..3 {
                // The shell in between is the run, and is over afterwards.
                let mut run = Command::new("sh");
                run.args(["-c", "sh \"$0\" describe; exit $?"]).arg(&file).env("TMPDIR", &notes);
                let (exit, text) = desk.ran(run.env("PATH", std::env::var_os("PATH").unwrap_or_default()));
                assert_eq!(exit, 0, "{}/{path}: {text}", lab.id);
            }
            let left = std::fs::read_dir(&notes).expect("the directory").count();
            assert!(left <= 1, "{}/{path} leaves {left} files", lab.id);
        }
    }
}

#[test]
fn the_code_worth_reading_is_there() {
    for lab in labs() {
        let rows = check_code(&String::from_utf8_lossy(&lab.files["README.md"]), "Code worth reading");
        assert!(rows >= 3, "{}: only {rows} rows", lab.id);
    }
}

/// Every file and function that the table of a section names is there. Returns how many.
fn check_code(page: &str, section: &str) -> usize {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let rows = rows(page, section).into_iter().filter(|row| row.contains('`')).map(|row| {
        let words: Vec<&str> = row.split('`').collect();
        let (file, function) = (words[1], words[3]);
        let code = std::fs::read_to_string(root.join(file)).unwrap_or_default();
        let is_there = ["(", "<"].iter().any(|next| code.contains(&format!("fn {function}{next}")));
        assert!(is_there, "there is no {function} in {file}");
    });
    rows.count()
}

/// The rows of the table in a section, without its head.
fn rows<'a>(page: &'a str, section: &str) -> Vec<&'a str> {
    let (_, rest) = page.split_once(&format!("\n## {section}\n")).expect(section);
    let section = rest.split("\n## ").next().unwrap_or_default();
    section.lines().filter(|line| line.starts_with('|')).skip(2).collect()
}

/// The teacher's page, which is no part of the binary.
fn teaching() -> String {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("labs/TEACHING.md");
    std::fs::read_to_string(file).expect("labs/TEACHING.md")
}

#[test]
fn the_teacher_s_map_leads_to_code_that_is_there() {
    assert!(check_code(&teaching(), "Where an idea lives") >= 10);
}

#[test]
fn the_teacher_s_list_names_labs_that_are_there_and_all_that_a_machine_needs() {
    let (page, labs) = (teaching(), labs());
    let rows = rows(&page, "The labs");
    assert!(rows.len() >= 2, "{rows:?}");
    for row in rows {
        let (number, name) = row.split('|').nth(1).and_then(|lab| lab.trim().split_once(' ')).expect("number and name");
        assert!(labs.iter().any(|lab| lab.id == format!("{number}-{name}")), "there is no lab {number} {name}");
        assert!(page.contains(&format!("\n- **{number}** ")), "there is no word on lab {number}");
    }
    for tool in TOOLS {
        assert!(page.contains(&format!("`{tool}`")), "the machine needs {tool}");
    }
    let long = |line: &&str| line.chars().count() > if line.starts_with('|') { 115 } else { 80 };
    assert_eq!(page.lines().find(long), None);
}

#[test]
fn every_lab_has_hints_and_samples_and_needs_no_more_than_sh() {
    for lab in labs() {
        assert!((2..=3).contains(&lab.about.hints.len()), "{}", lab.id);
        assert!(lab.about.samples.len() >= 2, "{}", lab.id);
        assert_eq!(lab.about.samples[0].exit, 0, "{}", lab.id);
        for (path, bytes) in &lab.files {
            let first = String::from_utf8_lossy(bytes).lines().next().unwrap_or_default().to_owned();
            assert!(!first.starts_with("#!") || first == "#!/bin/sh", "{}/{path}: {first}", lab.id);
        }
    }
}

/// All that a lab's machine needs: the shell and awk, git where `lab.json` says so, and the small tools (coreutils and
/// grep) that the demos, the exams and what the gate runs in them start. A tool that is added to a lab has to be added
/// here, and stands in the teacher's list of what the room needs.
const TOOLS: [&str; 10] = ["sh", "awk", "dirname", "env", "tr", "ls", "grep", "sleep", "ln", "sort"];

/// A directory with these programs and no others.
fn only(dir: &Path, tools: &[&str]) {
    std::fs::create_dir(dir).expect("a directory");
    let path = std::env::var_os("PATH").unwrap_or_default();
    for tool in tools {
        let found = std::env::split_paths(&path).map(|dir| dir.join(tool)).find(|file| file.is_file());
        std::os::unix::fs::symlink(found.expect(tool), dir.join(tool)).expect("a link");
    }
}

#[test]
fn labs_need_only_sh_awk_git_and_the_tools_in_the_list() {
    for lab in labs() {
        let desk = Desk::new();
        let bin = desk.dir.path().join("bin");
        let tools = if lab.about.git { [&TOOLS[..], &["git"]].concat() } else { TOOLS.to_vec() };
        only(&bin, &tools);
        let mini = |args: &[&str]| desk.ran(Command::new(exe()).args(args).env("PATH", &bin));
        let (exit, text) = mini(&["--lab", lab.number(), "--check"]);
        assert_eq!(exit, 1, "{}\n{text}", lab.id);
        desk.solve(&lab);
        let (exit, text) = mini(&["--lab", lab.number(), "--check"]);
        assert_eq!(exit, 0, "{}\n{text}", lab.id);
        for sample in &lab.about.samples {
            let (exit, text) = mini(&["--lab", lab.number(), &sample.task]);
            assert_eq!(exit, sample.exit, "{}: {}\n{text}", lab.id, sample.task);
        }
    }
}

#[test]
fn a_lab_opens_no_outside_connection() {
    if Command::new("strace").args(["-o", "/dev/null", "true"]).output().is_ok_and(|ran| ran.status.success()) {
        labs().iter().for_each(connects_to_this_machine_only);
    } else {
        println!("skipped: strace cannot be used here");
    }
}

/// Every `connect` of an exam and of the first sample, as strace sees it: 127.0.0.1, or a socket of the file system.
fn connects_to_this_machine_only(lab: &Lab) {
    for action in ["--check", "--offline"] {
        let desk = Desk::new();
        let calls = desk.dir.path().join("calls");
        let mut command = Command::new("strace");
        command.args(["-f", "-qq", "-e", "trace=connect", "-o"]).arg(&calls).arg(exe());
        let path = std::env::var_os("PATH").unwrap_or_default();
        desk.ran(command.args(["--lab", lab.number(), action]).env("PATH", path));
        let calls = std::fs::read_to_string(calls).expect("strace has written");
        let (here, elsewhere): (Vec<&str>, Vec<&str>) = calls
            .lines()
            .filter(|call| call.contains("sa_family=AF_INET"))
            .partition(|call| call.contains("\"127.0.0.1\""));
        assert!(!here.is_empty(), "{} {action}: nothing was traced", lab.id);
        assert_eq!(elsewhere, Vec::<&str>::new(), "{} {action}", lab.id);
    }
}

#[test]
fn a_reset_never_costs_a_byte_of_the_participant_s() {
    for lab in labs() {
        let desk = Desk::new();
        // Of a directory, a file in it.
        let own =
            lab.about.yours.first().map(|own| if own.ends_with('/') { format!("{own}file") } else { own.clone() });
        let own = own.expect("a file");
        let staged = lab.stage(&desk.home).expect("the demo is laid out");
        for work in ["first\n", "second\n"] {
            put(&staged.dir.join(&own), work.as_bytes());
            let (exit, text) = desk.mini(&["--lab", lab.number(), "--reset", "--yes"]);
            assert!(exit == 0 && text.contains(&format!("moved {own} to mini-labs/.before/{}", lab.id)), "{text}");
        }
        let (exit, text) = desk.mini(&["--lab", lab.number(), "--reset", "--yes"]);
        assert!(exit == 0 && text.ends_with("is as shipped\n"), "{text}");
        let kept = |name: &str| std::fs::read_to_string(desk.home.join(&format!(".before/{name}/{own}"))).expect(name);
        assert_eq!([kept(&lab.id), kept(&format!("{}-2", lab.id))], ["first\n", "second\n"]);
        assert!(!desk.home.join(&format!(".before/{}-3", lab.id)).exists());
    }
}

#[test]
fn the_gate_is_asked_in_the_lab_s_own_demo() {
    for lab in labs() {
        let desk = Desk::new();
        let wanted = if lab.about.git { "RUN" } else { "ASK" };
        let (_, text) = desk.mini(&["--lab", lab.number(), "--why", "git log -p"]);
        assert!(text.starts_with(wanted), "{}: {text}", lab.id);
        let (exit, text) = desk.mini(&["--lab", lab.number(), "--why", "cat .env"]);
        assert!(exit == 1 && text.starts_with("REFUSE"), "{text}");
    }
}

#[test]
fn wherever_a_lab_suggests_to_ask_the_gate_the_words_work() {
    for lab in labs() {
        for (path, bytes) in &lab.files {
            let text = String::from_utf8_lossy(bytes).into_owned();
            let asks = |line: &&str| line.contains("--why") && !line.contains(&format!("--lab {} --why", lab.number()));
            assert_eq!(text.lines().find(asks), None, "{}/{path}", lab.id);
        }
    }
}

#[test]
fn quiet_means_no_introduction() {
    for lab in labs() {
        let (exit, text) = Desk::new().mini(&["--lab", lab.number(), "--offline", "--quiet"]);
        assert!(exit == 0 && !text.is_empty(), "{text}");
        for word in [&lab.about.goal, "to read:", "model: recorded", "› "] {
            assert!(!text.contains(word), "{word}: {text}");
        }
    }
}

#[test]
fn what_was_not_allowed_is_not_blamed_on_the_person() {
    for lab in labs() {
        for sample in &lab.about.samples {
            let (_, text) = Desk::new().mini(&["--lab", lab.number(), "--offline", "--plan", &sample.task]);
            assert!(!text.contains("You did not"), "{text}");
        }
    }
}

#[test]
fn a_broken_file_is_named_where_the_participant_finds_it() {
    for lab in labs().iter().filter(|lab| lab.about.yours.iter().any(|own| own.ends_with(".json"))) {
        let desk = Desk::new();
        let own = lab.about.yours.iter().find(|own| own.ends_with(".json")).expect("one");
        let staged = lab.stage(&desk.home).expect("the demo is laid out");
        // It ends in the middle, so what its members are called does not matter.
        std::fs::write(staged.dir.join(own), "{\n").expect("a file");
        let (exit, text) = desk.mini(&["--lab", lab.number(), "--check"]);
        assert!(exit == 1 && text.contains(&format!("mini-labs/{}/{own}: EOF", lab.id)), "{text}");
        assert!(!text.contains("mini-exam"), "{text}");
        let results = std::fs::read_to_string(desk.home.join("results.json")).expect("results.json");
        assert!(!results.contains("mini-exam"), "{results}");
    }
}

/// A line that cannot be broken: data for programs (a server's tools, a log), a row of a table, a value of front
/// matter, an entry with a date, which stays whole when it is moved; and Rust, which has the width of the source tree.
fn is_unbroken(path: &str, line: &str) -> bool {
    let data = [".json", ".jsonl", ".rs"].iter().any(|end| path.ends_with(end));
    data || ["| ", "description: ", "- 20"].iter().any(|start| line.starts_with(start))
}

#[test]
fn files_that_are_read_fit_a_terminal() {
    for lab in labs() {
        // A log is read with a program, and not by eye.
        let read =
            |path: &str| (path.starts_with("demo/") || path.starts_with("solution/")) && !path.ends_with(".jsonl");
        for (path, bytes) in lab.files.iter().filter(|(path, _)| read(path)) {
            let text = String::from_utf8_lossy(bytes).into_owned();
            let long = |line: &&str| line.chars().count() > 80 && !is_unbroken(path, line);
            assert_eq!(text.lines().find(long), None, "{}/{path}", lab.id);
        }
    }
}

#[test]
fn pages_fit_a_terminal_and_name_no_neighbour() {
    for lab in labs() {
        for path in ["README.md", "exercise/A.md", "exercise/B.md"] {
            let text = String::from_utf8_lossy(&lab.files[path]).into_owned();
            // A row of a table cannot be broken, nor a message of a protocol.
            let unbroken = |line: &str| line.starts_with('|') || line.starts_with("    {");
            let most = |line: &&str| line.chars().count() > if unbroken(line) { 115 } else { 80 };
            assert_eq!(text.lines().find(most), None, "{}/{path}", lab.id);
            let prose = text.split_whitespace().collect::<Vec<_>>().join(" ");
            // Labs come in any order, and some come later: only a number says which one is meant.
            for word in ["last lab", "next lab", "previous lab"] {
                assert!(!prose.contains(word), "{}/{path} speaks of the {word}", lab.id);
            }
        }
    }
}
