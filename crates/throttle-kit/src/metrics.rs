//! Counters through the [`metrics`] facade.
//!
//! | name | labels |
//! |---|---|
//! | `throttle_kit_checks_total` | `limiter`: the namespace; `outcome`: `allowed`, `denied`, `impossible`, `shadow_denied` |
//! | `throttle_kit_degraded_total` | `limiter` |
//! | `throttle_kit_evicted_live_total` | |
//!
//! `throttle_kit_degraded_total` counts checks that a policy answered because the
//! store could not be asked; `throttle_kit_evicted_live_total` keys that an
//! in-memory table had to forget while they owed something: if it grows,
//! `keys_max` is too small.
//!
//! The labels are bounded: never the key. The counters are registered at a
//! limiter's first check, with the recorder installed by then.

use std::sync::OnceLock;

use ::metrics::Counter;

use crate::decision::{Decision, Outcome};
use crate::key::Namespace;

/// The counters of one limiter.
#[derive(Clone)]
pub(crate) struct Counters(OnceLock<Handles>);

#[derive(Clone)]
struct Handles {
    allowed: Counter,
    denied: Counter,
    impossible: Counter,
    shadow_denied: Counter,
    degraded: Counter,
}

impl Counters {
    pub(crate) const fn new() -> Self {
        Self(OnceLock::new())
    }

    #[inline]
    pub(crate) fn count(&self, namespace: &Namespace, decision: &Decision, shadow: bool) {
        let handles = self.0.get_or_init(|| Handles::register(namespace));
        let counter = match decision.outcome() {
            Outcome::Allowed => &handles.allowed,
            _ if shadow => &handles.shadow_denied,
            Outcome::Denied => &handles.denied,
            Outcome::InsufficientCapacity => &handles.impossible,
        };
        counter.increment(1);
        if decision.is_degraded() {
            handles.degraded.increment(1);
        }
    }
}

/// Counts a key that a full table forgot while it owed something.
#[cfg(feature = "in-memory")]
#[cold]
pub(crate) fn count_eviction() {
    ::metrics::counter!("throttle_kit_evicted_live_total").increment(1);
}

impl Handles {
    fn register(namespace: &Namespace) -> Self {
        let limiter = namespace.name().to_owned();
        let checks = |outcome: &'static str| {
            ::metrics::counter!(
                "throttle_kit_checks_total",
                "limiter" => limiter.clone(),
                "outcome" => outcome
            )
        };
        Self {
            allowed: checks("allowed"),
            denied: checks("denied"),
            impossible: checks("impossible"),
            shadow_denied: checks("shadow_denied"),
            degraded: ::metrics::counter!(
                "throttle_kit_degraded_total",
                "limiter" => limiter.clone()
            ),
        }
    }
}

impl std::fmt::Debug for Counters {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Counters")
    }
}
