//! The layer and its options.

use std::fmt;
use std::sync::Arc;

use super::headers::{LimitHeaders, policy_name};
use super::key::{RequestHead, RequestKey};
use super::refusal::StandardRefusal;
use super::service::RateLimitService;
use crate::backend::RateLimitBackend;
use crate::client_ip::{ClientIpConfig, MissingClientPolicy};
use crate::key::Namespace;
use crate::limiter::KeyedRateLimiter;
use crate::quota::Quota;

/// Limits the requests to a service. See the [module](super).
///
/// Clones, and the services they make, share the budgets.
pub struct RateLimitLayer<B, R = StandardRefusal>(Arc<Config<B, R>>);

type HeadFn<T> = Arc<dyn Fn(&RequestHead<'_>) -> T + Send + Sync>;

/// What a layer and its services share.
pub(super) struct Config<B, R> {
    pub(super) options: Options<B>,
    pub(super) refuse: Arc<R>,
}

#[derive(Clone)]
pub(super) struct Options<B> {
    pub(super) limiter: KeyedRateLimiter<B>,
    pub(super) key: RequestKey,
    pub(super) missing: MissingClientPolicy,
    pub(super) headers: LimitHeaders,
    pub(super) policy: Arc<str>,
    routes: Vec<Route>,
    skip: Option<HeadFn<bool>>,
    cost: Option<HeadFn<u32>>,
}

/// A quota of its own for some paths.
#[derive(Debug, Clone)]
pub(super) struct Route {
    /// The path; what may follow it, if it is a prefix.
    path: String,
    is_prefix: bool,
    pub(super) quota: Quota,
    pub(super) namespace: Namespace,
    pub(super) policy: Arc<str>,
}

impl<B: RateLimitBackend> RateLimitLayer<B> {
    /// Allows each client `quota`, with its state in `backend`.
    #[must_use]
    pub fn new(quota: Quota, backend: B) -> Self {
        Self::from_limiter(KeyedRateLimiter::new(quota, backend))
    }

    /// With a limiter of your own: a namespace, shadow mode, or quotas of
    /// single keys, which may be changed while the layer is at work.
    #[must_use]
    pub fn from_limiter(limiter: KeyedRateLimiter<B>) -> Self {
        let options = Options {
            policy: policy_name(limiter.core.namespace.name()).into(),
            limiter,
            key: RequestKey::default(),
            missing: MissingClientPolicy::default(),
            headers: LimitHeaders::default(),
            routes: Vec::new(),
            skip: None,
            cost: None,
        };
        Self(Arc::new(Config {
            options,
            refuse: Arc::new(StandardRefusal),
        }))
    }
}

impl<B: RateLimitBackend, R> RateLimitLayer<B, R> {
    fn with(self, change: impl FnOnce(&mut Options<B>)) -> Self {
        let mut options = self.0.options.clone();
        change(&mut options);
        Self(Arc::new(Config {
            options,
            refuse: Arc::clone(&self.0.refuse),
        }))
    }

    /// Limits by the client's address, which behind the proxies of `config` is
    /// the one that they name.
    #[must_use]
    pub fn with_client_ip(self, config: ClientIpConfig) -> Self {
        self.with_key(RequestKey::client_ip(config))
    }

    /// Limits by something else.
    #[must_use]
    pub fn with_key(self, key: RequestKey) -> Self {
        self.with(|options| options.key = key)
    }

    /// What becomes of requests that have no key: refused, unless told otherwise.
    #[must_use]
    pub fn with_missing_client_policy(self, policy: MissingClientPolicy) -> Self {
        self.with(|options| options.missing = policy)
    }

    /// Which headers the answers get.
    #[must_use]
    pub fn with_headers(self, headers: LimitHeaders) -> Self {
        self.with(|options| options.headers = headers)
    }

    /// Gives a path a quota, and budgets, of its own; `/api/*` is all paths
    /// below `/api/`. Of several that match, the longest path counts. Paths are
    /// compared as they are sent: to be safe, have the router outside this
    /// layer refuse what it does not normalise.
    #[must_use]
    pub fn with_route(self, path: &str, quota: Quota) -> Self {
        self.with(|options| {
            let base = options.limiter.core.namespace.name();
            let name = format!("{base}{path}");
            options.routes.push(Route {
                path: path.strip_suffix('*').unwrap_or(path).to_owned(),
                is_prefix: path.ends_with("/*"),
                quota,
                policy: policy_name(&name).into(),
                namespace: Namespace::new(name),
            });
            // The longest first; of equals, the exact one.
            options
                .routes
                .sort_by_key(|route| std::cmp::Reverse((route.path.len(), !route.is_prefix)));
        })
    }

    /// Lets requests pass without a check for which `skip` is true: health
    /// checks, or preflights.
    #[must_use]
    pub fn with_skip(
        self,
        skip: impl Fn(&RequestHead<'_>) -> bool + Send + Sync + 'static,
    ) -> Self {
        self.with(|options| options.skip = Some(Arc::new(skip)))
    }

    /// How many cells a request takes; 1 unless set.
    #[must_use]
    pub fn with_cost(self, cost: impl Fn(&RequestHead<'_>) -> u32 + Send + Sync + 'static) -> Self {
        self.with(|options| options.cost = Some(Arc::new(cost)))
    }

    /// Has refusals answered by `refuse`: a function of the
    /// [`Refusal`](super::Refusal) that makes a response.
    #[must_use]
    pub fn with_refusal<R2>(self, refuse: R2) -> RateLimitLayer<B, R2> {
        RateLimitLayer(Arc::new(Config {
            options: self.0.options.clone(),
            refuse: Arc::new(refuse),
        }))
    }
}

impl<B> Options<B> {
    pub(super) fn skips(&self, head: &RequestHead<'_>) -> bool {
        self.skip.as_ref().is_some_and(|skip| skip(head))
    }

    pub(super) fn cost(&self, head: &RequestHead<'_>) -> u32 {
        self.cost.as_ref().map_or(1, |cost| cost(head))
    }

    pub(super) fn route(&self, head: &RequestHead<'_>) -> Option<&Route> {
        if self.routes.is_empty() {
            return None;
        }
        let path = head.uri.path();
        self.routes.iter().find(|route| {
            if route.is_prefix {
                path.starts_with(&route.path)
            } else {
                path == route.path
            }
        })
    }
}

impl<S, B, R> tower_layer::Layer<S> for RateLimitLayer<B, R> {
    type Service = RateLimitService<S, B, R>;

    fn layer(&self, inner: S) -> Self::Service {
        RateLimitService::new(inner, Arc::clone(&self.0))
    }
}

impl<B, R> Clone for RateLimitLayer<B, R> {
    fn clone(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
}

impl<B: fmt::Debug, R> fmt::Debug for RateLimitLayer<B, R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RateLimitLayer")
            .field("limiter", &self.0.options.limiter)
            .field("key", &self.0.options.key)
            .field("headers", &self.0.options.headers)
            .field("routes", &self.0.options.routes)
            .finish_non_exhaustive()
    }
}
