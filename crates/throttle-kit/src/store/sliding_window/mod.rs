//! Counting in windows, as an alternative to GCRA.

mod backend;
mod count;

pub use backend::SlidingWindowBackend;

#[cfg(test)]
mod tests;
