//! `quill-timeout-ms`: 1 to 10 ASCII digits (docs/protocol.md, "Deadlines").

use std::time::Duration;

use quill_core::Error;

pub(super) const TIMEOUT: &str = "quill-timeout-ms";
const DIGITS_MAX: usize = 10;
/// The most that ten digits hold, about 115 days.
const MILLIS_MAX: u128 = 9_999_999_999;

/// The value for a timeout: in whole milliseconds, never shorter than asked
/// unless it is beyond what the header holds.
pub(super) fn encode(timeout: Duration) -> String {
    let millis = timeout.as_nanos().div_ceil(1_000_000);
    millis.min(MILLIS_MAX).to_string()
}

pub(super) fn decode(value: &[u8]) -> Result<Duration, Error> {
    digits(value)
        .map(Duration::from_millis)
        .ok_or_else(|| Error::invalid_argument("quill-timeout-ms must be 1 to 10 ASCII digits"))
}

/// A number of 1 to 10 ASCII digits: the form of this protocol's numbers.
pub(super) fn digits(value: &[u8]) -> Option<u64> {
    let fits = (1..=DIGITS_MAX).contains(&value.len()) && value.iter().all(u8::is_ascii_digit);
    let text = fits.then(|| std::str::from_utf8(value).ok())??;
    text.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn timeouts_go_both_ways() {
        for millis in [0, 1, 50, 999, 86_400_000, 9_999_999_999] {
            let timeout = Duration::from_millis(millis);
            assert_eq!(decode(encode(timeout).as_bytes()).unwrap(), timeout);
        }
    }

    #[test]
    fn a_part_of_a_millisecond_counts_whole_and_the_longest_is_cut() {
        assert_eq!(encode(Duration::from_nanos(1)), "1");
        assert_eq!(encode(Duration::from_micros(1_500)), "2");
        assert_eq!(encode(Duration::MAX), "9999999999");
    }

    #[test]
    fn anything_but_one_to_ten_digits_is_refused() {
        for value in [
            "",
            "-1",
            "+5",
            "10s",
            "1.5",
            " 5",
            "12345678901",
            "\u{661}",
            "0x1",
        ] {
            let error = decode(value.as_bytes()).unwrap_err();
            assert_eq!(error.code(), quill_core::Code::InvalidArgument, "{value:?}");
        }
        assert_eq!(decode(b"0000000005").unwrap(), Duration::from_millis(5));
    }
}
