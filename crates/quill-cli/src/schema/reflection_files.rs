//! The files that a server describes itself with, as they come in.

use std::collections::{HashMap, HashSet};

use buffa::DecodeOptions;
use buffa_descriptor::generated::descriptor::FileDescriptorProto;

/// Most files, and bytes of them, that are taken from a server.
const FILES_MAX: usize = 10_000;
const BYTES_MAX: usize = 64 * 1024 * 1024;
/// Memory that the parts of a decoded file may take: a multiple of its size,
/// and something for small ones.
const MEMORY_PER_BYTE: usize = 64;
const MEMORY_BASE_BYTES: usize = 256 * 1024;

/// Files by their names, and what was asked for.
#[derive(Debug, Default)]
pub(super) struct ReflectionFiles {
    by_name: HashMap<String, FileDescriptorProto>,
    /// Imports that were asked for; none is asked for twice, so that asking ends.
    asked: HashSet<String>,
    bytes: usize,
}

impl ReflectionFiles {
    /// Takes a serialized file. The error completes "the server's reflection ...".
    pub(super) fn take(&mut self, serialized: &[u8]) -> Result<(), String> {
        self.bytes = self.bytes.saturating_add(serialized.len());
        if self.bytes > BYTES_MAX {
            return Err(format!(
                "answers with more than {BYTES_MAX} bytes of descriptors"
            ));
        }
        if self.by_name.len() >= FILES_MAX {
            return Err(format!("answers with more than {FILES_MAX} files"));
        }
        let memory = serialized.len().saturating_mul(MEMORY_PER_BYTE);
        let file: FileDescriptorProto = DecodeOptions::new()
            .with_element_memory_limit(memory.saturating_add(MEMORY_BASE_BYTES))
            .decode_from_slice(serialized)
            .map_err(|error| format!("answers with a file that can't be read: {error}"))?;
        let name = file.name.clone().unwrap_or_default();
        self.by_name.entry(name).or_insert(file);
        Ok(())
    }

    /// Up to `count` imports that are neither there nor asked for yet; they
    /// count as asked for from now on.
    pub(super) fn missing(&mut self, count: usize) -> Vec<String> {
        let imports = self.by_name.values().flat_map(|file| &file.dependency);
        let mut missing: Vec<String> = Vec::new();
        for import in imports {
            if missing.len() >= count || self.asked.len() >= FILES_MAX {
                break;
            }
            if !self.by_name.contains_key(import) && self.asked.insert(import.clone()) {
                missing.push(import.clone());
            }
        }
        missing
    }

    pub(super) fn into_files(self) -> Vec<FileDescriptorProto> {
        self.by_name.into_values().collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use buffa::Message;

    fn file(name: &str, imports: &[&str]) -> Vec<u8> {
        FileDescriptorProto {
            name: Some(name.to_owned()),
            dependency: imports.iter().map(|&import| import.to_owned()).collect(),
            ..Default::default()
        }
        .encode_to_vec()
    }

    #[test]
    fn a_circle_of_imports_ends() {
        let mut files = ReflectionFiles::default();
        files.take(&file("a", &["b", "a"])).unwrap();
        assert_eq!(files.missing(10), ["b"]);
        files.take(&file("b", &["a", "b", "c"])).unwrap();
        assert_eq!(files.missing(10), ["c"]);
        // Asked for once, though it never came.
        assert!(files.missing(10).is_empty());
        assert_eq!(files.into_files().len(), 2);
    }

    #[test]
    fn endless_files_are_refused() {
        let mut files = ReflectionFiles::default();
        let refused = (0..).find_map(|n| files.take(&file(&n.to_string(), &[])).err());
        assert!(refused.unwrap().contains("more than 10000 files"));
    }

    #[test]
    fn endless_bytes_are_refused() {
        let mut files = ReflectionFiles::default();
        let large = file(&"x".repeat(4 * 1024 * 1024), &[]);
        let refused = (0..).find_map(|_| files.take(&large).err());
        assert!(refused.unwrap().contains("bytes of descriptors"));
    }

    #[test]
    fn bytes_that_swell_are_refused() {
        // Field 4 (a message) of no content, again and again: two bytes each
        // on the wire, hundreds in memory.
        let swelling = [0x22, 0x00].repeat(512 * 1024);
        let refused = ReflectionFiles::default().take(&swelling).unwrap_err();
        assert!(refused.contains("can't be read"), "{refused}");
    }
}
