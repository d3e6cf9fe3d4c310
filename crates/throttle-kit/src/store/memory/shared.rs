//! What the stores of this process are made of.

use super::table::Table;
use crate::clock::Clock;
use crate::key_hasher::KeyHasher;

/// Keys that a store holds unless told otherwise.
pub(in crate::store) const KEYS_MAX_DEFAULT: usize = 65_536;

/// Bits of a clock's reading that are looked at.
const NOW_MASK: u64 = (1 << 62) - 1;

/// A clock, a hash and a table.
pub(in crate::store) struct Shared<C> {
    clock: C,
    pub(in crate::store) hasher: KeyHasher,
    pub(in crate::store) table: Table,
    pub(in crate::store) keys_max: usize,
}

impl<C: Clock> Shared<C> {
    pub(in crate::store) fn new(keys_max: usize, clock: C) -> Self {
        Self {
            clock,
            hasher: KeyHasher::new(),
            table: Table::new(keys_max),
            keys_max,
        }
    }

    #[inline]
    pub(in crate::store) fn now_ns(&self) -> u64 {
        self.clock.now_ns() & NOW_MASK
    }
}
