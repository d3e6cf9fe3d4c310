//! A bounded table of state words: no allocation after its creation, no sweeper.
//!
//! A key lives in one of 24 slots: three buckets of 8, all given by its
//! fingerprint, one in each of three regions that take 4, 2 and 1 sevenths of
//! the table. A slot is a fingerprint and a word; the key itself is not kept.
//! A new key goes to the bucket with most room, to the leftmost of those that
//! are alike (Voecking's "always go left"), which keeps more than half of the
//! keys where they are looked for first. With three quarters of the slots alive,
//! while keys end and others come, fewer than one key in 100,000 finds all of
//! its slots alive. (Two buckets do as well while a table fills, and no longer:
//! of their keys one in 40 is lost when the keys have changed once.)
//! A word whose life is over means the same as a key that was never seen, so
//! such a slot is free, and is taken when a new key comes by. When all 24 are
//! alive, the one whose life ends first goes, and is counted.
//!
//! A bucket is two lines of memory, the fingerprints and the words. What a
//! look-up costs in a large table is waiting for lines, so those of the second
//! and third bucket are asked for together, and of a new key all that it needs.
//!
//! # Why this is right
//!
//! - *Update* of a key that is there: load the word, load the fingerprint again,
//!   compare-and-swap the word. No lock.
//! - *Claim* of a slot for a new key: under a lock chosen by the fingerprint, so
//!   that two threads cannot claim two slots for one key. Scan all 24 slots for
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

use std::hint::black_box;
use std::sync::PoisonError;

use super::sync::{AtomicU64, Mutex, Ordering, spin_loop, yield_now};

/// Slots of a bucket.
#[cfg(not(throttle_loom))]
const SLOTS: usize = 8;
#[cfg(throttle_loom)]
const SLOTS: usize = 1;

/// Keys for each bucket: three quarters, so that a live key almost never meets
/// 24 full slots.
const BUCKET_KEYS: usize = 6;

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
    /// when it is. A word of 0 always is. What it says of `BUSY` does not matter.
    fn left_ns(fingerprint: u64, word: u64, now_ns: u64) -> i64;
}

/// What to make of a word.
pub(crate) enum Verdict<R> {
    /// Leave it.
    Keep(R),
    /// Replace it; a key that was absent is inserted.
    Set(u64, R),
}

/// A line of fingerprints and a line of words.
#[repr(align(128))]
struct Bucket {
    fingerprints: [AtomicU64; SLOTS],
    words: [AtomicU64; SLOTS],
}

/// A slot of a bucket.
#[derive(Clone, Copy)]
struct Slot<'a> {
    fingerprint: &'a AtomicU64,
    word: &'a AtomicU64,
}

pub(crate) struct Table {
    buckets: Box<[Bucket]>,
    /// Where the second and the third region begin.
    middle: usize,
    right: usize,
    locks: [Mutex<()>; LOCKS],
    evicted_live: AtomicU64,
}

/// The slot changed hands while it was being looked at: look again.
struct Lost;

impl Bucket {
    fn new() -> Self {
        let zeros = || std::array::from_fn(|_| AtomicU64::new(0));
        Self {
            fingerprints: zeros(),
            words: zeros(),
        }
    }

    #[inline]
    fn slot(&self, index: usize) -> Slot<'_> {
        Slot {
            fingerprint: &self.fingerprints[index % SLOTS],
            word: &self.words[index % SLOTS],
        }
    }

    fn slots(&self) -> impl Iterator<Item = Slot<'_>> {
        (0..SLOTS).map(|index| self.slot(index))
    }

    /// The index of the slot of that fingerprint, `SLOTS` if there is none.
    /// Looks at all of them: a branch for each costs more than it saves.
    #[inline]
    fn position(&self, fingerprint: u64) -> usize {
        (0..SLOTS).rev().fold(SLOTS, |found, index| {
            let is_here = self.slot(index).holds(fingerprint);
            if is_here { index } else { found }
        })
    }

    /// A bit for each slot whose life is over.
    #[inline]
    fn free<L: Life>(&self, now_ns: u64) -> u8 {
        (0..SLOTS).fold(0, |free, index| {
            let candidate = Candidate::new::<L>(self.slot(index), now_ns);
            free | u8::from(candidate.left_ns <= 0) << index
        })
    }
}

impl Slot<'_> {
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

/// The three buckets of a fingerprint.
struct Homes<'a>([&'a Bucket; 3]);

/// The slot that a new key would take, and the word that is in it.
struct Candidate<'a> {
    slot: Slot<'a>,
    word: u64,
    left_ns: i64,
}

impl Table {
    /// For about `keys_max` keys that are alive at once: 21.3 bytes for each.
    pub(crate) fn new(keys_max: usize) -> Self {
        Self::with_buckets(keys_max.div_ceil(BUCKET_KEYS).max(BUCKETS_MIN))
    }

