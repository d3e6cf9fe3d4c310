//! Quill's own protocol, both sides (docs/protocol.md): bare messages where a
//! side has one, frames where it streams, failures as problem documents, message
//! credits; and the dialect of the framework that its frames come from.

mod answer;
mod credits;
mod decoder;
mod encoder;
mod encoding;
mod frames;
mod get;
mod media;
mod metadata;
mod open;
mod prism;
mod problem;
mod refusal;
mod request;
mod squeeze;
mod status;
mod timeout;

#[cfg(test)]
mod tests;

pub(crate) use credits::Credits;
pub(crate) use decoder::QuillDecoder;
pub(crate) use encoder::QuillEncoder;
pub(crate) use open::{Marks, open};
pub use prism::prism_profile;
pub(crate) use refusal::refuse;
pub(crate) use request::{request, unary_request};
