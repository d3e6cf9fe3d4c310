//! Our client and server halves against each other, and each against raw
//! sockets, on the loopback interface.

mod client;
mod exchange;
mod limits;
mod raw;
mod shutdown;
mod support;
mod tls;
