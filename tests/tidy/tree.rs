//! The files a commit would hold, read once.

use std::collections::BTreeMap;
use std::fmt;
use std::path::{Path, PathBuf};
use std::process::Command;

/// One broken rule: where, and a sentence that says what is wrong and what is allowed.
#[derive(Debug)]
pub(crate) struct Fault {
    path: String,
    line: usize,
    sentence: String,
}

impl Fault {
    /// `line` counts from one.
    pub(crate) fn new(path: &str, line: usize, sentence: impl Into<String>) -> Self {
        Self {
            path: path.to_owned(),
            line,
            sentence: sentence.into(),
        }
    }

    #[cfg(test)]
    pub(crate) fn line(&self) -> usize {
        self.line
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}: {}", self.path, self.line, self.sentence)
    }
}

/// Text files by their path from the workspace's root, with `/` between folders.
pub(crate) struct Tree {
    root: PathBuf,
    files: BTreeMap<String, String>,
}

impl Tree {
    pub(crate) fn of_workspace() -> Self {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
        let paths = listed_by_git(&root).unwrap_or_else(|| walked(&root));
        let files = paths
            .into_iter()
            .filter_map(|path| {
                // A file that is not text (an image, golden bytes) has no rules here.
                let text = std::fs::read_to_string(root.join(&path)).ok()?;
                Some((path, text.replace("\r\n", "\n")))
            })
            .collect();
        Self { root, files }
    }

    #[cfg(test)]
    pub(crate) fn of(files: &[(&str, &str)]) -> Self {
        let files = files
            .iter()
            .map(|&(path, text)| (path.to_owned(), text.to_owned()))
            .collect();
        Self {
            root: PathBuf::from("no-such-folder"),
            files,
        }
    }

    pub(crate) fn files(&self) -> impl Iterator<Item = (&str, &str)> {
        self.files
            .iter()
            .map(|(path, text)| (path.as_str(), text.as_str()))
    }

    /// The files whose names end in `.extension`.
    pub(crate) fn with_extension(&self, extension: &str) -> impl Iterator<Item = (&str, &str)> {
        let ending = format!(".{extension}");
        self.files()
            .filter(move |(path, _)| path.ends_with(&ending))
    }

    pub(crate) fn text(&self, path: &str) -> Option<&str> {
        self.files.get(path).map(String::as_str)
    }

    /// Whether `path` is a file or folder, text or not.
    pub(crate) fn exists(&self, path: &str) -> bool {
        self.files.contains_key(path) || self.root.join(path).exists()
    }
}

fn listed_by_git(root: &Path) -> Option<Vec<String>> {
    let output = Command::new("git")
        .args([
            "ls-files",
            "-z",
            "--cached",
            "--others",
            "--exclude-standard",
        ])
        .current_dir(root)
        .output()
        .ok()?;
    let listed = String::from_utf8(output.stdout).ok()?;
    let paths: Vec<String> = listed
        .split('\0')
        .filter(|path| !path.is_empty())
        .map(str::to_owned)
        .collect();
    (output.status.success() && !paths.is_empty()).then_some(paths)
}

/// What a source archive holds, where git is absent.
fn walked(root: &Path) -> Vec<String> {
    let mut paths = Vec::new();
    let mut folders = vec![String::new()];
    while let Some(folder) = folders.pop() {
        let Ok(entries) = std::fs::read_dir(root.join(&folder)) else {
            continue;
        };
        for entry in entries.flatten() {
            let name = entry.file_name().to_string_lossy().into_owned();
            let path = format!("{folder}{name}");
            let Ok(kind) = entry.file_type() else {
                continue;
            };
            if kind.is_file() {
                paths.push(path);
            } else if kind.is_dir() && !["target", ".git", "node_modules"].contains(&name.as_str())
            {
                folders.push(format!("{path}/"));
            }
        }
    }
    paths
}

#[test]
fn walking_finds_what_git_lists() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let walked = walked(&root);
    assert!(walked.contains(&"tests/tidy/tree.rs".to_owned()));
    assert!(
        walked
            .iter()
            .all(|path| !path.starts_with("target/") && !path.starts_with(".git/"))
    );
}
