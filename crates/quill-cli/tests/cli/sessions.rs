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

fn guide() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/guide")
}

/// The commands of a block, with what is said to follow each.
fn commands(block: &str) -> Vec<(String, String)> {
    let mut commands: Vec<(String, String)> = Vec::new();
    for line in block.lines() {
        match (line.strip_prefix("$ "), commands.last_mut()) {
            (Some(command), _) => commands.push((command.to_owned(), String::new())),
            (None, Some((command, _))) if command.ends_with('\\') => {
                let _ = write!(command, "\n{line}");
            }
            (None, Some((_, printed))) => {
                let _ = writeln!(printed, "{line}");
            }
            (None, None) => panic!("a session begins with a command"),
        }
    }
    commands
}

/// Runs a page's session, and gives what every command printed.
fn played(page: &str, commands: &[(String, String)], demo: &Demo) -> Vec<String> {
    let folder = scratch(page);
    let prepared = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("tests/sessions")
        .join(page);
    copy(&prepared, &folder);
    let mut script = String::from("exec 2>&1\n");
    if prepared.join("prepare.sh").is_file() {
        script.push_str(". ./prepare.sh\nrm prepare.sh\n");
    }
    for (command, _) in commands {
        // The code of each is that of the next one's `$?`.
        let _ = write!(
            script,
            "{command}\ncode=$?; printf '{MARK}'; (exit $code)\n"
        );
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
    printed
        .split(MARK)
        .map(str::to_owned)
        .take(commands.len())
        .collect()
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

#[test]
fn sessions_of_the_guide_are_what_is_printed() {
    let demo = Demo::start();
    let mut sessions = 0;
    for entry in std::fs::read_dir(guide()).unwrap() {
        let path = entry.unwrap().path();
        let text = std::fs::read_to_string(&path)
            .unwrap()
            .replace("\r\n", "\n");
        let page = path.file_stem().unwrap().to_string_lossy().into_owned();
        let mut written = text.clone();
        for block in text.split("```text\n").skip(1) {
            let block = block.split("```").next().unwrap();
            if !block.starts_with("$ ") {
                continue;
            }
            sessions += 1;
            let commands = commands(block);
            let printed = played(&page, &commands, &demo);
            let session: String = commands
                .iter()
                .zip(&printed)
                .map(|((command, _), printed)| format!("$ {command}\n{printed}"))
                .collect();
            written = written.replace(block, &session);
        }
        if std::env::var_os("UPDATE_SESSIONS").is_some() {
            std::fs::write(&path, written).unwrap();
        } else {
            assert_eq!(
                text, written,
                "{page}: UPDATE_SESSIONS=1 writes what is printed"
            );
        }
    }
    assert!(sessions >= 1);
}
