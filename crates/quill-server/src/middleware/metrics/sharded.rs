//! Counters that many threads add to without meeting.

use std::cell::Cell;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, OnceLock, PoisonError};

/// Threads that have counters of their own; those beyond share one set, which
/// costs them an atomic addition.
const SHARDS: usize = 64;

/// `N` counters, and for each thread that adds to them a copy of its own.
///
/// A thread alone writes its copy, so that an addition is a load and a store. What
/// is read is never less than what the reading thread has seen happen.
#[derive(Debug)]
pub(crate) struct Sharded<const N: usize> {
    own: [OnceLock<Box<Block<N>>>; SHARDS],
    shared: Block<N>,
}

/// One thread's counters, on cache lines of their own.
#[derive(Debug)]
#[repr(align(128))]
pub(crate) struct Block<const N: usize>([AtomicU64; N]);

impl<const N: usize> Block<N> {
    const fn new() -> Self {
        Self([const { AtomicU64::new(0) }; N])
    }
}

impl<const N: usize> Sharded<N> {
    pub(crate) fn new() -> Self {
        Self {
            own: [const { OnceLock::new() }; SHARDS],
            shared: Block::new(),
        }
    }

    /// The counters that this thread adds to.
    #[inline]
    pub(crate) fn mine(&self) -> Mine<'_, N> {
        match self.own.get(slot()) {
            Some(own) => Mine::Own(own.get_or_init(|| Box::new(Block::new()))),
            None => Mine::Shared(&self.shared),
        }
    }

    /// Adds to one counter.
    #[inline]
    pub(crate) fn add(&self, counter: usize, n: u64) {
        self.mine().add(counter, n);
    }

    /// All counters, each the sum over all threads. Sums wrap, as the counters do.
    pub(crate) fn sums(&self) -> [u64; N] {
        let own = self.own.iter().filter_map(OnceLock::get);
        let blocks = own.map(|block| &**block).chain([&self.shared]);
        let mut sums = [0_u64; N];
        for block in blocks {
            for (sum, counter) in sums.iter_mut().zip(&block.0) {
                *sum = sum.wrapping_add(counter.load(Ordering::Relaxed));
            }
        }
        sums
    }
}

/// The counters of the current thread.
#[derive(Debug)]
pub(crate) enum Mine<'a, const N: usize> {
    /// No other thread writes these.
    Own(&'a Block<N>),
    Shared(&'a Block<N>),
}

impl<const N: usize> Mine<'_, N> {
    /// Adds to one counter; one that does not exist stays that way.
    #[inline]
    pub(crate) fn add(&self, counter: usize, n: u64) {
        match self {
            Self::Own(block) => {
                if let Some(counter) = block.0.get(counter) {
                    let sum = counter.load(Ordering::Relaxed).wrapping_add(n);
                    counter.store(sum, Ordering::Relaxed);
                }
            }
            Self::Shared(block) => {
                if let Some(counter) = block.0.get(counter) {
                    counter.fetch_add(n, Ordering::Relaxed);
                }
            }
        }
    }
}

/// A thread that has not asked for a slot.
const UNASKED: usize = usize::MAX;
/// A thread that has none: there were too many, or it is about to end.
const NONE: usize = usize::MAX - 1;

thread_local! {
    static SLOT: Cell<usize> = const { Cell::new(UNASKED) };
    /// Gives the slot back when the thread ends.
    static LEASE: Lease = Lease::take();
}

/// The slot of this thread; out of every array's bounds if it has none.
#[inline]
fn slot() -> usize {
    let slot = SLOT.get();
    if slot == UNASKED { ask() } else { slot }
}

#[cold]
fn ask() -> usize {
    let slot = LEASE.try_with(|lease| lease.0).unwrap_or(NONE);
    SLOT.set(slot);
    slot
}

/// Slots that are not in use. The lock orders what one thread wrote into its
/// counters before what the next of the same slot reads there.
static SLOTS: Mutex<Slots> = Mutex::new(Slots {
    returned: Vec::new(),
    unused: 0,
});

struct Slots {
    returned: Vec<usize>,
    unused: usize,
}

struct Lease(usize);

impl Lease {
    fn take() -> Self {
        let mut slots = SLOTS.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(slot) = slots.returned.pop() {
            return Self(slot);
        }
        if slots.unused < SHARDS {
            slots.unused += 1;
            return Self(slots.unused - 1);
        }
        Self(NONE)
    }
}

impl Drop for Lease {
    fn drop(&mut self) {
        SLOT.set(NONE);
        if self.0 != NONE {
            let mut slots = SLOTS.lock().unwrap_or_else(PoisonError::into_inner);
            slots.returned.push(self.0);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_is_lost_between_threads_that_come_and_go() {
        const THREADS: u64 = 3 * SHARDS as u64;
        const ADDITIONS: u64 = 1_000;
        let counters = Sharded::<2>::new();
        // More at once than there are slots, then as many again in their slots.
        for _ in 0..2 {
            std::thread::scope(|scope| {
                for _ in 0..THREADS {
                    scope.spawn(|| {
                        for _ in 0..ADDITIONS {
                            counters.add(0, 1);
                            counters.mine().add(1, 2);
                        }
                    });
                }
            });
        }
        let expected = 2 * THREADS * ADDITIONS;
        assert_eq!(counters.sums(), [expected, 2 * expected]);
    }

    #[test]
    fn a_counter_that_does_not_exist_is_not_added_to() {
        let counters = Sharded::<1>::new();
        counters.add(1, 1);
        counters.add(usize::MAX, 1);
        assert_eq!(counters.sums(), [0]);
    }

    #[test]
    fn threads_without_a_slot_share_and_lose_nothing() {
        let counters = Sharded::<1>::new();
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    SLOT.set(NONE);
                    for _ in 0..10_000 {
                        counters.add(0, 1);
                    }
                });
            }
        });
        assert_eq!(counters.sums(), [40_000]);
    }
}
