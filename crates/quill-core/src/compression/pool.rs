//! Contexts to be used again.

use std::cell::RefCell;

/// How many idle contexts of one kind a thread keeps.
const IDLE_MAX: usize = 2;

/// Idle contexts of one kind, of one thread.
pub(super) struct Pool<C>(RefCell<Vec<C>>);

impl<C> Pool<C> {
    pub(super) const fn new() -> Self {
        Self(RefCell::new(Vec::new()))
    }

    pub(super) fn take(&self) -> Option<C> {
        self.0.borrow_mut().pop()
    }

    /// Keeps `context` for the next, if there is room.
    pub(super) fn put(&self, context: C) {
        let mut idle = self.0.borrow_mut();
        if idle.len() < IDLE_MAX {
            idle.push(context);
        }
    }
}
