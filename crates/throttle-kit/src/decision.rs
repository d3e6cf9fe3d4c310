//! The answer to a check.

use std::time::Duration;

use crate::backend::Operation;
use crate::gcra::Tat;
use crate::quota::{Quota, Scale};

/// What a check came to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    /// The cells were taken (or, for a peek, could be).
    Allowed,
    /// Not now: [`Decision::retry_after`] says when.
    Denied,
    /// Never: more cells were asked for than the burst holds, or the quota
    /// denies all. Waiting does not help.
    InsufficientCapacity,
}

/// The answer to one check: one level, no `Result` to unwrap.
///
/// Only what the store said is kept; the figures are computed when asked for.
#[derive(Debug, Clone, PartialEq, Eq)]
#[must_use = "a decision that nobody looks at limits nothing"]
pub struct Decision {
    basis: Basis,
    limit: u32,
    cost: u32,
    outcome: Outcome,
    degraded: bool,
    shadowed: bool,
}

/// What the figures follow from.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Basis {
    /// GCRA: the time of a cell and the debt, in units of the quota.
    Debt {
        interval: u64,
        debt: u64,
        /// When the debt is over, on the store's clock; [`Tat::NEVER`] if it
        /// did not say.
        owed_until: Tat,
        scale: Scale,
    },
    /// Another algorithm: stated.
    Stated {
        reset_ns: u64,
        /// Of what is not allowed.
        retry_ns: u64,
        window_ns: u64,
        remaining: u32,
    },
    /// The same, allowed, by a store that says until when the cells count.
    #[cfg(feature = "sliding-window")]
    Owed {
        reset_ns: u64,
        owed_until: Tat,
        window_ns: u64,
        remaining: u32,
    },
}

/// The figures of a decision, for stores that do not keep a debt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Figures {
    /// Cells that may be taken at once.
    pub limit: u32,
    /// Cells that may still be taken now.
    pub remaining: u32,
    /// The time in which a spent budget comes back whole.
    pub window: Duration,
    /// Until the budget is whole.
    pub reset_after: Duration,
    /// Until the refused cells would be admitted; unused when allowed.
    pub retry_after: Duration,
}

impl Decision {
    #[inline]
    pub(crate) const fn of_debt(quota: &Quota, debt: u64, cost: u32, outcome: Outcome) -> Self {
        Self {
            basis: Basis::Debt {
                interval: quota.interval_units(),
                debt,
                owed_until: Tat::NEVER,
                scale: quota.scale(),
            },
            limit: quota.burst(),
            cost,
            outcome,
            degraded: false,
            shadowed: false,
        }
    }

    #[inline]
    pub(crate) const fn allowed(quota: &Quota, debt: u64, cost: u32) -> Self {
        Self::of_debt(quota, debt, cost, Outcome::Allowed)
    }

    #[inline]
    pub(crate) const fn refused(quota: &Quota, debt: u64, cost: u32) -> Self {
        let outcome = if quota.fits(cost) {
            Outcome::Denied
        } else {
            Outcome::InsufficientCapacity
        };
        Self::of_debt(quota, debt, cost, outcome)
    }

    /// A decision of a store that keeps a debt of its own: how long after now
    /// the budget is whole again, with this decision's charge in it if it was
    /// allowed. A refusal of more than the burst is
    /// [`InsufficientCapacity`](Outcome::InsufficientCapacity) by itself.
    pub fn from_debt(quota: &Quota, debt: Duration, cost: u32, allowed: bool) -> Self {
        let debt = quota.units(debt);
        if allowed {
            Self::allowed(quota, debt, cost)
        } else {
            Self::refused(quota, debt, cost)
        }
    }

    /// A decision of an algorithm that is not GCRA.
    pub fn from_figures(figures: Figures, cost: u32, outcome: Outcome) -> Self {
        Self {
            basis: Basis::Stated {
                reset_ns: nanos(figures.reset_after),
                retry_ns: nanos(figures.retry_after),
                window_ns: nanos(figures.window),
                remaining: figures.remaining,
            },
            limit: figures.limit,
            cost,
            outcome,
            degraded: false,
            shadowed: false,
        }
    }

    /// Says when the cells are back by themselves, on the store's clock.
    #[inline]
    pub(crate) const fn until(mut self, until: Tat) -> Self {
        match &mut self.basis {
            Basis::Debt { owed_until, .. } => *owed_until = until,
            #[cfg(feature = "sliding-window")]
            Basis::Stated {
                reset_ns,
                window_ns,
                remaining,
                ..
            } if matches!(self.outcome, Outcome::Allowed) => {
                self.basis = Basis::Owed {
                    reset_ns: *reset_ns,
                    owed_until: until,
                    window_ns: *window_ns,
                    remaining: *remaining,
                };
            }
            _ => (),
        }
        self
    }

    /// [`until`](Self::until), by the debt there was at `now_ns`.
    #[cfg(feature = "redis")]
    pub(crate) const fn owed_from(self, now_ns: u64) -> Self {
        match &self.basis {
            Basis::Debt { debt, scale, .. } => {
                let until = Tat::ahead_of(now_ns, *debt, *scale);
                self.until(until)
            }
            _ => self,
        }
    }

    /// What gives the cells back.
    pub(crate) fn refund(&self) -> Operation {
        Operation::Refund(match &self.basis {
            Basis::Debt { owed_until, .. } if *owed_until != Tat::NEVER => Some(*owed_until),
            #[cfg(feature = "sliding-window")]
            Basis::Owed { owed_until, .. } => Some(*owed_until),
            _ => None,
        })
    }

