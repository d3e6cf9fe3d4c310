//! One budget, no key.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::backend::Operation;
use crate::clock::{Clock, SystemClock};
use crate::decision::{Decision, Outcome};
use crate::gcra::{self, Answer, Tat};
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
        let State { tat, clock } = &*self.shared;
        let (quota, now_ns) = (&self.quota, clock.now_ns());
        let (until, answer) = match self.charge(tat.load(Ordering::Relaxed), now_ns, n) {
            Some(word) => Answer::charged(word, now_ns, quota),
            None => self.apply(now_ns, n, Operation::Check),
        };
        answer.into_decision(until, quota, n, Operation::Check)
    }

    /// One attempt at the common case: the cells fit and nobody interferes.
    #[inline]
    fn charge(&self, word: u64, now_ns: u64, n: u32) -> Option<u64> {
        if n.wrapping_sub(1) >= self.quota.burst() {
            return None;
        }
        let new = gcra::charge_word(word, now_ns, &self.quota, n)?;
        let tat = &self.shared.tat;
        let swap = tat.compare_exchange(word, new, Ordering::Relaxed, Ordering::Relaxed);
        swap.is_ok().then_some(new)
    }

    /// What a check of one cell would answer; takes nothing.
    pub fn peek_now(&self) -> Decision {
        self.decide(1, Operation::Peek)
    }

    /// Makes the budget whole.
    pub fn reset_now(&self) -> Decision {
        self.decide(0, Operation::Reset)
    }

    /// Gives back what `decision` took: for work that was not done after all.
    /// Of its cells those are given back whose time has not come, and nothing
    /// for a refusal.
    #[expect(
        clippy::needless_pass_by_value,
        reason = "a decision can be given back once"
    )]
    pub fn refund_now(&self, decision: Decision) -> Decision {
        self.decide(decision.charged(), decision.refund())
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

    fn decide(&self, n: u32, operation: Operation) -> Decision {
        let now_ns = self.shared.clock.now_ns();
        let (until, answer) = self.apply(now_ns, n, operation);
        answer.into_decision(until, &self.quota, n, operation)
    }

    /// Any operation on any state.
    #[inline(never)]
    fn apply(&self, now_ns: u64, n: u32, operation: Operation) -> (Tat, Answer) {
        // The word is all there is: it guards no other memory.
        let tat = &self.shared.tat;
        let mut word = tat.load(Ordering::Relaxed);
        loop {
            let before = Tat::from_bits(word);
            let (after, answer) = gcra::advance(before, now_ns, &self.quota, n, operation);
            let new = after.to_bits();
            if new == word {
                return (after, answer);
            }
            match tat.compare_exchange_weak(word, new, Ordering::Relaxed, Ordering::Relaxed) {
                Ok(_) => return (after, answer),
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
