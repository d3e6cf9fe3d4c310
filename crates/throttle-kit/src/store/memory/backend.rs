//! GCRA over the table.

use std::fmt;
use std::sync::Arc;

use super::shared::{KEYS_MAX_DEFAULT, Shared};
use super::table::{Life, Verdict};
use crate::backend::{Operation, SyncBackend};
use crate::clock::{Clock, SystemClock};
use crate::decision::Decision;
use crate::gcra::{self, Answer, Tat};
use crate::key::KeyRef;
use crate::quota::Quota;

/// GCRA state in this process, for a known number of keys.
///
/// All memory is taken when it is made: 21 bytes for each of `keys_max` keys
/// (1.4 MB by default). Nothing is allocated, swept or grown afterwards, however
/// many keys come by: a key whose budget is whole again is forgotten when its
/// place is needed. With up to `keys_max` keys that still owe something, fewer
/// than one in 50,000 loses its state early (its budget is then whole), also while
/// keys come and go; beyond,
/// those that owe least go first, and [`evicted_live`](Self::evicted_live)
/// counts them. Quotas of very different length compete unfairly for a full
/// table (the shorter debt goes first): give them backends of their own.
///
/// Keys are kept as 64-bit fingerprints: see the guide's part on
/// [keys](crate::guide::keys) for what that means.
///
/// Clones share the state.
pub struct InMemoryBackend<C = SystemClock>(Arc<Shared<C>>);

impl InMemoryBackend {
    /// For up to 65,536 keys that owe something at once.
    #[must_use]
    pub fn new() -> Self {
        Self::with_keys_max(KEYS_MAX_DEFAULT)
    }

    /// For up to `keys_max` keys that owe something at once.
    #[must_use]
    pub fn with_keys_max(keys_max: usize) -> Self {
        Self::with_clock(keys_max, SystemClock::new())
    }
}

impl<C: Clock> InMemoryBackend<C> {
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

    /// Keys that owe something now. Walks the whole table: for tests and
    /// slow dashboards.
    #[must_use]
    pub fn live_keys(&self) -> usize {
        self.0.table.live_keys::<Tat>(self.0.now_ns())
    }

    /// Keys that lost their state while they owed something, because all
    /// three of their buckets were full. Stays near 0 unless `keys_max` is too small.
    #[must_use]
    pub fn evicted_live(&self) -> u64 {
        self.0.table.evicted_live()
    }

    /// Bytes of the table.
    #[must_use]
    pub fn table_bytes(&self) -> usize {
        self.0.table.bytes()
    }

    /// Any operation on a key in any state.
    #[inline(never)]
    fn apply_any(
        &self,
        fingerprint: u64,
        now_ns: u64,
        quota: &Quota,
        n: u32,
        operation: Operation,
    ) -> (Tat, Answer) {
        self.0.table.update::<Tat, _>(fingerprint, now_ns, |word| {
            let tat = Tat::from_bits(word);
            let (new, answer) = gcra::advance(tat, now_ns, quota, n, operation);
            if new == tat || (tat == Tat::NEVER && operation != Operation::Check) {
                Verdict::Keep((new, answer))
            } else {
                Verdict::Set(new.to_bits(), (new, answer))
            }
        })
    }
}

impl<C: Clock> SyncBackend for InMemoryBackend<C> {
    // Inlined into the limiters' generic methods, where `n` and `operation` are
    // constants.
    #[inline(always)]
    fn apply_now(&self, key: KeyRef<'_>, quota: &Quota, n: u32, operation: Operation) -> Decision {
        let now_ns = self.0.now_ns();
        let Shared { hasher, table, .. } = &*self.0;
        let fingerprint = hasher.fingerprint(key);
        let charged = if operation == Operation::Check && n.wrapping_sub(1) < quota.burst() {
            let next = |word| gcra::charge_word(word, now_ns, quota, n);
            table.update_first(fingerprint, next)
        } else {
            None
        };
        let (until, answer) = match charged {
            Some(word) => Answer::charged(word, now_ns, quota),
            None => self.apply_any(fingerprint, now_ns, quota, n, operation),
        };
        answer.into_decision(until, quota, n, operation)
    }
}

impl Life for Tat {
    #[inline]
    fn left_ns(_: u64, word: u64, now_ns: u64) -> i64 {
        Self::from_bits(word).ahead_ns(now_ns)
    }
}

impl Default for InMemoryBackend {
    fn default() -> Self {
        Self::new()
    }
}

impl<C> Clone for InMemoryBackend<C> {
    fn clone(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
}

impl<C> fmt::Debug for InMemoryBackend<C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("InMemoryBackend")
            .field("keys_max", &self.0.keys_max)
            .field("evicted_live", &self.0.table.evicted_live())
            .finish_non_exhaustive()
    }
}
