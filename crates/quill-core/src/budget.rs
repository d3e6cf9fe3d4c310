//! A bound on what many calls hold together.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Bytes that the unfinished messages of many calls may take together: those of
/// one connection, within those of the whole server. Clones share one account.
///
/// A limit of one message bounds one call; a peer with many calls open could
/// hold that much in each. So what waits to become a message, or waits to be
/// taken, is held here as well, and a call that would pass the bound is refused.
///
/// ```
/// use quill_core::Budget;
///
/// let server = Budget::new("held_bytes_max", 100);
/// let connection = server.child("connection_held_bytes_max", 60);
/// let mut held = connection.hold();
/// assert!(held.set(60).is_ok());
/// assert!(held.set(61).is_err());
/// assert_eq!(server.held_bytes(), 60);
/// drop(held);
/// assert_eq!(server.held_bytes(), 0);
/// ```
#[derive(Clone)]
pub struct Budget(Arc<Account>);

struct Account {
    name: &'static str,
    bytes_max: usize,
    held: AtomicUsize,
    parent: Option<Budget>,
}

impl Budget {
    /// A budget of this many bytes; errors call it by `name`.
    #[must_use]
    pub fn new(name: &'static str, bytes_max: usize) -> Self {
        Self::with_parent(name, bytes_max, None)
    }

    /// A budget within this one: what it holds counts in both.
    #[must_use]
    pub fn child(&self, name: &'static str, bytes_max: usize) -> Self {
        Self::with_parent(name, bytes_max, Some(self.clone()))
    }

    fn with_parent(name: &'static str, bytes_max: usize, parent: Option<Budget>) -> Self {
        Self(Arc::new(Account {
            name,
            bytes_max,
            held: AtomicUsize::new(0),
            parent,
        }))
    }

    /// The bytes held now.
    #[must_use]
    pub fn held_bytes(&self) -> usize {
        self.0.held.load(Ordering::Relaxed)
    }

    /// A share in this budget, of nothing yet.
    #[must_use]
    pub fn hold(&self) -> Held {
        Held {
            budget: self.clone(),
            bytes: 0,
        }
    }

    /// Takes `bytes` here and in every parent, or nowhere.
    fn take(&self, bytes: usize) -> Result<(), OverBudget> {
        let Account {
            name,
            bytes_max,
            held,
            parent,
        } = &*self.0;
        let fits = |now: usize| now.checked_add(bytes).filter(|sum| sum <= bytes_max);
        held.fetch_update(Ordering::Relaxed, Ordering::Relaxed, fits)
            .map_err(|_| OverBudget {
                name,
                bytes_max: *bytes_max,
            })?;
        if let Some(parent) = parent {
            parent.take(bytes).inspect_err(|_| {
                held.fetch_sub(bytes, Ordering::Relaxed);
            })?;
        }
        Ok(())
    }

    fn give_back(&self, bytes: usize) {
        self.0.held.fetch_sub(bytes, Ordering::Relaxed);
        if let Some(parent) = &self.0.parent {
            parent.give_back(bytes);
        }
    }
}

impl fmt::Debug for Budget {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Budget")
            .field("name", &self.0.name)
            .field("bytes_max", &self.0.bytes_max)
            .field("held", &self.held_bytes())
            .finish_non_exhaustive()
    }
}

/// One holder's share of a [`Budget`]; given back when it is dropped.
#[derive(Debug)]
pub struct Held {
    budget: Budget,
    bytes: usize,
}

impl Held {
    /// Holds this many bytes from now on, in place of those before.
    ///
    /// # Errors
    /// They would pass a bound; the share is then as it was.
    pub fn set(&mut self, bytes: usize) -> Result<(), OverBudget> {
        if bytes > self.bytes {
            self.budget.take(bytes - self.bytes)?;
            self.bytes = bytes;
        }
        self.lower(bytes);
        Ok(())
    }

    /// Holds no more than this many bytes from now on.
    pub fn lower(&mut self, bytes: usize) {
        if bytes < self.bytes {
            self.budget.give_back(self.bytes - bytes);
            self.bytes = bytes;
        }
    }

    /// Bytes that are held.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// Another share of the same budget.
    #[must_use]
    pub fn sibling(&self) -> Self {
        self.budget.hold()
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        self.lower(0);
    }
}

/// A bound that would be passed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OverBudget {
    name: &'static str,
    bytes_max: usize,
}

impl fmt::Display for OverBudget {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { name, bytes_max } = self;
        write!(
            f,
            "unfinished messages hold all of the {bytes_max} bytes that they may together ({name})"
        )
    }
}

impl std::error::Error for OverBudget {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn siblings_share_what_their_parent_has() {
        let server = Budget::new("server", 10);
        let (one, other) = (server.child("one", 8), server.child("other", 8));
        let (mut first, mut second) = (one.hold(), other.hold());
        first.set(8).unwrap();
        assert_eq!(first.set(9).unwrap_err().name, "one");
        assert_eq!(second.set(3).unwrap_err().name, "server");
        // What failed took nothing anywhere.
        assert_eq!((other.held_bytes(), server.held_bytes()), (0, 8));
        second.set(2).unwrap();
        first.set(1).unwrap();
        second.set(8).unwrap();
        assert_eq!(server.held_bytes(), 9);
        second.lower(9);
        assert_eq!(server.held_bytes(), 9);
        second.lower(4);
        assert_eq!((other.held_bytes(), server.held_bytes()), (4, 5));
        drop((first, second));
        assert_eq!((one.held_bytes(), server.held_bytes()), (0, 0));
    }

    #[test]
    fn numbers_near_the_end_do_not_wrap() {
        let budget = Budget::new("all", usize::MAX);
        let (mut first, mut second) = (budget.hold(), budget.hold());
        first.set(usize::MAX).unwrap();
        assert!(second.set(1).is_err());
        assert_eq!(budget.held_bytes(), usize::MAX);
    }
}
