//! A server's settings.

#[cfg(feature = "config")]
mod configured;
mod connections;
mod ending;
mod observing;

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use quill_core::compression::Encoding;
use quill_core::{BoxError, Budget, DecodeLimits, Draining, Method};
use quill_transport::adapt::{FromTower, HttpBody};
use quill_transport::{
    CONNECTION_HELD_BYTES_MAX, HttpRequest, HttpServer, Listener, RecvBody, ServerOptions,
    tls::ServerTls,
};
use quill_wire::WireOptions;
use tower_layer::{Identity, Layer, Stack as LayerStack};

use crate::cors::Cors;
use crate::dispatch::{Allowed, Dispatch, Fallback};
use crate::ending::{Drain, Flushes};
use crate::error::ServeError;
use crate::handler::Handler;
use crate::http_service::{BoxHttpService, Front, HttpLayer, HttpService};
use crate::middleware::metrics::{MetricsSettings, Watching};
use crate::middleware::naming::{build_for, named};
use crate::middleware::observe::{ObserveLayer, ObserverSettings};
use crate::routes::{Routes, Service};
use crate::server::BoundServer;
use crate::stack::{Handlers, RpcLayers, Stack};

/// How long a drain may take before what is left is cut.
const DRAIN_LIMIT_DEFAULT: Duration = Duration::from_secs(10);
/// What unfinished messages may hold together, in bytes, and how errors call it.
const HELD_BYTES_MAX: &str = "held_bytes_max";
const HELD_BYTES_MAX_DEFAULT: usize = 256 * 1024 * 1024;
const CONNECTION_HELD_BYTES_MAX_DEFAULT: usize = 32 * 1024 * 1024;
const RECEIVE_TIMEOUT_DEFAULT: Duration = Duration::from_secs(60);
const COMPRESSION_LEVELS: std::ops::RangeInclusive<u8> = 1..=22;

/// The settings of a [`Server`](crate::Server).
///
/// `L` is the type of the layers added so far.
#[must_use]
pub struct ServerBuilder<L = Identity> {
    layers: L,
    is_layered: bool,
    settings: Settings,
}

/// All settings but the layers, which have a type of their own.
struct Settings {
    routes: Routes,
    http_layers: Vec<HttpLayer>,
    cors: Option<Cors>,
    fallback: Option<Fallback>,
    wire: WireOptions,
    held_bytes_max: Option<usize>,
    connection_held_bytes_max: Option<usize>,
    receive_timeout: Option<Duration>,
    timeout_max: Option<Duration>,
    transport: Option<ServerOptions>,
    tls: Option<ServerTls>,
    tls_reload: Option<Duration>,
    drain_limit: Option<Duration>,
    drain_delay: Option<Duration>,
    flushes: Flushes,
    uncompressed: Vec<String>,
    metrics: MetricsSettings,
    observer: ObserverSettings,
    cores: Option<usize>,
}

impl ServerBuilder {
    pub(crate) fn new() -> Self {
        Self {
            layers: Identity::new(),
            is_layered: false,
            settings: Settings {
                routes: Routes::new(),
                http_layers: Vec::new(),
                cors: None,
                fallback: None,
                wire: WireOptions::default(),
                held_bytes_max: None,
                connection_held_bytes_max: None,
                receive_timeout: Some(RECEIVE_TIMEOUT_DEFAULT),
                timeout_max: None,
                transport: None,
                tls: None,
                tls_reload: None,
                drain_limit: None,
                drain_delay: None,
                flushes: Flushes::default(),
                uncompressed: Vec::new(),
                metrics: MetricsSettings::default(),
                observer: ObserverSettings::default(),
                cores: None,
            },
        }
    }
}

impl<L> ServerBuilder<L> {
    /// Serves a service: a generated `XServer::new(implementation)`.
    pub fn service(mut self, service: impl Service) -> Self {
        self.settings.routes.add(service);
        self
    }

    /// Serves one method with a handler that knows no types, for gateways and tools.
    pub fn route(mut self, method: Method, handler: impl Handler) -> Self {
        self.settings.routes.route(method, handler);
        self
    }

    /// Puts a tower layer around all calls, on the level of RPC: its service
    /// takes `Request<Incoming>` and gives `Response<Reply>`. The layer added
    /// first is the outermost. An error of a layer becomes the call's error in
    /// the caller's own protocol; those of tower's `timeout` and `load_shed`
    /// become `deadline_exceeded` and `resource_exhausted`.
    pub fn layer<T>(self, layer: T) -> ServerBuilder<LayerStack<T, L>> {
        ServerBuilder {
            layers: LayerStack::new(layer, self.layers),
            is_layered: true,
            settings: self.settings,
        }
    }

