//! Servers whose calls fail, though they can be connected (gRPC proposal A50).

use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

/// When a server gets no more calls for a while, since those that it had failed:
/// so many in a row, or so many of a hundred. The first time it is left out for
/// the time that is set, then for longer; some servers are always left.
///
/// A failure is an error that speaks against the server: `unavailable`,
/// `deadline_exceeded`, `internal`, `unknown`, `data_loss`.
#[derive(Clone, Debug)]
#[must_use]
pub struct Outliers {
    pub(super) in_a_row: u32,
    pub(super) percent: u32,
    pub(super) calls_min: u32,
    pub(super) interval: Duration,
    pub(super) time: Duration,
    pub(super) ejected_percent_max: usize,
}

/// A server is never left out for longer than this, or than the time that is
/// set, whichever is more.
const TIME_MAX: Duration = Duration::from_secs(300);

impl Outliers {
    /// Five failures in a row, or 85 % of 10 calls and more within 10 s; 30 s
    /// for the first time; half of the servers at most.
    pub fn new() -> Self {
        Self {
            in_a_row: 5,
            percent: 85,
            calls_min: 10,
            interval: Duration::from_secs(10),
            time: Duration::from_secs(30),
            ejected_percent_max: 50,
        }
    }

    /// So many failures in a row; 5 unless set.
    pub fn in_a_row(mut self, failures: u32) -> Self {
        self.in_a_row = failures.max(1);
        self
    }

    /// So many failures of a hundred calls, 1 to 100, when there were so many
    /// calls within the interval; 85 of 10 calls unless set.
    pub fn percent(mut self, percent: u32, calls_min: u32) -> Self {
        self.percent = percent.clamp(1, 100);
        self.calls_min = calls_min.max(1);
        self
    }

    /// Within which time calls are counted; 10 s unless set.
    pub fn interval(mut self, interval: Duration) -> Self {
        self.interval = interval.max(super::INTERVAL_MIN);
        self
    }

    /// How long a server is left out for the first time; 30 s unless set. The
    /// second time it is twice as long, and so on, up to 5 min.
    pub fn time(mut self, time: Duration) -> Self {
        self.time = time;
        self
    }

    /// So many of a hundred servers may be left out at a time; 50 unless set. One
    /// always remains.
    pub fn ejected_percent_max(mut self, percent: usize) -> Self {
        self.ejected_percent_max = percent.min(100);
        self
    }

    /// How long a server is left out that was so often before.
    pub(super) fn time_after(&self, ejections: u32) -> Duration {
        let longer = self.time.saturating_mul(ejections.saturating_add(1));
        longer.min(TIME_MAX.max(self.time))
    }

    /// Whether one more of `servers` may be left out, of which `ejected` are.
    pub(super) fn allows(&self, servers: usize, ejected: usize) -> bool {
        let most = servers * self.ejected_percent_max / 100;
        ejected < most.max(1).min(servers.saturating_sub(1))
    }
}

impl Default for Outliers {
    fn default() -> Self {
        Self::new()
    }
}

/// What became of a server's calls.
#[derive(Debug, Default)]
pub(super) struct Record {
    in_a_row: AtomicU32,
    good: AtomicU32,
    bad: AtomicU32,
}

impl Record {
    /// Notes a call's end; how many failed in a row.
    pub(super) fn note(&self, failed: bool) -> u32 {
        if failed {
            self.bad.fetch_add(1, Ordering::Relaxed);
            return self.in_a_row.fetch_add(1, Ordering::Relaxed) + 1;
        }
        self.good.fetch_add(1, Ordering::Relaxed);
        // A server whose calls succeed is written to no more than needed.
        if self.in_a_row.load(Ordering::Relaxed) != 0 {
            self.in_a_row.store(0, Ordering::Relaxed);
        }
        0
    }

    /// Begins anew.
    pub(super) fn forget(&self) {
        self.in_a_row.store(0, Ordering::Relaxed);
        self.good.store(0, Ordering::Relaxed);
        self.bad.store(0, Ordering::Relaxed);
    }

    /// Ends an interval; whether too many of its calls failed.
    pub(super) fn is_outlier(&self, outliers: &Outliers) -> bool {
        let good = u64::from(self.good.swap(0, Ordering::Relaxed));
        let bad = u64::from(self.bad.swap(0, Ordering::Relaxed));
        let calls = good + bad;
        calls >= outliers.calls_min.into() && bad * 100 >= calls * u64::from(outliers.percent)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn some_servers_always_remain() {
        let half = Outliers::new();
        for (servers, most) in [(0, 0), (1, 0), (2, 1), (3, 1), (4, 2), (10, 5)] {
            let ejected = (0..servers).take_while(|ejected| half.allows(servers, *ejected));
            assert_eq!(ejected.count(), most, "of {servers}");
        }
        let all = Outliers::new().ejected_percent_max(100);
        assert!(all.allows(3, 1) && !all.allows(3, 2));
    }

    #[test]
    fn the_time_grows_to_its_bound() {
        let outliers = Outliers::new();
        let seconds = [0, 1, 2, 9, u32::MAX].map(|n| outliers.time_after(n).as_secs());
        assert_eq!(seconds, [30, 60, 90, 300, 300]);
        let long = Outliers::new().time(Duration::MAX);
        assert_eq!(long.time_after(7), Duration::MAX);
    }

    #[test]
    fn calls_are_counted_in_a_row_and_of_a_hundred() {
        let outliers = Outliers::new().percent(50, 4);
        let record = Record::default();
        let rows = [true, true, false, true].map(|failed| record.note(failed));
        assert_eq!(rows, [1, 2, 0, 1]);
        assert!(record.is_outlier(&outliers));
        assert!(!record.is_outlier(&outliers), "the next interval is empty");
        assert_eq!(record.note(true), 2);
        record.forget();
        assert_eq!(record.note(true), 1);
    }
}
