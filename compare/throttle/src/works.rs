//! The works that take one thread and no other program, by their names: what is
//! timed in turns, and what valgrind counts.

use std::hint::black_box;
use std::num::NonZeroU32;
use std::time::Duration;

use throttle_kit::{DirectRateLimiter, Quota};

use crate::identity;
use crate::keyed::{Governor, KeyText, Keyed, Ours, OursAsync, Owed, Registry};
use crate::layers;

/// Does its work as often as it is told.
pub type Work = Box<dyn FnMut(u64)>;

pub const WARM: [&str; 4] = ["warm_ours", "warm_ours_async", "warm_tk", "warm_gov"];
pub const FRESH: [&str; 3] = ["fresh_ours", "fresh_tk", "fresh_gov"];
pub const DIRECT: [&str; 4] = [
    "direct_ours",
    "direct_gov",
    "direct_ratelimit",
    "direct_leaky_bucket",
];
pub const LAYER: [&str; 4] = ["tower_bare", "tower_ours", "tower_tk", "tower_gov"];
pub const IDENTITY: [&str; 3] = ["xff_ours", "xff_tk", "xff_gov"];

/// The work of that name, made ready.
pub fn work(name: &str) -> Option<Work> {
    Some(match name {
        "warm_ours" => warm::<Ours>(),
        "warm_ours_async" => warm::<OursAsync>(),
        "warm_tk" => warm::<Registry>(),
        "warm_gov" => warm::<Governor>(),
        "fresh_ours" => fresh::<Ours>(),
        "fresh_tk" => fresh::<Registry>(),
        "fresh_gov" => fresh::<Governor>(),
        "direct_ours" => direct_ours(),
        "direct_gov" => direct_governor(),
        "direct_ratelimit" => direct_ratelimit(),
        "direct_leaky_bucket" => direct_leaky_bucket(),
        "tower_bare" => layers::bare(),
        "tower_ours" => layers::ours(),
        "tower_tk" => layers::registry(),
        "tower_gov" => layers::governor(),
        "xff_ours" => identity::ours(),
        "xff_tk" => identity::registry(),
        "xff_gov" => identity::governor(),
        _ => return None,
    })
}

/// One key, over and over.
fn warm<L: Keyed + 'static>() -> Work {
    let (limiter, key) = (L::new(Owed::Briefly, 65_536), KeyText::new(7));
    let check = move || assert!(limiter.check(black_box(&key)));
    repeat(check)
}

/// A new key each time.
fn fresh<L: Keyed + 'static>() -> Work {
    let (limiter, mut key, mut number) = (L::new(Owed::AnHour, 1 << 20), KeyText::new(0), 0);
    repeat(move || {
        number += 1;
        key.write(number);
        assert!(limiter.check(black_box(&key)));
    })
}

fn direct_ours() -> Work {
    let limiter = DirectRateLimiter::new(Quota::per_second(1_000_000_000));
    repeat(move || assert!(black_box(&limiter).check_now().is_allowed()))
}

fn direct_governor() -> Work {
    let rate = NonZeroU32::new(1_000_000_000).expect("above 0");
    let limiter = governor::DefaultDirectRateLimiter::direct(governor::Quota::per_second(rate));
    repeat(move || assert!(black_box(&limiter).check().is_ok()))
}

fn direct_ratelimit() -> Work {
    let limiter = ratelimit::Ratelimiter::builder(1_000_000_000)
        .initial_available(1_000_000_000)
        .build()
        .expect("a rate");
    repeat(move || assert!(black_box(&limiter).try_wait().is_ok()))
}

/// Its refill is no finer than a millisecond, so it begins with enough for all.
fn direct_leaky_bucket() -> Work {
    let limiter = leaky_bucket::RateLimiter::builder()
        .max(usize::MAX / 2)
        .initial(usize::MAX / 4)
        .interval(Duration::from_millis(1))
        .refill(1_000_000)
        .build();
    repeat(move || assert!(black_box(&limiter).try_acquire(1)))
}

/// `once`, as often as told.
pub fn repeat(mut once: impl FnMut() + 'static) -> Work {
    Box::new(move |turns| {
        for _ in 0..turns {
            once();
        }
    })
}
