//! How many calls run at once.
//!
//! [`ConcurrencyLimitLayer`] stands before the handlers of a server: a limit that is
//! fixed, or one that is found by how long calls take ([`AdaptiveLimit`]). A call is
//! counted until its answer has ended, a stream until its last message. What comes beyond
//! the limit waits, if it may, for a bounded time, and is refused: load is shed before it
//! makes all calls late.
//!
//! A refused call ends with `unavailable`, which callers may try again, here or
//! elsewhere, and says when, as each protocol has it. Health checks are not limited.

mod adaptive;
mod future;
mod layer;
mod limiter;
mod permit;
mod queue;
mod service;
mod settings;

pub use adaptive::AdaptiveLimit;
pub use future::ConcurrencyLimitFuture;
pub use layer::ConcurrencyLimitLayer;
pub use queue::Priority;
pub use service::ConcurrencyLimitService;
