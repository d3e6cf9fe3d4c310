//! Deadlines, cancellation, drains.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use futures_util::stream;
use quill::{Code, Request};

use crate::probe::{PROTOCOLS, ProbeRequest, ending, eventually, say, serve, serve_with};

const SHORT: Duration = Duration::from_millis(100);

#[tokio::test]
async fn a_deadline_ends_every_kind_of_call_on_both_sides() {
    for protocol in PROTOCOLS {
        let served = serve().await;
        let client = served.client(protocol);
        let unary = Request::new(ending("hang")).with_timeout(SHORT);
        let error = client.one(unary).await.unwrap_err();
        assert_eq!(
            error.code(),
            Code::DeadlineExceeded,
            "{protocol:?}: {error}"
        );
        eventually("the handler was dropped", || {
            served.seen.dropped.load(Ordering::SeqCst)
        })
        .await;

        let endless = Request::new(ProbeRequest {
            count: 1,
            ..ending("hang")
        })
        .with_timeout(SHORT);
        let mut answers = client.down(endless).await.unwrap().into_inner();
        let error = loop {
            match answers.message().await {
                Ok(answer) => assert!(answer.is_some(), "{protocol:?}: a clean end"),
                Err(error) => break error,
            }
        };
        assert_eq!(
            error.code(),
            Code::DeadlineExceeded,
            "{protocol:?}: {error}"
        );

        let stuck = Request::new(stream::pending::<ProbeRequest>()).with_timeout(SHORT);
        let error = client.up(stuck).await.unwrap_err();
        assert_eq!(
            error.code(),
            Code::DeadlineExceeded,
            "{protocol:?}: {error}"
        );
    }
}

#[tokio::test]
async fn the_server_alone_enforces_a_deadline_too() {
    let served = serve_with(|builder| builder.timeout_max(SHORT)).await;
    for protocol in PROTOCOLS {
        let client = served.client(protocol);
        let error = client.one(ending("hang")).await.unwrap_err();
        assert_eq!(
            error.code(),
            Code::DeadlineExceeded,
            "{protocol:?}: {error}"
        );
        let request = ProbeRequest {
            count: 1,
            ..ending("hang")
        };
        let mut answers = client.down(request).await.unwrap().into_inner();
        assert!(answers.message().await.unwrap().is_some());
        let error = answers.message().await.unwrap_err();
        assert_eq!(
            error.code(),
            Code::DeadlineExceeded,
            "{protocol:?}: {error}"
        );
    }
}

#[tokio::test]
async fn a_deadline_ends_the_handler_of_a_stream_that_nobody_reads() {
    for protocol in PROTOCOLS {
        let served =
            serve_with(|builder| builder.timeout_max(SHORT).enable_compression(false)).await;
        let client = served.client(protocol);
        let endless = ProbeRequest {
            pad_bytes: 100_000,
            ..say("x")
        };
        let answers = client.down(endless).await.unwrap();
        eventually("the handler was dropped", || {
            served.seen.dropped.load(Ordering::SeqCst)
        })
        .await;
        drop(answers);
    }
}

#[tokio::test]
async fn the_handler_sees_how_long_it_has() {
    let served = serve().await;
    for protocol in PROTOCOLS {
        let request = Request::new(say("x")).with_timeout(Duration::from_secs(60));
        let answer = served.client(protocol).one(request).await.unwrap();
        let left = answer.message().number;
        assert!(
            (50_000..=60_000).contains(&left),
            "{protocol:?}: {left} ms left"
        );
    }
}

#[tokio::test]
async fn dropping_a_call_drops_its_handler_and_fires_its_token() {
    for protocol in PROTOCOLS {
        let served = serve().await;
        let client = served.client(protocol);
        let call = tokio::time::timeout(SHORT, client.one(ending("hang"))).await;
        assert!(call.is_err(), "it hangs");
        eventually("the handler was dropped", || {
            served.seen.dropped.load(Ordering::SeqCst)
        })
        .await;
        eventually("the token fired", || {
            served.seen.token_fired.load(Ordering::SeqCst)
        })
        .await;
    }
}

#[tokio::test]
async fn dropping_a_stream_stops_its_maker() {
    for protocol in PROTOCOLS {
        let served = serve().await;
        let client = served.client(protocol);
        let endless = ProbeRequest {
            pad_bytes: 1000,
            ..say("x")
        };
        let mut answers = client.down(endless).await.unwrap().into_inner();
        assert!(answers.message().await.unwrap().is_some());
        drop(answers);
        let made = || served.seen.made.load(Ordering::SeqCst);
        let mut before = made();
        for _ in 0..100 {
            tokio::time::sleep(Duration::from_millis(20)).await;
            let now = made();
            if now == before {
                break;
            }
            before = now;
        }
        tokio::time::sleep(SHORT).await;
        assert_eq!(made(), before, "{protocol:?}: messages are still made");
    }
}

#[tokio::test]
async fn a_drain_lets_calls_end_and_cuts_at_its_limit() {
    let served = serve_with(|builder| builder.drain_limit(Duration::from_millis(300))).await;
    let client = served.client(quill::Protocol::Quill);
    let hanging = tokio::spawn({
        let client = client.clone();
        async move { client.one(ending("hang")).await }
    });
    let seen = Arc::clone(&served.seen);
    eventually("the call is under way", || {
        seen.made.load(Ordering::SeqCst) > 0
    })
    .await;
    let begun = std::time::Instant::now();
    let drained = served.server.shutdown().await;
    assert!(begun.elapsed() < Duration::from_secs(5));
    assert_eq!(drained.cut_connections, 1);
    let error = hanging.await.unwrap().unwrap_err();
    assert!(
        matches!(error.code(), Code::Unavailable | Code::Canceled),
        "{error}"
    );
}
