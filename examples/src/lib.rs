//! The greeter that the examples about what surrounds a service share; `hello`
//! shows it in full.

mod greeter;

pub use greeter::{Greeter, greet};
