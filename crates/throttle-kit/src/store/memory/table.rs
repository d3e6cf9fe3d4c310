//! A bounded table of state words: no allocation after its creation, no sweeper.
//!
//! A key lives in one of 16 slots: two buckets of 8, both given by its
//! fingerprint, one in the left two thirds of the table and one in the right
//! third. A slot is a fingerprint and a word; the key itself is not kept.
//! A new key goes to the bucket with more room, to the left one if they are
//! alike; the asymmetry is what makes it rare that both are full (Voecking's
//! "always go left": 0.007 % of the keys that fill the table to 0.8, against
//! 0.019 % for two buckets of one region and 1.7 % for the first with room),
//! and it keeps two thirds of the keys where they are looked for first.
//! A word whose life is over means the same as a key that was never seen, so
//! such a slot is free, and is taken when a new key comes by. When all 16 are
//! alive, the one whose life ends first goes, and is counted.
//!
//! # Why this is right
//!
//! - *Update* of a key that is there: load the word, load the fingerprint again,
//!   compare-and-swap the word. No lock.
//! - *Claim* of a slot for a new key: under a lock chosen by the fingerprint, so
//!   that two threads cannot claim two slots for one key. Scan all 16 slots for
//!   the key again; swap the word of the chosen slot for `BUSY`, store the
//!   fingerprint, store the new word.
//!
//! Keys never move, and a key is only ever inserted under its lock after a scan
//! that did not find it, so it has at most one slot. An update that raced with a
//! claim of its slot fails: it has seen the old word with the old fingerprint
//! (the new word is stored after the new fingerprint, so whoever reads the
//! former sees the latter), and the word has changed since.
//!
//! What error remains: a thread that sleeps between its load and its swap while
//! its key is evicted *alive* and the new key's word comes to be exactly the old
//! one charges the new key instead of its own, once. A word that was past cannot
//! come back: new ones lie ahead of now.

use std::sync::PoisonError;

use super::sync::{AtomicU64, Mutex, Ordering, spin_loop, yield_now};

/// Slots of a bucket.
#[cfg(not(throttle_loom))]
const SLOTS: usize = 8;
#[cfg(throttle_loom)]
const SLOTS: usize = 1;

/// Locks for claims; which one a key takes follows from its fingerprint.
const LOCKS: usize = if cfg!(throttle_loom) { 1 } else { 64 };

/// Fewest buckets: a few keys must not meet a full bucket by chance.
const BUCKETS_MIN: usize = 64;

/// Marks a slot that is being claimed. No word is ever equal to it: even words
/// are nanoseconds below 2^62 plus a window below 2^62, and this one is even.
const BUSY: u64 = u64::MAX - 1;

/// Spins before the claimer is taken to be off its processor.
const SPINS_MAX: u32 = 64;

/// How long a word still means something.
pub(crate) trait Life {
    /// Nanoseconds from `now_ns` until the word is as good as absent; at most 0
    /// when it is. A word of 0 always is.
    fn left_ns(fingerprint: u64, word: u64, now_ns: u64) -> i64;
}

/// What to make of a word.
pub(crate) enum Verdict<R> {
    /// Leave it.
    Keep(R),
    /// Replace it; a key that was absent is inserted.
    Set(u64, R),
}

struct Slot {
    fingerprint: AtomicU64,
    word: AtomicU64,
}

// Two lines of 64 bytes, which processors fetch as a pair.
#[repr(align(128))]
struct Bucket([Slot; SLOTS]);

pub(crate) struct Table {
    buckets: Box<[Bucket]>,
    /// Buckets of the left region.
    left: usize,
    locks: [Mutex<()>; LOCKS],
    evicted_live: AtomicU64,
}

/// The slot changed hands while it was being looked at: look again.
struct Lost;

impl Slot {
    fn new() -> Self {
        Self {
            fingerprint: AtomicU64::new(0),
            word: AtomicU64::new(0),
        }
    }

    #[inline]
    fn holds(&self, fingerprint: u64) -> bool {
        self.fingerprint.load(Ordering::Relaxed) == fingerprint
    }

