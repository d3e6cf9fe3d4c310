//! A schema of another revision, as git has it.

use std::collections::BTreeMap;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::path::PathBuf;
use std::process::{Command, Stdio};

use buffa_descriptor::generated::descriptor::FileDescriptorProto;

use super::proto_files;
use crate::failure::Failure;

/// Bytes of all files together, at most.
const BYTES_MAX: u64 = 256 * 1024 * 1024;

/// Compiles the `.proto` files at a path of a revision, which may be one file or
/// a folder. Nothing of the work tree is touched, and nothing is checked out.
pub(super) fn compile(
    revision: &str,
    path: &str,
    import_path: &[PathBuf],
) -> Result<Vec<FileDescriptorProto>, Failure> {
    let wrong = |what: &str| Failure::input(format!("git:{revision}#{path}: {what}"));
    if revision.is_empty() || revision.starts_with('-') {
        return Err(wrong("it names no revision"));
    }
    let folder = folder_of(path);
    let listed = if folder.is_empty() { "." } else { folder };
    let tree = git(&["ls-tree", "-r", "-z", revision, "--", listed]).map_err(|error| {
        wrong(&error).with_hint("a shallow clone has few revisions: git fetch origin REVISION")
    })?;
    let mut blobs = Vec::new();
    for entry in tree.split('\0') {
        // "100644 blob OBJECT\tPATH"
        let Some((kind, file)) = entry.split_once('\t') else {
            continue;
        };
        let name = name_below(file, folder).filter(|name| name.ends_with(".proto"));
        let mut words = kind.split(' ').skip(1);
        if let (Some("blob"), Some(object), Some(name)) = (words.next(), words.next(), name) {
            blobs.push((name.to_owned(), object.to_owned()));
        }
    }
    let texts = read(&blobs).map_err(|error| wrong(&error))?;
    // Of a file's neighbours those count that it imports.
    let own = path
        .rsplit('/')
        .next()
        .filter(|name| name.ends_with(".proto"));
    let asked: Vec<&str> = match own {
        Some(own) => vec![own],
        None => texts.keys().map(String::as_str).collect(),
    };
    if !asked.first().is_some_and(|name| texts.contains_key(*name)) {
        return Err(wrong("there is no .proto file"));
    }
    let schema = quill_codegen::Schema::compile_texts(&texts, &asked, import_path)
        .map_err(|error| proto_files::unusable(&format!("git:{revision}#{error}")))?;
    proto_files::files(&schema).map_err(|error| wrong(&error))
}

/// The folder in which imports are found: that of a file, or the path itself.
pub(super) fn folder_of(path: &str) -> &str {
    let path = path.trim_end_matches('/').trim_start_matches("./");
    let folder = if path.ends_with(".proto") {
        path.rsplit_once('/').map_or("", |(folder, _)| folder)
    } else {
        path
    };
    if folder == "." { "" } else { folder }
}

/// The path of a file as those in the folder import it.
fn name_below<'f>(file: &'f str, folder: &str) -> Option<&'f str> {
    if folder.is_empty() {
        return Some(file);
    }
    file.strip_prefix(folder)?.strip_prefix('/')
}

/// What a command of git prints; the error is its own.
fn git(arguments: &[&str]) -> Result<String, String> {
    let output = Command::new("git")
        .args(arguments)
        .stdin(Stdio::null())
        .output()
        .map_err(|error| format!("git can't be run: {error}"))?;
    if !output.status.success() {
        let error = String::from_utf8_lossy(&output.stderr);
        let error = error.lines().next().unwrap_or("git failed");
        return Err(error.trim_start_matches("fatal: ").to_owned());
    }
    String::from_utf8(output.stdout).map_err(|_| "a path that is no UTF-8".to_owned())
}

/// The texts of blobs, by their names.
fn read(blobs: &[(String, String)]) -> Result<BTreeMap<String, String>, String> {
    let failed = |error: std::io::Error| format!("git can't be read: {error}");
    let mut child = Command::new("git")
        .args(["cat-file", "--batch"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .map_err(failed)?;
    let (Some(mut asking), Some(answers)) = (child.stdin.take(), child.stdout.take()) else {
        return Err("git can't be asked".to_owned());
    };
    let mut answers = BufReader::new(answers);
    let mut texts = BTreeMap::new();
    let mut left = BYTES_MAX;
    for (name, object) in blobs {
        // One after another, so that neither side waits for the other to read.
        writeln!(asking, "{object}")
            .and_then(|()| asking.flush())
            .map_err(failed)?;
        // "OBJECT blob SIZE", the bytes, and a line's end.
        let mut head = String::new();
        answers.read_line(&mut head).map_err(failed)?;
        let size = head.trim_end().rsplit(' ').next();
        let size: u64 = size
            .and_then(|size| size.parse().ok())
            .ok_or_else(|| format!("{name}: git has no such object"))?;
        left = left
            .checked_sub(size)
            .ok_or_else(|| format!("the files have more than {BYTES_MAX} bytes"))?;
        let mut text = Vec::new();
        answers
            .by_ref()
            .take(size)
            .read_to_end(&mut text)
            .map_err(failed)?;
        answers.read_line(&mut String::new()).map_err(failed)?;
        let text = String::from_utf8(text).map_err(|_| format!("{name}: no UTF-8"))?;
        texts.insert(name.clone(), text);
    }
    drop(asking);
    child.wait().map_err(failed)?;
    Ok(texts)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_folder_of_imports_is_that_of_a_file() {
        for (path, folder) in [
            (".", ""),
            ("./", ""),
            ("proto", "proto"),
            ("./proto/", "proto"),
            ("a/b/c.proto", "a/b"),
            ("c.proto", ""),
            ("../proto", "../proto"),
        ] {
            assert_eq!(folder_of(path), folder, "{path}");
        }
        assert_eq!(name_below("proto/a/b.proto", "proto"), Some("a/b.proto"));
        assert_eq!(name_below("proto2/b.proto", "proto"), None);
    }
}
