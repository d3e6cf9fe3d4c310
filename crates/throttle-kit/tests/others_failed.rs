//! Inputs on which other limiters failed, and their neighbours.

use std::net::{IpAddr, Ipv6Addr};
use std::sync::Barrier;
use std::thread;
use std::time::{Duration, Instant};

use throttle_kit::{
    DirectRateLimiter, InMemoryBackend, Jitter, KeyedRateLimiter, ManualClock, NoopBackend,
    Outcome, Quota, QuotaError, RateLimiter,
};

const SECOND: Duration = Duration::from_secs(1);

fn manual(quota: Quota) -> (ManualClock, RateLimiter<InMemoryBackend<ManualClock>>) {
    let clock = ManualClock::new();
    let backend = InMemoryBackend::with_clock(1000, clock.clone());
    (clock, RateLimiter::new(quota, backend))
}

/// Rates that are no whole number of milliseconds, or nanoseconds, a cell.
#[test]
fn three_seconds_of_any_rate_admit_three_seconds_worth() {
    for rate in [
        1,
        3,
        7,
        333,
        700,
        999,
        1001,
        1024,
        5000,
        59_999,
        61_036,
        65_537,
        700_000,
        999_983,
        3_333_333,
        77_777_777,
        333_333_333,
        700_000_000,
        999_999_999,
        1_000_000_000,
    ] {
        // Asked in 30,000 instalments, each as large as can be.
        let quota = Quota::per_second(rate);
        let (clock, limiter) = manual(quota);
        let _ = limiter.check_n_now("key", rate);
        let mut admitted = 0_u64;
        for _ in 0..30_000 {
            clock.advance(SECOND / 10_000);
            let there = limiter.peek_now("key").remaining();
            if there > 0 {
                assert!(limiter.check_n_now("key", there).is_allowed());
                admitted += u64::from(there);
            }
        }
        let exact = 3 * u64::from(rate);
        assert!(admitted <= exact, "{rate}/s admitted {admitted} in 3 s");
        let least = exact as f64 * 0.999 - 1.0;
        assert!(
            admitted as f64 >= least,
            "{rate}/s admitted {admitted} in 3 s"
        );
    }
}

#[test]
fn one_a_year_is_one_a_year() {
    let year = SECOND * 60 * 60 * 24 * 365;
    let (clock, limiter) = manual(Quota::new(1, year, 1));
    assert!(limiter.check_now("key").is_allowed());
    assert_eq!(limiter.check_now("key").retry_after(), Some(year));
    clock.advance(year - Duration::from_nanos(1));
    assert!(!limiter.check_now("key").is_allowed());
    clock.advance(Duration::from_nanos(1));
    assert!(limiter.check_now("key").is_allowed());
    // And a burst of 70 of them.
    let (_, limiter) = manual(Quota::new(1, year, 70));
    assert!(limiter.check_n_now("key", 70).is_allowed());
    assert_eq!(limiter.check_now("key").reset_after(), year * 70);
}

#[test]
fn quotas_that_cannot_be_deny_all_or_are_errors() {
    for quota in [
        Quota::per_second(0),
        Quota::per_minute(0),
        Quota::per_hour(0),
        Quota::new(1, Duration::ZERO, 1),
        Quota::new(1, Duration::MAX, 1),
        Quota::per_second(5).allow_burst(0),
        Quota::per_hour(1).allow_burst(u32::MAX),
        Quota::per_second(0).allow_burst(9),
        Quota::new(u32::MAX, Duration::from_nanos(1), 1),
    ] {
        assert!(quota.denies_all(), "{quota:?}");
        let (clock, limiter) = manual(quota);
        for _ in 0..3 {
            let decision = limiter.check_now("key");
            assert_eq!(decision.outcome(), Outcome::InsufficientCapacity);
            assert_eq!(decision.retry_after(), None, "a promise that is not kept");
            assert_eq!((decision.limit(), decision.remaining()), (0, 0));
            clock.advance(SECOND * 100_000);
        }
        assert!(!limiter.check_n_now("key", 0).is_allowed());
        assert!(!DirectRateLimiter::new(quota).check_now().is_allowed());
    }
    assert_eq!(Quota::try_per_second(0), Err(QuotaError::ZeroRate));
    assert_eq!(Quota::try_new(1, SECOND, 0), Err(QuotaError::ZeroBurst));
    assert_eq!(
        Quota::try_new(1, Duration::ZERO, 1),
        Err(QuotaError::ZeroPeriod)
    );
    assert_eq!(
        Quota::try_new(1, Duration::MAX, 1),
        Err(QuotaError::TooSlow)
    );
    assert_eq!(
        Quota::try_new(9, Duration::from_nanos(1), 1),
        Err(QuotaError::TooFast)
    );
    assert_eq!(
        Quota::try_per_second(5).unwrap().try_allow_burst(0),
        Err(QuotaError::ZeroBurst)
    );
}

