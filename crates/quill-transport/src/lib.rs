//! Sockets, TLS and HTTP connections: heads, body chunks and trailers.
//!
//! Nothing here knows an RPC protocol. A server hands a [`Service`] to a
//! connection; a client sends a [`RequestHead`](quill_core::RequestHead) and a
//! [`Body`] on one and gets a head and a body back.

mod body;
mod error;
mod exchange;

pub use body::{Body, BoxBody, Chunk, Empty, Full, RecvBody};
pub use error::{TransportError, TransportErrorKind};
pub use exchange::{HttpRequest, HttpResponse, Service};
