//! A server's HTTP/2 connections on the engine of quill-h2.

mod clock;
mod date;
mod exchange;
mod session;

pub(super) use session::{Session, config};
