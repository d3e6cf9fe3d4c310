//! Peers that are slow, silent or cut off.

use std::time::Duration;

use quill::client::{Backoff, Balance, Outliers, RetryPolicy};
use quill::{Code, Request, TransportError, TransportErrorKind};
use quill_tests_resilience::FlakyClient;
use tokio::time::Instant;

use crate::peers::{client, failing, serve, serve_named, ways};
use crate::proxy::{Mode, Proxy};

const SHORT: Duration = Duration::from_millis(200);

#[tokio::test]
async fn an_answer_that_is_cut_off_may_have_run() {
    let served = serve().await;
    for way in ways() {
        let proxy = Proxy::before(&served.url).await;
        let id = |name: &str| format!("{way:?} {name}");
        let plain = client(way.builder(&proxy.url));
        plain.set(failing("warm", 0)).await.unwrap();
        proxy.set(Mode::Cut);
        let error = plain.set(failing(id("set"), 0)).await.unwrap_err();
        assert_eq!(error.code(), Code::Unavailable, "{way:?}: {error}");
        assert!(error.maybe_processed(), "{way:?}: {error}");
        let kind = TransportError::of(&error).map(TransportError::kind);
        assert_eq!(kind, Some(TransportErrorKind::Closed), "{way:?}: {error}");
        assert_eq!(served.flaky.runs(&id("set")), 1, "{way:?}");

        let soon = Backoff::new(Duration::from_millis(50), Duration::from_millis(50));
        let policy = RetryPolicy::new().backoff(soon);
        let retrying = client(way.builder(&proxy.url).retry(policy));
        retrying.get(failing("warm", 0)).await.unwrap();
        proxy.set(Mode::Cut);
        let answer = retrying.get(failing(id("get"), 0)).await;
        assert!(answer.is_ok(), "{way:?}: {answer:?}");
        assert_eq!(served.flaky.runs(&id("get")), 2, "{way:?}");
    }
}

#[tokio::test]
async fn a_silent_server_is_left_out_by_its_deadlines() {
    let (silent, good) = (serve_named("silent").await, serve_named("good").await);
    for way in ways() {
        let proxy = Proxy::before(&silent.url).await;
        let outliers = Outliers::new().in_a_row(2);
        let balance = Balance::round_robin().eject(outliers);
        let builder = way.builder("").endpoints([&proxy.url, &good.url]);
        let client = client(builder.balance(balance).timeout(SHORT * 8));
        let ask = async || {
            client
                .get(failing("x", 0))
                .await
                .map(|answer| answer.into_inner().server)
        };
        let begun = Instant::now();
        while ask().await.ok().as_deref() != Some("silent") {
            assert!(begun.elapsed() < Duration::from_secs(30), "{way:?}");
        }
        proxy.set(Mode::Swallow);
        let mut late = 0;
        for _ in 0..20 {
            if let Err(error) = ask().await {
                assert_eq!(error.code(), Code::DeadlineExceeded, "{way:?}: {error}");
                assert!(error.maybe_processed(), "{way:?}");
                late += 1;
            }
        }
        // Two are; some of the other's may be. Without ejections 10 would be.
        assert!((2..=6).contains(&late), "{way:?}: {late}");
    }
}

#[tokio::test]
async fn a_server_that_takes_connections_and_says_nothing_holds_up_no_call() {
    let good = serve_named("good").await;
    for way in ways() {
        let proxy = Proxy::before(&good.url).await;
        proxy.set(Mode::Swallow);
        let alone = client(way.builder(&proxy.url).connect_timeout(SHORT * 3));
        let timeout = SHORT * if way.http1 { 10 } else { 100 };
        let request = Request::new(failing("x", 0)).with_timeout(timeout);
        let error = alone.set(request).await.unwrap_err();
        let transport = TransportError::of(&error);
        if way.http1 {
            // A connection of HTTP/1.1 is there as soon as the socket is.
            assert_eq!(
                (error.code(), error.maybe_processed()),
                (Code::DeadlineExceeded, true)
            );
            continue;
        }
        assert_eq!(error.code(), Code::Unavailable, "{way:?}: {error}");
        assert_eq!(
            transport.map(TransportError::kind),
            Some(TransportErrorKind::Timeout)
        );
        assert!(!error.maybe_processed(), "{way:?}");

        let builder = way.builder("").endpoints([&proxy.url, &good.url]);
        let built = builder.connect_timeout(Duration::from_secs(60)).build();
        let client = FlakyClient::new(built.unwrap());
        let begun = Instant::now();
        for _ in 0..10 {
            let answer = client.set(failing("x", 0)).await.unwrap();
            assert_eq!(answer.message().server, "good", "{way:?}");
        }
        assert!(begun.elapsed() < Duration::from_secs(30), "{way:?}");
    }
}

#[tokio::test]
async fn a_slow_way_costs_time_and_nothing_else() {
    let served = serve().await;
    for way in ways() {
        let proxy = Proxy::before(&served.url).await;
        proxy.set(Mode::Slow(Duration::from_millis(20)));
        let client = client(way.builder(&proxy.url).retry(RetryPolicy::new()));
        let id = format!("{way:?}");
        client.set(failing(&id, 0)).await.unwrap();
        assert_eq!(served.flaky.runs(&id), 1, "{way:?}");
        let hasty = Request::new(failing(&id, 0)).with_timeout(Duration::from_millis(5));
        let error = client.set(hasty).await.unwrap_err();
        assert_eq!(error.code(), Code::DeadlineExceeded, "{way:?}: {error}");
    }
}
