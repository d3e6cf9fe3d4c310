//! Wall-clock times of the hot paths, by criterion.
//!
//! `cargo bench -p throttle-kit --all-features --bench ratelimit_bench`

use std::hint::black_box;
use std::net::IpAddr;
use std::pin::pin;
use std::task::{Context, Waker};

use criterion::{BatchSize, Criterion, criterion_group, criterion_main};
use throttle_kit::client_ip::{ClientIpConfig, IpNet, resolve_client_identity};
use throttle_kit::{DirectRateLimiter, InMemoryBackend, KeyedRateLimiter, Quota, RateLimiter};

/// A quota that a benchmark never spends.
fn endless() -> Quota {
    Quota::per_second(1_000_000_000)
}

fn check(c: &mut Criterion) {
    let limiter = RateLimiter::new(endless(), InMemoryBackend::new());
    c.bench_function("rate_limit_check_single_key", |b| {
        let mut cx = Context::from_waker(Waker::noop());
        b.iter(|| {
            let check = pin!(limiter.check(black_box("single-key")));
            black_box(check.poll(&mut cx))
        });
    });
    c.bench_function("rate_limit_check_now_single_key", |b| {
        b.iter(|| limiter.check_now(black_box("single-key")));
    });
    let ip: IpAddr = "203.0.113.7".parse().unwrap();
    c.bench_function("rate_limit_check_now_ip", |b| {
        b.iter(|| limiter.check_now(black_box(&ip)));
    });
    let uuid = "67e55044-10b1-426f-9247-bb680e5fe0c8";
    c.bench_function("rate_limit_check_now_uuid_text", |b| {
        b.iter(|| limiter.check_now(black_box(uuid)));
    });
    let keys: Vec<String> = (0..1000).map(|i| format!("key-{i}")).collect();
    c.bench_function("rate_limit_check_1000_keys", |b| {
        b.iter(|| {
            for key in &keys {
                let _ = black_box(limiter.check_now(key));
            }
        });
    });
    let spent = RateLimiter::new(Quota::per_hour(1), InMemoryBackend::new());
    c.bench_function("rate_limit_check_refused", |b| {
        b.iter(|| spent.check_now(black_box("single-key")));
    });
}

fn fresh(c: &mut Criterion) {
    c.bench_function("rate_limit_check_fresh_key", |b| {
        let mut key = 0_u64;
        b.iter_batched_ref(
            || RateLimiter::new(Quota::per_hour(10), InMemoryBackend::with_keys_max(10_000)),
            |limiter| {
                key += 1;
                limiter.check_now(black_box(&key))
            },
            BatchSize::NumIterations(8_000),
        );
    });
}

fn keyed(c: &mut Criterion) {
    let limiter = KeyedRateLimiter::new(endless(), InMemoryBackend::new());
    c.bench_function("keyed_check_without_overrides", |b| {
        b.iter(|| limiter.check_now(black_box("single-key")));
    });
    limiter.with_quota_for_key("single-key", endless());
    c.bench_function("keyed_check_with_override", |b| {
        b.iter(|| limiter.check_now(black_box("single-key")));
    });
    let direct = DirectRateLimiter::new(endless());
    c.bench_function("direct_check", |b| b.iter(|| direct.check_now()));
}

fn client_ip(c: &mut Criterion) {
    let trusting = ClientIpConfig {
        trusted_proxies: vec![IpNet::parse("10.0.0.0/8").unwrap()],
        num_trusted_hops: 1,
        trusted_header: None,
    };
    let forwarded = ClientIpConfig {
        num_trusted_hops: 0,
        trusted_header: Some(http::header::FORWARDED),
        ..trusting.clone()
    };
    let mut headers = http::HeaderMap::new();
    headers.insert(
        "x-forwarded-for",
        "203.0.113.7, 10.0.0.254".parse().unwrap(),
    );
    headers.insert(
        "forwarded",
        "for=\"[2001:db8::1]:4711\";proto=https".parse().unwrap(),
    );
    let peer = Some(IpAddr::from([10, 0, 0, 9]));
    c.bench_function("client_ip_resolve_trusted_proxy", |b| {
        b.iter(|| resolve_client_identity(black_box(&headers), peer, &trusting));
    });
    c.bench_function("client_ip_resolve_forwarded", |b| {
        b.iter(|| resolve_client_identity(black_box(&headers), peer, &forwarded));
    });
    let direct = ClientIpConfig::default();
    c.bench_function("client_ip_resolve_untrusted_peer", |b| {
        b.iter(|| resolve_client_identity(black_box(&headers), peer, &direct));
    });
}

criterion_group!(benches, check, fresh, keyed, client_ip);
criterion_main!(benches);
