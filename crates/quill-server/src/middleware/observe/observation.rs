//! One observed call.

use std::error::Error as StdError;
use std::fmt::Write;
use std::sync::Arc;
use std::time::{Instant, SystemTime};

use quill_core::trace::{Side, Span, TraceContext};
use quill_core::{Code, Error, Extensions, Metadata, Method, Peer, RequestParts};

use super::notes::Notes;
use super::observer::Observer;
use crate::auth::Identity;
use crate::log::{Line, RequestLogger, Traffic};
use crate::middleware::watch::{CallWatch, Ending};

/// Causes of an error that a line shows: a chain may be a circle.
const CAUSES_MAX: usize = 8;

/// Observes one call, from its beginning to its one end.
#[derive(Debug)]
pub(crate) struct Observation(Box<Observed>);

#[derive(Debug)]
struct Observed {
    observer: Observer,
    /// For the events of the handler, by whatever takes those of `tracing`.
    scope: tracing::Span,
    trace: Option<Arc<TraceContext>>,
    method: Option<Arc<Method>>,
    protocol: &'static str,
    peer: Option<Peer>,
    /// Only where a line shows some of it.
    metadata: Option<Metadata>,
    notes: Notes,
    sent: Traffic,
    begun: SystemTime,
    started: Instant,
    ending: Ending,
}

impl Observation {
    pub(super) fn begin(
        observer: &Observer,
        request: &RequestParts,
        trace: Option<Arc<TraceContext>>,
        scope: tracing::Span,
    ) -> Self {
        let logger = observer.logger();
        let shows_metadata = logger.is_some_and(RequestLogger::shows_metadata);
        Self(Box::new(Observed {
            observer: observer.clone(),
            scope,
            trace,
            method: request.method.clone(),
            protocol: request.protocol,
            peer: request.peer.clone(),
            metadata: shows_metadata.then(|| request.metadata.clone()),
            notes: Notes::default(),
            sent: Traffic::default(),
            begun: SystemTime::now(),
            started: Instant::now(),
            ending: Ending::new(request.deadline),
        }))
    }

    /// What layers inside note of the call.
    pub(super) fn notes(&self) -> &Notes {
        &self.0.notes
    }

    /// Lets layers inside note what a line shows.
    pub(super) fn put_notes(&self, extensions: &mut Extensions) {
        if self.0.observer.logger().is_some() {
            extensions.insert(self.0.notes.clone());
        }
    }

    /// The call goes on, and another observes it.
    pub(crate) fn forget(&mut self) {
        self.0.ending.come();
    }

    fn finish(&mut self, failure: Option<Code>, error: Option<&Error>) {
        if self.0.ending.come() {
            self.0.record(failure, error);
            self.0.log(failure, error);
        }
    }
}

impl Observed {
    fn record(&self, failure: Option<Code>, error: Option<&Error>) {
        let code = failure.map_or("ok", Code::name);
        self.scope.record("code", code);
        let (Some(tracer), Some(trace)) = (self.observer.tracer(), &self.trace) else {
            return;
        };
        if !tracer.records(trace) {
            return;
        }
        let mut span = Span::begin(Arc::clone(trace), Side::Server);
        span.method = self.method.clone();
        span.protocol = self.protocol;
        span.peer = self.peer.as_ref().and_then(Peer::address);
        span.begun = self.begun;
        span.took = self.started.elapsed();
        if let Some(code) = failure {
            span.fail(code, error.map_or("", Error::message));
        }
        tracer.record(span);
    }

    fn log(&self, failure: Option<Code>, error: Option<&Error>) {
        let Some(logger) = self.observer.logger() else {
            return;
        };
        let cause = error.and_then(causes);
        let line = Line {
            begun: self.begun,
            took: self.started.elapsed(),
            path: self.method.as_ref().map_or("", |method| method.path()),
            protocol: self.protocol,
            http: self.peer.as_ref().map(Peer::version),
            peer: self.peer.as_ref().and_then(Peer::address),
            identity: self.notes.identity().map(Identity::subject),
            trace: self.trace.as_deref(),
            failure,
            message: error.map(Error::message),
            cause: cause.as_deref(),
            received: self.notes.traffic(),
            sent: self.sent,
            metadata: Vec::new(),
        };
        logger.log(line, self.metadata.as_ref());
    }
}

/// What caused an error, from the nearest on.
fn causes(error: &Error) -> Option<String> {
    let mut text = error.source()?.to_string();
    let mut next = error.source().and_then(StdError::source);
    for _ in 1..CAUSES_MAX {
        let Some(cause) = next else {
            break;
        };
        // Writing to a string does not fail.
        let _ = write!(text, ": {cause}");
        next = cause.source();
    }
    Some(text)
}

impl CallWatch for Observation {
    fn run<T>(&mut self, f: impl FnOnce() -> T) -> T {
        let Observed { scope, ending, .. } = &mut *self.0;
        ending.run(|| scope.in_scope(f))
    }

    fn sent(&mut self, messages: u64, bytes: u64) {
        self.0.sent.add(messages, bytes);
    }

    fn send_bytes_max(&self) -> usize {
        self.0.observer.send_bytes_max()
    }

    fn has_ended(&self) -> bool {
        self.0.ending.has_come()
    }

    fn end(&mut self, failure: Option<Code>) {
        self.finish(failure, None);
    }

    fn fail(&mut self, error: &Error) {
        self.finish(Some(error.code()), Some(error));
    }
}

impl Drop for Observation {
    fn drop(&mut self) {
        if let Some(code) = self.0.ending.at_drop() {
            self.finish(Some(code), None);
        }
    }
}
