//! How much is allowed: a rate and a burst.

use std::fmt;
use std::time::Duration;

/// Nanoseconds a cell may take before its quota counts in whole nanoseconds.
///
/// Below it, time is counted in 1024ths of a nanosecond. Either way an
/// interval is rounded up by less than one part in 1000 (in 16,384 for the
/// slower rates), so that no quota ever admits more than it says.
const FINE_BELOW_NS: u128 = 1 << 14;

/// What a state word counts: see [`Tat`](crate::gcra::Tat). The value is the
/// number of bits by which a nanosecond is shifted left in it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[repr(u8)]
pub(crate) enum Scale {
    /// Nanoseconds.
    Coarse = 1,
    /// 1024ths of a nanosecond.
    Fine = 11,
}

impl Scale {
    /// A span of state word units as time, rounded up.
    #[inline]
    pub(crate) const fn duration(self, units: u64) -> Duration {
        Duration::from_nanos(units.div_ceil(1 << self as u32))
    }
}

/// The longest a full burst may take to come back, in units of the state word:
/// 2^61 ns or 73 years; 26 days for a fine quota, more than any `u32` burst takes.
const WINDOW_MAX: u128 = 1 << 62;

/// A rate and a burst.
///
/// `burst` cells may be taken at once; after that one comes back every
/// [`interval`](Self::interval). Over any span of time no more than
/// `burst + rate x span` cells are admitted, and a caller that asks often
/// enough gets no less than the rate (within 0.1 % at 10^9 a second, within
/// 0.01 % below 60,000 a second).
///
/// Rates from one in 73 years to 10^9 a second are accepted.
///
/// ```
/// use std::time::Duration;
/// use throttle_kit::Quota;
///
/// let api = Quota::per_second(50).allow_burst(100);
/// assert_eq!(api.burst(), 100);
/// assert_eq!(api.interval(), Duration::from_millis(20));
///
/// // A rate that makes no sense is an error, or a quota that denies all.
/// assert!(Quota::try_per_second(0).is_err());
/// assert!(Quota::per_second(0).denies_all());
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Quota {
    /// Time of one cell, in units of the state word; even.
    interval: u64,
    /// `burst` intervals, in units of the state word.
    window: u64,
    burst: u32,
    scale: Scale,
}

/// Why a quota cannot be built.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum QuotaError {
    /// No cells in a period: nothing would ever be admitted.
    ZeroRate,
    /// A burst of 0: not even a single cell would fit.
    ZeroBurst,
    /// A period of length zero: an endless rate.
    ZeroPeriod,
    /// More than 4.3 x 10^9 cells a second.
    TooFast,
    /// A full burst would take more than 73 years to come back.
    TooSlow,
}

impl fmt::Display for QuotaError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::ZeroRate => "a rate of 0 admits nothing: give at least 1 in the period",
            Self::ZeroBurst => "a burst of 0 admits nothing: give at least 1",
            Self::ZeroPeriod => "a period of 0 has no rate: give at least 1 ns",
            Self::TooFast => "the rate is above 4.3e9 a second, the fastest that is counted",
            Self::TooSlow => "burst x interval is above 73 years, the longest that is counted",
        })
    }
}

impl std::error::Error for QuotaError {}

impl Quota {
    /// Admits nothing, and tells nobody to come back.
    pub const DENY_ALL: Self = Self {
        interval: 0,
        window: 0,
        burst: 0,
        scale: Scale::Coarse,
    };

    /// `n` cells in `period`, of which `burst` may be taken at once.
    ///
    /// A quota that cannot be (see [`QuotaError`]) denies all; use
    /// [`try_new`](Self::try_new) to be told.
    #[must_use]
    pub const fn new(n: u32, period: Duration, burst: u32) -> Self {
        match Self::try_new(n, period, burst) {
            Ok(quota) => quota,
            Err(_) => Self::DENY_ALL,
        }
    }

    /// `n` cells in `period`, of which `burst` may be taken at once.
    pub const fn try_new(n: u32, period: Duration, burst: u32) -> Result<Self, QuotaError> {
        if n == 0 {
            return Err(QuotaError::ZeroRate);
        }
        if burst == 0 {
            return Err(QuotaError::ZeroBurst);
        }
        let period_ns = period.as_nanos();
        if period_ns == 0 {
            return Err(QuotaError::ZeroPeriod);
        }
        let n = n as u128;
        let fine = period_ns < FINE_BELOW_NS * n;
        // Whole units first, then the flag bit below them: intervals are even.
        let (interval, scale) = if fine {
            ((period_ns << 10).div_ceil(n) << 1, Scale::Fine)
        } else {
            (period_ns.div_ceil(n) << 1, Scale::Coarse)
        };
        // u32::MAX a second has an interval of 478 units.
        if fine && interval < 476 {
            return Err(QuotaError::TooFast);
        }
        if interval > WINDOW_MAX || interval * burst as u128 > WINDOW_MAX {
            return Err(QuotaError::TooSlow);
        }
        Ok(Self {
            interval: interval as u64,
            window: (interval * burst as u128) as u64,
            burst,
            scale,
        })
    }

