//! The layer around all but the metrics.

use std::task::{Context, Poll};

use quill_core::{BoxError, CallContext, Incoming, Reply, Request, Response};
use tower_layer::Layer;
use tower_service::Service;

use super::observation::Observation;
use super::observer::Observer;
use crate::middleware::watch::{Arrivals, CallWatch, WatchedFuture, WatchedInbound};

/// Observes the calls of a server.
#[derive(Clone, Debug)]
pub(crate) struct ObserveLayer(pub(crate) Observer);

impl<S> Layer<S> for ObserveLayer {
    type Service = ObserveService<S>;

    fn layer(&self, inner: S) -> ObserveService<S> {
        ObserveService {
            inner,
            observer: self.0.clone(),
        }
    }
}

/// A service whose calls are observed.
#[derive(Clone, Debug)]
pub(crate) struct ObserveService<S> {
    inner: S,
    observer: Observer,
}

impl<S> Service<Request<Incoming>> for ObserveService<S>
where
    S: Service<Request<Incoming>, Response = Response<Reply>, Error: Into<BoxError>>,
{
    type Response = Response<Reply>;
    type Error = BoxError;
    type Future = WatchedFuture<S::Future, Observation>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        self.inner.poll_ready(cx).map_err(Into::into)
    }

    fn call(&mut self, mut request: Request<Incoming>) -> Self::Future {
        let trace = CallContext::current().trace;
        let Some(mut observation) = self.observer.begin(request.parts(), trace) else {
            return WatchedFuture::new(self.inner.call(request), None);
        };
        observation.put_notes(request.extensions_mut());
        let notes = observation.notes();
        let request = request.map(|incoming| match incoming {
            Incoming::One(message) => {
                notes.received(message.len());
                Incoming::One(message)
            }
            Incoming::Many(messages) => {
                let arrivals = notes.clone();
                Incoming::Many(Box::pin(WatchedInbound::new(messages, arrivals)))
            }
        });
        let inner = observation.run(|| self.inner.call(request));
        WatchedFuture::new(inner, Some(observation))
    }
}
