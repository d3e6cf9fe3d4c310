//! Instructions of the hot paths, by callgrind: the same on every machine, so
//! a limit on them can gate a change.
//!
//! `cargo bench -p throttle-kit --bench iai_hot_path`
//!
//! Each case runs N and 2N times under `valgrind --tool=callgrind`, which counts
//! inside of `repeat` only (making a clock measures the counter's rate, and
//! takes as many instructions as that takes time); the difference is what N
//! cost. Every feature is on, so a check's counters are in it too (about 30
//! instructions). Above its limit the bench fails. Without valgrind, or with flags that
//! are another harness's, it says so and does nothing.

#![allow(clippy::print_stdout, clippy::print_stderr)]

use std::hint::black_box;
use std::net::IpAddr;
use std::pin::pin;
use std::process::{Command, ExitCode};
use std::task::{Context, Waker};

use throttle_kit::client_ip::{ClientIpConfig, IpNet, resolve_client_identity};
use throttle_kit::{DirectRateLimiter, InMemoryBackend, KeyedRateLimiter, Quota, RateLimiter};

/// Iterations of the shorter run.
const N: u64 = 100_000;

/// A hot path: its name, the most instructions it may take, and itself.
struct Case {
    name: &'static str,
    limit: u64,
    run: fn(u64),
}

const CASES: &[Case] = &[
    Case {
        name: "check",
        limit: 212,
        run: check,
    },
    Case {
        name: "check_now",
        limit: 179,
        run: check_now,
    },
    Case {
        name: "check_now_ip",
        limit: 178,
        run: check_now_ip,
    },
    Case {
        name: "check_refused",
        limit: 414,
        run: check_refused,
    },
    Case {
        name: "check_fresh",
        limit: 1_030,
        run: check_fresh,
    },
    Case {
        name: "keyed_check",
        limit: 190,
        run: keyed_check,
    },
    Case {
        name: "direct_check",
        limit: 50,
        run: direct_check,
    },
    Case {
        name: "client_ip_trusted_proxy",
        limit: 880,
        run: client_ip_trusted_proxy,
    },
    Case {
        name: "client_ip_untrusted_peer",
        limit: 45,
        run: client_ip_untrusted_peer,
    },
];

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args()
        .skip(1)
        .filter(|arg| arg != "--bench")
        .collect();
    let args: Vec<&str> = args.iter().map(String::as_str).collect();
    match args[..] {
        [] => gate(),
        ["--run", name, n] => run(name, n),
        _ => {
            println!("iai_hot_path: takes no flags (given {args:?}), so nothing is measured");
            ExitCode::SUCCESS
        }
    }
}

/// One run, for callgrind to count.
fn run(name: &str, n: &str) -> ExitCode {
    let case = CASES.iter().find(|case| case.name == name);
    let (Some(case), Ok(n)) = (case, n.parse()) else {
        eprintln!("iai_hot_path: no case {name:?}, or {n:?} is no number");
        return ExitCode::FAILURE;
    };
    (case.run)(n);
    ExitCode::SUCCESS
}

fn gate() -> ExitCode {
    if Command::new("valgrind").arg("--version").output().is_err() {
        println!("iai_hot_path: valgrind is not installed, so nothing is measured");
        return ExitCode::SUCCESS;
    }
    let mut failed = false;
    for case in CASES {
        match instructions(case) {
            Ok(count) => {
                let verdict = if count > case.limit {
                    "ABOVE ITS LIMIT"
                } else {
                    "ok"
                };
                println!("{:28} {count:6} of {:6}  {verdict}", case.name, case.limit);
                failed |= count > case.limit;
            }
            Err(error) => {
                println!("{:28} could not be measured: {error}", case.name);
                failed = true;
            }
        }
    }
    if failed {
        ExitCode::FAILURE
    } else {
        ExitCode::SUCCESS
    }
}

