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
pub(crate) use kept::Failure;
pub(crate) use source::Source;
