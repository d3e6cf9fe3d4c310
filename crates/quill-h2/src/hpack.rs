//! HPACK, the header compression of HTTP/2 (RFC 7541).
//!
//! A [`Decoder`] and an [`Encoder`] each hold one direction of a connection. They
//! have to see every header block of it, in order, refused streams included: what
//! one block adds to the table, the next refers to.
//!
//! ```
//! use quill_h2::hpack::{Decoder, Encoder, Field, Sink};
//!
//! struct Lines(Vec<String>);
//! impl Sink for Lines {
//!     fn field(&mut self, field: Field<'_>) {
//!         let [name, value] = [field.name, field.value].map(String::from_utf8_lossy);
//!         self.0.push(format!("{name}: {value}"));
//!     }
//! }
//!
//! let (mut encoder, mut block) = (Encoder::new(), Vec::new());
//! encoder.field(b":status", b"200", false, &mut block);
//! encoder.field(b"x-trace", b"7", false, &mut block);
//!
//! let (mut decoder, mut lines) = (Decoder::new(4096), Lines(Vec::new()));
//! let decoded = decoder.decode(&block, 16 * 1024, &mut lines)?;
//! assert!(!decoded.is_too_large());
//! assert_eq!(lines.0, [":status: 200", "x-trace: 7"]);
//! # Ok::<(), quill_h2::hpack::Error>(())
//! ```

mod decoder;
mod encoder;
mod ends;
mod error;
mod huffman;
mod integer;
mod memo;
mod static_table;
mod table;

pub use decoder::{Decoded, Decoder, Field, Sink};
pub use encoder::Encoder;
pub use error::Error;
pub use memo::Memo;
pub(crate) use memo::Written;
pub use table::Churn;
