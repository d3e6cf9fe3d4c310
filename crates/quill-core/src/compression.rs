//! Compressing messages and bodies, with one bound on what comes out.

use std::fmt;
use std::io::{Read, Write};

use bytes::{BufMut, Bytes, BytesMut};

/// A way to compress bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Encoding {
    /// Not compressed.
    Identity,
    /// gzip (RFC 1952).
    Gzip,
    /// Zstandard (RFC 8878).
    Zstd,
}

impl Encoding {
    /// Its name in `content-encoding` and its kin.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Encoding::Identity => "identity",
            Encoding::Gzip => "gzip",
            Encoding::Zstd => "zstd",
        }
    }

    /// The encoding of this name.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        [Self::Identity, Self::Gzip, Self::Zstd]
            .into_iter()
            .find(|encoding| encoding.name() == name)
    }
}

/// Why bytes could not be (de)compressed.
#[derive(Debug)]
#[non_exhaustive]
pub enum CompressionError {
    /// More than the bound would come out; holds the bound.
    TooLarge(usize),
    /// The bytes are not of this encoding.
    Corrupt(Encoding),
}

impl fmt::Display for CompressionError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::TooLarge(max) => write!(f, "it is over {max} bytes once decompressed"),
            Self::Corrupt(encoding) => write!(f, "its bytes are no valid {}", encoding.name()),
        }
    }
}

impl std::error::Error for CompressionError {}

/// Appends `input`, compressed, to `out`.
///
/// # Errors
/// Only where the encoding's library fails, which it does not for bytes in memory.
pub fn compress(
    encoding: Encoding,
    level: u8,
    input: &[u8],
    out: &mut BytesMut,
) -> Result<(), CompressionError> {
    let corrupt = |_| CompressionError::Corrupt(encoding);
    match encoding {
        Encoding::Identity => out.extend_from_slice(input),
        Encoding::Gzip => {
            let level = flate2::Compression::new(u32::from(level.min(9)));
            let mut writer = flate2::write::GzEncoder::new(out.writer(), level);
            writer.write_all(input).map_err(corrupt)?;
            writer.finish().map_err(corrupt)?;
        }
        Encoding::Zstd => {
            zstd::stream::copy_encode(input, out.writer(), i32::from(level)).map_err(corrupt)?;
        }
    }
    Ok(())
}

/// `input`, decompressed.
///
/// # Errors
/// [`CompressionError::TooLarge`] when more than `bytes_max` would come out,
/// [`CompressionError::Corrupt`] for anything that is not of the encoding.
pub fn decompress(
    encoding: Encoding,
    input: &[u8],
    bytes_max: usize,
) -> Result<Bytes, CompressionError> {
    let mut out = Vec::new();
    let limit = bytes_max as u64 + 1;
    let corrupt = |_| CompressionError::Corrupt(encoding);
    match encoding {
        Encoding::Identity => out.extend_from_slice(input),
        Encoding::Gzip => {
            let mut reader = flate2::read::MultiGzDecoder::new(input).take(limit);
            reader.read_to_end(&mut out).map_err(corrupt)?;
        }
        Encoding::Zstd => {
            let mut reader = zstd::stream::read::Decoder::new(input)
                .map_err(corrupt)?
                .take(limit);
            reader.read_to_end(&mut out).map_err(corrupt)?;
        }
    }
    if out.len() > bytes_max {
        return Err(CompressionError::TooLarge(bytes_max));
    }
    Ok(out.into())
}
