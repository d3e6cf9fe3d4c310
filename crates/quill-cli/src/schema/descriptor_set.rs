//! A schema from descriptor sets.

use std::collections::HashSet;
use std::path::PathBuf;

use buffa_descriptor::generated::descriptor::FileDescriptorProto;

use super::file_set;
use crate::failure::Failure;

/// Reads the sets; a file that several hold is taken once.
pub(super) fn read(paths: &[PathBuf]) -> Result<Vec<FileDescriptorProto>, Failure> {
    let mut files = Vec::new();
    let mut names = HashSet::new();
    for path in paths {
        let wrong =
            |error: &dyn std::fmt::Display| Failure::input(format!("{}: {error}", path.display()));
        let bytes = std::fs::read(path).map_err(|error| wrong(&error))?;
        let set = file_set::read(&bytes).map_err(|error| {
            wrong(&format!(
                "it is no descriptor set ({error}); protoc --include_imports \
                     --descriptor_set_out=FILE and buf build -o FILE write one"
            ))
        })?;
        let mut is_new = |file: &FileDescriptorProto| names.insert(file.name.clone());
        files.extend(set.into_iter().filter(&mut is_new));
    }
    Ok(files)
}
