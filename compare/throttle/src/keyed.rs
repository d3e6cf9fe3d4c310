//! Limits for text keys, of each of those that have them, behind one face.

use std::future::Future;
use std::num::NonZeroU32;
use std::pin::pin;
use std::task::{Context, Poll, Waker};

use governor::DefaultKeyedRateLimiter;
use throttle_kit::{InMemoryBackend, Quota, RateLimiter};
use throttle_kit_registry as registry;

/// A key as a service has it, rewritten in place so that making one costs little.
#[derive(Debug, Clone)]
pub struct KeyText(String);

impl KeyText {
    pub fn new(number: u64) -> Self {
        let mut key = Self(String::with_capacity(16));
        key.write(number);
        key
    }

    /// `user:` and eight digits.
    pub fn write(&mut self, mut number: u64) {
        let mut text = *b"user:00000000";
        for digit in text[5..].iter_mut().rev() {
            *digit += (number % 10) as u8;
            number /= 10;
        }
        self.0.clear();
        self.0.push_str(str::from_utf8(&text).expect("digits"));
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// How long what a check takes is owed.
#[derive(Debug, Clone, Copy)]
pub enum Owed {
    /// A nanosecond (where the clock is that fine): nothing is ever refused.
    Briefly,
    /// An hour for each check: no key can be forgotten.
    AnHour,
}

/// What an hour's quota lets through at once.
const BURST: u32 = 100_000;
const ENDLESS: u32 = 1_000_000_000;

/// A limiter of keys.
pub trait Keyed: Send + Sync {
    /// For about `keys` keys, where that is asked.
    fn new(owed: Owed, keys: usize) -> Self;

    fn check(&self, key: &KeyText) -> bool;

    /// Keys whose state is there, if it can tell.
    fn live(&self) -> Option<usize> {
        None
    }
}

/// This repository's, without a runtime.
pub struct Ours(RateLimiter<InMemoryBackend>);

/// This repository's, by its async method.
pub struct OursAsync(Ours);

/// throttle-kit 2.1.2, which has no other way than async in a runtime at hand.
pub struct Registry(registry::RateLimiter<registry::InMemoryBackend>);

/// governor's, keyed by text.
pub struct Governor(DefaultKeyedRateLimiter<String>);

impl Keyed for Ours {
    fn new(owed: Owed, keys: usize) -> Self {
        let quota = match owed {
            Owed::Briefly => Quota::per_second(ENDLESS),
            Owed::AnHour => Quota::per_hour(1).allow_burst(BURST),
        };
        Self(RateLimiter::new(
            quota,
            InMemoryBackend::with_keys_max(keys),
        ))
    }

    #[inline]
    fn check(&self, key: &KeyText) -> bool {
        self.0.check_now(key.as_str()).is_allowed()
    }

    fn live(&self) -> Option<usize> {
        Some(self.0.backend().live_keys())
    }
}

impl Keyed for OursAsync {
    fn new(owed: Owed, keys: usize) -> Self {
        Self(Ours::new(owed, keys))
    }

    #[inline]
    fn check(&self, key: &KeyText) -> bool {
        at_once(self.0.0.check(key.as_str())).is_allowed()
    }
}

impl Keyed for Registry {
    fn new(owed: Owed, _: usize) -> Self {
        let quota = match owed {
            Owed::Briefly => registry::Quota::per_second(ENDLESS),
            Owed::AnHour => registry::Quota::per_hour(1).allow_burst(BURST),
        };
        let backend = registry::InMemoryBackend::new();
        Self(registry::RateLimiter::new(quota, backend))
    }

    #[inline]
    fn check(&self, key: &KeyText) -> bool {
        at_once(self.0.check(key.as_str())).allowed
    }
}

impl Keyed for Governor {
    fn new(owed: Owed, _: usize) -> Self {
        let number = |n| NonZeroU32::new(n).expect("above 0");
        Self(DefaultKeyedRateLimiter::keyed(match owed {
            Owed::Briefly => governor::Quota::per_second(number(ENDLESS)),
            Owed::AnHour => governor::Quota::per_hour(number(1)).allow_burst(number(BURST)),
        }))
    }

    #[inline]
    fn check(&self, key: &KeyText) -> bool {
        self.0.check_key(&key.0).is_ok()
    }
}

/// The outcome of a future that has nothing to wait for.
#[inline]
pub fn at_once<F: Future>(future: F) -> F::Output {
    let mut context = Context::from_waker(Waker::noop());
    match pin!(future).poll(&mut context) {
        Poll::Ready(outcome) => outcome,
        Poll::Pending => panic!("a check in memory waits"),
    }
}
