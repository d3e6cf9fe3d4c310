//! What stands before a service in earnest: a bearer's key is looked up, its limit is
//! taken from, and the call is counted and timed.

use std::collections::HashMap;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Poll};
use std::time::Instant;

use quill_core::{Error, Incoming, Reply, Request, Response};
use throttle_kit::{InMemoryBackend, Quota, RateLimiter};
use tower_layer::Layer;
use tower_service::Service;

/// What the one key that is known comes as.
pub(crate) const BEARER: &str = "Bearer 0123456789abcdef0123456789abcdef";

struct Guard {
    keys: HashMap<String, u64>,
    limiter: RateLimiter<InMemoryBackend>,
    calls: AtomicU64,
    refused: AtomicU64,
    /// By the bits of their nanoseconds.
    times: [AtomicU64; 64],
}

impl Guard {
    fn admits(&self, authorization: Option<&str>) -> Result<(), Error> {
        let tenant = authorization.and_then(|value| self.keys.get(value));
        let tenant = tenant.ok_or_else(|| Error::unauthenticated("no such key"))?;
        match self.limiter.check_now(tenant).is_allowed() {
            true => Ok(()),
            false => Err(Error::resource_exhausted("too many calls")),
        }
    }

    fn record(&self, start: Instant, is_ok: bool) {
        let nanos = u64::try_from(start.elapsed().as_nanos()).unwrap_or(u64::MAX);
        let bucket = nanos.checked_ilog2().unwrap_or(0) as usize;
        self.times[bucket].fetch_add(1, Ordering::Relaxed);
        self.calls.fetch_add(1, Ordering::Relaxed);
        if !is_ok {
            self.refused.fetch_add(1, Ordering::Relaxed);
        }
    }
}

#[derive(Clone)]
pub(crate) struct GuardLayer(Arc<Guard>);

impl GuardLayer {
    pub(crate) fn new() -> Self {
        Self(Arc::new(Guard {
            keys: HashMap::from([(BEARER.to_owned(), 7)]),
            limiter: RateLimiter::new(Quota::per_second(1_000_000_000), InMemoryBackend::new()),
            calls: AtomicU64::new(0),
            refused: AtomicU64::new(0),
            times: [const { AtomicU64::new(0) }; 64],
        }))
    }
}

impl<S> Layer<S> for GuardLayer {
    type Service = Guarded<S>;

    fn layer(&self, inner: S) -> Guarded<S> {
        Guarded {
            guard: Arc::clone(&self.0),
            inner,
        }
    }
}

#[derive(Clone)]
pub(crate) struct Guarded<S> {
    guard: Arc<Guard>,
    inner: S,
}

impl<S> Service<Request<Incoming>> for Guarded<S>
where
    S: Service<Request<Incoming>, Response = Response<Reply>, Error = Error>,
    S::Future: Send + 'static,
{
    type Response = Response<Reply>;
    type Error = Error;
    type Future = Pin<Box<dyn Future<Output = Result<Response<Reply>, Error>> + Send>>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Error>> {
        self.inner.poll_ready(cx)
    }

    fn call(&mut self, request: Request<Incoming>) -> Self::Future {
        let start = Instant::now();
        let guard = Arc::clone(&self.guard);
        if let Err(error) = guard.admits(request.metadata().get("authorization")) {
            guard.record(start, false);
            return Box::pin(async move { Err(error) });
        }
        let answer = self.inner.call(request);
        Box::pin(async move {
            let answer = answer.await;
            guard.record(start, answer.is_ok());
            answer
        })
    }
}
