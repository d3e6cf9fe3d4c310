//! An earlier run to compare with.

use std::path::Path;

use serde::Deserialize;

use super::latency::Latency;
use super::measurement::Measurement;
use crate::failure::Failure;
use crate::output::{count, micros};

/// Most bytes of a baseline's file.
const BYTES_MAX: u64 = 16 * 1024 * 1024;

/// What an earlier run measured: the document that `-o json` prints.
#[derive(Debug, Deserialize)]
pub(crate) struct Baseline {
    benchmarks: Vec<Earlier>,
}

#[derive(Debug, Deserialize)]
struct Earlier {
    name: String,
    rps: f64,
    latency: Latency,
}

/// One figure beside the earlier one.
pub(crate) struct Change {
    /// A line for people.
    pub(crate) text: String,
    pub(crate) is_regression: bool,
}

impl Baseline {
    pub(crate) fn read(path: &Path) -> Result<Self, Failure> {
        let wrong = |error: String| {
            let path = path.display();
            Failure::input(format!("--baseline {path}: {error}"))
                .with_hint("quill bench -o json writes one")
        };
        let bytes = std::fs::metadata(path).map_err(|error| wrong(error.to_string()))?;
        if bytes.len() > BYTES_MAX {
            return Err(wrong(format!("it has more than {BYTES_MAX} bytes")));
        }
        let text = std::fs::read_to_string(path).map_err(|error| wrong(error.to_string()))?;
        serde_json::from_str(&text).map_err(|error| wrong(error.to_string()))
    }

    /// The changes since then; `None` when that benchmark was not measured then.
    pub(crate) fn compare(&self, now: &Measurement, percent_max: f64) -> Option<Vec<Change>> {
        let earlier = self.benchmarks.iter().find(|then| then.name == now.name)?;
        let latency = now.latency();
        let rps = |rps: f64| format!("{}/s", count(rps.round() as u64));
        let mut changes = Vec::new();
        // A rate that was asked for is no finding.
        if now.load.rate.is_none() {
            changes.push(Change::of("rps", earlier.rps, now.rps(), -percent_max, rps));
        }
        for name in ["p50", "p99"] {
            let then = earlier.latency.figure(name).unwrap_or_default();
            let now = latency.figure(name).unwrap_or_default();
            changes.push(Change::of(name, then, now, percent_max, micros));
        }
        Some(changes)
    }
}

impl Change {
    /// `percent_max` is what it may change by for the worse: below 0 where less
    /// is worse.
    fn of(name: &str, then: f64, now: f64, percent_max: f64, show: impl Fn(f64) -> String) -> Self {
        let percent = if then > 0.0 {
            (now / then - 1.0) * 100.0
        } else {
            0.0
        };
        let is_regression = if percent_max.is_sign_negative() {
            percent < percent_max
        } else {
            percent > percent_max
        };
        let (then, now) = (show(then), show(now));
        let verdict = if is_regression { "  REGRESSION" } else { "" };
        Self {
            text: format!("{name:<4} {then:>12} -> {now:>12}  {percent:+.1}%{verdict}"),
            is_regression,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn worse_is_more_latency_and_less_rate() {
        let is_worse = |then, now, max| Change::of("x", then, now, max, micros).is_regression;
        assert!(!is_worse(100.0, 109.0, 10.0));
        assert!(is_worse(100.0, 111.0, 10.0));
        assert!(!is_worse(100.0, 1.0, 10.0));
        assert!(!is_worse(100.0, 91.0, -10.0));
        assert!(is_worse(100.0, 89.0, -10.0));
        assert!(!is_worse(100.0, 1000.0, -10.0));
        // No change at all is none, and neither is one from nothing.
        assert!(!is_worse(100.0, 100.0, 0.0));
        assert!(!is_worse(100.0, 100.0, -0.0));
        assert!(is_worse(100.0, 99.0, -0.0));
        assert!(!is_worse(0.0, 100.0, 10.0));
    }
}
