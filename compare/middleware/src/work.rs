//! The work itself, on both sides.

use std::hint::black_box;

use bytes::BytesMut;
use quill_core::compression::{self, Encoding};
use quill_server::auth::{ApiKeyValidator, Identity};
use quill_server::metrics::MetricsCollector;
use quill_server::rate_limit::RateLimiter;

use crate::plain;

const KEY: &str = "0123456789abcdef0123456789abcdef";
const INVALID: &str = "fedcba9876543210fedcba9876543210";
/// Faster than anybody here takes from it.
const RATE: f64 = 4e9;

pub type Doer = Box<dyn FnMut(u64)>;

/// What is done, by both sides.
pub const WORKS: [(&str, fn() -> Doer, fn() -> Doer); 6] = [
    ("auth_valid", || quill_auth(KEY), || plain_auth(KEY)),
    (
        "auth_invalid",
        || quill_auth(INVALID),
        || plain_auth(INVALID),
    ),
    ("rate_limit", quill_limit, plain_limit),
    ("metrics_record", quill_metrics, plain_metrics),
    ("full_stack", || quill_stack(false), || plain_stack(false)),
    (
        "full_stack_zstd",
        || quill_stack(true),
        || plain_stack(true),
    ),
];

fn again(mut turn: impl FnMut() + 'static) -> Doer {
    Box::new(move |turns| {
        for _ in 0..turns {
            turn();
        }
    })
}

/// The one that is asked for among a hundred others.
fn names() -> impl Iterator<Item = (String, String)> {
    let others = (0..100).map(|number| (format!("key {number}"), "another".to_owned()));
    others.chain([(KEY.to_owned(), "caller".to_owned())])
}

fn quill_keys() -> ApiKeyValidator {
    names().fold(ApiKeyValidator::new(), |keys, (key, owner)| {
        keys.key(key, Identity::new(owner))
    })
}

fn quill_auth(key: &'static str) -> Doer {
    let keys = quill_keys();
    again(move || {
        black_box(keys.validate(black_box(key)));
    })
}

fn plain_auth(key: &'static str) -> Doer {
    let keys = plain::Keys::new(names());
    again(move || {
        black_box(keys.validate(black_box(key)));
    })
}

fn quill_limit() -> Doer {
    let limiter = RateLimiter::new(RATE, RATE);
    again(move || {
        black_box(limiter.try_acquire());
    })
}

fn plain_limit() -> Doer {
    let limiter = plain::Bucket::new(RATE, RATE);
    again(move || {
        black_box(limiter.try_acquire());
    })
}

fn quill_metrics() -> Doer {
    let metrics = MetricsCollector::new();
    again(move || black_box(&metrics).record_request())
}

fn plain_metrics() -> Doer {
    let metrics = plain::Metrics::default();
    again(move || black_box(&metrics).record_request())
}

fn quill_stack(compresses: bool) -> Doer {
    let (keys, limiter) = (quill_keys(), RateLimiter::new(RATE, RATE));
    let metrics = MetricsCollector::new();
    let payload = text(1024);
    let mut out = BytesMut::with_capacity(2048);
    again(move || {
        metrics.record_request();
        black_box(keys.validate(black_box(KEY)).is_some() && limiter.try_acquire());
        if compresses {
            out.clear();
            let compressed = compression::compress(Encoding::Zstd, 3, &payload, &mut out);
            compressed.expect("it compresses");
        }
        metrics.record_bytes(1024, black_box(out.len() as u64));
        metrics.record_success();
    })
}

fn plain_stack(compresses: bool) -> Doer {
    let (keys, limiter) = (plain::Keys::new(names()), plain::Bucket::new(RATE, RATE));
    let metrics = plain::Metrics::default();
    let payload = text(1024);
    again(move || {
        metrics.record_request();
        black_box(keys.validate(black_box(KEY)).is_some() && limiter.try_acquire());
        let sent = if compresses {
            plain::compress(3, &payload).len() as u64
        } else {
            0
        };
        metrics.record_bytes(1024, black_box(sent));
        metrics.record_success();
    })
}

/// 10 KB of text, compressed on both sides.
pub fn compressing(level: u8) -> (Doer, Doer) {
    let (ours, theirs) = (text(10 * 1024), text(10 * 1024));
    let mut out = BytesMut::with_capacity(20 * 1024);
    let quill = again(move || {
        out.clear();
        let compressed = compression::compress(Encoding::Zstd, level, &ours, &mut out);
        compressed.expect("it compresses");
    });
    let plain = again(move || {
        black_box(plain::compress(i32::from(level), &theirs));
    });
    (quill, plain)
}

/// Lines of a log, no two alike: what compresses as traffic does.
fn text(bytes: usize) -> Vec<u8> {
    let mut text = String::new();
    let mut state = 7_u64;
    while text.len() < bytes {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        let (user, path, took) = (state >> 44, state >> 50, (state >> 33) % 10_000);
        text.push_str(&format!(
            "{{\"level\":\"info\",\"user\":\"u{user:x}\",\"path\":\"/orders/{path}\",\"took_us\":{took}}}\n"
        ));
    }
    text.truncate(bytes);
    text.into_bytes()
}