#[test]
fn the_fastest_quota_is_no_panic() {
    let quota = Quota::per_second(u32::MAX);
    assert!(!quota.denies_all());
    let (clock, limiter) = manual(quota);
    assert!(limiter.check_n_now("key", u32::MAX).is_allowed());
    assert!(!limiter.check_n_now("key", u32::MAX).is_allowed());
    clock.advance(SECOND * 2);
    assert!(limiter.check_n_now("key", u32::MAX).is_allowed());
}

#[test]
fn a_clock_at_its_end_is_no_panic_and_no_hang() {
    let (clock, limiter) = manual(Quota::per_hour(5));
    for now in [
        u64::MAX,
        u64::MAX - 1,
        0,
        1 << 62,
        (1 << 62) - 1,
        1 << 63,
        1,
    ] {
        clock.set_ns(now);
        for key in ["a", "b"] {
            let decision = limiter.check_now(key);
            let wait = decision.retry_after().unwrap_or_default();
            assert!(wait <= Quota::per_hour(5).window(), "locked out at {now}");
        }
    }
}

#[test]
fn more_than_the_burst_is_not_answered_later() {
    let (clock, limiter) = manual(Quota::per_second(10));
    assert!(limiter.check_n_now("key", 10).is_allowed());
    for n in [11, 12, u32::MAX] {
        let decision = limiter.check_n_now("key", n);
        assert_eq!(decision.outcome(), Outcome::InsufficientCapacity);
        assert_eq!(decision.retry_after(), None);
    }
    assert_eq!(limiter.check_n_now("key", 10).outcome(), Outcome::Denied);
    clock.advance(SECOND);
    assert!(limiter.check_n_now("key", 10).is_allowed());
}

#[test]
fn a_burst_is_whole_however_the_clock_stands() {
    // The first check of a key, and one after it was idle, at odd moments.
    for now_ns in [0, 1, 999, 1_000_000_007, 1 << 40, (1 << 60) + 12345] {
        let (clock, limiter) = manual(Quota::per_second(7).allow_burst(13));
        clock.set_ns(now_ns);
        for _ in 0..2 {
            let admitted = (0..100)
                .filter(|_| limiter.check_now("key").is_allowed())
                .count();
            assert_eq!(admitted, 13, "at {now_ns}");
            clock.advance(SECOND * 2);
        }
    }
}

#[test]
fn remaining_counts_down_to_zero() {
    let (clock, limiter) = manual(Quota::per_minute(5));
    for left in [4, 3, 2, 1, 0] {
        assert_eq!(limiter.check_now("key").remaining(), left);
    }
    assert_eq!(limiter.check_now("key").remaining(), 0);
    clock.advance(SECOND * 12);
    assert_eq!(limiter.peek_now("key").remaining(), 1);
}

#[test]
fn a_changed_quota_locks_nobody_out() {
    let clock = ManualClock::new();
    let backend = InMemoryBackend::with_clock(1000, clock.clone());
    let limiter = KeyedRateLimiter::new(Quota::per_hour(100), backend);
    assert!(limiter.check_n_now("key", 100).is_allowed());
    // From 100 an hour, all spent, to 10 a second: a second's wait at most.
    limiter.with_quota_for_key("key", Quota::per_second(10));
    let decision = limiter.check_now("key");
    assert_eq!(decision.retry_after(), Some(SECOND / 10));
    clock.advance(SECOND);
    assert!(limiter.check_n_now("key", 10).is_allowed());
    // To one that counts in another unit, and back.
    limiter.with_quota_for_key("key", Quota::per_second(1_000_000));
    let decision = limiter.check_now("key");
    assert!(!decision.is_allowed() && decision.retry_after().unwrap() <= SECOND);
    clock.advance(SECOND);
    assert!(limiter.check_n_now("key", 1_000_000).is_allowed());
    limiter.remove_quota_for_key("key");
    assert!(limiter.check_now("key").is_allowed());
}

