//! The counters, as a recorder sees them.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use metrics::{Counter, Gauge, Histogram, Key, KeyName, Metadata, Recorder, SharedString, Unit};
use throttle_kit::{InMemoryBackend, Quota, RateLimiter};

/// Keeps every counter by its name and labels.
#[derive(Default)]
struct Kept(Mutex<BTreeMap<String, Arc<AtomicU64>>>);

impl Kept {
    fn read(&self) -> Vec<(String, u64)> {
        let kept = self.0.lock().unwrap();
        let read = kept
            .iter()
            .map(|(key, value)| (key.clone(), value.load(Ordering::Relaxed)));
        read.filter(|(_, value)| *value > 0).collect()
    }
}

impl Recorder for Kept {
    fn describe_counter(&self, _: KeyName, _: Option<Unit>, _: SharedString) {}
    fn describe_gauge(&self, _: KeyName, _: Option<Unit>, _: SharedString) {}
    fn describe_histogram(&self, _: KeyName, _: Option<Unit>, _: SharedString) {}

    fn register_counter(&self, key: &Key, _: &Metadata<'_>) -> Counter {
        let labels: Vec<_> = key
            .labels()
            .map(|label| format!("{}={}", label.key(), label.value()))
            .collect();
        let name = format!("{}{{{}}}", key.name(), labels.join(","));
        let mut kept = self.0.lock().unwrap();
        Counter::from_arc(Arc::clone(kept.entry(name).or_default()))
    }

    fn register_gauge(&self, _: &Key, _: &Metadata<'_>) -> Gauge {
        Gauge::noop()
    }

    fn register_histogram(&self, _: &Key, _: &Metadata<'_>) -> Histogram {
        Histogram::noop()
    }
}

#[test]
fn decisions_are_counted_and_keys_are_not_labels() {
    let kept = Kept::default();
    let mut evicted = 0;
    metrics::with_local_recorder(&kept, || {
        let backend = InMemoryBackend::new();
        let limiter = RateLimiter::new(Quota::per_hour(2), backend).with_namespace("api");
        for user in 0..100 {
            for _ in 0..3 {
                let _ = limiter.check_now(&user);
            }
        }
        let _ = limiter.check_n_now("ann", 3);
        // Looking does not count.
        let _ = limiter.peek_now("ann");
        let shadow = RateLimiter::new(Quota::per_hour(1), InMemoryBackend::new());
        let shadow = shadow.with_namespace("trial").in_shadow_mode();
        let _ = (shadow.check_now("ann"), shadow.check_now("ann"));
        let small = RateLimiter::new(Quota::per_hour(1), InMemoryBackend::with_keys_max(1));
        let small = small.with_namespace("small");
        for key in 0..1000 {
            let _ = small.check_now(&key);
        }
        evicted = small.backend().evicted_live();
    });
    assert!(evicted > 400, "{evicted}");
    let checks = |limiter: &str, outcome: &str, count: u64| {
        let labels = format!("{{limiter={limiter},outcome={outcome}}}");
        (format!("throttle_kit_checks_total{labels}"), count)
    };
    let expected = [
        checks("api", "allowed", 200),
        checks("api", "denied", 100),
        checks("api", "impossible", 1),
        checks("small", "allowed", 1000),
        checks("trial", "allowed", 1),
        checks("trial", "shadow_denied", 1),
        ("throttle_kit_evicted_live_total{}".to_owned(), evicted),
    ];
    assert_eq!(kept.read(), expected);
}
