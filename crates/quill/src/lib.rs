//! Quill: a protobuf-first RPC framework.
//!
//! Write a `.proto` and a handler once. One port then answers Quill's own
//! framed protocol, gRPC, gRPC-Web and Connect, over HTTP/1.1 and HTTP/2.
//!
//! - `quill-codegen` turns the `.proto` into messages, a trait to implement, a
//!   server and a typed client, in `build.rs`; [`include_proto!`] brings them in.
//! - [`Server`] serves them: [`Server::builder`] takes services, tower layers,
//!   limits and TLS, and binds an address.
//! - [`QuillClient`] makes calls, typed and untyped, in any of the protocols.
//! - A call ends with an [`Error`]: a [`Code`], a message, typed details.
//!
//! A client that encodes and decodes for itself needs no generated code:
//!
//! ```no_run
//! # async fn example() -> Result<(), Box<dyn std::error::Error>> {
//! use quill::{Protocol, QuillClient};
//!
//! let client = QuillClient::builder()
//!     .base_url("http://localhost:8080")
//!     .protocol(Protocol::Grpc)
//!     .build()?;
//! let reply = client.call("echo.v1.EchoService", "Echo", "\x0a\x02hi").await?;
//! assert_eq!(reply, "\x0a\x02hi");
//! # Ok(())
//! # }
//! ```
//!
//! The repository's README builds a service from nothing; its guide goes
//! through handlers, errors, streams, TLS, middleware and clients, and its
//! examples run each of them.
//!
//! Features, all additive: `server` and `client`, both on by default; `br`,
//! `deflate` and `snappy`, each an [`Encoding`] more for the builders' `encodings`;
//! `redis`, for rate limits that servers share; `config`, for settings from a file and the
//! environment; `otlp`, for what is sent to an OpenTelemetry collector; `descriptor`, for
//! messages that hold
//! those of `google/protobuf/descriptor.proto`.

mod include_proto;

pub use futures_core::Stream;
pub use quill_core::compression::Encoding;
pub use quill_core::{
    BuffaCodec, BuffaViewCodec, CallContext, Cancellation, Code, Codec, CodecError, Deadline,
    DecodeLimits, Detail, Draining, Error, ErrorDetail, Extensions, Format, HttpVersion,
    Idempotency, Incoming, Metadata, MetadataError, Method, MethodKind, Peer, Pushback, RawCodec,
    Reply, Request, RequestParts, Response, Streaming,
};
pub use quill_wire::Protocol;

#[cfg(feature = "client")]
pub use quill_client::{ClientBuilder, ConnectError, QuillClient};
#[cfg(feature = "server")]
pub use quill_server::{
    BoundServer, Cors, Handler, Routes, RpcLayers, RunningServer, ServeError, Server,
    ServerBuilder, Service, shutdown_signal,
};

#[cfg(all(feature = "server", feature = "config"))]
pub use quill_server::{ConfiguredLayers, ServerConfig};

#[cfg(all(feature = "client", feature = "config"))]
pub use quill_client::ClientConfig;
#[cfg(feature = "config")]
pub use quill_config::ConfigError;

/// What stands before handlers in production.
#[cfg(feature = "server")]
pub use quill_server::{auth, concurrency, log, metrics, rate_limit};

/// Traces and metrics sent to an OpenTelemetry collector.
#[cfg(feature = "otlp")]
pub use quill_otlp::{Otlp, OtlpBuilder, OtlpCounts};

pub use quill_core::trace;

pub use quill_transport::{
    ClientOptions, Drained, Http2Engine, HttpVersions, Listener, ServerOptions, TransportError,
    TransportErrorKind,
};

/// What makes a client hold out: retries, hedging, circuit breakers, rate limits,
/// tokens, and the shape of the layers between a client's methods and its
/// connections. Each is a line of a [`ClientBuilder`].
#[cfg(feature = "client")]
pub mod client {
    pub use quill_client::{
        Answer, Backoff, Balance, Breaker, BreakerState, CallFuture, CallService, Calls,
        CircuitBreaker, HealthCheck, Hedge, Hedged, Messages, Outliers, Quota, RateLimit,
        RateLimited, Retry, RetryBudget, RetryLayer, RetryPolicy, Token, Tokens, WithToken,
    };
}

/// TLS for both sides.
pub mod tls {
    pub use quill_transport::tls::*;
}

/// Well-known types of protobuf, such as `Timestamp`, and what an `Any` needs to
/// be JSON: the types that may be in one.
///
/// Those here are always known, and so are the messages of a package whose
/// generated server or client is used. Other packages are registered by a line
/// each, before the first call: `register_types(common::v1::register_types)`.
pub mod types {
    pub use buffa::type_registry::TypeRegistry;
    pub use buffa_types::*;
    pub use quill_core::register_types;
}

/// What generated code names. Not for use by hand: it changes without notice.
#[doc(hidden)]
pub mod __private {
    pub use buffa;
    #[cfg(feature = "descriptor")]
    pub use buffa_descriptor;
    pub use buffa_types;
    pub use futures_core::Stream;
    #[cfg(feature = "client")]
    pub use quill_client::{ConnectError, QuillClient};
    pub use quill_core::*;
    #[cfg(feature = "server")]
    pub use quill_server::{Routes, Service};
    pub use serde;
}
