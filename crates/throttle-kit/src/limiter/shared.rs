//! One quota for every key, and what all limiters over a backend have in common.

use std::borrow::{Borrow, Cow};
use std::fmt;
use std::future::Future;

use crate::backend::{Demand, Operation, RateLimitBackend, SyncBackend};
use crate::decision::{Decision, JointDecision, Outcome};
use crate::key::{Key, KeyRef, Kind, Namespace};
use crate::limiter::Jitter;
use crate::observe::Observer;
use crate::quota::Quota;

/// The part of a limiter that does not depend on where its quotas come from.
#[derive(Debug, Clone)]
pub(crate) struct Core<B> {
    pub(crate) backend: B,
    pub(crate) namespace: Namespace,
    pub(crate) observer: Observer,
}

impl<B> Core<B> {
    pub(crate) const fn new(backend: B) -> Self {
        Self {
            backend,
            namespace: Namespace::DEFAULT,
            observer: Observer::new(),
        }
    }

    #[inline]
    pub(crate) const fn key<'a>(&'a self, kind: Kind, bytes: &'a [u8]) -> KeyRef<'a> {
        KeyRef {
            namespace: &self.namespace,
            kind,
            bytes,
        }
    }
}

impl<B: RateLimitBackend> Core<B> {
    pub(crate) async fn apply(
        &self,
        key: KeyRef<'_>,
        quota: &Quota,
        n: u32,
        operation: Operation,
    ) -> Decision {
        let decision = self.backend.apply(key, quota, n, operation).await;
        self.observer.observe(key.namespace, operation, decision)
    }

    /// [`apply`](Self::apply), if the backend's answer needs no waiting.
    #[inline(always)]
    pub(crate) fn apply_at_once(
        &self,
        key: KeyRef<'_>,
        quota: &Quota,
        n: u32,
        operation: Operation,
    ) -> Option<Decision> {
        let decision = self.backend.apply_at_once(key, quota, n, operation)?;
        Some(self.observer.observe(key.namespace, operation, decision))
    }

    pub(crate) async fn apply_all(&self, demands: &[Demand<'_>]) -> JointDecision {
        let JointDecision { binding, decision } = self.backend.apply_all(demands).await;
        let observer = &self.observer;
        let decision = observer.observe(&self.namespace, Operation::Check, decision);
        JointDecision { binding, decision }
    }

    /// Takes `n` cells, waiting until they are there.
    pub(crate) async fn until_ready(
        &self,
        key: KeyRef<'_>,
        quota: &Quota,
        n: u32,
        jitter: Jitter,
    ) -> Result<Decision, InsufficientCapacity> {
        loop {
            let decision = self.apply(key, quota, n, Operation::Check).await;
            let wait = match decision.outcome() {
                Outcome::Allowed => return Ok(decision),
                Outcome::Denied => decision.retry_after().unwrap_or_default(),
                Outcome::InsufficientCapacity => {
                    return Err(InsufficientCapacity {
                        asked: n,
                        burst: decision.limit(),
                    });
                }
            };
            tokio::time::sleep(wait.saturating_add(jitter.draw())).await;
        }
    }
}

impl<B: SyncBackend> Core<B> {
    #[inline(always)]
    pub(crate) fn apply_now(
        &self,
        key: KeyRef<'_>,
        quota: &Quota,
        n: u32,
        operation: Operation,
    ) -> Decision {
        let decision = self.backend.apply_now(key, quota, n, operation);
        self.observer.observe(key.namespace, operation, decision)
    }

    pub(crate) fn apply_all_now(&self, demands: &[Demand<'_>]) -> JointDecision {
        let JointDecision { binding, decision } = self.backend.apply_all_now(demands);
        let observer = &self.observer;
        let decision = observer.observe(&self.namespace, Operation::Check, decision);
        JointDecision { binding, decision }
    }
}

/// More cells were asked for than a burst holds: waiting does not help.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct InsufficientCapacity {
    /// Cells asked for.
    pub asked: u32,
    /// Cells that may be taken at once; 0 if the quota denies all.
    pub burst: u32,
}

impl fmt::Display for InsufficientCapacity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { asked, burst } = self;
        write!(
            f,
            "{asked} cells were asked for, but no more than {burst} are ever there at once"
        )
    }
}

impl std::error::Error for InsufficientCapacity {}