    /// Updates the word of a key that was seen here.
    #[inline]
    fn update<R>(
        &self,
        fingerprint: u64,
        decide: &mut impl FnMut(u64) -> Verdict<R>,
    ) -> Result<R, Lost> {
        let mut word = self.word.load(Ordering::Acquire);
        loop {
            if word == BUSY {
                return Err(self.wait());
            }
            // Acquire above: a word of another key comes with its fingerprint.
            if !self.holds(fingerprint) {
                return Err(Lost);
            }
            match decide(word) {
                Verdict::Keep(result) => return Ok(result),
                Verdict::Set(new, result) => {
                    let swap =
                        self.word
                            .compare_exchange(word, new, Ordering::AcqRel, Ordering::Acquire);
                    match swap {
                        Ok(_) => return Ok(result),
                        Err(current) => word = current,
                    }
                }
            }
        }
    }

    /// Waits until whoever is claiming this slot is done.
    #[cold]
    fn wait(&self) -> Lost {
        let mut spins = 0;
        while self.word.load(Ordering::Relaxed) == BUSY {
            spins += 1;
            if spins < SPINS_MAX && !cfg!(throttle_loom) {
                spin_loop();
            } else {
                yield_now();
            }
        }
        Lost
    }
}

/// The slot that a new key would take.
struct Candidate<'a> {
    slot: &'a Slot,
    word: u64,
    left_ns: i64,
}

impl Table {
    /// For about `keys_max` keys that are alive at once: 20 bytes for each.
    pub(crate) fn new(keys_max: usize) -> Self {
        // Filled to 0.8, so that a live key almost never meets 16 full slots.
        let buckets = keys_max.saturating_mul(10).div_ceil(8 * SLOTS);
        Self::with_buckets(buckets.max(BUCKETS_MIN))
    }

    fn with_buckets(buckets: usize) -> Self {
        Self {
            left: buckets - buckets / 3,
            buckets: (0..buckets)
                .map(|_| Bucket(std::array::from_fn(|_| Slot::new())))
                .collect(),
            locks: std::array::from_fn(|_| Mutex::new(())),
            evicted_live: AtomicU64::new(0),
        }
    }

    /// Keys that had to go while they were alive, since the table was made.
    pub(crate) fn evicted_live(&self) -> u64 {
        self.evicted_live.load(Ordering::Relaxed)
    }

    /// Keys that are alive. Walks the whole table.
    pub(crate) fn live_keys<L: Life>(&self, now_ns: u64) -> usize {
        let slots = self.buckets.iter().flat_map(|bucket| &bucket.0);
        slots
            .filter(|slot| {
                let word = slot.word.load(Ordering::Acquire);
                let fingerprint = slot.fingerprint.load(Ordering::Relaxed);
                word != 0 && word != BUSY && L::left_ns(fingerprint, word, now_ns) > 0
            })
            .count()
    }

    /// Bytes of the table itself.
    pub(crate) fn bytes(&self) -> usize {
        size_of_val::<[Bucket]>(&self.buckets)
    }

    /// Shows `decide` the key's word, 0 if it is absent, and does what it says.
    /// `decide` may be called more than once; its last answer counts.
    pub(crate) fn update<L: Life, R>(
        &self,
        fingerprint: u64,
        now_ns: u64,
        mut decide: impl FnMut(u64) -> Verdict<R>,
    ) -> R {
        loop {
            match self.find(fingerprint) {
                Some(slot) => {
                    if let Ok(result) = slot.update(fingerprint, &mut decide) {
                        return result;
                    }
                }
                None => match decide(0) {
                    Verdict::Keep(result) => return result,
                    Verdict::Set(word, result) => {
                        if self.insert::<L>(fingerprint, word, now_ns) {
                            return result;
                        }
                    }
                },
            }
        }
    }

    /// One attempt at the common case: the key is where it is looked for first,
    /// and nobody else is at it. `next` gives the new word, if there is one;
    /// gives back what the word became, or `None` and nothing was done.
    #[inline]
    pub(crate) fn update_first(
        &self,
        fingerprint: u64,
        next: impl FnOnce(u64) -> Option<u64>,
    ) -> Option<u64> {
        let slot = &self.left_home(fingerprint).0[preferred(fingerprint)];
        let word = slot.word.load(Ordering::Acquire);
        // After the word: see `Slot::update`.
        if !slot.holds(fingerprint) || word == BUSY {
            return None;
        }
        let new = next(word)?;
        let swap = slot
            .word
            .compare_exchange(word, new, Ordering::AcqRel, Ordering::Relaxed);
        swap.is_ok().then_some(new)
    }

