//! What observes the calls of a server.

use std::sync::Arc;
use std::time::{Duration, SystemTime};

use quill_core::trace::{TraceContext, Tracer};
use quill_core::{Code, Peer, RequestParts};

use super::observation::Observation;
use crate::ending::Flushes;
use crate::log::{Line, RequestLogger, Traffic};

/// What a server's builder is told of traces and logs.
#[derive(Debug, Default)]
pub(crate) struct ObserverSettings {
    pub(crate) tracer: Option<Tracer>,
    pub(crate) logger: Option<RequestLogger>,
}

impl ObserverSettings {
    /// Has a drain send and write what is left then.
    pub(crate) fn add_flushes(&self, flushes: &mut Flushes) {
        if let Some(tracer) = self.tracer.clone() {
            flushes.push(async move { tracer.flush().await });
        }
        if let Some(logger) = self.logger.clone() {
            flushes.push(async move { logger.flush().await });
        }
    }

    /// What observes calls; `None` where nothing does.
    pub(crate) fn observer(&self, send_bytes_max: usize) -> Option<Observer> {
        let logger = self.logger.clone();
        let logger = logger.filter(|logger| !logger.is_disabled());
        if self.tracer.is_none() && logger.is_none() {
            return None;
        }
        Some(Observer(Arc::new(Inner {
            tracer: self.tracer.clone(),
            logger,
            send_bytes_max,
        })))
    }
}

/// Observes the calls of a server. Clones are one.
#[derive(Clone, Debug)]
pub(crate) struct Observer(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    tracer: Option<Tracer>,
    logger: Option<RequestLogger>,
    send_bytes_max: usize,
}

impl Observer {
    pub(crate) fn tracer(&self) -> Option<&Tracer> {
        self.0.tracer.as_ref()
    }

    pub(super) fn logger(&self) -> Option<&RequestLogger> {
        self.0.logger.as_ref()
    }

    pub(super) fn send_bytes_max(&self) -> usize {
        self.0.send_bytes_max
    }

    /// Writes the line of a request that was refused before it was a call.
    pub(crate) fn refused(&self, refused: &Refused<'_>) {
        let Some(logger) = self.logger() else {
            return;
        };
        let line = Line {
            begun: SystemTime::now(),
            took: Duration::ZERO,
            path: refused.path,
            protocol: refused.protocol,
            http: Some(refused.peer.version()),
            peer: refused.peer.address(),
            identity: None,
            trace: refused.trace,
            failure: Some(refused.code),
            message: refused.message,
            cause: None,
            received: Traffic::default(),
            sent: Traffic::default(),
            metadata: Vec::new(),
        };
        logger.log(line, None);
    }

    /// Begins to observe a call that the layers have, at this place in a trace, where
    /// there is anything to be seen of it: a line or a span is written, or an event of
    /// its handler is taken.
    pub(super) fn begin(
        &self,
        request: &RequestParts,
        trace: Option<Arc<TraceContext>>,
    ) -> Option<Observation> {
        let scope = match self.tracer() {
            Some(_) => scope(request, trace.as_deref()),
            None => tracing::Span::none(),
        };
        let is_seen = !scope.is_none() || self.writes(trace.as_deref());
        is_seen.then(|| Observation::begin(self, request, trace, scope))
    }

    /// Begins to observe a call that waits, for its message or for the layers.
    pub(crate) fn wait(
        &self,
        request: &RequestParts,
        trace: Option<Arc<TraceContext>>,
    ) -> Option<Observation> {
        let is_seen = self.writes(trace.as_deref());
        is_seen.then(|| Observation::begin(self, request, trace, tracing::Span::none()))
    }

    /// Whether a line or a span is written of a call at this place.
    fn writes(&self, trace: Option<&TraceContext>) -> bool {
        let records = |(tracer, trace): (&Tracer, _)| tracer.records(trace);
        self.0.logger.is_some() || self.tracer().zip(trace).is_some_and(records)
    }
}

/// The scope of a call, for events of `tracing`.
fn scope(request: &RequestParts, trace: Option<&TraceContext>) -> tracing::Span {
    let path = request.method.as_ref().map(|method| method.path());
    tracing::info_span!(
        target: "quill::call",
        "call",
        method = path,
        protocol = request.protocol,
        trace_id = trace.map(|trace| tracing::field::display(trace.trace_id())),
        span_id = trace.map(|trace| tracing::field::display(trace.span_id())),
        code = tracing::field::Empty,
    )
}

/// A request that was refused before it was a call.
pub(crate) struct Refused<'a> {
    pub(crate) path: &'a str,
    pub(crate) protocol: &'static str,
    pub(crate) peer: &'a Peer,
    pub(crate) trace: Option<&'a TraceContext>,
    pub(crate) code: Code,
    pub(crate) message: Option<&'a str>,
}
