//! What stands before a service in earnest: a bearer's key is looked up, its
//! limit is taken from, and the call is counted and timed. The same work around
//! Quill's calls and around tonic's requests.

use std::collections::HashMap;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Poll};
use std::time::Instant;

use throttle_kit::{InMemoryBackend, Quota, RateLimiter};
use tower_layer::Layer;
use tower_service::Service;

/// The one key that is known, as `load` sends it.
pub const KEY: &str = "0123456789abcdef0123456789abcdef";

struct Guard {
    keys: HashMap<String, u64>,
    limiter: RateLimiter<InMemoryBackend>,
    calls: AtomicU64,
    refused: AtomicU64,
    /// By the bits of their nanoseconds.
    times: [AtomicU64; 64],
}

impl Guard {
    fn admits(&self, authorization: Option<&str>) -> Result<(), &'static str> {
        let key = authorization.and_then(|value| value.strip_prefix("Bearer "));
        let Some(tenant) = key.and_then(|key| self.keys.get(key)) else {
            return Err("no such key");
        };
        if !self.limiter.check_now(tenant).is_allowed() {
            return Err("too many calls");
        }
        Ok(())
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

/// A layer, and the service that it makes.
#[derive(Clone)]
pub(super) struct Guarded<S> {
    guard: Arc<Guard>,
    inner: S,
}

#[derive(Clone)]
pub(super) struct GuardLayer(Arc<Guard>);

impl Guarded<()> {
    pub(super) fn layer() -> GuardLayer {
        let quota = Quota::per_second(1_000_000_000);
        GuardLayer(Arc::new(Guard {
            keys: HashMap::from([(KEY.to_owned(), 7)]),
            limiter: RateLimiter::new(quota, InMemoryBackend::new()),
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

type Answer<T, E> = Pin<Box<dyn Future<Output = Result<T, E>> + Send>>;

impl<S> Service<quill::Request<quill::Incoming>> for Guarded<S>
where
    S: Service<quill::Request<quill::Incoming>, Error = quill::Error>,
    S::Response: Send,
    S::Future: Send + 'static,
{
    type Response = S::Response;
    type Error = quill::Error;
    type Future = Answer<S::Response, quill::Error>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), quill::Error>> {
        self.inner.poll_ready(cx)
    }

    fn call(&mut self, request: quill::Request<quill::Incoming>) -> Self::Future {
        let start = Instant::now();
        let guard = Arc::clone(&self.guard);
        if let Err(reason) = guard.admits(request.metadata().get("authorization")) {
            guard.record(start, false);
            return Box::pin(async move { Err(quill::Error::unauthenticated(reason)) });
        }
        let answer = self.inner.call(request);
        Box::pin(async move {
            let answer = answer.await;
            guard.record(start, answer.is_ok());
            answer
        })
    }
}

impl<S, B, C> Service<http::Request<B>> for Guarded<S>
where
    S: Service<http::Request<B>, Response = http::Response<C>>,
    S::Future: Send + 'static,
    S::Error: Send + 'static,
    C: Default + Send + 'static,
{
    type Response = http::Response<C>;
    type Error = S::Error;
    type Future = Answer<http::Response<C>, S::Error>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        self.inner.poll_ready(cx)
    }

    fn call(&mut self, request: http::Request<B>) -> Self::Future {
        let start = Instant::now();
        let guard = Arc::clone(&self.guard);
        let authorization = request.headers().get("authorization");
        let authorization = authorization.and_then(|value| value.to_str().ok());
        if let Err(reason) = guard.admits(authorization) {
            guard.record(start, false);
            let refusal = tonic::Status::unauthenticated(reason).into_http();
            return Box::pin(async move { Ok(refusal) });
        }
        let answer = self.inner.call(request);
        Box::pin(async move {
            let answer = answer.await;
            guard.record(start, answer.is_ok());
            answer
        })
    }
}
