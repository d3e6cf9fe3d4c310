//! What stands before handlers in production.
//!
//! Each part is wired by one line of the server's builder and costs nothing where
//! that line is missing.

mod gate;
pub(crate) mod naming;

pub mod auth;
pub mod concurrency;
pub mod metrics;
pub mod rate_limit;
