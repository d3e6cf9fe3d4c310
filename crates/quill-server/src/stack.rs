//! The tower of middleware between dispatch and handlers.

use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};

use quill_core::{BoxError, Error, Incoming, Reply, Request, Response};
use quill_exchange::from_layer;
use tower::ServiceExt;
use tower::util::BoxCloneSyncService;
use tower_service::Service;

use crate::handler::HandlerFuture;
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
pub(crate) type BoxStack = BoxCloneSyncService<Request<Incoming>, Response<Reply>, BoxError>;

/// What dispatch calls: the handlers, or layers around them.
pub(crate) enum Stack {
    /// No layers were added: nothing is between.
    Bare(Arc<Routes>),
    /// Layers, ready services waiting for their next call. A call takes one out
    /// for as long as it waits for readiness, so that calls never wait for each
    /// other unless a layer wants it.
    Layered {
        prototype: BoxStack,
        idle: Mutex<Vec<BoxStack>>,
    },
}

/// Most services kept for later calls.
const IDLE_MAX: usize = 64;

impl Stack {
    pub(crate) fn layered(prototype: BoxStack) -> Self {
        Self::Layered {
            prototype,
            idle: Mutex::new(Vec::new()),
        }
    }

    pub(crate) fn call(self: &Arc<Self>, request: Request<Incoming>) -> HandlerFuture {
        match &**self {
            Stack::Bare(routes) => routes.call(request),
            Stack::Layered { .. } => Box::pin(Arc::clone(self).call_layered(request)),
        }
    }

    async fn call_layered(
        self: Arc<Self>,
        request: Request<Incoming>,
    ) -> Result<Response<Reply>, Error> {
        let Some(mut service) = self.take() else {
            return Err(Error::internal("the server has no layers"));
        };
        service.ready().await.map_err(of_layer)?;
        let call: Pin<Box<dyn Future<Output = _> + Send>> = Box::pin(service.call(request));
        self.give_back(service);
        call.await.map_err(of_layer)
    }

    fn take(&self) -> Option<BoxStack> {
        match self {
            Stack::Bare(_) => None,
            Stack::Layered { prototype, idle } => {
                let waiting = idle.lock().unwrap_or_else(PoisonError::into_inner).pop();
                Some(waiting.unwrap_or_else(|| prototype.clone()))
            }
        }
    }

    fn give_back(&self, service: BoxStack) {
        if let Stack::Layered { idle, .. } = self {
            let mut idle = idle.lock().unwrap_or_else(PoisonError::into_inner);
            if idle.len() < IDLE_MAX {
                idle.push(service);
            }
        }
    }
}

pub(crate) fn of_layer(error: BoxError) -> Error {
    from_layer(error, "the server is at its limit of concurrent calls")
}
