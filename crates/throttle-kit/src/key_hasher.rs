//! From a key to its 64-bit fingerprint.

use std::hash::{BuildHasher, RandomState};

use crate::key::{KINDS, KeyRef, Kind};

/// Keys longer than this go through SipHash-1-3.
const SHORT_BYTES_MAX: usize = 64;
const WORDS_MAX: usize = SHORT_BYTES_MAX / 8;

/// Lengths and kinds whose part of the sum is drawn, not computed.
const TINY_BYTES_MAX: usize = 16;

/// A keyed hash whose claim can be proved.
///
/// The in-memory tables keep fingerprints only, so two keys of one fingerprint share a
/// budget. Keys are often chosen by clients, so what matters is that nobody can
/// choose two that meet. Up to 64 bytes this is multilinear hashing (Lemire and
/// Kaser, "Strongly universal string hashing is fast"): each word of 64 bits is
/// multiplied by a secret of 128, and the upper half of the sum is the
/// fingerprint. Two different keys, chosen without sight of the secrets, meet
/// with a probability of 2^-64, and their fingerprints are independent, so
/// neither can anybody aim at a bucket. The secrets are drawn for each table
/// from the operating system's randomness, and nothing of a fingerprint ever
/// leaves the process. Longer keys take SipHash-1-3 as the standard library
/// keys it.
///
/// With k keys in a table the chance that a new one meets any of them is
/// k / 2^64: one in 10^12 at ten million.
#[derive(Debug, Clone)]
pub(crate) struct KeyHasher {
    /// A summand for each kind and length of tiny keys: tabulation hashing,
    /// which is as good as a product and costs one addition.
    tiny: [[u128; TINY_BYTES_MAX + 1]; KINDS],
    add: u128,
    about: u128,
    namespace: u128,
    words: [u128; WORDS_MAX],
    long: RandomState,
}

impl KeyHasher {
    pub(crate) fn new() -> Self {
        let drawn = RandomState::new();
        let secret = |table: usize, index: usize| {
            let half = |which: u8| u128::from(drawn.hash_one((which, table, index)));
            half(0) << 64 | half(1)
        };
        Self {
            tiny: std::array::from_fn(|kind| std::array::from_fn(|len| secret(2 + kind, len))),
            add: secret(0, 0),
            about: secret(0, 1),
            namespace: secret(0, 2),
            words: std::array::from_fn(|i| secret(1, i)),
            // Another one than the secrets were drawn from.
            long: RandomState::new(),
        }
    }

    /// The fingerprint.
    #[inline(always)]
    pub(crate) fn fingerprint(&self, key: KeyRef<'_>) -> u64 {
        let bytes = key.bytes;
        let namespace = key.namespace.id();
        match self.tiny[key.kind as usize].get(bytes.len()) {
            Some(tiny) if namespace == 0 => self.two_words(*tiny, bytes),
            Some(tiny) => {
                let tiny = tiny.wrapping_add(product(self.namespace, namespace));
                self.two_words(tiny, bytes)
            }
            None => self.many_words(key.kind, namespace, bytes),
        }
    }

    /// Up to 16 bytes, as two words. With the length known this loses nothing:
    /// the words overlap where the bytes are fewer.
    #[inline(always)]
    fn two_words(&self, sum: u128, bytes: &[u8]) -> u64 {
        let (first, second) = if bytes.len() >= 8 {
            (word(bytes, 0), word(bytes, bytes.len() - 8))
        } else {
            under_8(bytes)
        };
        let sum = sum.wrapping_add(product(self.words[0], first));
        upper(sum.wrapping_add(product(self.words[1], second)))
    }

    /// From 17 bytes: whole words, and a last one that overlaps them.
    #[inline(never)]
    fn many_words(&self, kind: Kind, namespace: u64, bytes: &[u8]) -> u64 {
        if bytes.len() > SHORT_BYTES_MAX {
            return self.long.hash_one((kind as u8, namespace, bytes));
        }
        let about = (bytes.len() as u64) << 8 | kind as u64;
        let mut sum = self
            .add
            .wrapping_add(product(self.about, about))
            .wrapping_add(product(self.namespace, namespace));
        let whole = (bytes.len() - 1) / 8;
        for (index, secret) in self.words.iter().enumerate().take(whole) {
            sum = sum.wrapping_add(product(*secret, word(bytes, index * 8)));
        }
        let last = word(bytes, bytes.len() - 8);
        upper(sum.wrapping_add(product(self.words[whole], last)))
    }
}

#[inline]
const fn product(secret: u128, word: u64) -> u128 {
    secret.wrapping_mul(word as u128)
}

/// The upper half, stirred.
///
/// The sum is linear in each word, so counted keys (numbers, addresses of one
/// network) would lie at even distances and crowd some buckets. The stirring is
/// a bijection (each step can be undone), so it makes no two keys meet.
#[inline]
const fn upper(sum: u128) -> u64 {
    let half = (sum >> 64) as u64;
    let half = (half ^ half >> 32).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    half ^ half >> 29
}

#[inline]
fn word(bytes: &[u8], at: usize) -> u64 {
    let mut word = [0; 8];
    word.copy_from_slice(&bytes[at..at + 8]);
    u64::from_le_bytes(word)
}

/// 0 to 7 bytes as two words.
#[inline]
fn under_8(bytes: &[u8]) -> (u64, u64) {
    if let (Some(first), Some(last)) = (bytes.first_chunk(), bytes.last_chunk()) {
        let word = |half: &[u8; 4]| u64::from(u32::from_le_bytes(*half));
        return (word(first), word(last));
    }
    let byte = |at: usize| u64::from(bytes.get(at).copied().unwrap_or_default());
    (byte(0) | byte(1) << 8 | byte(2) << 16, 0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::key::Namespace;
    use std::collections::HashSet;

    #[test]
    fn every_length_and_every_byte_counts() {
        let hasher = KeyHasher::new();
        let mut seen = HashSet::new();
        let mut count = 0;
        for len in 0..200 {
            let mut bytes = vec![0; len];
            assert!(seen.insert(hasher.fingerprint(KeyRef::new(Kind::Bytes, &bytes))));
            count += 1;
            for at in 0..len {
                for bit in 0..8 {
                    bytes[at] ^= 1 << bit;
                    seen.insert(hasher.fingerprint(KeyRef::new(Kind::Bytes, &bytes)));
                    count += 1;
                    bytes[at] ^= 1 << bit;
                }
            }
        }
        assert_eq!(seen.len(), count, "two keys met");
    }

    #[test]
    fn kinds_and_namespaces_are_apart() {
        let hasher = KeyHasher::new();
        let other = Namespace::new("other");
        let text = KeyRef::new(Kind::Bytes, b"AAAA");
        let address = KeyRef::new(Kind::Ip, b"AAAA");
        let elsewhere = KeyRef {
            namespace: &other,
            ..text
        };
        let all: HashSet<_> = [text, address, elsewhere]
            .map(|key| hasher.fingerprint(key))
            .into();
        assert_eq!(all.len(), 3);
    }

    #[test]
    fn equal_keys_are_equal_and_tables_differ() {
        let (one, two) = (KeyHasher::new(), KeyHasher::new());
        let key = KeyRef::new(Kind::Bytes, b"ann");
        assert_eq!(one.fingerprint(key), one.clone().fingerprint(key));
        assert_ne!(one.fingerprint(key), two.fingerprint(key));
    }
}
