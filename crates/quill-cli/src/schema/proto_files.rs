//! A schema from `.proto` files.

use std::path::{Path, PathBuf};

use buffa::Message;
use buffa_descriptor::generated::descriptor::{FileDescriptorProto, FileDescriptorSet};
use quill_codegen::Schema;

use crate::failure::Failure;

/// What is wrong with files, and what to do where an import is not found.
pub(super) fn unusable(error: &str) -> Failure {
    let failure = Failure::input(error);
    if error.contains("not found") || error.contains("no such file") {
        return failure.with_hint("imports are looked for in the folders of --import-path");
    }
    failure
}

/// How deep folders are searched; it ends a circle of links.
const FOLDER_DEPTH_MAX: usize = 32;

/// Compiles files, and all files of folders.
pub(super) fn compile(
    given: &[PathBuf],
    import_paths: &[PathBuf],
) -> Result<Vec<FileDescriptorProto>, Failure> {
    let schema = compile_schema(given, import_paths)?;
    files(&schema).map_err(|error| Failure::input(format!("--proto: {error}")))
}

/// The same, as what code is generated from.
pub(crate) fn compile_schema(
    given: &[PathBuf],
    import_paths: &[PathBuf],
) -> Result<Schema, Failure> {
    let (folders, mut protos): (Vec<_>, Vec<_>) =
        given.iter().cloned().partition(|path| path.is_dir());
    let includes = if import_paths.is_empty() {
        include_folders(&folders, &protos)
    } else {
        import_paths.to_vec()
    };
    for folder in &folders {
        let before = protos.len();
        find(folder, FOLDER_DEPTH_MAX, &mut protos)?;
        if protos.len() == before {
            let folder = folder.display();
            return Err(Failure::input(format!("{folder}: no .proto file in it")));
        }
    }
    Schema::compile(&protos, &includes).map_err(|error| unusable(&error.to_string()))
}

/// The files of a schema, with all that they import.
pub(super) fn files(schema: &Schema) -> Result<Vec<FileDescriptorProto>, String> {
    FileDescriptorSet::decode_from_slice(&schema.to_descriptor_set())
        .map(|set| set.file)
        .map_err(|error| error.to_string())
}

/// The folders that were given, and those of files that lie in none of them:
/// a file with two names would declare everything twice.
fn include_folders(folders: &[PathBuf], files: &[PathBuf]) -> Vec<PathBuf> {
    let mut includes = folders.to_vec();
    for file in files {
        if !includes.iter().any(|folder| file.starts_with(folder)) {
            includes.push(folder_of(file));
        }
    }
    includes
}

/// The folder itself, or that of a file.
pub(super) fn folder_of(file: &Path) -> PathBuf {
    if file.is_dir() {
        return file.to_owned();
    }
    match file.parent() {
        Some(folder) if folder != Path::new("") => folder.to_owned(),
        _ => PathBuf::from("."),
    }
}

/// Adds the `.proto` files in a folder and below it, in the order of their names.
fn find(folder: &Path, depth: usize, found: &mut Vec<PathBuf>) -> Result<(), Failure> {
    let wrong = |error: std::io::Error| Failure::input(format!("{}: {error}", folder.display()));
    let mut paths = std::fs::read_dir(folder)
        .and_then(|entries| {
            entries
                .map(|e| e.map(|e| e.path()))
                .collect::<Result<Vec<_>, _>>()
        })
        .map_err(wrong)?;
    paths.sort_unstable();
    for path in paths {
        if path.is_dir() {
            if depth > 0 {
                find(&path, depth - 1, found)?;
            }
        } else if path
            .extension()
            .is_some_and(|extension| extension == "proto")
        {
            found.push(path);
        }
    }
    Ok(())
}
