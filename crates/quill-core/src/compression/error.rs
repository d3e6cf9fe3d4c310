//! What can go wrong with compression.

use std::fmt;

/// The compressor could not work.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CompressError(
    #[allow(dead_code, reason = "without gzip and zstd nothing fails")] pub(super) &'static str,
);

impl fmt::Display for CompressError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "compression failed: {}", self.0)
    }
}

impl std::error::Error for CompressError {}

/// Why bytes could not be decompressed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum DecompressError {
    /// More comes out than is accepted.
    TooLarge {
        /// The most that is accepted, in bytes.
        bytes_max: usize,
    },
    /// A zstd frame asks for a larger window than is granted.
    WindowTooLarge {
        /// The most that is granted, in bytes.
        window_bytes_max: usize,
    },
    /// The bytes are not of this encoding, or a checksum does not match.
    Corrupt(&'static str),
    /// The bytes end too early.
    Truncated,
    /// Something follows the compressed data that is not compressed data.
    TrailingBytes,
}

impl DecompressError {
    /// Whether the data may be fine and is only more than this side accepts.
    #[must_use]
    pub const fn is_too_large(&self) -> bool {
        matches!(self, Self::TooLarge { .. } | Self::WindowTooLarge { .. })
    }
}

impl fmt::Display for DecompressError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::TooLarge { bytes_max } => {
                write!(
                    f,
                    "decompressed data exceeds {bytes_max} bytes, the most allowed"
                )
            }
            Self::WindowTooLarge { window_bytes_max } => {
                write!(
                    f,
                    "zstd window exceeds {window_bytes_max} bytes, the most allowed"
                )
            }
            Self::Corrupt(what) => write!(f, "corrupt compressed data: {what}"),
            Self::Truncated => f.write_str("compressed data ends too early"),
            Self::TrailingBytes => f.write_str("bytes follow the end of the compressed data"),
        }
    }
}

impl std::error::Error for DecompressError {}
