//! Quotas of single keys.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{PoisonError, RwLock};

use crate::key::{KeyRef, Kind};
use crate::key_hasher::KeyHasher;
use crate::quota::Quota;

/// Locks, so that threads that look up different keys rarely meet.
const SHARDS: usize = 16;

/// Exact, pinned: an override stays until it is removed.
#[derive(Debug)]
pub(crate) struct Overrides {
    hasher: KeyHasher,
    /// Overrides there are; with none, a check takes no lock.
    count: AtomicUsize,
    shards: [Shard; SHARDS],
}

/// By fingerprint; on a cache line of its own, since readers count themselves
/// in the lock.
#[derive(Debug, Default)]
#[repr(align(64))]
struct Shard(RwLock<HashMap<u64, Vec<Override>, BuildHasherDefault<Fingerprint>>>);

/// The key as it is, should two ever have one fingerprint.
#[derive(Debug)]
struct Override {
    kind: Kind,
    bytes: Box<[u8]>,
    quota: Quota,
}

impl Override {
    fn is_of(&self, kind: Kind, bytes: &[u8]) -> bool {
        self.kind == kind && *self.bytes == *bytes
    }
}

impl Overrides {
    pub(crate) fn new() -> Self {
        Self {
            hasher: KeyHasher::new(),
            count: AtomicUsize::new(0),
            shards: std::array::from_fn(|_| Shard::default()),
        }
    }

    #[inline]
    pub(crate) fn quota(&self, kind: Kind, bytes: &[u8]) -> Option<Quota> {
        if self.count.load(Ordering::Relaxed) == 0 {
            return None;
        }
        self.find(kind, bytes)
    }

    fn find(&self, kind: Kind, bytes: &[u8]) -> Option<Quota> {
        let (shard, fingerprint) = self.shard(kind, bytes);
        let shard = shard.0.read().unwrap_or_else(PoisonError::into_inner);
        let mut found = shard.get(&fingerprint)?.iter();
        Some(found.find(|one| one.is_of(kind, bytes))?.quota)
    }

    pub(crate) fn set(&self, kind: Kind, bytes: &[u8], quota: Quota) -> Option<Quota> {
        let (shard, fingerprint) = self.shard(kind, bytes);
        let mut shard = shard.0.write().unwrap_or_else(PoisonError::into_inner);
        let alike = shard.entry(fingerprint).or_default();
        if let Some(one) = alike.iter_mut().find(|one| one.is_of(kind, bytes)) {
            return Some(std::mem::replace(&mut one.quota, quota));
        }
        alike.push(Override {
            kind,
            bytes: bytes.into(),
            quota,
        });
        self.count.fetch_add(1, Ordering::Relaxed);
        None
    }

    pub(crate) fn remove(&self, kind: Kind, bytes: &[u8]) -> Option<Quota> {
        let (shard, fingerprint) = self.shard(kind, bytes);
        let mut shard = shard.0.write().unwrap_or_else(PoisonError::into_inner);
        let alike = shard.get_mut(&fingerprint)?;
        let at = alike.iter().position(|one| one.is_of(kind, bytes))?;
        let removed = alike.swap_remove(at);
        if alike.is_empty() {
            shard.remove(&fingerprint);
        }
        self.count.fetch_sub(1, Ordering::Relaxed);
        Some(removed.quota)
    }

    pub(crate) fn len(&self) -> usize {
        self.count.load(Ordering::Relaxed)
    }

    fn shard(&self, kind: Kind, bytes: &[u8]) -> (&Shard, u64) {
        let fingerprint = self.hasher.fingerprint(KeyRef::new(kind, bytes));
        (
            &self.shards[(fingerprint >> 32) as usize % SHARDS],
            fingerprint,
        )
    }
}

/// A fingerprint is its own hash.
#[derive(Debug, Default)]
struct Fingerprint(u64);

impl Hasher for Fingerprint {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.0 = self.0.rotate_left(8) ^ u64::from(*byte);
        }
    }

    fn write_u64(&mut self, fingerprint: u64) {
        self.0 = fingerprint;
    }
}
