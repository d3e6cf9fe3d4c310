//! Commands of shell blocks: whether what they name exists. `quill-cli`'s tests
//! run those that call the demo.

use crate::{files, read, root};

/// The commands of a block as words; comments are left out, and lines that end
/// in a backslash go on.
pub(crate) fn commands(block: &str) -> Vec<Vec<String>> {
    let joined = block.replace("\\\n", " ");
    let lines = joined.lines().map(words);
    lines.filter(|words| !words.is_empty()).collect()
}

/// Words as a shell splits them, with single quotes.
fn words(line: &str) -> Vec<String> {
    let mut words = Vec::new();
    for (index, piece) in line.split('\'').enumerate() {
        if index % 2 == 1 {
            words.push(piece.to_owned());
            continue;
        }
        for word in piece.split_whitespace() {
            if word.starts_with('#') {
                return words;
            }
            words.push(word.trim_matches('"').to_owned());
        }
    }
    words
}

/// Programs of others, whose options are not ours to check, and the command,
/// which is run.
const OTHERS: &[&str] = &[
    "buf",
    "cd",
    "curl",
    "grpc-health-probe",
    "grpcurl",
    "mkdir",
    "perf",
    "quill",
];

pub(crate) fn check(command: &[String]) -> Result<(), String> {
    match command[0].as_str() {
        "cargo" => check_cargo(&command[1..]),
        program if OTHERS.contains(&program) => Ok(()),
        program if root().join(program).is_file() => check_compare(command),
        program => Err(format!("nobody knows the program {program}")),
    }
}

fn check_cargo(arguments: &[String]) -> Result<(), String> {
    let known = ["bench", "flamegraph", "install", "new", "run", "test"];
    let subcommand = arguments.first().map_or("", String::as_str);
    if !known.contains(&subcommand) {
        return Err(format!("cargo {subcommand} is not one of {known:?}"));
    }
    let value = |flag: &str| {
        let at = arguments.iter().position(|argument| argument == flag)?;
        arguments.get(at + 1).map(String::as_str)
    };
    if let Some(path) = value("--path") {
        exists(&format!("{path}/Cargo.toml"))?;
    }
    let Some(package) = value("-p") else {
        return Ok(());
    };
    let folder = folder(package)?;
    if let Some(bench) = value("--bench") {
        exists(&format!("{folder}/benches/{bench}.rs"))?;
        if let Some(filter) = arguments.iter().skip_while(|a| *a != "--").nth(1) {
            let source = read(&root().join(format!("{folder}/benches/{bench}.rs")));
            let filter = filter
                .rsplit_once('_')
                .map_or(filter.as_str(), |(work, _)| work);
            if !filter.starts_with('-') && !source.contains(filter) {
                return Err(format!("no bench of {bench} is called {filter}"));
            }
        }
    }
    match value("--bin") {
        Some(bin) => exists(&format!("{folder}/src/bin/{bin}.rs")),
        None => Ok(()),
    }
}

fn check_compare(command: &[String]) -> Result<(), String> {
    match command {
        [program, work, ..] if program == "compare/run" => exists(&format!("compare/{work}")),
        _ => Ok(()),
    }
}

fn folder(package: &str) -> Result<String, String> {
    match package {
        "quill-examples" => Ok("examples".to_owned()),
        package if root().join("crates").join(package).is_dir() => Ok(format!("crates/{package}")),
        package => Err(format!("there is no package {package}")),
    }
}

fn exists(path: &str) -> Result<(), String> {
    if root().join(path).exists() {
        return Ok(());
    }
    Err(format!("there is no {path}"))
}

#[test]
fn commands_are_split_as_a_shell_does() {
    let found = commands("# a comment\ncurl -d '{\"a\": 1}' \\\n  \"x\" # and another\n");
    assert_eq!(found, [["curl", "-d", "{\"a\": 1}", "x"]]);
}

#[test]
fn commands_that_name_what_is_not_there_are_found() {
    let wrong = [
        "frobnicate",
        "cargo frobnicate",
        "cargo run -p quill-no-such",
        "cargo run -p quill-examples --bin no_such",
        "cargo bench -p quill-core --bench no_such",
        "cargo bench -p quill-core --bench frame_benchmark -- no_such_1kb",
        "cargo install --path crates/no-such",
        "compare/run no-such",
    ];
    for line in wrong {
        assert!(check(&commands(line)[0]).is_err(), "{line}");
    }
    assert!(!files("examples/src/bin", "rs").is_empty());
}
