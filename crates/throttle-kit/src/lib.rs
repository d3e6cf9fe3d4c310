//! Rate limits (under construction).

pub mod backend;
mod decision;
pub mod gcra;
mod key;
mod limiter;
mod quota;
pub mod store;

pub use backend::{Demand, Joint, Operation, RateLimitBackend, SyncBackend};
pub use decision::{Decision, Figures, JointDecision, Outcome};
pub use key::{Hashed, IpBytes, Key, KeyBuf, KeyRef, Kind, Namespace};
pub use limiter::RateLimiter;
pub use quota::{Quota, QuotaError};
pub use store::NoopBackend;
