//! What is taken from.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

use throttle_kit::{
    Decision, DirectRateLimiter, KeyRef, Kind, Namespace, Operation, Quota, RateLimitBackend,
};

/// A decision that has to be waited for.
pub(super) type Deciding<'a> = Pin<Box<dyn Future<Output = Decision> + Send + 'a>>;

/// A store whose type was forgotten.
pub(super) trait Store: Send + Sync {
    fn at_once(&self, key: KeyRef<'_>, quota: &Quota, n: u32) -> Option<Decision>;
    fn decide<'a>(&'a self, key: KeyRef<'a>, quota: &'a Quota, n: u32) -> Deciding<'a>;
}

impl<B: RateLimitBackend> Store for B {
    fn at_once(&self, key: KeyRef<'_>, quota: &Quota, n: u32) -> Option<Decision> {
        self.apply_at_once(key, quota, n, Operation::Check)
    }

    fn decide<'a>(&'a self, key: KeyRef<'a>, quota: &'a Quota, n: u32) -> Deciding<'a> {
        Box::pin(self.apply(key, quota, n, Operation::Check))
    }
}

/// One quota: a budget of its own for all, or one for each key in a store.
#[derive(Clone)]
pub(super) struct Budget {
    quota: Quota,
    namespace: Namespace,
    all: DirectRateLimiter,
}

impl Budget {
    pub(super) fn new(quota: Quota, namespace: String) -> Self {
        Self {
            quota,
            namespace: Namespace::new(namespace),
            all: DirectRateLimiter::new(quota),
        }
    }

    pub(super) fn quota(&self) -> Quota {
        self.quota
    }

    /// Takes `n`, if that can be known at once; without a store from the one
    /// budget.
    #[inline]
    pub(super) fn at_once(
        &self,
        store: Option<&Arc<dyn Store>>,
        key: &[u8],
        n: u32,
    ) -> Option<Decision> {
        match store {
            None => Some(self.all.check_n_now(n)),
            Some(store) => store.at_once(self.key(key), &self.quota, n),
        }
    }

    /// Takes `n` from a store.
    pub(super) fn decide<'a>(
        &'a self,
        store: &'a dyn Store,
        key: &'a [u8],
        n: u32,
    ) -> Deciding<'a> {
        store.decide(self.key(key), &self.quota, n)
    }

    fn key<'a>(&'a self, bytes: &'a [u8]) -> KeyRef<'a> {
        KeyRef {
            namespace: &self.namespace,
            kind: Kind::Tuple,
            bytes,
        }
    }
}
