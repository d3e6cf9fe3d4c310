//! `google.rpc.RetryInfo`, the one detail the runtime itself reads and writes.
//!
//! `message RetryInfo { google.protobuf.Duration retry_delay = 1; }`, with
//! `message Duration { int64 seconds = 1; int32 nanos = 2; }`.

use std::time::Duration;

use bytes::Bytes;

use crate::error::Detail;

const TYPE_NAME: &str = "google.rpc.RetryInfo";
/// Field 1 of `RetryInfo`: length-delimited.
const TAG_RETRY_DELAY: u8 = 0x0a;
/// Fields 1 and 2 of `Duration`: varints.
const TAG_SECONDS: u8 = 0x08;
const TAG_NANOS: u8 = 0x10;
/// The most seconds a `google.protobuf.Duration` may hold (about 10,000 years).
const SECONDS_MAX: u64 = 315_576_000_000;

pub(crate) fn encode(delay: Duration) -> Detail {
    let mut duration = Vec::with_capacity(16);
    put_field(&mut duration, TAG_SECONDS, delay.as_secs().min(SECONDS_MAX));
    put_field(&mut duration, TAG_NANOS, delay.subsec_nanos().into());
    let mut value = Vec::with_capacity(duration.len() + 2);
    value.push(TAG_RETRY_DELAY);
    put_varint(&mut value, duration.len() as u64);
    value.extend_from_slice(&duration);
    Detail {
        type_name: TYPE_NAME.to_owned(),
        value: Bytes::from(value),
    }
}

/// The delay of a `RetryInfo`; `None` for another detail, for one that is
/// malformed and for a negative delay.
pub(crate) fn decode(detail: &Detail) -> Option<Duration> {
    if detail.type_name != TYPE_NAME {
        return None;
    }
    let mut outer = detail.value.as_ref();
    if outer.is_empty() {
        return Some(Duration::ZERO);
    }
    if take_varint(&mut outer)? != u64::from(TAG_RETRY_DELAY) {
        return None;
    }
    let length = usize::try_from(take_varint(&mut outer)?).ok()?;
    let mut inner = outer.get(..length)?;
    let (mut seconds, mut nanos) = (0, 0);
    while !inner.is_empty() {
        let tag = take_varint(&mut inner)?;
        let value = take_varint(&mut inner)?;
        match u8::try_from(tag).ok()? {
            TAG_SECONDS => seconds = value,
            TAG_NANOS => nanos = value,
            _ => return None,
        }
    }
    let in_range = seconds <= SECONDS_MAX && nanos < 1_000_000_000;
    in_range.then(|| Duration::new(seconds, u32::try_from(nanos).unwrap_or_default()))
}

fn put_field(out: &mut Vec<u8>, tag: u8, value: u64) {
    if value != 0 {
        out.push(tag);
        put_varint(out, value);
    }
}

fn put_varint(out: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

fn take_varint(bytes: &mut &[u8]) -> Option<u64> {
    let mut value = 0_u64;
    for shift in (0..64).step_by(7) {
        let (first, rest) = bytes.split_first()?;
        *bytes = rest;
        value |= u64::from(first & 0x7f) << shift;
        if first & 0x80 == 0 {
            return Some(value);
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn delays_go_both_ways() {
        for delay in [
            Duration::ZERO,
            Duration::from_millis(300),
            Duration::from_secs(7),
            Duration::new(SECONDS_MAX, 999_999_999),
        ] {
            assert_eq!(decode(&encode(delay)), Some(delay));
        }
        assert_eq!(
            decode(&encode(Duration::MAX)),
            Some(Duration::new(SECONDS_MAX, 999_999_999))
        );
    }

    #[test]
    fn the_bytes_are_those_of_protobuf() {
        let detail = encode(Duration::from_millis(1_500));
        // { retry_delay { seconds: 1 nanos: 500000000 } }
        assert_eq!(
            detail.value.as_ref(),
            [0x0a, 8, 0x08, 1, 0x10, 0x80, 0xca, 0xb5, 0xee, 0x01]
        );
    }

    #[test]
    fn malformed_and_negative_delays_are_none() {
        let detail = |value: &'static [u8]| Detail {
            type_name: TYPE_NAME.to_owned(),
            value: Bytes::from_static(value),
        };
        for value in [
            &[0x0a][..],
            &[0x0a, 9, 1],
            &[
                0x0a, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff,
            ],
            // seconds: -1
            &[0x0a, 11, 8, 255, 255, 255, 255, 255, 255, 255, 255, 255, 1],
        ] {
            assert_eq!(decode(&detail(value)), None);
        }
    }
}
