//! A tower layer that limits HTTP requests.
//!
//! [`RateLimitLayer`] decides before the inner service is called: an allowed
//! request goes on, and its answer gets the headers; a refused one is answered
//! at once. It works with any request and response bodies, and keeps tower's
//! contract: the service that was polled ready is the one that is called.
//!
//! ```
//! use throttle_kit::{InMemoryBackend, Quota};
//! use throttle_kit::tower::{LimitHeaders, RateLimitLayer, RequestKey};
//!
//! let layer = RateLimitLayer::new(Quota::per_second(50), InMemoryBackend::new())
//!     .with_key(RequestKey::header("x-api-key"))
//!     .with_route("/login", Quota::per_minute(5))
//!     .with_headers(LimitHeaders::Both)
//!     .with_skip(|request| request.uri.path() == "/health");
//! # let _: RateLimitLayer<InMemoryBackend> = layer;
//! ```
//!
//! # Who is limited
//!
//! By default the client's address: see [`client_ip`](crate::client_ip). The
//! peer is looked for in the request's extensions, as [`PeerAddr`], as a
//! [`SocketAddr`](std::net::SocketAddr), or with the feature `axum` as axum's
//! `ConnectInfo<SocketAddr>`. If it is not there the request is refused with
//! 503: [`MissingClientPolicy`](crate::client_ip::MissingClientPolicy).
//!
//! # What is answered
//!
//! A refusal is 429 with `Retry-After`, in whole seconds rounded up, so that a
//! retry then passes; [`Refuse`] makes other answers of it. A gRPC request is
//! refused as gRPC refuses, with status `RESOURCE_EXHAUSTED` in a
//! response that has no body. [`LimitHeaders`] says which headers tell a client
//! how much is left.

mod future;
mod headers;
mod key;
mod layer;
mod refusal;
mod service;

pub use future::ResponseFuture;
pub use headers::LimitHeaders;
pub use key::{OwnedKey, PeerAddr, RequestHead, RequestKey};
pub use layer::RateLimitLayer;
pub use refusal::{Refusal, RefusalReason, Refuse, StandardRefusal};
pub use service::RateLimitService;
