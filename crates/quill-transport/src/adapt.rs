//! Our exchanges as those of the `http`, `http-body` and `tower` crates, and
//! back: for HTTP-level layers, for axum, and for an HTTP fallback.
//!
//! - [`TowerService`] is one of our services as a `tower` service: what an
//!   HTTP-level layer wraps, or axum mounts.
//! - [`FromTower`] is the way back: a `tower` service that our connections serve.

use std::convert::Infallible;
use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use bytes::{Buf, Bytes};
use http_body::{Frame, SizeHint};
use pin_project_lite::pin_project;
use quill_core::{BoxError, Budget, Peer, ResponseHead, SharedHead};

use crate::body::{Body, BoxBody, Chunk, Empty, Full, RecvBody};
use crate::error::{TransportError, TransportErrorKind};
use crate::exchange::{HttpRequest, HttpResponse, Service};
use crate::{fields, hyper_error};

/// A request of the `http` crate as ours. The caller is the [`Peer`] among the
/// request's extensions, without which it is unknown; the connection's
/// [`Budget`] is there, too.
pub fn request_from_http<B>(request: http::Request<B>) -> HttpRequest
where
    B: http_body::Body + Send + 'static,
    B::Error: Into<BoxError>,
{
    let (mut parts, body) = request.into_parts();
    let head = fields::request_from_http(&parts);
    let peer = parts
        .extensions
        .remove::<Peer>()
        .unwrap_or_else(|| Peer::new(None, head.version));
    let budget = parts.extensions.remove::<Budget>();
    HttpRequest {
        head: SharedHead::new(head),
        body: RecvBody::new(FromHttpBody { body }),
        peer,
        budget,
    }
}

/// Our request as one of the `http` crate, with its [`Peer`] and its connection's
/// [`Budget`] among the extensions.
///
/// # Errors
/// The target is no URI, as that of `CONNECT`.
pub fn request_to_http(
    request: HttpRequest,
) -> Result<http::Request<HttpBody<RecvBody>>, TransportError> {
    let HttpRequest {
        head,
        body,
        peer,
        budget,
    } = request;
    let mut parts = fields::request_to_http(&head, None)?;
    parts.extensions.insert(peer);
    if let Some(budget) = budget {
        parts.extensions.insert(budget);
    }
    Ok(http::Request::from_parts(parts, HttpBody::new(body)))
}

/// An answer of the `http` crate as ours.
pub fn response_from_http<B>(response: http::Response<B>) -> HttpResponse<FromHttpBody<B>> {
    let (parts, body) = response.into_parts();
    HttpResponse {
        head: fields::response_from_http(&parts),
        body: FromHttpBody { body },
    }
}

/// Our answer as one of the `http` crate.
pub fn response_to_http<B: Body>(response: HttpResponse<B>) -> http::Response<HttpBody<B>> {
    let parts = fields::response_to_http(&response.head);
    http::Response::from_parts(parts, HttpBody::new(response.body))
}

pin_project! {
    /// A [`Body`] of ours as an [`http_body::Body`].
    #[derive(Debug)]
    pub struct HttpBody<B> {
        #[pin]
        body: B,
    }
}

impl<B> HttpBody<B> {
    /// Wraps a body.
    pub fn new(body: B) -> Self {
        Self { body }
    }
}

/// An empty body: layers that answer in a service's place make theirs so.
impl Default for HttpBody<BoxBody> {
    fn default() -> Self {
        Self::new(Box::pin(Empty))
    }
}

impl<B: Body> http_body::Body for HttpBody<B> {
    type Data = Bytes;
    type Error = TransportError;

