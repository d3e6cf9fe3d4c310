//! Instructions of the hot paths, each with a limit.
//!
//! `cargo bench -p throttle-kit --bench iai_hot_path`
//!
//! Every feature is on, so a check's counters are in it too (about 30 instructions).

use std::hint::black_box;
use std::net::IpAddr;
use std::pin::pin;
use std::process::ExitCode;
use std::task::{Context, Waker};

use callgrind_gate::{Case, gate, repeat};
use throttle_kit::client_ip::{ClientIpConfig, IpNet, resolve_client_identity};
use throttle_kit::{DirectRateLimiter, InMemoryBackend, KeyedRateLimiter, Quota, RateLimiter};

/// Iterations of the shorter run.
const N: u64 = 100_000;

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
        limit: 55,
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
    gate("iai_hot_path", N, CASES)
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
