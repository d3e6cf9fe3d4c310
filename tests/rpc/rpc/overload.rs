//! Limits on concurrent calls, and what is told to those beyond them.

use std::time::Duration;

use futures_util::stream;
use quill::concurrency::{AdaptiveLimit, ConcurrencyLimitLayer, Priority};
use quill::metrics::MetricsCollector;
use quill::{Code, Error, Protocol, Request, Streaming};

use crate::peer::{Http1, envelope, head, http2, send};
use crate::probe::{
    PROTOCOLS, ProbeClient, ProbeRequest, ProbeResponse, Served, ending, eventually, say,
    serve_with,
};

/// What no test waits for to its end.
const LONG: Duration = Duration::from_secs(20);

async fn limited(layer: ConcurrencyLimitLayer) -> Served {
    serve_with(|builder| builder.layer(layer).service(quill_health::server())).await
}

/// A figure of the metrics; 0 while it is not there.
fn figure(metrics: &MetricsCollector, of: &str) -> u64 {
    let text = metrics.prometheus();
    let name = format!("quill_server_concurrency_{of}");
    let line = text.lines().find_map(|line| line.strip_prefix(&name));
    line.map_or(0, |value| value.trim().parse().expect("a number"))
}

fn gauge(metrics: &MetricsCollector, of: &str) -> u64 {
    figure(metrics, &format!("{of}{{limiter=\"calls\",method=\"\"}}"))
}

fn shed(metrics: &MetricsCollector, reason: &str) -> u64 {
    let labels = format!("{{limiter=\"calls\",method=\"\",reason=\"{reason}\"}}");
    figure(metrics, &format!("shed_total{labels}"))
}

/// An endless stream, of which the first message has come.
async fn hold(client: &ProbeClient) -> Streaming<ProbeResponse> {
    let mut held = client.down(say("x")).await.unwrap().into_inner();
    assert!(held.message().await.unwrap().is_some());
    held
}

fn assert_shed(error: &Error, protocol: Protocol) {
    assert_eq!(error.code(), Code::Unavailable, "{protocol:?}: {error}");
    let delay = error.retry_after().expect("when to come back");
    let told = Duration::from_millis(250)..=Duration::from_millis(750);
    assert!(told.contains(&delay), "{delay:?}");
}

async fn of_stream(
    answer: Result<quill::Response<Streaming<ProbeResponse>>, Error>,
) -> Result<(), Error> {
    let mut answers = answer?.into_inner();
    while answers.message().await?.is_some() {}
    Ok(())
}

#[tokio::test]
async fn calls_of_every_kind_beyond_the_limit_are_shed_in_every_protocol() {
    for protocol in PROTOCOLS {
        let metrics = MetricsCollector::new();
        let served = limited(ConcurrencyLimitLayer::new(1).metrics(&metrics)).await;
        let client = served.client(protocol);
        let held = hold(&client).await;
        let one = || ProbeRequest {
            count: 1,
            ..say("x")
        };
        let up = || stream::iter([say("x")]);
        assert_shed(&client.one(say("x")).await.unwrap_err(), protocol);
        assert_shed(&client.up(up()).await.unwrap_err(), protocol);
        let refused = of_stream(client.down(one()).await).await;
        assert_shed(&refused.unwrap_err(), protocol);
        let refused = of_stream(client.both(up()).await).await;
        assert_shed(&refused.unwrap_err(), protocol);
        assert_eq!(shed(&metrics, "full"), 4);
        assert_eq!(gauge(&metrics, "limit"), 1);
        assert_eq!(gauge(&metrics, "in_flight_calls"), 1);

        // However a call ends, it gives its place back.
        drop(held);
        eventually("the stream has ended", || {
            gauge(&metrics, "in_flight_calls") == 0
        })
        .await;
        client.one(say("x")).await.unwrap();
        client.up(up()).await.unwrap();
        of_stream(client.down(one()).await).await.unwrap();
        of_stream(client.both(up()).await).await.unwrap();
        for end in ["error", "panic"] {
            let error = client.one(ending(end)).await.unwrap_err();
            assert_ne!(error.code(), Code::Unavailable);
            let request = ProbeRequest {
                count: 1,
                ..ending(end)
            };
            let error = of_stream(client.down(request).await).await.unwrap_err();
            assert_ne!(error.code(), Code::Unavailable, "{protocol:?}");
        }
        client.one(say("x")).await.unwrap();
        assert_eq!(shed(&metrics, "full"), 4, "{protocol:?}");
    }
}

