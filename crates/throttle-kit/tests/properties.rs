//! Random quotas, costs and clocks against exact oracles.
//!
//! The oracle is a token bucket in integers: with `n` cells in a period of `p`
//! nanoseconds a cell is `p` units and a nanosecond brings `n` units, so that
//! nothing is ever rounded.

use std::time::Duration;

use proptest::prelude::*;
use throttle_kit::gcra::{self, Tat};
use throttle_kit::{Demand, InMemoryBackend, ManualClock, Operation, Outcome, Quota, RateLimiter};

/// A token bucket without rounding.
#[derive(Clone)]
struct Bucket {
    per_ns: u128,
    cell: u128,
    full: u128,
    tokens: u128,
    at_ns: u64,
}

impl Bucket {
    /// `rate_permille` of the rate that the quota was made of.
    fn new(n: u32, period_ns: u64, burst: u32, rate_permille: u128) -> Self {
        let cell = u128::from(period_ns) * 1000;
        let full = cell * u128::from(burst);
        Self {
            per_ns: u128::from(n) * rate_permille,
            cell,
            full,
            tokens: full,
            at_ns: 0,
        }
    }

    /// Lets time pass. A clock that steps back brings nothing; what it then
    /// goes forward is time that passed.
    fn advance(&mut self, now_ns: u64) {
        let passed = u128::from(now_ns.saturating_sub(self.at_ns));
        self.tokens = (self.tokens + passed * self.per_ns).min(self.full);
        self.at_ns = now_ns;
    }

    fn holds(&self, n: u32) -> bool {
        self.tokens >= self.cell * u128::from(n)
    }

    fn take(&mut self, n: u32) {
        self.tokens = self.tokens.saturating_sub(self.cell * u128::from(n));
    }
}

#[derive(Debug, Clone)]
struct Made {
    n: u32,
    period_ns: u64,
    burst: u32,
    quota: Quota,
}

/// Quotas of every speed, from one in a year to 10^9 a second.
fn quotas() -> impl Strategy<Value = Made> {
    let ns_of = |exponent: f64| 10_f64.powf(exponent) as u64;
    let fast = (1_u32..1_000_000_000, Just(1_000_000_000_u64));
    let slow = (1_u32..10, (0.0..16.5_f64).prop_map(ns_of));
    let any = (1_u32..10_000, (3.0..14.0_f64).prop_map(ns_of));
    let burst = prop_oneof![1_u32..4, 1_u32..200, 1_u32..100_000];
    (prop_oneof![fast, slow, any], burst).prop_filter_map(
        "not a quota",
        |((n, period_ns), burst)| {
            let quota = Quota::try_new(n, Duration::from_nanos(period_ns), burst).ok()?;
            // The last 0.1 % is promised up to 10^9 a second.
            let is_promised =
                u128::from(n) * 1_000_000_000 <= u128::from(period_ns) * 1_000_000_000;
            is_promised.then_some(Made {
                n,
                period_ns,
                burst,
                quota,
            })
        },
    )
}

/// Steps of a clock in shares of an interval or of a window, and what is asked.
fn steps() -> impl Strategy<Value = Vec<(u64, bool, u32)>> {
    prop::collection::vec((0_u64..3000, prop::bool::weighted(0.1), 1_u32..12), 1..300)
}

