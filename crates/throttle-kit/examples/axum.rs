//! A server whose clients have a budget each.
//!
//! `cargo run --example axum --features axum`, then
//! `for i in $(seq 8); do curl -i localhost:3000/; done`

#![allow(clippy::print_stdout)]

use std::net::SocketAddr;

use axum::Router;
use axum::body::Body;
use axum::http::{Response, header::CONTENT_TYPE};
use axum::routing::get;
use throttle_kit::tower::{LimitHeaders, Refusal};
use throttle_kit::{InMemoryBackend, Quota, RateLimitLayer};

fn app() -> Router {
    let quota = Quota::per_second(2).allow_burst(5);
    let limit = RateLimitLayer::new(quota, InMemoryBackend::new())
        .with_headers(LimitHeaders::Both)
        .with_route("/login", Quota::per_minute(5))
        .with_skip(|request| request.uri.path() == "/health")
        .with_refusal(too_many);
    Router::new()
        .route("/", get(|| async { "hello\n" }))
        .route("/login", get(|| async { "welcome\n" }))
        .route("/health", get(|| async { "ok\n" }))
        .layer(limit)
}

/// A refusal that says what it is (RFC 9457).
fn too_many(refusal: &Refusal<'_>) -> Response<Body> {
    let status = refusal.status();
    let body = format!(
        "{{\"title\":\"{status}\",\"status\":{}}}\n",
        status.as_u16()
    );
    let mut response = Response::new(Body::from(body));
    *response.status_mut() = status;
    let problem = axum::http::HeaderValue::from_static("application/problem+json");
    response.headers_mut().insert(CONTENT_TYPE, problem);
    response
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> std::io::Result<()> {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:3000").await?;
    println!("listening on {}", listener.local_addr()?);
    let service = app().into_make_service_with_connect_info::<SocketAddr>();
    axum::serve(listener, service).await
}
