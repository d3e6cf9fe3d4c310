//! A line for each call: who called what, what came of it, and how long it took.
//!
//! A [`RequestLogger`] is wired by
//! [`ServerBuilder::request_logger`](crate::ServerBuilder::request_logger). Lines
//! are JSON or `key=value`; a thread of their own writes them, so that a slow disk
//! holds up no call, and what a caller sent can break neither a line nor a terminal.

mod escaped;
mod fields;
mod line;
mod logger;
mod timestamp;
mod writer;

pub use logger::RequestLogger;

pub(crate) use line::{Line, Traffic};
