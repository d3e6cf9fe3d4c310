//! Our client and server halves against each other, and each against raw
//! sockets, on the loopback interface.

// Options can't be written as a literal outside of their crate.
#![allow(clippy::field_reassign_with_default)]

mod adapt;
mod aging;
mod client;
mod curl;
mod exchange;
mod h2spec;
mod keepalive;
mod lane;
mod limits;
mod raw;
mod shutdown;
mod streams;
mod support;
mod tls;
