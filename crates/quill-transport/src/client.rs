//! The client's half: from an [`Endpoint`] to an answer.

mod channel;
mod connection;
mod dial;
mod endpoint;
mod h2;
mod lane;
mod multiplexed;
mod options;
mod pool;
mod request_body;
mod tap;

pub use channel::{Channel, Lease};
pub use endpoint::Endpoint;
pub use lane::{Caller, Lane, LaneRequest, Part};
pub use options::ClientOptions;