fn span(made: &Made, step: u64, is_long: bool) -> u64 {
    let unit = if is_long {
        made.quota.window()
    } else {
        made.quota.interval()
    };
    (unit.as_nanos() * u128::from(step) / 1000).min(1 << 58) as u64
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    /// At most burst + rate x time in any span, and never less than 0.999 of it.
    #[test]
    fn admits_no_more_and_no_less(made in quotas(), steps in steps()) {
        let clock = ManualClock::new();
        let backend = InMemoryBackend::with_clock(16, clock.clone());
        let limiter = RateLimiter::new(made.quota, backend);
        let mut most = Bucket::new(made.n, made.period_ns, made.burst, 1000);
        let mut least = Bucket::new(made.n, made.period_ns, made.burst, 999);
        let mut now_ns = 0_u64;
        for (step, is_long, n) in steps {
            now_ns = now_ns.saturating_add(span(&made, step, is_long)).min(1 << 61);
            clock.set_ns(now_ns);
            most.advance(now_ns);
            least.advance(now_ns);
            let decision = limiter.check_n_now("key", n);
            if decision.is_allowed() {
                prop_assert!(most.holds(n), "admitted more than the quota");
                most.take(n);
                least.take(n);
            } else {
                prop_assert!(!least.holds(n), "refused what the rate allows");
                prop_assert_eq!(decision.outcome() == Outcome::InsufficientCapacity, n > made.burst);
            }
        }
    }

    /// A clock that steps back, by a little or by years, gives nothing away and
    /// locks nobody out.
    #[test]
    fn a_clock_that_steps_back_gives_nothing(made in quotas(), steps in steps()) {
        let clock = ManualClock::new();
        let backend = InMemoryBackend::with_clock(16, clock.clone());
        let limiter = RateLimiter::new(made.quota, backend);
        let mut most = Bucket::new(made.n, made.period_ns, made.burst, 1000);
        let mut now_ns = 1_u64 << 59;
        most.at_ns = now_ns;
        for (step, is_long, n) in steps {
            let span = span(&made, step, is_long);
            now_ns = if step % 3 == 0 { now_ns.saturating_sub(span) } else { now_ns + span };
            now_ns = now_ns.min(1 << 61);
            clock.set_ns(now_ns);
            most.advance(now_ns);
            let decision = limiter.check_n_now("key", n);
            if decision.is_allowed() {
                prop_assert!(most.holds(n), "admitted more than the quota");
                most.take(n);
            } else {
                // Whatever the clock did, nobody waits longer than for a burst.
                let wait = decision.retry_after().unwrap_or_default();
                prop_assert!(wait <= made.quota.window());
                if n <= made.burst {
                    clock.advance(wait);
                    prop_assert!(limiter.peek_now("key").is_allowed() || n > 1);
                    clock.set_ns(now_ns);
                }
            }
        }
    }

    /// A retry when told passes; one before, in steps the quota counts in, does not.
    #[test]
    fn a_retry_when_told_passes_and_none_before(made in quotas(), steps in steps()) {
        let mut tat = Tat::NEVER;
        let mut now_ns = 0_u64;
        for (step, is_long, n) in steps {
            now_ns = now_ns.saturating_add(span(&made, step, is_long)).min(1 << 60);
            let step = gcra::step(tat, now_ns, &made.quota, n, Operation::Check);
            tat = step.tat;
            if let Some(wait) = step.decision.retry_after() {
                let wait_ns = wait.as_nanos() as u64;
                prop_assert!(wait_ns > 0);
                let then = gcra::step(tat, now_ns + wait_ns, &made.quota, n, Operation::Peek);
                prop_assert!(then.decision.is_allowed(), "told to wait too short");
                let before = gcra::step(tat, now_ns + wait_ns - 1, &made.quota, n, Operation::Peek);
                prop_assert!(!before.decision.is_allowed(), "told to wait too long");
            }
        }
    }

    /// `remaining` is what a check of so many would say.
    #[test]
    fn remaining_is_what_is_there(made in quotas(), steps in steps()) {
        let mut tat = Tat::NEVER;
        let mut now_ns = 0_u64;
        for (step, is_long, n) in steps {
            now_ns = now_ns.saturating_add(span(&made, step, is_long)).min(1 << 60);
            let step = gcra::step(tat, now_ns, &made.quota, n, Operation::Check);
            tat = step.tat;
            let left = step.decision.remaining();
            prop_assert!(left <= made.burst);
            let peek = |n| gcra::step(tat, now_ns, &made.quota, n, Operation::Peek).decision;
            prop_assert!(left == 0 || peek(left).is_allowed());
            prop_assert!(!peek(left + 1).is_allowed());
            let whole = now_ns + step.decision.reset_after().as_nanos() as u64;
            let then = gcra::step(tat, whole, &made.quota, 1, Operation::Peek).decision;
            prop_assert_eq!(then.remaining(), made.burst);
        }
    }

    /// No state, clock, quota or cost panics, whatever they are.
    #[test]
    fn nothing_panics(
        bits in any::<u64>(),
        now_ns in any::<u64>(),
        n in any::<u32>(),
        period_ns in any::<u64>(),
        cells in any::<u32>(),
        burst in any::<u32>(),
    ) {
        let quota = Quota::new(cells, Duration::from_nanos(period_ns), burst);
        for operation in [Operation::Check, Operation::Peek, Operation::Refund(None), Operation::Refund(Some(Tat::from_bits(bits / 2))), Operation::Reset] {
            let step = gcra::step(Tat::from_bits(bits), now_ns, &quota, n, operation);
            let _ = gcra::step(step.tat, now_ns.wrapping_add(1), &quota, n, operation);
            let decision = step.decision;
            prop_assert!(decision.remaining() <= decision.limit());
            prop_assert!(decision.reset_after() <= quota.window());
            let _ = (decision.retry_after_secs(), decision.reset_after_secs());
        }
    }

    /// What is refunded was owed, and nothing more comes back.
    #[test]
    fn a_refund_undoes_a_check_and_no_more(made in quotas(), steps in steps()) {
        let clock = ManualClock::new();
        let backend = InMemoryBackend::with_clock(16, clock.clone());
        let limiter = RateLimiter::new(made.quota, backend);
        let mut now_ns = 0_u64;
        for (step, is_long, n) in steps {
            now_ns = now_ns.saturating_add(span(&made, step, is_long)).min(1 << 60);
            clock.set_ns(now_ns);
            let before = limiter.peek_now("key").remaining();
            let decision = limiter.check_n_now("key", n);
            if step % 2 == 0 {
                let after = limiter.refund_now("key", decision).remaining();
                prop_assert_eq!(after, before);
            }
        }
    }

    /// All or nothing, whatever is asked together.
    #[test]
    fn a_joint_check_charges_all_or_none(
        budgets in prop::collection::vec(1_u32..8, 1..5),
        asked in prop::collection::vec(prop::collection::vec(0_u32..5, 4), 1..30),
    ) {
        let limiter = RateLimiter::new(
            Quota::per_hour(1),
            InMemoryBackend::with_clock(16, ManualClock::new()),
        );
        let mut left = budgets.clone();
        for asked in asked {
            let demands: Vec<_> = budgets
                .iter()
                .zip(&asked)
                .enumerate()
                .map(|(key, (budget, n))| Demand::new(&key, Quota::per_hour(*budget)).cells(*n))
                .collect();
            let fits = left.iter().zip(&asked).all(|(left, n)| n <= left);
            let joint = limiter.check_all_now(&demands);
            prop_assert_eq!(joint.decision.is_allowed(), fits);
            if fits {
                left.iter_mut().zip(&asked).for_each(|(left, n)| *left -= n);
            }
            for (demand, left) in demands.iter().zip(&left) {
                let one = limiter.check_all_now(&[demand.clone().cells(0)]);
                prop_assert_eq!(one.decision.remaining(), *left);
            }
        }
    }
}
