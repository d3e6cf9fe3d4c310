//! The answer, on its way.

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use http::Response;
use pin_project_lite::pin_project;

use super::headers::{self, LimitHeaders};
use crate::decision::Decision;

pin_project! {
    /// The response of a [`RateLimitService`](super::RateLimitService).
    ///
    /// Boxed only where the store must be waited for.
    pub struct ResponseFuture<F, ResBody, E> {
        #[pin]
        state: State<F, ResBody, E>,
    }
}

type BoxedResponse<ResBody, E> = Pin<Box<dyn Future<Output = Result<Response<ResBody>, E>> + Send>>;

pin_project! {
    #[project = StateProjected]
    enum State<F, ResBody, E> {
        Inner { #[pin] future: F, after: Option<After> },
        Refused { response: Option<Response<ResBody>> },
        Asking { future: BoxedResponse<ResBody, E> },
    }
}

/// What to do with the inner service's answer.
pub(super) struct After {
    pub(super) decision: Decision,
    pub(super) headers: LimitHeaders,
    /// The name that the IETF headers need; other answers do not touch the
    /// count of its owners, which all threads share.
    pub(super) policy: Option<Arc<str>>,
}

impl After {
    pub(super) fn apply<ResBody>(&self, response: &mut Response<ResBody>) {
        let policy = self.policy.as_deref().unwrap_or_default();
        headers::add(response.headers_mut(), self.headers, policy, &self.decision);
    }
}

impl<F, ResBody, E> ResponseFuture<F, ResBody, E> {
    pub(super) const fn inner(future: F, after: Option<After>) -> Self {
        Self {
            state: State::Inner { future, after },
        }
    }

    pub(super) const fn refused(response: Response<ResBody>) -> Self {
        Self {
            state: State::Refused {
                response: Some(response),
            },
        }
    }

    pub(super) fn boxed(
        future: impl Future<Output = Result<Response<ResBody>, E>> + Send + 'static,
    ) -> Self {
        Self {
            state: State::Asking {
                future: Box::pin(future),
            },
        }
    }
}

impl<F, ResBody, E> Future for ResponseFuture<F, ResBody, E>
where
    F: Future<Output = Result<Response<ResBody>, E>>,
{
    type Output = Result<Response<ResBody>, E>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        match self.project().state.project() {
            StateProjected::Inner { future, after } => {
                // Changed in its place: a response is large to move about.
                let mut polled = future.poll(cx);
                if let (Poll::Ready(Ok(response)), Some(after)) = (&mut polled, after) {
                    after.apply(response);
                }
                polled
            }
            StateProjected::Refused { response } => match response.take() {
                Some(response) => Poll::Ready(Ok(response)),
                // Polled after it was done, which the contract forbids.
                None => Poll::Pending,
            },
            StateProjected::Asking { future } => future.as_mut().poll(cx),
        }
    }
}

impl<F, ResBody, E> fmt::Debug for ResponseFuture<F, ResBody, E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ResponseFuture")
    }
}
