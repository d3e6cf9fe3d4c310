//! What to answer when a store cannot be asked.

use std::fmt;
use std::sync::Mutex;
use std::time::{Duration, Instant};

use crate::backend::{Demand, Joint, Operation, SyncBackend};
use crate::decision::{Decision, Figures, JointDecision, Outcome};
use crate::key::KeyRef;
use crate::quota::Quota;
use crate::store::InMemoryBackend;

/// What a limiter answers while its store cannot be asked. Each such answer is
/// marked [`Decision::is_degraded`].
///
/// Whatever the policy, what can never be admitted (a quota that denies all,
/// more cells than the burst) is refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum WhenDown {
    /// Admit everything: the service matters more than its limits.
    Open,
    /// Refuse everything: the limits matter more than the service. The refusal
    /// says to come back after a second.
    Closed,
    /// Limit by a table in this process, so that `k` processes admit at most
    /// `k` quotas together. The table starts out empty each time it is first
    /// used after a while, and its charges are not carried over to the store.
    #[default]
    Local,
}

/// How long a refusal by [`WhenDown::Closed`] tells the caller to wait.
const CLOSED_RETRY: Duration = Duration::from_secs(1);

/// At most one line in this time tells that the store is down.
const LOG_EVERY: Duration = Duration::from_secs(10);

/// Answers in the place of a store.
#[derive(Debug)]
pub(crate) struct Fallback {
    store: &'static str,
    policy: Policy,
    log: Mutex<Log>,
}

#[derive(Debug)]
enum Policy {
    Open,
    Closed,
    Local(InMemoryBackend),
}

#[derive(Debug, Default)]
struct Log {
    down: bool,
    last: Option<Instant>,
    silenced: u64,
    noted: Option<Instant>,
}

impl Fallback {
    /// `store` is the store's name in the log.
    pub(crate) fn new(store: &'static str, when_down: WhenDown) -> Self {
        Self {
            store,
            policy: match when_down {
                WhenDown::Open => Policy::Open,
                WhenDown::Closed => Policy::Closed,
                WhenDown::Local => Policy::Local(InMemoryBackend::new()),
            },
            log: Mutex::default(),
        }
    }

    pub(crate) fn apply(
        &self,
        key: KeyRef<'_>,
        quota: &Quota,
        n: u32,
        operation: Operation,
    ) -> Decision {
        match &self.policy {
            Policy::Local(table) => table.apply_now(key, quota, n, operation),
            _ => self.blanket(quota, n, operation),
        }
        .into_degraded()
    }

