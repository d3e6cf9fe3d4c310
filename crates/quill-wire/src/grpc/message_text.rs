//! The percent coding of `grpc-message`.

use std::borrow::Cow;

const HEX: &[u8; 16] = b"0123456789ABCDEF";

/// UTF-8 in which all but space to `~`, and `%`, is written as `%XX`. So are
/// spaces at the ends, which HTTP does not keep.
pub(super) fn encode(message: &str) -> Cow<'_, str> {
    let inner = message.trim_matches(' ');
    if inner.len() == message.len() && message.bytes().all(is_raw) {
        return Cow::Borrowed(message);
    }
    let start = message
        .len()
        .saturating_sub(message.trim_start_matches(' ').len());
    let raw_range = start..start.saturating_add(inner.len());
    let mut encoded = String::with_capacity(message.len().saturating_mul(2));
    for (index, byte) in message.bytes().enumerate() {
        if is_raw(byte) && raw_range.contains(&index) {
            encoded.push(char::from(byte));
            continue;
        }
        encoded.push('%');
        for nibble in [byte >> 4, byte & 0x0f] {
            encoded.push(
                HEX.get(usize::from(nibble))
                    .copied()
                    .map_or('0', char::from),
            );
        }
    }
    Cow::Owned(encoded)
}

/// Undoes [`encode`]. The spec forbids to fail or to lose a message over broken
/// coding: a `%` without two hex digits stays, bytes that are no UTF-8 become
/// the replacement character.
pub(super) fn decode(value: &[u8]) -> String {
    if !value.contains(&b'%') {
        return String::from_utf8_lossy(value).into_owned();
    }
    let mut decoded = Vec::with_capacity(value.len());
    let mut rest = value;
    while let Some((first, after)) = rest.split_first() {
        rest = after;
        match (first, after) {
            (b'%', [high, low, after @ ..]) => match (hex(*high), hex(*low)) {
                (Some(high), Some(low)) => {
                    decoded.push(high << 4 | low);
                    rest = after;
                }
                _ => decoded.push(b'%'),
            },
            _ => decoded.push(*first),
        }
    }
    String::from_utf8(decoded)
        .unwrap_or_else(|error| String::from_utf8_lossy(error.as_bytes()).into_owned())
}

fn is_raw(byte: u8) -> bool {
    matches!(byte, 0x20..=0x7e) && byte != b'%'
}

fn hex(byte: u8) -> Option<u8> {
    u8::try_from(char::from(byte).to_digit(16)?).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn every_message_goes_both_ways(message in prop_oneof![any::<String>(), "[ %a\n]{0,6}"]) {
            let encoded = encode(&message);
            prop_assert!(encoded.bytes().all(|b| matches!(b, 0x20..=0x7e)));
            prop_assert_eq!(encoded.trim(), &encoded[..]);
            prop_assert_eq!(decode(encoded.as_bytes()), message);
        }

        #[test]
        fn no_value_fails_and_one_without_percent_is_kept(value in any::<Vec<u8>>()) {
            let decoded = decode(&value);
            if !value.contains(&b'%') {
                prop_assert_eq!(decoded, String::from_utf8_lossy(&value));
            }
        }
    }

    #[test]
    fn the_bytes_are_those_of_the_spec() {
        assert_eq!(encode("100% ü\n"), "100%25 %C3%BC%0A");
        assert!(matches!(encode("a plain ~message~"), Cow::Borrowed(_)));
        assert_eq!(encode("\u{7f}\t"), "%7F%09");
        assert_eq!(encode("  a b "), "%20%20a b%20");
        assert_eq!(encode(" "), "%20");
    }

    #[test]
    fn broken_coding_is_left_as_it_is() {
        assert_eq!(decode(b"100%"), "100%");
        assert_eq!(decode(b"%4"), "%4");
        assert_eq!(decode(b"%zz%41%c3%BC"), "%zzAü");
        assert_eq!(decode(b"%%41"), "%A");
        assert_eq!(decode(b"%ff"), "\u{fffd}");
    }
}
