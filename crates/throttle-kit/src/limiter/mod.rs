//! What users call.

#[cfg(feature = "in-memory")]
mod direct;
mod jitter;
mod keyed;
mod overrides;
mod shared;

#[cfg(feature = "in-memory")]
pub use direct::DirectRateLimiter;
pub use jitter::Jitter;
pub use keyed::KeyedRateLimiter;
pub use shared::{InsufficientCapacity, RateLimiter};
