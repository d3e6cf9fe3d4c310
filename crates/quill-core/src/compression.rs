//! Compression of messages and bodies, with one bound on what comes out.
//!
//! Contexts are kept per thread and used again: making one costs more than
//! compressing a small message with it.
//!
//! ```
//! # #[cfg(feature = "gzip")]
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! use quill_core::compression::{DecompressError, Encoding, Level};
//!
//! let gzip = Encoding::from_name("gzip").expect("a known encoding");
//! let mut small = Vec::new();
//! gzip.compress(&[b'a'; 10_000], Level::default(), &mut small)?;
//! assert!(small.len() < 100);
//!
//! let mut message = Vec::new();
//! gzip.decompress(&small, 10_000, &mut message)?;
//! assert_eq!(message, [b'a'; 10_000]);
//!
//! let error = gzip.decompress(&small, 9_999, &mut Vec::new());
//! assert_eq!(error, Err(DecompressError::TooLarge { bytes_max: 9_999 }));
//! # Ok(())
//! # }
//! # #[cfg(not(feature = "gzip"))]
//! # fn main() {}
//! ```

mod decompressor;
mod error;
#[cfg(feature = "gzip")]
mod gzip;
#[cfg(any(feature = "gzip", feature = "zstd"))]
mod pool;
#[cfg(feature = "zstd")]
mod zstd;

pub use self::decompressor::Decompressor;
pub use self::error::{CompressError, DecompressError};

/// Messages shorter than this are not worth compressing, in bytes
/// (docs/protocol.md, "Requests and responses").
pub const COMPRESS_BYTES_MIN: usize = 1024;

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
}

impl Encoding {
    /// Every encoding there is, the preferred first.
    pub const ALL: &[Self] = &[
        #[cfg(feature = "zstd")]
        Self::Zstd,
        #[cfg(feature = "gzip")]
        Self::Gzip,
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
        }
    }

    /// The encoding of this name, in any case of letters, if there is one.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL
            .iter()
            .copied()
            .find(|encoding| encoding.name().eq_ignore_ascii_case(name))
    }

    /// Appends `input` to `out`, compressed.
    ///
    /// # Errors
    /// [`CompressError`] when the compressor cannot work, for want of memory;
    /// `out` is then as it was.
    #[cfg_attr(not(any(feature = "gzip", feature = "zstd")), allow(unused_variables))]
    pub fn compress(
        self,
        input: &[u8],
        level: Level,
        out: &mut Vec<u8>,
    ) -> Result<(), CompressError> {
        let before = out.len();
        let done = match self {
            Self::Identity => {
                out.extend_from_slice(input);
                Ok(())
            }
            #[cfg(feature = "gzip")]
            Self::Gzip => gzip::compress(input, level, out),
            #[cfg(feature = "zstd")]
            Self::Zstd => zstd::compress(input, level, out),
        };
        if done.is_err() {
            out.truncate(before);
        }
        done
    }

    /// Appends the message that `input` holds to `out`: all of it, or nothing.
    /// Empty input is the empty message in every encoding.
    ///
    /// Not more than `bytes_max` bytes come out, and not more memory is taken for
    /// them, whatever `input` promises; zstd takes a window of up to 8 MiB beside
    /// it.
    ///
    /// # Errors
    /// [`DecompressError`] says what was wrong with `input`.
    pub fn decompress(
        self,
        input: &[u8],
        bytes_max: usize,
        out: &mut Vec<u8>,
    ) -> Result<(), DecompressError> {
        let before = out.len();
        let mut decompressor = Decompressor::new(self, bytes_max);
        let done = match decompressor.push(input, out) {
            Ok(()) => decompressor.finish(),
            Err(error) => {
                decompressor.recycle();
                Err(error)
            }
        };
        if done.is_err() {
            out.truncate(before);
        }
        done
    }
}

/// How hard to compress: 1 (fast) to 22 (small), 3 unless set. gzip knows nine
/// levels, and takes what is above as 9.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Level(u8);

impl Level {
    /// The fastest.
    pub const MIN: Self = Self(1);
    /// The smallest output.
    pub const MAX: Self = Self(22);

    /// This level, if it is one: 1 to 22.
    #[must_use]
    pub const fn new(level: u8) -> Option<Self> {
        if level >= Self::MIN.0 && level <= Self::MAX.0 {
            Some(Self(level))
        } else {
            None
        }
    }

    /// The number.
    #[must_use]
    pub const fn as_u8(self) -> u8 {
        self.0
    }
}

impl Default for Level {
    fn default() -> Self {
        Self(3)
    }
}

#[cfg(test)]
mod tests;
