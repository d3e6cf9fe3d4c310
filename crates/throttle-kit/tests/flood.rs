//! Ten million keys that come once, and a thousand that matter.

use std::net::{Ipv4Addr, Ipv6Addr};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use throttle_kit::{InMemoryBackend, ManualClock, Quota, RateLimiter};

const KEYS_MAX: usize = 65_536;
const LIVE: u64 = 1000;
const FLOOD: u64 = 10_000_000;

/// One test at a time: memory is the process's.
fn alone() -> MutexGuard<'static, ()> {
    static ALONE: Mutex<()> = Mutex::new(());
    ALONE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Resident memory of this process, where the system tells.
fn resident_bytes() -> Option<u64> {
    let statm = std::fs::read_to_string("/proc/self/statm").ok()?;
    let pages: u64 = statm.split_whitespace().nth(1)?.parse().ok()?;
    Some(pages * 4096)
}

#[test]
fn a_flood_costs_no_memory_and_no_state() {
    let _alone = alone();
    let clock = ManualClock::new();
    let backend = InMemoryBackend::with_clock(KEYS_MAX, clock.clone());
    let live = RateLimiter::new(Quota::per_hour(10), backend.clone()).with_namespace("live");
    let flood = RateLimiter::new(Quota::per_second(1000), backend.clone()).with_namespace("flood");
    for key in 0..LIVE {
        assert!(live.check_n_now(&key, 10).is_allowed());
    }
    let before = resident_bytes();
    for key in 0..FLOOD {
        // 40,000 keys of the flood owe something at any time: with the live
        // ones, 0.63 of what the table was made for.
        clock.advance(Duration::from_nanos(25));
        assert!(flood.check_now(&key).is_allowed());
    }
    if let (Some(before), Some(after)) = (before, resident_bytes()) {
        let grown = after.saturating_sub(before);
        assert!(grown < 2 << 20, "resident memory grew by {grown} bytes");
    }
    let forgotten = (0..LIVE)
        .filter(|key| live.check_now(key).is_allowed())
        .count();
    // 0.02 % of a thousand.
    assert_eq!(forgotten, 0, "live keys lost their state");
    let evicted = backend.evicted_live();
    assert!(
        evicted <= FLOOD / 5000,
        "{evicted} of {FLOOD} keys were evicted alive"
    );
}

#[test]
fn beyond_the_table_those_that_owe_least_go_and_are_counted() {
    let _alone = alone();
    let backend = InMemoryBackend::with_clock(KEYS_MAX, ManualClock::new());
    let limiter = RateLimiter::new(Quota::per_hour(10), backend.clone());
    for key in 0..LIVE {
        assert!(limiter.check_n_now(&key, 10).is_allowed());
    }
    // Ten times what fits, all alive for six minutes, each used once.
    let flood = 10 * KEYS_MAX as u64;
    for key in LIVE..LIVE + flood {
        assert!(limiter.check_now(&key).is_allowed());
    }
    assert!(backend.evicted_live() > 8 * KEYS_MAX as u64);
    // Whoever had spent most is remembered still.
    let forgotten = (0..LIVE)
        .filter(|key| limiter.check_now(key).is_allowed())
        .count();
    assert_eq!(forgotten, 0, "a flood bought a spent key a new budget");
}

/// Numbers, addresses and names that were counted up, which is what keys are.
#[test]
fn counted_keys_fill_the_table_evenly() {
    let _alone = alone();
    let keys_max = 1_000_000;
    let lost = |insert: &dyn Fn(&RateLimiter<InMemoryBackend<ManualClock>>, u32)| {
        let backend = InMemoryBackend::with_clock(keys_max, ManualClock::new());
        let limiter = RateLimiter::new(Quota::per_hour(10), backend.clone());
        (0..keys_max as u32).for_each(|n| insert(&limiter, n));
        backend.evicted_live()
    };
    let lost = [
        lost(&|limiter, n| assert!(limiter.check_now(&n).is_allowed())),
        lost(&|limiter, n| assert!(limiter.check_now(&(u64::from(n) << 32)).is_allowed())),
        lost(&|limiter, n| assert!(limiter.check_now(&Ipv4Addr::from(n)).is_allowed())),
        lost(&|limiter, n| {
            let network = u128::from(n) << 64;
            assert!(
                limiter
                    .check_now(&Ipv6Addr::from_bits(network))
                    .is_allowed()
            );
        }),
        lost(&|limiter, n| assert!(limiter.check_now(&format!("user-{n}")).is_allowed())),
    ];
    // 0.02 %; 0.007 % are expected.
    assert!(
        lost.iter().all(|lost| *lost <= 200),
        "{lost:?} of a million"
    );
}