/// The methods of a limiter with keys, given `fn quota_of(&self, Kind, &[u8])`,
/// which gives its quota or a reference to it.
macro_rules! limiter_methods {
    ($limiter:ident) => {
        impl<B> $limiter<B> {
            /// Keeps this limiter's keys apart from those of others that share
            /// its backend. The name is also the `limiter` label of its metrics.
            #[must_use]
            pub fn with_namespace(mut self, name: impl Into<Cow<'static, str>>) -> Self {
                self.core.namespace = Namespace::new(name);
                self
            }

            /// Decides and reports, but never denies: for trying a quota out.
            ///
            /// What would have been refused is allowed, counted with the
            /// outcome `shadow_denied`, logged, and marked
            /// [`Decision::is_shadowed`].
            #[must_use]
            pub const fn in_shadow_mode(mut self) -> Self {
                self.core.observer.shadow();
                self
            }

            /// Its backend.
            #[must_use]
            pub const fn backend(&self) -> &B {
                &self.core.backend
            }

            /// One cell of `key` as a part of [`check_all`](Self::check_all),
            /// under this limiter's quota and namespace.
            #[must_use]
            pub fn demand<K: Key + ?Sized>(&self, key: &K) -> Demand<'_> {
                let quota = self.quota_of(K::KIND, key.bytes().as_ref());
                let quota: &Quota = quota.borrow();
                Demand::new(key, *quota).in_namespace(&self.core.namespace)
            }
        }

        impl<B: RateLimitBackend> $limiter<B> {
            /// Takes one cell of `key`, if there is one.
            pub fn check<K: Key + ?Sized>(&self, key: &K) -> impl Future<Output = Decision> {
                self.apply(key, 1, Operation::Check)
            }

            /// Takes `n` cells of `key` if they are all there, else none.
            ///
            /// More than the burst is [`Outcome::InsufficientCapacity`], not
            /// something to wait for.
            pub fn check_n<K: Key + ?Sized>(
                &self,
                key: &K,
                n: u32,
            ) -> impl Future<Output = Decision> {
                self.apply(key, n, Operation::Check)
            }

            /// Takes the cells of all `demands`, or of none.
            ///
            /// They may come from this limiter's [`demand`](Self::demand) and
            /// from others over the same backend. Give equal demands in an
            /// equal order: they are reserved one after the other, and two
            /// that reserve against each other may both be refused.
            pub async fn check_all(&self, demands: &[Demand<'_>]) -> JointDecision {
                self.core.apply_all(demands).await
            }

            /// What a check of one cell would answer; takes nothing.
            pub fn peek<K: Key + ?Sized>(&self, key: &K) -> impl Future<Output = Decision> {
                self.apply(key, 1, Operation::Peek)
            }

            /// Makes the budget of `key` whole.
            pub fn reset<K: Key + ?Sized>(&self, key: &K) -> impl Future<Output = Decision> {
                self.apply(key, 0, Operation::Reset)
            }

            /// Gives back what `decision`, an answer for the same `key`, took:
            /// for work that was not done after all. Time gives cells back
            /// too: of the decision's cells those are given back whose time
            /// has not come, at most what the key still owes; nothing for a
            /// refusal, or for a [degraded](Decision::is_degraded) answer.
            pub fn refund<K: Key + ?Sized>(
                &self,
                key: &K,
                decision: Decision,
            ) -> impl Future<Output = Decision> {
                self.apply(key, decision.charged(), decision.refund())
            }

            /// Waits until one cell of `key` is there and takes it.
            ///
            /// Needs a tokio runtime with its timer on. There is no queue: it
            /// sleeps as long as the refusal says, and `jitter`, and asks
            /// again. Whoever asks first after a cell came back has it, so a
            /// waiter can be overtaken by newcomers for as long as they take
            /// all there is. Dropping the future takes nothing.
            ///
            /// # Errors
            ///
            /// If the quota denies all.
            pub async fn until_ready<K: Key + ?Sized>(
                &self,
                key: &K,
                jitter: Jitter,
            ) -> Result<Decision, InsufficientCapacity> {
                self.until_n_ready(key, 1, jitter).await
            }

            /// Waits until `n` cells of `key` are there together and takes them:
            /// see [`until_ready`](Self::until_ready). Callers that ask for few
            /// can starve one that asks for many.
            ///
            /// # Errors
            ///
            /// If `n` is more than the burst.
            pub async fn until_n_ready<K: Key + ?Sized>(
                &self,
                key: &K,
                n: u32,
                jitter: Jitter,
            ) -> Result<Decision, InsufficientCapacity> {
                let bytes = key.bytes();
                let bytes = bytes.as_ref();
                let quota = self.quota_of(K::KIND, bytes);
                let key = self.core.key(K::KIND, bytes);
                self.core.until_ready(key, quota.borrow(), n, jitter).await
            }

            // The future of every operation: one, so that it is as small as a
            // backend that need not be waited for lets it be.
            #[inline]
            async fn apply<K: Key + ?Sized>(&self, key: &K, n: u32, op: Operation) -> Decision {
                let bytes = key.bytes();
                let bytes = bytes.as_ref();
                let quota = self.quota_of(K::KIND, bytes);
                let key = self.core.key(K::KIND, bytes);
                match self.core.apply_at_once(key, quota.borrow(), n, op) {
                    Some(decision) => decision,
                    None => self.core.apply(key, quota.borrow(), n, op).await,
                }
            }
        }

        /// Without a runtime, for backends in this process.
        impl<B: SyncBackend> $limiter<B> {
            /// [`check`](Self::check) without a runtime.
            #[inline]
            pub fn check_now<K: Key + ?Sized>(&self, key: &K) -> Decision {
                self.apply_now(key, 1, Operation::Check)
            }

            /// [`check_n`](Self::check_n) without a runtime.
            #[inline]
            pub fn check_n_now<K: Key + ?Sized>(&self, key: &K, n: u32) -> Decision {
                self.apply_now(key, n, Operation::Check)
            }

            /// [`check_all`](Self::check_all) without a runtime.
            pub fn check_all_now(&self, demands: &[Demand<'_>]) -> JointDecision {
                self.core.apply_all_now(demands)
            }

            /// [`peek`](Self::peek) without a runtime.
            pub fn peek_now<K: Key + ?Sized>(&self, key: &K) -> Decision {
                self.apply_now(key, 1, Operation::Peek)
            }

            /// [`reset`](Self::reset) without a runtime.
            pub fn reset_now<K: Key + ?Sized>(&self, key: &K) -> Decision {
                self.apply_now(key, 0, Operation::Reset)
            }

            /// [`refund`](Self::refund) without a runtime.
            pub fn refund_now<K: Key + ?Sized>(&self, key: &K, decision: Decision) -> Decision {
                self.apply_now(key, decision.charged(), decision.refund())
            }

            #[inline(always)]
            fn apply_now<K: Key + ?Sized>(&self, key: &K, n: u32, op: Operation) -> Decision {
                let bytes = key.bytes();
                let bytes = bytes.as_ref();
                let quota = self.quota_of(K::KIND, bytes);
                self.core
                    .apply_now(self.core.key(K::KIND, bytes), quota.borrow(), n, op)
            }
        }
    };
}

pub(crate) use limiter_methods;

/// One quota, a budget for each key.
///
/// Clones share the budgets, and so do limiters over clones of one backend,
/// unless they are given a [namespace](Self::with_namespace).
///
/// ```
/// # #[cfg(feature = "in-memory")] {
/// use throttle_kit::{InMemoryBackend, Quota, RateLimiter};
///
/// let limiter = RateLimiter::new(Quota::per_second(2), InMemoryBackend::new());
/// assert_eq!(limiter.check_now("ann").remaining(), 1);
/// assert_eq!(limiter.check_now("ann").remaining(), 0);
/// let refused = limiter.check_now("ann");
/// assert!(!refused.is_allowed());
/// assert!(refused.retry_after().is_some());
/// assert!(limiter.check_now("bob").is_allowed());
/// # }
/// ```
#[derive(Debug, Clone)]
pub struct RateLimiter<B> {
    quota: Quota,
    pub(crate) core: Core<B>,
}

impl<B> RateLimiter<B> {
    /// Limits each key to `quota`, with its state in `backend`.
    #[must_use]
    pub const fn new(quota: Quota, backend: B) -> Self {
        Self {
            quota,
            core: Core::new(backend),
        }
    }

    /// The quota of every key.
    #[must_use]
    pub const fn quota(&self) -> &Quota {
        &self.quota
    }

    #[inline]
    const fn quota_of(&self, _: Kind, _: &[u8]) -> &Quota {
        &self.quota
    }
}

limiter_methods!(RateLimiter);
