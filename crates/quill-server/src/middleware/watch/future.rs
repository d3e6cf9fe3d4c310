//! The answer of a watched call.

use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use pin_project_lite::pin_project;
use quill_core::{BoxError, Reply, Response};

use super::CallWatch;
use super::streams::{WatchedOutbound, WatchedOutgoing};
use crate::stack::of_layer;

pin_project! {
    /// The future of a service whose calls are watched.
    pub(crate) struct WatchedFuture<F, W> {
        #[pin]
        inner: F,
        watch: Option<W>,
    }
}

impl<F, W> WatchedFuture<F, W> {
    /// `None`: nobody watches.
    pub(crate) fn new(inner: F, watch: Option<W>) -> Self {
        Self { inner, watch }
    }
}

impl<F, W, E> Future for WatchedFuture<F, W>
where
    F: Future<Output = Result<Response<Reply>, E>>,
    W: CallWatch,
    E: Into<BoxError>,
{
    type Output = Result<Response<Reply>, BoxError>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let this = self.project();
        let polled = match this.watch {
            Some(watch) => watch.run(|| this.inner.poll(cx)),
            None => this.inner.poll(cx),
        };
        let answer = ready!(polled);
        let Some(mut watch) = this.watch.take() else {
            return Poll::Ready(answer.map_err(Into::into));
        };
        Poll::Ready(match answer {
            Ok(response) => Ok(response.map(|reply| watched(reply, watch))),
            Err(error) => {
                // What the caller will be told, and so what is seen.
                let error = of_layer(error.into());
                watch.fail(&error);
                Err(error.into())
            }
        })
    }
}

/// The same answer, whose end is that of the call.
fn watched(reply: Reply, watch: impl CallWatch) -> Reply {
    match reply {
        Reply::One(message) => Reply::One(Box::new(WatchedOutgoing::new(message, watch))),
        Reply::Many(messages) => Reply::Many(Box::pin(WatchedOutbound::new(messages, watch))),
    }
}
