//! One budget, no key.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::clock::{Clock, SystemClock};
use crate::decision::{Decision, Outcome};
use crate::gcra::{self, Tat};
use crate::limiter::{InsufficientCapacity, Jitter};
use crate::quota::Quota;

/// One budget for everything that passes by, in one atomic word of this process.
///
/// Clones share the budget. (To share one between machines, check a constant
/// key of a [`RateLimiter`](crate::RateLimiter) over Redis.)
///
/// ```
/// use throttle_kit::{DirectRateLimiter, Quota};
///
/// let limiter = DirectRateLimiter::new(Quota::per_minute(2));
/// assert!(limiter.check_now().is_allowed());
/// assert!(limiter.check_now().is_allowed());
/// assert!(!limiter.check_now().is_allowed());
/// ```
#[derive(Debug)]
pub struct DirectRateLimiter<C = SystemClock> {
    quota: Quota,
    shared: Arc<State<C>>,
}

#[derive(Debug)]
struct State<C> {
    tat: AtomicU64,
    clock: C,
}

impl DirectRateLimiter {
    /// Limits what passes by to `quota`.
    #[must_use]
    pub fn new(quota: Quota) -> Self {
        Self::with_clock(quota, SystemClock::new())
    }
}

impl<C: Clock> DirectRateLimiter<C> {
    /// With a clock of your own.
    #[must_use]
    pub fn with_clock(quota: Quota, clock: C) -> Self {
        Self {
            quota,
            shared: Arc::new(State {
                tat: AtomicU64::new(Tat::NEVER.to_bits()),
                clock,
            }),
        }
    }

    /// The quota.
    #[must_use]
    pub const fn quota(&self) -> &Quota {
        &self.quota
    }

    /// Takes one cell, if there is one.
    #[inline]
    pub fn check_now(&self) -> Decision {
        self.check_n_now(1)
    }

    /// Takes `n` cells if they are all there, else none.
    #[inline]
    pub fn check_n_now(&self, n: u32) -> Decision {
        let quota = &self.quota;
        self.update(|debt| match gcra::charge(debt, quota, n) {
            Some(new) => (new, Decision::allowed(quota, new, n)),
            None => (debt, Decision::refused(quota, debt, n)),
        })
    }

    /// What a check of one cell would answer; takes nothing.
    pub fn peek_now(&self) -> Decision {
        let tat = Tat::from_bits(self.shared.tat.load(Ordering::Relaxed));
        let debt = tat.debt(self.shared.clock.now_ns(), &self.quota);
        gcra::peek(debt, &self.quota, 1)
    }

    /// Makes the budget whole.
    pub fn reset_now(&self) -> Decision {
        self.update(|_| (0, Decision::allowed(&self.quota, 0, 0)))
    }

    /// Gives back what `decision` took: for work that was not done after all.
    /// At most what is still owed is given back, and nothing for a refusal.
    pub fn refund_now(&self, decision: Decision) -> Decision {
        let n = decision.charged();
        self.update(|debt| {
            let left = gcra::refund(debt, &self.quota, n);
            (left, Decision::allowed(&self.quota, left, 0))
        })
    }

    /// Waits until `n` cells are there together and takes them.
    ///
    /// Needs a tokio runtime with its timer on. There is no queue: see
    /// [`RateLimiter::until_ready`](crate::RateLimiter::until_ready).
    ///
    /// # Errors
    ///
    /// If `n` is more than the burst, or the quota denies all.
    pub async fn until_n_ready(
        &self,
        n: u32,
        jitter: Jitter,
    ) -> Result<Decision, InsufficientCapacity> {
        loop {
            let decision = self.check_n_now(n);
            let wait = match decision.outcome() {
                Outcome::Allowed => return Ok(decision),
                Outcome::Denied => decision.retry_after().unwrap_or_default(),
                Outcome::InsufficientCapacity => {
                    return Err(InsufficientCapacity {
                        asked: n,
                        burst: self.quota.burst(),
                    });
                }
            };
            tokio::time::sleep(wait.saturating_add(jitter.draw())).await;
        }
    }

    /// Waits until one cell is there and takes it: see
    /// [`until_n_ready`](Self::until_n_ready).
    ///
    /// # Errors
    ///
    /// If the quota denies all.
    pub async fn until_ready(&self, jitter: Jitter) -> Result<Decision, InsufficientCapacity> {
        self.until_n_ready(1, jitter).await
    }

    /// Replaces the debt by what `decide` makes of it.
    #[inline]
    fn update(&self, decide: impl Fn(u64) -> (u64, Decision)) -> Decision {
        let State { tat, clock } = &*self.shared;
        let now_ns = clock.now_ns();
        let mut word = tat.load(Ordering::Relaxed);
        loop {
            let debt = Tat::from_bits(word).debt(now_ns, &self.quota);
            let (new, decision) = decide(debt);
            if new == debt {
                return decision;
            }
            let next = Tat::at(now_ns, new, &self.quota).to_bits();
            // The word is all there is: it guards no other memory.
            match tat.compare_exchange_weak(word, next, Ordering::Relaxed, Ordering::Relaxed) {
                Ok(_) => return decision,
                Err(current) => word = current,
            }
        }
    }
}

impl<C> Clone for DirectRateLimiter<C> {
    fn clone(&self) -> Self {
        Self {
            quota: self.quota,
            shared: Arc::clone(&self.shared),
        }
    }
}