#[tokio::test]
async fn a_shed_call_is_told_when_to_come_back_as_its_protocol_does() {
    const PATH: &str = "/probe.v1.ProbeService/One";
    let layer = ConcurrencyLimitLayer::new(0).retry_after(Duration::from_secs(100));
    let served = limited(layer).await;
    let mut plain = Http1::connect(&served.url).await;
    for fields in [
        &[
            ("content-type", "application/json"),
            ("connect-protocol-version", "1"),
        ][..],
        &[("content-type", "application/json")][..],
    ] {
        let answer = plain.post(PATH, fields, "{}").await;
        assert_eq!(answer.status, 503, "{answer:?}");
        let seconds: u64 = answer.header("retry-after").unwrap().parse().unwrap();
        assert!((50..=150).contains(&seconds), "{seconds}");
    }
    let fields = [("content-type", "application/grpc"), ("te", "trailers")];
    let answer = send(&http2(&served.url), head(PATH, &fields), envelope(0, b"")).await;
    assert_eq!(answer.grpc_status(), Some("14"));
    let pushback = answer.header("grpc-retry-pushback-ms").unwrap();
    let millis: u64 = pushback.parse().unwrap();
    assert!((50_000..=150_000).contains(&millis), "{millis}");
    let asked = [("content-type", "application/grpc-web")];
    let answer = plain.post(PATH, &asked, envelope(0, b"")).await;
    let text = String::from_utf8_lossy(&answer.body).into_owned();
    assert!(text.contains("grpc-retry-pushback-ms:"), "{text}");
}

#[tokio::test]
async fn a_time_to_come_back_is_a_day_at_most() {
    let layer = ConcurrencyLimitLayer::new(0).retry_after(Duration::MAX);
    let served = limited(layer).await;
    for protocol in PROTOCOLS {
        let error = served.client(protocol).one(say("x")).await.unwrap_err();
        assert_eq!(error.code(), Code::Unavailable, "{protocol:?}: {error}");
        let hours = error.retry_after().expect("when to come back").as_secs() / 3600;
        assert!((12..=36).contains(&hours), "{protocol:?}: {hours}");
    }
}

#[tokio::test]
async fn calls_wait_for_their_turn_and_no_more_than_may() {
    for protocol in PROTOCOLS {
        let metrics = MetricsCollector::new();
        let layer = ConcurrencyLimitLayer::new(1).queue(1, LONG);
        let served = limited(layer.metrics(&metrics)).await;
        let client = served.client(protocol);
        let held = hold(&client).await;
        let waiting = tokio::spawn({
            let client = client.clone();
            async move { client.one(say("late")).await }
        });
        eventually("it waits", || gauge(&metrics, "queued_calls") == 1).await;
        assert_shed(&client.one(say("x")).await.unwrap_err(), protocol);
        drop(held);
        let answer = waiting.await.unwrap().unwrap();
        assert_eq!(answer.message().text, "late", "{protocol:?}");
        assert_eq!(gauge(&metrics, "queued_calls"), 0);
        let waited = figure(
            &metrics,
            "queue_seconds_count{limiter=\"calls\",method=\"\"}",
        );
        assert_eq!(waited, 1, "{protocol:?}");
    }
}

#[tokio::test]
async fn waiting_ends_with_its_time_its_deadline_and_its_caller() {
    for protocol in PROTOCOLS {
        let metrics = MetricsCollector::new();
        let wait = Duration::from_millis(50);
        let layer = ConcurrencyLimitLayer::new(1).queue(10, wait);
        let served = limited(layer.metrics(&metrics)).await;
        let client = served.client(protocol);
        let _held = hold(&client).await;
        let begun = std::time::Instant::now();
        assert_shed(&client.one(say("x")).await.unwrap_err(), protocol);
        assert!(begun.elapsed() >= wait, "{protocol:?}");
        assert_eq!(shed(&metrics, "waited"), 1);

        let metrics = MetricsCollector::new();
        let layer = ConcurrencyLimitLayer::new(1).queue(10, LONG);
        let served = limited(layer.metrics(&metrics)).await;
        let client = served.client(protocol);
        let _held = hold(&client).await;
        let late = Request::new(say("x")).with_timeout(wait);
        let error = client.one(late).await.unwrap_err();
        assert_eq!(error.code(), Code::DeadlineExceeded, "{protocol:?}");
        let gone = tokio::spawn(async move { client.one(say("x")).await });
        eventually("it waits", || gauge(&metrics, "queued_calls") == 1).await;
        gone.abort();
        eventually("nobody waits", || gauge(&metrics, "queued_calls") == 0).await;
        assert_eq!(shed(&metrics, "full") + shed(&metrics, "waited"), 0);
    }
}

fn ranked(request: &quill::RequestParts) -> Priority {
    match request.metadata.get("x-priority") {
        Some("high") => Priority::High,
        Some("low") => Priority::Low,
        _ => Priority::Normal,
    }
}

fn with_priority(priority: &str) -> Request<ProbeRequest> {
    let request = Request::new(say(priority));
    request.with_metadata("x-priority", priority).unwrap()
}

