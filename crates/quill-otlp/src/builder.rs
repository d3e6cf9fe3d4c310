//! The settings.

use std::sync::Arc;
use std::time::Duration;

use quill_client::{ConnectError, QuillClient, RetryLayer, RetryPolicy};
use quill_core::Code;
use quill_core::trace::Sampling;
use quill_server::metrics::MetricsCollector;
use quill_wire::Protocol;

use crate::exporter::{Exporter, Intervals};
use crate::otlp::Otlp;
use crate::proto::opentelemetry::proto::collector::{metrics, trace};
use crate::queue::{Counts, SpanQueue};
use crate::resource::resource;

/// Where a collector listens for OTLP over gRPC, unless said otherwise.
const ENDPOINT_DEFAULT: &str = "http://localhost:4317";
const SPANS_MAX_DEFAULT: usize = 2048;
const SPANS_EVERY_DEFAULT: Duration = Duration::from_secs(5);
const METRICS_EVERY_DEFAULT: Duration = Duration::from_secs(60);
/// The shortest time between two requests of a kind.
const EVERY_MIN: Duration = Duration::from_millis(10);
/// The longest, a year: a clock can still add it.
const EVERY_MAX: Duration = Duration::from_secs(365 * 24 * 60 * 60);
const SPANS_MOST: usize = 1 << 20;
/// How long a request and its retries may take.
const TIMEOUT: Duration = Duration::from_secs(10);
/// What OTLP has tried again.
const RETRIED: [Code; 6] = [
    Code::Canceled,
    Code::DeadlineExceeded,
    Code::Aborted,
    Code::OutOfRange,
    Code::Unavailable,
    Code::DataLoss,
];

/// The settings of an [`Otlp`].
#[derive(Clone, Debug)]
#[must_use]
pub struct OtlpBuilder {
    service: String,
    endpoint: String,
    client: Option<QuillClient>,
    attributes: Vec<(String, String)>,
    sampling: Sampling,
    collector: Option<MetricsCollector>,
    spans_max: usize,
    intervals: Intervals,
}

impl OtlpBuilder {
    pub(crate) fn new(service: String) -> Self {
        Self {
            service,
            endpoint: ENDPOINT_DEFAULT.to_owned(),
            client: None,
            attributes: Vec::new(),
            sampling: Sampling::always(),
            collector: None,
            spans_max: SPANS_MAX_DEFAULT,
            intervals: Intervals {
                spans: SPANS_EVERY_DEFAULT,
                metrics: METRICS_EVERY_DEFAULT,
            },
        }
    }

    /// Where the collector takes OTLP over gRPC; `http://localhost:4317` unless set.
    pub fn endpoint(mut self, url: impl Into<String>) -> Self {
        self.endpoint = url.into();
        self
    }

    /// Sends by this client, which must speak gRPC, in place of one for the
    /// endpoint: for TLS, tokens and other settings of its own.
    pub fn client(mut self, client: QuillClient) -> Self {
        self.client = Some(client);
        self
    }

    /// Says this of the process beside its service's name, such as
    /// `deployment.environment.name` (an attribute of the OTLP resource).
    pub fn attribute(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        self.attributes.push((name.into(), value.into()));
        self
    }

    /// Which traces are recorded: what callers decided, and all that begin here,
    /// unless set.
    pub fn sampling(mut self, sampling: Sampling) -> Self {
        self.sampling = sampling;
        self
    }

    /// Sends what `metrics` counts too.
    pub fn metrics(mut self, metrics: &MetricsCollector) -> Self {
        self.collector = Some(metrics.clone());
        self
    }

    /// How often metrics are sent; 60 s unless set, 10 ms at least and a year at
    /// most.
    pub fn metrics_every(mut self, interval: Duration) -> Self {
        self.intervals.metrics = interval.clamp(EVERY_MIN, EVERY_MAX);
        self
    }

    /// How often spans are sent, where 512 have not come together before; 5 s
    /// unless set, 10 ms at least and a year at most.
    pub fn spans_every(mut self, interval: Duration) -> Self {
        self.intervals.spans = interval.clamp(EVERY_MIN, EVERY_MAX);
        self
    }

    /// Most spans that wait to be sent; 2048 unless set, 1 at least and 1,048,576 at
    /// most. One takes some 300 bytes, and up to 2 KiB with the text of an error and a
    /// `tracestate`.
    pub fn spans_max(mut self, spans: usize) -> Self {
        self.spans_max = spans.clamp(1, SPANS_MOST);
        self
    }

    /// Begins to send, by a task of the runtime in which this is called. Nothing is
    /// connected before there is something to send.
    ///
    /// # Errors
    /// The endpoint is no URL that can be used.
    ///
    /// # Panics
    /// Outside of a tokio runtime.
    pub fn start(self) -> Result<Otlp, ConnectError> {
        let client = match self.client {
            Some(client) => client,
            None => client(&self.endpoint)?,
        };
        let counts = Arc::new(Counts::default());
        let (queue, waiting) = SpanQueue::new(self.spans_max, Arc::clone(&counts));
        let resource = resource(&self.service, &self.attributes);
        let exporter = Exporter::new(&client, resource, self.collector, Arc::clone(&counts));
        tokio::spawn(exporter.run(waiting, self.intervals));
        Ok(Otlp::new(queue, self.sampling, counts))
    }
}

fn client(endpoint: &str) -> Result<QuillClient, ConnectError> {
    let policy = RetryPolicy::new().codes(RETRIED);
    let retry = [
        &trace::v1::trace_service::EXPORT,
        &metrics::v1::metrics_service::EXPORT,
    ]
    .into_iter()
    .fold(RetryLayer::new(policy.clone()), |retry, method| {
        retry.method(method.path(), policy.clone())
    });
    QuillClient::builder()
        .base_url(endpoint)
        .protocol(Protocol::Grpc)
        .timeout(TIMEOUT)
        .retry(retry)
        .build()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn what_is_far_too_much_is_the_most() {
        let builder = OtlpBuilder::new("test".to_owned());
        let builder = builder.spans_max(usize::MAX).spans_every(Duration::MAX);
        let builder = builder.metrics_every(Duration::MAX);
        let Intervals { spans, metrics } = builder.intervals;
        for interval in [spans, metrics] {
            assert!(tokio::time::Instant::now().checked_add(interval).is_some());
        }
        // A channel of more than can be counted panics.
        builder.start().unwrap();
    }
}