/// Instructions of one iteration.
fn instructions(case: &Case) -> Result<u64, String> {
    let once = collected(case.name, N)?;
    let twice = collected(case.name, 2 * N)?;
    Ok(twice.saturating_sub(once) / N)
}

/// All instructions of a run of `n` iterations.
fn collected(name: &str, n: u64) -> Result<u64, String> {
    let this = std::env::current_exe().map_err(|error| error.to_string())?;
    let output = Command::new("valgrind")
        .args(["--tool=callgrind", "--callgrind-out-file=/dev/null"])
        .args([
            "--collect-atstart=no",
            "--toggle-collect=*iai_hot_path*repeat*",
        ])
        .arg(this)
        .args(["--run", name, &n.to_string()])
        .output()
        .map_err(|error| error.to_string())?;
    let report = String::from_utf8_lossy(&output.stderr);
    report
        .lines()
        .find_map(|line| line.split_once("Collected : "))
        .and_then(|(_, count)| count.trim().parse().ok())
        .ok_or_else(|| format!("callgrind said: {report}"))
}

/// What is counted.
#[inline(never)]
fn repeat(n: u64, mut run: impl FnMut(u64)) {
    for i in 0..n {
        run(i);
    }
}

/// A quota that a benchmark never spends.
fn endless() -> Quota {
    Quota::per_second(1_000_000_000)
}

fn check(n: u64) {
    let limiter = RateLimiter::new(endless(), InMemoryBackend::new());
    let mut cx = Context::from_waker(Waker::noop());
    repeat(n, |_| {
        let check = pin!(limiter.check(black_box("single-key")));
        let _ = black_box(check.poll(&mut cx));
    });
}

fn check_now(n: u64) {
    let limiter = RateLimiter::new(endless(), InMemoryBackend::new());
    repeat(n, |_| {
        let _ = black_box(limiter.check_now(black_box("single-key")));
    });
}

fn check_now_ip(n: u64) {
    let limiter = RateLimiter::new(endless(), InMemoryBackend::new());
    let ip: IpAddr = "203.0.113.7".parse().expect("an address");
    repeat(n, |_| {
        let _ = black_box(limiter.check_now(black_box(&ip)));
    });
}

fn check_refused(n: u64) {
    let limiter = RateLimiter::new(Quota::per_hour(1), InMemoryBackend::new());
    repeat(n, |_| {
        let _ = black_box(limiter.check_now(black_box("single-key")));
    });
}

fn check_fresh(n: u64) {
    let limiter = RateLimiter::new(Quota::per_hour(9), InMemoryBackend::with_keys_max(200_000));
    repeat(n, |key| {
        let _ = black_box(limiter.check_now(black_box(&key)));
    });
}

fn keyed_check(n: u64) {
    let limiter = KeyedRateLimiter::new(endless(), InMemoryBackend::new());
    repeat(n, |_| {
        let _ = black_box(limiter.check_now(black_box("single-key")));
    });
}

fn direct_check(n: u64) {
    let limiter = DirectRateLimiter::new(endless());
    repeat(n, |_| {
        let _ = black_box(limiter.check_now());
    });
}

fn client_ip(n: u64, config: &ClientIpConfig) {
    let mut headers = http::HeaderMap::new();
    let value = http::HeaderValue::from_static("203.0.113.7, 10.0.0.254");
    headers.insert("x-forwarded-for", value);
    let peer = Some(IpAddr::from([10, 0, 0, 9]));
    repeat(n, |_| {
        let _ = black_box(resolve_client_identity(black_box(&headers), peer, config));
    });
}

fn client_ip_trusted_proxy(n: u64) {
    let proxies = IpNet::V4 {
        addr: [10, 0, 0, 0].into(),
        prefix: 8,
    };
    let config = ClientIpConfig {
        trusted_proxies: vec![proxies],
        num_trusted_hops: 1,
        trusted_header: None,
    };
    client_ip(n, &config);
}

fn client_ip_untrusted_peer(n: u64) {
    client_ip(n, &ClientIpConfig::default());
}
