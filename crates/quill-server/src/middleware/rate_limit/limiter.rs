//! One budget, for use by hand.

use std::time::Duration;

use throttle_kit::{DirectRateLimiter, Quota, QuotaError};

/// One budget for all who share it. Clones are one budget.
///
/// ```
/// use quill_server::rate_limit::RateLimiter;
///
/// // 1000 a second, 5 at once.
/// let limiter = RateLimiter::new(1000.0, 5.0);
/// assert!(limiter.try_acquire());
/// assert!(limiter.try_acquire_n(4));
/// assert!(!limiter.try_acquire_n(6), "more than there ever is");
/// ```
#[derive(Clone, Debug)]
pub struct RateLimiter(DirectRateLimiter);

impl RateLimiter {
    /// Lets `rate` a second pass, and up to `burst` at once. What can't be (see
    /// [`quota`]) lets nothing pass.
    #[must_use]
    pub fn new(rate: f64, burst: f64) -> Self {
        let quota = quota(rate, burst).unwrap_or(Quota::DENY_ALL);
        Self(DirectRateLimiter::new(quota))
    }

    /// Takes one, if there is one.
    #[inline]
    pub fn try_acquire(&self) -> bool {
        self.0.check_now().is_allowed()
    }

    /// Takes `n` if they are all there, else none.
    #[inline]
    pub fn try_acquire_n(&self, n: u32) -> bool {
        self.0.check_n_now(n).is_allowed()
    }

    /// How many are there now.
    #[inline]
    #[must_use]
    pub fn available(&self) -> u32 {
        self.0.peek_now().remaining()
    }
}

/// The quota of `rate` a second and `burst` at once; of a fraction of a burst
/// nothing is left.
///
/// # Errors
/// A rate or a burst that is no number or not over 0, a burst under 1, a rate over
/// 4.2e9 a second, a burst that would take more than 73 years to come back.
pub fn quota(rate: f64, burst: f64) -> Result<Quota, QuotaError> {
    if rate.is_nan() || rate <= 0.0 {
        return Err(QuotaError::ZeroRate);
    }
    if burst.is_nan() || burst < 1.0 {
        return Err(QuotaError::ZeroBurst);
    }
    // The conversion stops at the bounds of the number.
    let burst = burst as u32;
    let second = Duration::from_secs(1);
    if rate.fract() == 0.0 || rate > 1e6 {
        if rate > f64::from(u32::MAX) {
            return Err(QuotaError::TooFast);
        }
        return Quota::try_new(rate as u32, second, burst);
    }
    if rate >= 1.0 {
        // To a thousandth of one a second.
        return Quota::try_new((rate * 1e3).round() as u32, second * 1000, burst);
    }
    let period = Duration::try_from_secs_f64(1.0 / rate).map_err(|_| QuotaError::TooSlow)?;
    Quota::try_new(1, period, burst)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quotas_keep_the_rate_they_are_of() {
        for rate in [0.001, 0.5, 1.0, 1.5, 2.25, 700.0, 1000.0, 12_345.678, 5e6] {
            let quota = quota(rate, 10.0).unwrap();
            let kept = 1e12 / quota.interval_picos() as f64;
            assert!((kept / rate - 1.0).abs() < 1e-3, "{rate} became {kept}");
            assert_eq!(quota.burst(), 10);
        }
    }

    #[test]
    fn what_cannot_be_is_told_and_lets_nothing_pass() {
        let nan = f64::NAN;
        for (rate, burst, expected) in [
            (0.0, 1.0, QuotaError::ZeroRate),
            (-1.0, 1.0, QuotaError::ZeroRate),
            (nan, 1.0, QuotaError::ZeroRate),
            (1.0, 0.0, QuotaError::ZeroBurst),
            (1.0, 0.9, QuotaError::ZeroBurst),
            (1.0, -1.0, QuotaError::ZeroBurst),
            (1.0, nan, QuotaError::ZeroBurst),
            (f64::INFINITY, 1.0, QuotaError::TooFast),
            (1e-300, 1.0, QuotaError::TooSlow),
            (1e-9, f64::INFINITY, QuotaError::TooSlow),
        ] {
            assert_eq!(quota(rate, burst), Err(expected), "{rate}, {burst}");
            let limiter = RateLimiter::new(rate, burst);
            assert!(!limiter.try_acquire(), "{rate}, {burst}");
            assert_eq!(limiter.available(), 0, "{rate}, {burst}");
        }
    }

    #[test]
    fn what_is_taken_is_gone_for_all_who_share() {
        let limiter = RateLimiter::new(0.001, 10.0);
        let shared = limiter.clone();
        assert!(limiter.try_acquire_n(9));
        assert_eq!(shared.available(), 1);
        assert!(!shared.try_acquire_n(2));
        assert!(shared.try_acquire());
        assert!(!limiter.try_acquire());
    }
}
