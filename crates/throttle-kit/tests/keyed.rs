//! Quotas of single keys, changed while the limiter is at work.

use std::thread;

use throttle_kit::{InMemoryBackend, KeyedRateLimiter, Quota};

#[test]
fn an_override_is_exact_pinned_and_removable() {
    let limiter = KeyedRateLimiter::new(Quota::per_hour(10), InMemoryBackend::new());
    assert_eq!(limiter.overrides(), 0);
    assert_eq!(limiter.with_quota_for_key("ann", Quota::per_hour(3)), None);
    // The same bytes of another kind are another key.
    let _ = limiter.with_quota_for_key(&0_u64, Quota::per_hour(5));
    assert_eq!(limiter.quota_for_key(&[0_u8; 8]), Quota::per_hour(10));
    assert_eq!(limiter.quota_for_key(&0_i32), Quota::per_hour(5));
    assert_eq!(limiter.overrides(), 2);

    let admitted = |key: &str| {
        (0..20)
            .filter(|_| limiter.check_now(key).is_allowed())
            .count()
    };
    assert_eq!((admitted("ann"), admitted("bob")), (3, 10));
    let old = limiter
        .clone()
        .with_quota_for_key("ann", Quota::per_hour(7));
    assert_eq!(old, Some(Quota::per_hour(3)), "clones share the overrides");
    assert_eq!(
        limiter.remove_quota_for_key("ann"),
        Some(Quota::per_hour(7))
    );
    assert_eq!(limiter.remove_quota_for_key("ann"), None);
    assert_eq!(limiter.quota_for_key("ann"), Quota::per_hour(10));
    assert_eq!(limiter.overrides(), 1);
}

#[test]
fn thousands_of_overrides_are_found_while_they_change() {
    let limiter = KeyedRateLimiter::new(Quota::per_hour(1), InMemoryBackend::new());
    thread::scope(|scope| {
        for thread in 0..4_u64 {
            let limiter = &limiter;
            scope.spawn(move || {
                for n in 0..2000_u64 {
                    let key = format!("customer {}", n * 4 + thread);
                    let _ = limiter.with_quota_for_key(&key, Quota::per_hour(n as u32 + 2));
                    assert_eq!(limiter.quota_for_key(&key).burst(), n as u32 + 2);
                    assert_eq!(limiter.quota_for_key("nobody").burst(), 1);
                    if n % 2 == 0 {
                        assert!(limiter.remove_quota_for_key(&key).is_some());
                    }
                }
            });
        }
    });
    assert_eq!(limiter.overrides(), 4000);
}
