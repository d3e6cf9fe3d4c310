//! HTTP/2 (RFC 9113) as bytes to events and back, without I/O.

#![forbid(unsafe_code)]

pub mod hpack;