    /// Marks that the store could not be asked and a policy answered instead.
    pub const fn into_degraded(mut self) -> Self {
        self.degraded = true;
        self
    }

    /// The same figures, but allowed: what shadow mode makes of a refusal.
    pub(crate) const fn into_shadowed(mut self) -> Self {
        self.outcome = Outcome::Allowed;
        self.shadowed = true;
        self
    }

    /// Whether the caller may go on.
    #[inline]
    #[must_use]
    pub const fn is_allowed(&self) -> bool {
        matches!(self.outcome, Outcome::Allowed)
    }

    /// Allowed, denied for now, or impossible.
    #[inline]
    #[must_use]
    pub const fn outcome(&self) -> Outcome {
        self.outcome
    }

    /// Whether the store could not be asked, and its policy for that answered.
    #[inline]
    #[must_use]
    pub const fn is_degraded(&self) -> bool {
        self.degraded
    }

    /// Whether this was a refusal that shadow mode let pass.
    #[must_use]
    pub const fn is_shadowed(&self) -> bool {
        self.shadowed
    }

    /// Cells that were taken, and can be given back. What a policy admitted in
    /// the place of the store was never taken from the store.
    pub(crate) const fn charged(&self) -> u32 {
        if self.is_allowed() && !self.shadowed && !self.degraded {
            self.cost
        } else {
            0
        }
    }

    /// Cells asked for; for an allowed check, cells that were taken. 0 for a peek.
    #[inline]
    #[must_use]
    pub const fn cost(&self) -> u32 {
        self.cost
    }

    /// Cells that may be taken at once: the quota's burst.
    #[inline]
    #[must_use]
    pub fn limit(&self) -> u32 {
        self.limit
    }

    /// Whole cells left now; counts down with each check.
    #[must_use]
    pub fn remaining(&self) -> u32 {
        match &self.basis {
            Basis::Debt { interval, debt, .. } => {
                let free = self.window_units(*interval) - debt;
                let cells = free.checked_div(*interval).unwrap_or(0);
                u32::try_from(cells).unwrap_or(self.limit)
            }
            Basis::Stated { remaining, .. } => *remaining,
            #[cfg(feature = "sliding-window")]
            Basis::Owed { remaining, .. } => *remaining,
        }
    }

    /// The time in which a spent budget comes back whole.
    #[must_use]
    pub fn window(&self) -> Duration {
        match &self.basis {
            Basis::Debt {
                interval, scale, ..
            } => scale.duration(self.window_units(*interval)),
            Basis::Stated { window_ns, .. } => Duration::from_nanos(*window_ns),
            #[cfg(feature = "sliding-window")]
            Basis::Owed { window_ns, .. } => Duration::from_nanos(*window_ns),
        }
    }

    /// Until the whole budget is back.
    #[must_use]
    pub fn reset_after(&self) -> Duration {
        match &self.basis {
            Basis::Debt { debt, scale, .. } => scale.duration(*debt),
            Basis::Stated { reset_ns, .. } => Duration::from_nanos(*reset_ns),
            #[cfg(feature = "sliding-window")]
            Basis::Owed { reset_ns, .. } => Duration::from_nanos(*reset_ns),
        }
    }

    /// For a refusal that time can mend: how long until the same request
    /// passes, if nobody else takes cells meanwhile. Rounded up.
    #[inline(always)]
    #[must_use]
    pub fn retry_after(&self) -> Option<Duration> {
        match (self.outcome, &self.basis) {
            (
                Outcome::Denied,
                Basis::Debt {
                    interval,
                    debt,
                    scale,
                    ..
                },
            ) => {
                let needed = u64::from(self.cost) * interval;
                let wait = (debt + needed).saturating_sub(self.window_units(*interval));
                Some(scale.duration(wait))
            }
            (Outcome::Denied, Basis::Stated { retry_ns, .. }) => {
                Some(Duration::from_nanos(*retry_ns))
            }
            _ => None,
        }
    }

    /// The quota's window: it was no overflow when the quota was made.
    #[inline]
    const fn window_units(&self, interval: u64) -> u64 {
        interval * self.limit as u64
    }

    /// [`retry_after`](Self::retry_after) in whole seconds, rounded up and at
    /// least 1: the value of an HTTP `Retry-After` (RFC 9110 section 10.2.3).
    #[must_use]
    pub fn retry_after_secs(&self) -> Option<u64> {
        self.retry_after().map(|wait| secs_ceil(wait).max(1))
    }

    /// [`reset_after`](Self::reset_after) in whole seconds, rounded up.
    #[must_use]
    pub fn reset_after_secs(&self) -> u64 {
        secs_ceil(self.reset_after())
    }
}

fn nanos(span: Duration) -> u64 {
    u64::try_from(span.as_nanos()).unwrap_or(u64::MAX)
}

fn secs_ceil(span: Duration) -> u64 {
    span.as_secs() + u64::from(span.subsec_nanos() > 0)
}

/// The answer to several limits asked together.
#[derive(Debug, Clone, PartialEq, Eq)]
#[must_use = "a decision that nobody looks at limits nothing"]
pub struct JointDecision {
    /// Which of the demands decided: of a refusal the one that takes longest
    /// to pass, else the one with the fewest cells left. `None` if there were
    /// no demands.
    pub binding: Option<usize>,
    /// That demand's decision. Allowed only if every demand was, and then all
    /// were charged; otherwise none was.
    pub decision: Decision,
}

// It is copied on every check.
const _: () = assert!(size_of::<Decision>() <= 48);
