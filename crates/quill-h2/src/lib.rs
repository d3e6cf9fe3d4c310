//! HTTP/2 (RFC 9113) as bytes to events and back, without I/O.
//!
//! A [`Connection`] is either end of one connection. It is fed what was read and
//! tells [`Event`]s, it takes commands, and what both of them have it say gathers
//! in its [`Output`], to be written at once. It knows no socket, no clock and no
//! runtime; memory and work for a peer's bytes are bounded by its [`Config`].

#![forbid(unsafe_code)]

mod config;
mod connection;
mod error_code;
mod event;
mod fault;
mod floods;
mod frame;
mod head;
pub mod hpack;
mod output;
mod settings;
mod streams;
mod window;

pub use config::{Config, Limits, Rate, Role};
pub use connection::{Connection, OpenError, PREFACE};
pub use error_code::ErrorCode;
pub use event::{ConnectionError, Event, Sent};
pub use output::Output;
pub use streams::Key;
