//! A client's own limits, and layers of others.

use std::time::Duration;

use futures_util::future::join_all;
use quill::client::{CircuitBreaker, Quota, RateLimit, RetryPolicy};
use quill::{CallContext, Code, Deadline, Request};
use quill_tests_resilience::FlakyRequest;
use tokio::time::Instant;

use crate::peers::{client, failing, serve, ways};

#[tokio::test]
async fn calls_over_the_rate_wait_for_their_turn_or_are_not_made() {
    let served = serve().await;
    for way in ways() {
        let limit = RateLimit::new(Quota::per_second(100).allow_burst(1));
        let limited = client(way.builder(&served.url).rate_limit(limit.clone()));
        let id = format!("{way:?}");
        let begun = Instant::now();
        let calls = join_all((0..6).map(|_| limited.set(failing(&id, 0)))).await;
        assert!(calls.iter().all(Result::is_ok), "{way:?}");
        assert!(begun.elapsed() >= Duration::from_millis(50), "{way:?}");
        assert_eq!(served.flaky.runs(&id), 6);

        let slow = RateLimit::new(Quota::per_minute(1));
        let limited = client(way.builder(&served.url).rate_limit(slow.clone()));
        limited.set(failing(&id, 0)).await.unwrap();
        let hasty = Request::new(failing(&id, 0)).with_timeout(Duration::from_secs(5));
        let error = limited.set(hasty).await.unwrap_err();
        assert_eq!(error.code(), Code::ResourceExhausted, "{way:?}");
        assert!(
            !error.maybe_processed() && error.retry_after().is_some(),
            "{way:?}"
        );
        let impatient = client(
            way.builder(&served.url)
                .rate_limit(slow.wait_max(Duration::ZERO)),
        );
        let error = impatient.set(failing(&id, 0)).await.unwrap_err();
        assert_eq!(error.code(), Code::ResourceExhausted, "{way:?}");
        assert_eq!(served.flaky.runs(&id), 7, "{way:?}");
    }
}

#[tokio::test]
async fn stock_tower_layers_wrap_calls() {
    let served = serve().await;
    for way in ways() {
        let timeout = tower::timeout::TimeoutLayer::new(Duration::from_millis(500));
        let client = client(
            way.builder(&served.url)
                .layer(timeout)
                .layer(tower::limit::ConcurrencyLimitLayer::new(1)),
        );
        let id = format!("{way:?}");
        assert!(client.get(failing(&id, 0)).await.is_ok(), "{way:?}");
        let slow = FlakyRequest {
            delay_ms: 20_000,
            slow: 9,
            ..failing(&id, 0)
        };
        let error = client.get(slow).await.unwrap_err();
        assert_eq!(error.code(), Code::DeadlineExceeded, "{way:?}: {error}");
    }
}

#[tokio::test]
async fn a_call_inside_a_handler_has_its_deadline_through_all_layers() {
    let served = serve().await;
    for way in ways() {
        let builder = way.builder(&served.url).retry(RetryPolicy::new());
        let client = client(builder.circuit_breaker(CircuitBreaker::new()));
        let context = CallContext {
            deadline: Some(Deadline::within(Duration::from_millis(100))),
            trace: None,
        };
        let slow = FlakyRequest {
            delay_ms: 20_000,
            slow: 9,
            ..failing(format!("{way:?} slow"), 0)
        };
        let error = context.scope(client.get(slow)).await.unwrap_err();
        assert_eq!(error.code(), Code::DeadlineExceeded, "{way:?}: {error}");
    }
}
