//! Compressing messages and bodies, with one bound on what comes out.
//!
//! Contexts are kept per thread and used again: making one costs more than
//! compressing a small message with it.
//!
//! ```
//! # #[cfg(feature = "gzip")]
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! use bytes::BytesMut;
//! use quill_core::compression::{self, CompressionError, Encoding};
//!
//! let gzip = Encoding::from_name("gzip").expect("a known encoding");
//! let mut small = BytesMut::new();
//! compression::compress(gzip, 3, &[b'a'; 10_000], &mut small)?;
//! assert!(small.len() < 100);
//!
//! let message = compression::decompress(gzip, &small, 10_000)?;
//! assert_eq!(message, [b'a'; 10_000][..]);
//!
//! let error = compression::decompress(gzip, &small, 9_999);
//! assert_eq!(error, Err(CompressionError::TooLarge(9_999)));
//! # Ok(())
//! # }
//! # #[cfg(not(feature = "gzip"))]
//! # fn main() {}
//! ```

#[cfg(feature = "br")]
mod brotli;
mod decompressor;
mod error;
#[cfg(any(feature = "deflate", feature = "gzip"))]
mod flate;
#[cfg(feature = "gzip")]
mod gzip;
#[cfg(any(
    feature = "deflate",
    feature = "gzip",
    feature = "snappy",
    feature = "zstd"
))]
mod pool;
#[cfg(feature = "snappy")]
mod snappy;
#[cfg(feature = "deflate")]
mod zlib;
#[cfg(feature = "zstd")]
mod zstd;

use std::str::FromStr;

use bytes::{Bytes, BytesMut};

use self::decompressor::Decode;
pub use self::decompressor::Decompressor;
pub use self::error::{CompressionError, UnknownEncoding};

/// A content coding, by its registered name (RFC 9110 section 8.4.1, RFC 8878
/// section 7.2).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Encoding {
    /// No compression.
    Identity,
    /// RFC 1952.
    #[cfg(feature = "gzip")]
    Gzip,
    /// RFC 8878, with windows of at most 8 MiB, what every decoder has to take.
    #[cfg(feature = "zstd")]
    Zstd,
    /// RFC 7932, with windows of at most 16 MiB, the format's own bound.
    #[cfg(feature = "br")]
    Br,
    /// zlib's format (RFC 1950), as HTTP means it, and not bare deflate.
    #[cfg(feature = "deflate")]
    Deflate,
    /// Snappy's framing format. It does not say where the data ends: what is cut
    /// off between two of its chunks is not missed.
    #[cfg(feature = "snappy")]
    Snappy,
}

impl Encoding {
    /// Every encoding there is, the preferred first.
    pub const ALL: &[Self] = &[
        #[cfg(feature = "zstd")]
        Self::Zstd,
        #[cfg(feature = "gzip")]
        Self::Gzip,
        #[cfg(feature = "br")]
        Self::Br,
        #[cfg(feature = "deflate")]
        Self::Deflate,
        #[cfg(feature = "snappy")]
        Self::Snappy,
        Self::Identity,
    ];

    /// The name that travels.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Identity => "identity",
            #[cfg(feature = "gzip")]
            Self::Gzip => "gzip",
            #[cfg(feature = "zstd")]
            Self::Zstd => "zstd",
            #[cfg(feature = "br")]
            Self::Br => "br",
            #[cfg(feature = "deflate")]
            Self::Deflate => "deflate",
            #[cfg(feature = "snappy")]
            Self::Snappy => "snappy",
        }
    }

    /// The encoding of this name, if there is one.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL
            .iter()
            .copied()
            .find(|encoding| encoding.name() == name)
    }

    fn decoder(self) -> Box<dyn Decode> {
        match self {
            Self::Identity => Box::new(decompressor::Identity),
            #[cfg(feature = "gzip")]
            Self::Gzip => Box::new(gzip::Gunzip::new()),
            #[cfg(feature = "zstd")]
            Self::Zstd => Box::new(zstd::Unzstd::new()),
            #[cfg(feature = "br")]
            Self::Br => Box::new(brotli::Unbrotli::new()),
            #[cfg(feature = "deflate")]
            Self::Deflate => Box::new(zlib::Unzlib::new()),
            #[cfg(feature = "snappy")]
            Self::Snappy => Box::new(snappy::Unsnappy::new()),
        }
    }
}

impl FromStr for Encoding {
    type Err = UnknownEncoding;

    /// The encoding of this name.
    ///
    /// # Errors
    /// There is none; the error names those there are.
    fn from_str(name: &str) -> Result<Self, UnknownEncoding> {
        Self::from_name(name).ok_or_else(|| UnknownEncoding(name.to_owned()))
    }
}

/// Appends `input`, compressed, to `out`. The level is 1 (fast) to 22 (small);
/// gzip and deflate take what is above 9 as 9, br what is above 11 as 11, and
/// snappy has one level only.
///
/// # Errors
/// [`CompressionError::Failed`] for want of memory; `out` is then as it was.
#[cfg_attr(
    not(any(
        feature = "br",
        feature = "deflate",
        feature = "gzip",
        feature = "zstd"
    )),
    allow(unused_variables)
)]
pub fn compress(
    encoding: Encoding,
    level: u8,
    input: &[u8],
    out: &mut BytesMut,
) -> Result<(), CompressionError> {
    // A copy of the little that is left costs less than to keep the memory that
    // the worst case would have taken.
    match encoding {
        Encoding::Identity => out.extend_from_slice(input),
        #[cfg(feature = "gzip")]
        Encoding::Gzip => out.extend_from_slice(&gzip::compress(input, level)?),
        #[cfg(feature = "zstd")]
        Encoding::Zstd => out.extend_from_slice(&zstd::compress(input, level)?),
        #[cfg(feature = "br")]
        Encoding::Br => out.extend_from_slice(&brotli::compress(input, level)?),
        #[cfg(feature = "deflate")]
        Encoding::Deflate => out.extend_from_slice(&zlib::compress(input, level)?),
        #[cfg(feature = "snappy")]
        Encoding::Snappy => out.extend_from_slice(&snappy::compress(input)?),
    }
    Ok(())
}

/// `input`, decompressed. Empty input is the empty message in every encoding.
///
/// Not more than `bytes_max` bytes come out, and not more memory is taken for
/// them, whatever `input` promises; zstd takes a window of up to 8 MiB beside it, br
/// one of up to 16 MiB, snappy a chunk of up to 75 KiB.
///
/// # Errors
/// [`CompressionError::TooLarge`] when more than `bytes_max` would come out; the
/// others say what is wrong with `input`.
pub fn decompress(
    encoding: Encoding,
    input: &[u8],
    bytes_max: usize,
) -> Result<Bytes, CompressionError> {
    let mut out = Vec::new();
    let mut decompressor = Decompressor::new(encoding, bytes_max);
    match decompressor.push(input, &mut out) {
        Ok(()) => decompressor.finish()?,
        Err(error) => {
            decompressor.recycle();
            return Err(error);
        }
    }
    Ok(out.into())
}

#[cfg(test)]
mod tests;
