//! What layers have in common that let a call through or refuse it.

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};

use pin_project_lite::pin_project;
use quill_core::{BoxError, Error, Reply, Response};

type Answer = Result<Response<Reply>, BoxError>;

pin_project! {
    /// The answer of a service behind a gate: the service's own, or a refusal.
    pub struct GateFuture<F> {
        #[pin]
        state: State<F>,
    }
}

pin_project! {
    #[project = Projected]
    enum State<F> {
        /// The call was let through.
        Through { #[pin] inner: F },
        /// It was refused; `None` once that was told.
        Refused { error: Option<Error> },
        /// That has to be found out; the one case that needs a box.
        Asking { asking: Pin<Box<dyn Future<Output = Answer> + Send>> },
    }
}

impl<F> GateFuture<F> {
    pub(super) fn through(inner: F) -> Self {
        Self {
            state: State::Through { inner },
        }
    }

    pub(super) fn refused(error: Error) -> Self {
        Self {
            state: State::Refused { error: Some(error) },
        }
    }

    pub(super) fn asking(asking: impl Future<Output = Answer> + Send + 'static) -> Self {
        Self {
            state: State::Asking {
                asking: Box::pin(asking),
            },
        }
    }
}

impl<F, E> Future for GateFuture<F>
where
    F: Future<Output = Result<Response<Reply>, E>>,
    E: Into<BoxError>,
{
    type Output = Answer;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Answer> {
        match self.project().state.project() {
            Projected::Through { inner } => inner.poll(cx).map_err(Into::into),
            Projected::Refused { error } => match error.take() {
                Some(error) => Poll::Ready(Err(error.into())),
                None => Poll::Pending,
            },
            Projected::Asking { asking } => asking.as_mut().poll(cx),
        }
    }
}

impl<F> fmt::Debug for GateFuture<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let state = match self.state {
            State::Through { .. } => "Through",
            State::Refused { .. } => "Refused",
            State::Asking { .. } => "Asking",
        };
        f.debug_tuple("GateFuture").field(&state).finish()
    }
}
