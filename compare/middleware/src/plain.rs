//! The middleware written plainly, as one writes it first: a token bucket behind
//! mutexes, keys in a hash map, atomic counters, zstd anew for each call. What the
//! parts cost when nobody thought about it.

use std::collections::HashMap;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

/// Tokens that come back with time, as floating-point numbers; the tokens and the
/// time of the last look behind a mutex each.
pub struct Bucket {
    rate: f64,
    burst: f64,
    tokens: Mutex<f64>,
    looked: Mutex<Instant>,
}

impl Bucket {
    pub fn new(rate: f64, burst: f64) -> Self {
        Self {
            rate,
            burst,
            tokens: Mutex::new(burst),
            looked: Mutex::new(Instant::now()),
        }
    }

    pub fn try_acquire(&self) -> bool {
        let mut tokens = self.tokens.lock().expect("nobody panics");
        let mut looked = self.looked.lock().expect("nobody panics");
        let now = Instant::now();
        let came_back = now.duration_since(*looked).as_secs_f64() * self.rate;
        *tokens = (*tokens + came_back).min(self.burst);
        *looked = now;
        let passes = *tokens >= 1.0;
        if passes {
            *tokens -= 1.0;
        }
        passes
    }
}

/// Keys as they are, and their owners.
pub struct Keys(HashMap<String, String>);

impl Keys {
    pub fn new(keys: impl Iterator<Item = (String, String)>) -> Self {
        Self(keys.collect())
    }

    pub fn validate(&self, key: &str) -> Option<String> {
        self.0.get(key).cloned()
    }
}

#[derive(Default)]
pub struct Metrics {
    requests: AtomicU64,
    successes: AtomicU64,
    bytes_received: AtomicU64,
    bytes_sent: AtomicU64,
}

impl Metrics {
    pub fn record_request(&self) {
        self.requests.fetch_add(1, Ordering::Relaxed);
    }

    pub fn record_success(&self) {
        self.successes.fetch_add(1, Ordering::Relaxed);
    }

    pub fn record_bytes(&self, received: u64, sent: u64) {
        self.bytes_received.fetch_add(received, Ordering::Relaxed);
        self.bytes_sent.fetch_add(sent, Ordering::Relaxed);
    }
}

pub fn compress(level: i32, payload: &[u8]) -> Vec<u8> {
    zstd::encode_all(payload, level).expect("it compresses")
}
