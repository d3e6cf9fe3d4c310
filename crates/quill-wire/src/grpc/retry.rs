//! gRPC proposal A6 on the wire: which attempt of a call this is, and what the
//! server says of another.

use std::time::Duration;

use quill_core::{Headers, Pushback};

use crate::retry_after;

/// How many attempts were made before this one.
pub(super) const PREVIOUS_ATTEMPTS: &str = "grpc-previous-rpc-attempts";
/// Among the trailers of a failed call: how long to wait before the next attempt,
/// in milliseconds, 32 bits with a sign.
const PUSHBACK: &str = "grpc-retry-pushback-ms";

/// Reads how many attempts were made; 0 for what is no such number, since it is
/// for the handler's information alone.
pub(super) fn read_attempts(value: &[u8]) -> u32 {
    number(value)
        .and_then(|attempts| u32::try_from(attempts).ok())
        .unwrap_or_default()
}

/// Says in the trailers of a failed call how long to wait.
pub(super) fn put_pushback(delay: Duration, trailers: &mut Headers) {
    let millis = retry_after::millis(delay).min(i32::MAX as u64);
    trailers.append(PUSHBACK, millis.to_string());
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
        for (delay, millis) in [
            (Duration::from_micros(1_500), 2),
            (Duration::from_secs(7), 7_000),
            (Duration::MAX, i32::MAX as u64),
        ] {
            let mut trailers = Headers::new();
            put_pushback(delay, &mut trailers);
            assert_eq!(pushback(&trailers), Some(after(millis)));
        }
    }

    #[test]
    fn attempts_are_counted_or_none() {
        for (value, attempts) in [("3", 3), ("-1", 0), ("x", 0), ("", 0)] {
            assert_eq!(read_attempts(value.as_bytes()), attempts, "{value:?}");
        }
    }
}
