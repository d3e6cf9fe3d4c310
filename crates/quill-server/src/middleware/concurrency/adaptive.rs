//! A limit that is found by how long calls take.
//!
//! The gradient of latencies, as in Netflix' concurrency-limits ("Gradient2"): while calls
//! take as long as they do in the long run, the limit grows by the square root of itself,
//! which is the queue that it allows; once they take longer, it shrinks by as much as they
//! do. Where a tenth of the calls ends too late for their callers, a tenth of the limit goes.

use std::time::Duration;

use tokio::time::Instant;

/// A limit that is found by how long unary calls take.
///
/// It grows while there are enough calls to use it and they do not take longer for it,
/// and shrinks when they do, or when a tenth of them ends too late for their callers.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct AdaptiveLimit {
    /// Where it starts. 100 by default.
    pub initial: usize,
    /// The least that it may become, 1 or more. 10 by default.
    pub least: usize,
    /// The most that it may become. 2,000 by default.
    pub most: usize,
    /// How many times longer than in the long run calls may take before it shrinks, 1.0
    /// or more; more lets calls queue in the server. 1.5 by default.
    pub tolerance: f64,
}

impl Default for AdaptiveLimit {
    fn default() -> Self {
        Self {
            initial: 100,
            least: 10,
            most: 2_000,
            tolerance: 1.5,
        }
    }
}

/// How long calls are looked at together, and how many they must be.
const WINDOW: Duration = Duration::from_millis(200);
const WINDOW_CALLS: u32 = 20;
/// Windows that the long run is made of: two minutes at least.
const LONG_RUN: f64 = 600.0;
/// Windows until the long run is a mean of that many.
const WARM_UP: f64 = 10.0;
/// How much of a new limit is taken over at once.
const SMOOTHING: f64 = 0.2;
/// What is left of a limit in one window, at least.
const GRADIENT_MIN: f64 = 0.5;
const AFTER_LATE: f64 = 0.9;
/// The limit is lowered where one of so many calls is late: what a single caller asks for
/// in too short a time says nothing of the server.
const LATE_OF: u32 = 10;

/// The limit, and what it goes by.
#[derive(Debug)]
pub(super) struct Gradient {
    settings: AdaptiveLimit,
    limit: f64,
    /// How long calls take in the long run, in seconds, and of how many windows.
    long: f64,
    windows: f64,
    window: Window,
}

/// Calls that are looked at together.
#[derive(Debug)]
struct Window {
    since: Instant,
    calls: u32,
    seconds: f64,
    /// As many as there were at once.
    in_flight: usize,
    late: u32,
}

/// How a call ended that says something about the limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Sample {
    /// It was answered after so long.
    Took(Duration),
    /// Its deadline passed before.
    Late,
}

impl AdaptiveLimit {
    /// The same within what can be: a mistake here must not keep a server from serving.
    fn settled(self) -> Self {
        let least = self.least.max(1);
        let most = self.most.max(least);
        Self {
            initial: self.initial.clamp(least, most),
            least,
            most,
            tolerance: self.tolerance.max(1.0),
        }
    }
}

impl Gradient {
    pub(super) fn new(settings: AdaptiveLimit, now: Instant) -> Self {
        let settings = settings.settled();
        Self {
            limit: settings.initial as f64,
            settings,
            long: 0.0,
            windows: 0.0,
            window: Window::new(now),
        }
    }

    pub(super) fn limit(&self) -> usize {
        self.limit as usize
    }

    /// A call ended, of so many that were under way.
    pub(super) fn sample(&mut self, sample: Sample, in_flight: usize, now: Instant) {
        let window = &mut self.window;
        window.in_flight = window.in_flight.max(in_flight);
        match sample {
            Sample::Took(time) => {
                window.calls += 1;
                window.seconds += time.as_secs_f64();
            }
            Sample::Late => window.late += 1,
        }
        let is_full = window.calls + window.late >= WINDOW_CALLS;
        if is_full && now.saturating_duration_since(window.since) >= WINDOW {
            let window = std::mem::replace(window, Window::new(now));
            self.settle(&window);
        }
    }

    fn settle(&mut self, window: &Window) {
        let gradient = (window.calls > 0).then(|| self.gradient(window));
        // Calls that do not use the limit say nothing of whether it is right.
        if 2 * window.in_flight < self.limit() {
            return;
        }
        let limit = match gradient {
            Some(gradient) if !window.is_late() => {
                let next = self.limit * gradient + self.limit.sqrt();
                self.limit + SMOOTHING * (next - self.limit)
            }
            _ => self.limit * AFTER_LATE,
        };
        let AdaptiveLimit { least, most, .. } = self.settings;
        self.limit = limit.clamp(least as f64, most as f64);
    }

