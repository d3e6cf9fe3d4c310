//! What the parts of middleware cost.
//! `cargo bench -p quill-server --bench middleware_benchmark`

use std::hint::black_box;

use bytes::BytesMut;
use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use quill_core::Code;
use quill_core::compression::{self, Encoding};
use quill_server::auth::{ApiKeyValidator, Identity};
use quill_server::metrics::MetricsCollector;
use quill_server::rate_limit::RateLimiter;

const KEY: &str = "0123456789abcdef0123456789abcdef";
/// Faster than any bench takes from it.
const RATE: f64 = 4e9;
const BURST: f64 = 4e9;
const SIZES: [(&str, usize); 3] = [("100b", 100), ("10kb", 10 * 1024), ("1mb", 1024 * 1024)];
const LEVELS: [u8; 6] = [1, 3, 6, 9, 15, 22];
const LEVEL_DEFAULT: u8 = 3;

fn rate_limiter(criterion: &mut Criterion) {
    let limiter = RateLimiter::new(RATE, BURST);
    let mut group = criterion.benchmark_group("rate_limiter");
    group.bench_function("single_acquire", |bencher| {
        bencher.iter(|| limiter.try_acquire());
    });
    group.bench_function("bulk_acquire_10", |bencher| {
        bencher.iter(|| limiter.try_acquire_n(black_box(10)));
    });
    group.bench_function("available", |bencher| {
        bencher.iter(|| limiter.available());
    });
}

fn keys() -> ApiKeyValidator {
    let keys = ApiKeyValidator::new().key(KEY, Identity::new("caller"));
    (0..100).fold(keys, |keys, number| {
        keys.key(format!("key {number}"), Identity::new("another"))
    })
}

fn auth_validation(criterion: &mut Criterion) {
    let keys = keys();
    let mut group = criterion.benchmark_group("auth_validation");
    group.bench_function("valid_key", |bencher| {
        bencher.iter(|| keys.validate(black_box(KEY)).is_some());
    });
    group.bench_function("invalid_key", |bencher| {
        let invalid = "fedcba9876543210fedcba9876543210";
        bencher.iter(|| keys.validate(black_box(invalid)).is_some());
    });
}

fn metrics_collection(criterion: &mut Criterion) {
    let metrics = MetricsCollector::new();
    let mut group = criterion.benchmark_group("metrics_collection");
    group.bench_function("record_request", |bencher| {
        bencher.iter(|| metrics.record_request());
    });
    group.bench_function("record_success", |bencher| {
        bencher.iter(|| metrics.record_success());
    });
    group.bench_function("record_failure", |bencher| {
        bencher.iter(|| metrics.record_failure(black_box(Code::Internal)));
    });
    group.bench_function("record_bytes", |bencher| {
        bencher.iter(|| metrics.record_bytes(black_box(1024), black_box(2048)));
    });
    group.bench_function("get_snapshot", |bencher| {
        bencher.iter(|| metrics.snapshot());
    });
}

/// Lines of a log, no two alike: what compresses as traffic does.
fn text(bytes: usize) -> Vec<u8> {
    let mut text = String::with_capacity(bytes + 200);
    let mut state = 7_u64;
    while text.len() < bytes {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        let (user, status, took) = (state >> 44, 200 + (state >> 40) % 7, (state >> 33) % 10_000);
        text.push_str(&format!(
            "{{\"time\":\"2026-01-02T03:04:{:02}Z\",\"level\":\"info\",\"user\":\"u{user:x}\",\"path\":\"/orders/{}\",\"status\":{status},\"took_us\":{took}}}\n",
            state % 60,
            state >> 50,
        ));
    }
    text.truncate(bytes);
    text.into_bytes()
}

fn compress(level: u8, payload: &[u8], out: &mut BytesMut) {
    out.clear();
    compression::compress(Encoding::Zstd, level, payload, out).expect("it compresses");
}

/// Of text as traffic has it, and of zeros, of which hardly anything is left.
fn compression(criterion: &mut Criterion) {
    type Payload = fn(usize) -> Vec<u8>;
    let payloads: [(&str, Payload); 2] = [
        ("compression", text),
        ("compression_of_zeros", |bytes| vec![0; bytes]),
    ];
    for (group, payload) in payloads {
        let mut group = criterion.benchmark_group(group);
        for (name, bytes) in SIZES {
            let payload = payload(bytes);
            let mut out = BytesMut::with_capacity(2 * bytes);
            group.throughput(Throughput::Bytes(bytes as u64));
            group.bench_function(format!("compress_{name}"), |bencher| {
                bencher.iter(|| compress(LEVEL_DEFAULT, black_box(&payload), &mut out));
            });
            let small = out.clone();
            group.bench_function(format!("decompress_{name}"), |bencher| {
                bencher.iter(|| compression::decompress(Encoding::Zstd, black_box(&small), bytes));
            });
        }
    }
}

fn compression_levels(criterion: &mut Criterion) {
    let payload = text(10 * 1024);
    let mut out = BytesMut::with_capacity(2 * payload.len());
    let mut group = criterion.benchmark_group("compression_levels");
    group.throughput(Throughput::Bytes(payload.len() as u64));
    for level in LEVELS {
        group.bench_function(format!("level_{level}"), |bencher| {
            bencher.iter(|| compress(level, black_box(&payload), &mut out));
        });
    }
}

/// A key, a limit, three counts, and an answer of 1 KB compressed.
fn middleware_stack(criterion: &mut Criterion) {
    let (keys, limiter, metrics) = (
        keys(),
        RateLimiter::new(RATE, BURST),
        MetricsCollector::new(),
    );
    let payload = text(1024);
    let mut out = BytesMut::with_capacity(2 * payload.len());
    let mut group = criterion.benchmark_group("middleware_stack");
    group.bench_function("full_stack", |bencher| {
        bencher.iter(|| {
            metrics.record_request();
            let is_known = keys.validate(black_box(KEY)).is_some();
            let passes = is_known && limiter.try_acquire();
            compress(LEVEL_DEFAULT, black_box(&payload), &mut out);
            metrics.record_bytes(payload.len() as u64, out.len() as u64);
            metrics.record_success();
            passes
        });
    });
}

criterion_group!(
    benches,
    rate_limiter,
    auth_validation,
    metrics_collection,
    compression,
    compression_levels,
    middleware_stack
);
criterion_main!(benches);