    pub(crate) fn apply_all(&self, demands: &[Demand<'_>]) -> JointDecision {
        let mut joint = match &self.policy {
            Policy::Local(table) => table.apply_all_now(demands),
            _ => {
                let mut joint = Joint::default();
                for (index, demand) in demands.iter().enumerate() {
                    let (quota, n) = (demand.quota(), demand.n());
                    joint.add(index, self.blanket(quota, n, joint.operation()));
                }
                joint.into_decision()
            }
        };
        joint.decision = joint.decision.into_degraded();
        joint
    }

    /// The answer of a policy that looks at no key.
    fn blanket(&self, quota: &Quota, n: u32, operation: Operation) -> Decision {
        match operation {
            Operation::Check | Operation::Peek if !quota.fits(n) => Decision::refused(quota, 0, n),
            Operation::Check | Operation::Peek if matches!(self.policy, Policy::Closed) => {
                let figures = Figures {
                    limit: quota.burst(),
                    remaining: 0,
                    reset_after: CLOSED_RETRY,
                    retry_after: CLOSED_RETRY,
                };
                Decision::from_figures(figures, n, Outcome::Denied)
            }
            Operation::Check => Decision::allowed(quota, 0, n),
            Operation::Peek | Operation::Reset | Operation::Refund => {
                Decision::allowed(quota, 0, 0)
            }
        }
    }

    /// Logs that the store could not be asked, unless that was said just now.
    pub(crate) fn log_down(&self, error: &dyn fmt::Display) {
        let mut log = self.lock();
        log.down = true;
        if log.last.is_some_and(|last| last.elapsed() < LOG_EVERY) {
            log.silenced += 1;
            return;
        }
        log.last = Some(Instant::now());
        let silenced = std::mem::take(&mut log.silenced);
        drop(log);
        tracing::warn!(
            target: "throttle_kit",
            store = self.store,
            %error,
            policy = ?self.when_down(),
            silenced,
            "the store of rate limits cannot be asked: the policy answers"
        );
    }

    /// Logs, at most now and then, that a caller asks for what the store does
    /// less well than could be.
    pub(crate) fn log_note(&self, error: &dyn fmt::Display) {
        let mut log = self.lock();
        if log.noted.is_none_or(|last| last.elapsed() >= LOG_EVERY) {
            log.noted = Some(Instant::now());
            drop(log);
            tracing::warn!(target: "throttle_kit", store = self.store, %error, "checked one by one");
        }
    }

    /// Logs that the store answers again, if it was said that it did not.
    pub(crate) fn log_up(&self) {
        let mut log = self.lock();
        if std::mem::take(&mut log.down) {
            // A store that goes up and down all the time is told of once.
            let quiet = log.silenced > 0 && log.last.is_some_and(|l| l.elapsed() < LOG_EVERY / 10);
            drop(log);
            if !quiet {
                tracing::info!(
                    target: "throttle_kit",
                    store = self.store,
                    "the store of rate limits answers again"
                );
            }
        }
    }

    const fn when_down(&self) -> WhenDown {
        match self.policy {
            Policy::Open => WhenDown::Open,
            Policy::Closed => WhenDown::Closed,
            Policy::Local(_) => WhenDown::Local,
        }
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Log> {
        self.log
            .lock()
            .unwrap_or_else(std::sync::PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::key::Kind;

    const OPERATIONS: [Operation; 4] = [
        Operation::Check,
        Operation::Peek,
        Operation::Reset,
        Operation::Refund,
    ];

    #[test]
    fn every_answer_is_marked() {
        for policy in [WhenDown::Open, WhenDown::Closed, WhenDown::Local] {
            let fallback = Fallback::new("test", policy);
            for operation in OPERATIONS {
                let key = KeyRef::new(Kind::Bytes, b"k");
                let decision = fallback.apply(key, &Quota::per_second(5), 1, operation);
                assert!(decision.is_degraded(), "{policy:?} {operation:?}");
            }
            let joint = fallback.apply_all(&[Demand::new("k", Quota::per_second(5))]);
            assert!(joint.decision.is_degraded());
        }
    }

    #[test]
    fn the_impossible_stays_so() {
        for policy in [WhenDown::Open, WhenDown::Closed, WhenDown::Local] {
            let fallback = Fallback::new("test", policy);
            for (quota, n) in [(Quota::per_second(5), 6), (Quota::DENY_ALL, 1)] {
                let key = KeyRef::new(Kind::Bytes, b"k");
                let decision = fallback.apply(key, &quota, n, Operation::Check);
                assert_eq!(decision.outcome(), Outcome::InsufficientCapacity);
            }
        }
    }

    #[test]
    fn policies_differ() {
        let admitted = |policy| {
            let fallback = Fallback::new("test", policy);
            let quota = Quota::per_hour(5);
            (0..20)
                .filter(|_| {
                    let key = KeyRef::new(Kind::Bytes, b"k");
                    let decision = fallback.apply(key, &quota, 1, Operation::Check);
                    if policy == WhenDown::Closed {
                        assert_eq!(decision.retry_after(), Some(CLOSED_RETRY));
                    }
                    decision.is_allowed()
                })
                .count()
        };
        assert_eq!(admitted(WhenDown::Open), 20);
        assert_eq!(admitted(WhenDown::Closed), 0);
        assert_eq!(admitted(WhenDown::Local), 5);
    }
}
