//! Calls as traces show them.

use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Instant;

use quill_core::trace::{Side, Span, TraceContext, Tracer};
use quill_core::{CallContext, Code, Deadline, Error, Request, RequestParts, Response};
use tower_layer::Layer;
use tower_service::Service;

use crate::messages::{Answer, Messages, Watch, watched};
use crate::stack::{CallFuture, Calls, run};

/// Gives each call its place in a trace.
#[derive(Clone, Debug)]
pub(crate) struct Traces {
    tracer: Tracer,
    /// The server, where it is one.
    target: Option<Arc<str>>,
}

impl Traces {
    pub(crate) fn new(tracer: Tracer) -> Self {
        Self {
            tracer,
            target: None,
        }
    }

    /// All calls go to this server.
    pub(crate) fn lead_to(&mut self, authority: &str) {
        self.target = Some(authority.into());
    }

    /// Begins a call: tells its server where in which trace it is. `None` where it
    /// is not recorded.
    fn begin(&self, request: &mut RequestParts) -> Option<RecordedCall> {
        let own = TraceContext::from_metadata(&request.metadata).map(Arc::new);
        let parent = own.or_else(|| CallContext::current().trace);
        let context = Arc::new(self.tracer.begin(parent.as_deref()));
        context.write_to(&mut request.metadata);
        if !self.tracer.records(&context) {
            return None;
        }
        let mut span = Span::begin(context, Side::Client);
        span.method = request.method.clone();
        span.protocol = request.protocol;
        span.target = self.target.clone();
        Some(RecordedCall {
            tracer: self.tracer.clone(),
            span: Some(span),
            begun: Instant::now(),
            deadline: request.deadline,
        })
    }
}

impl<S> Layer<S> for Traces {
    type Service = Traced<S>;

    fn layer(&self, inner: S) -> Traced<S> {
        Traced {
            inner,
            traces: self.clone(),
        }
    }
}

/// A service whose calls are traced.
#[derive(Clone, Debug)]
pub(crate) struct Traced<S> {
    inner: S,
    traces: Traces,
}

impl<S: Calls> Service<Request<Messages>> for Traced<S> {
    type Response = Response<Answer>;
    type Error = Error;
    type Future = CallFuture;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Error>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, mut request: Request<Messages>) -> CallFuture {
        let recorded = self.traces.begin(request.parts_mut());
        let inner = self.inner.clone();
        Box::pin(async move {
            let recorded = recorded;
            let result = run(inner, request).await;
            match recorded {
                Some(recorded) => watched(result, recorded),
                None => result,
            }
        })
    }
}

/// A call that is recorded when it ends, or is given up.
struct RecordedCall {
    tracer: Tracer,
    /// `None` once it is recorded.
    span: Option<Span>,
    begun: Instant,
    deadline: Option<Deadline>,
}

impl RecordedCall {
    fn finish(&mut self, failure: Option<(Code, &str)>) {
        let Some(mut span) = self.span.take() else {
            return;
        };
        span.took = self.begun.elapsed();
        if let Some((code, message)) = failure {
            span.fail(code, message);
        }
        self.tracer.record(span);
    }
}

impl Watch for RecordedCall {
    fn end(&mut self, result: Result<(), &Error>) {
        let failure = result.err().map(|error| (error.code(), error.message()));
        self.finish(failure);
    }
}

impl Drop for RecordedCall {
    fn drop(&mut self) {
        let is_late = |deadline: Deadline| deadline.instant() <= Instant::now();
        let code = match self.deadline {
            Some(deadline) if is_late(deadline) => Code::DeadlineExceeded,
            _ => Code::Canceled,
        };
        self.finish(Some((code, "")));
    }
}