    /// Puts a tower layer around all HTTP requests (`http::Request` to
    /// `http::Response`), such as those of `tower-http`. The layer added first
    /// is the outermost.
    pub fn http_layer<T, B>(mut self, layer: T) -> Self
    where
        T: Layer<BoxHttpService> + Send + Sync + 'static,
        T::Service: tower_service::Service<
                http::Request<HttpBody<RecvBody>>,
                Response = http::Response<B>,
                Error: Into<BoxError>,
                Future: Send,
            > + Clone
            + Send
            + Sync
            + 'static,
        B: http_body::Body<Data = bytes::Bytes> + Send + 'static,
        B::Error: Into<BoxError>,
    {
        self.settings.http_layers.push(HttpLayer::new(layer));
        self
    }

    /// Lets pages of other origins call from a browser; none unless set. It
    /// stands before all layers, whenever it is set.
    pub fn cors(mut self, cors: Cors) -> Self {
        self.settings.cors = Some(cors);
        self
    }

    /// Answers paths that no service has by an HTTP service, such as an
    /// `axum::Router`. Without one they are refused in the caller's protocol.
    pub fn http_fallback<S, B>(mut self, service: S) -> Self
    where
        S: tower_service::Service<
                http::Request<HttpBody<RecvBody>>,
                Response = http::Response<B>,
                Error: Into<BoxError>,
                Future: Send,
            > + Clone
            + Send
            + Sync
            + 'static,
        B: http_body::Body + Send + 'static,
        B::Error: Into<BoxError>,
    {
        let service = FromTower::new(service);
        self.settings.fallback = Some(Arc::new(move |request: HttpRequest| {
            quill_transport::Service::call(&service, request)
        }));
        self
    }

    /// Most bytes of a received message; 4 MiB unless set.
    pub fn receive_bytes_max(mut self, bytes: usize) -> Self {
        self.settings.wire.receive_bytes_max = bytes;
        self
    }

    /// Most bytes that messages which are not whole yet, or wait to be taken, may
    /// hold together in the whole server: 256 MiB unless set, and never less than
    /// one message may have. A call that stops inside a message while nothing is
    /// left is refused with `resource_exhausted`; messages that come whole are
    /// always taken.
    pub fn held_bytes_max(mut self, bytes: usize) -> Self {
        self.settings.held_bytes_max = Some(bytes);
        self
    }

    /// As [`held_bytes_max`](Self::held_bytes_max), on each connection: 32 MiB
    /// unless set.
    pub fn connection_held_bytes_max(mut self, bytes: usize) -> Self {
        self.settings.connection_held_bytes_max = Some(bytes);
        self
    }

    /// How long a caller that has begun a message, or a request of a single one,
    /// may go without sending a byte of it; then its call ends with
    /// `deadline_exceeded`. `None` for ever; 60 s unless set. A stream may rest
    /// between its messages for as long as it likes.
    pub fn receive_timeout(mut self, timeout: impl Into<Option<Duration>>) -> Self {
        self.settings.receive_timeout = timeout.into();
        self
    }

    /// Most bytes of a sent message; 4 MiB unless set.
    pub fn send_bytes_max(mut self, bytes: usize) -> Self {
        self.settings.wire.send_bytes_max = bytes;
        self
    }

    /// Bounds on decoding a request's message.
    pub fn decode_limits(mut self, limits: DecodeLimits) -> Self {
        self.settings.wire.decode = limits;
        self
    }

    /// Longest time a call may take, whatever its caller asks; no limit unless set.
    pub fn timeout_max(mut self, timeout: Duration) -> Self {
        self.settings.timeout_max = Some(timeout);
        self
    }

    /// Whether answers of 1024 bytes and more are compressed for callers that
    /// accept it; on unless set.
    pub fn enable_compression(mut self, enabled: bool) -> Self {
        self.settings.wire.compress = enabled;
        self
    }

    /// How hard to compress, 1 (fastest) to 22; 3 unless set. gzip and deflate
    /// stop at 9, br at 11; snappy has no levels.
    pub fn compression_level(mut self, level: u8) -> Self {
        self.settings.wire.compression_level = level;
        self
    }

    /// The encodings that may be used both ways, the preferred first: zstd and
    /// gzip unless said otherwise. Others are refused, which names these.
    pub fn encodings(mut self, encodings: impl IntoIterator<Item = Encoding>) -> Self {
        self.settings.wire.accept = encodings.into_iter().collect();
        self
    }

