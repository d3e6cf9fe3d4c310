//! The layer on an axum router, with the peer where axum leaves it.

use std::net::SocketAddr;

use axum::body::Body;
use axum::extract::ConnectInfo;
use axum::http::{Request, StatusCode};
use axum::{Router, routing::get};
use throttle_kit::{InMemoryBackend, Quota, RateLimitLayer};
use tower_service::Service;

async fn status(app: &mut Router, peer: Option<&str>) -> StatusCode {
    let mut request = Request::new(Body::empty());
    if let Some(peer) = peer {
        let peer: SocketAddr = peer.parse().unwrap();
        request.extensions_mut().insert(ConnectInfo(peer));
    }
    app.call(request).await.unwrap().status()
}

#[tokio::test]
async fn a_router_limits_each_peer() {
    let layer = RateLimitLayer::new(Quota::per_hour(2), InMemoryBackend::new());
    let mut app = Router::new()
        .route("/", get(|| async { "hello" }))
        .layer(layer);
    assert_eq!(status(&mut app, Some("192.0.2.1:1")).await, StatusCode::OK);
    assert_eq!(status(&mut app, Some("192.0.2.1:2")).await, StatusCode::OK);
    assert_eq!(
        status(&mut app, Some("192.0.2.1:3")).await,
        StatusCode::TOO_MANY_REQUESTS
    );
    assert_eq!(status(&mut app, Some("192.0.2.2:1")).await, StatusCode::OK);
    assert_eq!(
        status(&mut app, None).await,
        StatusCode::SERVICE_UNAVAILABLE
    );
}
