//! Cells taken from Redis ahead of time and handed out here.

use std::collections::HashMap;
use std::hash::{BuildHasher, RandomState};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use super::script::{Answer, Status};
use crate::decision::Decision;
use crate::quota::Quota;

const SHARDS: usize = 16;

/// Keys that may hold a lease at once; the others are asked for one by one.
const KEYS_MAX: usize = 65_536;

/// The leases of this process.
pub(super) struct Leases {
    cells: u32,
    held_max: Duration,
    hasher: RandomState,
    shards: [Mutex<HashMap<Vec<u8>, Held>>; SHARDS],
}

/// What this process holds of a key.
struct Held {
    quota: Quota,
    left: u32,
    /// The key's debt in Redis when the lease was taken.
    debt: u64,
    taken: Instant,
    /// Whether a new lease is being asked for.
    asking: bool,
}

/// How to go on with a check.
pub(super) enum Claim<'a> {
    /// The cells were here.
    Taken(Decision),
    /// Ask for this many cells, and settle the answer.
    Lease(u32, Asking<'a>),
    /// Ask for no more than the check needs: somebody else asks for a lease.
    Plain,
}

/// The right to ask for the next lease of a key; given back when dropped.
pub(super) struct Asking<'a> {
    leases: &'a Leases,
    key: Vec<u8>,
}

impl Leases {
    pub(super) fn new(cells: u32, held_max: Duration) -> Self {
        Self {
            cells,
            held_max,
            hasher: RandomState::new(),
            shards: std::array::from_fn(|_| Mutex::default()),
        }
    }

    pub(super) fn claim(&self, key: &[u8], quota: &Quota, n: u32, now: Instant) -> Claim<'_> {
        // One lease leaves at least half of the burst for the other processes.
        let cells = self.cells.min(quota.burst() / 2);
        if n == 0 || cells <= n {
            return Claim::Plain;
        }
        let mut shard = self.shard(key);
        match shard.get_mut(key) {
            Some(held) => {
                if held.quota != *quota || self.is_over(held, now) {
                    held.left = 0;
                    held.quota = *quota;
                }
                if let Some(decision) = held.hand_out(n, now) {
                    return Claim::Taken(decision);
                }
                if held.asking {
                    return Claim::Plain;
                }
                held.asking = true;
            }
            None => {
                if shard.len() >= KEYS_MAX / SHARDS {
                    shard.retain(|_, held| held.asking || !self.is_over(held, now));
                    if shard.len() >= KEYS_MAX / SHARDS {
                        return Claim::Plain;
                    }
                }
                shard.insert(
                    key.to_vec(),
                    Held {
                        quota: *quota,
                        left: 0,
                        debt: 0,
                        taken: now,
                        asking: true,
                    },
                );
            }
        }
        let key = key.to_vec();
        Claim::Lease(cells, Asking { leases: self, key })
    }

    /// Drops what is held of a key.
    pub(super) fn forget(&self, key: &[u8]) {
        if let Some(held) = self.shard(key).get_mut(key) {
            held.left = 0;
        }
    }

    fn is_over(&self, held: &Held, now: Instant) -> bool {
        now.saturating_duration_since(held.taken) >= self.held_max
    }

    fn shard(&self, key: &[u8]) -> MutexGuard<'_, HashMap<Vec<u8>, Held>> {
        let index = self.hasher.hash_one(key) as usize % SHARDS;
        self.shards[index]
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }
}

impl Held {
    fn hand_out(&mut self, n: u32, now: Instant) -> Option<Decision> {
        self.left = self.left.checked_sub(n)?;
        Some(self.decision(n, now))
    }

    /// What the key owes, as if the cells that are left had not been taken.
    fn decision(&self, n: u32, now: Instant) -> Decision {
        let elapsed = self.quota.units(now.saturating_duration_since(self.taken));
        let unused = u64::from(self.left).saturating_mul(self.quota.interval_units());
        let debt = self.debt.saturating_sub(elapsed).saturating_sub(unused);
        Decision::allowed(&self.quota, debt, n)
    }
}

impl Asking<'_> {
    /// Notes the answer to a check of `n` cells that asked for `cells`.
    /// The decision, if a lease was given and is still wanted.
    pub(super) fn settle(
        self,
        answer: &Answer,
        quota: &Quota,
        n: u32,
        cells: u32,
    ) -> Option<Decision> {
        if answer.status != Status::Leased {
            return None;
        }
        let now = Instant::now();
        let mut shard = self.leases.shard(&self.key);
        let held = shard.get_mut(&self.key)?;
        if held.quota != *quota {
            return None;
        }
        held.debt = answer.debt_units(quota);
        held.left = cells.saturating_sub(n);
        held.taken = now;
        Some(held.decision(n, now))
    }
}

impl Drop for Asking<'_> {
    fn drop(&mut self) {
        if let Some(held) = self.leases.shard(&self.key).get_mut(&self.key) {
            held.asking = false;
        }
    }
}
