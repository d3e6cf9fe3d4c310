//! How far a run is, for whoever watches.

use std::io::{IsTerminal, Write, stderr};
use std::time::Duration;

use hdrhistogram::Histogram;
use quill_explain::harmless;

use super::latency::Latency;
use super::load::Load;
use crate::output::{count, micros};

/// Back to the line's start, and the line away.
const CLEAR: &str = "\r\x1b[K";

/// A line on standard error: when a benchmark begins and, on a terminal, how it
/// goes. Nobody is missed when standard error is closed.
pub(crate) struct Progress {
    is_terminal: bool,
    benchmarks: usize,
    begun: usize,
    name: String,
    shown: Duration,
}

impl Progress {
    /// Of so many benchmarks.
    pub(crate) fn new(benchmarks: usize) -> Self {
        Self {
            is_terminal: stderr().is_terminal(),
            benchmarks,
            begun: 0,
            name: String::new(),
            shown: Duration::ZERO,
        }
    }

    /// The next benchmark begins.
    pub(crate) fn begin(&mut self, name: &str, load: &Load) {
        self.begun += 1;
        let name = harmless(name);
        let place = match self.benchmarks {
            1 => String::new(),
            all => format!("{}/{all} ", self.begun),
        };
        self.name = format!("{place}{name}");
        self.shown = Duration::ZERO;
        let seconds = load.duration.as_secs_f64();
        let rate = match load.rate {
            Some(rate) => format!(" at {rate} requests/s"),
            None => String::new(),
        };
        let concurrency = load.concurrency;
        let line = format!(
            "{}: {concurrency} at a time for {seconds} s{rate}",
            self.name
        );
        Self::write(&if self.is_terminal {
            format!("{CLEAR}{line}")
        } else {
            format!("{line}\n")
        });
    }

    /// What came in since the last time this was called.
    pub(super) fn show(&mut self, elapsed: Duration, all: Duration, latest: &Histogram<u64>) {
        let seconds = elapsed.saturating_sub(self.shown).as_secs_f64();
        self.shown = elapsed;
        if !self.is_terminal || seconds == 0.0 {
            return;
        }
        let rate = count((latest.len() as f64 / seconds).round() as u64);
        let p99 = micros(Latency::of(latest).p99 as f64);
        let (elapsed, all) = (elapsed.as_secs_f64(), all.as_secs_f64());
        let name = &self.name;
        Self::write(&format!(
            "{CLEAR}{name}: {elapsed:.1} of {all} s, {rate} requests/s, p99 {p99}"
        ));
    }

    /// The benchmark has ended.
    pub(super) fn end(&mut self) {
        if self.is_terminal {
            Self::write(CLEAR);
        }
    }

    fn write(text: &str) {
        let mut out = stderr().lock();
        let _ = out.write_all(text.as_bytes()).and_then(|()| out.flush());
    }
}
