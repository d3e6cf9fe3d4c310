//! A server's settings that are of what others see of it.

use quill_core::trace::Tracer;

use super::ServerBuilder;
use crate::log::RequestLogger;
use crate::metrics::{MetricsCollector, MetricsPage};

impl<L> ServerBuilder<L> {
    /// Counts the calls and connections of the server in `metrics`: calls around
    /// all layers, whenever it is set.
    pub fn metrics(mut self, metrics: &MetricsCollector) -> Self {
        self.settings.metrics.collector = Some(metrics.clone());
        self
    }

    /// Answers a scraper with what [`metrics`](Self::metrics) counts.
    pub fn metrics_page(mut self, page: MetricsPage) -> Self {
        self.settings.metrics.page = Some(page);
        self
    }

    /// Gives each call its place in a trace, around all layers: see
    /// [`trace`](quill_core::trace). Errors tell their caller the trace's id, as
    /// [`Error::request_id`](quill_core::Error::request_id). A drain ends with the
    /// flush of what the tracer recorded.
    pub fn tracer(mut self, tracer: impl Into<Tracer>) -> Self {
        self.settings.observer.tracer = Some(tracer.into());
        self
    }

    /// Writes a line for each call, around all layers. A drain ends with the flush
    /// of the lines.
    pub fn request_logger(mut self, logger: RequestLogger) -> Self {
        self.settings.observer.logger = Some(logger);
        self
    }
}
