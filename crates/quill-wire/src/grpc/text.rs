//! The body of gRPC-Web text: pieces of base64, each padded, one after the other.

use bytes::{BufMut, BytesMut};
use quill_core::Error;

use crate::base64;
use crate::out::Out;

/// Moves what `plain` holds into `out` as one padded piece of base64.
pub(super) fn put(mut plain: Out, out: &mut Out) {
    let mut bytes = BytesMut::with_capacity(plain.body_bytes());
    while let Some(chunk) = plain.take_chunk() {
        bytes.extend_from_slice(&chunk);
    }
    out.put_bytes(base64::encode_padded(&bytes).into());
}

/// Decodes such a body wherever it is cut, also inside a group of four.
#[derive(Debug, Default)]
pub(super) struct TextDecoder {
    /// Six bits for each of the group's characters so far, padding as zeros.
    bits: u32,
    chars: u8,
    padding: u8,
}

impl TextDecoder {
    /// Appends the bytes of every group that is whole now to `out`.
    ///
    /// # Errors
    /// `internal` for a character that is no base64 or stands where it may not;
    /// the groups before it were appended.
    pub(super) fn decode(&mut self, text: &[u8], out: &mut BytesMut) -> Result<(), Error> {
        out.reserve((text.len() / 4).saturating_add(1).saturating_mul(3));
        for byte in text {
            let fits = match (sextet(*byte), self.padding) {
                (Some(value), 0) => {
                    self.push(value);
                    true
                }
                (None, _) if *byte == b'=' && self.chars >= 2 => {
                    self.padding = self.padding.saturating_add(1);
                    self.push(0);
                    true
                }
                _ => false,
            };
            if !fits || (self.chars == 4 && !self.flush(out)) {
                return Err(Error::internal(format!(
                    "the body is no base64 at {:?}: it is pieces of the standard alphabet, each padded with \"=\" to groups of four",
                    char::from(*byte)
                )));
            }
        }
        Ok(())
    }

    /// Characters of a group that is not whole.
    pub(super) fn held_bytes(&self) -> usize {
        usize::from(self.chars)
    }

    fn push(&mut self, value: u8) {
        self.bits = self.bits << 6 | u32::from(value);
        self.chars = self.chars.saturating_add(1);
    }

    /// Ends a group of four. False when bits that belong to no byte are set, as
    /// no encoder does.
    fn flush(&mut self, out: &mut BytesMut) -> bool {
        let [_, first, second, third] = self.bits.to_be_bytes();
        let canonical = match self.padding {
            0 => {
                out.put_slice(&[first, second, third]);
                true
            }
            1 => {
                out.put_slice(&[first, second]);
                third == 0
            }
            _ => {
                out.put_u8(first);
                second == 0 && third == 0
            }
        };
        *self = Self::default();
        canonical
    }
}

fn sextet(byte: u8) -> Option<u8> {
    let (start, value) = match byte {
        b'A'..=b'Z' => (b'A', 0),
        b'a'..=b'z' => (b'a', 26),
        b'0'..=b'9' => (b'0', 52),
        b'+' => (b'+', 62),
        b'/' => (b'/', 63),
        _ => return None,
    };
    Some(byte.wrapping_sub(start).wrapping_add(value))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn decode(pieces: &[&[u8]]) -> Result<Vec<u8>, Error> {
        let mut decoder = TextDecoder::default();
        let mut out = BytesMut::new();
        for piece in pieces {
            decoder.decode(piece, &mut out)?;
        }
        assert_eq!(decoder.held_bytes(), 0);
        Ok(out.to_vec())
    }

    proptest! {
        #[test]
        fn joined_padded_pieces_are_read_at_every_cut(pieces in prop::collection::vec(any::<Vec<u8>>(), 0..4)) {
            let text: String = pieces.iter().map(|piece| base64::encode_padded(piece)).collect();
            let expected = pieces.concat();
            let text = text.as_bytes();
            for cut in 0..=text.len() {
                prop_assert_eq!(&decode(&[&text[..cut], &text[cut..]]).unwrap(), &expected);
            }
            let single: Vec<&[u8]> = text.chunks(1).collect();
            prop_assert_eq!(decode(&single).unwrap(), expected);
        }

        #[test]
        fn one_padded_piece_is_read_as_the_library_reads_it(text in "[A-Za-c0-2+/=]{0,12}") {
            use ::base64::Engine as _;
            let reference = ::base64::engine::general_purpose::STANDARD.decode(&text);
            let mut decoder = TextDecoder::default();
            let mut out = BytesMut::new();
            let read = decoder.decode(text.as_bytes(), &mut out).is_ok() && decoder.held_bytes() == 0;
            if let Ok(bytes) = reference {
                prop_assert!(read);
                prop_assert_eq!(&out[..], &bytes[..]);
            } else if read {
                // Only pieces that are joined after padding are read beyond the library.
                let inner = text.trim_end_matches('=');
                prop_assert!(inner.contains('='), "{}", text);
            }
        }
    }

    #[test]
    fn padding_only_ends_a_group() {
        for text in [
            "=", "A=", "AA=A", "AAA=A=AA", "AB==", "A\nAA", "AA__", "====",
        ] {
            let mut decoder = TextDecoder::default();
            let read = decoder.decode(text.as_bytes(), &mut BytesMut::new());
            assert!(read.is_err(), "{text}");
        }
    }

    #[test]
    fn an_unpadded_end_is_partial() {
        let mut decoder = TextDecoder::default();
        let mut out = BytesMut::new();
        decoder.decode(b"AAAAAA", &mut out).unwrap();
        assert!(decoder.held_bytes() > 0);
        assert_eq!(&out[..], [0, 0, 0]);
    }
}
