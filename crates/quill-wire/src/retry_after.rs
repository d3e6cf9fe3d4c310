//! When to come back after a refusal, as the protocols write it beside the detail
//! in the error: rounded up, so that a retry then is not too early.

use std::time::Duration;

use quill_core::{Error, Headers};

/// Says it to anything that speaks HTTP: whole seconds (RFC 9110, section 10.2.3).
/// A value that the error's own metadata has stays alone.
pub(crate) fn put_seconds(error: &Error, headers: &mut Headers) {
    const NAME: &str = "retry-after";
    let is_set = error.metadata().all(NAME).next().is_some();
    if let Some(delay) = error.retry_after().filter(|_| !is_set) {
        let part = u64::from(delay.subsec_nanos() > 0);
        let seconds = delay.as_secs().saturating_add(part);
        headers.append(NAME, seconds.to_string());
    }
}

/// Whole milliseconds.
pub(crate) fn millis(delay: Duration) -> u64 {
    u64::try_from(delay.as_nanos().div_ceil(1_000_000)).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn delays_are_rounded_up() {
        for (millis, seconds) in [(0, "0"), (300, "1"), (1_000, "1"), (1_200, "2")] {
            let delay = Duration::from_millis(millis);
            let error = Error::unavailable("later").with_retry_after(delay);
            let mut headers = Headers::new();
            put_seconds(&error, &mut headers);
            assert_eq!(headers.text("retry-after"), Some(seconds));
        }
        assert_eq!(millis(Duration::from_nanos(1)), 1);
        assert_eq!(millis(Duration::from_millis(7)), 7);
        assert_eq!(millis(Duration::MAX), u64::MAX);
    }

    #[test]
    fn what_the_error_says_itself_stays_alone() {
        let error = Error::unavailable("later").with_retry_after(Duration::from_secs(1));
        let error = error.with_metadata("retry-after", "7").unwrap();
        let mut headers = Headers::new();
        put_seconds(&error, &mut headers);
        assert!(headers.is_empty());
    }
}
