//! The answer of a counted call.

use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use pin_project_lite::pin_project;
use quill_core::{BoxError, Reply, Response};

use super::record::CallRecord;
use super::streams::{CountedOutbound, CountedOutgoing};
use crate::stack::of_layer;

pin_project! {
    /// The future of [`MetricsService`](super::layer::MetricsService).
    pub(crate) struct MetricsFuture<F> {
        #[pin]
        inner: F,
        record: Option<CallRecord>,
    }
}

impl<F> MetricsFuture<F> {
    pub(super) fn new(inner: F, record: CallRecord) -> Self {
        Self {
            inner,
            record: Some(record),
        }
    }
}

impl<F, E> Future for MetricsFuture<F>
where
    F: Future<Output = Result<Response<Reply>, E>>,
    E: Into<BoxError>,
{
    type Output = Result<Response<Reply>, BoxError>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let this = self.project();
        let polled = match this.record {
            Some(record) => record.run(|| this.inner.poll(cx)),
            None => this.inner.poll(cx),
        };
        let answer = ready!(polled);
        let Some(mut record) = this.record.take() else {
            return Poll::Ready(answer.map_err(Into::into));
        };
        Poll::Ready(match answer {
            Ok(response) => Ok(response.map(|reply| counted(reply, record))),
            Err(error) => {
                // What the caller will be told, and so what is counted.
                let error = of_layer(error.into());
                record.end(Some(error.code()));
                Err(error.into())
            }
        })
    }
}

/// The same answer, whose end is that of the call.
fn counted(reply: Reply, record: CallRecord) -> Reply {
    match reply {
        Reply::One(message) => Reply::One(Box::new(CountedOutgoing::new(message, record))),
        Reply::Many(messages) => Reply::Many(Box::pin(CountedOutbound::new(messages, record))),
    }
}
