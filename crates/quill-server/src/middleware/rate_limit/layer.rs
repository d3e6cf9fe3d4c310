//! The layer and its settings.

use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;

use quill_core::RequestParts;
use throttle_kit::{ClientIpConfig, InMemoryBackend, Quota, QuotaError, RateLimitBackend};
use tower_layer::Layer;

use super::budget::{Budget, Store};
use super::key::Part;
use super::limiter::quota;
use super::service::RateLimitService;
use crate::middleware::metrics::{LimiterCounts, MetricsCollector};
use crate::middleware::naming::{self, Named, method_path};

/// Limits the calls to a server.
///
/// All of them together, or per client, identity, method or a key of yours; what
/// is said of several is taken together: `.per_client(..).per_method()` gives each
/// client a budget for each method. Several layers are several limits. Clones, and
/// the services they make, share the budgets.
///
/// ```
/// use quill_server::Server;
/// use quill_server::rate_limit::{ClientIpConfig, RateLimitLayer};
///
/// // 1000 a second, 5000 at once; of each client 50 a second, 100 at once.
/// let builder = Server::builder()
///     .layer(RateLimitLayer::new(1000.0, 5000.0))
///     .layer(RateLimitLayer::new(50.0, 100.0).per_client(ClientIpConfig::default()));
/// ```
#[derive(Clone)]
pub struct RateLimitLayer(Arc<Config>);

type Cost = Arc<dyn Fn(&RequestParts) -> u32 + Send + Sync>;

/// What a layer and its services share.
#[derive(Clone)]
pub(super) struct Config {
    name: String,
    pub(super) budget: Budget,
    /// By path.
    pub(super) methods: HashMap<String, Budget>,
    pub(super) parts: Vec<Part>,
    /// Where the budgets of keys are; `None` while there are no keys.
    pub(super) store: Option<Arc<dyn Store>>,
    pub(super) cost: Option<Cost>,
    pub(super) counts: Option<Arc<LimiterCounts>>,
}

impl RateLimitLayer {
    /// Lets `rate` calls a second pass, and up to `burst` at once. What can't be
    /// (see [`quota`]) lets nothing pass;
    /// [`try_new`](Self::try_new) tells.
    #[must_use]
    pub fn new(rate: f64, burst: f64) -> Self {
        Self::of(quota(rate, burst).unwrap_or(Quota::DENY_ALL))
    }

    /// As [`new`](Self::new).
    ///
    /// # Errors
    /// As [`quota`].
    pub fn try_new(rate: f64, burst: f64) -> Result<Self, QuotaError> {
        quota(rate, burst).map(Self::of)
    }

    /// Lets pass what a quota of throttle-kit allows.
    #[must_use]
    pub fn of(quota: Quota) -> Self {
        let name = "calls".to_owned();
        Self(Arc::new(Config {
            budget: Budget::new(quota, name.clone()),
            name,
            methods: HashMap::new(),
            parts: Vec::new(),
            store: None,
            cost: None,
            counts: None,
        }))
    }

    fn with(mut self, change: impl FnOnce(&mut Config)) -> Self {
        change(Arc::make_mut(&mut self.0));
        self
    }

    /// Gives each client a budget: by the peer's address, or what the proxies of
    /// `config` say it is. An IPv6 client is a network of 64 bits. Callers on Unix
    /// sockets are one client.
    #[must_use]
    pub fn per_client(self, config: ClientIpConfig) -> Self {
        self.per(Part::Client(config))
    }

    /// Gives each identity a budget; to be added after an
    /// [`AuthLayer`](crate::auth::AuthLayer), which says who it is. Calls without
    /// one are limited per client, whose address `config` tells as it does for
    /// [`per_client`](Self::per_client).
    #[must_use]
    pub fn per_identity(self, config: ClientIpConfig) -> Self {
        self.per(Part::Identity(config))
    }

    /// Gives each method a budget.
    #[must_use]
    pub fn per_method(self) -> Self {
        self.per(Part::Method)
    }

    /// Gives a budget to each text that `key` makes of a request; those of which
    /// it makes none are not limited by this layer.
    #[must_use]
    pub fn per_key(
        self,
        key: impl Fn(&RequestParts) -> Option<String> + Send + Sync + 'static,
    ) -> Self {
        self.per(Part::Of(Arc::new(key)))
    }

    fn per(self, part: Part) -> Self {
        self.with(|config| {
            config.parts.push(part);
            let store = &mut config.store;
            store.get_or_insert_with(|| Arc::new(InMemoryBackend::new()));
        })
    }

    /// Keeps budgets in `backend`: in memory for another number of keys, or in
    /// Redis, where servers share them. Without it they are in memory, for 65,536
    /// keys that owe something at once.
    #[must_use]
    pub fn with_backend(self, backend: impl RateLimitBackend) -> Self {
        self.with(|config| config.store = Some(Arc::new(backend)))
    }

    /// Names the limit in metrics and in a shared backend: there, limits of one
    /// name share budgets, of two none. `calls` unless set.
    #[must_use]
    pub fn named(self, name: impl Into<String>) -> Self {
        self.with(|config| {
            config.name = name.into();
            config.budget = Budget::new(config.budget.quota(), config.name.clone());
            for (path, budget) in &mut config.methods {
                let namespace = method_namespace(&config.name, path);
                *budget = Budget::new(budget.quota(), namespace);
            }
        })
    }

    /// Gives one method, by its path (`/package.Service/Method`), a quota and
    /// budgets of its own in place of the others'. A server without such a method is
    /// not built.
    #[must_use]
    pub fn method(self, path: impl Into<String>, rate: f64, burst: f64) -> Self {
        let quota = quota(rate, burst).unwrap_or(Quota::DENY_ALL);
        let path = method_path(&path.into());
        self.with(|config| {
            let namespace = method_namespace(&config.name, &path);
            config.methods.insert(path, Budget::new(quota, namespace));
        })
    }

    /// How much a call takes from its budget; 1 unless set. 0 takes nothing; more
    /// than the burst is refused for good.
    #[must_use]
    pub fn cost(self, cost: impl Fn(&RequestParts) -> u32 + Send + Sync + 'static) -> Self {
        self.with(|config| config.cost = Some(Arc::new(cost)))
    }

    /// Counts the decisions in `metrics`, under the limit's name at this moment.
    #[must_use]
    pub fn metrics(self, metrics: &MetricsCollector) -> Self {
        self.with(|config| config.counts = Some(metrics.limiter(&config.name)))
    }
}

fn method_namespace(name: &str, path: &str) -> String {
    [name, path].concat()
}

impl<S> Layer<S> for RateLimitLayer {
    type Service = RateLimitService<S>;

    fn layer(&self, inner: S) -> RateLimitService<S> {
        let methods = self.0.methods.keys().cloned().map(Named::Method);
        naming::check("RateLimitLayer", methods);
        RateLimitService::new(inner, Arc::clone(&self.0))
    }
}

impl fmt::Debug for RateLimitLayer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RateLimitLayer")
            .field("name", &self.0.name)
            .field("quota", &self.0.budget.quota())
            .finish_non_exhaustive()
    }
}
