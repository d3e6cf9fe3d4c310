//! The layer before a gRPC service: anything that takes `http::Request`s and
//! is a tower service, as tonic's are.

#![allow(clippy::print_stdout)]

use std::convert::Infallible;
use std::future::{Ready, ready};
use std::task::{Context, Poll};

use http::{HeaderValue, Request, Response, header::CONTENT_TYPE};
use throttle_kit::tower::RequestKey;
use throttle_kit::{InMemoryBackend, Quota, RateLimitLayer};
use tower_layer::Layer;
use tower_service::Service;

/// What a generated server looks like from outside.
#[derive(Clone)]
struct Greeter;

impl Service<Request<()>> for Greeter {
    type Response = Response<String>;
    type Error = Infallible;
    type Future = Ready<Result<Response<String>, Infallible>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, _: Request<()>) -> Self::Future {
        ready(Ok(Response::new("hello".to_owned())))
    }
}

#[tokio::main(flavor = "current_thread")]
async fn main() {
    // By the caller that a layer outside of this one has authenticated.
    let limit = RateLimitLayer::new(Quota::per_second(1).allow_burst(2), InMemoryBackend::new())
        .with_key(RequestKey::extension::<Caller>());
    let mut service = limit.layer(Greeter);
    for _ in 0..3 {
        let mut request = Request::new(());
        let grpc = HeaderValue::from_static("application/grpc");
        request.headers_mut().insert(CONTENT_TYPE, grpc);
        request.extensions_mut().insert(Caller("ann".to_owned()));
        let poll_ready = std::future::poll_fn(|cx| service.poll_ready(cx));
        poll_ready.await.expect("infallible");
        let response = service.call(request).await.expect("infallible");
        println!("{:?} {:?}", response.headers(), response.body());
    }
}

/// Who was authenticated.
#[derive(Clone)]
struct Caller(String);

impl throttle_kit::Key for Caller {
    const KIND: throttle_kit::Kind = throttle_kit::Kind::Bytes;
    type Bytes<'a> = &'a [u8];

    fn bytes(&self) -> &[u8] {
        self.0.as_bytes()
    }
}
