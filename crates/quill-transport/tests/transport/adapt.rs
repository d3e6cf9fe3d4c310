//! Our exchanges inside other people's, and theirs inside ours.

use std::convert::Infallible;
use std::future::{Ready, ready};
use std::task::{Context, Poll};

use bytes::Bytes;
use http_body::Body as _;
use quill_core::{BoxError, HttpVersion, Peer};
use quill_transport::adapt::{
    FromTower, HttpBody, TowerService, request_from_http, request_to_http,
};
use quill_transport::{Empty, Full, HttpServer, Listener, RecvBody};
use tower_service::Service;

use crate::support::*;

/// A layer as `tower-http` makes them: marks what passes.
#[derive(Clone)]
struct Marking<S>(S);

impl<S, B> Service<http::Request<HttpBody<RecvBody>>> for Marking<S>
where
    S: Service<http::Request<HttpBody<RecvBody>>, Response = http::Response<B>>,
    S::Future: Send + 'static,
{
    type Response = S::Response;
    type Error = S::Error;
    type Future = S::Future;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        self.0.poll_ready(cx)
    }

    fn call(&mut self, mut request: http::Request<HttpBody<RecvBody>>) -> S::Future {
        assert!(request.extensions().get::<Peer>().is_some());
        let value = http::HeaderValue::from_static("passed");
        request.headers_mut().insert("x-layer", value);
        self.0.call(request)
    }
}

#[tokio::test]
async fn http_layers_wrap_a_service_of_ours() {
    for version in VERSIONS {
        let service = FromTower::new(Marking(TowerService::new(Shared::default())));
        let listener = Listener::bind("127.0.0.1:0").await.unwrap();
        let running = HttpServer::new(listener).start(service);
        let channel = channel(&url(&running), options(version));
        let sent = channel.send(post("/echo"), Full::new("through"));
        let (head, body) = soon(sent).await.unwrap();
        assert_eq!(head.headers.text("x-layer"), Some("passed"));
        assert_eq!(text(body).await, "through");
        // The peer passes through the extensions.
        let (_, body) = soon(channel.send(post("/head"), Empty)).await.unwrap();
        assert!(text(body).await.contains("address=true"));
    }
}

#[tokio::test]
async fn trailers_pass_through_layers() {
    let service = FromTower::new(Marking(TowerService::new(Shared::default())));
    let listener = Listener::bind("127.0.0.1:0").await.unwrap();
    let running = HttpServer::new(listener).start(service);
    let channel = channel(&url(&running), options(HttpVersion::Http2));
    let (_, body) = soon(channel.send(post("/trailers"), Full::new("a")))
        .await
        .unwrap();
    let (bytes, trailers) = soon(collect(body)).await.unwrap();
    assert_eq!(bytes, "a");
    assert_eq!(trailers.text("x-received"), Some("none"));
}

/// Another server's service, whose body is its own.
#[derive(Clone)]
struct Foreign;

impl<B> Service<http::Request<B>> for Foreign {
    type Response = http::Response<Once>;
    type Error = BoxError;
    type Future = Ready<Result<Self::Response, BoxError>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: http::Request<B>) -> Self::Future {
        if request.uri().path() == "/broken" {
            return ready(Err("its secret".into()));
        }
        let body = Once(Some(Bytes::from_static(b"foreign")));
        ready(Ok(http::Response::new(body)))
    }
}

struct Once(Option<Bytes>);

impl http_body::Body for Once {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: std::pin::Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<http_body::Frame<Bytes>, Infallible>>> {
        Poll::Ready(self.0.take().map(|bytes| Ok(http_body::Frame::data(bytes))))
    }
}

#[tokio::test]
async fn a_foreign_service_answers_and_its_failure_stays_inside() {
    let listener = Listener::bind("127.0.0.1:0").await.unwrap();
    let running = HttpServer::new(listener).start(FromTower::new(Foreign));
    let channel = channel(&url(&running), options(HttpVersion::Http2));
    let (_, body) = soon(channel.send(post("/"), Empty)).await.unwrap();
    assert_eq!(text(body).await, "foreign");
    let (head, body) = soon(channel.send(post("/broken"), Empty)).await.unwrap();
    assert_eq!(head.status, 500);
    assert!(!text(body).await.contains("secret"));
}

#[tokio::test]
async fn requests_come_back_as_they_went() {
    let request = http::Request::post("https://a.example/b?c=1")
        .version(http::Version::HTTP_2)
        .header("x-d", "e")
        .body(Once(Some(Bytes::from_static(b"f"))))
        .unwrap();
    let ours = request_from_http(request);
    assert_eq!(ours.head.authority, "a.example");
    assert_eq!(ours.head.target, "/b?c=1");
    assert_eq!(ours.head.version, HttpVersion::Http2);
    assert!(ours.peer.address().is_none());
    let theirs = request_to_http(ours).unwrap();
    assert_eq!(theirs.uri(), "/b?c=1");
    assert_eq!(theirs.headers()["host"], "a.example");
    assert_eq!(theirs.headers()["x-d"], "e");
    assert!(!theirs.body().is_end_stream());
}
