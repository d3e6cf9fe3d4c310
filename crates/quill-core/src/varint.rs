//! Unsigned LEB128 integers of at most 32 bits, as Quill frames carry them
//! (docs/protocol.md, "Frames").
//!
//! Every value has exactly one accepted form, the shortest. A decoder that took
//! longer forms as well would let two peers disagree about where a frame starts,
//! and one that mistook "too long" for "not all here yet" would buffer for ever.
//!
//! ```
//! use quill_core::varint;
//!
//! let mut bytes = [0; varint::BYTES_MAX];
//! let len = varint::encode(300, &mut bytes);
//! assert_eq!(bytes[..len], [0xac, 0x02]);
//! assert_eq!(varint::decode(&bytes[..len]), Ok(Some((300, 2))));
//! // Half of it: more is needed.
//! assert_eq!(varint::decode(&bytes[..1]), Ok(None));
//! // Three bytes for what two can say.
//! assert_eq!(varint::decode(&[0xac, 0x82, 0x00]), Err(varint::VarintError::Overlong));
//! ```

use std::fmt;

/// The longest varint, in bytes: 32 bits in groups of 7.
pub const BYTES_MAX: usize = 5;

/// The continuation bit: another byte follows.
const MORE: u8 = 0x80;

/// How many bytes [`encode`] writes for `value`: 1 to [`BYTES_MAX`].
#[must_use]
pub const fn encoded_len(value: u32) -> usize {
    // One byte for each started group of 7 significant bits, and one for 0.
    let bits = 32 - (value | 1).leading_zeros() as usize;
    bits.div_ceil(7)
}

/// Writes the varint of `value` to the front of `out` and returns its length in
/// bytes. The rest of `out` is left as it was.
#[inline]
pub fn encode(value: u32, out: &mut [u8; BYTES_MAX]) -> usize {
    let mut rest = value;
    let mut len = 0;
    for slot in out {
        len += 1;
        if rest < u32::from(MORE) {
            *slot = rest as u8;
            break;
        }
        *slot = rest as u8 | MORE;
        rest >>= 7;
    }
    len
}

/// Reads the varint at the front of `bytes`: its value and its length in bytes.
///
/// `Ok(None)` means that the bytes so far are the start of a valid varint and
/// more are needed; it is never the answer once [`BYTES_MAX`] bytes are there.
///
/// # Errors
/// [`VarintError`] as soon as the bytes seen cannot become a valid varint.
#[inline]
pub fn decode(bytes: &[u8]) -> Result<Option<(u32, usize)>, VarintError> {
    match bytes {
        [] => Ok(None),
        [byte, ..] if *byte < MORE => Ok(Some((u32::from(*byte), 1))),
        // The next most common, messages of 128 B to 16 KiB.
        [low, high, ..] if (1..MORE).contains(high) => {
            let value = u32::from(*low & !MORE) | u32::from(*high) << 7;
            Ok(Some((value, 2)))
        }
        _ => decode_long(bytes),
    }
}

fn decode_long(bytes: &[u8]) -> Result<Option<(u32, usize)>, VarintError> {
    let mut value = 0;
    for (i, byte) in bytes.iter().take(BYTES_MAX).enumerate() {
        let group = u32::from(byte & !MORE);
        let last_place = i == BYTES_MAX - 1;
        // Four groups hold 28 bits: 4 are left for the fifth byte, and no sixth.
        if last_place && *byte > 0x0f {
            return Err(VarintError::TooLong);
        }
        value |= group << (7 * i);
        if byte & MORE == 0 {
            if *byte == 0 && i > 0 {
                return Err(VarintError::Overlong);
            }
            return Ok(Some((value, i + 1)));
        }
    }
    Ok(None)
}

/// Why bytes are no varint.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum VarintError {
    /// A shorter form of the same value exists; only the shortest is accepted.
    Overlong,
    /// It does not end within [`BYTES_MAX`] bytes, or its value takes more than
    /// 32 bits.
    TooLong,
}

