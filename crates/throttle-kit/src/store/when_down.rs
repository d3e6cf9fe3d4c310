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
    /// `k` quotas together. It knows nothing of what the store had charged
    /// before, and its own charges are not carried over to the store.
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
    /// Whether the last line told of trouble.
    told: bool,
    last: Option<Instant>,
    silenced: u64,
    #[cfg(feature = "redis")]
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
            // What is given back was taken from the store, not from the table.
            Policy::Local(table) if !matches!(operation, Operation::Refund(_)) => {
                table.apply_now(key, quota, n, operation)
            }
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
                    window: quota.window(),
                    reset_after: CLOSED_RETRY,
                    retry_after: CLOSED_RETRY,
                };
                Decision::from_figures(figures, n, Outcome::Denied)
            }
            Operation::Check => Decision::allowed(quota, 0, n),
            Operation::Peek | Operation::Reset | Operation::Refund(_) => {
                Decision::allowed(quota, 0, 0)
            }
        }
    }

    /// Logs that the store could not be asked, unless that was said just now.
    pub(crate) fn log_down(&self, error: &dyn fmt::Display) {
        let mut log = self.lock();
        if log.last.is_some_and(|last| last.elapsed() < LOG_EVERY) {
            log.silenced += 1;
            return;
        }
        log.last = Some(Instant::now());
        log.told = true;
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
    #[cfg(feature = "redis")]
    pub(crate) fn log_note(&self, error: &dyn fmt::Display) {
        let mut log = self.lock();
        if log.noted.is_none_or(|last| last.elapsed() >= LOG_EVERY) {
            log.noted = Some(Instant::now());
            drop(log);
            tracing::warn!(target: "throttle_kit", store = self.store, %error, "checked one by one");
        }
    }

    /// Logs that the store answers again, if it was told that it did not.
    pub(crate) fn log_up(&self) {
        // A store that goes up and down all the time is told of once.
        if std::mem::take(&mut self.lock().told) {
            tracing::info!(
                target: "throttle_kit",
                store = self.store,
                "the store of rate limits answers again"
            );
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
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;
    use crate::key::Kind;

    const OPERATIONS: [Operation; 4] = [
        Operation::Check,
        Operation::Peek,
        Operation::Reset,
        Operation::Refund(None),
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

    /// Counts events.
    struct Counting(Arc<AtomicUsize>);

    impl tracing::Subscriber for Counting {
        fn enabled(&self, _: &tracing::Metadata<'_>) -> bool {
            true
        }
        fn new_span(&self, _: &tracing::span::Attributes<'_>) -> tracing::span::Id {
            tracing::span::Id::from_u64(1)
        }
        fn record(&self, _: &tracing::span::Id, _: &tracing::span::Record<'_>) {}
        fn record_follows_from(&self, _: &tracing::span::Id, _: &tracing::span::Id) {}
        fn event(&self, _: &tracing::Event<'_>) {
            self.0.fetch_add(1, Ordering::Relaxed);
        }
        fn enter(&self, _: &tracing::span::Id) {}
        fn exit(&self, _: &tracing::span::Id) {}
    }

    #[test]
    fn trouble_is_told_of_once() {
        let events = Arc::new(AtomicUsize::new(0));
        tracing::subscriber::with_default(Counting(Arc::clone(&events)), || {
            let told = || events.swap(0, Ordering::Relaxed);
            let fallback = Fallback::new("test", WhenDown::Open);
            fallback.log_up();
            assert_eq!(told(), 0, "it never was down");
            fallback.log_down(&"gone");
            fallback.log_up();
            fallback.log_up();
            assert_eq!(told(), 2, "down, and up");
            for _ in 0..1000 {
                fallback.log_down(&"gone");
                fallback.log_up();
            }
            assert_eq!(told(), 0, "up and down within ten seconds");
        });
    }

    #[cfg(feature = "redis")]
    #[test]
    fn advice_is_given_once() {
        let events = Arc::new(AtomicUsize::new(0));
        tracing::subscriber::with_default(Counting(Arc::clone(&events)), || {
            let fallback = Fallback::new("test", WhenDown::Open);
            for _ in 0..1000 {
                fallback.log_note(&"apart");
            }
        });
        assert_eq!(events.load(Ordering::Relaxed), 1);
    }
}
