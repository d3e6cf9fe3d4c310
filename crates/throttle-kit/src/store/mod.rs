//! The stores. Each is one implementation of a trait in [`backend`](crate::backend).

#[cfg(feature = "in-memory")]
pub(crate) mod memory;
mod noop;
#[cfg(feature = "redis")]
pub mod redis;
#[cfg(feature = "sliding-window")]
mod sliding_window;
#[cfg(feature = "sqlite")]
pub mod sqlite;
#[cfg(any(feature = "redis", feature = "sqlite"))]
mod when_down;

#[cfg(feature = "in-memory")]
pub use memory::InMemoryBackend;
pub use noop::NoopBackend;
#[cfg(feature = "redis")]
pub use redis::RedisBackend;
#[cfg(feature = "sliding-window")]
pub use sliding_window::SlidingWindowBackend;
#[cfg(feature = "sqlite")]
pub use sqlite::SqliteBackend;
#[cfg(any(feature = "redis", feature = "sqlite"))]
pub use when_down::WhenDown;
