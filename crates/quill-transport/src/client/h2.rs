//! A client's HTTP/2 connections on the engine of quill-h2.

mod keep_alive;
mod session;
mod shared;

pub(super) use keep_alive::KeepAlive;
pub(super) use shared::{Connection, Settings};
