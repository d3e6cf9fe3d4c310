//! No more calls than a server wants.

use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use quill_core::{Error, Request, Response};
use throttle_kit::{DirectRateLimiter, Outcome, Quota};
use tower_layer::Layer;
use tower_service::Service;

use crate::messages::{Answer, Messages};
use crate::stack::{CallFuture, Calls, run};

/// Holds a client's calls back to a rate that its server has agreed to: a call
/// over it waits for its turn, and fails with `resource_exhausted`, without
/// being made, where its turn would come after its deadline or later than the
/// longest wait. Clones share the quota.
#[derive(Clone, Debug)]
pub struct RateLimit {
    limiter: DirectRateLimiter,
    wait_max: Duration,
}

impl RateLimit {
    /// So many calls and no more; each attempt of a call that is retried counts.
    #[must_use]
    pub fn new(quota: Quota) -> Self {
        Self {
            limiter: DirectRateLimiter::new(quota),
            wait_max: Duration::MAX,
        }
    }

    /// The longest that a call waits for its turn; until its deadline unless
    /// set. Zero: calls over the rate fail at once.
    #[must_use]
    pub fn wait_max(mut self, wait: Duration) -> Self {
        self.wait_max = wait;
        self
    }

    /// Waits for the turn of a call.
    async fn turn(&self, left: Option<Duration>) -> Result<(), Error> {
        let begun = Instant::now();
        let longest = left.map_or(self.wait_max, |left| left.min(self.wait_max));
        loop {
            let decision = self.limiter.check_now();
            let wait = match decision.outcome() {
                Outcome::Allowed => return Ok(()),
                Outcome::Denied => decision.retry_after().unwrap_or_default(),
                Outcome::InsufficientCapacity => {
                    return Err(refusal("its quota allows no calls at all"));
                }
            };
            if begun.elapsed().saturating_add(wait) > longest {
                let when = format!("the next call's turn is in {wait:.1?}");
                return Err(refusal(&when).with_retry_after(wait));
            }
            tokio::time::sleep(wait).await;
        }
    }
}

fn refusal(why: &str) -> Error {
    Error::resource_exhausted(format!("the client's own rate limit is reached: {why}"))
        .unprocessed()
}

impl<S> Layer<S> for RateLimit {
    type Service = RateLimited<S>;

    fn layer(&self, inner: S) -> RateLimited<S> {
        RateLimited {
            inner,
            limit: self.clone(),
        }
    }
}

/// The service of a [`RateLimit`].
#[derive(Clone, Debug)]
pub struct RateLimited<S> {
    inner: S,
    limit: RateLimit,
}

impl<S: Calls> Service<Request<Messages>> for RateLimited<S> {
    type Response = Response<Answer>;
    type Error = Error;
    type Future = CallFuture;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Error>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<Messages>) -> CallFuture {
        let Self { inner, limit } = self.clone();
        Box::pin(async move {
            limit.turn(request.remaining()).await?;
            run(inner, request).await
        })
    }
}
