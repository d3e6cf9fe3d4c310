//! Bytes of a descriptor set, whoever wrote them, to its files.

use buffa::{DecodeError, DecodeOptions};
use buffa_descriptor::generated::descriptor::{FileDescriptorProto, FileDescriptorSet};

/// Memory that the parts of decoded files may take: a multiple of their size,
/// something for small ones, and never more than this. A few bytes can ask for
/// a hundredfold of memory.
const MEMORY_PER_BYTE: usize = 64;
const MEMORY_BASE_BYTES: usize = 256 * 1024;
const MEMORY_BYTES_MAX: usize = 256 * 1024 * 1024;

/// The files of a set.
pub(super) fn read(bytes: &[u8]) -> Result<Vec<FileDescriptorProto>, DecodeError> {
    let set: FileDescriptorSet = options(bytes).decode_from_slice(bytes)?;
    Ok(set.file)
}

/// One file.
pub(super) fn read_file(bytes: &[u8]) -> Result<FileDescriptorProto, DecodeError> {
    options(bytes).decode_from_slice(bytes)
}

fn options(bytes: &[u8]) -> DecodeOptions {
    let memory = bytes.len().saturating_mul(MEMORY_PER_BYTE);
    let memory = memory.saturating_add(MEMORY_BASE_BYTES);
    DecodeOptions::new().with_element_memory_limit(memory.min(MEMORY_BYTES_MAX))
}

#[cfg(test)]
mod tests {
    use super::*;
    use buffa::Message;

    #[test]
    fn sets_that_swell_are_refused() {
        // Files, and messages of a file, of no content: two bytes each on the
        // wire, hundreds in memory.
        let files = [0x0a, 0x00].repeat(1024 * 1024);
        assert!(read(&files).is_err());
        let messages = FileDescriptorSet {
            file: vec![FileDescriptorProto {
                message_type: vec![Default::default(); 1024 * 1024],
                ..Default::default()
            }],
            ..Default::default()
        };
        assert!(read(&messages.encode_to_vec()).is_err());
    }

    #[test]
    fn many_sets_of_the_usual_kind_fit() {
        let file = FileDescriptorProto {
            name: Some("a.proto".to_owned()),
            dependency: vec!["b.proto".to_owned(); 10],
            ..Default::default()
        };
        let set = FileDescriptorSet {
            file: vec![file; 10_000],
            ..Default::default()
        };
        assert_eq!(read(&set.encode_to_vec()).unwrap().len(), 10_000);
    }
}
