use std::collections::VecDeque;
use std::time::Duration;

use proptest::prelude::*;

use super::*;
use crate::backend::{Operation, SyncBackend};
use crate::clock::ManualClock;
use crate::decision::Outcome;
use crate::key::KeyRef;
use crate::limiter::RateLimiter;
use crate::quota::Quota;

fn limiter(quota: Quota) -> (ManualClock, RateLimiter<SlidingWindowBackend<ManualClock>>) {
    let clock = ManualClock::new();
    let backend = SlidingWindowBackend::with_clock(100, clock.clone());
    (clock, RateLimiter::new(quota, backend))
}

const MINUTE: Duration = Duration::from_secs(60);

#[test]
fn a_window_admits_its_limit() {
    let (clock, limiter) = limiter(Quota::per_minute(3));
    for left in [2, 1, 0] {
        assert_eq!(limiter.check_now("ann").remaining(), left);
    }
    let refused = limiter.check_now("ann");
    assert_eq!(refused.outcome(), Outcome::Denied);
    assert_eq!(refused.reset_after(), 2 * MINUTE);
    assert!(limiter.check_now("bob").is_allowed());
    // In the next window, as the weight of this one falls: a third of it.
    assert_eq!(refused.retry_after(), Some(Duration::from_secs(80)));
    clock.advance(Duration::from_secs(80) - Duration::from_nanos(1));
    assert!(!limiter.check_now("ann").is_allowed());
    clock.advance(Duration::from_nanos(1));
    assert!(limiter.check_now("ann").is_allowed());
    assert!(!limiter.check_now("ann").is_allowed());
}

#[test]
fn other_operations_do_what_they_say() {
    let (_, limiter) = limiter(Quota::per_minute(3));
    assert!(limiter.peek_now("ann").is_allowed());
    let taken = limiter.check_n_now("ann", 3);
    assert!(!limiter.peek_now("ann").is_allowed());
    assert_eq!(limiter.refund_now("ann", taken).remaining(), 3);
    assert!(limiter.check_n_now("ann", 3).is_allowed());
    assert_eq!(limiter.reset_now("ann").remaining(), 3);
    assert!(limiter.check_n_now("ann", 3).is_allowed());
    assert_eq!(
        limiter.check_n_now("ann", 4).outcome(),
        Outcome::InsufficientCapacity
    );
    assert!(limiter.check_n_now("ann", 0).is_allowed());
}

#[test]
fn a_clock_that_steps_back_frees_nothing_and_locks_nobody_out() {
    let (clock, limiter) = limiter(Quota::per_minute(3));
    clock.advance(Duration::from_secs(36_000));
    assert!(limiter.check_n_now("ann", 3).is_allowed());
    clock.set(Duration::from_secs(3_600));
    assert!(
        !limiter.check_now("ann").is_allowed(),
        "a step back gave cells"
    );
    clock.advance(2 * MINUTE);
    assert!(
        limiter.check_n_now("ann", 3).is_allowed(),
        "a step back locked out"
    );
}

#[test]
fn what_cannot_be_is_refused() {
    let (_, limiter) = limiter(Quota::per_minute(0));
    assert_eq!(
        limiter.check_now("ann").outcome(),
        Outcome::InsufficientCapacity
    );
    let (clock, limiter) = super::tests::limiter(Quota::per_second(u32::MAX));
    for now_ns in [0, 1, u64::MAX] {
        clock.set_ns(now_ns);
        let _ = limiter.check_n_now("ann", u32::MAX - 2);
        let _ = limiter.check_n_now("ann", u32::MAX);
    }
    let longest = Quota::new(1, Duration::from_secs(60 * 60 * 24 * 365), 50);
    let (clock, limiter) = super::tests::limiter(longest);
    for now_ns in [0, 1 << 61, u64::MAX] {
        clock.set_ns(now_ns);
        let _ = limiter.check_n_now("ann", 50).retry_after();
        let _ = limiter.check_n_now("ann", 50).retry_after();
    }
}

