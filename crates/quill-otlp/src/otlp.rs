//! What sends to a collector, as its users hold it.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use quill_core::trace::{Sampling, SpanSink, Tracer};

use crate::builder::OtlpBuilder;
use crate::queue::{Counts, SpanQueue};

/// Sends spans and metrics to a collector. Clones are one.
///
/// ```no_run
/// # async fn example() -> Result<(), Box<dyn std::error::Error>> {
/// use quill_core::trace::Sampling;
/// use quill_otlp::Otlp;
/// use quill_server::Server;
/// use quill_server::metrics::MetricsCollector;
///
/// let metrics = MetricsCollector::new();
/// let otlp = Otlp::builder("greeter")
///     .sampling(Sampling::ratio(0.1))
///     .metrics(&metrics)
///     .start()?;
/// let builder = Server::builder().tracer(&otlp).metrics(&metrics);
/// # Ok(())
/// # }
/// ```
///
/// A task sends, until all clones and all tracers have gone: it begins on the
/// runtime in which [`start`](OtlpBuilder::start) is called. Spans wait in a queue
/// of a fixed length; those that come while it is full are dropped and counted.
#[derive(Clone, Debug)]
pub struct Otlp {
    queue: SpanQueue,
    sampling: Sampling,
    counts: Arc<Counts>,
}

/// What an [`Otlp`] has sent so far, and what it has not.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct OtlpCounts {
    /// Spans that the collector took.
    pub sent_spans: u64,
    /// Spans that were dropped, since the queue was full.
    pub dropped_spans: u64,
    /// Spans that the collector did not take, or did not answer for.
    pub failed_spans: u64,
    /// Data points of metrics that it took, each time.
    pub sent_metrics: u64,
    /// Data points that it did not take, or did not answer for, each time.
    pub failed_metrics: u64,
}

impl Otlp {
    /// Settings of what sends for the service of this name: its `service.name`.
    pub fn builder(service: impl Into<String>) -> OtlpBuilder {
        OtlpBuilder::new(service.into())
    }

    pub(crate) fn new(queue: SpanQueue, sampling: Sampling, counts: Arc<Counts>) -> Self {
        Self {
            queue,
            sampling,
            counts,
        }
    }

    /// What servers and clients are built with.
    #[must_use]
    pub fn tracer(&self) -> Tracer {
        Tracer::new(self.queue.clone()).sampling(self.sampling)
    }

    /// Sends what waits, and the metrics; resolves once that is done, after five
    /// seconds at most. A server that drains does it.
    pub async fn flush(&self) {
        self.queue.flush().await;
    }

    /// What was sent so far, and what was not.
    #[must_use]
    pub fn counts(&self) -> OtlpCounts {
        let Counts {
            sent_spans,
            dropped_spans,
            failed_spans,
            sent_metrics,
            failed_metrics,
        } = &*self.counts;
        OtlpCounts {
            sent_spans: sent_spans.load(Ordering::Relaxed),
            dropped_spans: dropped_spans.load(Ordering::Relaxed),
            failed_spans: failed_spans.load(Ordering::Relaxed),
            sent_metrics: sent_metrics.load(Ordering::Relaxed),
            failed_metrics: failed_metrics.load(Ordering::Relaxed),
        }
    }
}

impl From<&Otlp> for Tracer {
    fn from(otlp: &Otlp) -> Self {
        otlp.tracer()
    }
}