#[tokio::test]
async fn the_higher_take_the_place_of_the_lower() {
    for protocol in PROTOCOLS {
        let metrics = MetricsCollector::new();
        let layer = ConcurrencyLimitLayer::new(2).queue(1, LONG);
        let served = limited(layer.priority(ranked).metrics(&metrics)).await;
        let client = served.client(protocol);
        let held = hold(&client).await;
        // Half of two is one: there is no room for low ones, and there is for others.
        let low = tokio::spawn({
            let client = client.clone();
            async move { client.one(with_priority("low")).await }
        });
        eventually("it waits", || gauge(&metrics, "queued_calls") == 1).await;
        client.one(say("normal")).await.unwrap();
        let second = hold(&client).await;
        let high = tokio::spawn({
            let client = client.clone();
            async move { client.one(with_priority("high")).await }
        });
        assert_shed(&low.await.unwrap().unwrap_err(), protocol);
        assert_shed(&client.one(say("x")).await.unwrap_err(), protocol);
        drop(second);
        assert!(high.await.unwrap().is_ok(), "{protocol:?}");
        drop(held);
    }
}

#[tokio::test]
async fn methods_have_limits_of_their_own_or_none() {
    let served = limited(ConcurrencyLimitLayer::new(1).per_method()).await;
    let client = served.client(Protocol::Quill);
    let _held = hold(&client).await;
    client.one(say("x")).await.unwrap();
    of_stream(client.down(say("x")).await).await.unwrap_err();

    let layer = ConcurrencyLimitLayer::new(0)
        .method("/probe.v1.ProbeService/One", 1)
        .exempt("/probe.v1.ProbeService/Up");
    let served = limited(layer).await;
    for protocol in PROTOCOLS {
        let client = served.client(protocol);
        client.one(say("x")).await.unwrap();
        client.up(stream::iter([say("x")])).await.unwrap();
        let refused = of_stream(client.down(say("x")).await).await;
        assert_shed(&refused.unwrap_err(), protocol);
        let client = served.builder(protocol).build().unwrap();
        let check = client.call("grpc.health.v1.Health", "Check", "");
        check.await.unwrap();
    }
}

#[tokio::test]
async fn an_adaptive_limit_shrinks_when_calls_are_too_late() {
    const CALLS: usize = 25;
    for protocol in PROTOCOLS {
        let metrics = MetricsCollector::new();
        let limit = AdaptiveLimit {
            initial: CALLS,
            least: 10,
            ..AdaptiveLimit::default()
        };
        let layer = ConcurrencyLimitLayer::adaptive(limit).metrics(&metrics);
        let timeout = Duration::from_millis(250);
        let served = serve_with(|builder| builder.timeout_max(timeout).layer(layer)).await;
        let client = served.client(protocol);
        // One alone does not: another's mistake is not the server's overload.
        let error = client.one(ending("hang")).await.unwrap_err();
        assert_eq!(error.code(), Code::DeadlineExceeded);
        assert_eq!(gauge(&metrics, "limit"), 25, "{protocol:?}");
        // Nor do callers who never end what they send.
        let calls = (0..CALLS).map(|_| client.up(stream::pending()));
        for answer in futures_util::future::join_all(calls).await {
            let code = answer.unwrap_err().code();
            assert_eq!(code, Code::DeadlineExceeded, "{protocol:?}");
        }
        eventually("they have ended", || {
            gauge(&metrics, "in_flight_calls") == 0
        })
        .await;
        assert_eq!(gauge(&metrics, "limit"), 25, "{protocol:?}");
        let calls = (0..CALLS).map(|_| client.one(ending("hang")));
        for answer in futures_util::future::join_all(calls).await {
            let code = answer.unwrap_err().code();
            assert_eq!(code, Code::DeadlineExceeded, "{protocol:?}");
        }
        eventually("the limit is less", || gauge(&metrics, "limit") == 22).await;
    }
}

#[tokio::test]
async fn clones_share_the_limit_and_a_method_that_is_not_there_is_a_mistake() {
    let layer = ConcurrencyLimitLayer::new(1);
    let served = [limited(layer.clone()).await, limited(layer.clone()).await];
    let other = limited(layer.clone().named("other")).await;
    let _held = hold(&served[0].client(Protocol::Grpc)).await;
    let refused = served[1].client(Protocol::Grpc).one(say("x")).await;
    assert_shed(&refused.unwrap_err(), Protocol::Grpc);
    other.client(Protocol::Grpc).one(say("x")).await.unwrap();

    let wrong = [
        layer.clone().exempt("/probe.v1.ProbeService/Nope"),
        layer.method("/probe.v1.ProbeService/Nope", 1),
    ];
    for layer in wrong {
        let builder = quill::Server::builder().layer(layer);
        let error = builder.bind("127.0.0.1:0").await.unwrap_err();
        assert!(
            error.to_string().contains("ConcurrencyLimitLayer"),
            "{error}"
        );
    }
}
