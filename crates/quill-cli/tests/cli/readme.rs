//! README's calls of the demo work as pasted, but for the port.

use std::path::Path;
use std::process::Command;

use crate::support::{Demo, external, run};

/// The commands of the shell blocks under "Call the demo".
fn commands() -> Vec<String> {
    let readme = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../README.md");
    let readme = std::fs::read_to_string(readme).unwrap();
    let (_, section) = readme.split_once("\n## Call the demo\n").unwrap();
    let (section, _) = section.split_once("\n## ").unwrap();
    let blocks = section.split("```").skip(1).step_by(2);
    let joined = blocks
        .filter_map(|block| block.strip_prefix("sh\n"))
        .map(|block| block.replace("\\\n", " "));
    let lines = joined.map(|block| block.lines().map(str::to_owned).collect::<Vec<_>>());
    lines.flatten().collect()
}

/// What the demo repeats of a request: the text of its message, or of its error.
fn repeated(command: &str) -> Option<&str> {
    let (_, text) = command.split_once("essage\":\"")?;
    if command.contains("/Collect") {
        return Some("\"count\":2");
    }
    text.split('"').next()
}

#[test]
fn its_calls_of_the_demo_work() {
    let demo = Demo::start();
    let commands = commands();
    assert!(commands.len() >= 15, "{commands:#?}");
    let folder = Path::new(env!("CARGO_BIN_EXE_quill")).parent().unwrap();
    let path = std::env::var("PATH").unwrap();
    for command in commands {
        let program = command.split(' ').next().unwrap();
        if program != "quill" && external(program).is_none() {
            continue;
        }
        let mut shell = Command::new("sh");
        shell
            .arg("-euc")
            .arg(command.replace("127.0.0.1:8080", &demo.address))
            .env("PATH", format!("{}:{path}", folder.display()));
        let ran = run(shell, b"");
        assert_eq!(ran.code, Some(0), "{command}\n{ran:#?}");
        if let Some(text) = repeated(&command) {
            assert!(ran.stdout.contains(text), "{command}\n{ran:#?}");
        }
    }
}
