//! Two counters a key over the table.

use std::fmt;
use std::sync::Arc;

use super::count::{Count, Window};
use crate::backend::{Operation, SyncBackend};
use crate::clock::{Clock, SystemClock};
use crate::decision::{Decision, Figures, Outcome};
use crate::gcra::Tat;
use crate::key::KeyRef;
use crate::quota::Quota;
use crate::store::memory::{KEYS_MAX_DEFAULT, Shared, Verdict};

/// A sliding window of two counters, in this process, for a known number of keys.
///
/// A quota's burst is how many cells a window admits, and its window (burst x
/// interval) how long that is: `Quota::per_minute(100)` is 100 a minute, and
/// with `allow_burst(10)` it is 10 in six seconds. Where GCRA gives cells back
/// one by one, here they are counted from one fixed window to the next, and the
/// last window's count still weighs as much as of it lies within a window's
/// length:
///
/// `weight of the last window x its count + this window's count <= limit`
///
/// That takes the last window's cells for evenly spread. What follows:
///
/// - No fixed window ever admits more than the limit, so neither does any long
///   time on average.
/// - Any other span of a window's length admits at most twice the limit (all at
///   the end of one window, and as the weight falls in the next).
/// - Whoever asks for at most half the limit in each window is never refused.
///
/// The last window's count is kept as a share of the limit, rounded up by at
/// most 1/4095 of it. A refund gives back cells of the current window only.
///
/// Memory, eviction and keys are as of [`InMemoryBackend`](crate::store::InMemoryBackend);
/// so are clones: they share the state. A key that lies unused for more than
/// 32,000 windows may be taken for one that was just used.
pub struct SlidingWindowBackend<C = SystemClock>(Arc<Shared<C>>);

impl SlidingWindowBackend {
    /// For up to 65,536 keys that were used in the last two windows.
    #[must_use]
    pub fn new() -> Self {
        Self::with_keys_max(KEYS_MAX_DEFAULT)
    }

    /// For up to `keys_max` keys that were used in the last two windows.
    #[must_use]
    pub fn with_keys_max(keys_max: usize) -> Self {
        Self::with_clock(keys_max, SystemClock::new())
    }
}

impl<C: Clock> SlidingWindowBackend<C> {
    /// With a clock of your own.
    #[must_use]
    pub fn with_clock(keys_max: usize, clock: C) -> Self {
        Self(Arc::new(Shared::new(keys_max, clock)))
    }

    /// Keys that it was made for.
    #[must_use]
    pub fn keys_max(&self) -> usize {
        self.0.keys_max
    }

    /// Keys that lost their count while it mattered, because all three of
    /// their buckets were full. Stays near 0 unless `keys_max` is too small.
    #[must_use]
    pub fn evicted_live(&self) -> u64 {
        self.0.table.evicted_live()
    }
}

impl<C: Clock> SyncBackend for SlidingWindowBackend<C> {
    fn apply_now(&self, key: KeyRef<'_>, quota: &Quota, n: u32, operation: Operation) -> Decision {
        let now_ns = self.0.now_ns();
        let Some(window) = Window::of(quota, now_ns) else {
            return Decision::refused(quota, 0, n);
        };
        let Shared { hasher, table, .. } = &*self.0;
        let fingerprint = window.stamp(hasher.fingerprint(key));
        table.update::<Count, _>(fingerprint, now_ns, |word| {
            let (new, decision) = step(word, &window, now_ns, n, operation);
            if new == word {
                Verdict::Keep(decision)
            } else {
                Verdict::Set(new, decision)
            }
        })
    }
}

/// What an operation makes of a key's word.
fn step(word: u64, window: &Window, now_ns: u64, n: u32, operation: Operation) -> (u64, Decision) {
    let count = Count::read(word, window);
    let outcome = match operation {
        Operation::Reset | Operation::Refund(_) => Outcome::Allowed,
        Operation::Check | Operation::Peek if count.fits(n, window) => Outcome::Allowed,
        _ if n > window.limit() => Outcome::InsufficientCapacity,
        _ => Outcome::Denied,
    };
    let is_allowed = outcome == Outcome::Allowed;
    let (new_count, new_word) = match operation {
        Operation::Check if is_allowed && n > 0 => written(count.plus(n), window),
        // A count that the clock stepped back behind is dated anew, or it would
        // last until the clock has caught up.
        Operation::Check if window.is_before(word) => written(count, window),
        Operation::Check | Operation::Peek => (count, word),
        Operation::Reset => (Count::NONE, 0),
        // Only while the window lasts in which they were counted.
        Operation::Refund(Some(until)) if until.ahead_ns(now_ns) <= 0 => (count, word),
        Operation::Refund(_) if word == 0 => (count, word),
        Operation::Refund(_) => written(count.minus(n), window),
    };
    let is_charge = operation == Operation::Check || !is_allowed;
    let cost = if is_charge { n } else { 0 };
    let decision = decide(&new_count, window, cost, outcome);
    let window_end = Tat::of_ns(now_ns.wrapping_add(window.left_ns()));
    (new_word, decision.until(window_end))
}

fn written(count: Count, window: &Window) -> (Count, u64) {
    (count, count.write(window))
}

fn decide(count: &Count, window: &Window, cost: u32, outcome: Outcome) -> Decision {
    let figures = Figures {
        limit: window.limit(),
        remaining: count.remaining(window),
        window: window.length(),
        reset_after: count.reset_after(window),
        retry_after: match outcome {
            Outcome::Denied => count.retry_after(cost, window),
            _ => std::time::Duration::ZERO,
        },
    };
    Decision::from_figures(figures, cost, outcome)
}

impl Default for SlidingWindowBackend {
    fn default() -> Self {
        Self::new()
    }
}

impl<C> Clone for SlidingWindowBackend<C> {
    fn clone(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
}

impl<C> fmt::Debug for SlidingWindowBackend<C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SlidingWindowBackend")
            .field("keys_max", &self.0.keys_max)
            .field("evicted_live", &self.0.table.evicted_live())
            .finish_non_exhaustive()
    }
}
