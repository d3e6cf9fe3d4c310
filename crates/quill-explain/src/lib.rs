//! Bytes of protobuf messages, and of what carries them, as text for people.
//!
//! [`explain`] reads a stream and writes a line for each field: offset, bytes,
//! tag, name and value. With a schema names and types are known; without one
//! they are guessed. Quill's frames, the envelopes of gRPC, gRPC-Web and Connect,
//! trailers and problem details are recognised by what they look like.
//!
//! Nothing is held but the field at hand, so inputs may be of any size; what is
//! wrong with them is said where it is, and never a panic.
//!
//! ```
//! use quill_explain::{Options, explain};
//!
//! let mut text = Vec::new();
//! let summary = explain(&mut &b"\x0a\x02hi\x10\x96\x01"[..], &mut text, &Options::default())?;
//! assert_eq!(summary.messages, 1);
//! assert_eq!(
//!     String::from_utf8_lossy(&text),
//!     "00000000  0a 02 68 69                 1:LEN     \"hi\"\n\
//!      00000004  10 96 01                    2:VARINT  150\n"
//! );
//! # Ok::<(), quill_explain::Failed>(())
//! ```
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

mod carried;
mod container;
mod document;
mod failed;
mod form;
mod guess;
mod harmless;
mod lines;
mod message;
mod options;
mod scalar;
mod shape;
mod window;

pub use carried::{Summary, explain};
pub use container::Container;
pub use failed::Failed;
pub use form::{Form, Unformed};
pub use harmless::{harmless, harmless_json};
pub use options::{Options, Schema, View};
