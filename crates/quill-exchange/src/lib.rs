//! The two halves of a call over a transport.
//!
//! A server and a client do the same with opposite sides: one half of an
//! exchange is a [`Body`](quill_transport::Body) that pulls messages from their
//! maker and writes them with an encoder ([`SendBody`]), the other turns a
//! received body into messages with a decoder ([`Receiver`]). What is common
//! to both stands here once: back-pressure, credits, cardinality, deadlines.

mod credits;
mod expiring;
mod given_up;
mod inbound;
mod layer_error;
mod outbound;
mod receive;
mod send;
mod transport_error;
mod whole;

pub use credits::Credits;
pub use expiring::ExpiringOutbound;
pub use given_up::GivenUp;
pub use inbound::{CreditedInbound, DeadlineInbound, DirectInbound};
pub use layer_error::from_layer;
pub use outbound::{StreamOutbound, UnaryOutbound};
pub use receive::{Received, Receiver};
pub use send::{
    CallGuard, SendBody, Source, StartFuture, at_deadline, deadline_exceeded, named, panicked,
};
pub use transport_error::from_transport;
pub use whole::WholeBody;
