//! How many retries a client may add to the load of servers that fail.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

/// Tokens are counted in thousandths (gRPC proposal A6, "Throttling").
const UNIT: u32 = 1000;
pub(crate) const TOKENS_MAX: u32 = 1_000_000;
pub(crate) const TOKENS_DEFAULT: u32 = 100;
pub(crate) const RATIO_DEFAULT: f64 = 0.1;

/// A bucket of tokens that retries are paid from: a call that fails takes one,
/// a call that succeeds brings a fraction of one back, and while half or less of
/// them are there, nothing is retried. Servers that fail for everybody so get
/// no more than a fraction of calls on top. Clones share the bucket.
#[derive(Clone, Debug)]
pub struct RetryBudget(Arc<Bucket>);

#[derive(Debug)]
struct Bucket {
    tokens: AtomicU32,
    max: u32,
    refill: u32,
}

impl RetryBudget {
    /// A full bucket of so many tokens, 1 to 1,000,000, and the part of one that
    /// a success brings back, 0.001 to 1.
    #[must_use]
    pub fn new(tokens_max: u32, ratio: f64) -> Self {
        let max = tokens_max.clamp(1, TOKENS_MAX) * UNIT;
        let ratio = if ratio > 0.001 { ratio.min(1.0) } else { 0.001 };
        Self(Arc::new(Bucket {
            tokens: AtomicU32::new(max),
            max,
            refill: (ratio * f64::from(UNIT)).round() as u32,
        }))
    }

    pub(crate) fn succeeded(&self) {
        let Bucket {
            tokens,
            max,
            refill,
        } = &*self.0;
        // It is full for as long as nothing fails: not worth a write then.
        if tokens.load(Ordering::Relaxed) < *max {
            let more = |left: u32| Some((left + refill).min(*max));
            let _ = tokens.fetch_update(Ordering::Relaxed, Ordering::Relaxed, more);
        }
    }

    /// Takes the token of a failure; whether retries are allowed.
    pub(crate) fn failed(&self) -> bool {
        let Bucket { tokens, max, .. } = &*self.0;
        let less = |left: u32| Some(left.saturating_sub(UNIT));
        let before = tokens.fetch_update(Ordering::Relaxed, Ordering::Relaxed, less);
        let left = before.unwrap_or_else(|left| left).saturating_sub(UNIT);
        left > max / 2
    }
}

impl Default for RetryBudget {
    /// 100 tokens, a tenth of one for each success.
    fn default() -> Self {
        Self::new(TOKENS_DEFAULT, RATIO_DEFAULT)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn half_of_the_tokens_are_for_retries() {
        let budget = RetryBudget::new(10, 0.1);
        assert_eq!((0..6).filter(|_| budget.failed()).count(), 4);
        // 4 tokens are left; 5 are not more than half.
        (0..20).for_each(|_| budget.succeeded());
        assert!(!budget.failed());
        (0..20).for_each(|_| budget.succeeded());
        assert!(budget.failed());
    }

    #[test]
    fn it_is_never_fuller_than_full_nor_emptier_than_empty() {
        let budget = RetryBudget::new(2, 1.0);
        (0..9).for_each(|_| budget.succeeded());
        assert!(!budget.failed());
        (0..9).for_each(|_| assert!(!budget.failed()));
        budget.succeeded();
        budget.succeeded();
        assert!(!budget.failed());
        let _ = RetryBudget::new(u32::MAX, f64::NAN).failed();
    }
}
