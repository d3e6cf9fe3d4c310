//! How much callers may ask for.
//!
//! [`RateLimitLayer`] stands before the handlers of a server, one for each limit;
//! [`RateLimiter`] is the same budget for a handler's own use. Both are
//! [throttle-kit](throttle_kit)'s: exact, without a lock, the state of a caller one
//! word.
//!
//! A call that is refused ends with `resource_exhausted`, and says when to come
//! back as each protocol has it: a `google.rpc.RetryInfo` detail in all of them, a
//! `retry-after` header where the answer is plain HTTP, `grpc-retry-pushback-ms`
//! in gRPC's trailers.

mod budget;
mod key;
mod layer;
mod limiter;
mod service;

pub use layer::RateLimitLayer;
pub use limiter::{RateLimiter, quota};
pub use service::RateLimitService;
pub use throttle_kit::client_ip::ClientIpError;
pub use throttle_kit::{
    ClientIpConfig, InMemoryBackend, IpNet, Quota, QuotaError, RateLimitBackend,
};
#[cfg(feature = "redis")]
pub use throttle_kit::{RedisBackend, WhenDown};
