//! Not calling a server that fails.

mod circuit;
mod layer;

pub use circuit::BreakerState;
pub use layer::{Breaker, CircuitBreaker};
