use std::fmt;

/// Why a header block could not be decoded.
///
/// The decoder's table is then no longer the peer's, so the connection has to end:
/// with `COMPRESSION_ERROR` (RFC 9113, 4.3), or with `ENHANCE_YOUR_CALM` where the
/// block was well formed but endless, see [`Error::is_flood`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Error {
    /// The block ends inside of a field.
    Truncated,
    /// An integer is above 2^32 - 1, or longer than such an integer has to be
    /// (RFC 7541, 5.1).
    IntegerTooLarge,
    /// A field refers to an index that is 0 or beyond the tables (RFC 7541, 2.3.3
    /// and 6.1).
    IndexUnknown(u32),
    /// A Huffman string ends with more than 7 bits of padding, or with bits that are
    /// not the start of EOS (RFC 7541, 5.2).
    HuffmanPadding,
    /// A Huffman string holds EOS (RFC 7541, 5.2).
    HuffmanEos,
    /// A size update asks for more than was announced (RFC 7541, 6.3).
    SizeUpdateTooLarge {
        /// What the peer asked for, in bytes.
        asked: u32,
        /// The most it may use, in bytes.
        allowed: u32,
    },
    /// A size update stands behind a field (RFC 7541, 4.2).
    SizeUpdateLate,
    /// The announced size was reduced below what the peer used, and this block does
    /// not begin with the update that acknowledges it (RFC 7541, 4.2).
    SizeUpdateMissing,
    /// The list is so far above its bound that decoding the rest of it, to keep the
    /// table, is not worth the work.
    ListEndless,
}

impl Error {
    /// Whether the peer broke no rule of HPACK and asked for too much work.
    #[must_use]
    pub fn is_flood(&self) -> bool {
        matches!(self, Self::ListEndless)
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Truncated => f.write_str("the header block ends inside of a field"),
            Self::IntegerTooLarge => f.write_str("an integer in the header block is above 2^32-1"),
            Self::IndexUnknown(index) => write!(f, "no field has the index {index}"),
            Self::HuffmanPadding => {
                f.write_str("a Huffman string is not padded with at most 7 one bits")
            }
            Self::HuffmanEos => f.write_str("a Huffman string holds the end-of-string symbol"),
            Self::SizeUpdateTooLarge { asked, allowed } => write!(
                f,
                "a table of {asked} bytes was asked for and {allowed} are allowed"
            ),
            Self::SizeUpdateLate => f.write_str("a table size update stands behind a field"),
            Self::SizeUpdateMissing => f.write_str(
                "the header block does not acknowledge the smaller table with a size update",
            ),
            Self::ListEndless => f.write_str("the header list is far above its bound"),
        }
    }
}

impl std::error::Error for Error {}
