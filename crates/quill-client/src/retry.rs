//! Making a call again that failed, where that is safe (gRPC proposal A6).

mod budget;
mod policy;
mod replay;
mod service;

pub use budget::RetryBudget;
#[cfg(feature = "config")]
pub(crate) use budget::{RATIO_DEFAULT, TOKENS_DEFAULT, TOKENS_MAX};
#[cfg(feature = "config")]
pub(crate) use policy::BACKOFF_DEFAULT;
pub(crate) use policy::may_repeat;
pub use policy::{RetryLayer, RetryPolicy};
pub use service::Retry;
pub(crate) use service::{PUSHBACK_MAX, attempt_parts};
