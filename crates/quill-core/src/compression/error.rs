//! What can go wrong with compression.

use std::fmt;

use super::Encoding;

/// Why bytes could not be (de)compressed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum CompressionError {
    /// More would come out than is accepted: this many bytes.
    TooLarge(usize),
    /// A zstd frame asks for a larger window than is granted: this many bytes.
    WindowTooLarge(usize),
    /// The bytes are not of this encoding, or a checksum does not match.
    Corrupt(&'static str),
    /// The bytes end too early.
    Truncated,
    /// Something follows the compressed data that is not compressed data.
    TrailingBytes,
    /// The library could not work, for want of memory.
    Failed(&'static str),
}

impl fmt::Display for CompressionError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::TooLarge(max) => write!(f, "it is over {max} bytes once decompressed"),
            Self::WindowTooLarge(max) => {
                write!(
                    f,
                    "it needs a zstd window of more than {max} bytes, the most allowed"
                )
            }
            Self::Corrupt(what) => write!(f, "its compressed bytes are not valid: {what}"),
            Self::Truncated => f.write_str("its compressed bytes end too early"),
            Self::TrailingBytes => f.write_str("bytes follow the end of its compressed bytes"),
            Self::Failed(what) => write!(f, "the compressor failed: {what}"),
        }
    }
}

impl std::error::Error for CompressionError {}

/// A name that is no [`Encoding`](super::Encoding)'s.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnknownEncoding(pub(super) String);

impl fmt::Display for UnknownEncoding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let known: Vec<_> = Encoding::ALL.iter().map(|known| known.name()).collect();
        let (name, known) = (&self.0, known.join(", "));
        write!(
            f,
            "{name:?} is no encoding of this program: allowed are {known}"
        )
    }
}

impl std::error::Error for UnknownEncoding {}
