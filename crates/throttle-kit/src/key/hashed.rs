//! Whatever is `Hash` as a key.

use std::hash::{Hash, Hasher};

use super::{Key, KeyBuf, Kind};

/// Any value that is `Hash`, by what it feeds to its hasher.
///
/// The bytes do not depend on the machine's endianness or word size, but what
/// the standard library's types feed may change between compiler versions: for
/// stores outside the process, a [`Key`] of your own is steadier.
///
/// ```
/// use throttle_kit::{Hashed, Key};
///
/// #[derive(Hash)]
/// struct Caller { tenant: u32, user: String }
///
/// let key = Hashed(Caller { tenant: 7, user: "ann".into() });
/// assert!(!key.bytes().as_ref().is_empty());
/// ```
#[derive(Debug, Clone, Copy)]
pub struct Hashed<T>(pub T);

impl<T: Hash> Key for Hashed<T> {
    const KIND: Kind = Kind::Hashed;
    type Bytes<'a>
        = KeyBuf
    where
        Self: 'a;
    fn bytes(&self) -> KeyBuf {
        let mut collector = Collector(KeyBuf::new());
        self.0.hash(&mut collector);
        collector.0
    }
}

/// A hasher that keeps what it is fed.
struct Collector(KeyBuf);

macro_rules! collect_int {
    ($($method:ident($type:ty)),*) => {$(
        fn $method(&mut self, i: $type) {
            self.0.extend(&i.to_le_bytes());
        }
    )*};
}

impl Hasher for Collector {
    fn finish(&self) -> u64 {
        0
    }

    fn write(&mut self, bytes: &[u8]) {
        self.0.extend(bytes);
    }

    collect_int!(
        write_u16(u16),
        write_u32(u32),
        write_u64(u64),
        write_u128(u128),
        write_i16(i16),
        write_i32(i32),
        write_i64(i64),
        write_i128(i128)
    );

    fn write_usize(&mut self, i: usize) {
        self.write_u64(i as u64);
    }

    fn write_isize(&mut self, i: isize) {
        self.write_i64(i as i64);
    }
}
