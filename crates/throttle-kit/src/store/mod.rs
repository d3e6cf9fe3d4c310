//! The stores. Each is one implementation of a trait in [`backend`](crate::backend).

#[cfg(feature = "in-memory")]
pub(crate) mod memory;
mod noop;

#[cfg(feature = "in-memory")]
pub use memory::InMemoryBackend;
pub use noop::NoopBackend;
