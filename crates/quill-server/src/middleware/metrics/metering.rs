//! What metrics need of the path of a request, beside their layer.

use quill_core::{Code, RequestHead};
use quill_transport::{Full, HttpResponse};

use super::method::KnownMethods;
use super::page::PageService;

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

    /// The page, where a request of no method is for it.
    pub(crate) fn page(&self, request: &RequestHead) -> Option<HttpResponse<Full>> {
        self.page.as_ref()?.answer(request)
    }
}
