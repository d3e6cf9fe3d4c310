//! The server as HTTP middleware and other HTTP servers see it.

use std::convert::Infallible;
use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::Bytes;
use quill_core::BoxError;
use quill_transport::adapt::{
    FromTower, HttpBody, TowerService, request_from_http, response_to_http,
};
use quill_transport::{BoxBody, Empty, HttpRequest, HttpResponse, RecvBody, Service};
use tower::ServiceExt;
use tower::util::BoxCloneSyncService;
use tower_layer::Layer;

use crate::cors::CorsFields;
use crate::dispatch::{Dispatch, ReplyBody};

/// An HTTP service whose type was forgotten: what each HTTP-level layer wraps.
pub type BoxHttpService = BoxCloneSyncService<
    http::Request<HttpBody<RecvBody>>,
    http::Response<HttpBody<BoxBody>>,
    BoxError,
>;

type Wrap = Box<dyn Fn(BoxHttpService) -> BoxHttpService + Send + Sync>;

/// An HTTP-level layer whose type was forgotten.
pub(crate) struct HttpLayer(Wrap);

impl HttpLayer {
    pub(crate) fn new<T, B>(layer: T) -> Self
    where
        T: Layer<BoxHttpService> + Send + Sync + 'static,
        T::Service: tower_service::Service<
                http::Request<HttpBody<RecvBody>>,
                Response = http::Response<B>,
                Error: Into<BoxError>,
                Future: Send,
            > + Clone
            + Send
            + Sync
            + 'static,
        B: http_body::Body<Data = Bytes> + Send + 'static,
        B::Error: Into<BoxError>,
    {
        Self(Box::new(move |inner| {
            let service = layer.layer(inner);
            BoxCloneSyncService::new(service.map_err(Into::into).map_response(
                |response: http::Response<B>| {
                    let HttpResponse { head, body } =
                        quill_transport::adapt::response_from_http(response);
                    let body: BoxBody = Box::pin(body);
                    response_to_http(HttpResponse { head, body })
                },
            ))
        }))
    }
}

/// Dispatch with its body's type forgotten.
#[derive(Clone)]
struct Boxed(Dispatch);

impl Service for Boxed {
    type Body = BoxBody;
    type Future = Pin<Box<dyn Future<Output = HttpResponse<BoxBody>> + Send>>;

    fn call(&self, request: HttpRequest) -> Self::Future {
        let answer = self.0.call(request);
        Box::pin(async move {
            let HttpResponse { head, body } = answer.await;
            let body: BoxBody = Box::pin(body);
            HttpResponse { head, body }
        })
    }
}

/// What connections hand their requests to: CORS before the HTTP-level layers
/// before dispatch, where they are.
#[derive(Clone)]
pub(crate) struct Front {
    cors: Option<CorsFields>,
    inner: Inner,
}

#[derive(Clone)]
enum Inner {
    Direct(Dispatch),
    Layered(FromTower<BoxHttpService>),
}

impl Front {
    /// Dispatch with these layers around it, the first outermost.
    pub(crate) fn new(cors: Option<CorsFields>, layers: &[HttpLayer], dispatch: Dispatch) -> Self {
        Self {
            cors,
            inner: Inner::new(layers, dispatch),
        }
    }
}

impl Inner {
    fn new(layers: &[HttpLayer], dispatch: Dispatch) -> Self {
        if layers.is_empty() {
            return Self::Direct(dispatch);
        }
        let innermost = ServiceExt::<http::Request<HttpBody<RecvBody>>>::map_err(
            TowerService::new(Boxed(dispatch)),
            |never| match never {},
        );
        let mut service: BoxHttpService = BoxCloneSyncService::new(innermost);
        for layer in layers.iter().rev() {
            service = (layer.0)(service);
        }
        Self::Layered(FromTower::new(service))
    }

    fn call(&self, request: HttpRequest) -> Answering {
        match self {
            Self::Direct(dispatch) => dispatch.call(request),
            Self::Layered(service) => {
                let answer = service.call(request);
                Box::pin(async move { other(answer.await) })
            }
        }
    }
}

/// An answer to come.
type Answering = Pin<Box<dyn Future<Output = HttpResponse<ReplyBody>> + Send>>;

fn other(HttpResponse { head, body }: HttpResponse<BoxBody>) -> HttpResponse<ReplyBody> {
    HttpResponse {
        head,
        body: ReplyBody::Other(body),
    }
}

impl Service for Front {
    type Body = ReplyBody;
    type Future = Answering;

    fn begin(
        &self,
        request: HttpRequest,
        cx: &mut Context<'_>,
    ) -> Result<HttpResponse<ReplyBody>, Answering> {
        if let (None, Inner::Direct(dispatch)) = (&self.cors, &self.inner) {
            return dispatch.begin(request, cx);
        }
        let mut answer = self.call(request);
        match answer.as_mut().poll(cx) {
            Poll::Ready(response) => Ok(response),
            Poll::Pending => Err(answer),
        }
    }

    fn call(&self, request: HttpRequest) -> Answering {
        let Some(cors) = &self.cors else {
            return self.inner.call(request);
        };
        if let Some(head) = cors.preflight(&request.head) {
            let body: BoxBody = Box::pin(Empty);
            return Box::pin(std::future::ready(other(HttpResponse { head, body })));
        }
        let allowed = cors.allowed(&request.head);
        let cors = cors.clone();
        let answer = self.inner.call(request);
        Box::pin(async move {
            let mut answer = answer.await;
            cors.mark(allowed, &mut answer.head);
            answer
        })
    }
}

/// A Quill server as a tower service of `http` requests, for other HTTP servers.
#[derive(Clone)]
pub struct HttpService(Front);

impl HttpService {
    pub(crate) fn new(front: Front) -> Self {
        Self(front)
    }
}

impl<B> tower_service::Service<http::Request<B>> for HttpService
where
    B: http_body::Body + Send + 'static,
    B::Error: Into<BoxError>,
{
    type Response = http::Response<HttpBody<ReplyBody>>;
    type Error = Infallible;
    type Future = Pin<Box<dyn Future<Output = Result<Self::Response, Infallible>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: http::Request<B>) -> Self::Future {
        let answer = self.0.call(request_from_http(request));
        Box::pin(async move { Ok(response_to_http(answer.await)) })
    }
}

impl fmt::Debug for HttpService {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("HttpService")
    }
}
