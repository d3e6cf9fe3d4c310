//! gRPC proposal A6 on the wire: which attempt of a call this is, and what the
//! server says of another.

use std::time::Duration;

use quill_core::{Error, Headers, Pushback};

use crate::retry_after;

/// How many attempts were made before this one.
pub(super) const PREVIOUS_ATTEMPTS: &str = "grpc-previous-rpc-attempts";
/// Among the trailers of a failed call: how long to wait before the next attempt.
const PUSHBACK: &str = "grpc-retry-pushback-ms";

/// Reads how many attempts were made; 0 for what is no such number, since it is
/// for the handler's information alone.
pub(super) fn read_attempts(value: &[u8]) -> u32 {
    number(value)
        .and_then(|attempts| u32::try_from(attempts).ok())
        .unwrap_or_default()
}

/// Says in trailers when to try again, where the error does: whole milliseconds, as
/// many as fit a number of 32 bits.
pub(super) fn put(error: &Error, trailers: &mut Headers) {
    if let Some(delay) = error.retry_after() {
        let millis = retry_after::millis(delay).min(i32::MAX as u64);
        trailers.append(PUSHBACK, millis.to_string());
    }
}

/// What the trailers say of another attempt. A negative time, as whatever is no
/// number, asks for none.
pub(super) fn pushback(trailers: &Headers) -> Option<Pushback> {
    let millis = number(trailers.first(PUSHBACK)?).and_then(|millis| u64::try_from(millis).ok());
    Some(match millis {
        Some(millis) => Pushback::After(Duration::from_millis(millis)),
        None => Pushback::Never,
    })
}

fn number(value: &[u8]) -> Option<i32> {
    std::str::from_utf8(value).ok()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pushback_is_a_time_or_forbids_another_attempt() {
        let never = ["-1", "", "soon", "1.5", "99999999999", "\u{fc}"];
        let cases = never.map(|value| (value, Pushback::Never));
        let after = |millis| Pushback::After(Duration::from_millis(millis));
        for (value, expected) in cases
            .into_iter()
            .chain([("0", after(0)), ("250", after(250))])
        {
            let mut trailers = Headers::new();
            trailers.append(PUSHBACK, value);
            assert_eq!(pushback(&trailers), Some(expected), "{value:?}");
        }
        assert_eq!(pushback(&Headers::new()), None);
    }

    #[test]
    fn what_is_put_is_read_again() {
        let mut trailers = Headers::new();
        put(&Error::unavailable("no"), &mut trailers);
        assert!(trailers.is_empty());
        for (delay, read) in [
            (Duration::ZERO, Duration::ZERO),
            (Duration::from_millis(250), Duration::from_millis(250)),
            (Duration::from_micros(1), Duration::from_millis(1)),
            (Duration::MAX, Duration::from_millis(i32::MAX as u64)),
        ] {
            let mut trailers = Headers::new();
            let error = Error::unavailable("later").with_retry_after(delay);
            put(&error, &mut trailers);
            assert_eq!(pushback(&trailers), Some(Pushback::After(read)));
        }
    }

    #[test]
    fn attempts_are_counted_or_none() {
        for (value, attempts) in [("3", 3), ("-1", 0), ("x", 0), ("", 0)] {
            assert_eq!(read_attempts(value.as_bytes()), attempts, "{value:?}");
        }
    }
}