    fn poll_frame(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, TransportError>>> {
        let polled = ready!(self.project().body.poll_chunk(cx));
        Poll::Ready(polled.map(|chunk| match chunk {
            Ok(chunk) => Ok(chunk.into_frame()),
            Err(error) => Err(hyper_error::resetting(error)),
        }))
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_ended()
    }

    fn size_hint(&self) -> SizeHint {
        self.body
            .bytes_left()
            .map_or_else(SizeHint::default, SizeHint::with_exact)
    }
}

pin_project! {
    /// An [`http_body::Body`] as a [`Body`] of ours.
    #[derive(Debug)]
    pub struct FromHttpBody<B> {
        #[pin]
        body: B,
    }
}

impl<B> Body for FromHttpBody<B>
where
    B: http_body::Body + Send,
    B::Error: Into<BoxError>,
{
    fn poll_chunk(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Chunk, TransportError>>> {
        let polled = ready!(self.project().body.poll_frame(cx));
        Poll::Ready(polled.map(|frame| match frame {
            Ok(frame) => Ok(Chunk::from_frame(
                frame.map_data(|mut data| data.copy_to_bytes(data.remaining())),
            )),
            Err(error) => Err(of_box(error.into())),
        }))
    }

    fn is_ended(&self) -> bool {
        self.body.is_end_stream()
    }

    fn bytes_left(&self) -> Option<u64> {
        self.body.size_hint().exact()
    }
}

/// Our own errors come back from foreign layers in their boxes.
fn of_box(error: BoxError) -> TransportError {
    match error.downcast::<TransportError>() {
        Ok(error) => *error,
        Err(error) => {
            let message = format!("the body failed: {error}");
            TransportError::new(TransportErrorKind::Closed, message).with_source(error)
        }
    }
}

/// One of our services as a `tower` service of `http` requests.
#[derive(Clone, Debug)]
pub struct TowerService<S>(S);

impl<S> TowerService<S> {
    /// Wraps a service.
    pub fn new(service: S) -> Self {
        Self(service)
    }
}

impl<S, B> tower_service::Service<http::Request<B>> for TowerService<S>
where
    S: Service,
    B: http_body::Body + Send + 'static,
    B::Error: Into<BoxError>,
{
    type Response = http::Response<HttpBody<S::Body>>;
    type Error = Infallible;
    type Future = TowerFuture<S::Future>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: http::Request<B>) -> Self::Future {
        TowerFuture {
            future: self.0.call(request_from_http(request)),
        }
    }
}

pin_project! {
    /// The answer of a [`TowerService`].
    #[derive(Debug)]
    pub struct TowerFuture<F> {
        #[pin]
        future: F,
    }
}

impl<F, B> Future for TowerFuture<F>
where
    F: Future<Output = HttpResponse<B>>,
    B: Body,
{
    type Output = Result<http::Response<HttpBody<B>>, Infallible>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        self.project()
            .future
            .poll(cx)
            .map(|response| Ok(response_to_http(response)))
    }
}

/// A `tower` service of `http` requests as one of ours.
///
/// A service that fails is answered for: 500, without its words, which go to
/// the log.
#[derive(Clone, Debug)]
pub struct FromTower<S>(S);

impl<S> FromTower<S> {
    /// Wraps a service.
    pub fn new(service: S) -> Self {
        Self(service)
    }
}

impl<S, B> Service for FromTower<S>
where
    S: tower_service::Service<http::Request<HttpBody<RecvBody>>, Response = http::Response<B>>,
    S: Clone + Send + Sync + 'static,
    S::Future: Send,
    S::Error: Into<BoxError>,
    B: http_body::Body + Send + 'static,
    B::Error: Into<BoxError>,
{
    type Body = BoxBody;
    type Future = Pin<Box<dyn Future<Output = HttpResponse<BoxBody>> + Send>>;

    fn call(&self, request: HttpRequest) -> Self::Future {
        let mut service = self.0.clone();
        Box::pin(async move {
            let Ok(request) = request_to_http(request) else {
                return plain(400, "the request's target is no URI");
            };
            let ready = std::future::poll_fn(|cx| service.poll_ready(cx)).await;
            let answered: Result<_, BoxError> = match ready.map_err(Into::into) {
                Ok(()) => service.call(request).await.map_err(Into::into),
                Err(error) => Err(error),
            };
            match answered {
                Ok(response) => {
                    let HttpResponse { head, body } = response_from_http(response);
                    let body: BoxBody = Box::pin(body);
                    HttpResponse { head, body }
                }
                Err(error) => {
                    tracing::error!(%error, "an HTTP service failed");
                    plain(500, "the server failed to answer")
                }
            }
        })
    }
}

fn plain(status: u16, text: &'static str) -> HttpResponse<BoxBody> {
    let mut head = ResponseHead::new(status);
    head.headers.set("content-type", "text/plain");
    let body: BoxBody = Box::pin(Full::new(text));
    HttpResponse { head, body }
}
