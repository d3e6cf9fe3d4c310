//! What a server's builder is told of metrics.

use quill_transport::{BindError, ConnectionCounts, Listener};

use super::collector::MetricsCollector;
use super::metering::{Metering, Watching};
use super::method::KnownMethods;
use super::page::{MetricsPage, PATH_FORM, PageService, Place};
use crate::error::ServeError;
use crate::routes::Routes;

/// What a server's builder is told of metrics.
#[derive(Debug, Default)]
pub(crate) struct MetricsSettings {
    /// `None`: nothing is counted.
    pub(crate) collector: Option<MetricsCollector>,
    pub(crate) page: Option<MetricsPage>,
}

impl MetricsSettings {
    pub(crate) fn check(&self, routes: &Routes) -> Result<(), ServeError> {
        let Some(page) = &self.page else {
            return Ok(());
        };
        let path = &page.path;
        let why = if self.collector.is_none() {
            "there is nothing to show; set metrics too"
        } else if !page.has_path() {
            PATH_FORM
        } else if routes.find(path).is_some() {
            "a method is there"
        } else {
            return Ok(());
        };
        Err(ServeError::setting(format!(
            "metrics_page can't be at {path:?}: {why}"
        )))
    }

    /// The counters of these routes' methods.
    pub(crate) fn known(&self, routes: &Routes, send_bytes_max: usize) -> Option<KnownMethods> {
        let collector = self.collector.as_ref()?;
        Some(collector.methods(routes.methods(), send_bytes_max))
    }

    /// The counters of connections.
    pub(crate) fn connections(&self) -> Option<ConnectionCounts> {
        self.collector.as_ref().map(MetricsCollector::connections)
    }

    /// Binds the address of a page that has one of its own.
    pub(crate) async fn bind_page(&mut self) -> Result<(), BindError> {
        match &mut self.page {
            Some(page) => page.bind().await,
            None => Ok(()),
        }
    }

    /// Whether the page has an address that is still to be bound.
    pub(crate) fn has_page_to_bind(&self) -> bool {
        let page = self.page.as_ref();
        page.is_some_and(|page| matches!(page.place, Place::Address(_)))
    }

    pub(crate) fn has_page_elsewhere(&self) -> bool {
        let page = self.page.as_ref();
        page.is_some_and(|page| !matches!(page.place, Place::Here))
    }

    /// Takes the page that has an address of its own.
    pub(crate) fn page_elsewhere(&mut self) -> Option<(Listener, PageService)> {
        let is_bound = |page: &mut MetricsPage| matches!(page.place, Place::Bound(_));
        let page = self.page.take_if(is_bound)?;
        let service = PageService::new(page.path, self.collector.clone()?);
        match page.place {
            Place::Bound(listener) => Some((listener, service)),
            Place::Here | Place::Address(_) => None,
        }
    }

    /// What dispatch does, with the page that is on the server's own address.
    pub(crate) fn metering(self, watching: Watching) -> Metering {
        let page = self.collector.zip(self.page);
        Metering {
            watching,
            page: page.map(|(collector, page)| PageService::new(page.path, collector)),
        }
    }
}
