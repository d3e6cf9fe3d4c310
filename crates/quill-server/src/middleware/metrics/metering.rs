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
        Unhandled::new(self.known.clone(), request, None)
    }

    /// The page, where a request of no method is for it.
    pub(crate) fn page(&self, request: &RequestHead) -> Option<HttpResponse<Full>> {
        self.page.as_ref()?.answer(request)
    }
}

/// A call that has yet to reach the layers, which count it from there on. One that is
/// dropped before has ended, and is counted here.
#[derive(Debug, Default)]
pub(crate) struct Unhandled {
    /// `None` once it is counted, or is the layers' to count.
    known: Option<KnownMethods>,
    route: usize,
    deadline: Option<Deadline>,
    /// Since when the layers have not been ready for it.
    waiting_since: Option<Instant>,
}

impl Unhandled {
    fn new(
        known: Option<KnownMethods>,
        request: &RequestParts,
        waiting_since: Option<Instant>,
    ) -> Self {
        Self {
            known,
            route: request.route,
            deadline: request.deadline,
            waiting_since,
        }
    }

    /// A call that waits until the layers are ready.
    pub(crate) fn queued(known: Option<&KnownMethods>, request: &RequestParts) -> Self {
        Self::new(known.cloned(), request, Some(Instant::now()))
    }

    /// The layers have it.
    pub(crate) fn reached(&mut self) {
        self.known = None;
    }

    /// It ended with this code, unless the layers have it.
    pub(crate) fn ended(&mut self, code: Code) {
        let Some(known) = self.known.take() else {
            return;
        };
        if let Some(since) = self.waiting_since {
            known.0.queue.add(since.elapsed());
        }
        known.of(Some(self.route)).refused(code);
    }
}

impl Drop for Unhandled {
    fn drop(&mut self) {
        if self.known.is_some() {
            self.ended(unfinished(self.deadline));
        }
    }
}
