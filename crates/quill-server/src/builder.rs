//! A server's settings.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use quill_core::compression::Encoding;
use quill_core::{BoxError, DecodeLimits, Incoming, Method, Reply, Request, Response};
use quill_transport::adapt::{FromTower, HttpBody};
use quill_transport::{HttpRequest, HttpServer, Listener, RecvBody, ServerOptions, tls::ServerTls};
use quill_wire::WireOptions;
use tower::ServiceExt;
use tower::util::BoxCloneSyncService;
use tower_layer::{Identity, Layer, Stack as LayerStack};

use crate::cors::{Cors, CorsFields};
use crate::dispatch::{Dispatch, Fallback};
use crate::error::ServeError;
use crate::handler::Handler;
use crate::http_service::{BoxHttpService, Front, HttpLayer, HttpService};
use crate::routes::{Routes, Service};
use crate::server::BoundServer;
use crate::stack::{BoxStack, Handlers, Stack};

/// How long a drain may take before what is left is cut.
const DRAIN_LIMIT_DEFAULT: Duration = Duration::from_secs(10);
const COMPRESSION_LEVELS: std::ops::RangeInclusive<u8> = 1..=22;

/// The settings of a [`Server`](crate::Server).
///
/// `L` is the type of the layers added so far.
#[must_use]
pub struct ServerBuilder<L = Identity> {
    routes: Routes,
    layers: L,
    is_layered: bool,
    http_layers: Vec<HttpLayer>,
    cors: Option<Cors>,
    fallback: Option<Fallback>,
    wire: WireOptions,
    transport: ServerOptions,
    tls: Option<ServerTls>,
    drain_limit: Duration,
}

impl ServerBuilder {
    pub(crate) fn new() -> Self {
        Self {
            routes: Routes::new(),
            layers: Identity::new(),
            is_layered: false,
            http_layers: Vec::new(),
            cors: None,
            fallback: None,
            wire: WireOptions::default(),
            transport: ServerOptions::default(),
            tls: None,
            drain_limit: DRAIN_LIMIT_DEFAULT,
        }
    }
}

impl<L> ServerBuilder<L> {
    /// Serves a service: a generated `XServer::new(implementation)`.
    pub fn service(mut self, service: impl Service) -> Self {
        self.routes.add(service);
        self
    }

    /// Serves one method with a handler that knows no types, for gateways and tools.
    pub fn route(mut self, method: Method, handler: impl Handler) -> Self {
        self.routes.route(method, handler);
        self
    }

