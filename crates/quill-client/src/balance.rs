//! Several connections, several servers: which of them a call goes to.

mod backend;
mod balancer;
mod health;
mod keeper;
mod kept;
mod outlier;
mod settings;
mod source;

pub use health::HealthCheck;
pub use outlier::Outliers;
pub use settings::Balance;

pub(crate) use balancer::{Balanced, Balancer};
#[cfg(feature = "config")]
pub(crate) use keeper::RESOLVE_PAUSE;
pub(crate) use kept::Failure;
#[cfg(feature = "config")]
pub(crate) use settings::RECONNECT_DEFAULT;
pub(crate) use source::Source;

/// How often servers are looked at, at most.
pub(crate) const INTERVAL_MIN: std::time::Duration = std::time::Duration::from_millis(10);