    /// Puts a new key into the table; false if it was there after all.
    fn insert<L: Life>(&self, fingerprint: u64, word: u64, now_ns: u64) -> bool {
        let lock = &self.locks[(fingerprint >> 16) as usize % LOCKS];
        // The lock guards no data that a panic could have left half done.
        let _claim = lock.lock().unwrap_or_else(PoisonError::into_inner);
        loop {
            if self.find(fingerprint).is_some() {
                return false;
            }
            let Candidate {
                slot,
                word: old,
                left_ns,
            } = self.candidate::<L>(fingerprint, now_ns);
            if old == BUSY {
                slot.wait();
                continue;
            }
            let claim = slot
                .word
                .compare_exchange(old, BUSY, Ordering::AcqRel, Ordering::Relaxed);
            if claim.is_ok() {
                slot.fingerprint.store(fingerprint, Ordering::Release);
                slot.word.store(word, Ordering::Release);
                if left_ns > 0 {
                    self.evicted_live.fetch_add(1, Ordering::Relaxed);
                    #[cfg(feature = "metrics")]
                    crate::metrics::count_eviction();
                }
                return true;
            }
        }
    }

    /// The slot of a key, if it has one.
    #[inline]
    fn find(&self, fingerprint: u64) -> Option<&Slot> {
        let in_bucket =
            |bucket| slots_from(bucket, fingerprint).find(|slot: &&Slot| slot.holds(fingerprint));
        in_bucket(self.left_home(fingerprint)).or_else(|| in_bucket(self.right_home(fingerprint)))
    }

    /// A free slot of the bucket that has more of them; if there is none, the
    /// slot whose life ends first.
    fn candidate<L: Life>(&self, fingerprint: u64, now_ns: u64) -> Candidate<'_> {
        let left = Room::of::<L>(self.left_home(fingerprint), fingerprint, now_ns);
        let right = Room::of::<L>(self.right_home(fingerprint), fingerprint, now_ns);
        let goes_right = if left.free == 0 && right.free == 0 {
            right.first.left_ns < left.first.left_ns
        } else {
            right.free > left.free
        };
        if goes_right { right.first } else { left.first }
    }

    #[inline]
    fn left_home(&self, fingerprint: u64) -> &Bucket {
        &self.buckets[scale(fingerprint, self.left)]
    }

    #[inline]
    fn right_home(&self, fingerprint: u64) -> &Bucket {
        let right = self.buckets.len() - self.left;
        // The other half of the bits, so that the homes are independent.
        &self.buckets[self.left + scale(fingerprint.rotate_left(32), right)]
    }
}

/// What a bucket has to offer to a new key.
struct Room<'a> {
    free: u32,
    /// The first free slot, else the one whose life ends first.
    first: Candidate<'a>,
}

impl<'a> Room<'a> {
    fn of<L: Life>(bucket: &'a Bucket, fingerprint: u64, now_ns: u64) -> Self {
        let mut free = 0;
        let mut first = Candidate {
            slot: &bucket.0[preferred(fingerprint)],
            word: BUSY,
            left_ns: i64::MAX,
        };
        for slot in slots_from(bucket, fingerprint) {
            let word = slot.word.load(Ordering::Acquire);
            let left_ns = match word {
                0 => 0,
                BUSY => continue,
                _ => L::left_ns(slot.fingerprint.load(Ordering::Relaxed), word, now_ns).max(0),
            };
            free += u32::from(left_ns == 0);
            if left_ns < first.left_ns {
                first = Candidate {
                    slot,
                    word,
                    left_ns,
                };
            }
        }
        Self { free, first }
    }
}

/// Maps all of `bits` evenly onto `0..len`, mostly by the upper ones.
#[inline]
fn scale(bits: u64, len: usize) -> usize {
    ((u128::from(bits) * len as u128) >> 64) as usize
}

/// Where in a bucket a key is looked for first: on a line of its own choice.
#[inline]
const fn preferred(fingerprint: u64) -> usize {
    // Not the lowest bits: the sliding window keeps its scale there.
    (fingerprint >> 6) as usize % SLOTS
}

#[inline]
fn slots_from(bucket: &Bucket, fingerprint: u64) -> impl Iterator<Item = &Slot> {
    let start = preferred(fingerprint);
    (0..SLOTS).map(move |i| &bucket.0[(start + i) % SLOTS])
}

#[cfg(all(test, not(throttle_loom)))]
mod tests;

#[cfg(all(test, throttle_loom))]
mod loom_tests;
