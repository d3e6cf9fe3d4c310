//! The tower layers, keyed by the peer's address, with the headers each can add.

use std::convert::Infallible;
use std::future::{Ready, ready};
use std::hint::black_box;
use std::net::SocketAddr;
use std::task::{Context, Poll};

use axum::body::Body;
use axum::extract::ConnectInfo;
use http::header::CONTENT_TYPE;
use http::{HeaderValue, Request, Response};
use throttle_kit::{InMemoryBackend, Quota, RateLimitLayer};
use throttle_kit_registry as registry;
use tower_governor::GovernorLayer;
use tower_governor::governor::GovernorConfigBuilder;
use tower_layer::Layer;
use tower_service::Service;

use crate::keyed::at_once;
use crate::works::{Work, repeat};

const RATE: u32 = 1_000_000_000;

/// Answers at once, with a header of its own.
#[derive(Clone)]
struct Answer;

impl Service<Request<Body>> for Answer {
    type Response = Response<Body>;
    type Error = Infallible;
    type Future = Ready<Result<Response<Body>, Infallible>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, _: Request<Body>) -> Self::Future {
        let mut response = Response::new(Body::empty());
        let text = HeaderValue::from_static("text/plain");
        response.headers_mut().insert(CONTENT_TYPE, text);
        ready(Ok(response))
    }
}

/// No layer: what the others' figures hold besides the layer.
pub fn bare() -> Work {
    serve(Answer, 1)
}

pub fn ours() -> Work {
    let layer = RateLimitLayer::new(Quota::per_second(RATE), InMemoryBackend::new());
    serve(layer.layer(Answer), 4)
}

pub fn registry() -> Work {
    let backend = registry::InMemoryBackend::new();
    let layer = registry::RateLimitLayer::new(registry::Quota::per_second(RATE), backend);
    serve(layer.layer(Answer), 4)
}

pub fn governor() -> Work {
    let config = GovernorConfigBuilder::default()
        .per_nanosecond(1)
        .burst_size(RATE)
        .use_headers()
        .finish()
        .expect("a quota");
    let layer = GovernorLayer::new(config);
    serve(layer.layer(Answer), 3)
}

fn serve<S>(mut service: S, headers: usize) -> Work
where
    S: Service<Request<Body>, Response = Response<Body>, Error = Infallible> + 'static,
{
    let peer = SocketAddr::from(([192, 0, 2, 1], 4711));
    repeat(move || {
        let mut request = Request::new(Body::empty());
        request.extensions_mut().insert(ConnectInfo(peer));
        let Ok(response) = at_once(service.call(black_box(request)));
        assert!(response.status().is_success() && response.headers().len() == headers);
    })
}
