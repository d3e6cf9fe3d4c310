//! Integers with a prefix (RFC 7541, 5.1).

use super::Error;

/// The continuation bit: another octet follows.
const MORE: u8 = 0x80;

/// Octets behind the prefix that an integer of 32 bits can need.
const OCTETS_MAX: u32 = 5;

/// Appends `value` with a prefix of `prefix_bits` bits (1 to 8); `flags` are the bits
/// of the first octet above the prefix.
#[inline]
pub(super) fn encode(value: usize, prefix_bits: u32, flags: u8, out: &mut Vec<u8>) {
    let full = (1_usize << prefix_bits) - 1;
    if value < full {
        out.push(flags | value as u8);
        return;
    }
    out.push(flags | full as u8);
    let mut rest = value - full;
    while rest >= usize::from(MORE) {
        out.push(rest as u8 | MORE);
        rest >>= 7;
    }
    out.push(rest as u8);
}

/// Reads the integer whose first octet, `first`, was taken off the front of `input`.
#[inline]
pub(super) fn decode(first: u8, prefix_bits: u32, input: &mut &[u8]) -> Result<u32, Error> {
    let full = (1_u32 << prefix_bits) - 1;
    let prefix = u32::from(first) & full;
    if prefix < full {
        Ok(prefix)
    } else {
        continued(full, input)
    }
}

#[inline(never)]
fn continued(full: u32, input: &mut &[u8]) -> Result<u32, Error> {
    let mut value = u64::from(full);
    for octet in 0..OCTETS_MAX {
        let (&byte, rest) = input.split_first().ok_or(Error::Truncated)?;
        *input = rest;
        value += u64::from(byte & !MORE) << (7 * octet);
        if byte & MORE == 0 {
            return u32::try_from(value).map_err(|_| Error::IntegerTooLarge);
        }
    }
    Err(Error::IntegerTooLarge)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn decoded(bytes: &[u8], prefix_bits: u32) -> Result<(u32, usize), Error> {
        let (&first, mut rest) = bytes.split_first().expect("not empty");
        decode(first, prefix_bits, &mut rest).map(|value| (value, rest.len()))
    }

    /// RFC 7541, C.1.
    #[test]
    fn examples_of_the_rfc() {
        for (value, prefix_bits, bytes) in [
            (10, 5, &[0x0a][..]),
            (1337, 5, &[0x1f, 0x9a, 0x0a]),
            (42, 8, &[0x2a]),
        ] {
            let mut out = Vec::new();
            encode(value, prefix_bits, 0, &mut out);
            assert_eq!(out, bytes);
            assert_eq!(decoded(bytes, prefix_bits), Ok((value as u32, 0)));
        }
    }

    #[test]
    fn there_and_back_at_the_edges() {
        for prefix_bits in 4..=7 {
            let full = (1_u32 << prefix_bits) - 1;
            for value in [0, full - 1, full, full + 127, full + 128, u32::MAX] {
                let mut out = Vec::new();
                encode(value as usize, prefix_bits, 0x80, &mut out);
                assert_eq!(decoded(&out, prefix_bits), Ok((value, 0)));
                out.pop();
                if !out.is_empty() {
                    assert_eq!(decoded(&out, prefix_bits), Err(Error::Truncated));
                }
            }
        }
    }

    #[test]
    fn integers_are_bounded() {
        let above = [0x7f, 0x81, 0xff, 0xff, 0xff, 0x0f];
        assert_eq!(decoded(&above, 7), Err(Error::IntegerTooLarge));
        let zeros = [0x7f, 0x80, 0x80, 0x80, 0x80, 0x80, 0x00];
        assert_eq!(decoded(&zeros, 7), Err(Error::IntegerTooLarge));
    }
}
