//! Quill's server.

#[doc(hidden)]
pub mod codegen;

mod dispatch;
mod handler;
mod routes;
mod stack;

pub use dispatch::{Dispatch, ReplyBody};
pub use handler::{Handler, HandlerFuture};
pub use routes::{Route, Routes, Service};
pub use stack::Handlers;
