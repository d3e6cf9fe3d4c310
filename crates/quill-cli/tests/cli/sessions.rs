//! The recorded sessions of the guide: every block of text that begins with `$ `
//! is run, and must print what stands below.
//!
//! A page's files and preparations are in `tests/sessions/PAGE`; the demo takes
//! the place of `127.0.0.1:8080`. `UPDATE_SESSIONS=1` writes what was printed.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::support::{Demo, run, scratch};

const DEMO: &str = "127.0.0.1:8080";
/// Stands before what follows each command; nothing prints it.
const MARK: char = '\u{1}';
/// Commands that print measurements, no two of which are the same.
const MEASURING: [&str; 2] = ["quill bench", " --verbose"];

fn guide() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/guide")
}

/// A command, and what is said to follow it.
struct Step {
    command: String,
    printed: String,
}

fn steps(block: &str) -> Vec<Step> {
    let mut steps: Vec<Step> = Vec::new();
    for line in block.lines() {
        match (line.strip_prefix("$ "), steps.last_mut()) {
            (Some(command), _) => steps.push(Step {
                command: command.to_owned(),
                printed: String::new(),
            }),
            (None, Some(step)) if step.printed.is_empty() && step.command.ends_with('\\') => {
                let _ = write!(step.command, "\n{line}");
            }
            (None, Some(step)) => {
                let _ = writeln!(step.printed, "{line}");
            }
            (None, None) => panic!("a session begins with a command"),
        }
    }
    steps
}

/// Runs a page's session, and gives what every command printed.
fn played(page: &str, steps: &[Step], demo: &Demo) -> Vec<String> {
    let folder = scratch(page);
    let prepared = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/sessions");
    let prepared = prepared.join(page);
    copy(&prepared, &folder);
    let mut script = String::from("exec 2>&1\n");
    if prepared.join("prepare.sh").is_file() {
        script.push_str(". ./prepare.sh\nrm prepare.sh\n");
    }
    for step in steps {
        // The code of each is that of the next one's `$?`.
        let command = &step.command;
        let _ = writeln!(script, "{command}\ncode=$?; printf '{MARK}'; (exit $code)");
    }
    let binaries = Path::new(env!("CARGO_BIN_EXE_quill")).parent().unwrap();
    let path = std::env::var("PATH").unwrap();
    let mut shell = Command::new("sh");
    shell
        .arg("-c")
        .arg(script.replace(DEMO, &demo.address))
        .env("PATH", format!("{}:{path}", binaries.display()))
        .current_dir(&folder);
    let ran = run(shell, b"");
    let printed = ran.stdout.replace(&demo.address, DEMO);
    let printed = printed.split(MARK).map(str::to_owned);
    printed.take(steps.len()).collect()
}

fn copy(from: &Path, to: &Path) {
    std::fs::create_dir_all(to).unwrap();
    let Ok(entries) = std::fs::read_dir(from) else {
        return;
    };
    for entry in entries {
        let path = entry.unwrap().path();
        let target = to.join(path.file_name().unwrap());
        if path.is_dir() {
            copy(&path, &target);
        } else {
            std::fs::copy(&path, target).unwrap();
        }
    }
}

/// A text without what differs from one measurement to the next: numbers, with
/// their units, and dates.
fn unmeasured(text: &str) -> String {
    let lines = text.lines().map(|line| match line.split_once("date: ") {
        Some((before, _)) => format!("{before}date"),
        None => unnumbered(line),
    });
    lines.collect::<Vec<_>>().join("\n")
}

fn unnumbered(line: &str) -> String {
    let mut without = String::new();
    let mut rest = line;
    while let Some(c) = rest.chars().next() {
        let is_number = c.is_ascii_digit() && !without.ends_with(char::is_alphanumeric);
        if !is_number {
            without.push(c);
            rest = &rest[c.len_utf8()..];
            continue;
        }
        without.push('#');
        rest = rest.trim_start_matches(|c: char| c.is_ascii_digit() || ".,:".contains(c));
        for unit in ["µs", "ms", "s", " B", " kB", " MB", " GB"] {
            rest = rest.strip_prefix(unit).unwrap_or(rest);
        }
    }
    without
}

fn is_as_said(step: &Step, printed: &str) -> bool {
    if MEASURING.iter().any(|word| step.command.contains(word)) {
        return unmeasured(&step.printed) == unmeasured(printed);
    }
    step.printed == printed
}

#[test]
fn sessions_of_the_guide_are_what_is_printed() {
    let demo = Demo::start();
    let is_update = std::env::var_os("UPDATE_SESSIONS").is_some();
    let mut sessions = 0;
    for entry in std::fs::read_dir(guide()).unwrap() {
        let path = entry.unwrap().path();
        let text = std::fs::read_to_string(&path).unwrap();
        let text = text.replace("\r\n", "\n");
        let page = path.file_stem().unwrap().to_string_lossy().into_owned();
        let mut written = text.clone();
        for block in text.split("```text\n").skip(1) {
            let block = block.split("```").next().unwrap();
            if !block.starts_with("$ ") {
                continue;
            }
            sessions += 1;
            let steps = steps(block);
            let mut session = String::new();
            for (step, printed) in steps.iter().zip(played(&page, &steps, &demo)) {
                let command = &step.command;
                assert!(
                    is_update || is_as_said(step, &printed),
                    "{page}: UPDATE_SESSIONS=1 writes what is printed\n$ {command}\n{printed}"
                );
                let _ = write!(session, "$ {command}\n{printed}");
            }
            written = written.replace(block, &session);
        }
        if is_update && written != text {
            std::fs::write(&path, written).unwrap();
        }
    }
    assert!(sessions >= 1);
}

#[test]
fn measurements_differ_in_figures_alone() {
    let one = "p99 1.12ms, 209.3 kB sent, 8 at a time, v1.Echo";
    assert_eq!(unmeasured(one), "p99 #, # sent, # at a time, v1.Echo");
    assert_eq!(
        unmeasured("p99 3s, 17 B sent"),
        unmeasured("p99 1.12ms, 209.3 kB sent")
    );
    assert_ne!(unmeasured("1 sent"), unmeasured("1 received"));
    assert_eq!(
        unmeasured("header date: Tue, 01"),
        unmeasured("header date: Fri, 04")
    );
}
