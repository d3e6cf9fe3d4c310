//! When requests are due, where a rate is asked for.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use tokio::sync::Semaphore;

/// Requests due at even intervals: request `n` of all threads together at
/// `start + n / rate`.
#[derive(Clone, Copy, Debug)]
pub(super) struct Schedule {
    pub(super) start: Instant,
    pub(super) rate: f64,
    pub(super) total: u64,
}

impl Schedule {
    fn due_at(&self, number: u64) -> Instant {
        self.start + Duration::from_secs_f64(number as f64 / self.rate)
    }

    /// How many are due by this time.
    fn due_by(&self, now: Instant) -> u64 {
        let elapsed = now.saturating_duration_since(self.start).as_secs_f64();
        // One is due at the start itself. The total is far below 2^53.
        ((elapsed * self.rate) as u64)
            .saturating_add(1)
            .min(self.total)
    }
}

/// The requests of one thread: every so many-th of all.
pub(super) struct Pace {
    schedule: Schedule,
    first: u64,
    step: u64,
    /// A permit for each request that is due and not begun.
    due: Semaphore,
    begun: AtomicU64,
}

/// A request that is due.
#[derive(Clone, Copy, Debug)]
pub(super) struct Due {
    pub(super) number: u64,
    pub(super) at: Instant,
}

impl Pace {
    /// The requests of thread `first` of `step` threads.
    pub(super) fn new(schedule: Schedule, first: usize, step: usize) -> Self {
        Self {
            schedule,
            first: first as u64,
            step: step as u64,
            due: Semaphore::new(0),
            begun: AtomicU64::new(0),
        }
    }

    /// Waits for the next request that nobody has begun; `None` when there are
    /// no more.
    pub(super) async fn next(&self) -> Option<Due> {
        self.due.acquire().await.ok()?.forget();
        self.begin()
    }

    /// The next request that is due by now and that nobody has begun; the inner `None`
    /// when there are no more.
    pub(super) fn try_next(&self) -> Option<Option<Due>> {
        self.due.try_acquire().ok()?.forget();
        Some(self.begin())
    }

    /// Requests that are due and were never begun.
    pub(super) fn overdue(&self, now: Instant) -> impl Iterator<Item = Due> {
        std::iter::from_fn(|| self.begin()).take_while(move |due| due.at <= now)
    }

    fn begin(&self) -> Option<Due> {
        let number = self.first + self.step * self.begun.fetch_add(1, Ordering::Relaxed);
        let at = (number < self.schedule.total).then(|| self.schedule.due_at(number))?;
        Some(Due { number, at })
    }
}

/// Tells the threads when their requests are due, from a thread of its own: a
/// runtime's timers count in milliseconds, which would be most of the latency
/// of a fast server.
pub(super) struct Pacer {
    thread: JoinHandle<()>,
    is_stopped: Arc<AtomicBool>,
}

impl Pacer {
    /// `idle_max` is how many may wait on one pace when its requests have run out.
    pub(super) fn start(schedule: Schedule, paces: Vec<Arc<Pace>>, idle_max: usize) -> Self {
        let is_stopped = Arc::new(AtomicBool::new(false));
        let stopped = Arc::clone(&is_stopped);
        let thread = thread::spawn(move || release_all(schedule, &paces, idle_max, &stopped));
        Self { thread, is_stopped }
    }
}

impl Drop for Pacer {
    fn drop(&mut self) {
        self.is_stopped.store(true, Ordering::Release);
        self.thread.thread().unpark();
    }
}

fn release_all(schedule: Schedule, paces: &[Arc<Pace>], idle_max: usize, stopped: &AtomicBool) {
    let mut released = 0;
    while released < schedule.total && !stopped.load(Ordering::Acquire) {
        let due = schedule.due_by(Instant::now());
        for pace in paces {
            let of_pace = |until: u64| until.saturating_sub(pace.first).div_ceil(pace.step);
            let more = of_pace(due) - of_pace(released);
            pace.due
                .add_permits(usize::try_from(more).unwrap_or_default());
        }
        released = due;
        let next = schedule.due_at(released);
        thread::park_timeout(next.saturating_duration_since(Instant::now()));
    }
    // Who still waits learns that there are no more.
    for pace in paces {
        pace.due.add_permits(idle_max);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn every_request_is_due_once_and_in_its_time() {
        let schedule = Schedule {
            start: Instant::now(),
            rate: 1000.0,
            total: 100,
        };
        let paces: Vec<_> = (0..3)
            .map(|first| Arc::new(Pace::new(schedule, first, 3)))
            .collect();
        let _pacer = Pacer::start(schedule, paces.clone(), 2);
        let mut numbers = Vec::new();
        for pace in &paces {
            while let Some(due) = pace.next().await {
                assert!(due.at <= Instant::now(), "{due:?} is handed out early");
                let millis = (due.at - schedule.start).as_secs_f64() * 1000.0;
                assert!((millis - due.number as f64).abs() < 0.001, "{due:?}");
                numbers.push(due.number);
            }
            // Another one that waits is let go too.
            assert!(pace.next().await.is_none());
        }
        numbers.sort_unstable();
        assert_eq!(numbers, (0..100).collect::<Vec<_>>());
    }

    #[test]
    fn what_was_never_begun_is_overdue() {
        let start = Instant::now();
        let schedule = Schedule {
            start,
            rate: 10.0,
            total: 100,
        };
        let pace = Pace::new(schedule, 1, 2);
        let now = start + Duration::from_secs(1);
        let overdue: Vec<_> = pace.overdue(now).map(|due| due.number).collect();
        assert_eq!(overdue, [1, 3, 5, 7, 9]);
    }
}