    /// `n` a second, all of which may be taken at once. 0 denies all.
    #[must_use]
    pub const fn per_second(n: u32) -> Self {
        Self::new(n, Duration::from_secs(1), n)
    }

    /// `n` a minute, all of which may be taken at once. 0 denies all.
    #[must_use]
    pub const fn per_minute(n: u32) -> Self {
        Self::new(n, Duration::from_secs(60), n)
    }

    /// `n` an hour, all of which may be taken at once. 0 denies all.
    #[must_use]
    pub const fn per_hour(n: u32) -> Self {
        Self::new(n, Duration::from_secs(3600), n)
    }

    /// [`per_second`](Self::per_second), with an error in place of a quota that denies all.
    pub const fn try_per_second(n: u32) -> Result<Self, QuotaError> {
        Self::try_new(n, Duration::from_secs(1), n)
    }

    /// [`per_minute`](Self::per_minute), with an error in place of a quota that denies all.
    pub const fn try_per_minute(n: u32) -> Result<Self, QuotaError> {
        Self::try_new(n, Duration::from_secs(60), n)
    }

    /// [`per_hour`](Self::per_hour), with an error in place of a quota that denies all.
    pub const fn try_per_hour(n: u32) -> Result<Self, QuotaError> {
        Self::try_new(n, Duration::from_secs(3600), n)
    }

    /// The same rate with another burst. A burst of 0, or one that takes more
    /// than 73 years to come back, denies all.
    #[must_use]
    pub const fn allow_burst(self, burst: u32) -> Self {
        match self.try_allow_burst(burst) {
            Ok(quota) => quota,
            Err(_) => Self::DENY_ALL,
        }
    }

    /// The same rate with another burst.
    pub const fn try_allow_burst(self, burst: u32) -> Result<Self, QuotaError> {
        if self.burst == 0 {
            return Err(QuotaError::ZeroRate);
        }
        if burst == 0 {
            return Err(QuotaError::ZeroBurst);
        }
        let window = self.interval as u128 * burst as u128;
        if window > WINDOW_MAX {
            return Err(QuotaError::TooSlow);
        }
        Ok(Self {
            window: window as u64,
            burst,
            ..self
        })
    }

    /// Cells that may be taken at once; 0 for a quota that denies all.
    #[must_use]
    #[inline]
    pub const fn burst(&self) -> u32 {
        self.burst
    }

    /// Time after which one cell comes back, rounded up to whole nanoseconds.
    #[must_use]
    pub const fn interval(&self) -> Duration {
        self.duration(self.interval)
    }

    /// Time after which one cell comes back, in picoseconds rounded up: for
    /// stores that count in units of their own. 0 for a quota that denies all.
    #[must_use]
    pub const fn interval_picos(&self) -> u128 {
        (self.interval as u128 * 1000).div_ceil(1 << self.scale as u32)
    }

    /// Time in which a spent burst comes back whole.
    #[must_use]
    pub const fn window(&self) -> Duration {
        self.duration(self.window)
    }

    /// Whether nothing is ever admitted: the quota was built of a 0 or overflowed.
    #[must_use]
    #[inline]
    pub const fn denies_all(&self) -> bool {
        self.burst == 0
    }

    /// Whether `n` cells can ever be admitted together.
    #[inline]
    pub(crate) const fn fits(&self, n: u32) -> bool {
        n <= self.burst && self.burst > 0
    }

    #[inline]
    pub(crate) const fn interval_units(&self) -> u64 {
        self.interval
    }

    #[inline]
    pub(crate) const fn window_units(&self) -> u64 {
        self.window
    }

    #[inline]
    pub(crate) const fn scale(&self) -> Scale {
        self.scale
    }

    /// A span of state word units as time, rounded up.
    #[inline]
    pub(crate) const fn duration(&self, units: u64) -> Duration {
        self.scale.duration(units)
    }

    /// A span of time as state word units: even, rounded up, at most the window.
    pub(crate) fn units(&self, span: Duration) -> u64 {
        let units = span.as_nanos().saturating_mul(1 << self.scale as u32);
        u64::try_from(units).unwrap_or(u64::MAX).min(self.window)
    }
}

impl fmt::Debug for Quota {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Quota")
            .field("burst", &self.burst)
            .field("interval", &self.interval())
            .finish()
    }
}

impl fmt::Display for Quota {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.denies_all() {
            f.write_str("none")
        } else {
            write!(f, "one every {:?}, {} at once", self.interval(), self.burst)
        }
    }
}
