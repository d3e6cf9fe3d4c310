//! What the limits decided.

use super::sharded::Sharded;

const ALLOWED: usize = 0;
const REFUSED: usize = 1;
const DEGRADED: usize = 2;
const COUNTERS: usize = 3;

/// The decisions of one limiter.
#[derive(Debug)]
pub(crate) struct LimiterCounts {
    pub(super) name: String,
    counters: Sharded<COUNTERS>,
}

impl LimiterCounts {
    pub(super) fn new(name: String) -> Self {
        Self {
            name,
            counters: Sharded::new(),
        }
    }

    /// One decision; a degraded one was made by the policy for a store that could
    /// not be asked.
    #[inline]
    pub(crate) fn decided(&self, is_allowed: bool, is_degraded: bool) {
        let mine = self.counters.mine();
        mine.add(if is_allowed { ALLOWED } else { REFUSED }, 1);
        if is_degraded {
            mine.add(DEGRADED, 1);
        }
    }

    /// Allowed, refused, and how many of both were degraded.
    pub(super) fn sums(&self) -> (u64, u64, u64) {
        let [allowed, refused, degraded] = self.counters.sums();
        (allowed, refused, degraded)
    }
}
