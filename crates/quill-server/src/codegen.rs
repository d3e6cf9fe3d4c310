//! What generated servers name; it changes without notice.

pub use buffa;
pub use buffa_types;
pub use futures_core::Stream;
pub use quill_core::*;
pub use serde;

pub use crate::routes::{Routes, Service};
