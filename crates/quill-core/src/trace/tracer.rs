//! What makes traces.

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

use super::context::TraceContext;
use super::id::{SpanId, TraceId};
use super::sampling::Sampling;
use super::span::Span;

/// What resolves once spans have gone where they go.
pub type Flush = Pin<Box<dyn Future<Output = ()> + Send>>;

/// Where spans go.
pub trait SpanSink: Send + Sync + 'static {
    /// Takes a span. It is called on the path of a call: it must not block, and
    /// rather drop the span than keep any number of them.
    fn take(&self, span: Span);

    /// Resolves once what was taken has gone, or was given up; within a time that
    /// the sink bounds, since a server that drains waits for it.
    fn flush(&self) -> Flush;
}

/// Gives each call its place in a trace, and hands on those that are recorded.
/// Clones are one.
///
/// ```
/// use quill_core::trace::{Sampling, Tracer};
///
/// let tracer = Tracer::unrecorded();
/// let root = tracer.begin(None);
/// let child = tracer.begin(Some(&root));
/// assert_eq!(child.trace_id(), root.trace_id());
/// assert_eq!(child.parent_id(), Some(root.span_id()));
/// ```
#[derive(Clone)]
pub struct Tracer {
    sampling: Sampling,
    sink: Option<Arc<dyn SpanSink>>,
}

impl Tracer {
    /// Records all traces that begin here, and those that callers record.
    #[must_use]
    pub fn new(sink: impl SpanSink) -> Self {
        Self {
            sampling: Sampling::always(),
            sink: Some(Arc::new(sink)),
        }
    }

    /// Records nothing: calls have a place in a trace, which is in the logs, in
    /// errors and in what handlers call, and callers' decisions go on unchanged.
    #[must_use]
    pub fn unrecorded() -> Self {
        Self {
            sampling: Sampling::never(),
            sink: None,
        }
    }

    /// Records by this.
    #[must_use]
    pub fn sampling(mut self, sampling: Sampling) -> Self {
        self.sampling = sampling;
        self
    }

    /// The place of a call below `parent`, or at the top of a new trace.
    #[must_use]
    pub fn begin(&self, parent: Option<&TraceContext>) -> TraceContext {
        let decide = |id: TraceId, caller| self.sampling.decide(id.low(), caller);
        match parent {
            Some(parent) => parent.child(decide(parent.trace_id(), Some(parent.is_sampled()))),
            None => {
                let id = TraceId::random();
                TraceContext::new(id, SpanId::random(), decide(id, None))
            }
        }
    }

    /// Whether a call at this place is to be handed to [`record`](Self::record).
    #[must_use]
    pub fn records(&self, context: &TraceContext) -> bool {
        self.sink.is_some() && context.is_sampled()
    }

    /// Hands a call on that has ended.
    pub fn record(&self, span: Span) {
        if let Some(sink) = &self.sink {
            sink.take(span);
        }
    }

    /// Resolves once all that was recorded has gone where it goes.
    pub fn flush(&self) -> Flush {
        match &self.sink {
            Some(sink) => sink.flush(),
            None => Box::pin(std::future::ready(())),
        }
    }
}

impl fmt::Debug for Tracer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Tracer")
            .field("sampling", &self.sampling)
            .field("records", &self.sink.is_some())
            .finish()
    }
}
