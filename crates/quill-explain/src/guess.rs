//! What bytes are of which nothing is known.

/// Nested groups that are followed, at most.
const GROUPS_MAX: usize = 100;

/// What the bytes of a field may be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Guess {
    Text,
    Message,
    Bytes,
}

/// Text goes first: hardly a message is made of characters alone.
pub(crate) fn guess(bytes: &[u8]) -> Guess {
    if is_text(bytes) {
        Guess::Text
    } else if check(bytes) == Check::Valid {
        Guess::Message
    } else {
        Guess::Bytes
    }
}

/// Whether all of it is characters that are shown, or white space.
pub(crate) fn is_text(bytes: &[u8]) -> bool {
    let is_shown = |c: char| !c.is_control() || matches!(c, '\n' | '\r' | '\t');
    std::str::from_utf8(bytes).is_ok_and(|text| text.chars().all(is_shown))
}

/// Whether bytes have the form of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Check {
    Valid,
    /// Valid up to the end, which is inside of a field.
    Cut,
    Invalid,
}

/// Follows the fields of a message, without looking into them.
pub(crate) fn check(mut bytes: &[u8]) -> Check {
    let mut groups: Vec<u64> = Vec::new();
    while !bytes.is_empty() {
        let tag = match varint(bytes) {
            Ok((tag, rest)) => {
                bytes = rest;
                tag
            }
            Err(check) => return check,
        };
        let number = tag >> 3;
        if !is_number(number) {
            return Check::Invalid;
        }
        let length = match tag & 7 {
            0 => match varint(bytes) {
                Ok((_, rest)) => {
                    bytes = rest;
                    0
                }
                Err(check) => return check,
            },
            1 => 8,
            2 => match varint(bytes) {
                Ok((length, rest)) => {
                    bytes = rest;
                    length
                }
                Err(check) => return check,
            },
            3 if groups.len() < GROUPS_MAX => {
                groups.push(number);
                0
            }
            4 if groups.pop() == Some(number) => 0,
            5 => 4,
            _ => return Check::Invalid,
        };
        let rest = usize::try_from(length)
            .ok()
            .and_then(|length| bytes.get(length..));
        match rest {
            Some(rest) => bytes = rest,
            None if length > u64::from(u32::MAX) / 2 => return Check::Invalid,
            None => return Check::Cut,
        }
    }
    if groups.is_empty() {
        Check::Valid
    } else {
        Check::Cut
    }
}

/// Whether a field may have this number.
pub(crate) fn is_number(number: u64) -> bool {
    (1..1 << 29).contains(&number)
}

/// A varint of up to 64 bits, and what follows.
pub(crate) fn varint(bytes: &[u8]) -> Result<(u64, &[u8]), Check> {
    let mut value = 0_u64;
    let shifts = (0..64).step_by(7);
    for ((index, byte), shift) in bytes.iter().enumerate().zip(shifts) {
        let bits = u64::from(byte & 0x7f);
        // The tenth byte has room for one bit.
        if shift == 63 && bits > 1 {
            return Err(Check::Invalid);
        }
        value |= bits << shift;
        if byte & 0x80 == 0 {
            let rest = bytes.get(index.saturating_add(1)..).unwrap_or_default();
            return Ok((value, rest));
        }
    }
    Err(if bytes.len() < 10 {
        Check::Cut
    } else {
        Check::Invalid
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn varints_have_64_bits_at_most() {
        assert_eq!(varint(b"\x96\x01\x07"), Ok((150, &b"\x07"[..])));
        let mut most = [0xff; 10];
        most[9] = 1;
        assert_eq!(varint(&most), Ok((u64::MAX, &[][..])));
        most[9] = 2;
        assert_eq!(varint(&most), Err(Check::Invalid));
        assert_eq!(varint(&[0x80; 10]), Err(Check::Invalid));
        assert_eq!(varint(&[0x80; 9]), Err(Check::Cut));
    }

    #[test]
    fn bytes_are_taken_for_what_they_look_like() {
        for (bytes, is) in [
            (&b"hello"[..], Guess::Text),
            (b"", Guess::Text),
            (b"\x08\x01", Guess::Message),
            (b"\x0b\x08\x01\x0c", Guess::Message),
            (b"\x0b\x08\x01", Guess::Bytes),
            (b"\x00\x01", Guess::Bytes),
            (b"\xff\xfe", Guess::Bytes),
            (b"\x0a\x05hell", Guess::Bytes),
        ] {
            assert_eq!(guess(bytes), is, "{bytes:?}");
        }
    }
}
