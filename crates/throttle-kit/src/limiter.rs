//! One quota for every key.

use std::borrow::Cow;

use crate::backend::{Demand, Operation, RateLimitBackend, SyncBackend};
use crate::decision::{Decision, JointDecision};
use crate::key::{Key, KeyRef, Namespace};
use crate::quota::Quota;

/// One quota, a budget for each key.
///
/// Clones share the budgets, and so do limiters over clones of one backend,
/// unless they are given a [namespace](Self::with_namespace).
#[derive(Debug, Clone)]
pub struct RateLimiter<B> {
    quota: Quota,
    namespace: Namespace,
    backend: B,
}

impl<B: RateLimitBackend> RateLimiter<B> {
    /// Limits each key to `quota`, with its state in `backend`.
    #[must_use]
    pub const fn new(quota: Quota, backend: B) -> Self {
        Self {
            quota,
            namespace: Namespace::DEFAULT,
            backend,
        }
    }

    /// Keeps this limiter's keys apart from those of others that share its backend.
    #[must_use]
    pub fn with_namespace(mut self, name: impl Into<Cow<'static, str>>) -> Self {
        self.namespace = Namespace::new(name);
        self
    }

    /// The quota of every key.
    #[must_use]
    pub const fn quota(&self) -> &Quota {
        &self.quota
    }

    /// Takes one cell of `key`, if there is one.
    pub async fn check<K: Key + ?Sized>(&self, key: &K) -> Decision {
        self.check_n(key, 1).await
    }

    /// Takes `n` cells of `key` if they are all there. More than the burst is
    /// [`InsufficientCapacity`](crate::Outcome::InsufficientCapacity).
    pub async fn check_n<K: Key + ?Sized>(&self, key: &K, n: u32) -> Decision {
        self.apply(key, n, Operation::Check).await
    }

    async fn apply<K: Key + ?Sized>(&self, key: &K, n: u32, operation: Operation) -> Decision {
        let bytes = key.bytes();
        let key = self.key::<K>(bytes.as_ref());
        self.backend.apply(key, &self.quota, n, operation).await
    }

    /// Several limits in one decision: all demands are charged, or none.
    pub async fn check_all(&self, demands: &[Demand<'_>]) -> JointDecision {
        self.backend.apply_all(demands).await
    }

    const fn key<'a, K: Key + ?Sized>(&'a self, bytes: &'a [u8]) -> KeyRef<'a> {
        KeyRef {
            namespace: &self.namespace,
            kind: K::KIND,
            bytes,
        }
    }
}

impl<B: SyncBackend> RateLimiter<B> {
    /// [`check`](Self::check) without a runtime.
    #[inline]
    pub fn check_now<K: Key + ?Sized>(&self, key: &K) -> Decision {
        let bytes = key.bytes();
        self.backend.apply_now(
            self.key::<K>(bytes.as_ref()),
            &self.quota,
            1,
            Operation::Check,
        )
    }
}
