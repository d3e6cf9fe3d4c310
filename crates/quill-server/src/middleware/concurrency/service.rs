//! The service: the path of a call through a limit.

use std::fmt;
use std::sync::Arc;
use std::task::{Context, Poll};

use quill_core::{BoxError, Incoming, Reply, Request, Response};
use tower_service::Service;

use super::future::ConcurrencyLimitFuture;
use super::limiter::{Asked, Entry};
use super::settings::Limits;
use crate::middleware::gate::GateFuture;

/// A service of which so many calls are under way at most.
#[derive(Clone)]
pub struct ConcurrencyLimitService<S> {
    inner: S,
    limits: Arc<Limits>,
}

impl<S> ConcurrencyLimitService<S> {
    pub(super) fn new(inner: S, limits: Arc<Limits>) -> Self {
        Self { inner, limits }
    }
}

impl<S> Service<Request<Incoming>> for ConcurrencyLimitService<S>
where
    S: Service<Request<Incoming>, Response = Response<Reply>, Error: Into<BoxError>>
        + Clone
        + Send
        + 'static,
    S::Future: Send,
{
    type Response = Response<Reply>;
    type Error = BoxError;
    type Future = ConcurrencyLimitFuture<S::Future>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        self.inner.poll_ready(cx).map_err(Into::into)
    }

    fn call(&mut self, request: Request<Incoming>) -> Self::Future {
        let parts = request.parts();
        let Some(limiter) = self.limits.of(parts) else {
            let through = GateFuture::through(self.inner.call(request));
            return ConcurrencyLimitFuture::new(through, None);
        };
        let asked = Asked {
            priority: self.limits.priority(parts),
            deadline: parts.deadline,
            is_measured: matches!(request.message(), Incoming::One(_)),
        };
        match limiter.enter(asked) {
            Entry::Go(permit) => {
                let through = GateFuture::through(self.inner.call(request));
                ConcurrencyLimitFuture::new(through, Some(permit))
            }
            Entry::Full(error) => ConcurrencyLimitFuture::new(GateFuture::refused(error), None),
            Entry::Wait(waiting) => {
                // The service that was made ready goes with the call; its clone stays
                // for the next.
                let clone = self.inner.clone();
                let mut ready = std::mem::replace(&mut self.inner, clone);
                let asking = GateFuture::asking(async move {
                    let permit = waiting.turn().await?;
                    let answer = ready.call(request).await.map_err(Into::into)?;
                    Ok(permit.hold(answer))
                });
                ConcurrencyLimitFuture::new(asking, None)
            }
        }
    }
}

impl<S: fmt::Debug> fmt::Debug for ConcurrencyLimitService<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ConcurrencyLimitService")
            .field("inner", &self.inner)
            .finish_non_exhaustive()
    }
}
