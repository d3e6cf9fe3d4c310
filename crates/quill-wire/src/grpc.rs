//! gRPC over HTTP/2 and HTTP/3, and gRPC-Web, binary and text, over any HTTP:
//! the same messages in the same envelopes, with the status in HTTP trailers or
//! in a last envelope of the body.
//!
//! After gRPC's `PROTOCOL-HTTP2.md`, `PROTOCOL-WEB.md`, `compression.md`,
//! `statuscodes.md` and `http-grpc-status-mapping.md`. By `statuscodes.md` a
//! library never makes an `invalid_argument` of its own, so whatever is wrong
//! with the bytes of a request is `internal` here, at both sides.

mod content_type;
mod decoder;
mod encoder;
mod encodings;
mod head;
mod message_text;
mod retry;
mod status;
mod status_details;
mod text;
mod timeout;
mod web_trailers;

#[cfg(test)]
mod tests;

pub(crate) use decoder::GrpcDecoder;
pub(crate) use encoder::GrpcEncoder;
pub(crate) use head::{open, refuse, request};
