//! Middleware on both levels.

use std::future::{Ready, ready};
use std::task::{Context, Poll};
use std::time::Duration;

use futures_util::future::Either;
use http::HeaderValue;
use quill::{Code, Protocol};
use tower::ServiceBuilder;

use crate::peer::Http1;
use crate::probe::{PROTOCOLS, ProbeRequest, ending, say, serve_with};

#[tokio::test]
async fn stock_tower_layers_wrap_calls() {
    let served = serve_with(|builder| {
        builder
            .layer(tower::limit::ConcurrencyLimitLayer::new(100))
            .layer(tower::timeout::TimeoutLayer::new(Duration::from_millis(
                100,
            )))
    })
    .await;
    for protocol in PROTOCOLS {
        let client = served.client(protocol);
        assert_eq!(client.one(say("x")).await.unwrap().message().text, "x");
        let error = client.one(ending("hang")).await.unwrap_err();
        assert_eq!(
            error.code(),
            Code::DeadlineExceeded,
            "{protocol:?}: {error}"
        );
    }
}

#[tokio::test]
async fn a_concurrency_limit_of_one_does_not_lock_up_streams() {
    let served =
        serve_with(|builder| builder.layer(tower::limit::ConcurrencyLimitLayer::new(1))).await;
    let client = served.client(Protocol::Grpc);
    let calls = (0..10).map(|_| {
        let client = client.clone();
        async move {
            let request = ProbeRequest {
                count: 10,
                ..say("x")
            };
            let mut answers = client.down(request).await.unwrap().into_inner();
            let mut count = 0;
            while answers.message().await.unwrap().is_some() {
                count += 1;
            }
            count
        }
    });
    let all = tokio::time::timeout(
        Duration::from_secs(10),
        futures_util::future::join_all(calls),
    );
    assert_eq!(all.await.expect("it does not hang"), [10; 10]);
}

#[tokio::test]
async fn a_layers_refusal_reaches_the_caller_in_its_own_protocol() {
    let refuse = tower::filter::FilterLayer::new(|request: quill::Request<quill::Incoming>| {
        if request.metadata().get("authorization") == Some("Bearer let-me-in") {
            Ok(request)
        } else {
            Err(tower::BoxError::from(quill::Error::unauthenticated(
                "who are you?",
            )))
        }
    });
    let served = serve_with(|builder| builder.layer(refuse)).await;
    for protocol in PROTOCOLS {
        let client = served.client(protocol);
        let error = client.one(say("x")).await.unwrap_err();
        assert_eq!(error.code(), Code::Unauthenticated, "{protocol:?}");
        assert_eq!(error.message(), "who are you?", "{protocol:?}");
        let request = quill::Request::new(say("x"))
            .with_metadata("authorization", "Bearer let-me-in")
            .unwrap();
        assert!(client.one(request).await.is_ok(), "{protocol:?}");
    }
}

#[tokio::test]
async fn http_layers_wrap_the_whole_exchange() {
    let add_header = ServiceBuilder::new().map_response(|mut response: http::Response<_>| {
        response
            .headers_mut()
            .insert("x-http", HeaderValue::from_static("1"));
        response
    });
    let served = serve_with(|builder| builder.http_layer(add_header)).await;
    for protocol in PROTOCOLS {
        let response = served.client(protocol).one(say("x")).await.unwrap();
        assert_eq!(response.metadata().get("x-http"), Some("1"), "{protocol:?}");
    }
}

/// Answers `OPTIONS` itself, with the empty body of whatever type the service's
/// bodies have: the shape of tower-http's CORS and its kin.
#[derive(Clone)]
struct Preflight<S>(S);

impl<S, Sent, Body> tower::Service<http::Request<Sent>> for Preflight<S>
where
    S: tower::Service<http::Request<Sent>, Response = http::Response<Body>>,
    Body: Default,
{
    type Response = S::Response;
    type Error = S::Error;
    type Future = Either<Ready<Result<S::Response, S::Error>>, S::Future>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        self.0.poll_ready(cx)
    }

    fn call(&mut self, request: http::Request<Sent>) -> Self::Future {
        if request.method() == http::Method::OPTIONS {
            let mut answer = http::Response::new(Body::default());
            *answer.status_mut() = http::StatusCode::NO_CONTENT;
            return Either::Left(ready(Ok(answer)));
        }
        Either::Right(self.0.call(request))
    }
}

#[tokio::test]
async fn an_http_layer_can_answer_with_an_empty_body() {
    let layer = tower::layer::layer_fn(Preflight);
    let served = serve_with(|builder| builder.http_layer(layer)).await;
    let mut connection = Http1::connect(&served.url).await;
    let asked = "OPTIONS /probe.v1.ProbeService/One HTTP/1.1\r\nhost: x\r\n\r\n";
    connection.write(asked).await;
    let answer = connection.answer().await;
    assert_eq!((answer.status, answer.text()), (204, ""));
    let response = served.client(Protocol::Connect).one(say("x")).await;
    assert_eq!(response.unwrap().message().text, "x");
}
