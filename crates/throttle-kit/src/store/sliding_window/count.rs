//! Two counters and the window they belong to, in one word.
//!
//! `[start: 20 bits | last window's share: 12 | this window's count: 32]`
//!
//! The start is in sixteenths of the window's length rounded up to a power of
//! two, modulo 2^20. The exponent of that power stands in the lowest bits of
//! the key's fingerprint, so that the table can tell which words are over
//! without knowing their quotas.

use std::time::Duration;

use crate::quota::Quota;
use crate::store::memory::Life;

const START_BITS: u32 = 20;
const START_MASK: u64 = (1 << START_BITS) - 1;
/// The last window's count that equals the limit.
const SHARE_FULL: u32 = (1 << 12) - 1;
/// Bits of the fingerprint that hold the exponent.
const EXPONENT_MASK: u64 = 63;
/// A unit of the start is 2^-4 of a window.
const UNITS_EXPONENT: u32 = 4;

/// A window in which cells are counted.
pub(super) struct Window {
    length_ns: u64,
    elapsed_ns: u64,
    /// When it started and when the one before it did, as words have it.
    start: u64,
    last_start: u64,
    exponent: u32,
    limit: u32,
}

impl Window {
    /// The window of `quota` in which `now_ns` lies; `None` if it denies all.
    pub(super) fn of(quota: &Quota, now_ns: u64) -> Option<Self> {
        if quota.denies_all() {
            return None;
        }
        let length_ns = u64::try_from(quota.window().as_nanos()).unwrap_or(u64::MAX);
        let length_ns = length_ns.clamp(1, 1 << 61);
        let exponent = length_ns.next_power_of_two().trailing_zeros();
        let exponent = exponent.max(UNITS_EXPONENT);
        let elapsed_ns = now_ns % length_ns;
        let start_ns = now_ns - elapsed_ns;
        let units = |ns: u64| (ns >> (exponent - UNITS_EXPONENT)) & START_MASK;
        Some(Self {
            length_ns,
            elapsed_ns,
            start: units(start_ns),
            last_start: units(start_ns.wrapping_sub(length_ns)),
            exponent,
            // The largest counts are no words: the table has one for itself.
            limit: quota.burst().min(u32::MAX - 2),
        })
    }

    pub(super) const fn limit(&self) -> u32 {
        self.limit
    }

    pub(super) const fn length(&self) -> Duration {
        Duration::from_nanos(self.length_ns)
    }

    /// The fingerprint of a key that is counted in such windows.
    pub(super) const fn stamp(&self, fingerprint: u64) -> u64 {
        fingerprint & !EXPONENT_MASK | self.exponent as u64
    }

    /// Whether the clock stepped back to this window since the word was written.
    pub(super) const fn is_before(&self, word: u64) -> bool {
        word != 0 && is_ahead(word >> (64 - START_BITS), self.start)
    }

    pub(super) const fn left_ns(&self) -> u64 {
        self.length_ns - self.elapsed_ns
    }

    /// What `share` of the limit weighs `left_ns` before its window's end.
    fn weight(&self, share: u32, left_ns: u64) -> u32 {
        // 12 + 32 bits, and 62 bits by at most 62: no overflow in 128.
        let cells = u128::from(share) * u128::from(self.limit) * u128::from(left_ns);
        let whole = u128::from(SHARE_FULL) * u128::from(self.length_ns);
        u32::try_from(cells.div_ceil(whole)).unwrap_or(u32::MAX)
    }

    /// How long before its window's end `share` of the limit weighs `room`.
    fn left_at_weight(&self, share: u32, room: u32) -> u64 {
        let cells = u128::from(share) * u128::from(self.limit);
        let whole = u128::from(SHARE_FULL) * u128::from(self.length_ns) * u128::from(room);
        let left = whole.checked_div(cells).unwrap_or(u128::MAX);
        u64::try_from(left).unwrap_or(u64::MAX).min(self.length_ns)
    }
}

/// What was counted, as seen from a window.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Count {
    /// The last window's count as a share of the limit, of [`SHARE_FULL`].
    share: u32,
    current: u32,
}

