//! The tower of middleware between dispatch and handlers.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};

use quill_core::{BoxError, Error, Incoming, Reply, Request, Response};
use quill_exchange::from_layer;
use tower::ServiceExt;
use tower::util::BoxCloneSyncService;
use tower_layer::Layer;
use tower_service::Service;

use crate::handler::HandlerFuture;
use crate::middleware::metrics::{MetricsLayer, Unhandled, Watching};
use crate::routes::Routes;

/// The innermost service: finds the method's handler by its number.
#[derive(Clone, Debug)]
pub struct Handlers(pub(crate) Arc<Routes>);

impl Service<Request<Incoming>> for Handlers {
    type Response = Response<Reply>;
    type Error = Error;
    type Future = HandlerFuture;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Error>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<Incoming>) -> Self::Future {
        self.0.call(request)
    }
}

/// What a stack of layers must be to stand in front of handlers.
pub trait RpcLayers: Layer<Handlers, Service: RpcService> {}

impl<L: Layer<Handlers, Service: RpcService>> RpcLayers for L {}

/// A service on the level of RPC: `Request<Incoming>` to `Response<Reply>`.
pub trait RpcService:
    tower_service::Service<
        Request<Incoming>,
        Response = Response<Reply>,
        Error: Into<BoxError>,
        Future: Send + 'static,
    > + Clone
    + Send
    + Sync
    + 'static
{
}

impl<S> RpcService for S where
    S: tower_service::Service<
            Request<Incoming>,
            Response = Response<Reply>,
            Error: Into<BoxError>,
            Future: Send + 'static,
        > + Clone
        + Send
        + Sync
        + 'static
{
}

impl Routes {
    fn call(&self, request: Request<Incoming>) -> HandlerFuture {
        match self.handler(request.parts().route) {
            Some(handler) => handler.call(request),
            None => Box::pin(std::future::ready(Err(Error::unimplemented(
                "there is no handler for this method",
            )))),
        }
    }
}

/// The whole stack of a server, its type forgotten once.
pub(crate) type BoxStack = BoxCloneSyncService<Request<Incoming>, Response<Reply>, Error>;

/// What dispatch calls: the handlers, or layers around them.
pub(crate) enum Stack {
    /// No layers were added: nothing is between.
    Bare(Arc<Routes>),
    Layered(Arc<Layers>),
}

/// Layers, ready services waiting for their next call. A call takes one out for as
/// long as it waits for readiness, so that calls never wait for each other unless a
/// layer wants it.
pub(crate) struct Layers {
    prototype: BoxStack,
    /// Who sees calls that end before the layers are ready for them.
    watching: Watching,
    idle: Mutex<Vec<BoxStack>>,
}

/// Most services kept for later calls.
const IDLE_MAX: usize = 64;

impl Stack {
    fn layered<S: RpcService>(service: S, watching: Watching) -> Self {
        let prototype = service.map_err(|error| of_layer(error.into()));
        Self::Layered(Arc::new(Layers {
            prototype: BoxCloneSyncService::new(prototype),
            watching,
            idle: Mutex::new(Vec::new()),
        }))
    }

    /// These layers, with the metrics around them where there are any.
    pub(crate) fn watched<S: RpcService>(layers: S, watching: &Watching) -> Self {
        let watching = watching.clone();
        match watching.known.clone() {
            Some(known) => Self::layered(MetricsLayer(known).layer(layers), watching),
            None => Self::layered(layers, watching),
        }
    }

    /// Hands a call over; within the task of `cx`, which looks after what has to wait.
    pub(crate) fn call(&self, request: Request<Incoming>, cx: &mut Context<'_>) -> HandlerFuture {
        let layers = match self {
            Stack::Bare(routes) => return routes.call(request),
            Stack::Layered(layers) => layers,
        };
        let mut service = layers.take();
        match service.poll_ready(cx) {
            Poll::Ready(Ok(())) => {
                let answer = service.call(request);
                layers.give_back(service);
                answer
            }
            Poll::Ready(Err(error)) => {
                Unhandled::queued(&layers.watching, request.parts()).refused(&error);
                Box::pin(std::future::ready(Err(error)))
            }
            Poll::Pending => {
                let layers = Arc::clone(layers);
                let mut queued = Unhandled::queued(&layers.watching, request.parts());
                Box::pin(async move {
                    let ready = std::future::poll_fn(|cx| service.poll_ready(cx)).await;
                    if let Err(error) = ready {
                        queued.refused(&error);
                        return Err(error);
                    }
                    queued.reached();
                    let answer = service.call(request);
                    layers.give_back(service);
                    answer.await
                })
            }
        }
    }

    /// As [`call`](Self::call), for who awaits it.
    pub(crate) async fn handle(
        &self,
        request: Request<Incoming>,
    ) -> Result<Response<Reply>, Error> {
        let mut request = Some(request);
        let begin = |cx: &mut Context<'_>| Poll::Ready(request.take().map(|r| self.call(r, cx)));
        match std::future::poll_fn(begin).await {
            Some(answer) => answer.await,
            None => Err(Error::internal("a call was handed over before")),
        }
    }
}

impl Layers {
    fn take(&self) -> BoxStack {
        let waiting = self.lock().pop();
        waiting.unwrap_or_else(|| self.prototype.clone())
    }

    fn give_back(&self, service: BoxStack) {
        let mut idle = self.lock();
        if idle.len() < IDLE_MAX {
            idle.push(service);
        }
    }

    fn lock(&self) -> MutexGuard<'_, Vec<BoxStack>> {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

pub(crate) fn of_layer(error: BoxError) -> Error {
    from_layer(error, "the server is at its limit of concurrent calls")
}
