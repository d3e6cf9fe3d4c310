//! What metrics need of the path of a request, beside their layer.

use std::time::Instant;

use quill_core::{Code, Deadline, RequestHead, RequestParts};
use quill_transport::{Full, HttpResponse};

use super::method::KnownMethods;
use super::page::PageService;
use super::record::unfinished;

/// Counts calls that never reach the layers, and answers for the page.
#[derive(Debug, Default)]
pub(crate) struct Metering {
    /// `None` where nothing is counted.
    pub(crate) known: Option<KnownMethods>,
    /// `None` where the page is elsewhere, or nowhere.
    pub(crate) page: Option<PageService>,
}

impl Metering {
    /// A request was refused before there was a call, or a call before its layers.
    pub(crate) fn refused(&self, route: Option<usize>, code: Code) {
        if let Some(known) = &self.known {
            known.of(route).refused(code);
        }
    }

    /// A call whose message is awaited.
    pub(crate) fn receiving(&self, request: &RequestParts) -> Unhandled {
        Unhandled::new(self.known.as_ref(), request)
    }

    /// The page, where a request of no method is for it.
    pub(crate) fn page(&self, request: &RequestHead) -> Option<HttpResponse<Full>> {
        self.page.as_ref()?.answer(request)
    }
}

/// A call that has yet to reach the layers, which count it from there on. One that is
/// dropped before has ended, and is counted here. `None` once it is counted, or is the
/// layers' to count, or where nothing is.
#[derive(Debug, Default)]
pub(crate) struct Unhandled(Option<Box<Waiting>>);

#[derive(Debug)]
struct Waiting {
    known: KnownMethods,
    route: usize,
    deadline: Option<Deadline>,
    /// Since when the layers have not been ready for it.
    queued_since: Option<Instant>,
}

impl Unhandled {
    fn new(known: Option<&KnownMethods>, request: &RequestParts) -> Self {
        let waiting = |known: &KnownMethods| {
            Box::new(Waiting {
                known: known.clone(),
                route: request.route,
                deadline: request.deadline,
                queued_since: None,
            })
        };
        Self(known.map(waiting))
    }

    /// A call that waits until the layers are ready.
    pub(crate) fn queued(known: Option<&KnownMethods>, request: &RequestParts) -> Self {
        let mut unhandled = Self::new(known, request);
        if let Some(waiting) = &mut unhandled.0 {
            waiting.queued_since = Some(Instant::now());
        }
        unhandled
    }

    /// The layers have it.
    pub(crate) fn reached(&mut self) {
        self.0 = None;
    }

    /// It ended with this code, unless the layers have it.
    pub(crate) fn ended(&mut self, code: Code) {
        if let Some(waiting) = self.0.take() {
            waiting.ended(code);
        }
    }
}

impl Waiting {
    fn ended(&self, code: Code) {
        if let Some(since) = self.queued_since {
            self.known.0.queue.add(since.elapsed());
        }
        self.known.of(Some(self.route)).refused(code);
    }
}

impl Drop for Unhandled {
    fn drop(&mut self) {
        if let Some(waiting) = self.0.take() {
            waiting.ended(unfinished(waiting.deadline));
        }
    }
}
