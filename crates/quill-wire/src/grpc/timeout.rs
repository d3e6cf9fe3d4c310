//! `grpc-timeout`: at most eight digits and a unit.

use std::time::Duration;

use quill_core::Error;

pub(super) const TIMEOUT: &str = "grpc-timeout";

const DIGITS_MAX: usize = 8;
const VALUE_MAX: u128 = 99_999_999;
const NANOS_PER_SECOND: u64 = 1_000_000_000;
/// Units and their nanoseconds, the finest first.
const UNITS: [(u8, u64); 6] = [
    (b'n', 1),
    (b'u', 1_000),
    (b'm', 1_000_000),
    (b'S', NANOS_PER_SECOND),
    (b'M', 60 * NANOS_PER_SECOND),
    (b'H', 3_600 * NANOS_PER_SECOND),
];

/// The value for this timeout: the finest unit in which it fits, rounded up, so
/// that the server never grants less than was asked. `None` for more than
/// 99,999,999 hours, which only an absent timeout can say.
pub(super) fn encode(timeout: Duration) -> Option<String> {
    let nanos = timeout.as_nanos();
    UNITS.iter().find_map(|(unit, unit_nanos)| {
        let value = nanos.div_ceil(u128::from(*unit_nanos));
        (value <= VALUE_MAX).then(|| {
            let mut text = value.to_string();
            text.push(char::from(*unit));
            text
        })
    })
}

/// The timeout that a request asks for. Zero is taken, though the spec wants a
/// positive integer: clients write `0n` for a deadline that has passed.
///
/// # Errors
/// `internal` for anything but one to eight digits and a unit: a caller that
/// set a deadline must not run without one.
pub(super) fn decode(value: &[u8]) -> Result<Duration, Error> {
    parse(value).ok_or_else(|| {
        Error::internal(format!(
            "grpc-timeout {:?} is malformed: it is 1 to {DIGITS_MAX} digits and one of the units H, M, S, m, u, n",
            value.escape_ascii().to_string()
        ))
    })
}

fn parse(value: &[u8]) -> Option<Duration> {
    let (unit, digits) = value.split_last()?;
    if digits.is_empty() || digits.len() > DIGITS_MAX || !digits.iter().all(u8::is_ascii_digit) {
        return None;
    }
    let (_, unit_nanos) = UNITS.iter().find(|(name, _)| name == unit)?;
    let value: u64 = std::str::from_utf8(digits).ok()?.parse().ok()?;
    // Eight digits of hours overflow nanoseconds, but no seconds.
    if *unit_nanos >= NANOS_PER_SECOND {
        let seconds = value.checked_mul(unit_nanos / NANOS_PER_SECOND)?;
        return Some(Duration::from_secs(seconds));
    }
    Some(Duration::from_nanos(value.checked_mul(*unit_nanos)?))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn a_timeout_comes_back_no_shorter_and_hardly_longer(
            seconds in prop_oneof![0..10_u64, 0..1_000_000_u64, 0..350_000_000_000_u64],
            nanos in 0..1_000_000_000_u32,
        ) {
            let asked = Duration::new(seconds, nanos);
            let text = encode(asked).unwrap();
            prop_assert!(text.len() <= DIGITS_MAX + 1);
            let got = decode(text.as_bytes()).unwrap();
            prop_assert!(got >= asked);
            // A value that was rounded has six digits at least.
            prop_assert!(got - asked <= asked / 100_000 + Duration::from_nanos(1), "{text} for {asked:?}");
        }

        #[test]
        fn whatever_is_taken_is_digits_and_a_unit(value in prop::collection::vec(any::<u8>(), 0..12)) {
            if decode(&value).is_ok() {
                let (unit, digits) = value.split_last().unwrap();
                prop_assert!(b"HMSmun".contains(unit));
                prop_assert!((1..=8).contains(&digits.len()));
                prop_assert!(digits.iter().all(u8::is_ascii_digit));
            }
        }
    }

    #[test]
    fn each_unit_is_read() {
        for (text, timeout) in [
            ("1H", Duration::from_secs(3600)),
            ("2M", Duration::from_secs(120)),
            ("3S", Duration::from_secs(3)),
            ("50m", Duration::from_millis(50)),
            ("7u", Duration::from_micros(7)),
            ("9n", Duration::from_nanos(9)),
            ("0n", Duration::ZERO),
            ("00000001S", Duration::from_secs(1)),
            ("99999999H", Duration::from_secs(99_999_999 * 3600)),
            ("99999999n", Duration::from_nanos(99_999_999)),
        ] {
            assert_eq!(decode(text.as_bytes()).unwrap(), timeout, "{text}");
        }
    }

    #[test]
    fn malformed_values_are_errors_and_never_no_deadline() {
        for text in [
            "",
            "1",
            "S",
            "-1S",
            "+5S",
            " 5S",
            "5 S",
            "1.5S",
            "123456789S",
            "5s",
            "5SS",
            "٣S",
        ] {
            let error = decode(text.as_bytes()).unwrap_err();
            assert_eq!(error.code(), quill_core::Code::Internal, "{text}");
            assert!(error.message().contains("H, M, S, m, u, n"));
        }
    }

    #[test]
    fn the_finest_unit_that_fits_is_written() {
        for (timeout, text) in [
            (Duration::from_nanos(99_999_999), "99999999n"),
            (Duration::from_nanos(100_000_000), "100000u"),
            (Duration::from_nanos(123_456_789_012), "123457m"),
            (Duration::from_secs(2), "2000000u"),
            (Duration::ZERO, "0n"),
            (Duration::from_secs(99_999_999 * 3600), "99999999H"),
        ] {
            assert_eq!(encode(timeout).as_deref(), Some(text));
        }
        assert_eq!(encode(Duration::from_secs(99_999_999 * 3600 + 1)), None);
        assert_eq!(encode(Duration::MAX), None);
    }
}