    fn with_buckets(buckets: usize) -> Self {
        let (third, second) = ((buckets / 7).max(1), (buckets * 2 / 7).max(1));
        Self {
            middle: buckets - third - second,
            right: buckets - third,
            buckets: (0..buckets).map(|_| Bucket::new()).collect(),
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
        let slots = self.buckets.iter().flat_map(Bucket::slots);
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
        let first = self.first_home(fingerprint).slot(preferred(fingerprint));
        if first.holds(fingerprint)
            && let Ok(result) = first.update(fingerprint, &mut decide)
        {
            return result;
        }
        let homes = self.homes(fingerprint);
        loop {
            match homes.find(fingerprint) {
                Some(slot) => {
                    if let Ok(result) = slot.update(fingerprint, &mut decide) {
                        return result;
                    }
                }
                None => match decide(0) {
                    Verdict::Keep(result) => return result,
                    Verdict::Set(word, result) => {
                        if self.insert::<L>(&homes, fingerprint, word, now_ns) {
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
        let slot = self.first_home(fingerprint).slot(preferred(fingerprint));
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
    fn insert<L: Life>(&self, homes: &Homes<'_>, fingerprint: u64, word: u64, now_ns: u64) -> bool {
        let lock = &self.locks[(fingerprint >> 16) as usize % LOCKS];
        homes.fetch(fingerprint);
        // The lock guards no data that a panic could have left half done.
        let _claim = lock.lock().unwrap_or_else(PoisonError::into_inner);
        loop {
            if homes.find(fingerprint).is_some() {
                return false;
            }
            let Candidate {
                slot,
                word: old,
                left_ns,
            } = homes.candidate::<L>(fingerprint, now_ns);
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

    /// Different bits for each region, so that the homes are independent.
    #[inline]
    fn homes(&self, fingerprint: u64) -> Homes<'_> {
        let (middle, right) = (self.right - self.middle, self.buckets.len() - self.right);
        let second = self.middle + scale(fingerprint.rotate_left(21), middle);
        let third = self.right + scale(fingerprint.rotate_left(42), right);
        let first = self.first_home(fingerprint);
        Homes([first, &self.buckets[second], &self.buckets[third]])
    }

    #[inline]
    fn first_home(&self, fingerprint: u64) -> &Bucket {
        &self.buckets[scale(fingerprint, self.middle)]
    }
}

impl<'a> Homes<'a> {
    /// Has the words of all three on their way before any is waited for.
    #[inline]
    fn fetch(&self, fingerprint: u64) {
        for bucket in self.0 {
            black_box(
                bucket
                    .slot(preferred(fingerprint))
                    .word
                    .load(Ordering::Relaxed),
            );
        }
    }

    /// The slot of a key, if it has one.
    #[inline]
    fn find(&self, fingerprint: u64) -> Option<Slot<'a>> {
        let [first, second, third] = self.0;
        let in_first = first.position(fingerprint);
        if in_first < SLOTS {
            return Some(first.slot(in_first));
        }
        // Both before one is looked at: their lines come together.
        let (in_second, in_third) = (second.position(fingerprint), third.position(fingerprint));
        if in_second < SLOTS {
            Some(second.slot(in_second))
        } else if in_third < SLOTS {
            Some(third.slot(in_third))
        } else {
            None
        }
    }

    /// A free slot of the bucket that has most of them; if there is none, the
    /// slot whose life ends first.
    fn candidate<L: Life>(&self, fingerprint: u64, now_ns: u64) -> Candidate<'a> {
        let [first, second, third] = self.0;
        loop {
            let (mut most, mut free) = (first, first.free::<L>(now_ns));
            for bucket in [second, third] {
                let more = bucket.free::<L>(now_ns);
                if more.count_ones() > free.count_ones() {
                    (most, free) = (bucket, more);
                }
            }
            if free == 0 {
                return self.ending_first::<L>(now_ns);
            }
            // From the preferred one on, and round.
            let start = preferred(fingerprint);
            let round = (u32::from(free) << SLOTS | u32::from(free)) >> start;
            let slot = most.slot(start + round.trailing_zeros() as usize);
            let candidate = Candidate::new::<L>(slot, now_ns);
            // Its key may have come back in between.
            if candidate.left_ns <= 0 {
                return candidate;
            }
        }
    }

    /// The slot whose life ends first.
    #[cold]
    fn ending_first<L: Life>(&self, now_ns: u64) -> Candidate<'a> {
        let slots = self.0.into_iter().flat_map(Bucket::slots);
        let mut ending = Candidate::new::<L>(self.0[0].slot(0), now_ns);
        for slot in slots {
            let candidate = Candidate::new::<L>(slot, now_ns);
            if candidate.left_ns < ending.left_ns {
                ending = candidate;
            }
        }
        ending
    }
}

impl<'a> Candidate<'a> {
    #[inline]
    fn new<L: Life>(slot: Slot<'a>, now_ns: u64) -> Self {
        let word = slot.word.load(Ordering::Acquire);
        let left_ns = L::left_ns(slot.fingerprint.load(Ordering::Relaxed), word, now_ns);
        Self {
            slot,
            word,
            left_ns,
        }
    }
}

/// Maps all of `bits` evenly onto `0..len`, mostly by the upper ones.
#[inline]
fn scale(bits: u64, len: usize) -> usize {
    ((u128::from(bits) * len as u128) >> 64) as usize
}

/// Where in a bucket a key is looked for first.
#[inline]
const fn preferred(fingerprint: u64) -> usize {
    // Not the lowest bits: the sliding window keeps its scale there.
    (fingerprint >> 6) as usize % SLOTS
}

#[cfg(all(test, not(throttle_loom)))]
mod tests;

#[cfg(all(test, throttle_loom))]
mod loom_tests;
