//! The service: the path of a call through a limit.

use std::fmt;
use std::sync::Arc;
use std::task::{Context, Poll};

use quill_core::{BoxError, Error, Incoming, Reply, Request, RequestParts, Response};
use throttle_kit::{Decision, KeyBuf, Outcome};
use tower_service::Service;

use super::budget::{Budget, Store};
use super::key;
use super::layer::Config;
use crate::middleware::gate::GateFuture;

/// A service whose calls are limited.
#[derive(Clone)]
pub struct RateLimitService<S> {
    inner: S,
    config: Arc<Config>,
}

impl<S> RateLimitService<S> {
    pub(super) fn new(inner: S, config: Arc<Config>) -> Self {
        Self { inner, config }
    }
}

/// What is known of a call at once.
enum Verdict {
    Pass,
    Refuse(Error),
    /// The store has to be waited for.
    Ask(Asked),
}

/// What a store is asked.
struct Asked {
    store: Arc<dyn Store>,
    key: KeyBuf,
    cost: u32,
}

impl Config {
    fn judge(&self, request: &RequestParts) -> Verdict {
        let cost = self.cost.as_ref().map_or(1, |cost| cost(request));
        let Ok(key) = key::key(&self.parts, request) else {
            return Verdict::Pass;
        };
        if cost == 0 {
            return Verdict::Pass;
        }
        let budget = self.budget_of(request);
        match (
            budget.at_once(self.store.as_ref(), key.as_ref(), cost),
            &self.store,
        ) {
            (Some(decision), _) => match self.settle(&decision) {
                Ok(()) => Verdict::Pass,
                Err(error) => Verdict::Refuse(error),
            },
            (None, Some(store)) => Verdict::Ask(Asked {
                store: Arc::clone(store),
                key,
                cost,
            }),
            // Without a store the answer is there at once.
            (None, None) => Verdict::Pass,
        }
    }

    fn budget_of(&self, request: &RequestParts) -> &Budget {
        if self.methods.is_empty() {
            return &self.budget;
        }
        let method = request.method.as_ref();
        let own = method.and_then(|method| self.methods.get(method.path()));
        own.unwrap_or(&self.budget)
    }

    async fn ask(&self, asked: &Asked, budget: &Budget) -> Result<(), Error> {
        let Asked { store, key, cost } = asked;
        let decision = budget.decide(&**store, key.as_ref(), *cost).await;
        self.settle(&decision)
    }

    /// Counts a decision; a refusal is the call's error.
    fn settle(&self, decision: &Decision) -> Result<(), Error> {
        if let Some(counts) = &self.counts {
            counts.decided(decision.is_allowed(), decision.is_degraded());
        }
        match decision.outcome() {
            Outcome::Allowed => Ok(()),
            Outcome::Denied => Err(refused(decision)),
            Outcome::InsufficientCapacity => Err(Error::resource_exhausted(
                "this call costs more than the rate limit ever allows at once",
            )),
        }
    }
}

fn refused(decision: &Decision) -> Error {
    let error = Error::resource_exhausted("too many calls: the rate limit is reached");
    match decision.retry_after() {
        Some(delay) => error.with_retry_after(delay),
        None => error,
    }
}

impl<S> Service<Request<Incoming>> for RateLimitService<S>
where
    S: Service<Request<Incoming>, Response = Response<Reply>, Error: Into<BoxError>>
        + Clone
        + Send
        + 'static,
    S::Future: Send,
{
    type Response = Response<Reply>;
    type Error = BoxError;
    type Future = GateFuture<S::Future>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        self.inner.poll_ready(cx).map_err(Into::into)
    }

    fn call(&mut self, request: Request<Incoming>) -> Self::Future {
        match self.config.judge(request.parts()) {
            Verdict::Pass => GateFuture::through(self.inner.call(request)),
            Verdict::Refuse(error) => GateFuture::refused(error),
            Verdict::Ask(asked) => {
                // The service that was made ready goes with the call; its clone
                // stays for the next.
                let clone = self.inner.clone();
                let mut ready = std::mem::replace(&mut self.inner, clone);
                let config = Arc::clone(&self.config);
                GateFuture::asking(async move {
                    let budget = config.budget_of(request.parts());
                    config.ask(&asked, budget).await?;
                    ready.call(request).await.map_err(Into::into)
                })
            }
        }
    }
}

impl<S: fmt::Debug> fmt::Debug for RateLimitService<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RateLimitService")
            .field("inner", &self.inner)
            .finish_non_exhaustive()
    }
}
