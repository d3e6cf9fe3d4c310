//! Generated files, beside those that are there.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use crate::failure::Failure;

/// How deep a folder of generated code is searched.
const DEPTH_MAX: usize = 32;

/// Files by their paths.
pub(crate) type Generated = BTreeMap<PathBuf, String>;

/// Writes what is not there already, and gives the paths of what was written.
pub(crate) fn write(files: &Generated) -> Result<Vec<&Path>, Failure> {
    let mut written = Vec::new();
    for (path, text) in files {
        if is_same(path, text) {
            continue;
        }
        let folder = path.parent().unwrap_or(Path::new(""));
        std::fs::create_dir_all(folder)
            .and_then(|()| std::fs::write(path, text))
            .map_err(|error| Failure::input(format!("{}: {error}", path.display())))?;
        written.push(&**path);
    }
    Ok(written)
}

/// A line for each file that is not what is generated now: missing, different, or
/// generated once and no longer.
pub(crate) fn stale(files: &Generated, folders: &[PathBuf]) -> Vec<String> {
    let mut stale = Vec::new();
    for (path, text) in files {
        let shown = path.display();
        if !path.exists() {
            stale.push(format!("{shown}: is missing"));
        } else if !is_same(path, text) {
            stale.push(format!("{shown}: is not what is generated now"));
        }
    }
    let mut left = Vec::new();
    for folder in folders {
        find_generated(folder, DEPTH_MAX, &mut left);
    }
    left.sort_unstable();
    left.dedup();
    for path in left.iter().filter(|path| !files.contains_key(*path)) {
        stale.push(format!(
            "{}: is generated no longer; delete it",
            path.display()
        ));
    }
    stale
}

fn is_same(path: &Path, text: &str) -> bool {
    std::fs::read(path).is_ok_and(|there| there == text.as_bytes())
}

/// Adds the files that say, in their first lines, that they are generated.
fn find_generated(folder: &Path, depth: usize, found: &mut Vec<PathBuf>) {
    let Ok(entries) = std::fs::read_dir(folder) else {
        return;
    };
    for path in entries.filter_map(|entry| Some(entry.ok()?.path())) {
        if path.is_dir() {
            if depth > 0 {
                find_generated(&path, depth - 1, found);
            }
        } else if std::fs::read_to_string(&path).is_ok_and(|text| {
            let mut lines = text.lines().take(5);
            lines.any(|line| line.contains("enerated by "))
        }) {
            found.push(path);
        }
    }
}
