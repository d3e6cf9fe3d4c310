//! Rate limits (under construction).

pub mod backend;
#[cfg(feature = "in-memory")]
pub mod clock;
mod decision;
pub mod gcra;
pub mod guide;
mod key;
mod limiter;
#[cfg(feature = "metrics")]
pub mod metrics;
mod observe;
mod quota;
pub mod store;

pub use backend::{Demand, Joint, Operation, RateLimitBackend, SyncBackend};
#[cfg(all(feature = "in-memory", any(test, feature = "test-util")))]
pub use clock::ManualClock;
#[cfg(feature = "in-memory")]
pub use clock::{Clock, SystemClock, TickClock};
pub use decision::{Decision, Figures, JointDecision, Outcome};
pub use key::{Hashed, IpBytes, Key, KeyBuf, KeyRef, Kind, Namespace};
#[cfg(feature = "in-memory")]
pub use limiter::DirectRateLimiter;
pub use limiter::{InsufficientCapacity, Jitter, KeyedRateLimiter, RateLimiter};
pub use quota::{Quota, QuotaError};
#[cfg(feature = "in-memory")]
pub use store::InMemoryBackend;
pub use store::NoopBackend;
#[cfg(feature = "redis")]
pub use store::RedisBackend;
#[cfg(feature = "sqlite")]
pub use store::SqliteBackend;
#[cfg(any(feature = "redis", feature = "sqlite"))]
pub use store::WhenDown;
