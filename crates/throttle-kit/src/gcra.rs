//! The decision, pure: no clock, no store.
//!
//! A key's whole state is one 64-bit word, its [`Tat`] (theoretical arrival
//! time): the moment at which its budget is whole again. How far that lies
//! ahead of now is the key's *debt*; a check of `n` cells passes if the debt
//! plus `n` intervals is at most `burst` intervals. A `Tat` that is not ahead
//! of now means the same as a key that was never seen, so state may be
//! forgotten as soon as it is past.
//!
//! ```
//! use throttle_kit::{Operation, Quota, gcra::{self, Tat}};
//!
//! let quota = Quota::per_second(2);
//! let first = gcra::step(Tat::NEVER, 0, &quota, 2, Operation::Check);
//! assert!(first.decision.is_allowed());
//!
//! // Half a second later one cell is back.
//! let half = 500_000_000;
//! let second = gcra::step(first.tat, half, &quota, 1, Operation::Check);
//! assert!(second.decision.is_allowed());
//! let third = gcra::step(second.tat, half, &quota, 1, Operation::Check);
//! assert!(!third.decision.is_allowed());
//! assert_eq!(third.decision.retry_after(), Some(quota.interval()));
//! ```

use crate::backend::Operation;
use crate::decision::{Decision, Outcome};
use crate::quota::{Quota, Scale};

/// When a key's budget is whole again, in one word.
///
/// Bit 0 says how the rest counts: 0 for nanoseconds (`ns << 1`), 1 for
/// 1024ths of a nanosecond (`ns << 11 | 1`), which quotas above 60,000 a second
/// need to be exact. A word carries its unit, so that quotas of both kinds may
/// share a key. Words are compared modulo 2^64 and only ever within half of
/// that: 73 years of the first kind, 26 days of the second (a fine key that
/// lay unused for 52 to 104 days may read as one that spent its burst, which is
/// less than 20 hours of debt).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct Tat(u64);

impl Tat {
    /// The state of a key that was never seen.
    pub const NEVER: Self = Self(0);

    /// The word as a store keeps it.
    #[must_use]
    #[inline]
    pub const fn to_bits(self) -> u64 {
        self.0
    }

    /// A word as a store kept it; any value is taken, and clamped when used.
    #[must_use]
    #[inline]
    pub const fn from_bits(bits: u64) -> Self {
        Self(bits)
    }

    /// The moment `debt` units of `quota` after `now_ns`.
    #[inline]
    pub(crate) const fn at(now_ns: u64, debt: u64, quota: &Quota) -> Self {
        Self::ahead_of(now_ns, debt, quota.scale())
    }

    /// The moment `debt` units of `scale` after `now_ns`.
    #[inline]
    pub(crate) const fn ahead_of(now_ns: u64, debt: u64, scale: Scale) -> Self {
        Self(now_word(now_ns, scale).wrapping_add(debt))
    }

    /// A moment in nanoseconds.
    #[cfg(feature = "sliding-window")]
    pub(crate) const fn of_ns(ns: u64) -> Self {
        Self(now_word(ns, Scale::Coarse))
    }

    /// How far this lies ahead of `now_ns`, in units of `quota` and clamped to
    /// its window: a changed quota or a clock that stepped back never locks a
    /// key out for longer than its burst.
    #[inline]
    pub(crate) const fn debt(self, now_ns: u64, quota: &Quota) -> u64 {
        let ahead = if (self.0 ^ flag(quota.scale())) & 1 == 0 {
            self.0.wrapping_sub(now_word(now_ns, quota.scale())) as i64
        } else {
            self.ahead_in_other_unit(now_ns, quota.scale())
        };
        let debt = if ahead > 0 { ahead as u64 } else { 0 };
        if debt > quota.window_units() {
            quota.window_units()
        } else {
            debt
        }
    }

    /// The cells whose time has not come; the one whose time runs is one.
    #[cfg(feature = "redis")]
    pub(crate) fn cells_ahead(self, now_ns: u64, quota: &Quota) -> u32 {
        let cells = self
            .debt(now_ns, quota)
            .div_ceil(quota.interval_units().max(1));
        u32::try_from(cells).unwrap_or(u32::MAX)
    }

    /// The debt of a word that [`charge_word`] made.
    #[cfg(feature = "in-memory")]
    #[inline]
    pub(crate) const fn debt_unclamped(self, now_ns: u64, quota: &Quota) -> u64 {
        self.0.wrapping_sub(now_word(now_ns, quota.scale()))
    }

    #[cold]
    const fn ahead_in_other_unit(self, now_ns: u64, scale: Scale) -> i64 {
        let ahead = self.0.wrapping_sub(now_word(now_ns, self.scale())) as i64;
        if ahead <= 0 {
            return 0;
        }
        match scale {
            Scale::Fine => ahead.saturating_mul(1 << 10) & !1,
            // Up to the next whole nanosecond.
            Scale::Coarse => (((ahead - 1) >> 11) << 1) + 2,
        }
    }

    /// Nanoseconds until this is past; at most 0 when it is.
    #[cfg(feature = "in-memory")]
    #[inline]
    pub(crate) const fn ahead_ns(self, now_ns: u64) -> i64 {
        // Both, since one of them is wanted for each of many words at once.
        let coarse = self.0.wrapping_sub(now_word(now_ns, Scale::Coarse)) as i64;
        let fine = self.0.wrapping_sub(now_word(now_ns, Scale::Fine)) as i64;
        match self.scale() {
            Scale::Coarse => coarse >> Scale::Coarse as u8,
            Scale::Fine => fine >> Scale::Fine as u8,
        }
    }

