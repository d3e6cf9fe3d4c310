//! Connect.
pub(crate) mod stream;
pub(crate) mod unary;
use crate::out::Out;
use crate::protocol::Refusal;
pub(crate) fn refuse(_: Refusal, _: &mut Out) {}
