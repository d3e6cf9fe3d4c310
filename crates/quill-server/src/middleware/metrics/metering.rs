//! What metrics, traces and logs need of the path of a request, beside their layers.

use std::sync::Arc;
use std::time::Instant;

use quill_core::trace::{TraceContext, TraceId};
use quill_core::{CallContext, Code, Deadline, Error, RequestHead, RequestParts};
use quill_transport::{Full, HttpResponse};

use super::method::KnownMethods;
use super::page::PageService;
use crate::middleware::observe::{Observation, Observer, Refused};
use crate::middleware::watch::{CallWatch, unfinished};

/// Counts and observes calls that never reach the layers, and answers for the page.
#[derive(Debug, Default)]
pub(crate) struct Metering {
    pub(crate) watching: Watching,
    /// `None` where the page is elsewhere, or nowhere.
    pub(crate) page: Option<PageService>,
}

/// Who watches the calls of a server.
#[derive(Clone, Debug, Default)]
pub(crate) struct Watching {
    /// `None` where nothing is counted.
    pub(crate) known: Option<KnownMethods>,
    /// `None` where nothing is traced or logged.
    pub(crate) observer: Option<Observer>,
}

impl Metering {
    /// A request was refused before there was a call, or a call before its layers.
    pub(crate) fn refused(&self, route: Option<usize>, refused: &Refused<'_>) {
        if let Some(known) = &self.watching.known {
            known.of(route).refused(refused.code);
        }
        if let Some(observer) = &self.watching.observer {
            observer.refused(refused);
        }
    }

    /// A call whose message is awaited, in this context.
    pub(crate) fn receiving(&self, request: &RequestParts, context: &CallContext) -> Unhandled {
        Unhandled::new(&self.watching, request, context)
    }

    /// The page, where a request of no method is for it.
    pub(crate) fn page(&self, request: &RequestHead) -> Option<HttpResponse<Full>> {
        self.page.as_ref()?.answer(request)
    }

    /// The place in a trace of a call: the next below its caller's, or that itself
    /// where nothing is traced.
    pub(crate) fn trace(&self, caller: Option<&Arc<TraceContext>>) -> Option<Arc<TraceContext>> {
        let observer = self.watching.observer.as_ref();
        match observer.and_then(Observer::tracer) {
            Some(tracer) => Some(Arc::new(tracer.begin(caller.map(|caller| &**caller)))),
            None => caller.cloned(),
        }
    }

    /// What a call at this place is called in its error; `None` where nothing is
    /// traced.
    pub(crate) fn request_id(&self, trace: Option<&TraceContext>) -> Option<TraceId> {
        self.watching.observer.as_ref()?.tracer()?;
        trace.map(TraceContext::trace_id)
    }
}

/// A call that has yet to reach the layers, which watch it from there on. One that is
/// dropped before has ended, and is seen here. `None` once it was seen, or is the
/// layers' to see, or where nobody watches.
#[derive(Debug, Default)]
pub(crate) struct Unhandled(Option<Box<Waiting>>);

#[derive(Debug)]
struct Waiting {
    known: Option<KnownMethods>,
    observation: Option<Observation>,
    route: usize,
    deadline: Option<Deadline>,
    /// Since when the layers have not been ready for it.
    queued_since: Option<Instant>,
}

impl Unhandled {
    fn new(watching: &Watching, request: &RequestParts, context: &CallContext) -> Self {
        let observer = watching.observer.as_ref();
        if watching.known.is_none() && observer.is_none() {
            return Self(None);
        }
        Self(Some(Box::new(Waiting {
            known: watching.known.clone(),
            observation: observer
                .and_then(|observer| observer.wait(request, context.trace.clone())),
            route: request.route,
            deadline: request.deadline,
            queued_since: None,
        })))
    }

    /// A call that waits until the layers are ready.
    pub(crate) fn queued(watching: &Watching, request: &RequestParts) -> Self {
        let mut unhandled = Self::new(watching, request, &CallContext::current());
        if let Some(waiting) = &mut unhandled.0 {
            waiting.queued_since = Some(Instant::now());
        }
        unhandled
    }

    /// The layers have it.
    pub(crate) fn reached(&mut self) {
        if let Some(waiting) = self.0.take()
            && let Some(mut observation) = waiting.observation
        {
            observation.forget();
        }
    }

    /// The layers refused it, and counted that.
    pub(crate) fn refused(&mut self, error: &Error) {
        if let Some(waiting) = self.0.take()
            && let Some(mut observation) = waiting.observation
        {
            observation.fail(error);
        }
    }

    /// It ended with this error, unless the layers have it.
    pub(crate) fn ended(&mut self, error: &Error) {
        if let Some(mut waiting) = self.0.take() {
            waiting.count(error.code());
            if let Some(observation) = &mut waiting.observation {
                observation.fail(error);
            }
        }
    }
}

impl Waiting {
    fn count(&self, code: Code) {
        let Some(known) = &self.known else {
            return;
        };
        if let Some(since) = self.queued_since {
            known.0.queue.add(since.elapsed());
        }
        known.of(Some(self.route)).refused(code);
    }
}

impl Drop for Unhandled {
    fn drop(&mut self) {
        // An observation sees for itself that it is dropped.
        if let Some(waiting) = self.0.take() {
            waiting.count(unfinished(waiting.deadline));
        }
    }
}
