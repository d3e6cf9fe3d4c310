//! The service: THE path of a request through the layer.

use std::fmt;
use std::sync::Arc;
use std::task::{Context, Poll};

use http::{Request, Response};
use tower_service::Service;

use super::future::{After, ResponseFuture};
use super::headers;
use super::key::{OwnedKey, RequestHead};
use super::layer::{Config, Options, Route};
use super::refusal::{Refusal, RefusalReason, Refuse};
use crate::backend::{Operation, RateLimitBackend};
use crate::client_ip::MissingClientPolicy;
use crate::decision::Decision;
use crate::key::{KeyRef, Kind};
use crate::quota::Quota;

/// A service whose requests are limited. See the [module](super).
pub struct RateLimitService<S, B, R> {
    inner: S,
    config: Arc<Config<B, R>>,
}

/// What is known of a request before its body is touched.
enum Verdict<'a> {
    /// It is not limited.
    Pass,
    Decided(Decision, Option<&'a Route>),
    /// The store must be waited for: with this key.
    Ask(OwnedKey),
    Refuse(RefusalReason),
}

impl<S, B, R> RateLimitService<S, B, R> {
    pub(super) const fn new(inner: S, config: Arc<Config<B, R>>) -> Self {
        Self { inner, config }
    }

    /// The service inside.
    pub const fn inner(&self) -> &S {
        &self.inner
    }
}

impl<B: RateLimitBackend> Options<B> {
    fn judge(&self, head: &RequestHead<'_>) -> Verdict<'_> {
        if self.skips(head) {
            return Verdict::Pass;
        }
        let route = self.route(head);
        let cost = self.cost(head);
        let ask = |kind, bytes: &[u8]| match self.check_at_once(kind, bytes, route, cost) {
            Some(decision) => Verdict::Decided(decision, route),
            None => Verdict::Ask(OwnedKey {
                kind,
                bytes: bytes.into(),
            }),
        };
        match (self.key.with(head, ask), &self.missing) {
            (Some(verdict), _) => verdict,
            (None, MissingClientPolicy::FallbackKey(key)) => ask(Kind::Bytes, key.as_bytes()),
            (None, MissingClientPolicy::Reject) if self.key.is_clients() => {
                Verdict::Refuse(RefusalReason::KeyMissing)
            }
            (None, MissingClientPolicy::Reject) => Verdict::Refuse(RefusalReason::ClientUnknown),
        }
    }

    /// The key as the store sees it, and its quota.
    fn addressed<'a>(
        &'a self,
        kind: Kind,
        bytes: &'a [u8],
        route: Option<&'a Route>,
    ) -> (KeyRef<'a>, Quota) {
        let limiter = &self.limiter;
        match route {
            Some(route) => {
                let namespace = &route.namespace;
                let key = KeyRef {
                    namespace,
                    kind,
                    bytes,
                };
                (key, route.quota)
            }
            None => (limiter.core.key(kind, bytes), limiter.quota_of(kind, bytes)),
        }
    }

    fn check_at_once(
        &self,
        kind: Kind,
        bytes: &[u8],
        route: Option<&Route>,
        cost: u32,
    ) -> Option<Decision> {
        let (key, quota) = self.addressed(kind, bytes, route);
        let core = &self.limiter.core;
        core.apply_at_once(key, &quota, cost, Operation::Check)
    }

    async fn check(&self, key: &OwnedKey, route: Option<&Route>, cost: u32) -> Decision {
        let (key, quota) = self.addressed(key.kind, key.bytes.as_ref(), route);
        let core = &self.limiter.core;
        core.apply(key, &quota, cost, Operation::Check).await
    }

    fn policy<'a>(&'a self, route: Option<&'a Route>) -> &'a Arc<str> {
        route.map_or(&self.policy, |route| &route.policy)
    }

    /// What to do with the inner service's answer.
    fn after(&self, decision: Decision, route: Option<&Route>) -> After {
        After {
            decision,
            headers: self.headers,
            policy: self.headers.ietf().then(|| Arc::clone(self.policy(route))),
        }
    }
}

