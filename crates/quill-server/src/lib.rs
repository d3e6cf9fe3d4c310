//! Quill's server: one port, one handler, every protocol.
//!
//! [`Server::builder`] takes services (generated ones, or handlers without
//! types), tower layers on the level of RPC and of HTTP, limits and TLS, and
//! binds an address.

#[doc(hidden)]
pub mod codegen;

mod builder;
#[cfg(feature = "config")]
mod config;
mod cors;
mod dispatch;
mod ending;
mod error;
mod exchange;
mod handler;
mod http_service;
mod middleware;
mod routes;
mod server;
mod stack;
mod uncompressed;

pub use builder::ServerBuilder;
#[cfg(feature = "config")]
pub use config::{ConfigError, ConfiguredLayers, ServerConfig};
pub use cors::Cors;
pub use dispatch::ReplyBody;
pub use ending::shutdown_signal;
pub use error::ServeError;
pub use handler::{Handler, HandlerFuture};
pub use http_service::{BoxHttpService, HttpService};
pub use middleware::*;
pub use routes::{Route, Routes, Service};
pub use server::{BoundServer, RunningServer, Server};
pub use stack::{Handlers, RpcLayers, RpcService};
