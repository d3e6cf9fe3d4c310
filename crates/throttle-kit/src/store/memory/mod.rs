//! State in this process: a flat table of known size.

mod backend;
mod shared;
mod sync;
mod table;

pub use backend::InMemoryBackend;
#[cfg(feature = "sliding-window")]
pub(super) use shared::KEYS_MAX_DEFAULT;
#[cfg(feature = "sliding-window")]
pub(super) use shared::Shared;
#[cfg(feature = "sliding-window")]
pub(super) use table::{Life, Verdict};
