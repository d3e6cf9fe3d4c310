//! The client's half: from an [`Endpoint`] to an answer.

mod channel;
mod connection;
mod dial;
mod endpoint;
mod h2;
mod options;
mod request_body;

pub use channel::Channel;
pub use endpoint::Endpoint;
pub use options::ClientOptions;
