//! Every code block of README and the guide is code that compiles, a file that
//! CI builds as it stands, or a command that exists.

mod blocks;
mod commands;
mod configuration;
mod guide;
mod middleware;
mod observe;
mod performance;
mod production;
mod resilience;

use std::path::{Path, PathBuf};

use blocks::{Block, blocks};

/// Where the compiled code lies that the pages show.
const COMPILED: &[&str] = &["examples/src", "examples/src/bin", "tests/docs/docs"];

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn read(path: &Path) -> String {
    let text = std::fs::read_to_string(path).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
    text.replace("\r\n", "\n")
}

fn files(folder: &str, extension: &str) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(root().join(folder)).expect("the folder is there");
    let paths = entries.map(|entry| entry.expect("an entry").path());
    paths
        .filter(|path| path.extension().is_some_and(|e| e == extension))
        .collect()
}

/// README and the pages of the guide, with their blocks.
fn pages() -> Vec<(String, Vec<Block>)> {
    let mut paths = files("docs/guide", "md");
    assert!(paths.len() >= 2, "the guide's pages are found");
    paths.push(root().join("README.md"));
    let page = |path: PathBuf| {
        let name = path
            .file_name()
            .map(|name| name.to_string_lossy().into_owned());
        (name.unwrap_or_default(), blocks(&read(&path)))
    };
    paths.into_iter().map(page).collect()
}

#[test]
fn rust_is_compiled_somewhere() {
    let compiled: Vec<String> = COMPILED
        .iter()
        .flat_map(|folder| files(folder, "rs"))
        .map(|path| blocks::dedented(&read(&path)))
        .collect();
    for (page, blocks) in pages() {
        for block in blocks.iter().filter(|block| block.language == "rust") {
            let is_compiled = block.file.is_some()
                || compiled
                    .iter()
                    .any(|code| code.contains(&blocks::dedented(&block.text)));
            assert!(
                is_compiled,
                "{page}:{}: no compiled file in {COMPILED:?} has this block:\n{}",
                block.line, block.text
            );
        }
    }
}

/// `scripts/readme-crate` writes these files, and a step of CI builds them.
#[test]
fn files_are_those_of_the_readmes_crate() {
    for (page, blocks) in pages() {
        for block in &blocks {
            let is_file = matches!(block.language.as_str(), "toml" | "proto");
            let named = block.file.is_some();
            assert!(
                named == (page == "README.md" && (is_file || block.language == "rust")),
                "{page}:{}: only files of README's own service have a name: {:?}",
                block.line,
                block.file
            );
            let known = ["rust", "sh", "text", "toml", "proto", "yaml"];
            assert!(
                known.contains(&block.language.as_str()),
                "{page}:{}: a block says what it is: one of {known:?}",
                block.line
            );
        }
    }
}

/// The page shows what the workflow runs; `quill-cli`'s tests run lists of
/// benchmarks.
#[test]
fn yaml_is_the_workflows() {
    let workflow = blocks::dedented(&read(&root().join(".github/workflows/bench.yml")));
    for (page, blocks) in pages() {
        let is_workflow =
            |block: &&Block| block.language == "yaml" && !block.text.starts_with("benchmarks:\n");
        // Those of settings are read by a test of their own.
        if page == "configuration.md" {
            continue;
        }
        for block in blocks.iter().filter(is_workflow) {
            assert!(
                workflow.contains(&blocks::dedented(&block.text)),
                "{page}:{}: bench.yml does not have this block",
                block.line
            );
        }
    }
}

#[test]
fn commands_exist() {
    for (page, blocks) in pages() {
        for block in blocks.iter().filter(|block| block.language == "sh") {
            for command in commands::commands(&block.text) {
                if let Err(wrong) = commands::check(&command) {
                    panic!("{page}:{}: `{}`: {wrong}", block.line, command.join(" "));
                }
            }
        }
    }
}
