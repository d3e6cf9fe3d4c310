//! What is told of decisions: an event for a refusal, and counters.

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
            decision
        } else {
            self.refusal(namespace, operation, decision)
        }
    }

    #[cold]
    fn refusal(&self, namespace: &Namespace, operation: Operation, decision: Decision) -> Decision {
        if operation == Operation::Check {
            // Never the key: it may be a secret, and there is no end of them.
            tracing::debug!(
                target: "throttle_kit",
                limiter = namespace.name(),
                cost = decision.cost(),
                limit = decision.limit(),
                retry_after = ?decision.retry_after(),
                impossible = decision.outcome() == Outcome::InsufficientCapacity,
                degraded = decision.is_degraded(),
                shadow = self.shadow,
                "rate limit exceeded"
            );
        }
        if self.shadow {
            decision.into_shadowed()
        } else {
            decision
        }
    }
}
