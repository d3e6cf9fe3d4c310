//! A quota for every key, and others for some.

use std::borrow::{Borrow, Cow};
use std::future::Future;
use std::sync::Arc;

use super::overrides::Overrides;
use super::shared::{Core, limiter_methods};
use crate::backend::{Demand, Operation, RateLimitBackend, SyncBackend};
#[cfg(doc)]
use crate::decision::Outcome;
use crate::decision::{Decision, JointDecision};
use crate::key::{Key, Kind, Namespace};
use crate::limiter::{InsufficientCapacity, Jitter};
use crate::quota::Quota;

/// A default quota, and overrides for single keys that may change at any time.
///
/// Overrides are exact (the keys are kept as they are) and pinned (they stay
/// until removed). A changed quota applies from the next check on: what the
/// key owes is kept, but counts for no more than the new burst.
///
/// Clones share the budgets and the overrides.
///
/// ```
/// # #[cfg(feature = "in-memory")] {
/// use throttle_kit::{InMemoryBackend, KeyedRateLimiter, Quota};
///
/// let limiter = KeyedRateLimiter::new(Quota::per_second(10), InMemoryBackend::new());
/// limiter.with_quota_for_key("big customer", Quota::per_second(1000));
/// assert_eq!(limiter.check_now("big customer").limit(), 1000);
/// assert_eq!(limiter.check_now("anyone else").limit(), 10);
/// # }
/// ```
#[derive(Debug, Clone)]
pub struct KeyedRateLimiter<B> {
    default: Quota,
    overrides: Arc<Overrides>,
    pub(crate) core: Core<B>,
}

impl<B> KeyedRateLimiter<B> {
    /// Limits each key to `default`, until told otherwise.
    #[must_use]
    pub fn new(default: Quota, backend: B) -> Self {
        Self {
            default,
            overrides: Arc::new(Overrides::new()),
            core: Core::new(backend),
        }
    }

    /// Gives `key` a quota of its own, also while others are being checked.
    /// Gives back the override it had.
    pub fn with_quota_for_key<K: Key + ?Sized>(&self, key: &K, quota: Quota) -> Option<Quota> {
        self.overrides.set(K::KIND, key.bytes().as_ref(), quota)
    }

    /// Returns `key` to the default quota. Gives back the override it had.
    pub fn remove_quota_for_key<K: Key + ?Sized>(&self, key: &K) -> Option<Quota> {
        self.overrides.remove(K::KIND, key.bytes().as_ref())
    }

    /// The quota that applies to `key` now.
    #[must_use]
    pub fn quota_for_key<K: Key + ?Sized>(&self, key: &K) -> Quota {
        self.quota_of(K::KIND, key.bytes().as_ref())
    }

    /// How many keys have a quota of their own.
    #[must_use]
    pub fn overrides(&self) -> usize {
        self.overrides.len()
    }

    #[inline]
    pub(crate) fn quota_of(&self, kind: Kind, bytes: &[u8]) -> Quota {
        self.overrides.quota(kind, bytes).unwrap_or(self.default)
    }
}

limiter_methods!(KeyedRateLimiter);