    #[inline]
    const fn scale(self) -> Scale {
        if self.0 & 1 == 0 {
            Scale::Coarse
        } else {
            Scale::Fine
        }
    }
}

/// Now as a word of that scale.
#[inline]
const fn now_word(now_ns: u64, scale: Scale) -> u64 {
    (now_ns << scale as u8) | flag(scale)
}

/// Bit 0 of a word of that scale.
#[inline]
const fn flag(scale: Scale) -> u64 {
    // Of 1 and 11, the bit that only 11 has: no branch.
    scale as u64 >> 3
}

/// What an operation makes of a key's state.
#[derive(Debug, Clone)]
pub struct Step {
    /// The state to keep; the one that was given where nothing changes.
    pub tat: Tat,
    /// The answer.
    pub decision: Decision,
}

/// Applies one operation to a key's state at `now_ns`, nanoseconds on a clock
/// of the caller's choice (all of 64 bits are allowed, and wrap).
///
/// Total: no input panics or overflows.
#[must_use]
pub fn step(tat: Tat, now_ns: u64, quota: &Quota, n: u32, operation: Operation) -> Step {
    let (tat, answer) = advance(tat, now_ns, quota, n, operation);
    Step {
        tat,
        decision: answer.into_decision(tat, quota, n, operation),
    }
}

/// What a decision follows from, small enough for two registers.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Answer {
    /// The debt after the operation, in units of the quota.
    pub(crate) debt: u64,
    pub(crate) outcome: Outcome,
}

impl Answer {
    #[inline]
    pub(crate) const fn allowed(debt: u64) -> Self {
        Self {
            debt,
            outcome: Outcome::Allowed,
        }
    }

    /// That of a word which [`charge_word`] made.
    #[cfg(feature = "in-memory")]
    #[inline]
    pub(crate) const fn charged(word: u64, now_ns: u64, quota: &Quota) -> (Tat, Self) {
        let tat = Tat::from_bits(word);
        (tat, Self::allowed(tat.debt_unclamped(now_ns, quota)))
    }

    /// A decision on `n` cells.
    #[inline]
    pub(crate) const fn into_decision(
        self,
        owed_until: Tat,
        quota: &Quota,
        n: u32,
        op: Operation,
    ) -> Decision {
        // What was refused is what was asked for; only a check takes anything.
        let is_charge = matches!(op, Operation::Check) || !matches!(self.outcome, Outcome::Allowed);
        let cost = if is_charge { n } else { 0 };
        Decision::of_debt(quota, self.debt, cost, self.outcome).until(owed_until)
    }
}

/// [`step`] without its decision.
#[inline]
pub(crate) const fn advance(
    tat: Tat,
    now_ns: u64,
    quota: &Quota,
    n: u32,
    operation: Operation,
) -> (Tat, Answer) {
    let debt = tat.debt(now_ns, quota);
    match (operation, charge(debt, quota, n)) {
        (Operation::Check, Some(_)) if n == 0 => (tat, Answer::allowed(debt)),
        (Operation::Check, Some(new)) => (Tat::at(now_ns, new, quota), Answer::allowed(new)),
        (Operation::Peek, Some(_)) => (tat, Answer::allowed(debt)),
        (Operation::Check | Operation::Peek, None) => {
            let outcome = if quota.fits(n) {
                Outcome::Denied
            } else {
                Outcome::InsufficientCapacity
            };
            // A debt that was cut down to the window is kept so, or it would be
            // cut down again and again and never be paid.
            let is_cut = debt > 0 && debt == quota.window_units();
            let tat = if is_cut && matches!(operation, Operation::Check) {
                Tat::at(now_ns, debt, quota)
            } else {
                tat
            };
            (tat, Answer { debt, outcome })
        }
        (Operation::Reset, _) => (Tat::NEVER, Answer::allowed(0)),
        (Operation::Refund(owed_until), _) => {
            // What is no longer owed cannot be given back.
            let mut paid = (n as u64).saturating_mul(quota.interval_units());
            if let Some(until) = owed_until {
                let owed = until.debt(now_ns, quota);
                if owed < paid {
                    paid = owed;
                }
            }
            let left = debt.saturating_sub(paid);
            (Tat::at(now_ns, left, quota), Answer::allowed(left))
        }
    }
}

/// The debt after `n` more cells, or `None` when they do not fit.
#[inline]
pub(crate) const fn charge(debt: u64, quota: &Quota, n: u32) -> Option<u64> {
    if !quota.fits(n) {
        return None;
    }
    // n <= burst, so the product is at most the window, and the sum below 2^63.
    let new = debt + n as u64 * quota.interval_units();
    if new <= quota.window_units() {
        Some(new)
    } else {
        None
    }
}

/// The common case of a check in few instructions: the state counts in the
/// quota's unit and the `n` cells fit. `n` must be 1 to `burst`.
#[cfg(feature = "in-memory")]
#[inline]
pub(crate) const fn charge_word(word: u64, now_ns: u64, quota: &Quota, n: u32) -> Option<u64> {
    let now = now_word(now_ns, quota.scale());
    let ahead = word.wrapping_sub(now) as i64;
    // Words of one unit are an even number apart.
    if ahead & 1 != 0 {
        return None;
    }
    let debt = if ahead > 0 { ahead as u64 } else { 0 };
    // The product is at most the window, 2^62, and the debt below 2^63.
    let new = debt + n as u64 * quota.interval_units();
    if new <= quota.window_units() {
        Some(now.wrapping_add(new))
    } else {
        None
    }
}
