//! Metadata on the wire: as header fields, and as METADATA frames
//! (docs/protocol.md, "Metadata").

use quill_core::frame::{FrameError, MetadataBlock};
use quill_core::metadata::is_binary;
use quill_core::{Headers, Metadata};

use crate::base64;

/// Before the names of trailing metadata that travel as header fields.
pub(super) const TRAILER_PREFIX: &str = "trailer-";

/// Adds metadata to a header block; `-bin` values become base64.
pub(super) fn put_headers(metadata: &Metadata, headers: &mut Headers) {
    for (name, value) in metadata.iter() {
        put_header(name, name, value, headers);
    }
}

/// Adds trailing metadata to the header block of an answer that has one message.
pub(super) fn put_trailer_headers(metadata: &Metadata, headers: &mut Headers) {
    for (name, value) in metadata.iter() {
        let prefixed = format!("{TRAILER_PREFIX}{name}");
        put_header(name, &prefixed, value, headers);
    }
}

fn put_header(name: &str, field: &str, value: &[u8], headers: &mut Headers) {
    if is_binary(name) {
        headers.append(field, base64::encode(value));
    } else {
        headers.append(field, value);
    }
}

/// A `-bin` field whose value is no base64; holds its name.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct NotBase64(String);

impl NotBase64 {
    pub(super) fn message(&self) -> String {
        format!("the value of {:?} is not base64", self.0)
    }
}

/// Adds one received header field, unless its name is a protocol's. The values
/// of a `-bin` field may have been joined by commas on the way.
pub(super) fn take_header(
    name: &str,
    value: &[u8],
    metadata: &mut Metadata,
) -> Result<(), NotBase64> {
    if !is_binary(name) {
        metadata.receive(name, value);
        return Ok(());
    }
    for part in value.split(|byte| *byte == b',') {
        let decoded =
            base64::decode(part.trim_ascii()).ok_or_else(|| NotBase64(name.to_owned()))?;
        metadata.receive(name, &decoded);
    }
    Ok(())
}

/// The leading and the trailing metadata of an answer's header block.
pub(super) fn take_answer(headers: &Headers) -> Result<(Metadata, Metadata), NotBase64> {
    let mut leading = Metadata::new();
    let mut trailing = Metadata::new();
    for (name, value) in headers.iter() {
        match name.strip_prefix(TRAILER_PREFIX) {
            Some(name) => take_header(name, value, &mut trailing)?,
            None => take_header(name, value, &mut leading)?,
        }
    }
    Ok((leading, trailing))
}

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

    fn sample() -> Metadata {
        let mut metadata = Metadata::new();
        metadata.append("x-a", "1").unwrap();
        metadata.append("x-a", "2").unwrap();
        metadata.append_bin("y-bin", [0, 255, 13, 10]).unwrap();
        metadata
    }

    #[test]
    fn metadata_goes_both_ways_as_headers_and_as_trailer_headers() {
        let mut headers = Headers::new();
        put_headers(&sample(), &mut headers);
        put_trailer_headers(&sample(), &mut headers);
        assert_eq!(headers.text("y-bin"), Some("AP8NCg"));
        assert_eq!(headers.text("trailer-x-a"), Some("1"));
        assert_eq!(take_answer(&headers), Ok((sample(), sample())));
    }

    #[test]
    fn metadata_goes_both_ways_as_a_frame() {
        let (block, fits) = block(&sample());
        assert_eq!(fits, Ok(()));
        let mut metadata = Metadata::new();
        take_block(&block.into_payload(), &mut metadata).unwrap();
        assert_eq!(metadata, sample());
    }

    #[test]
    fn padding_and_joined_values_are_taken_and_junk_is_named() {
        let mut metadata = Metadata::new();
        take_header("k-bin", b"AQIDBA==, AQIDBA", &mut metadata).unwrap();
        assert_eq!(metadata.all("k-bin").count(), 2);
        let error = take_header("k-bin", b"!", &mut metadata).unwrap_err();
        assert!(error.message().contains("k-bin"));
    }

    #[test]
    fn a_protocols_names_are_no_metadata() {
        let mut metadata = Metadata::new();
        for name in ["quill-credits", "content-type", "trailer-x"] {
            take_header(name, b"1", &mut metadata).unwrap();
        }
        take_block(b"\x0bgrpc-status\x010\x01A\x010", &mut metadata).unwrap();
        assert!(metadata.is_empty());
    }
}
