//! What a benchmark measured.

use std::time::Duration;

use hdrhistogram::Histogram;
use quill::{Format, Protocol};

use super::call::Traffic;
use super::latency::{Latency, histogram};
use super::load::Load;
use super::recorder::{Recorder, Tally};
use super::status::Status;

/// What a benchmark measured, and under which load.
pub(crate) struct Measurement {
    pub(crate) name: String,
    pub(crate) url: String,
    /// `package.Service/Method`
    pub(crate) method: String,
    pub(crate) protocol: Protocol,
    pub(crate) format: Format,
    pub(crate) http1: bool,
    pub(crate) load: Load,
    /// From the start to the end of the last request, and not less than was asked for.
    pub(crate) elapsed: Duration,
    /// Whether it was ended before its time.
    pub(crate) is_interrupted: bool,
    pub(crate) latencies: Histogram<u64>,
    pub(crate) tallies: Vec<(Status, Tally)>,
    pub(crate) traffic: Traffic,
    pub(crate) intervals: Vec<Interval>,
}

/// A part of the time.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Interval {
    /// Seconds from the start to its end.
    pub(crate) end: f64,
    /// Requests per second that ended in it.
    pub(crate) rps: f64,
    /// Microseconds; of those that ended in it.
    pub(crate) p50: u64,
    pub(crate) p99: u64,
}

impl Measurement {
    pub(crate) fn requests(&self) -> u64 {
        self.latencies.len()
    }

    pub(crate) fn errors(&self) -> u64 {
        let failed = self
            .tallies
            .iter()
            .filter(|(status, _)| *status != Status::OK);
        failed.map(|(_, tally)| tally.latencies.len()).sum()
    }

    /// Requests per second.
    pub(crate) fn rps(&self) -> f64 {
        let seconds = self.elapsed.as_secs_f64();
        if seconds == 0.0 {
            return 0.0;
        }
        self.requests() as f64 / seconds
    }

    pub(crate) fn latency(&self) -> Latency {
        Latency::of(&self.latencies)
    }

    /// The most common way to fail, and what it said.
    pub(crate) fn common_failure(&self) -> Option<(Status, &str)> {
        let failed = self
            .tallies
            .iter()
            .filter(|(status, _)| *status != Status::OK);
        let (status, tally) = failed.max_by_key(|(_, tally)| tally.latencies.len())?;
        Some((*status, tally.message.as_deref().unwrap_or_default()))
    }
}

/// All that the threads record, as it comes in.
pub(super) struct Collected {
    pub(super) all: Recorder,
    /// Of what came in last.
    pub(super) latest: Histogram<u64>,
    timeline: Timeline,
}

impl Collected {
    /// Of a run that is to last so long.
    pub(super) fn new(duration: Duration) -> Self {
        Self {
            all: Recorder::new(),
            latest: histogram(),
            timeline: Timeline::new(duration),
        }
    }

    /// Takes what the threads recorded since the last time, and empties it.
    pub(super) fn take<'a>(
        &mut self,
        recorders: impl Iterator<Item = impl std::ops::DerefMut<Target = Recorder> + 'a>,
        elapsed: Duration,
    ) {
        self.latest.reset();
        for mut recorder in recorders {
            self.all.drain(&mut recorder, &mut self.latest);
        }
        self.timeline.add(&self.latest, elapsed);
    }

    pub(super) fn into_parts(self) -> (Vec<(Status, Tally)>, Traffic, Vec<Interval>) {
        let (tallies, traffic) = self.all.into_parts();
        (tallies, traffic, self.timeline.into_intervals())
    }
}

/// The intervals of a run; about so many, however long it lasts.
const INTERVALS: u32 = 120;
const INTERVAL_MIN: Duration = Duration::from_millis(100);

struct Timeline {
    width: Duration,
    begun: Duration,
    end: Duration,
    open: Histogram<u64>,
    intervals: Vec<Interval>,
}

impl Timeline {
    fn new(duration: Duration) -> Self {
        Self {
            width: (duration / INTERVALS).max(INTERVAL_MIN),
            begun: Duration::ZERO,
            end: Duration::ZERO,
            open: histogram(),
            intervals: Vec::new(),
        }
    }

    fn add(&mut self, latencies: &Histogram<u64>, elapsed: Duration) {
        // All histograms have the same bounds.
        let _ = self.open.add(latencies);
        self.end = elapsed;
        if elapsed.saturating_sub(self.begun) >= self.width {
            self.close();
        }
    }

    fn close(&mut self) {
        let seconds = self.end.saturating_sub(self.begun).as_secs_f64();
        if seconds == 0.0 {
            return;
        }
        let latency = Latency::of(&self.open);
        self.intervals.push(Interval {
            end: self.end.as_secs_f64(),
            rps: self.open.len() as f64 / seconds,
            p50: latency.p50,
            p99: latency.p99,
        });
        self.open.reset();
        self.begun = self.end;
    }

    /// What is left over is an interval too, unless it is too short to tell of a rate.
    fn into_intervals(mut self) -> Vec<Interval> {
        if self.end.saturating_sub(self.begun) * 2 >= self.width || self.intervals.is_empty() {
            self.close();
        }
        self.intervals
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_timeline_has_the_rate_of_each_interval() {
        let mut timeline = Timeline::new(Duration::from_secs(1200));
        let mut latencies = histogram();
        latencies.saturating_record_n(1000, 50);
        for second in 1..=25 {
            timeline.add(&latencies, Duration::from_secs(second));
        }
        let intervals = timeline.into_intervals();
        let ends: Vec<_> = intervals.iter().map(|interval| interval.end).collect();
        assert_eq!(ends, [10.0, 20.0, 25.0]);
        assert!(intervals.iter().all(|interval| interval.rps == 50.0));
        assert!(intervals.iter().all(|interval| interval.p99 == 1000));
    }
}
