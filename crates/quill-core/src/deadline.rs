//! When a call must have ended.

use std::time::{Duration, Instant};

/// The longest a deadline lies ahead, about 136 years: a peer may ask for
/// more (gRPC can write 11,000 years), a clock may not be able to hold it.
const TIMEOUT_MAX: Duration = Duration::from_secs(u32::MAX as u64);

/// The moment a call must have ended, on this machine's monotonic clock.
///
/// Wires carry the time that is left, never the moment, so clocks of two
/// machines need not agree.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Deadline(Instant);

impl Deadline {
    /// The deadline `timeout` from `now`; a timeout of more than some 136
    /// years is as one of 136 years.
    #[must_use]
    pub fn after(now: Instant, timeout: Duration) -> Self {
        let ahead = now.checked_add(timeout.min(TIMEOUT_MAX));
        Self(ahead.unwrap_or(now))
    }

    /// The deadline `timeout` from this moment.
    #[must_use]
    pub fn within(timeout: Duration) -> Self {
        Self::after(Instant::now(), timeout)
    }

    /// The moment itself.
    #[must_use]
    pub fn instant(self) -> Instant {
        self.0
    }

    /// The time left at `now`; zero once it has passed.
    #[must_use]
    pub fn remaining(self, now: Instant) -> Duration {
        self.0.saturating_duration_since(now)
    }

    /// The earlier of two deadlines, where there is one at all.
    #[must_use]
    pub fn earliest(one: Option<Deadline>, other: Option<Deadline>) -> Option<Deadline> {
        match (one, other) {
            (Some(one), Some(other)) => Some(one.min(other)),
            (one, other) => one.or(other),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_longest_timeouts_do_not_overflow() {
        let now = Instant::now();
        for timeout in [Duration::MAX, Duration::from_secs(99_999_999 * 3600)] {
            assert!(Deadline::after(now, timeout).remaining(now) > Duration::from_secs(86_400));
        }
    }

    #[test]
    fn what_is_left_stops_at_zero() {
        let now = Instant::now();
        let deadline = Deadline::after(now, Duration::from_millis(5));
        assert_eq!(deadline.remaining(now), Duration::from_millis(5));
        assert_eq!(
            deadline.remaining(now + Duration::from_secs(1)),
            Duration::ZERO
        );
    }

    #[test]
    fn the_earlier_one_wins() {
        let now = Instant::now();
        let soon = Deadline::after(now, Duration::from_secs(1));
        let late = Deadline::after(now, Duration::from_secs(2));
        assert_eq!(Deadline::earliest(Some(late), Some(soon)), Some(soon));
        assert_eq!(Deadline::earliest(None, Some(late)), Some(late));
        assert_eq!(Deadline::earliest(None, None), None);
    }
}
