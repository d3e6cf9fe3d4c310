//! A schema from descriptor sets.

use std::collections::HashSet;
use std::path::PathBuf;

use buffa::DecodeOptions;
use buffa_descriptor::generated::descriptor::{FileDescriptorProto, FileDescriptorSet};

use crate::failure::Failure;

/// Reads the sets; a file that several hold is taken once.
pub(super) fn read(paths: &[PathBuf]) -> Result<Vec<FileDescriptorProto>, Failure> {
    let mut files = Vec::new();
    let mut names = HashSet::new();
    for path in paths {
        let wrong = |error: &dyn std::fmt::Display| {
            Failure::input(format!("--descriptor-set {}: {error}", path.display()))
        };
        let bytes = std::fs::read(path).map_err(|error| wrong(&error))?;
        // The user's own file, of whatever size.
        let set: FileDescriptorSet = DecodeOptions::new()
            .with_element_memory_limit(usize::MAX)
            .with_unknown_field_limit(usize::MAX)
            .decode_from_slice(&bytes)
            .map_err(|error| {
                wrong(&format!(
                    "it is no descriptor set ({error}); protoc --include_imports \
                     --descriptor_set_out=FILE and buf build -o FILE write one"
                ))
            })?;
        let mut is_new = |file: &FileDescriptorProto| names.insert(file.name.clone());
        files.extend(set.file.into_iter().filter(&mut is_new));
    }
    Ok(files)
}
