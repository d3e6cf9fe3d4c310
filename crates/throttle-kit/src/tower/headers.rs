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

    pub(super) const fn ietf(self) -> bool {
        matches!(self, Self::Ietf | Self::Both)
    }
}

/// Adds the headers of a decision. They share one allocation, if they need one.
pub(super) fn add(headers: &mut HeaderMap, which: LimitHeaders, policy: &str, decision: &Decision) {
    match (which.x(), which.ietf()) {
        (false, false) => (),
        (true, false) => write::<X_BYTES_MAX>(headers, which, policy, decision),
        (_, true) => write::<BYTES_MAX>(headers, which, policy, decision),
    }
}

fn write<const ROOM: usize>(
    headers: &mut HeaderMap,
    which: LimitHeaders,
    policy: &str,
    decision: &Decision,
) {
    let (limit, remaining) = (u64::from(decision.limit()), u64::from(decision.remaining()));
    let reset = decision.reset_after_secs();
    let mut text = Text::<ROOM>::new();
    let x = which
        .x()
        .then(|| [limit, remaining, reset].map(|number| text.number_value(number)));
    let ietf = which.ietf().then(|| {
        let policy_value = text.value(|text| {
            text.quoted(policy).text(b";q=").number(limit);
            text.text(b";w=").number(window_secs(decision));
        });
        let limit_value = text.value(|text| {
            text.quoted(policy).text(b";r=").number(remaining);
            text.text(b";t=").number(reset);
        });
        [policy_value, limit_value]
    });
    let mut bytes = text.into_bytes();
    let mut set = |name: HeaderName, value: Value| {
        // Digits and visible ASCII: always a valid value.
        if let Ok(value) = HeaderValue::from_maybe_shared(value.take_from(&mut bytes)) {
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

/// Room for the numbers alone at their longest: two of 32 bits, one of 64.
const X_BYTES_MAX: usize = 2 * 10 + 20;
/// Room for all five values.
const BYTES_MAX: usize = X_BYTES_MAX + 2 * (POLICY_BYTES_MAX + 2 + 3 + 20 + 3 + 20);

/// Three digits are in the program as text, and zeros after them.
const THREE_DIGITS: u64 = 1000;

/// 000 to 999, each with the zeros that a number of 32 bits may have after them.
static DIGITS: [[u8; 10]; THREE_DIGITS as usize] = {
    let mut all = [[b'0'; 10]; THREE_DIGITS as usize];
    let mut number = 0;
    while number < all.len() {
        all[number][0] += (number / 100) as u8;
        all[number][1] += (number / 10 % 10) as u8;
        all[number][2] += (number % 10) as u8;
        number += 1;
    }
    all
};

/// A number that [`DIGITS`] has: one below 1000, or a round one, as limits are.
fn round_number(mut number: u64) -> Option<&'static [u8]> {
    let mut end = 3;
    while number >= THREE_DIGITS && number.is_multiple_of(10) {
        number /= 10;
        end += 1;
    }
    let digits = DIGITS.get(usize::try_from(number).ok()?)?;
    digits.get(padding(number)..end)
}

/// A number below 1000, whole.
const fn three_digits(number: u64) -> [u8; 3] {
    let [a, b, c, ..] = DIGITS[number as usize];
    [a, b, c]
}

/// How many of three digits are zeros that are not written.
const fn padding(number: u64) -> usize {
    match number {
        0..=9 => 2,
        10..=99 => 1,
        _ => 0,
    }
}

/// Where a value's text is.
#[derive(Clone, Copy)]
enum Value {
    /// In the program.
    Static(&'static [u8]),
    /// So many of the written bytes, after those of the value before.
    Written(usize),
}

impl Value {
    fn take_from(self, written: &mut Bytes) -> Bytes {
        match self {
            Self::Static(text) => Bytes::from_static(text),
            Self::Written(len) => written.split_to(len),
        }
    }
}

/// The text of the values, one after the other.
struct Text<const ROOM: usize> {
    bytes: [u8; ROOM],
    len: usize,
}

impl<const ROOM: usize> Text<ROOM> {
    const fn new() -> Self {
        Self {
            bytes: [0; ROOM],
            len: 0,
        }
    }

    /// What `write` appends.
    fn value(&mut self, write: impl FnOnce(&mut Self)) -> Value {
        let start = self.len;
        write(self);
        Value::Written(self.len - start)
    }

    fn number_value(&mut self, number: u64) -> Value {
        match round_number(number) {
            Some(digits) => Value::Static(digits),
            None => self.value(|text| text.number(number)),
        }
    }

    fn text(&mut self, text: &[u8]) -> &mut Self {
        if let Some(room) = self.bytes.get_mut(self.len..self.len + text.len()) {
            room.copy_from_slice(text);
            self.len += text.len();
        }
        self
    }

    fn quoted(&mut self, text: &str) -> &mut Self {
        self.text(b"\"").text(text.as_bytes()).text(b"\"")
    }

    /// Three digits at a time.
    fn number(&mut self, mut number: u64) {
        let mut groups = [[0; 3]; 7];
        let mut start = groups.len() - 1;
        while number >= THREE_DIGITS {
            groups[start] = three_digits(number % THREE_DIGITS);
            number /= THREE_DIGITS;
            start -= 1;
        }
        groups[start] = three_digits(number);
        self.text(&groups.as_flattened()[3 * start + padding(number)..]);
    }

    /// At most one allocation, which the values share.
    fn into_bytes(self) -> Bytes {
        match self.len {
            0 => Bytes::new(),
            _ => Bytes::from_owner(self),
        }
    }
}

impl<const ROOM: usize> AsRef<[u8]> for Text<ROOM> {
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
    fn every_number_is_written_as_itself() {
        let powers = (0..20).map(|exponent| 10_u64.pow(exponent));
        let near = powers.flat_map(|power| [power - 1, power, power + 1, power.saturating_mul(7)]);
        for number in near.chain([12_034, 1_000_099, u64::MAX]) {
            let mut text = Text::<X_BYTES_MAX>::new();
            let value = text.number_value(number);
            let bytes = value.take_from(&mut text.into_bytes());
            assert_eq!(bytes, number.to_string());
        }
    }

    #[test]
    fn a_name_is_a_structured_string() {
        assert_eq!(policy_name(""), "default");
        assert_eq!(policy_name("log in"), "log in");
        assert_eq!(policy_name("a\"b\\c\r\nd\u{fc}"), "abcd");
    }
}