    /// Sends the answers of a method, by its path (`/package.Service/Method`), or of all
    /// methods of a service (`/package.Service/*`), as they are, whoever accepts what:
    /// for those that hold a secret beside what a caller chose, whose length would tell
    /// of it once compressed (BREACH). A server without such a method is not built. A
    /// single answer says so by
    /// [`Response::without_compression`](quill_core::Response::without_compression).
    pub fn without_compression(mut self, path: impl Into<String>) -> Self {
        self.settings.uncompressed.push(path.into());
        self
    }

    /// Messages of fewer bytes are sent as they are; 1 KiB by default.
    pub fn compress_bytes_min(mut self, bytes: usize) -> Self {
        self.settings.wire.compress_bytes_min = bytes;
        self
    }

    /// Messages that a client which asks for credits may send before the
    /// handler has taken any, 16 to 65,536; 16 unless set.
    pub fn credits(mut self, messages: u32) -> Self {
        self.settings.wire.credits = Some(messages.clamp(16, 65_536));
        self
    }
}

impl<L: RpcLayers> ServerBuilder<L> {
    /// Binds `address` (`host:port`; port 0 takes a free one; `unix:/path`).
    ///
    /// # Errors
    /// A setting out of its bounds, an address that can't be bound.
    pub async fn bind(mut self, address: &str) -> Result<BoundServer, ServeError> {
        self.settings.metrics.bind_page().await?;
        let http = match self.settings.cores {
            Some(cores) => HttpServer::per_core(address, cores).await?,
            None => HttpServer::new(Listener::bind(address).await?),
        };
        self.serve_with(http)
    }

    /// Serves on sockets that are bound already.
    ///
    /// # Errors
    /// A setting out of its bounds, or [`per_core`](Self::per_core), which binds
    /// sockets of its own.
    pub fn listen(self, listener: Listener) -> Result<BoundServer, ServeError> {
        let of_bind = [
            ("per_core", self.settings.cores.is_some()),
            (
                "metrics_page on an address that is still to be bound",
                self.settings.metrics.has_page_to_bind(),
            ),
        ];
        if let Some((name, _)) = of_bind.iter().find(|(_, is_set)| *is_set) {
            return Err(ServeError::setting(format!(
                "{name} has no effect on sockets that are bound already: use bind"
            )));
        }
        self.serve_with(HttpServer::new(listener))
    }

    /// Whether [`bind`](Self::bind) would refuse a setting, without an address.
    ///
    /// # Errors
    /// A setting out of its bounds, a layer's rule for a method that is not served.
    pub fn check(self) -> Result<(), ServeError> {
        self.settings.check()?;
        if let Some(options) = &self.settings.transport {
            options.check()?;
        }
        let budget = self.settings.budget();
        self.into_front(budget, Draining::new()).map(drop)
    }

    fn serve_with(mut self, http: HttpServer) -> Result<BoundServer, ServeError> {
        self.settings.check()?;
        let budget = self.settings.budget();
        let connection_bytes_max = self.settings.connection_bytes_max();
        let options = self.settings.transport.take().unwrap_or_default();
        let mut http = http
            .with_options(options)?
            .with_budget(budget.clone(), connection_bytes_max);
        let tls = self.settings.tls.take();
        if let Some(tls) = &tls {
            http = http.with_tls(tls.clone());
        }
        let reload = tls.zip(self.settings.tls_reload);
        let drain = Drain {
            delay: self.settings.drain_delay.unwrap_or_default(),
            flushes: self.settings.take_flushes(),
            limit: self.settings.drain_limit.unwrap_or(DRAIN_LIMIT_DEFAULT),
            phases: Draining::new(),
        };
        if let Some(counts) = self.settings.metrics.connections() {
            http = http.with_counts(counts);
        }
        let elsewhere = self.settings.metrics.page_elsewhere();
        let service = self.into_front(budget.clone(), drain.phases.clone())?;
        let bound = BoundServer::new(http, service, budget, drain).with_tls_reload(reload);
        Ok(match elsewhere {
            Some((listener, page)) => bound.with_metrics_page(listener, page),
            None => bound,
        })
    }

