//! The stores. Each is one implementation of a trait in [`backend`](crate::backend).

mod noop;

pub use noop::NoopBackend;
