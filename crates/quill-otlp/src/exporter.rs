//! The task that sends.

use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, SystemTime};

use quill_client::QuillClient;
use quill_core::Error;
use quill_core::trace::Span;
use quill_server::metrics::MetricsCollector;
use tokio::time::{Instant, Sleep};

use crate::proto::opentelemetry::proto::collector::metrics::v1::{
    ExportMetricsServiceRequest, MetricsClient,
};
use crate::proto::opentelemetry::proto::collector::trace::v1::{
    ExportTraceServiceRequest, TraceClient,
};
use crate::proto::opentelemetry::proto::metrics::v1::{ResourceMetrics, ScopeMetrics};
use crate::proto::opentelemetry::proto::resource::v1::Resource;
use crate::proto::opentelemetry::proto::trace::v1::{ResourceSpans, ScopeSpans};
use crate::queue::{Counts, Waiting};
use crate::resource::scope;
use crate::{metric, span};

/// Most spans of one request.
const BATCH_SPANS_MAX: usize = 512;

/// Sends spans and metrics until nobody is left who could record any.
pub(crate) struct Exporter {
    traces: TraceClient,
    metrics: MetricsClient,
    resource: Resource,
    collector: Option<MetricsCollector>,
    counts: Arc<Counts>,
    batch: Vec<Span>,
    /// The last request of the kind failed.
    spans_fail: bool,
    metrics_fail: bool,
}

/// How often is sent.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Intervals {
    pub(crate) spans: Duration,
    pub(crate) metrics: Duration,
}

impl Exporter {
    pub(crate) fn new(
        client: &QuillClient,
        resource: Resource,
        collector: Option<MetricsCollector>,
        counts: Arc<Counts>,
    ) -> Self {
        Self {
            traces: TraceClient::new(client.clone()),
            metrics: MetricsClient::new(client.clone()),
            resource,
            collector,
            counts,
            batch: Vec::with_capacity(BATCH_SPANS_MAX),
            spans_fail: false,
            metrics_fail: false,
        }
    }

    pub(crate) async fn run(mut self, mut waiting: Waiting, intervals: Intervals) {
        let mut spans_due = pin!(tokio::time::sleep(intervals.spans));
        let mut metrics_due = pin!(tokio::time::sleep(intervals.metrics));
        loop {
            let room = BATCH_SPANS_MAX - self.batch.len();
            tokio::select! {
                received = waiting.spans.recv_many(&mut self.batch, room) => {
                    if received == 0 {
                        break;
                    }
                    if self.batch.len() == BATCH_SPANS_MAX {
                        self.send_spans().await;
                        reset(spans_due.as_mut(), intervals.spans);
                    }
                }
                () = spans_due.as_mut() => {
                    self.send_spans().await;
                    reset(spans_due.as_mut(), intervals.spans);
                }
                () = metrics_due.as_mut(), if self.collector.is_some() => {
                    self.send_metrics().await;
                    reset(metrics_due.as_mut(), intervals.metrics);
                }
                Some(done) = waiting.flushes.recv() => {
                    self.flush(&mut waiting).await;
                    // Whoever asked may have gone.
                    let _ = done.send(());
                }
            }
        }
        self.send_spans().await;
        self.send_metrics().await;
    }

    /// Sends what waits now; what comes meanwhile is for the next time.
    async fn flush(&mut self, waiting: &mut Waiting) {
        let mut left = waiting.spans.len();
        while left > 0 {
            let Ok(span) = waiting.spans.try_recv() else {
                break;
            };
            self.batch.push(span);
            left -= 1;
            if self.batch.len() == BATCH_SPANS_MAX {
                self.send_spans().await;
            }
        }
        self.send_spans().await;
        self.send_metrics().await;
    }

    async fn send_spans(&mut self) {
        if self.batch.is_empty() {
            return;
        }
        let spans: Vec<_> = self
            .batch
            .drain(..)
            .map(|own| span::to_wire(&own))
            .collect();
        let sent = spans.len() as u64;
        let request = ExportTraceServiceRequest {
            resource_spans: vec![ResourceSpans {
                resource: self.resource.clone().into(),
                scope_spans: vec![ScopeSpans {
                    scope: scope().into(),
                    spans,
                    ..Default::default()
                }],
                ..Default::default()
            }],
            ..Default::default()
        };
        let result = self.traces.export(request).await;
        let rejected = result.map(|response| {
            let partial = &response.message().partial_success;
            (partial.rejected_spans, partial.error_message.clone())
        });
        let rejected = note("spans", &mut self.spans_fail, sent, rejected);
        add(&self.counts.sent_spans, sent - rejected);
        add(&self.counts.failed_spans, rejected);
    }

    async fn send_metrics(&mut self) {
        let Some(collector) = &self.collector else {
            return;
        };
        let metrics = metric::to_wire(collector, SystemTime::now());
        let sent = metrics.iter().map(metric::points).sum::<usize>() as u64;
        let request = ExportMetricsServiceRequest {
            resource_metrics: vec![ResourceMetrics {
                resource: self.resource.clone().into(),
                scope_metrics: vec![ScopeMetrics {
                    scope: scope().into(),
                    metrics,
                    ..Default::default()
                }],
                ..Default::default()
            }],
            ..Default::default()
        };
        let result = self.metrics.export(request).await;
        let rejected = result.map(|response| {
            let partial = &response.message().partial_success;
            (partial.rejected_data_points, partial.error_message.clone())
        });
        let rejected = note("metrics", &mut self.metrics_fail, sent, rejected);
        add(&self.counts.sent_metrics, sent - rejected);
        add(&self.counts.failed_metrics, rejected);
    }
}

/// How many of what was sent the collector did not take; the first failure of a row is
/// told, and its end.
fn note(what: &str, is_failing: &mut bool, sent: u64, answer: Result<(i64, String), Error>) -> u64 {
    let (rejected, why) = match answer {
        Ok((rejected, why)) => (u64::try_from(rejected).unwrap_or(0).min(sent), why),
        Err(error) => (sent, error.to_string()),
    };
    let fails = rejected > 0;
    if fails && !*is_failing {
        tracing::warn!(rejected, why, "the collector does not take {what}");
    } else if !fails && *is_failing {
        tracing::info!("the collector takes {what} again");
    }
    *is_failing = fails;
    rejected
}

fn reset(due: std::pin::Pin<&mut Sleep>, interval: Duration) {
    due.reset(Instant::now() + interval);
}

fn add(counter: &AtomicU64, n: u64) {
    counter.fetch_add(n, Ordering::Relaxed);
}
