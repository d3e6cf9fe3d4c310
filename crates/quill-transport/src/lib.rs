//! Sockets, TLS and HTTP connections: heads, body chunks and trailers.
//!
//! Nothing here knows an RPC protocol. A server hands a [`Service`] to an
//! [`HttpServer`] on a [`Listener`]; a client sends a
//! [`RequestHead`](quill_core::RequestHead) and a [`Body`] on a [`Channel`] to
//! an [`Endpoint`] and gets a head and a body back.
//!
//! Hyper speaks HTTP/1.1 and HTTP/2 underneath; none of its types are public.

pub mod adapt;
pub mod tls;

mod body;
mod bounds;
mod client;
mod error;
mod exchange;
mod fields;
mod h2;
mod hyper_error;
mod io;
mod listener;
mod server;

pub use body::{Body, BoxBody, Chunk, Empty, Full, RecvBody, Whole};
pub use bounds::{Http2Engine, OptionsError};
pub use client::{Caller, Channel, ClientOptions, Endpoint, Lane, LaneRequest, Lease, Part};
pub use error::{TransportError, TransportErrorKind};
pub use exchange::{HttpRequest, HttpResponse, Service};
pub use listener::{BindError, Listener};
pub use server::{
    CONNECTION_HELD_BYTES_MAX, ConnectionCounts, Drained, HttpServer, HttpVersions, Running,
    ServerOptions,
};
