//! Quotas of single keys.

use std::collections::HashMap;
use std::hash::{BuildHasher, RandomState};
use std::sync::RwLock;
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::key::Kind;
use crate::quota::Quota;

/// Locks, so that threads that look up different keys rarely meet.
const SHARDS: usize = 16;

/// Exact, pinned: an override stays until it is removed.
#[derive(Debug)]
pub(crate) struct Overrides {
    hasher: RandomState,
    /// Overrides there are; with none, a check takes no lock.
    count: AtomicUsize,
    shards: [Shard; SHARDS],
}

/// On a cache line of its own: readers count themselves in the lock.
#[derive(Debug, Default)]
#[repr(align(64))]
struct Shard(RwLock<HashMap<Box<[u8]>, OfKinds>>);

/// The quotas of keys of the same bytes and different kinds.
type OfKinds = Vec<(Kind, Quota)>;

impl Overrides {
    pub(crate) fn new() -> Self {
        Self {
            hasher: RandomState::new(),
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
        let shard = self.shard(bytes).0.read();
        let shard = shard.unwrap_or_else(std::sync::PoisonError::into_inner);
        let of_kinds = shard.get(bytes)?;
        let (_, quota) = of_kinds.iter().find(|(other, _)| *other == kind)?;
        Some(*quota)
    }

    pub(crate) fn set(&self, kind: Kind, bytes: &[u8], quota: Quota) -> Option<Quota> {
        let shard = self.shard(bytes).0.write();
        let mut shard = shard.unwrap_or_else(std::sync::PoisonError::into_inner);
        let of_kinds = shard.entry(bytes.into()).or_default();
        if let Some((_, old)) = of_kinds.iter_mut().find(|(other, _)| *other == kind) {
            return Some(std::mem::replace(old, quota));
        }
        of_kinds.push((kind, quota));
        self.count.fetch_add(1, Ordering::Relaxed);
        None
    }

    pub(crate) fn remove(&self, kind: Kind, bytes: &[u8]) -> Option<Quota> {
        let shard = self.shard(bytes).0.write();
        let mut shard = shard.unwrap_or_else(std::sync::PoisonError::into_inner);
        let of_kinds = shard.get_mut(bytes)?;
        let at = of_kinds.iter().position(|(other, _)| *other == kind)?;
        let (_, quota) = of_kinds.swap_remove(at);
        if of_kinds.is_empty() {
            shard.remove(bytes);
        }
        self.count.fetch_sub(1, Ordering::Relaxed);
        Some(quota)
    }

    pub(crate) fn len(&self) -> usize {
        self.count.load(Ordering::Relaxed)
    }

    fn shard(&self, bytes: &[u8]) -> &Shard {
        &self.shards[self.hasher.hash_one(bytes) as usize % SHARDS]
    }
}
