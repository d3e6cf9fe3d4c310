//! Latencies, and what is told of them.

use std::time::Duration;

use hdrhistogram::Histogram;
use serde::{Deserialize, Serialize};

/// A histogram holds latencies from a microsecond to an hour, to three digits:
/// less than 200 KB, whatever their number.
const MICROS_MAX: u64 = 3_600_000_000;
const DIGITS: u8 = 3;

/// Latencies in microseconds.
pub(super) fn histogram() -> Histogram<u64> {
    // Only bounds that contradict each other are refused.
    Histogram::new_with_bounds(1, MICROS_MAX, DIGITS).expect("the bounds are in order")
}

/// A latency as a histogram holds it.
pub(super) fn micros(latency: Duration) -> u64 {
    let nanos = latency.as_nanos().saturating_add(500);
    u64::try_from(nanos / 1000).map_or(MICROS_MAX, |micros| micros.clamp(1, MICROS_MAX))
}

/// What is told of many latencies, in microseconds. All are 0 when there are none.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Latency {
    pub(crate) min: u64,
    pub(crate) mean: f64,
    pub(crate) p50: u64,
    pub(crate) p90: u64,
    pub(crate) p95: u64,
    pub(crate) p99: u64,
    pub(crate) p999: u64,
    pub(crate) max: u64,
}

impl Latency {
    /// The names of the figures, from the least to the largest but for the mean.
    pub(crate) const NAMES: [&str; 8] = ["min", "mean", "p50", "p90", "p95", "p99", "p999", "max"];

    pub(crate) fn of(latencies: &Histogram<u64>) -> Self {
        if latencies.is_empty() {
            return Self::default();
        }
        let max = latencies.max();
        // A histogram answers with the top of a bucket, which may lie above all
        // that is in it.
        let at = |quantile| latencies.value_at_quantile(quantile).min(max);
        Self {
            min: latencies.min(),
            mean: (latencies.mean() * 10.0).round() / 10.0,
            p50: at(0.5),
            p90: at(0.9),
            p95: at(0.95),
            p99: at(0.99),
            p999: at(0.999),
            max,
        }
    }

    /// The figures in the order of their [names](Self::NAMES), in microseconds.
    pub(crate) fn figures(&self) -> [f64; 8] {
        [
            self.min as f64,
            self.mean,
            self.p50 as f64,
            self.p90 as f64,
            self.p95 as f64,
            self.p99 as f64,
            self.p999 as f64,
            self.max as f64,
        ]
    }

    /// The figure of this name, in microseconds.
    pub(crate) fn figure(&self, name: &str) -> Option<f64> {
        let index = Self::NAMES.iter().position(|known| *known == name)?;
        self.figures().get(index).copied()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_are_told_in_microseconds() {
        let mut latencies = histogram();
        assert_eq!(Latency::of(&latencies), Latency::default());
        for millis in 1..=1000 {
            latencies.saturating_record(micros(Duration::from_millis(millis)));
        }
        let told = Latency::of(&latencies);
        for (name, millis) in [
            ("min", 1.0),
            ("mean", 500.5),
            ("p50", 500.0),
            ("p90", 900.0),
            ("p95", 950.0),
            ("p99", 990.0),
            ("p999", 999.0),
            ("max", 1000.0),
        ] {
            let figure = told.figure(name).unwrap() / 1000.0;
            assert!(
                (figure - millis).abs() <= millis * 0.002,
                "{name}: {figure}"
            );
        }
        assert_eq!(told.figure("p42"), None);
    }

    #[test]
    fn what_no_histogram_holds_counts_as_its_ends() {
        assert_eq!(micros(Duration::ZERO), 1);
        assert_eq!(micros(Duration::from_nanos(1500)), 2);
        assert_eq!(micros(Duration::from_secs(7200)), MICROS_MAX);
        assert_eq!(micros(Duration::MAX), MICROS_MAX);
        let mut latencies = histogram();
        latencies.saturating_record(micros(Duration::MAX));
        let error = Latency::of(&latencies).max as f64 / MICROS_MAX as f64;
        assert!((error - 1.0).abs() < 0.002);
    }
}
