//! The payload of METADATA frames.

use bytes::{Bytes, BytesMut};

use super::{FrameError, METADATA_BYTES_MAX};
use crate::varint;

/// Trailing metadata as it travels: repeated (varint length, name, varint
/// length, value), at most [`METADATA_BYTES_MAX`] bytes a stream
/// (docs/protocol.md, "Frames"). Which names and values are legal is not judged
/// here.
#[derive(Debug, Default)]
pub struct MetadataBlock {
    bytes: BytesMut,
}

impl MetadataBlock {
    /// An empty block.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Appends one entry.
    ///
    /// # Errors
    /// [`FrameError::MetadataTooLarge`] when the block would exceed
    /// [`METADATA_BYTES_MAX`]; it is then as it was.
    pub fn push(&mut self, name: &[u8], value: &[u8]) -> Result<(), FrameError> {
        // A length prefix takes at least a byte, so neither slice can wrap.
        let room = METADATA_BYTES_MAX - self.bytes.len();
        let entry_bytes = prefixed_len(name)
            .zip(prefixed_len(value))
            .map(|(name, value)| name + value)
            .filter(|entry_bytes| *entry_bytes <= room)
            .ok_or(FrameError::MetadataTooLarge)?;
        self.bytes.reserve(entry_bytes);
        for part in [name, value] {
            let mut length = [0; varint::BYTES_MAX];
            let len = varint::encode(part.len() as u32, &mut length);
            self.bytes.extend_from_slice(&length[..len]);
            self.bytes.extend_from_slice(part);
        }
        Ok(())
    }

    /// Whether there is nothing to send.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }

    /// The payload of a METADATA frame.
    #[must_use]
    pub fn into_payload(self) -> Bytes {
        self.bytes.freeze()
    }

    /// The entries of a METADATA frame's payload, in order, without copying.
    ///
    /// The iterator ends after its first error.
    pub fn entries(payload: &[u8]) -> MetadataEntries<'_> {
        MetadataEntries { rest: payload }
    }
}

/// The length of `part` with its prefix, if it can fit a block at all.
fn prefixed_len(part: &[u8]) -> Option<usize> {
    let len = u32::try_from(part.len())
        .ok()
        .filter(|len| *len as usize <= METADATA_BYTES_MAX)?;
    Some(varint::encoded_len(len) + part.len())
}

/// Names and values of a METADATA payload; see [`MetadataBlock::entries`].
#[derive(Debug, Clone)]
pub struct MetadataEntries<'a> {
    rest: &'a [u8],
}

impl<'a> MetadataEntries<'a> {
    /// Takes one length-prefixed part off the front.
    fn part(&mut self) -> Option<&'a [u8]> {
        let (len, prefix) = varint::decode(self.rest).ok().flatten()?;
        let (part, rest) = self.rest.get(prefix..)?.split_at_checked(len as usize)?;
        self.rest = rest;
        Some(part)
    }
}

impl<'a> Iterator for MetadataEntries<'a> {
    /// Name and value, or [`FrameError::Metadata`].
    type Item = Result<(&'a [u8], &'a [u8]), FrameError>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.rest.is_empty() {
            return None;
        }
        let entry = self.part().and_then(|name| Some((name, self.part()?)));
        if entry.is_none() {
            self.rest = &[];
        }
        Some(entry.ok_or(FrameError::Metadata))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    type Entries<'a> = Vec<(&'a [u8], &'a [u8])>;

    fn read(payload: &[u8]) -> Result<Entries<'_>, FrameError> {
        MetadataBlock::entries(payload).collect()
    }

    #[test]
    fn entries_travel_as_the_protocol_says() {
        let mut block = MetadataBlock::new();
        assert!(block.is_empty());
        block.push(b"a", b"bc").unwrap();
        block.push(b"x-empty", b"").unwrap();
        let payload = block.into_payload();
        assert_eq!(payload, &b"\x01a\x02bc\x07x-empty\x00"[..]);
        assert_eq!(
            read(&payload).unwrap(),
            [(&b"a"[..], &b"bc"[..]), (b"x-empty", b"")]
        );
    }

    #[test]
    fn a_block_ends_at_8_kib_exactly() {
        let mut block = MetadataBlock::new();
        // 1 + 1 bytes for the name, 2 bytes for the value's length.
        block
            .push(b"n", &vec![b'v'; METADATA_BYTES_MAX - 4])
            .unwrap();
        assert_eq!(block.push(b"", b""), Err(FrameError::MetadataTooLarge));
        assert_eq!(block.into_payload().len(), METADATA_BYTES_MAX);

        let mut block = MetadataBlock::new();
        let error = block.push(b"n", &vec![b'v'; METADATA_BYTES_MAX - 3]);
        assert_eq!(error, Err(FrameError::MetadataTooLarge));
        assert!(block.is_empty());
    }

    #[test]
    fn lies_and_rests_are_errors() {
        for payload in [
            &b"\x05a"[..],
            b"\x01a",
            b"\x01a\x03bc",
            b"\x01a\x02bc\x01",
            b"\xff\xff\xff\xff\x0fa\x01b",
            b"\x81\x00a\x01b",
            b"\x80",
        ] {
            assert_eq!(read(payload), Err(FrameError::Metadata), "{payload:02x?}");
        }
    }

    proptest! {
        #[test]
        fn round_trip(entries: Vec<(Vec<u8>, Vec<u8>)>) {
            let mut block = MetadataBlock::new();
            let mut kept = Vec::new();
            for (name, value) in &entries {
                if block.push(name, value).is_ok() {
                    kept.push((name.as_slice(), value.as_slice()));
                }
            }
            let payload = block.into_payload();
            prop_assert_eq!(read(&payload).unwrap(), kept);
        }

        #[test]
        fn any_bytes_are_read_or_refused(payload: Vec<u8>) {
            let entries = MetadataBlock::entries(&payload).count();
            prop_assert!(entries <= payload.len());
        }
    }
}
