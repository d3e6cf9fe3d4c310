//! Time, as the in-memory stores read it: once a check.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Weak};
use std::time::Duration;

/// Nanoseconds since a moment of the clock's choice.
///
/// It should not go back; if it does, no key is locked out for longer than its
/// burst takes to come back, and none is admitted more than the step allows.
pub trait Clock: Send + Sync + 'static {
    /// Now. Only the lower 62 bits are looked at: 146 years.
    fn now_ns(&self) -> u64;
}

impl<C: Clock + ?Sized> Clock for Arc<C> {
    #[inline]
    fn now_ns(&self) -> u64 {
        (**self).now_ns()
    }
}

/// The processor's time stamp counter where it is constant and synchronous,
/// else the operating system's monotonic clock.
///
/// A check costs little more than reading the clock, so this matters: about
/// 10 ns by the counter, 25 ns by `Instant` on the machine of `PERF-SLO.md`. The first one
/// made in a process measures the counter's rate, which takes up to 200 ms;
/// create limiters at start-up.
#[derive(Debug, Clone)]
pub struct SystemClock {
    clock: quanta::Clock,
    /// The counter's reading at time 0.
    origin: u64,
    /// Nanoseconds in 2^32 counts.
    scale: u64,
}

impl SystemClock {
    /// A clock that starts near 0.
    #[must_use]
    pub fn new() -> Self {
        let clock = quanta::Clock::new();
        Self {
            // A little earlier: another core's counter may be behind by a few counts.
            origin: clock.raw().wrapping_sub(1 << 20),
            scale: clock.delta_as_nanos(0, 1 << 32),
            clock,
        }
    }
}

impl Default for SystemClock {
    fn default() -> Self {
        Self::new()
    }
}

impl Clock for SystemClock {
    #[inline]
    fn now_ns(&self) -> u64 {
        let counts = self.clock.raw().wrapping_sub(self.origin);
        ((u128::from(counts) * u128::from(self.scale)) >> 32) as u64
    }
}

/// A clock that a thread moves every `tick`; reading it costs one load.
///
/// It is late by up to a tick and what the thread is kept from running. A late
/// clock refuses what a punctual one might admit, and then admits it a tick
/// later: since a key's first check never more than burst + rate x time, but
/// within a span as much more as comes back in the time it was late. The thread
/// ends when the last clone is dropped.
#[derive(Debug, Clone)]
pub struct TickClock {
    now: Arc<AtomicU64>,
}

impl TickClock {
    /// Starts the thread. A tick below 1 ms is taken as 1 ms.
    ///
    /// # Errors
    ///
    /// If the operating system gives no thread.
    pub fn start(tick: Duration) -> std::io::Result<Self> {
        let tick = tick.max(Duration::from_millis(1));
        let clock = SystemClock::new();
        let now = Arc::new(AtomicU64::new(clock.now_ns()));
        let moved = Arc::downgrade(&now);
        std::thread::Builder::new()
            .name("throttle-kit tick".to_owned())
            .spawn(move || tick_on(&moved, &clock, tick))?;
        Ok(Self { now })
    }
}

/// Moves `moved` until nobody holds it any more.
#[expect(
    clippy::disallowed_methods,
    reason = "it sleeps on a thread of its own"
)]
fn tick_on(moved: &Weak<AtomicU64>, clock: &SystemClock, tick: Duration) {
    while let Some(now) = moved.upgrade() {
        now.store(clock.now_ns(), Ordering::Relaxed);
        drop(now);
        std::thread::sleep(tick);
    }
}

impl Clock for TickClock {
    #[inline]
    fn now_ns(&self) -> u64 {
        self.now.load(Ordering::Relaxed)
    }
}

/// A clock that a test moves. Clones are one clock.
#[cfg(any(test, feature = "test-util"))]
#[derive(Debug, Clone, Default)]
pub struct ManualClock {
    now: Arc<AtomicU64>,
    reads: Arc<AtomicU64>,
}

#[cfg(any(test, feature = "test-util"))]
impl ManualClock {
    /// A clock that stands at 0.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Moves it on.
    pub fn advance(&self, span: Duration) {
        self.now
            .fetch_add(span.as_nanos() as u64, Ordering::Relaxed);
    }

    /// Sets it, also back.
    pub fn set(&self, since_start: Duration) {
        self.set_ns(u64::try_from(since_start.as_nanos()).unwrap_or(u64::MAX));
    }

    /// Sets it to so many nanoseconds, also back.
    pub fn set_ns(&self, now_ns: u64) {
        self.now.store(now_ns, Ordering::Relaxed);
    }

    /// How often it was read.
    #[must_use]
    pub fn reads(&self) -> u64 {
        self.reads.load(Ordering::Relaxed)
    }
}

#[cfg(any(test, feature = "test-util"))]
impl Clock for ManualClock {
    fn now_ns(&self) -> u64 {
        self.reads.fetch_add(1, Ordering::Relaxed);
        self.now.load(Ordering::Relaxed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Instant;

    #[test]
    fn the_system_clock_keeps_the_time_of_instant() {
        let clock = SystemClock::new();
        let (ours, theirs) = (clock.now_ns(), Instant::now());
        while theirs.elapsed() < Duration::from_millis(100) {
            std::hint::spin_loop();
        }
        let ours = (clock.now_ns() - ours) as f64;
        let theirs = theirs.elapsed().as_nanos() as f64;
        assert!(
            (ours / theirs - 1.0).abs() < 0.01,
            "{ours} ns against {theirs}"
        );
    }

    #[test]
    fn the_tick_clock_moves_and_its_thread_ends() {
        let clock = TickClock::start(Duration::ZERO).unwrap();
        let before = clock.now_ns();
        let deadline = Instant::now() + Duration::from_secs(10);
        while clock.now_ns() == before {
            assert!(Instant::now() < deadline, "the clock stands still");
            std::thread::yield_now();
        }
        let gone = Arc::downgrade(&clock.now);
        drop(clock);
        while gone.upgrade().is_some() {
            assert!(Instant::now() < deadline, "the thread holds the clock");
            std::thread::yield_now();
        }
    }
}
