//! Circuit breakers.

use std::time::Duration;

use futures_util::future::join_all;
use quill::client::{BreakerState, CircuitBreaker, RetryPolicy};
use quill::{Code, Error, Idempotency};
use quill_tests_resilience::FlakyRequest;

use crate::peers::{client, failing, serve, ways};
use crate::services::{Count, ending, request, through};

fn quick() -> CircuitBreaker {
    CircuitBreaker::new()
        .calls_min(3)
        .open_for(Duration::from_millis(300))
}

#[tokio::test]
async fn open_it_calls_nobody_and_half_open_it_lets_one_of_nine_through() {
    let served = serve().await;
    for way in ways() {
        let breaker = quick();
        let mut states = breaker.watch();
        let builder = way.builder(&served.url).circuit_breaker(breaker.clone());
        // An open circuit is not knocked at again.
        let client = client(builder.retry(RetryPolicy::new()));
        let id = format!("{way:?}");
        for _ in 0..3 {
            let error = client.set(failing(&id, u32::MAX)).await.unwrap_err();
            assert_eq!(error.code(), Code::Unavailable, "{way:?}");
        }
        assert_eq!(breaker.state(), BreakerState::Open, "{way:?}");
        assert_eq!(*states.borrow_and_update(), BreakerState::Open);
        let error = client.get(failing(&id, u32::MAX)).await.unwrap_err();
        assert_eq!(error.code(), Code::Unavailable, "{way:?}");
        assert!(!error.maybe_processed(), "{way:?}");
        assert!(
            error.message().contains("circuit breaker"),
            "{way:?}: {error}"
        );
        assert_eq!(served.flaky.runs(&id), 3, "{way:?}");

        tokio::time::sleep(Duration::from_millis(310)).await;
        let probe = format!("{way:?} probe");
        let slow = || FlakyRequest {
            delay_ms: 200,
            slow: 9,
            ..failing(&probe, 0)
        };
        let answers = join_all((0..9).map(|_| client.set(slow()))).await;
        let answered = answers.iter().filter(|answer| answer.is_ok()).count();
        assert_eq!((answered, served.flaky.runs(&probe)), (1, 1), "{way:?}");
        assert_eq!(breaker.state(), BreakerState::Closed, "{way:?}");
        assert!(client.set(failing("fine", 0)).await.is_ok(), "{way:?}");
    }
}

#[tokio::test]
async fn errors_of_the_caller_open_nothing_and_streams_count_too() {
    let served = serve().await;
    for way in ways() {
        let breaker = quick();
        let client = client(way.builder(&served.url).circuit_breaker(breaker.clone()));
        let invalid = FlakyRequest {
            code: 3,
            ..failing("invalid", u32::MAX)
        };
        for _ in 0..5 {
            client.get(invalid.clone()).await.unwrap_err();
        }
        assert_eq!(breaker.state(), BreakerState::Closed, "{way:?}");
        for _ in 0..8 {
            let mut list = client
                .list(failing("list", u32::MAX))
                .await
                .unwrap()
                .into_inner();
            list.message().await.unwrap_err();
            if breaker.state() == BreakerState::Open {
                break;
            }
        }
        assert_eq!(breaker.state(), BreakerState::Open, "{way:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_probe_that_is_given_up_leaves_its_place_to_the_next() {
    let breaker = quick();
    let count = Count::default();
    let failing = ending(&count, |_| async { Err(Error::unavailable("down")) });
    for _ in 0..3 {
        let call = through(&breaker, failing.clone(), request(Idempotency::Unknown));
        call.await.unwrap_err();
    }
    assert_eq!(breaker.state(), BreakerState::Open);
    tokio::time::advance(Duration::from_millis(300)).await;
    let hanging = ending(&count, |_| std::future::pending());
    let call = through(&breaker, hanging, request(Idempotency::Unknown));
    let left = tokio::time::timeout(Duration::from_secs(1), call).await;
    assert!(left.is_err());
    let fine = ending(&count, |_| async { Ok(()) });
    through(&breaker, fine, request(Idempotency::Unknown))
        .await
        .unwrap();
    assert_eq!((breaker.state(), count.get()), (BreakerState::Closed, 5));
}