    /// How long calls may take against how long they took.
    fn gradient(&mut self, window: &Window) -> f64 {
        let short = (window.seconds / f64::from(window.calls)).max(1e-9);
        self.windows = (self.windows + 1.0).min(LONG_RUN);
        let weight = if self.windows <= WARM_UP {
            self.windows
        } else {
            LONG_RUN
        };
        self.long += (short - self.long) / weight;
        // After a long time of overload, what was learned then is unlearned soon.
        if self.long > 2.0 * short {
            self.long *= 0.95;
        }
        (self.settings.tolerance * self.long / short).clamp(GRADIENT_MIN, 1.0)
    }
}

impl Window {
    fn new(since: Instant) -> Self {
        Self {
            since,
            calls: 0,
            seconds: 0.0,
            in_flight: 0,
            late: 0,
        }
    }

    fn is_late(&self) -> bool {
        self.late * LATE_OF >= self.calls + self.late
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A service that works on so many calls at once, 10 ms each, with callers who send
    /// as many as they may.
    fn after(limit: &mut Gradient, now: &mut Instant, windows: usize, capacity: f64) -> usize {
        for _ in 0..windows {
            let in_flight = limit.limit();
            let queueing = (in_flight as f64 / capacity).max(1.0);
            let took = Duration::from_secs_f64(0.010 * queueing);
            *now += WINDOW;
            for _ in 0..WINDOW_CALLS {
                limit.sample(Sample::Took(took), in_flight, *now);
            }
        }
        limit.limit()
    }

    fn gradient(now: Instant) -> Gradient {
        let settings = AdaptiveLimit {
            initial: 20,
            least: 5,
            most: 1_000,
            ..AdaptiveLimit::default()
        };
        Gradient::new(settings, now)
    }

    #[test]
    fn it_finds_what_the_service_can_do_and_follows_it() {
        let mut now = Instant::now();
        let mut limit = gradient(now);
        let found = after(&mut limit, &mut now, 100, 100.0);
        assert!((100..=250).contains(&found), "{found}");
        let slower = after(&mut limit, &mut now, 60, 40.0);
        assert!((20..=110).contains(&slower), "{slower}");
        let faster = after(&mut limit, &mut now, 120, 200.0);
        assert!((180..=500).contains(&faster), "{faster}");
    }

    #[test]
    fn without_calls_that_use_it_it_stays() {
        let mut now = Instant::now();
        let mut limit = gradient(now);
        for _ in 0..1_000 {
            now += Duration::from_millis(20);
            limit.sample(Sample::Took(Duration::from_millis(1)), 9, now);
        }
        assert_eq!(limit.limit(), 20);
    }

    #[test]
    fn it_waits_for_enough_calls_and_enough_time() {
        let mut now = Instant::now();
        let mut limit = gradient(now);
        let fast = Sample::Took(Duration::from_millis(1));
        for _ in 0..1_000 {
            limit.sample(fast, 20, now);
        }
        assert_eq!(limit.limit(), 20, "no time has passed");
        now += WINDOW;
        limit.sample(fast, 20, now);
        assert!(limit.limit.floor() > 19.9 && limit.limit > 20.5);
        let grown = limit.limit;
        now += 10 * WINDOW;
        limit.sample(fast, 20, now);
        assert!((limit.limit - grown).abs() < 1e-9, "one call says little");
    }

    /// A window in which so many calls ended, and so many of them late.
    fn window(limit: &mut Gradient, now: &mut Instant, calls: u32, late: u32, in_flight: usize) {
        *now += WINDOW;
        let fast = Sample::Took(Duration::from_millis(1));
        for call in 0..calls {
            let sample = if call < late { Sample::Late } else { fast };
            limit.sample(sample, in_flight, *now);
        }
    }

    #[test]
    fn a_tenth_that_ends_too_late_takes_a_tenth_down_to_the_least() {
        for late in [2, WINDOW_CALLS] {
            let mut now = Instant::now();
            let mut limit = gradient(now);
            window(&mut limit, &mut now, WINDOW_CALLS, late, 20);
            assert_eq!(limit.limit(), 18);
            for _ in 0..100 {
                window(&mut limit, &mut now, WINDOW_CALLS, late, 20);
            }
            assert_eq!(limit.limit(), 5);
        }
    }

    #[test]
    fn a_few_that_end_too_late_take_nothing() {
        let mut now = Instant::now();
        let mut limit = gradient(now);
        for _ in 0..10 {
            window(&mut limit, &mut now, 1, 1, 20);
        }
        assert_eq!(limit.limit(), 20, "there are too few");
        let mut limit = gradient(now);
        window(&mut limit, &mut now, WINDOW_CALLS, WINDOW_CALLS, 9);
        assert_eq!(limit.limit(), 20, "the limit is not used");
        window(&mut limit, &mut now, WINDOW_CALLS, 1, 20);
        assert!(limit.limit > 20.0, "one of twenty is its caller's doing");
    }

    #[test]
    fn what_cannot_be_is_made_what_can() {
        let settings = AdaptiveLimit {
            initial: 0,
            least: 0,
            most: 0,
            tolerance: f64::NAN,
        };
        let expected = AdaptiveLimit {
            initial: 1,
            least: 1,
            most: 1,
            tolerance: 1.0,
        };
        assert_eq!(settings.settled(), expected);
    }
}
