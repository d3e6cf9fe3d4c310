//! Spans that wait to be sent.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use quill_core::trace::{Flush, Span, SpanSink};
use tokio::sync::{mpsc, oneshot};

/// How long a flush waits: a collector that does not answer holds up no drain.
const FLUSH_TIMEOUT: Duration = Duration::from_secs(5);

/// Spans that wait to be sent, up to a number: those over it are dropped and
/// counted. Nobody waits for it.
#[derive(Clone, Debug)]
pub(crate) struct SpanQueue {
    spans: mpsc::Sender<Span>,
    flushes: mpsc::Sender<oneshot::Sender<()>>,
    counts: Arc<Counts>,
}

/// The other end.
#[derive(Debug)]
pub(crate) struct Waiting {
    pub(crate) spans: mpsc::Receiver<Span>,
    pub(crate) flushes: mpsc::Receiver<oneshot::Sender<()>>,
}

/// What became of spans and metrics.
#[derive(Debug, Default)]
pub(crate) struct Counts {
    pub(crate) sent_spans: AtomicU64,
    pub(crate) dropped_spans: AtomicU64,
    pub(crate) failed_spans: AtomicU64,
    pub(crate) sent_metrics: AtomicU64,
    pub(crate) failed_metrics: AtomicU64,
}

impl SpanQueue {
    /// A queue of so many spans.
    pub(crate) fn new(spans_max: usize, counts: Arc<Counts>) -> (Self, Waiting) {
        let (spans, waiting) = mpsc::channel(spans_max);
        let (flushes, asked) = mpsc::channel(1);
        let queue = Self {
            spans,
            flushes,
            counts,
        };
        let waiting = Waiting {
            spans: waiting,
            flushes: asked,
        };
        (queue, waiting)
    }
}

impl SpanSink for SpanQueue {
    fn take(&self, span: Span) {
        if self.spans.try_send(span).is_err() {
            self.counts.dropped_spans.fetch_add(1, Ordering::Relaxed);
        }
    }

    fn flush(&self) -> Flush {
        let flushes = self.flushes.clone();
        Box::pin(async move {
            let (done, flushed) = oneshot::channel();
            let flush = async {
                if flushes.send(done).await.is_ok() {
                    let _ = flushed.await;
                }
            };
            let _ = tokio::time::timeout(FLUSH_TIMEOUT, flush).await;
        })
    }
}
