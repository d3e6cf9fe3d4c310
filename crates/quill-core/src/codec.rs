//! Messages to bytes and back.

use std::borrow::Cow;
use std::fmt;

use bytes::{Bytes, BytesMut};

use crate::error::BoxError;

#[cfg(feature = "buffa")]
mod any_types;
#[cfg(feature = "buffa")]
mod buffa_codec;
#[cfg(feature = "buffa")]
mod buffa_view_codec;
#[cfg(feature = "buffa")]
mod deep_stack;
#[cfg(feature = "buffa")]
#[doc(hidden)]
pub mod json;
#[cfg(feature = "buffa")]
mod json_limits;
#[cfg(feature = "buffa")]
pub use any_types::{HoldsAny, register_types};
#[cfg(feature = "buffa")]
pub use buffa_codec::BuffaCodec;
#[cfg(feature = "buffa")]
pub use buffa_view_codec::BuffaViewCodec;

/// How a message is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Format {
    /// Protobuf's binary format.
    Proto,
    /// Protobuf's JSON mapping.
    Json,
}

impl Format {
    /// Its name in media types: `proto` or `json`.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Format::Proto => "proto",
            Format::Json => "json",
        }
    }

    /// The format with this name in media types.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        match name {
            "proto" => Some(Format::Proto),
            "json" => Some(Format::Json),
            _ => None,
        }
    }
}

/// Bounds on what decoding one message may cost, beyond the size of its bytes:
/// a few bytes of protobuf can ask for much memory or a deep stack.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DecodeLimits {
    /// How deep messages may nest; 100 by default, as in protobuf's own libraries.
    /// JSON nests at most 128 objects and lists, whatever stands here.
    pub depth_max: u32,
    /// How many fields that the schema does not know are kept; 10,000 by default.
    pub unknown_fields_max: usize,
    /// Memory that the elements of repeated and map fields may take; 32 MiB by
    /// default. In JSON each object counts as 256 bytes towards it.
    pub element_bytes_max: usize,
}

impl Default for DecodeLimits {
    fn default() -> Self {
        Self {
            depth_max: 100,
            unknown_fields_max: 10_000,
            element_bytes_max: 32 * 1024 * 1024,
        }
    }
}

/// Turns messages of type `T` into bytes and back, in both formats.
///
/// A codec is its own type rather than a trait on messages, so that message
/// libraries can stand side by side and dynamic messages can carry their
/// schema in it. It is cloned freely: keep it small.
pub trait Codec<T>: Clone + Send + Sync + 'static {
    /// Decodes one message.
    ///
    /// # Errors
    /// Bytes that are no such message, or that exceed a limit.
    fn decode(&self, format: Format, bytes: Bytes, limits: &DecodeLimits) -> Result<T, CodecError>;

    /// Whether decoded messages hold on to the bytes that they were decoded from. Where
    /// they don't, those of a stream are not copied out of what was read.
    fn keeps_bytes(&self) -> bool {
        true
    }

    /// Appends the encoded message to `out`.
    ///
    /// # Errors
    /// A message that the format can't hold (over 2 GiB, or with no JSON form).
    fn encode(&self, format: Format, message: &T, out: &mut BytesMut) -> Result<(), CodecError>;

    /// The number of bytes [`encode`](Self::encode) will append, where that is
    /// cheap to know.
    fn encoded_len(&self, format: Format, message: &T) -> Option<usize> {
        let _ = (format, message);
        None
    }

    /// The encoded message, where it exists already and need not be copied.
    fn encoded(&self, format: Format, message: &T) -> Option<Bytes> {
        let _ = (format, message);
        None
    }
}

/// A message on its way out, with its codec: what the wire encodes.
pub trait Outgoing {
    /// Appends the encoded message to `out`.
    ///
    /// # Errors
    /// As [`Codec::encode`].
    fn encode(&self, format: Format, out: &mut BytesMut) -> Result<(), CodecError>;

    /// As [`Codec::encoded_len`].
    fn encoded_len(&self, format: Format) -> Option<usize>;

    /// As [`Codec::encoded`].
    fn encoded(&self, format: Format) -> Option<Bytes>;

    /// Whether it may be compressed where that is agreed on. What wraps a message must
    /// say what the message says.
    fn may_compress(&self) -> bool {
        true
    }
}

/// A message and the codec that writes it.
#[derive(Clone, Debug)]
pub struct Encodable<T, C> {
    /// The message.
    pub message: T,
    /// Its codec.
    pub codec: C,
}

impl<T: Send, C: Codec<T>> Outgoing for Encodable<T, C> {
    fn encode(&self, format: Format, out: &mut BytesMut) -> Result<(), CodecError> {
        self.codec.encode(format, &self.message, out)
    }

    fn encoded_len(&self, format: Format) -> Option<usize> {
        self.codec.encoded_len(format, &self.message)
    }

    fn encoded(&self, format: Format) -> Option<Bytes> {
        self.codec.encoded(format, &self.message)
    }
}

/// The codec of messages that are bytes already, in whichever format the call
/// has: for gateways, tools, and callers that encode themselves.
#[derive(Clone, Copy, Debug, Default)]
pub struct RawCodec;

impl Codec<Bytes> for RawCodec {
    fn decode(&self, _: Format, bytes: Bytes, _: &DecodeLimits) -> Result<Bytes, CodecError> {
        Ok(bytes)
    }

    fn encode(&self, _: Format, message: &Bytes, out: &mut BytesMut) -> Result<(), CodecError> {
        out.extend_from_slice(message);
        Ok(())
    }

    fn encoded_len(&self, _: Format, message: &Bytes) -> Option<usize> {
        Some(message.len())
    }

    fn encoded(&self, _: Format, message: &Bytes) -> Option<Bytes> {
        Some(message.clone())
    }
}

/// Why a message could not be decoded or encoded, in a sentence that may be
/// shown to the peer.
#[derive(Debug)]
pub struct CodecError {
    message: Cow<'static, str>,
    source: Option<BoxError>,
}

impl CodecError {
    /// An error with this text.
    #[must_use]
    pub fn new(message: impl Into<Cow<'static, str>>) -> Self {
        Self {
            message: message.into(),
            source: None,
        }
    }

    /// Keeps what caused this, for logs.
    #[must_use]
    pub fn with_source(mut self, source: impl Into<BoxError>) -> Self {
        self.source = Some(source.into());
        self
    }
}

impl fmt::Display for CodecError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for CodecError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match &self.source {
            Some(source) => Some(source.as_ref()),
            None => None,
        }
    }
}
