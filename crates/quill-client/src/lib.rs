//! Quill's client: typed and untyped calls in every protocol over shared
//! connections.
//!
//! [`QuillClient`] is the entry; generated clients sit on it.

mod builder;
mod call;
mod client;
mod error;
mod error_body;
mod untyped;

pub use builder::ClientBuilder;
pub use client::QuillClient;
pub use error::ConnectError;
