//! The layer around all others.

use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use quill_core::{BoxError, Incoming, Reply, Request, Response};
use tower_layer::Layer;
use tower_service::Service;

use super::method::KnownMethods;
use super::record::{CallRecord, CountedArrivals};
use crate::middleware::watch::{CallWatch, WatchedFuture, WatchedInbound};
use crate::stack::of_layer;

/// Counts the calls of a server.
#[derive(Clone, Debug)]
pub(crate) struct MetricsLayer(pub(crate) KnownMethods);

impl<S> Layer<S> for MetricsLayer {
    type Service = MetricsService<S>;

    fn layer(&self, inner: S) -> MetricsService<S> {
        MetricsService {
            inner,
            known: self.0.clone(),
            waiting_since: None,
            waited: Duration::ZERO,
        }
    }
}

/// A service whose calls are counted.
#[derive(Debug)]
pub(crate) struct MetricsService<S> {
    inner: S,
    known: KnownMethods,
    /// Since when the layers inside have not been ready for a call.
    waiting_since: Option<Instant>,
    /// How long they were not, for the call that comes next.
    waited: Duration,
}

/// A clone has nobody waiting.
impl<S: Clone> Clone for MetricsService<S> {
    fn clone(&self) -> Self {
        MetricsLayer(self.known.clone()).layer(self.inner.clone())
    }
}

impl<S> Service<Request<Incoming>> for MetricsService<S>
where
    S: Service<Request<Incoming>, Response = Response<Reply>, Error: Into<BoxError>>,
{
    type Response = Response<Reply>;
    type Error = BoxError;
    type Future = WatchedFuture<S::Future, CallRecord>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        let ready = self.inner.poll_ready(cx);
        match (&ready, self.waiting_since) {
            (Poll::Pending, None) => self.waiting_since = Some(Instant::now()),
            (Poll::Ready(_), Some(since)) => {
                self.waited = since.elapsed();
                self.waiting_since = None;
            }
            _ => {}
        }
        ready.map_err(|error| {
            // There is no call yet, and will be none.
            let error = of_layer(error.into());
            self.known.of(None).refused(error.code());
            error.into()
        })
    }

    fn call(&mut self, request: Request<Incoming>) -> Self::Future {
        let waited = std::mem::take(&mut self.waited);
        self.known.0.queue.add(waited);
        let mut record = CallRecord::begin(&self.known, request.parts());
        let request = request.map(|incoming| match incoming {
            Incoming::One(message) => {
                record.counts().received(message.len());
                Incoming::One(message)
            }
            Incoming::Many(messages) => {
                let arrivals = CountedArrivals::of(&record);
                Incoming::Many(Box::pin(WatchedInbound::new(messages, arrivals)))
            }
        });
        let inner = record.run(|| self.inner.call(request));
        WatchedFuture::new(inner, Some(record))
    }
}
