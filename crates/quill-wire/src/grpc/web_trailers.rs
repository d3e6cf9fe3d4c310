//! The trailers of gRPC-Web: a block of fields in a last envelope of the body.
//!
//! `-bin` values are in base64 here too, also within the base64 of a text body,
//! where `PROTOCOL-WEB.md` would have them raw: bytes may hold CR and LF, and
//! every implementation that is in use keeps the base64.

use bytes::BytesMut;
use quill_core::{Error, Headers};

use crate::envelope;

/// The flag of the envelope that holds the trailers; bit 0 still means that it
/// is compressed.
pub(super) const FLAG_TRAILERS: u8 = 0x80;

/// Most bytes of trailers that are taken from a body, compressed or not. Room
/// for a status with details several times as large as HTTP header blocks
/// usually may be.
pub(super) const TRAILERS_BYTES_MAX: usize = 64 * 1024;

/// Writes the trailers' envelope.
pub(super) fn put(fields: &Headers, out: &mut BytesMut) {
    let mut block = Vec::with_capacity(
        fields
            .bytes()
            .saturating_add(fields.len().saturating_mul(4)),
    );
    for (name, value) in fields.iter() {
        block.extend_from_slice(name.as_bytes());
        block.extend_from_slice(b": ");
        block.extend_from_slice(value);
        block.extend_from_slice(b"\r\n");
    }
    envelope::put_bytes(FLAG_TRAILERS, &block, out);
}

/// Reads the payload of the trailers' envelope: lines that end in CRLF (a bare
/// LF is taken, as is a last line without), names in any case, values with or
/// without white space around them. Empty lines are skipped.
///
/// # Errors
/// `internal` for a line without a colon or without a name.
pub(super) fn parse(block: &[u8]) -> Result<Headers, Error> {
    let mut fields = Headers::new();
    let mut lower = String::new();
    for line in block.split(|b| *b == b'\n') {
        let line = line.strip_suffix(b"\r").unwrap_or(line);
        if line.is_empty() {
            continue;
        }
        let colon = line.iter().position(|b| *b == b':').unwrap_or_default();
        let (Some(name), Some([_, value @ ..])) = (line.get(..colon), line.get(colon..)) else {
            return Err(malformed(line));
        };
        if name.is_empty() || !name.iter().all(u8::is_ascii_graphic) {
            return Err(malformed(line));
        }
        lower.clear();
        lower.extend(name.iter().map(|b| char::from(b.to_ascii_lowercase())));
        fields.append(&lower, value.trim_ascii());
    }
    Ok(fields)
}

fn malformed(line: &[u8]) -> Error {
    Error::internal(format!(
        "the trailers hold a malformed line {:?}: each is a name, a colon and a value",
        line.escape_ascii().to_string()
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn trailers_go_both_ways(
            values in prop::collection::vec(("[a-z0-9_.-]{1,9}", "[!-~]{0,5}( [!-~]{1,5})?"), 0..6),
        ) {
            let mut fields = Headers::new();
            for (name, value) in &values {
                fields.append(name, value.trim());
            }
            let mut frame = BytesMut::new();
            put(&fields, &mut frame);
            prop_assert_eq!(frame[0], FLAG_TRAILERS);
            prop_assert_eq!(parse(&frame[envelope::HEADER_BYTES..]).unwrap(), fields);
        }

        #[test]
        fn no_block_panics(block in any::<Vec<u8>>()) {
            let _ = parse(&block);
        }
    }

    #[test]
    fn the_bytes_are_those_of_the_spec() {
        let mut fields = Headers::new();
        fields.append("grpc-status", "0");
        fields.append("x", "");
        fields.append("y", "a\r\ngrpc-status: 5");
        let mut frame = BytesMut::new();
        put(&fields, &mut frame);
        // CR and LF never reach the block.
        let block = b"grpc-status: 0\r\nx: \r\ny: a  grpc-status: 5\r\n";
        assert_eq!(frame[..5], [0x80, 0, 0, 0, 43]);
        assert_eq!(&frame[5..], block);
    }

    #[test]
    fn case_space_repetition_and_empty_values_are_read() {
        let block =
            b"Grpc-Status: 9\r\ngRPC-Message:error\nx-A: 1 \r\nx-a:\t2\r\nx-b:\r\nx-c: a:b\r\n\r\n";
        let fields = parse(block).unwrap();
        let all: Vec<_> = fields
            .iter()
            .map(|(n, v)| (n, std::str::from_utf8(v).unwrap()))
            .collect();
        assert_eq!(
            all,
            [
                ("grpc-status", "9"),
                ("grpc-message", "error"),
                ("x-a", "1"),
                ("x-a", "2"),
                ("x-b", ""),
                ("x-c", "a:b"),
            ]
        );
        assert!(parse(b"").unwrap().is_empty());
    }

    #[test]
    fn lines_without_a_name_are_errors() {
        for block in [
            &b"grpc-status"[..],
            b": 0",
            b"a b: c",
            b" x: folded",
            b"\xff: 1",
        ] {
            let error = parse(block).unwrap_err();
            assert_eq!(error.code(), quill_core::Code::Internal);
        }
    }
}