    /// The server as a tower service of `http` requests, to be mounted in axum
    /// or on another HTTP server: `axum::Router::new().fallback_service(..)`.
    ///
    /// # Errors
    /// A setting out of its bounds, and one of what that other server does: TLS,
    /// connections and their limits, the drain.
    pub fn into_http_service(mut self) -> Result<HttpService, ServeError> {
        self.settings.check()?;
        let others = [
            ("tls", self.settings.tls.is_some()),
            (
                "transport, or a line for one of its options,",
                self.settings.transport.is_some(),
            ),
            ("drain_limit", self.settings.drain_limit.is_some()),
            ("drain_delay", self.settings.drain_delay.is_some()),
            ("on_shutdown", !self.settings.flushes.is_empty()),
            ("per_core", self.settings.cores.is_some()),
            (
                CONNECTION_HELD_BYTES_MAX,
                self.settings.connection_held_bytes_max.is_some(),
            ),
            (
                "metrics_page on an address of its own",
                self.settings.metrics.has_page_elsewhere(),
            ),
        ];
        if let Some((name, _)) = others.iter().find(|(_, is_set)| *is_set) {
            return Err(ServeError::setting(format!(
                "{name} has no effect on a mounted server: its connections belong to the HTTP server around it"
            )));
        }
        let budget = self.settings.budget();
        let front = self.into_front(budget, Draining::new())?;
        Ok(HttpService::new(front))
    }

    fn into_front(mut self, budget: Budget, draining: Draining) -> Result<Front, ServeError> {
        let layers = std::mem::take(&mut self.settings.http_layers);
        let cors = self.settings.cors.as_ref().map(Cors::build).transpose()?;
        let dispatch = self.into_dispatch(budget, draining)?;
        Ok(Front::new(cors, &layers, dispatch))
    }

    fn into_dispatch(self, budget: Budget, draining: Draining) -> Result<Dispatch, ServeError> {
        let Settings {
            routes,
            wire,
            fallback,
            receive_timeout,
            timeout_max,
            metrics,
            observer,
            uncompressed,
            ..
        } = self.settings;
        let uncompressed = named("without_compression", &uncompressed, &routes)?;
        let watching = Watching {
            known: metrics.known(&routes, wire.send_bytes_max),
            observer: observer.observer(wire.send_bytes_max),
        };
        let routes = Arc::new(routes);
        let handlers = Handlers(Arc::clone(&routes));
        let layered = || build_for(&routes, || self.layers.layer(handlers));
        let stack = match &watching.observer {
            None if watching.known.is_none() && !self.is_layered => Stack::Bare(routes.clone()),
            None => Stack::watched(layered()?, &watching),
            Some(seen) => {
                let service = ObserveLayer(seen.clone()).layer(layered()?);
                Stack::watched(service, &watching)
            }
        };
        let metering = metrics.metering(watching);
        let allowed = Allowed {
            budget,
            receive_timeout,
            timeout_max,
        };
        let dispatch = Dispatch::new(routes, stack, wire, allowed, draining, fallback);
        Ok(dispatch
            .with_metering(metering)
            .with_uncompressed(uncompressed))
    }
}

impl Settings {
    fn check(&self) -> Result<(), ServeError> {
        let level = self.wire.compression_level;
        if !COMPRESSION_LEVELS.contains(&level) {
            return Err(ServeError::setting(format!(
                "compression level {level} does not exist: use 1 (fastest) to 22"
            )));
        }
        self.check_reload()?;
        if let Some(mistake) = self.routes.mistake() {
            return Err(ServeError::setting(mistake.to_owned()));
        }
        self.metrics.check(&self.routes)?;
        let held = [
            (HELD_BYTES_MAX, self.held_bytes_max),
            (CONNECTION_HELD_BYTES_MAX, self.connection_held_bytes_max),
        ];
        let least = self.wire.receive_bytes_max;
        for (name, bytes) in held {
            if let Some(bytes) = bytes.filter(|bytes| *bytes < least) {
                return Err(ServeError::setting(format!(
                    "{name} can't be {bytes}: one message alone may have {least} bytes (receive_bytes_max)"
                )));
            }
        }
        Ok(())
    }

    /// What is waited for at the end: last what calls of the others left to be sent.
    fn take_flushes(&mut self) -> Flushes {
        let mut flushes = std::mem::take(&mut self.flushes);
        self.observer.add_flushes(&mut flushes);
        flushes
    }

    fn budget(&self) -> Budget {
        let default = HELD_BYTES_MAX_DEFAULT.max(self.wire.receive_bytes_max);
        Budget::new(HELD_BYTES_MAX, self.held_bytes_max.unwrap_or(default))
    }

    fn connection_bytes_max(&self) -> usize {
        let default = CONNECTION_HELD_BYTES_MAX_DEFAULT.max(self.wire.receive_bytes_max);
        self.connection_held_bytes_max.unwrap_or(default)
    }
}

impl<L> fmt::Debug for ServerBuilder<L> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ServerBuilder")
            .field("routes", &self.settings.routes)
            .field("wire", &self.settings.wire)
            .field("transport", &self.settings.transport)
            .finish_non_exhaustive()
    }
}
