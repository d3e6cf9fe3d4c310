//! The names of traces and spans.

use std::cell::Cell;
use std::fmt;
use std::hash::{BuildHasher, RandomState};

/// The name of a trace: 16 bytes of which not all are zero. It is shown as 32
/// lower-case hex digits.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct TraceId([u8; 16]);

/// The name of a span within its trace: 8 bytes of which not all are zero. It is
/// shown as 16 lower-case hex digits.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct SpanId([u8; 8]);

impl TraceId {
    /// A new name, drawn at random.
    #[must_use]
    pub fn random() -> Self {
        let (high, low) = (drawn(), drawn());
        Self((u128::from(high) << 64 | u128::from(low)).to_be_bytes())
    }

    /// The name of these bytes; `None` if all are zero.
    #[must_use]
    pub fn from_bytes(bytes: [u8; 16]) -> Option<Self> {
        (bytes != [0; 16]).then_some(Self(bytes))
    }

    /// Its bytes.
    #[must_use]
    pub const fn to_bytes(self) -> [u8; 16] {
        self.0
    }

    /// The half that a share of traces is chosen by.
    pub(super) fn low(self) -> u64 {
        // The cut is the low half, which is what is wanted.
        u128::from_be_bytes(self.0) as u64
    }

    pub(super) fn read(hex: &[u8]) -> Option<Self> {
        Self::from_bytes(bytes_of(hex)?)
    }
}

impl SpanId {
    /// A new name, drawn at random.
    #[must_use]
    pub fn random() -> Self {
        Self(drawn().to_be_bytes())
    }

    /// The name of these bytes; `None` if all are zero.
    #[must_use]
    pub fn from_bytes(bytes: [u8; 8]) -> Option<Self> {
        (bytes != [0; 8]).then_some(Self(bytes))
    }

    /// Its bytes.
    #[must_use]
    pub const fn to_bytes(self) -> [u8; 8] {
        self.0
    }

    pub(super) fn read(hex: &[u8]) -> Option<Self> {
        Self::from_bytes(bytes_of(hex)?)
    }
}

macro_rules! shown_in_hex {
    ($($name:ident),*) => {$(
        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                fmt::Display::fmt(self, f)
            }
        }
    )*};
}

shown_in_hex!(TraceId, SpanId);

/// The bytes that lower-case hex digits stand for; upper-case ones are not
/// allowed where these names are written.
pub(super) fn bytes_of<const N: usize>(hex: &[u8]) -> Option<[u8; N]> {
    if hex.len() != 2 * N {
        return None;
    }
    let mut bytes = [0; N];
    for (byte, pair) in bytes.iter_mut().zip(hex.as_chunks::<2>().0) {
        *byte = digit(pair[0])? << 4 | digit(pair[1])?;
    }
    Some(bytes)
}

fn digit(letter: u8) -> Option<u8> {
    match letter {
        b'0'..=b'9' => Some(letter - b'0'),
        b'a'..=b'f' => Some(letter - b'a' + 10),
        _ => None,
    }
}

thread_local! {
    /// A key that the system drew for this thread, and how often it was used: a
    /// keyed hash of a counter is as good as random to whoever has not the key.
    static KEY: RandomState = RandomState::new();
    static USED: Cell<u64> = const { Cell::new(0) };
}

/// A number drawn at random that is not zero.
fn drawn() -> u64 {
    let used = USED.get().wrapping_add(1);
    USED.set(used);
    KEY.with(|key| key.hash_one(used)).max(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_new_each_time_and_are_read_as_they_are_shown() {
        let mut seen = std::collections::HashSet::new();
        for _ in 0..1000 {
            let id = TraceId::random();
            assert!(seen.insert(id));
            assert_eq!(TraceId::read(id.to_string().as_bytes()), Some(id));
            let span = SpanId::random();
            assert_eq!(SpanId::read(span.to_string().as_bytes()), Some(span));
        }
        let here = TraceId::random();
        let elsewhere = std::thread::spawn(TraceId::random).join().unwrap();
        assert_ne!(here, elsewhere);
    }

    #[test]
    fn what_is_no_name_is_none() {
        for hex in ["", "0", "00", "0A", "0g", "0a0a", "0a "] {
            let read = bytes_of::<1>(hex.as_bytes());
            assert_eq!(read.is_some(), hex == "00", "{hex}");
        }
        assert_eq!(SpanId::read(b"0000000000000000"), None);
        assert_eq!(TraceId::read(&[b'0'; 32]), None);
    }
}