#[test]
fn quotas_of_two_units_share_a_key_and_neither_gives_more() {
    let clock = ManualClock::new();
    let backend = InMemoryBackend::with_clock(1000, clock.clone());
    let slow = RateLimiter::new(Quota::per_second(10), backend.clone());
    let fast = RateLimiter::new(Quota::per_second(1_000_000), backend);
    let mut admitted = 0;
    for _ in 0..1000 {
        clock.advance(SECOND / 1000);
        let _ = fast.check_now("key");
        admitted += u32::from(slow.check_now("key").is_allowed());
    }
    assert!(
        admitted <= 20,
        "10 a second admitted {admitted} in a second"
    );
}

#[test]
fn clones_share_one_budget() {
    let backend = InMemoryBackend::new();
    let limiter = RateLimiter::new(Quota::per_hour(3), backend.clone());
    let other = RateLimiter::new(Quota::per_hour(3), backend.clone());
    let apart = RateLimiter::new(Quota::per_hour(3), backend).with_namespace("apart");
    assert!(limiter.clone().check_now("key").is_allowed());
    assert!(other.check_now("key").is_allowed());
    assert!(limiter.check_now("key").is_allowed());
    assert!(!other.check_now("key").is_allowed());
    assert!(apart.check_now("key").is_allowed());
    let direct = DirectRateLimiter::new(Quota::per_hour(1));
    assert!(direct.clone().check_now().is_allowed());
    assert!(!direct.check_now().is_allowed());
}

#[test]
fn threads_that_meet_a_new_key_get_one_budget() {
    for round in 0..200 {
        let limiter = RateLimiter::new(Quota::per_hour(5), InMemoryBackend::with_keys_max(10));
        let start = Barrier::new(4);
        let admitted: usize = thread::scope(|scope| {
            let threads: Vec<_> = (0..4)
                .map(|_| {
                    scope.spawn(|| {
                        start.wait();
                        (0..5)
                            .filter(|_| limiter.check_now(&round).is_allowed())
                            .count()
                    })
                })
                .collect();
            threads
                .into_iter()
                .map(|thread| thread.join().unwrap())
                .sum()
        });
        assert_eq!(admitted, 5);
    }
}

/// Many threads, many keys, a table that is much too small: no key ever gets
/// more than its burst between two evictions.
#[test]
fn a_full_table_of_live_keys_still_works() {
    let backend = InMemoryBackend::with_keys_max(64);
    let limiter = RateLimiter::new(Quota::per_hour(2), backend.clone());
    thread::scope(|scope| {
        for thread in 0..4_u64 {
            let limiter = &limiter;
            scope.spawn(move || {
                for n in 0..20_000_u64 {
                    let _ = limiter.check_now(&(n * 4 + thread));
                }
            });
        }
    });
    assert!(backend.evicted_live() > 70_000, "{backend:?}");
    assert!(backend.live_keys() <= 512);
}

#[tokio::test]
async fn a_sync_check_inside_a_runtime_is_no_panic() {
    let limiter = RateLimiter::new(Quota::per_hour(2), InMemoryBackend::new());
    assert!(limiter.check_now("key").is_allowed());
    assert!(limiter.check("key").await.is_allowed());
    assert!(!limiter.check_now("key").is_allowed());
}