impl fmt::Display for VarintError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Overlong => "overlong varint: only the shortest form of a value is allowed",
            Self::TooLong => "varint too long: at most 5 bytes and 32 bits are allowed",
        })
    }
}

impl std::error::Error for VarintError {}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn encoded(value: u32) -> Vec<u8> {
        let mut out = [0xee; BYTES_MAX];
        let len = encode(value, &mut out);
        assert!(
            out[len..].iter().all(|byte| *byte == 0xee),
            "wrote past its length"
        );
        out[..len].to_vec()
    }

    #[test]
    fn forms_at_the_edges_of_each_length() {
        let table: [(u32, &[u8]); 10] = [
            (0, &[0x00]),
            (1, &[0x01]),
            (0x7f, &[0x7f]),
            (0x80, &[0x80, 0x01]),
            (0x3fff, &[0xff, 0x7f]),
            (0x4000, &[0x80, 0x80, 0x01]),
            (0x001f_ffff, &[0xff, 0xff, 0x7f]),
            (0x0020_0000, &[0x80, 0x80, 0x80, 0x01]),
            (0x1000_0000, &[0x80, 0x80, 0x80, 0x80, 0x01]),
            (u32::MAX, &[0xff, 0xff, 0xff, 0xff, 0x0f]),
        ];
        for (value, bytes) in table {
            assert_eq!(encoded(value), bytes, "{value}");
            assert_eq!(encoded_len(value), bytes.len(), "{value}");
            assert_eq!(decode(bytes), Ok(Some((value, bytes.len()))), "{value}");
        }
    }

    #[test]
    fn longer_forms_are_refused() {
        for bytes in [
            &[0x80, 0x00][..],
            &[0xff, 0x00],
            &[0x80, 0x80, 0x00],
            &[0xac, 0x82, 0x00],
            &[0x80, 0x80, 0x80, 0x00],
            &[0xff, 0xff, 0xff, 0xff, 0x00],
        ] {
            assert_eq!(decode(bytes), Err(VarintError::Overlong), "{bytes:02x?}");
        }
    }

    #[test]
    fn five_bytes_without_an_end_are_refused_not_waited_for() {
        for bytes in [
            &[0x80; 5][..],
            &[0x80; 10],
            &[0xff; 5],
            &[0xff, 0xff, 0xff, 0xff, 0x10],
            &[0x80, 0x80, 0x80, 0x80, 0x8f, 0x00],
        ] {
            assert_eq!(decode(bytes), Err(VarintError::TooLong), "{bytes:02x?}");
        }
    }

    proptest! {
        #[test]
        fn round_trip(value: u32, shift in 0u32..32, tail: Vec<u8>) {
            let value = value >> shift;
            let mut bytes = encoded(value);
            let len = bytes.len();
            prop_assert_eq!(encoded_len(value), len);
            for cut in 0..len {
                prop_assert_eq!(decode(&bytes[..cut]), Ok(None));
            }
            bytes.extend(tail);
            prop_assert_eq!(decode(&bytes), Ok(Some((value, len))));
        }

        /// Whatever is accepted is what we would have written: one form a value.
        #[test]
        fn accepted_bytes_are_canonical(bytes in prop::collection::vec(any::<u8>(), 0..8)) {
            match decode(&bytes) {
                Ok(Some((value, len))) => prop_assert_eq!(&encoded(value)[..], &bytes[..len]),
                Ok(None) => {
                    prop_assert!(bytes.len() < BYTES_MAX);
                    prop_assert!(bytes.iter().all(|byte| byte & MORE != 0));
                }
                Err(_) => {}
            }
        }

        /// More bytes never change an answer that was given.
        #[test]
        fn answers_do_not_depend_on_the_cut(bytes in prop::collection::vec(any::<u8>(), 0..8)) {
            let whole = decode(&bytes);
            for cut in 0..bytes.len() {
                let part = decode(&bytes[..cut]);
                prop_assert!(part == Ok(None) || part == whole);
            }
        }
    }
}
