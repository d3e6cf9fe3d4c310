//! What stands before handlers in production.
//!
//! Each part is wired by one line of the server's builder and costs nothing where
//! that line is missing.

mod gate;
pub(crate) mod naming;
pub(crate) mod observe;
pub(crate) mod watch;

pub mod auth;
pub mod concurrency;
pub mod log;
pub mod metrics;
pub mod rate_limit;
