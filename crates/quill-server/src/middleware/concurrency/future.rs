//! The answer of a call that was let in, or not.

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use pin_project_lite::pin_project;
use quill_core::{BoxError, Reply, Response};

use super::permit::Permit;
use crate::middleware::gate::GateFuture;

pin_project! {
    /// The answer of a service behind a limit, which keeps its place until it has ended.
    pub struct ConcurrencyLimitFuture<F> {
        #[pin]
        inner: GateFuture<F>,
        permit: Option<Permit>,
    }
}

impl<F> ConcurrencyLimitFuture<F> {
    pub(super) fn new(inner: GateFuture<F>, permit: Option<Permit>) -> Self {
        Self { inner, permit }
    }
}

impl<F, E> Future for ConcurrencyLimitFuture<F>
where
    F: Future<Output = Result<Response<Reply>, E>>,
    E: Into<BoxError>,
{
    type Output = Result<Response<Reply>, BoxError>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let this = self.project();
        let answer = ready!(this.inner.poll(cx));
        let permit = this.permit.take();
        Poll::Ready(answer.map(|response| match permit {
            Some(permit) => permit.hold(response),
            None => response,
        }))
    }
}

impl<F> fmt::Debug for ConcurrencyLimitFuture<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("ConcurrencyLimitFuture")
            .field(&self.inner)
            .finish()
    }
}
