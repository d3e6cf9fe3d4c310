//! Calls that are made again.

use std::future::poll_fn;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use futures_util::{StreamExt, stream};
use quill::client::{Answer, Backoff, RetryBudget, RetryLayer, RetryPolicy};
use quill::{
    Code, Error, Idempotency, Metadata, Protocol, Pushback, Request, Response, TransportError,
    TransportErrorKind,
};
use quill_core::Inbound;
use quill_tests_resilience::FlakyRequest;
use tokio::time::Instant;
use tower::{Layer, ServiceExt};

use crate::peers::{Way, builder, client, closed_url, failing, serve, ways};
use crate::services::{Count, ending, request, through};

const SOON: Backoff = Backoff::new(Duration::from_millis(1), Duration::from_millis(5));

fn soon() -> RetryPolicy {
    RetryPolicy::new().backoff(SOON)
}

fn is_grpc(way: Way) -> bool {
    matches!(
        way.protocol,
        Protocol::Grpc | Protocol::GrpcWeb | Protocol::GrpcWebText
    )
}

#[tokio::test]
async fn what_may_be_repeated_is_and_what_may_not_is_not() {
    let served = serve().await;
    for way in ways() {
        let client = client(way.builder(&served.url).retry(soon()));
        let id = |name: &str| format!("{way:?} {name}");
        let answer = client.get(failing(id("get"), 2)).await;
        let answer = answer
            .unwrap_or_else(|error| panic!("{way:?}: {error:?}"))
            .into_inner();
        assert_eq!(answer.run, 3, "{way:?}");
        if is_grpc(way) {
            assert_eq!(answer.previous_attempts, 2, "{way:?}");
        }
        let error = client.set(failing(id("set"), 1)).await.unwrap_err();
        assert_eq!(error.code(), Code::Unavailable, "{way:?}");
        assert!(error.maybe_processed());
        assert!(
            TransportError::of(&error).is_none(),
            "the server has answered"
        );
        assert_eq!(served.flaky.runs(&id("set")), 1, "{way:?}");
        // Attempts end.
        let error = client.get(failing(id("always"), 9)).await.unwrap_err();
        assert_eq!(error.code(), Code::Unavailable, "{way:?}");
        assert_eq!(served.flaky.runs(&id("always")), 4, "{way:?}");
        // Another code says that the call is wrong.
        let invalid = FlakyRequest {
            code: 3,
            ..failing(id("invalid"), 1)
        };
        let error = client.get(invalid).await.unwrap_err();
        assert_eq!(error.code(), Code::InvalidArgument, "{way:?}");
        assert_eq!(served.flaky.runs(&id("invalid")), 1, "{way:?}");
    }
}

#[tokio::test]
async fn a_policy_of_its_own_says_that_a_method_may_be_repeated() {
    let served = serve().await;
    for way in ways() {
        let layer = RetryLayer::new(soon()).method("/flaky.v1.FlakyService/Set", soon());
        let client = client(way.builder(&served.url).retry(layer));
        let id = format!("{way:?}");
        let answer = client.set(failing(&id, 1)).await.unwrap();
        assert_eq!(
            (answer.message().run, served.flaky.runs(&id)),
            (2, 2),
            "{way:?}"
        );
    }
}

