//! The headers that tell a client how much is left.

use std::time::Duration;

use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue, header::RETRY_AFTER};

use crate::decision::Decision;

const X_LIMIT: HeaderName = HeaderName::from_static("x-ratelimit-limit");
const X_REMAINING: HeaderName = HeaderName::from_static("x-ratelimit-remaining");
const X_RESET: HeaderName = HeaderName::from_static("x-ratelimit-reset");
const POLICY: HeaderName = HeaderName::from_static("ratelimit-policy");
const LIMIT: HeaderName = HeaderName::from_static("ratelimit");

/// Which headers an answer gets, also a refusal.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum LimitHeaders {
    /// None. (A refusal still has `Retry-After`.)
    None,
    /// `X-RateLimit-Limit`, `-Remaining` and `-Reset`, the last in seconds from
    /// now, rounded up.
    #[default]
    XRateLimit,
    /// `RateLimit` and `RateLimit-Policy` of the IETF draft
    /// (draft-ietf-httpapi-ratelimit-headers-10): the burst as `q`, the time it
    /// takes to come back as `w`.
    Ietf,
    /// Both.
    Both,
}

impl LimitHeaders {
    const fn x(self) -> bool {
        matches!(self, Self::XRateLimit | Self::Both)
    }

    const fn ietf(self) -> bool {
        matches!(self, Self::Ietf | Self::Both)
    }
}

/// Adds the headers of a decision. They share one allocation.
pub(super) fn add(headers: &mut HeaderMap, which: LimitHeaders, policy: &str, decision: &Decision) {
    if which == LimitHeaders::None {
        return;
    }
    let (limit, remaining) = (u64::from(decision.limit()), u64::from(decision.remaining()));
    let reset = decision.reset_after_secs();
    let mut text = Text::new();
    let x = which
        .x()
        .then(|| [limit, remaining, reset].map(|number| text.part(|text| text.number(number))));
    let ietf = which.ietf().then(|| {
        let policy_part = text.part(|text| {
            text.quoted(policy).text(";q=").number(limit);
            text.text(";w=").number(window_secs(decision));
        });
        let limit_part = text.part(|text| {
            text.quoted(policy).text(";r=").number(remaining);
            text.text(";t=").number(reset);
        });
        [policy_part, limit_part]
    });
    let bytes = text.into_bytes();
    let mut set = |name: HeaderName, (start, end): (usize, usize)| {
        // Digits and visible ASCII: always a valid value.
        if let Ok(value) = HeaderValue::from_maybe_shared(bytes.slice(start..end)) {
            headers.insert(name, value);
        }
    };
    if let Some([limit, remaining, reset]) = x {
        set(X_LIMIT, limit);
        set(X_REMAINING, remaining);
        set(X_RESET, reset);
    }
    if let Some([policy, limit]) = ietf {
        set(POLICY, policy);
        set(LIMIT, limit);
    }
}

/// Adds `Retry-After` to a refusal that time can mend.
pub(super) fn add_retry_after(headers: &mut HeaderMap, decision: &Decision) {
    if let Some(secs) = decision.retry_after_secs() {
        headers.insert(RETRY_AFTER, HeaderValue::from(secs));
    }
}

/// The time a spent budget takes to come back, in whole seconds, at least 1.
fn window_secs(decision: &Decision) -> u64 {
    let half = Duration::from_millis(500);
    decision.window().saturating_add(half).as_secs().max(1)
}

/// A policy's name as a structured string: what may not stand in one is left out.
pub(super) fn policy_name(namespace: &str) -> String {
    let is_plain = |c: &char| (' '..='~').contains(c) && !matches!(c, '"' | '\\');
    let name: String = namespace
        .chars()
        .filter(is_plain)
        .take(POLICY_BYTES_MAX)
        .collect();
    if name.is_empty() {
        "default".to_owned()
    } else {
        name
    }
}

const POLICY_BYTES_MAX: usize = 32;

/// Room for the five values at their longest.
const TEXT_BYTES_MAX: usize = 3 * 20 + 2 * (POLICY_BYTES_MAX + 2 + 3 + 20 + 3 + 20);

/// The text of all values, one after the other.
struct Text {
    bytes: [u8; TEXT_BYTES_MAX],
    len: usize,
}

impl Text {
    const fn new() -> Self {
        Self {
            bytes: [0; TEXT_BYTES_MAX],
            len: 0,
        }
    }

