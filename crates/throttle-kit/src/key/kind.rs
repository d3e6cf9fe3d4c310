//! What a key is.

#[cfg(doc)]
use std::hash::Hash;

#[cfg(doc)]
use super::Hashed;

/// What the bytes of a key are, so that keys of different kinds never meet:
/// the text `AAAA` and the address 65.65.65.65 are two keys.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[non_exhaustive]
pub enum Kind {
    /// Text, or any other bytes as they are.
    Bytes,
    /// A number, big-endian: 8 bytes, or 16 of a `u128`.
    Int,
    /// An address: 4 or 16 bytes.
    Ip,
    /// Several keys, each as its kind's letter, its length (four bytes,
    /// big-endian) and its bytes.
    Tuple,
    /// What a [`Hash`] implementation fed to its hasher.
    Hashed,
}

/// How many kinds there are.
pub(crate) const KINDS: usize = 5;

impl Kind {
    /// The letter that stands for it in canonical forms.
    #[must_use]
    pub const fn letter(self) -> u8 {
        match self {
            Self::Bytes => b'b',
            Self::Int => b'i',
            Self::Ip => b'a',
            Self::Tuple => b't',
            Self::Hashed => b'h',
        }
    }
}

/// Something that can be limited: text, bytes, numbers, addresses, tuples of
/// them, and through [`Hashed`] anything that is `Hash`.
///
/// A key gives its canonical bytes, the same on every machine, because stores
/// outside the process (Redis, SQLite) keep them.
///
/// ```
/// use throttle_kit::{Key, Kind};
///
/// struct ApiKey(String);
///
/// impl Key for ApiKey {
///     const KIND: Kind = Kind::Bytes;
///     type Bytes<'a> = &'a [u8];
///     fn bytes(&self) -> &[u8] {
///         self.0.as_bytes()
///     }
/// }
/// ```
pub trait Key {
    /// What the bytes are.
    const KIND: Kind;
    /// Borrowed from the key, or held in place.
    type Bytes<'a>: AsRef<[u8]> + Send + Sync
    where
        Self: 'a;
    /// The canonical bytes.
    fn bytes(&self) -> Self::Bytes<'_>;
}
