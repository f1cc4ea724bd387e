//! The workspace against its corpus: which paths become files, also when the disk changes between check and use.

use std::fs;
use std::io::{self, Read};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

use super::fixture::{Fixture, cases};
use rustix::fs::{CWD, RenameFlags, renameat_with};
use serde_json::Value;

use mini::workspace::{Kind, Place, Seen, Trouble, Workspace};

/// What a tool does before the question and after the answer, with the disk changing in between.
fn use_path(workspace: &Workspace, tool: &str, path: &str, between: &dyn Fn()) -> Result<(), Trouble> {
    let verb = match tool {
        "read" => "read",
        "write" => "write",
        _ => "edit",
    };
    let place = workspace.resolve(path, verb)?;
    let seen = seen(workspace, &place)?;
    between();
    match tool {
        "read" => {
            let mut text = String::new();
            workspace.open_place(&place)?.read_to_string(&mut text).unwrap();
            assert!(!text.contains("outside"), "read a file outside");
            Ok(())
        }
        _ => workspace.replace(&place, b"new content\n", &seen),
    }
}

fn seen(workspace: &Workspace, place: &Place) -> Result<Seen, Trouble> {
    match place.kind() {
        Kind::Missing => Ok(Seen::Absent),
        _ => Ok(Seen::of(&workspace.open_place(place)?).unwrap()),
    }
}

fn check(fixture: &Fixture, row: &Value) -> Result<(), String> {
    let listed = |key: &str| row["check"][key].as_array().cloned().unwrap_or_default();
    let paths =
        |key: &str| listed(key).into_iter().map(|path| fixture.path(path.as_str().unwrap())).collect::<Vec<_>>();
    for path in paths("unchanged") {
        if fs::read_to_string(&path).unwrap() != "outside\n" {
            return Err(format!("{} changed", path.display()));
        }
    }
    if let Some(path) = paths("absent").iter().find(|path| path.symlink_metadata().is_ok()) {
        return Err(format!("{} exists", path.display()));
    }
    match paths("islink").iter().find(|path| !path.is_symlink()) {
        Some(path) => Err(format!("{} is no link", path.display())),
        None => Ok(()),
    }
}

/// No temporary file may be left, whatever came of it.
fn leftovers(dir: &Path) -> usize {
    let entries = fs::read_dir(dir).into_iter().flatten().filter_map(Result::ok);
    entries.filter(|entry| entry.file_name().to_string_lossy().starts_with(".mini-")).count()
}

#[test]
fn every_path_of_the_corpus() {
    let mut wrong = Vec::new();
    let rows = cases(include_str!("../cases/paths.jsonl"));
    for row in &rows {
        let fixture = Fixture::new();
        let (between, before): (Vec<&Value>, Vec<&Value>) =
            row["setup"].as_array().unwrap().iter().partition(|op| op["when"] == "between");
        before.iter().for_each(|op| fixture.apply(op));
        let workspace = fixture.workspace();
        let path = fixture.fill(row["path"].as_str().unwrap());
        let swap = || between.iter().for_each(|op| fixture.apply(op));
        let result = use_path(&workspace, row["tool"].as_str().unwrap(), &path, &swap);
        let right = result.is_ok() == (row["want"] == "ok");
        let checked = check(&fixture, row);
        if !right || checked.is_err() || leftovers(&fixture.ws) + leftovers(&fixture.out) > 0 {
            wrong.push(format!(
                "{} {path:?} want {} ({}): {result:?} {checked:?}",
                row["tool"], row["want"], row["why"]
            ));
        }
    }
    assert!(wrong.is_empty(), "{} of {} wrong:\n{}", wrong.len(), rows.len(), wrong.join("\n"));
}

