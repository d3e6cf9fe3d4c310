//! Many keys in a process of its own: memory, inserts, checks at random.

use std::hint::black_box;
use std::process::Command;
use std::time::Duration;

use rustix::time::{ClockId, clock_gettime};
use throttle_kit::{InMemoryBackend, ManualClock, Quota, RateLimiter};

use crate::keyed::{Governor, KeyText, Keyed, Ours, Owed, Registry};

/// Checks of keys at random.
const CHECKS: u64 = 4_000_000;
/// Inserts whose longest is looked for.
const BATCH: u64 = 4096;

/// What a process found.
#[derive(Debug, Clone, Copy)]
pub struct Filled {
    pub key_bytes: f64,
    pub insert_ns: f64,
    pub random_ns: f64,
    pub worst_batch_ms: f64,
    /// Of a thousand keys that owe, those that were forgotten; not a number
    /// where nobody can tell.
    pub lost_permille: f64,
}

impl Filled {
    /// The better of both: noise only adds.
    fn min(self, other: Self) -> Self {
        Self {
            key_bytes: self.key_bytes.min(other.key_bytes),
            insert_ns: self.insert_ns.min(other.insert_ns),
            random_ns: self.random_ns.min(other.random_ns),
            worst_batch_ms: self.worst_batch_ms.min(other.worst_batch_ms),
            // The worst: it is luck of the draw, not noise.
            lost_permille: self.lost_permille.max(other.lost_permille),
        }
    }
}

/// The best of `rounds` processes for each subject (ours, the registry's,
/// governor's), one after the other in turns.
pub fn fill_in_turns(keys: u64, rounds: u32) -> Result<[Filled; 3], String> {
    let mut best: [Option<Filled>; 3] = [None; 3];
    for _ in 0..rounds {
        for (best, name) in best.iter_mut().zip(["ours", "tk", "gov"]) {
            let numbers = child(&["fill", name, &keys.to_string()])?;
            let &[
                key_bytes,
                insert_ns,
                random_ns,
                worst_batch_ms,
                lost_permille,
            ] = &numbers[..]
            else {
                return Err(format!("fill {name} printed {numbers:?}"));
            };
            let filled = Filled {
                key_bytes,
                insert_ns,
                random_ns,
                worst_batch_ms,
                lost_permille,
            };
            *best = Some(best.map_or(filled, |best| best.min(filled)));
        }
    }
    let [Some(ours), Some(registry), Some(governor)] = best else {
        return Err("no rounds".to_owned());
    };
    Ok([ours, registry, governor])
}

/// By how many bytes a flood of ten million keys made a process grow.
pub fn flood_growth() -> Result<f64, String> {
    let numbers = child(&["flood"])?;
    numbers
        .first()
        .copied()
        .ok_or("flood printed nothing".to_owned())
}

/// Runs this program again; the numbers it prints.
fn child(arguments: &[&str]) -> Result<Vec<f64>, String> {
    let program = std::env::current_exe().map_err(|error| error.to_string())?;
    let output = Command::new(program)
        .args(arguments)
        .output()
        .map_err(|error| error.to_string())?;
    let printed = String::from_utf8_lossy(&output.stdout);
    if !output.status.success() {
        let error = String::from_utf8_lossy(&output.stderr);
        return Err(format!(
            "{arguments:?} ended with {}: {error}",
            output.status
        ));
    }
    let numbers = printed.split_whitespace().map(str::parse);
    numbers
        .collect::<Result<_, _>>()
        .map_err(|_| format!("{arguments:?} printed {printed}"))
}

/// What the process of one subject does: prints its figures.
pub fn fill(subject: &str, keys: u64) -> Result<(), String> {
    let filled = match subject {
        "ours" => measure::<Ours>(keys)?,
        "tk" => measure::<Registry>(keys)?,
        "gov" => measure::<Governor>(keys)?,
        other => return Err(format!("no subject {other:?}")),
    };
    let Filled {
        key_bytes,
        insert_ns,
        random_ns,
        worst_batch_ms,
        lost_permille,
    } = filled;
    println!("{key_bytes} {insert_ns} {random_ns} {worst_batch_ms} {lost_permille}");
    Ok(())
}

