//! The stores. Each is one implementation of a trait in [`backend`](crate::backend).

#[cfg(feature = "in-memory")]
pub(crate) mod memory;
mod noop;
#[cfg(feature = "sliding-window")]
mod sliding_window;

#[cfg(feature = "in-memory")]
pub use memory::InMemoryBackend;
pub use noop::NoopBackend;
#[cfg(feature = "sliding-window")]
pub use sliding_window::SlidingWindowBackend;