impl Count {
    pub(super) const NONE: Self = Self {
        share: 0,
        current: 0,
    };

    pub(super) fn read(word: u64, window: &Window) -> Self {
        let stored = Self {
            share: (word >> 32) as u32 & SHARE_FULL,
            current: word as u32,
        };
        let start = word >> (64 - START_BITS);
        if word == 0 {
            Self::NONE
        } else if start == window.start || window.is_before(word) {
            // Ahead: the clock stepped back. What was counted still counts, for
            // two windows from here.
            stored
        } else if start == window.last_start {
            Self {
                share: share_of(stored.current, window.limit),
                current: 0,
            }
        } else {
            Self::NONE
        }
    }

    pub(super) const fn write(&self, window: &Window) -> u64 {
        window.start << (64 - START_BITS) | (self.share as u64) << 32 | self.current as u64
    }

    fn used(&self, window: &Window) -> u32 {
        let weight = window.weight(self.share, window.left_ns());
        weight.saturating_add(self.current)
    }

    pub(super) fn fits(&self, n: u32, window: &Window) -> bool {
        self.used(window)
            .checked_add(n)
            .is_some_and(|used| used <= window.limit)
    }

    pub(super) fn remaining(&self, window: &Window) -> u32 {
        window.limit.saturating_sub(self.used(window))
    }

    pub(super) const fn plus(self, n: u32) -> Self {
        Self {
            current: self.current.saturating_add(n),
            ..self
        }
    }

    pub(super) const fn minus(self, n: u32) -> Self {
        Self {
            current: self.current.saturating_sub(n),
            ..self
        }
    }

    pub(super) const fn reset_after(&self, window: &Window) -> Duration {
        let windows_more = if self.current > 0 {
            window.length_ns
        } else if self.share > 0 {
            0
        } else {
            return Duration::ZERO;
        };
        Duration::from_nanos(window.left_ns() + windows_more)
    }

    /// When `n` cells fit that now do not; `n` must be at most the limit.
    pub(super) fn retry_after(&self, n: u32, window: &Window) -> Duration {
        let room = window.limit.saturating_sub(n);
        // As the last window's weight falls, if that is before this one's end.
        let left_ns = match room.checked_sub(self.current) {
            Some(room) => window.left_at_weight(self.share, room),
            None => 0,
        };
        let wait_ns = if left_ns > 0 {
            window.left_ns().saturating_sub(left_ns)
        } else {
            // In the next one, as this window's weight falls.
            let share = share_of(self.current, window.limit);
            let left_ns = window.left_at_weight(share, room);
            window.left_ns() + (window.length_ns - left_ns)
        };
        Duration::from_nanos(wait_ns)
    }
}

/// A count as a share of the limit, rounded up.
fn share_of(count: u32, limit: u32) -> u32 {
    let full = u64::from(SHARE_FULL) * u64::from(count);
    let share = full.div_ceil(u64::from(limit));
    u32::try_from(share).map_or(SHARE_FULL, |share| share.min(SHARE_FULL))
}

/// Whether `start` is later than `now`, by less than half of what 20 bits hold.
const fn is_ahead(start: u64, now: u64) -> bool {
    let ahead = start.wrapping_sub(now) & START_MASK;
    ahead != 0 && ahead < 1 << (START_BITS - 1)
}

impl Life for Count {
    fn left_ns(fingerprint: u64, word: u64, now_ns: u64) -> i64 {
        let exponent = (fingerprint & EXPONENT_MASK).max(u64::from(UNITS_EXPONENT)) as u32;
        let unit = exponent - UNITS_EXPONENT;
        let now = (now_ns >> unit) & START_MASK;
        let start = word >> (64 - START_BITS);
        let age = if is_ahead(start, now) {
            0
        } else {
            now.wrapping_sub(start) & START_MASK
        };
        // Two windows of at most 16 units, and one for rounding.
        let whole = if word == 0 { 0 } else { 33_i64 };
        let left = whole.saturating_sub_unsigned(age).max(0);
        left.saturating_mul(1 << unit)
    }
}