#[tokio::test]
async fn streams_are_made_again_until_the_first_answer() {
    let served = serve().await;
    for way in ways() {
        let client = client(way.builder(&served.url).retry(soon()));
        let id = |name: &str| format!("{way:?} {name}");

        let list = client
            .list(failing(id("list"), 2))
            .await
            .unwrap()
            .into_inner();
        let answers: Vec<_> = list.collect().await;
        assert_eq!(answers.len(), 1, "{way:?}");
        assert_eq!(answers[0].as_ref().unwrap().run, 3, "{way:?}");

        // A message has come: it could come twice.
        let begun = FlakyRequest {
            count: 1,
            ..failing(id("begun"), 1)
        };
        let list = client.list(begun).await.unwrap().into_inner();
        let answers: Vec<_> = list.collect().await;
        assert_eq!(answers.len(), 2, "{way:?}");
        assert_eq!(answers[1].as_ref().unwrap_err().code(), Code::Unavailable);
        assert_eq!(served.flaky.runs(&id("begun")), 1, "{way:?}");

        let request = failing(id("load"), 2);
        let answer = client.load(stream::iter(vec![request; 10])).await;
        let answer = answer
            .unwrap_or_else(|error| panic!("{way:?}: {error:?}"))
            .into_inner();
        assert_eq!((answer.run, answer.messages), (3, 10), "{way:?}");

        let request = failing(id("chat"), 2);
        let chat = client.chat(stream::iter(vec![request; 3])).await.unwrap();
        let answers: Vec<_> = chat.into_inner().collect().await;
        let runs: Vec<_> = answers
            .into_iter()
            .map(|answer| answer.unwrap().run)
            .collect();
        assert_eq!(runs, [3, 4, 5], "{way:?}");
    }
}

#[tokio::test]
async fn a_request_over_the_buffer_is_not_made_again() {
    let served = serve().await;
    for way in ways() {
        let layer = RetryLayer::new(soon()).buffer_bytes_max(10_000);
        let client = client(way.builder(&served.url).retry(layer));
        for (count, runs) in [(2, 2), (20, 1)] {
            let id = format!("{way:?} {count}");
            let request = FlakyRequest {
                pad: vec![7; 1000],
                ..failing(&id, 1)
            };
            let answer = client.load(stream::iter(vec![request; count])).await;
            assert_eq!(answer.is_ok(), runs == 2, "{way:?}: {answer:?}");
            assert_eq!(served.flaky.runs(&id), runs, "{way:?}");
            if let Ok(answer) = answer {
                assert_eq!(answer.message().messages, 2);
            }
        }
    }
}

#[tokio::test]
async fn the_server_says_how_long_to_wait() {
    let served = serve().await;
    for way in ways() {
        // A second between attempts, unless the server says otherwise.
        let second = Duration::from_secs(30);
        let policy = RetryPolicy::new().backoff(Backoff::new(second, second));
        let client = client(way.builder(&served.url).retry(policy));
        let id = format!("{way:?}");
        let request = FlakyRequest {
            retry_after_ms: 20,
            ..failing(&id, 1)
        };
        let begun = Instant::now();
        let answer = tokio::time::timeout(Duration::from_secs(20), client.get(request)).await;
        assert_eq!(
            answer
                .expect("the server's word goes first")
                .unwrap()
                .message()
                .run,
            2
        );
        assert!(begun.elapsed() >= Duration::from_millis(20), "{way:?}");
    }
}

#[tokio::test]
async fn the_deadline_covers_all_attempts() {
    let served = serve().await;
    for way in ways() {
        let slow = Backoff::new(Duration::from_millis(200), Duration::from_millis(200));
        let policy = RetryPolicy::new().attempts_max(100).backoff(slow);
        let client = client(way.builder(&served.url).retry(policy));
        let id = format!("{way:?}");
        let request = Request::new(failing(&id, 99)).with_timeout(Duration::from_millis(500));
        let begun = Instant::now();
        let error = client.get(request).await.unwrap_err();
        // All attempts would take 20 s.
        assert!(begun.elapsed() < Duration::from_secs(12), "{way:?}");
        // What the server said, rather than that time would be up in the end.
        let codes = [Code::Unavailable, Code::DeadlineExceeded];
        assert!(codes.contains(&error.code()), "{way:?}: {error}");
        assert!(served.flaky.runs(&id) <= 4, "{way:?}");
    }
}

/// The messages of an answer that is broken off before the first.
struct Broken;

