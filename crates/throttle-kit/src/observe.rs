//! What is told of decisions: an event for a refusal, and counters.

use std::time::Duration;

use crate::backend::Operation;
use crate::decision::{Decision, Outcome};
use crate::key::Namespace;
#[cfg(feature = "metrics")]
use crate::metrics::Counters;

/// Sees every decision of a limiter.
#[derive(Debug, Clone)]
pub(crate) struct Observer {
    shadow: bool,
    #[cfg(feature = "metrics")]
    counters: Counters,
}

impl Observer {
    pub(crate) const fn new() -> Self {
        Self {
            shadow: false,
            #[cfg(feature = "metrics")]
            counters: Counters::new(),
        }
    }

    pub(crate) const fn shadow(&mut self) {
        self.shadow = true;
    }

    /// Reports a decision, and turns a refusal around in shadow mode.
    #[inline(always)]
    pub(crate) fn observe(
        &self,
        namespace: &Namespace,
        operation: Operation,
        decision: Decision,
    ) -> Decision {
        #[cfg(feature = "metrics")]
        if operation == Operation::Check {
            self.counters.count(namespace, &decision, self.shadow);
        }
        if decision.is_allowed() {
            return decision;
        }
        if operation == Operation::Check {
            // By its figures: a decision that is lent lies in memory, and then so do
            // all that pass, which costs a check a third more.
            report_refusal(
                namespace,
                [decision.cost(), decision.limit()],
                decision.outcome(),
                decision.retry_after(),
                [decision.is_degraded(), self.shadow],
            );
        }
        if self.shadow {
            decision.into_shadowed()
        } else {
            decision
        }
    }
}

#[cold]
fn report_refusal(
    namespace: &Namespace,
    [cost, limit]: [u32; 2],
    outcome: Outcome,
    retry_after: Option<Duration>,
    [degraded, shadow]: [bool; 2],
) {
    // Never the key: it may be a secret, and there is no end of them.
    tracing::debug!(
        target: "throttle_kit",
        limiter = namespace.name(),
        cost,
        limit,
        ?retry_after,
        impossible = outcome == Outcome::InsufficientCapacity,
        degraded,
        shadow,
        "rate limit exceeded"
    );
}
