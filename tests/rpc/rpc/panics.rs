//! Panics in handlers and layers, with everything on that may stand between.

use std::time::Duration;

use futures_util::stream;
use quill::concurrency::ConcurrencyLimitLayer;
use quill::metrics::MetricsCollector;
use quill::rate_limit::RateLimitLayer;
use quill::{Code, Error, Protocol, Request, Response, Streaming};

use crate::probe::{
    PROTOCOLS, ProbeClient, ProbeRequest, ProbeResponse, Served, ending, say, serve, serve_with,
};

/// The error of a stream, and how many messages came before it.
async fn failed(answer: Result<Response<Streaming<ProbeResponse>>, Error>) -> (u32, Error) {
    let mut answers = match answer {
        Ok(answers) => answers.into_inner(),
        Err(error) => return (0, error),
    };
    let mut count = 0;
    loop {
        match answers.message().await {
            Ok(Some(_)) => count += 1,
            Ok(None) => unreachable!("a clean end after {count} messages"),
            Err(error) => return (count, error),
        }
    }
}

async fn every_kind_survives(served: &Served) {
    for protocol in PROTOCOLS {
        for way in ["HTTP/2", "HTTP/1.1", "credits"] {
            if way == "HTTP/1.1" && protocol == Protocol::Grpc {
                continue;
            }
            let builder = served.builder(protocol);
            let builder = match way {
                "HTTP/1.1" => builder.http1(),
                "credits" => builder.credits(16),
                _ => builder,
            };
            let client = ProbeClient::new(builder.build().unwrap());
            let way = format!("{protocol:?}, {way}");
            let error = client.one(ending("panic")).await.unwrap_err();
            assert_eq!(error.code(), Code::Internal, "{way}: {error}");
            assert!(!error.message().contains("asked to"), "{way}: {error}");
            let last = || stream::iter([say("x"), ending("panic")]);
            let error = client.up(last()).await.unwrap_err();
            assert_eq!(error.code(), Code::Internal, "{way}: {error}");
            let request = ProbeRequest {
                count: 2,
                ..ending("panic")
            };
            let (count, error) = failed(client.down(request).await).await;
            assert_eq!((count, error.code()), (2, Code::Internal), "{way}: {error}");
            let (count, error) = failed(client.both(last()).await).await;
            assert_eq!((count, error.code()), (1, Code::Internal), "{way}: {error}");
            let alive = client.one(say("alive")).await.unwrap();
            assert_eq!(alive.message().text, "alive", "{way}");
        }
    }
}

#[tokio::test]
async fn a_panic_in_a_handler_is_internal_in_every_protocol_and_kind() {
    every_kind_survives(&serve().await).await;
}

#[tokio::test]
async fn a_panic_is_internal_behind_every_layer_too() {
    let metrics = MetricsCollector::new();
    let served = serve_with(|builder| {
        builder
            .timeout_max(Duration::from_secs(20))
            .metrics(&metrics)
            .layer(ConcurrencyLimitLayer::new(1).metrics(&metrics))
            .layer(RateLimitLayer::new(1e6, 1e6))
            .layer(tower::timeout::TimeoutLayer::new(Duration::from_secs(20)))
            .layer(tower::limit::ConcurrencyLimitLayer::new(1))
    })
    .await;
    every_kind_survives(&served).await;
    assert_eq!(metrics.snapshot().in_flight, 0);
    let text = metrics.prometheus();
    let code = "method=\"Both\",kind=\"bidi_stream\",code=\"internal\"} ";
    assert!(text.contains(code), "{text}");
}

#[tokio::test]
async fn a_panic_in_a_layer_is_internal() {
    let panicking = tower::util::MapRequestLayer::new(|request: Request<quill::Incoming>| {
        assert!(request.metadata().get("x-panic").is_none(), "asked to");
        request
    });
    let served = serve_with(|builder| builder.layer(panicking)).await;
    for protocol in PROTOCOLS {
        let client = served.client(protocol);
        let request = || {
            Request::new(say("x"))
                .with_metadata("x-panic", "1")
                .unwrap()
        };
        let error = client.one(request()).await.unwrap_err();
        assert_eq!(error.code(), Code::Internal, "{protocol:?}: {error}");
        let (_, error) = failed(client.down(request()).await).await;
        assert_eq!(error.code(), Code::Internal, "{protocol:?}: {error}");
        let messages = || request().map(|message| stream::iter([message]));
        let error = client.up(messages()).await.unwrap_err();
        assert_eq!(error.code(), Code::Internal, "{protocol:?}: {error}");
        let (_, error) = failed(client.both(messages()).await).await;
        assert_eq!(error.code(), Code::Internal, "{protocol:?}: {error}");
        client.one(say("alive")).await.unwrap();
    }
}