    /// Puts a tower layer around all calls, on the level of RPC: its service
    /// takes `Request<Incoming>` and gives `Response<Reply>`. The layer added
    /// first is the outermost. An error of a layer becomes the call's error in
    /// the caller's own protocol; those of tower's `timeout` and `load_shed`
    /// become `deadline_exceeded` and `resource_exhausted`.
    pub fn layer<T>(self, layer: T) -> ServerBuilder<LayerStack<T, L>> {
        ServerBuilder {
            routes: self.routes,
            layers: LayerStack::new(layer, self.layers),
            is_layered: true,
            http_layers: self.http_layers,
            cors: self.cors,
            fallback: self.fallback,
            wire: self.wire,
            transport: self.transport,
            tls: self.tls,
            drain_limit: self.drain_limit,
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
        self.http_layers.push(HttpLayer::new(layer));
        self
    }

    /// Lets pages of other origins call from a browser; none unless set. It
    /// stands before all layers, whenever it is set.
    pub fn cors(mut self, cors: Cors) -> Self {
        self.cors = Some(cors);
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
        self.fallback = Some(Arc::new(move |request: HttpRequest| {
            quill_transport::Service::call(&service, request)
        }));
        self
    }

    /// Most bytes of a received message; 4 MiB unless set.
    pub fn receive_bytes_max(mut self, bytes: usize) -> Self {
        self.wire.receive_bytes_max = bytes;
        self
    }

    /// Most bytes of a sent message; 4 MiB unless set.
    pub fn send_bytes_max(mut self, bytes: usize) -> Self {
        self.wire.send_bytes_max = bytes;
        self
    }

    /// Bounds on decoding a request's message.
    pub fn decode_limits(mut self, limits: DecodeLimits) -> Self {
        self.wire.decode = limits;
        self
    }

    /// Longest time a call may take, whatever its caller asks; no limit unless set.
    pub fn timeout_max(mut self, timeout: Duration) -> Self {
        self.wire.timeout_max = Some(timeout);
        self
    }

    /// Whether answers of 1024 bytes and more are compressed for callers that
    /// accept it; on unless set.
    pub fn enable_compression(mut self, enabled: bool) -> Self {
        self.wire.compress = enabled;
        self
    }

    /// How hard to compress, 1 (fastest) to 22; 3 unless set. gzip and deflate
    /// stop at 9, br at 11; snappy has no levels.
    pub fn compression_level(mut self, level: u8) -> Self {
        self.wire.compression_level = level;
        self
    }

    /// The encodings that may be used both ways, the preferred first: zstd and
    /// gzip unless said otherwise. Others are refused, which names these.
    pub fn encodings(mut self, encodings: impl IntoIterator<Item = Encoding>) -> Self {
        self.wire.accept = encodings.into_iter().collect();
        self
    }

    /// Messages of fewer bytes are sent as they are; 1 KiB by default.
    pub fn compress_bytes_min(mut self, bytes: usize) -> Self {
        self.wire.compress_bytes_min = bytes;
        self
    }

    /// Messages that a client which asks for credits may send before the
    /// handler has taken any, 16 to 65,536; 16 unless set.
    pub fn credits(mut self, messages: u32) -> Self {
        self.wire.credits = Some(messages.clamp(16, 65_536));
        self
    }

    /// Speaks TLS on every socket.
    pub fn tls(mut self, tls: ServerTls) -> Self {
        self.tls = Some(tls);
        self
    }

    /// Limits and timeouts of the connections.
    pub fn transport(mut self, options: ServerOptions) -> Self {
        self.transport = options;
        self
    }

    /// How long calls may go on once the server drains; 10 s unless set.
    pub fn drain_limit(mut self, limit: Duration) -> Self {
        self.drain_limit = limit;
        self
    }
}

/// What a stack of layers must be to stand in front of handlers.
pub trait RpcLayers: Layer<Handlers, Service: RpcService> {}

impl<L: Layer<Handlers, Service: RpcService>> RpcLayers for L {}

/// A service on the level of RPC: `Request<Incoming>` to `Response<Reply>`.
pub trait RpcService:
    tower_service::Service<
        Request<Incoming>,
        Response = Response<Reply>,
        Error: Into<BoxError>,
        Future: Send + 'static,
    > + Clone
    + Send
    + Sync
    + 'static
{
}

impl<S> RpcService for S where
    S: tower_service::Service<
            Request<Incoming>,
            Response = Response<Reply>,
            Error: Into<BoxError>,
            Future: Send + 'static,
        > + Clone
        + Send
        + Sync
        + 'static
{
}

impl<L: RpcLayers> ServerBuilder<L> {
    /// Binds `address` (`host:port`; port 0 takes a free one; `unix:/path`).
    ///
    /// # Errors
    /// A setting out of its bounds, an address that can't be bound.
    pub async fn bind(self, address: &str) -> Result<BoundServer, ServeError> {
        let listener = Listener::bind(address).await?;
        self.listen(listener)
    }

    /// Serves on sockets that are bound already.
    ///
    /// # Errors
    /// A setting out of its bounds.
    pub fn listen(mut self, listener: Listener) -> Result<BoundServer, ServeError> {
        self.check()?;
        let mut http = HttpServer::new(listener).with_options(self.transport.clone())?;
        if let Some(tls) = self.tls.take() {
            http = http.with_tls(tls);
        }
        let drain_limit = self.drain_limit;
        let cors = self.cors.as_ref().map(Cors::build).transpose()?;
        let front = self.into_front(cors);
        Ok(BoundServer::new(http, front, drain_limit))
    }

    /// The server as a tower service of `http` requests, to be mounted in axum
    /// or on another HTTP server: `axum::Router::new().fallback_service(..)`.
    /// What `bind` refuses about [`cors`](Self::cors) is logged, and no origin
    /// is let in.
    pub fn into_http_service(self) -> HttpService {
        let cors = self.cors.as_ref().and_then(|cors| {
            let built = cors.build();
            built.inspect_err(|error| tracing::error!(%error)).ok()
        });
        HttpService::new(self.into_front(cors))
    }

    fn into_front(mut self, cors: Option<CorsFields>) -> Front {
        let layers = std::mem::take(&mut self.http_layers);
        Front::new(cors, &layers, self.into_dispatch())
    }

    fn check(&self) -> Result<(), ServeError> {
        let level = self.wire.compression_level;
        if COMPRESSION_LEVELS.contains(&level) {
            return Ok(());
        }
        Err(ServeError::setting(format!(
            "compression level {level} does not exist: use 1 (fastest) to 22"
        )))
    }

    fn into_dispatch(self) -> Dispatch {
        let routes = Arc::new(self.routes);
        let stack = if self.is_layered {
            let service = self.layers.layer(Handlers(Arc::clone(&routes)));
            let erased: BoxStack = BoxCloneSyncService::new(service.map_err(Into::into));
            Stack::layered(erased)
        } else {
            Stack::Bare(Arc::clone(&routes))
        };
        Dispatch::new(routes, stack, self.wire, self.fallback)
    }
}

impl<L> fmt::Debug for ServerBuilder<L> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ServerBuilder")
            .field("routes", &self.routes)
            .field("wire", &self.wire)
            .field("transport", &self.transport)
            .finish_non_exhaustive()
    }
}
