//! Quill, gRPC, gRPC-Web and Connect as bytes to events and back, without I/O.
//!
//! The [`protocol`] module is the seam: everything outside this crate works
//! with [`Wire`], [`Call`], [`Encoder`] and [`Decoder`], and names no protocol.
//! Each protocol is one module that holds both its sides, so that every wire
//! rule stands once, with its two directions next to each other.
#![cfg_attr(
    not(test),
    deny(
        clippy::unwrap_used,
        clippy::expect_used,
        clippy::indexing_slicing,
        clippy::panic,
        clippy::arithmetic_side_effects
    )
)]

pub mod browser;
pub mod protocol;

mod base64;
mod chunks;
mod connect;
mod envelope;
mod fields;
mod grpc;
mod message;
mod negotiate;
mod out;
mod plain;
mod quill;
mod retry_after;
mod wire;

pub use self::quill::prism_profile;
pub use out::Out;
pub use protocol::{Call, Decode, Encode, Event, Protocol, Refusal, Side, Wire, WireOptions};
pub use wire::{Decoder, Encoder, Opened};
