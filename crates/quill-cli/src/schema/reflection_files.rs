//! The files that a server describes itself with, as they come in.

use std::collections::HashSet;

use buffa_descriptor::generated::descriptor::FileDescriptorProto;

use super::file_set;

/// Most files, and bytes of them, that are taken from a server, and most
/// imports that they may name.
const FILES_MAX: usize = 10_000;
const BYTES_MAX: usize = 64 * 1024 * 1024;
const IMPORTS_MAX: usize = 100_000;

/// The key of a file in a set (`FileDescriptorSet.file`).
const FILE_KEY: u8 = 0x0a;

/// Files as they came, and what was asked for.
///
/// They stay bytes until all are there: then one bound holds for the memory that
/// they take together.
#[derive(Debug, Default)]
pub(super) struct ReflectionFiles {
    set: Vec<u8>,
    /// Bytes that came, also those that were there already.
    bytes: usize,
    names: HashSet<String>,
    /// Imports that no file was there for when they were named.
    wanted: Vec<String>,
    imports: usize,
    /// Imports that were asked for; none is asked for twice, so that asking ends.
    asked: HashSet<String>,
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
        if self.names.len() >= FILES_MAX {
            return Err(format!("answers with more than {FILES_MAX} files"));
        }
        let file = file_set::read_file(serialized)
            .map_err(|error| format!("answers with a file that can't be read: {error}"))?;
        if !self.names.insert(file.name.unwrap_or_default()) {
            return Ok(());
        }
        self.imports = self.imports.saturating_add(file.dependency.len());
        if self.imports > IMPORTS_MAX {
            return Err(format!("answers with more than {IMPORTS_MAX} imports"));
        }
        self.wanted.extend(file.dependency);
        self.set.push(FILE_KEY);
        buffa::encoding::encode_varint(serialized.len() as u64, &mut self.set);
        self.set.extend_from_slice(serialized);
        Ok(())
    }

    /// Up to `count` imports that are neither there nor asked for yet; they
    /// count as asked for from now on.
    pub(super) fn missing(&mut self, count: usize) -> Vec<String> {
        let mut missing = Vec::new();
        while missing.len() < count && self.asked.len() < FILES_MAX {
            let Some(import) = self.wanted.pop() else {
                break;
            };
            if !self.names.contains(&import) && self.asked.insert(import.clone()) {
                missing.push(import);
            }
        }
        missing
    }

    /// The error completes "the server's reflection ...".
    pub(super) fn into_files(self) -> Result<Vec<FileDescriptorProto>, String> {
        file_set::read(&self.set)
            .map_err(|error| format!("answers with files that can't be read: {error}"))
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
        assert_eq!(files.into_files().unwrap().len(), 2);
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
    fn endless_imports_are_refused() {
        let imports = vec!["x"; 1000];
        let mut files = ReflectionFiles::default();
        let refused = (0..).find_map(|n| files.take(&file(&n.to_string(), &imports)).err());
        assert!(refused.unwrap().contains("more than 100000 imports"));
    }

    #[test]
    fn files_that_swell_together_are_refused() {
        // Each is within the bound by itself: 2 MB that take some 80.
        let message = [&[0x22, 0x08, 0x0a, 0x06][..], b"abcdef"].concat();
        let mut files = ReflectionFiles::default();
        for n in 0..6 {
            let mut large = file(&n.to_string(), &[]);
            large.extend(message.repeat(200_000));
            files.take(&large).unwrap();
        }
        let refused = files.into_files().unwrap_err();
        assert!(refused.contains("can't be read"), "{refused}");
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
