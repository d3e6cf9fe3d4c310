//! Secrets that are known by their hashes, and whose they are.

use std::hash::{BuildHasher, Hasher, RandomState};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, Ordering};

use ring::digest::{SHA256, digest};
use siphasher::sip128::{Hasher128, SipHasher13};
use subtle::ConstantTimeEq;

use super::identity::Identity;

/// A SHA-256.
pub(super) type Digest = [u8; 32];

/// Longest secret that is hashed, in bytes.
const SECRET_BYTES_MAX: usize = 1024;

/// Secrets by their SHA-256, which alone is kept.
///
/// The first time one comes it is looked up by that; then a hash of it is noted
/// that is faster, and keyed anew in each process so that nobody else can make
/// one that fits. There are never more of these than secrets. What is compared in
/// the end is compared in constant time.
pub(super) struct Secrets {
    known: Vec<Known>,
    by_digest: Index,
    by_tag: Index,
    tags: SipHasher13,
}

struct Known {
    digest: Digest,
    /// Of the secret itself, once that has come.
    tag: OnceLock<u128>,
    identity: Identity,
}

impl Secrets {
    pub(super) fn new() -> Self {
        // The standard library draws these from the operating system's randomness,
        // and what it hashes with them nobody else can tell.
        let (one, other) = (RandomState::new(), RandomState::new());
        let tags = SipHasher13::new_with_keys(one.hash_one(0_u8), other.hash_one(1_u8));
        Self {
            known: Vec::new(),
            by_digest: Index::with_room(0),
            by_tag: Index::with_room(0),
            tags,
        }
    }

    /// Adds a secret by its digest; of equal ones the first counts.
    pub(super) fn insert(&mut self, digest: Digest, identity: Identity) {
        self.known.push(Known {
            digest,
            tag: OnceLock::new(),
            identity,
        });
        self.by_digest = Index::with_room(self.known.len());
        self.by_tag = Index::with_room(self.known.len());
        for (number, known) in (0_u32..).zip(&self.known) {
            self.by_digest.insert(start(&known.digest), number);
            if let Some(tag) = known.tag.get() {
                self.by_tag.insert(*tag as usize, number);
            }
        }
    }

    /// Whose secret this is.
    #[inline]
    pub(super) fn find(&self, secret: &[u8]) -> Option<&Identity> {
        let tag = self.tag(secret);
        let seen = self.by_tag.find(tag as usize, |number| {
            let known = self.known.get(number as usize)?;
            let is_same = bool::from(known.tag.get()?.ct_eq(&tag));
            is_same.then_some(&known.identity)
        });
        seen.or_else(|| self.find_unseen(secret, tag))
    }

    #[inline(never)]
    fn find_unseen(&self, secret: &[u8], tag: u128) -> Option<&Identity> {
        if secret.len() > SECRET_BYTES_MAX {
            return None;
        }
        let digest = sha256(secret);
        self.by_digest.find(start(&digest), |number| {
            let known = self.known.get(number as usize)?;
            if !bool::from(known.digest.ct_eq(&digest)) {
                return None;
            }
            // Another thread may have noted it at this moment.
            if known.tag.set(tag).is_ok() {
                self.by_tag.insert(tag as usize, number);
            }
            Some(&known.identity)
        })
    }

    #[inline]
    fn tag(&self, secret: &[u8]) -> u128 {
        let mut hasher = self.tags;
        hasher.write(secret);
        hasher.finish128().as_u128()
    }

    pub(super) fn len(&self) -> usize {
        self.known.len()
    }
}

pub(super) fn sha256(bytes: &[u8]) -> Digest {
    let mut out = Digest::default();
    out.copy_from_slice(digest(&SHA256, bytes).as_ref());
    out
}

/// Where the search for a hash starts: its first bytes, which are as good as random.
fn start(hash: &[u8]) -> usize {
    let first = hash.first_chunk::<8>().copied().unwrap_or_default();
    u64::from_le_bytes(first) as usize
}

/// Numbers by hashes, each in the first free place from where its hash says on.
/// Places are twice as many as numbers, so that a search always ends at an empty one.
struct Index(Box<[AtomicU32]>);

/// A number's place holds one more than the number.
const EMPTY: u32 = 0;

impl Index {
    fn with_room(numbers: usize) -> Self {
        let places = (numbers * 2).next_power_of_two().max(2);
        Self((0..places).map(|_| AtomicU32::new(EMPTY)).collect())
    }

    /// The places from `start` on, all the way round.
    #[inline]
    fn places(&self, start: usize) -> impl Iterator<Item = &AtomicU32> {
        let first = start & (self.0.len() - 1);
        let (before, after) = self.0.split_at(first);
        after.iter().chain(before)
    }

    /// The first that `look` takes.
    #[inline]
    fn find<T>(&self, start: usize, look: impl Fn(u32) -> Option<T>) -> Option<T> {
        for place in self.places(start) {
            match place.load(Ordering::Acquire) {
                EMPTY => return None,
                number => match look(number - 1) {
                    None => {}
                    found => return found,
                },
            }
        }
        None
    }

    fn insert(&self, start: usize, number: u32) {
        for place in self.places(start) {
            let claimed =
                place.compare_exchange(EMPTY, number + 1, Ordering::AcqRel, Ordering::Relaxed);
            if claimed.is_ok() {
                return;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn with(secrets: &[&str]) -> Secrets {
        let mut known = Secrets::new();
        for secret in secrets {
            let identity = Identity::new(format!("owner of {secret}"));
            known.insert(sha256(secret.as_bytes()), identity);
        }
        known
    }

    fn owner(known: &Secrets, secret: &str) -> Option<String> {
        let identity = known.find(secret.as_bytes())?;
        Some(identity.subject().to_owned())
    }

    #[test]
    fn secrets_are_found_the_first_time_and_again_and_others_never() {
        let names: Vec<String> = (0..1000).map(|n| format!("secret {n}")).collect();
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        let known = with(&names);
        for _ in 0..3 {
            for name in &names {
                assert_eq!(owner(&known, name), Some(format!("owner of {name}")));
                assert_eq!(owner(&known, &format!("{name} ")), None);
            }
            assert_eq!(owner(&known, ""), None);
        }
        assert!(known.known.iter().all(|known| known.tag.get().is_some()));
        assert_eq!(known.len(), 1000);
    }

    #[test]
    fn none_are_known_to_begin_with_and_the_first_of_equal_ones_counts() {
        assert_eq!(owner(&with(&[]), "a"), None);
        let mut known = with(&["a"]);
        assert!(known.find(b"a").is_some());
        known.insert(sha256(b"a"), Identity::new("another"));
        assert_eq!(owner(&known, "a").as_deref(), Some("owner of a"));
    }

    #[test]
    fn threads_that_see_a_secret_first_agree() {
        let known = with(&["a", "b"]);
        std::thread::scope(|scope| {
            for _ in 0..8 {
                scope.spawn(|| {
                    for _ in 0..100 {
                        assert_eq!(owner(&known, "a").as_deref(), Some("owner of a"));
                        assert_eq!(owner(&known, "b").as_deref(), Some("owner of b"));
                    }
                });
            }
        });
        let noted = known.by_tag.0.iter();
        let noted = noted.filter(|place| place.load(Ordering::Relaxed) != EMPTY);
        assert_eq!(noted.count(), 2, "each is noted once");
    }

    #[test]
    fn what_is_too_long_is_nobodys() {
        let long = "x".repeat(SECRET_BYTES_MAX + 1);
        assert_eq!(owner(&with(&[&long]), &long), None);
    }
}