    /// What `write` appends: from where to where.
    fn part(&mut self, write: impl FnOnce(&mut Self)) -> (usize, usize) {
        let start = self.len;
        write(self);
        (start, self.len)
    }

    fn text(&mut self, text: &str) -> &mut Self {
        if let Some(room) = self.bytes.get_mut(self.len..self.len + text.len()) {
            room.copy_from_slice(text.as_bytes());
            self.len += text.len();
        }
        self
    }

    fn quoted(&mut self, text: &str) -> &mut Self {
        self.text("\"").text(text).text("\"")
    }

    fn number(&mut self, mut number: u64) {
        let mut digits = [0; 20];
        let mut start = digits.len();
        loop {
            start -= 1;
            digits[start] = b'0' + (number % 10) as u8;
            number /= 10;
            if number == 0 {
                break;
            }
        }
        if let Ok(text) = std::str::from_utf8(&digits[start..]) {
            self.text(text);
        }
    }

    /// One allocation, which the slices of it share.
    fn into_bytes(self) -> Bytes {
        Bytes::from_owner(self)
    }
}

impl AsRef<[u8]> for Text {
    fn as_ref(&self) -> &[u8] {
        &self.bytes[..self.len]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::decision::Outcome;
    use crate::quota::Quota;

    fn headers(which: LimitHeaders, decision: &Decision) -> Vec<(String, String)> {
        let mut headers = HeaderMap::new();
        add(&mut headers, which, "default", decision);
        add_retry_after(&mut headers, decision);
        let text = |value: &HeaderValue| value.to_str().unwrap().to_owned();
        headers
            .iter()
            .map(|(name, value)| (name.to_string(), text(value)))
            .collect()
    }

    fn pairs(list: &[(&str, &str)]) -> Vec<(String, String)> {
        list.iter()
            .map(|(a, b)| ((*a).to_owned(), (*b).to_owned()))
            .collect()
    }

    #[test]
    fn both_kinds_say_the_same() {
        let quota = Quota::per_minute(600).allow_burst(100);
        let debt = Duration::from_millis(3_050);
        let decision = Decision::from_debt(&quota, debt, 1, true);
        assert_eq!(
            headers(LimitHeaders::Both, &decision),
            pairs(&[
                ("x-ratelimit-limit", "100"),
                ("x-ratelimit-remaining", "69"),
                ("x-ratelimit-reset", "4"),
                ("ratelimit-policy", "\"default\";q=100;w=10"),
                ("ratelimit", "\"default\";r=69;t=4"),
            ])
        );
        assert_eq!(headers(LimitHeaders::Ietf, &decision).len(), 2);
        assert_eq!(headers(LimitHeaders::None, &decision), []);
    }

    #[test]
    fn a_retry_when_told_passes() {
        for (wait_ms, told) in [
            (1, 1),
            (300, 1),
            (1000, 1),
            (1001, 2),
            (1200, 2),
            (59_999, 60),
        ] {
            let quota = Quota::new(1, Duration::from_secs(60), 1);
            let debt = Duration::from_millis(wait_ms);
            let decision = Decision::from_debt(&quota, debt, 1, false);
            let headers = headers(LimitHeaders::None, &decision);
            assert_eq!(
                headers,
                pairs(&[("retry-after", &told.to_string())]),
                "{wait_ms} ms"
            );
        }
        let never = Decision::from_debt(&Quota::per_second(3), Duration::ZERO, 4, false);
        assert_eq!(never.outcome(), Outcome::InsufficientCapacity);
        assert_eq!(headers(LimitHeaders::None, &never), []);
    }

    #[test]
    fn the_longest_values_fit() {
        let quota = Quota::new(2, Duration::from_secs(1), u32::MAX);
        let decision = Decision::from_debt(&quota, Duration::MAX, 1, true);
        let mut map = HeaderMap::new();
        let name = policy_name(&"n".repeat(100));
        add(&mut map, LimitHeaders::Both, &name, &decision);
        assert_eq!(map.len(), 5);
        let policy = map["ratelimit-policy"].to_str().unwrap();
        assert!(policy.ends_with(";q=4294967295;w=2147483648"), "{policy}");
    }

    #[test]
    fn a_name_is_a_structured_string() {
        assert_eq!(policy_name(""), "default");
        assert_eq!(policy_name("log in"), "log in");
        assert_eq!(policy_name("a\"b\\c\r\nd\u{fc}"), "abcd");
    }
}
