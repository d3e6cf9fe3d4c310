//! Not calling a server that fails.

mod circuit;
mod layer;

pub use circuit::BreakerState;
pub(crate) use layer::FAULTS;
pub use layer::{Breaker, CircuitBreaker};