impl Inbound for Broken {
    fn poll_message(
        self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Bytes, Error>>> {
        Poll::Ready(Some(Err(Error::unavailable("broken off"))))
    }

    fn take_trailers(self: Pin<&mut Self>) -> Metadata {
        Metadata::new()
    }
}

#[tokio::test(start_paused = true)]
async fn the_deadline_covers_attempts_after_the_head_of_an_answer() {
    let count = Count::default();
    let attempts = ending(&count, |before| async move {
        if before > 0 {
            // Such as a token that never comes.
            std::future::pending::<()>().await;
        }
        Ok(())
    });
    let service = attempts.map_response(|_| Response::new(Answer::Many(Box::pin(Broken))));
    let request = request(Idempotency::Idempotent).with_timeout(Duration::from_secs(5));
    let retry = RetryLayer::new(soon()).layer(service);
    let answer = retry.oneshot(request).await.unwrap().into_inner();
    let Answer::Many(mut messages) = answer else {
        panic!("it is a stream");
    };
    let next = poll_fn(|cx| messages.as_mut().poll_message(cx));
    let next = tokio::time::timeout(Duration::from_secs(60), next).await;
    let error = next.expect("the deadline ends it").unwrap().unwrap_err();
    assert_eq!((error.code(), count.get()), (Code::DeadlineExceeded, 2));
}

#[tokio::test]
async fn what_never_arrived_says_so_and_why() {
    for way in ways() {
        let client = client(way.builder(&closed_url()).retry(soon().attempts_max(2)));
        for error in [
            client.set(failing("x", 0)).await.unwrap_err(),
            client
                .load(stream::iter([failing("x", 0)]))
                .await
                .unwrap_err(),
        ] {
            assert_eq!(error.code(), Code::Unavailable, "{way:?}: {error}");
            assert!(!error.maybe_processed(), "{way:?}");
            let transport = TransportError::of(&error).expect("no server was there");
            assert_eq!(transport.kind(), TransportErrorKind::Connect, "{way:?}");
        }
    }
    let client = client(builder("http://no-such-host.invalid:1"));
    let error = client.get(failing("x", 0)).await.unwrap_err();
    let transport = TransportError::of(&error).expect("the name has no address");
    assert_eq!(transport.kind(), TransportErrorKind::Resolve);
    assert!(!error.maybe_processed());
}

#[tokio::test(start_paused = true)]
async fn pushback_decides() {
    for (pushback, calls) in [
        (None, 2),
        (Some(Pushback::After(Duration::from_secs(7))), 2),
        (Some(Pushback::After(Duration::from_secs(7 * 86_400))), 1),
        (Some(Pushback::Never), 1),
    ] {
        let count = Count::default();
        let service = ending(&count, move |before| async move {
            let error = Error::unavailable("later");
            match pushback {
                _ if before > 0 => Ok(()),
                Some(pushback) => Err(error.with_pushback(pushback)),
                None => Err(error),
            }
        });
        let begun = Instant::now();
        let layer = RetryLayer::new(soon());
        let called = through(&layer, service, request(Idempotency::Idempotent)).await;
        assert_eq!(
            (called.is_ok(), count.get()),
            (calls == 2, calls),
            "{pushback:?}"
        );
        if let (Some(Pushback::After(delay)), 2) = (pushback, calls) {
            assert!(begun.elapsed() >= delay, "{pushback:?}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_budget_ends_retries_of_servers_that_fail_for_everybody() {
    let count = Count::default();
    let failing = ending(&count, |_| async { Err(Error::unavailable("down")) });
    let layer = RetryLayer::new(soon()).budget(RetryBudget::new(10, 0.1));
    for _ in 0..100 {
        let called = through(&layer, failing.clone(), request(Idempotency::Idempotent)).await;
        called.unwrap_err();
    }
    // 100 first attempts, and the 3 of the first call that half of the tokens paid.
    assert_eq!(count.get(), 103);
    // What surely did not run is no burden.
    let unprocessed = ending(&count, |_| async {
        Err(Error::unavailable("no connection").unprocessed())
    });
    let called = through(&layer, unprocessed, request(Idempotency::Unknown)).await;
    called.unwrap_err();
    assert_eq!(count.get(), 107);
}