#[test]
fn keys_of_many_types_are_apart_and_equal_ones_are_not() {
    let limiter = RateLimiter::new(Quota::per_hour(1), InMemoryBackend::new());
    let text = "65.65.65.65".to_owned();
    let ip: IpAddr = text.parse().unwrap();
    let allowed = [
        limiter.check_now("AAAA").is_allowed(),
        limiter.check_now(&ip).is_allowed(),
        limiter.check_now(&text).is_allowed(),
        limiter.check_now(&0x4141_4141_u32).is_allowed(),
        limiter.check_now(&("AA", "AA")).is_allowed(),
        limiter.check_now(&("A", "AAA")).is_allowed(),
        limiter.check_now(&Ipv6Addr::LOCALHOST).is_allowed(),
        limiter.check_now("").is_allowed(),
        limiter.check_now(&()).is_allowed(),
    ];
    assert!(allowed.iter().all(|allowed| *allowed), "{allowed:?}");
    let refused = [
        limiter.check_now(b"AAAA").is_allowed(),
        limiter.check_now(&String::from("AAAA")).is_allowed(),
        limiter
            .check_now(&std::net::Ipv4Addr::new(65, 65, 65, 65))
            .is_allowed(),
        limiter.check_now(&0x4141_4141_i64).is_allowed(),
        limiter.check_now(&(String::from("AA"), "AA")).is_allowed(),
    ];
    assert!(refused.iter().all(|allowed| !*allowed), "{refused:?}");
}

#[test]
fn one_clock_read_a_check() {
    let (clock, limiter) = manual(Quota::per_hour(100));
    for (checks, key) in ["new", "new", "other"].iter().enumerate() {
        let _ = limiter.check_now(*key);
        assert_eq!(clock.reads(), checks as u64 + 1);
    }
    let direct_clock = ManualClock::new();
    let direct = DirectRateLimiter::with_clock(Quota::per_hour(1), direct_clock.clone());
    let _ = (direct.check_now(), direct.check_now());
    assert_eq!(direct_clock.reads(), 2);
}

#[tokio::test(start_paused = true)]
async fn until_ready_waits_as_long_as_it_must() {
    /// Tokio's clock, so that both stand still together.
    struct TokioClock(tokio::time::Instant);
    impl throttle_kit::Clock for TokioClock {
        fn now_ns(&self) -> u64 {
            self.0.elapsed().as_nanos() as u64
        }
    }
    let clock = TokioClock(tokio::time::Instant::now());
    let backend = InMemoryBackend::with_clock(10, clock);
    let limiter = RateLimiter::new(Quota::per_second(10).allow_burst(1), backend);
    let start = tokio::time::Instant::now();
    for _ in 0..11 {
        assert!(
            limiter
                .until_ready("key", Jitter::NONE)
                .await
                .unwrap()
                .is_allowed()
        );
    }
    let waited = start.elapsed();
    assert!(
        (SECOND..SECOND + Duration::from_millis(20)).contains(&waited),
        "{waited:?}"
    );
    let jitter = Jitter::between(SECOND, SECOND);
    assert!(
        limiter
            .until_ready("key", jitter)
            .await
            .unwrap()
            .is_allowed()
    );
    let waited = start.elapsed() - waited;
    assert!((SECOND..=SECOND * 3).contains(&waited), "{waited:?}");
    let too_many = limiter
        .until_n_ready("key", 2, Jitter::NONE)
        .await
        .unwrap_err();
    assert_eq!((too_many.asked, too_many.burst), (2, 1));
}

#[test]
fn noop_allows_all_and_shadow_mode_denies_nothing() {
    let noop = RateLimiter::new(Quota::per_second(0), NoopBackend);
    assert!(noop.check_now("key").is_allowed());
    let shadow = RateLimiter::new(Quota::per_hour(1), InMemoryBackend::new()).in_shadow_mode();
    assert!(!shadow.check_now("key").is_shadowed());
    let would_be_refused = shadow.check_now("key");
    assert!(would_be_refused.is_allowed() && would_be_refused.is_shadowed());
    // It took nothing, so there is nothing to give back.
    let before = shadow.peek_now("key").reset_after();
    let _ = shadow.refund_now("key", would_be_refused);
    assert!(shadow.peek_now("key").reset_after() > before / 2);
}

/// The real clock, for once: 2,000 a second are 2,000 a second.
#[test]
fn two_thousand_a_second_by_the_real_clock() {
    let limiter = RateLimiter::new(
        Quota::per_second(2000).allow_burst(3),
        InMemoryBackend::new(),
    );
    let start = Instant::now();
    let mut admitted = 0_u32;
    while start.elapsed() < SECOND / 4 {
        admitted += u32::from(limiter.check_now("key").is_allowed());
    }
    let exact = 2000.0 * start.elapsed().as_secs_f64() + 3.0;
    assert!(
        f64::from(admitted) <= exact * 1.001 + 1.0,
        "{admitted} of {exact}"
    );
}