#[test]
fn windows_of_many_lengths_share_a_table() {
    let clock = ManualClock::new();
    let backend = SlidingWindowBackend::with_clock(1000, clock.clone());
    let long = RateLimiter::new(Quota::per_hour(1), backend.clone()).with_namespace("long");
    let short = RateLimiter::new(Quota::per_second(1), backend.clone()).with_namespace("short");
    for n in 0..400 {
        assert!(long.check_now(&n).is_allowed());
    }
    // Ten thousand short-lived keys come and go; those of the hour stay.
    for n in 0..10_000 {
        clock.advance(Duration::from_millis(100));
        assert!(short.check_now(&n).is_allowed());
    }
    let forgotten = (0..400).filter(|n| long.check_now(n).is_allowed()).count();
    assert_eq!(forgotten, 0);
    assert_eq!(backend.evicted_live(), 0);
}

/// The definition, with every admitted cell remembered.
struct Oracle {
    length_ns: u64,
    limit: u64,
    admitted: VecDeque<(u64, u64)>,
}

impl Oracle {
    fn counted(&self, window: u64) -> u64 {
        let in_window = |(at, _): &&(u64, u64)| at / self.length_ns == window;
        self.admitted.iter().filter(in_window).map(|(_, n)| n).sum()
    }

    /// What is used at `now`, times the window's length.
    fn used(&self, now: u64) -> u128 {
        let window = now / self.length_ns;
        let last = window.checked_sub(1).map_or(0, |last| self.counted(last));
        let left = self.length_ns - now % self.length_ns;
        u128::from(last) * u128::from(left)
            + u128::from(self.counted(window)) * u128::from(self.length_ns)
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]
    #[test]
    fn decides_as_the_definition_says(
        limit in 1_u32..50,
        length_ms in 1_u64..100_000,
        steps in prop::collection::vec((0_u64..2000, 1_u32..10), 1..200),
    ) {
        let period = Duration::from_millis(length_ms);
        let quota = Quota::new(limit, period, limit);
        let (clock, limiter) = super::tests::limiter(quota);
        let length_ns = quota.window().as_nanos() as u64;
        let mut oracle = Oracle { length_ns, limit: limit.into(), admitted: VecDeque::new() };
        let mut now = 0;
        for (step, n) in steps {
            // Mostly small steps, in thousandths of a window.
            now += step * step * length_ns / 1_000_000;
            clock.set_ns(now);
            let decision = limiter.check_n_now("ann", n);
            let asked = u128::from(n) * u128::from(length_ns);
            let used = oracle.used(now) + asked;
            let full = u128::from(oracle.limit) * u128::from(length_ns);
            // The share is rounded up by less than 1/4095 of the limit, and the
            // weight to whole cells.
            let slack = u128::from(length_ns) + full / 4095 + 1;
            if decision.is_allowed() {
                prop_assert!(used <= full, "admitted too much");
                oracle.admitted.push_back((now, n.into()));
            } else {
                prop_assert!(used + slack > full, "refused what fits");
            }
            prop_assert!(oracle.counted(now / length_ns) <= oracle.limit);
            let any_window: u64 = oracle
                .admitted
                .iter()
                .filter(|(at, _)| at + length_ns > now)
                .map(|(_, n)| n)
                .sum();
            prop_assert!(any_window <= 2 * oracle.limit);
        }
    }

    #[test]
    fn a_retry_when_told_passes_and_none_before(
        limit in 1_u32..100,
        length_ms in 1_u64..100_000,
        steps in prop::collection::vec((0_u64..1000, 1_u32..20), 1..50),
    ) {
        let quota = Quota::new(limit, Duration::from_millis(length_ms), limit);
        let (clock, limiter) = super::tests::limiter(quota);
        let length_ns = quota.window().as_nanos() as u64;
        let mut now = 0;
        for (step, n) in steps {
            now += step * length_ns / 1000;
            clock.set_ns(now);
            let decision = limiter.check_n_now("ann", n);
            if let Some(wait) = decision.retry_after() {
                let wait_ns = wait.as_nanos() as u64;
                prop_assert!(wait_ns > 0);
                clock.set_ns(now + wait_ns - 1);
                let key = KeyRef::new(crate::Kind::Bytes, b"ann");
                let before = limiter.backend().apply_now(key, &quota, n, Operation::Peek);
                prop_assert!(!before.is_allowed(), "told to wait too long");
                clock.set_ns(now + wait_ns);
                let then = limiter.backend().apply_now(key, &quota, n, Operation::Peek);
                prop_assert!(then.is_allowed(), "told to wait too short: {then:?}");
                clock.set_ns(now);
            }
        }
    }
}