impl<B: RateLimitBackend, R> Config<B, R> {
    fn refusal<ResBody>(
        &self,
        head: RequestHead<'_>,
        reason: RefusalReason,
        limited: Option<(&Decision, Option<&Route>)>,
    ) -> Response<ResBody>
    where
        R: Refuse<ResBody>,
    {
        if reason == RefusalReason::ClientUnknown {
            warn_unknown();
        }
        let mut response = self.refuse.refuse(&Refusal {
            reason,
            decision: limited.map(|(decision, _)| decision),
            request: head,
        });
        if let Some((decision, route)) = limited {
            let options = &self.options;
            let policy = options.policy(route);
            headers::add(response.headers_mut(), options.headers, policy, decision);
            headers::add_retry_after(response.headers_mut(), decision);
        }
        response
    }
}

impl<S, B, R, ReqBody, ResBody> Service<Request<ReqBody>> for RateLimitService<S, B, R>
where
    S: Service<Request<ReqBody>, Response = Response<ResBody>> + Clone + Send + 'static,
    S::Future: Send,
    S::Error: Send,
    B: RateLimitBackend,
    R: Refuse<ResBody>,
    ReqBody: Send + 'static,
    ResBody: Send,
{
    type Response = Response<ResBody>;
    type Error = S::Error;
    type Future = ResponseFuture<S::Future, ResBody, S::Error>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Self::Error>> {
        self.inner.poll_ready(cx)
    }

    fn call(&mut self, request: Request<ReqBody>) -> Self::Future {
        let config = &self.config;
        let head = RequestHead::of(&request);
        match config.options.judge(&head) {
            Verdict::Pass => ResponseFuture::inner(self.inner.call(request), None),
            Verdict::Decided(decision, route) if decision.is_allowed() => {
                let after = config.options.after(decision, route);
                ResponseFuture::inner(self.inner.call(request), Some(after))
            }
            Verdict::Decided(decision, route) => {
                let limited = Some((&decision, route));
                ResponseFuture::refused(config.refusal(head, RefusalReason::Limited, limited))
            }
            Verdict::Refuse(reason) => ResponseFuture::refused(config.refusal(head, reason, None)),
            Verdict::Ask(key) => self.ask(key, request),
        }
    }
}

impl<S, B, R> RateLimitService<S, B, R> {
    /// For a store that must be waited for: the one case that boxes a future.
    fn ask<ReqBody, ResBody>(
        &mut self,
        key: OwnedKey,
        request: Request<ReqBody>,
    ) -> ResponseFuture<S::Future, ResBody, S::Error>
    where
        S: Service<Request<ReqBody>, Response = Response<ResBody>> + Clone + Send + 'static,
        S::Future: Send,
        S::Error: Send,
        B: RateLimitBackend,
        R: Refuse<ResBody>,
        ReqBody: Send + 'static,
        ResBody: Send,
    {
        // The service that was polled ready goes with the request; its clone
        // stays to be polled for the next one.
        let clone = self.inner.clone();
        let mut ready = std::mem::replace(&mut self.inner, clone);
        let config = Arc::clone(&self.config);
        ResponseFuture::boxed(async move {
            let head = RequestHead::of(&request);
            let route = config.options.route(&head);
            let cost = config.options.cost(&head);
            let decision = config.options.check(&key, route, cost).await;
            if decision.is_allowed() {
                let after = config.options.after(decision, route);
                let mut response = ready.call(request).await?;
                after.apply(&mut response);
                Ok(response)
            } else {
                let limited = Some((&decision, route));
                Ok(config.refusal(head, RefusalReason::Limited, limited))
            }
        })
    }
}

#[cold]
fn warn_unknown() {
    use std::sync::atomic::{AtomicBool, Ordering};
    static WARNED: AtomicBool = AtomicBool::new(false);
    if !WARNED.swap(true, Ordering::Relaxed) {
        tracing::warn!(
            target: "throttle_kit",
            "a request carries no peer address or no extension to limit it by, and is refused; \
             with axum, enable the feature `axum` and serve with \
             `into_make_service_with_connect_info::<SocketAddr>()`; logged once"
        );
    }
}

impl<S: Clone, B, R> Clone for RateLimitService<S, B, R> {
    fn clone(&self) -> Self {
        Self {
            inner: self.inner.clone(),
            config: Arc::clone(&self.config),
        }
    }
}

impl<S: fmt::Debug, B, R> fmt::Debug for RateLimitService<S, B, R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RateLimitService")
            .field("inner", &self.inner)
            .finish_non_exhaustive()
    }
}
