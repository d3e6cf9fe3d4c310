//! `connect-timeout-ms`: one to ten ASCII digits.

use std::time::Duration;

use quill_core::{Error, Headers};

const HEADER: &str = "connect-timeout-ms";
const DIGITS_MAX: usize = 10;
/// What ten digits hold, some 116 days.
const MILLIS_MAX: u128 = 9_999_999_999;

/// The time that the caller gives the call.
pub(crate) fn read(headers: &Headers) -> Result<Option<Duration>, Error> {
    let Some(value) = headers.first(HEADER) else {
        return Ok(None);
    };
    let millis = std::str::from_utf8(value)
        .ok()
        .filter(|text| (1..=DIGITS_MAX).contains(&text.len()))
        // `parse` alone would take a sign.
        .filter(|text| text.bytes().all(|byte| byte.is_ascii_digit()))
        .and_then(|text| text.parse().ok());
    match millis {
        Some(millis) => Ok(Some(Duration::from_millis(millis))),
        None => Err(Error::invalid_argument(format!(
            "{HEADER} must be 1 to {DIGITS_MAX} digits, not {:?}",
            String::from_utf8_lossy(value)
        ))),
    }
}

/// Writes a timeout, rounded up to a whole millisecond. One that ten digits
/// can't hold is left out: a shorter one would end calls early.
pub(crate) fn write(timeout: Option<Duration>, headers: &mut Headers) {
    let Some(timeout) = timeout else { return };
    let millis = timeout.as_nanos().div_ceil(1_000_000);
    if millis <= MILLIS_MAX {
        headers.append(HEADER, millis.to_string());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn parse(value: &str) -> Result<Option<Duration>, quill_core::Code> {
        let mut headers = Headers::new();
        headers.append(HEADER, value);
        read(&headers).map_err(|error| error.code())
    }

    fn written(timeout: Duration) -> Option<String> {
        let mut headers = Headers::new();
        write(Some(timeout), &mut headers);
        headers.text(HEADER).map(str::to_owned)
    }

    #[test]
    fn only_one_to_ten_digits_are_a_timeout() {
        assert_eq!(read(&Headers::new()).unwrap(), None);
        assert_eq!(parse("0"), Ok(Some(Duration::ZERO)));
        assert_eq!(parse("0000000007"), Ok(Some(Duration::from_millis(7))));
        assert_eq!(
            parse("9999999999"),
            Ok(Some(Duration::from_millis(9_999_999_999)))
        );
        for refused in ["", "-1", "+5", "10s", " 1", "1 ", "12345678901", "٣", "1.5"] {
            assert_eq!(parse(refused), Err(quill_core::Code::InvalidArgument));
        }
    }

    #[test]
    fn a_timeout_never_gets_shorter_on_the_wire() {
        assert_eq!(written(Duration::ZERO).as_deref(), Some("0"));
        assert_eq!(written(Duration::from_nanos(1)).as_deref(), Some("1"));
        assert_eq!(
            written(Duration::from_millis(9_999_999_999)).as_deref(),
            Some("9999999999")
        );
        assert_eq!(written(Duration::from_secs(10_000_000)), None);
        assert_eq!(written(Duration::MAX), None);
    }

    proptest! {
        #[test]
        fn whole_milliseconds_go_both_ways(millis in 0_u64..=9_999_999_999) {
            let timeout = Duration::from_millis(millis);
            prop_assert_eq!(parse(&written(timeout).unwrap()), Ok(Some(timeout)));
        }
    }
}