/// A file and a link out of the workspace take turns at one name while it is read. Set MINI_SWAPS for a longer run.
#[test]
fn a_name_that_is_swapped_all_the_time_never_leads_out() {
    let rounds: usize = std::env::var("MINI_SWAPS").ok().and_then(|n| n.parse().ok()).unwrap_or(2_000);
    let fixture = Fixture::new();
    fs::write(fixture.out.join("f"), "outside\n").unwrap();
    fs::create_dir_all(fixture.ws.join("dir")).unwrap();
    fs::write(fixture.ws.join("dir/f"), "inside\n").unwrap();
    let workspace = fixture.workspace();
    let stop = AtomicBool::new(false);
    let (mut inside, mut blocked, mut outside) = (0, 0, 0);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let (live, link) = (fixture.ws.join("dir"), fixture.ws.join("link"));
            std::os::unix::fs::symlink(&fixture.out, &link).unwrap();
            while !stop.load(Ordering::Relaxed) {
                // Exchanged in one step: the name is never missing.
                renameat_with(CWD, &live, CWD, &link, RenameFlags::EXCHANGE).unwrap();
            }
        });
        for round in 0..rounds {
            if round % 10 == 0 {
                // Works or fails, as the moment has it; what matters is where it does not write.
                let _ = use_path(&workspace, "write", &format!("dir/new{round}"), &|| {});
            }
            // Counted here and judged below: a panic would leave the other thread running.
            match workspace.open_read("dir/f").map(|(file, _)| io::read_to_string(file)) {
                Ok(Ok(text)) if text == "inside\n" => inside += 1,
                Ok(_) => outside += 1,
                Err(_) => blocked += 1,
            }
        }
        stop.store(true, Ordering::Relaxed);
    });
    assert_eq!(outside, 0);
    assert!(inside > 0 && blocked > 0, "no swap was met: {inside} inside, {blocked} blocked");
    assert_eq!(fs::read_dir(&fixture.out).unwrap().count(), 1, "something was written outside");
    assert!(fs::read_to_string(fixture.out.join("f")).unwrap() == "outside\n");
}

/// One table for all three tools: other spellings of protected names, links to them, and links that lead nowhere.
#[test]
fn protected_names_and_loops_stop_read_write_and_edit_alike() {
    let fixture = Fixture::new();
    fs::write(fixture.ws.join(".env"), "secret\n").unwrap();
    fs::create_dir_all(fixture.ws.join(".git")).unwrap();
    fs::create_dir_all(fixture.ws.join("sub")).unwrap();
    let link = |target: &str, name: &str| std::os::unix::fs::symlink(target, fixture.ws.join(name)).unwrap();
    link(".env", "plain.txt");
    link("../.git", "sub/history");
    link("loop-b", "loop-a");
    link("loop-a", "loop-b");
    link("self", "sub/self");
    link("plain.txt", "twice.txt");
    let workspace = fixture.workspace();
    let protected = [
        ".env",
        ".ENV",
        ".Env",
        ".env.",
        ".env ",
        ".env::$DATA",
        ".e\u{200d}nv",
        ".env.LOCAL",
        "sub/../.env",
        "./.env",
        "X.ENV",
        ".GIT/config",
        ".Git/HEAD",
        "git~1/config",
        ".\u{17f}\u{17f}h/id",
        ".ENVRC",
        "ID_RSA",
        "plain.txt",
        "twice.txt",
        "sub/history/config",
    ];
    let loops = ["loop-a", "loop-b/x", "sub/self", "sub/self/../x"];
    for tool in ["read", "write", "edit"] {
        for path in protected {
            let result = use_path(&workspace, tool, path, &|| {});
            assert!(
                matches!(&result, Err(Trouble::Blocked(why)) if why.contains("protected")),
                "{tool} {path}: {result:?}"
            );
        }
        for path in loops {
            let result = use_path(&workspace, tool, path, &|| {});
            assert!(matches!(&result, Err(Trouble::Error(why)) if why.contains("circle")), "{tool} {path}: {result:?}");
        }
    }
    assert_eq!(fs::read_to_string(fixture.ws.join(".env")).unwrap(), "secret\n");
}