/// Times are the thread's own on a processor: what others do in the minutes
/// that this takes is not counted.
fn measure<L: Keyed>(keys: u64) -> Result<Filled, String> {
    let before = resident_bytes()?;
    let mut key = KeyText::new(0);
    let start = on_processor();
    let limiter = L::new(Owed::AnHour, keys as usize);
    let mut worst = Duration::ZERO;
    for first in (0..keys).step_by(BATCH as usize) {
        let start = on_processor();
        for number in first..keys.min(first + BATCH) {
            key.write(number);
            assert!(limiter.check(&key));
        }
        worst = worst.max(on_processor() - start);
    }
    let inserting = on_processor() - start;
    let key_bytes = resident_bytes()?.saturating_sub(before) as f64 / keys as f64;
    let lost_permille = limiter.live().map_or(f64::NAN, |live| {
        keys.saturating_sub(live as u64) as f64 / keys as f64 * 1e3
    });
    let random = ns_each(CHECKS, |number| {
        key.write(number % keys);
        assert!(limiter.check(&key));
    });
    // What the loop itself takes is nobody's.
    let writing = ns_each(CHECKS, |number| {
        key.write(number % keys);
        black_box(&key);
    });
    Ok(Filled {
        key_bytes,
        insert_ns: inserting.as_nanos() as f64 / keys as f64 - writing,
        random_ns: random - writing,
        worst_batch_ms: worst.as_secs_f64() * 1e3,
        lost_permille,
    })
}

/// The time of one `check` of a number at random.
fn ns_each(checks: u64, mut check: impl FnMut(u64)) -> f64 {
    let mut random = 0x9e37_79b9_7f4a_7c15_u64;
    let start = on_processor();
    for _ in 0..checks {
        random ^= random << 13;
        random ^= random >> 7;
        random ^= random << 17;
        check(random >> 16);
    }
    (on_processor() - start).as_nanos() as f64 / checks as f64
}

/// For how long this thread has been on a processor.
fn on_processor() -> Duration {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
}

fn resident_bytes() -> Result<u64, String> {
    let statm = std::fs::read_to_string("/proc/self/statm").map_err(|error| error.to_string())?;
    let pages = statm
        .split_whitespace()
        .nth(1)
        .and_then(|it| it.parse::<u64>().ok());
    let page_bytes = rustix::param::page_size() as u64;
    pages
        .map(|pages| pages * page_bytes)
        .ok_or(format!("statm is {statm}"))
}

/// A thousand keys that owe for hours, and ten million that come once: prints
/// by how many bytes the process grew, and fails if one of the thousand was
/// forgotten.
pub fn flood() -> Result<(), String> {
    let clock = ManualClock::new();
    let backend = InMemoryBackend::with_clock(65_536, clock.clone());
    let live = RateLimiter::new(Quota::per_hour(10), backend.clone()).with_namespace("live");
    let flood = RateLimiter::new(Quota::per_second(1000), backend).with_namespace("flood");
    let mut key = KeyText::new(0);
    for number in 0..1000 {
        key.write(number);
        assert!(live.check_n_now(key.as_str(), 10).is_allowed());
    }
    let before = resident_bytes()?;
    for number in 0..10_000_000 {
        clock.advance(Duration::from_nanos(25));
        key.write(number);
        assert!(flood.check_now(key.as_str()).is_allowed());
    }
    let grown = resident_bytes()?.saturating_sub(before);
    for number in 0..1000 {
        key.write(number);
        if live.check_now(key.as_str()).is_allowed() {
            return Err("a live key was forgotten".to_owned());
        }
    }
    println!("{grown}");
    Ok(())
}
