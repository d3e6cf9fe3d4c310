//! The layers that a config asks for, as one.

use std::fmt;

use quill_config::{ConfigError, Read};
use quill_core::{BoxError, Incoming, Reply, Request, Response};
use tower::ServiceExt as _;
use tower::util::{BoxCloneSyncService, Either, MapErr};
use tower_layer::Layer;

use super::Settings;
use super::rate_limit::RateLimit;
use super::redis::Store;
use crate::middleware::auth::AuthLayer;
use crate::middleware::concurrency::ConcurrencyLimitLayer;
use crate::middleware::metrics::MetricsCollector;
use crate::middleware::rate_limit::RateLimitLayer;
use crate::stack::RpcService;

type BoxService = BoxCloneSyncService<Request<Incoming>, Response<Reply>, BoxError>;

/// One layer of a config.
enum One {
    Concurrency(Box<ConcurrencyLimitLayer>),
    Auth(AuthLayer),
    RateLimit(RateLimitLayer),
}

impl One {
    fn around(&self, inner: BoxService) -> BoxService {
        match self {
            Self::Concurrency(layer) => BoxService::new(layer.layer(inner)),
            Self::Auth(layer) => BoxService::new(layer.layer(inner)),
            Self::RateLimit(layer) => BoxService::new(layer.layer(inner)),
        }
    }
}

/// The layers of a [`ServerConfig`](crate::ServerConfig), the outermost first: limits of
/// concurrency, rates that need not know who calls, authentication, rates of identities.
/// Made by
/// [`ServerBuilder::configure`](crate::ServerBuilder::configure).
pub struct ConfiguredLayers(Vec<One>);

impl ConfiguredLayers {
    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

pub(super) fn layers(
    read: &Read<Settings>,
    metrics: Option<&MetricsCollector>,
) -> Result<ConfiguredLayers, ConfigError> {
    let settings = &read.value;
    let store = settings.redis.as_ref();
    let store = store.map(|redis| Store::open(redis, read)).transpose()?;
    if store.is_some() && !settings.rate_limits.iter().any(RateLimit::is_shared) {
        let wrong = "no limit uses it: set shared: true in those of rate_limits that servers share";
        return Err(read.error("redis", wrong));
    }
    let limits = |of_identities: bool| {
        let limits = settings.rate_limits.iter().enumerate();
        let limits = limits.filter(move |(_, limit)| limit.is_of_identities() == of_identities);
        limits
            .map(|(index, limit)| {
                let at = format!("rate_limits[{index}]");
                let layer = limit.layer(&at, read, store.as_ref(), metrics);
                layer.map(One::RateLimit)
            })
            .collect::<Result<Vec<_>, _>>()
    };
    let running = settings.concurrency_limits.iter().enumerate();
    let running = running.map(|(index, limit)| {
        let at = format!("concurrency_limits[{index}]");
        limit
            .layer(&at, read, metrics)
            .map(|layer| One::Concurrency(Box::new(layer)))
    });
    let mut layers = running.collect::<Result<Vec<_>, _>>()?;
    layers.extend(limits(false)?);
    if let Some(auth) = &settings.auth {
        layers.push(One::Auth(auth.layer(read)?));
    }
    layers.extend(limits(true)?);
    Ok(ConfiguredLayers(layers))
}

type Bare<S> = MapErr<S, fn(<S as tower_service::Service<Request<Incoming>>>::Error) -> BoxError>;

impl<S: RpcService> Layer<S> for ConfiguredLayers {
    type Service = Either<Bare<S>, BoxService>;

    fn layer(&self, inner: S) -> Self::Service {
        let bare: Bare<S> = inner.map_err(Into::into);
        if self.0.is_empty() {
            return Either::Left(bare);
        }
        let innermost = BoxService::new(bare);
        let layers = self.0.iter().rev();
        Either::Right(layers.fold(innermost, |inner, layer| layer.around(inner)))
    }
}

impl fmt::Debug for ConfiguredLayers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names = self.0.iter().map(|layer| match layer {
            One::Concurrency(_) => "concurrency_limit",
            One::Auth(_) => "auth",
            One::RateLimit(_) => "rate_limit",
        });
        f.debug_list().entries(names).finish()
    }
}
