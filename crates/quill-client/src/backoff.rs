//! Waiting longer from one failure to the next.

use std::hash::{BuildHasher, RandomState};
use std::sync::LazyLock;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// How much a delay may be off, both ways, so that those who failed together
/// don't come back together: a fifth (gRPC proposal A6).
const JITTER: f64 = 0.2;

/// How long to wait after a failure: longer from one to the next, with jitter of
/// a fifth both ways.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Backoff {
    pub(crate) initial: Duration,
    pub(crate) max: Duration,
    pub(crate) multiplier: f64,
}

impl Backoff {
    /// Waits `initial` after the first failure, and twice as long after each
    /// further one, up to `max`.
    #[must_use]
    pub const fn new(initial: Duration, max: Duration) -> Self {
        Self {
            initial,
            max,
            multiplier: 2.0,
        }
    }

    /// Waits so many times longer from one failure to the next; 2 unless set,
    /// 1 at least.
    #[must_use]
    pub const fn multiplier(mut self, multiplier: f64) -> Self {
        // Not a number is as little of use as less than 1.
        self.multiplier = if multiplier >= 1.0 { multiplier } else { 1.0 };
        self
    }

    /// How long to wait after so many failures in a row, of which there is one
    /// at least.
    pub(crate) fn delay(&self, failures: u32) -> Duration {
        let exponent = i32::try_from(failures.saturating_sub(1)).unwrap_or(i32::MAX);
        let grown = self.initial.as_secs_f64() * self.multiplier.powi(exponent);
        let most = self.max.as_secs_f64();
        let delay = if grown < most { grown } else { most };
        let unit = random() as f64 / u64::MAX as f64;
        let factor = 1.0 - JITTER + 2.0 * JITTER * unit;
        Duration::try_from_secs_f64(delay * factor).unwrap_or(self.max)
    }
}

/// A random number. Not a secret: it only has to differ.
pub(crate) fn random() -> u64 {
    static SEED: LazyLock<RandomState> = LazyLock::new(RandomState::new);
    static DRAWN: AtomicU64 = AtomicU64::new(0);
    SEED.hash_one(DRAWN.fetch_add(1, Ordering::Relaxed))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn delays_grow_to_their_bound_and_differ() {
        let backoff = Backoff::new(Duration::from_millis(100), Duration::from_secs(1));
        for (failures, millis) in [(1, 100), (2, 200), (4, 800), (5, 1000), (u32::MAX, 1000)] {
            let (least, most) = (millis * 8 / 10, millis * 12 / 10);
            for _ in 0..100 {
                let delay = backoff.delay(failures).as_millis();
                assert!((least..=most).contains(&delay), "{failures}: {delay}");
            }
        }
        let delays: Vec<_> = (0..10).map(|_| backoff.delay(1)).collect();
        assert!(delays.iter().any(|delay| *delay != delays[0]));
    }

    #[test]
    fn the_longest_delays_do_not_overflow() {
        let endless = Backoff::new(Duration::MAX, Duration::MAX).multiplier(f64::INFINITY);
        let _ = endless.delay(u32::MAX);
        let _ = endless.multiplier(f64::NAN).delay(7);
    }
}
