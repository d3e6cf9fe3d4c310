//! Trailing metadata in METADATA frames (docs/protocol.md, "Metadata").

use quill_core::Metadata;
use quill_core::frame::{FrameError, MetadataBlock};

/// The payload of a METADATA frame.
///
/// # Errors
/// More than a stream may carry; the block then holds the entries that fit.
pub(super) fn block(metadata: &Metadata) -> (MetadataBlock, Result<(), FrameError>) {
    let mut block = MetadataBlock::new();
    for (name, value) in metadata.iter() {
        if let Err(error) = block.push(name.as_bytes(), value) {
            return (block, Err(error));
        }
    }
    (block, Ok(()))
}

/// Adds the entries of a METADATA frame. A name that is none, or a protocol's,
/// is left out, as it is among header fields.
pub(super) fn take_block(payload: &[u8], metadata: &mut Metadata) -> Result<(), FrameError> {
    for entry in MetadataBlock::entries(payload) {
        let (name, value) = entry?;
        if let Ok(name) = std::str::from_utf8(name) {
            metadata.receive(name, value);
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn metadata_goes_both_ways_as_a_frame() {
        let mut sent = Metadata::new();
        sent.append("x-a", "1").unwrap();
        sent.append("x-a", "2").unwrap();
        sent.append_bin("y-bin", [0, 255, 13, 10]).unwrap();
        let (block, fits) = block(&sent);
        assert_eq!(fits, Ok(()));
        let mut metadata = Metadata::new();
        take_block(&block.into_payload(), &mut metadata).unwrap();
        assert_eq!(metadata, sent);
    }

    #[test]
    fn a_protocols_names_are_no_metadata() {
        let mut metadata = Metadata::new();
        take_block(b"\x0bgrpc-status\x010\x01A\x010", &mut metadata).unwrap();
        assert!(metadata.is_empty());
    }
}
