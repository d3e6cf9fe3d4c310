//! How many connections there are.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// Counts the connections of servers. Clones are one count.
#[derive(Clone, Debug, Default)]
pub struct ConnectionCounts(Arc<Counts>);

#[derive(Debug, Default)]
struct Counts {
    accepted: AtomicU64,
    ended: AtomicU64,
}

impl ConnectionCounts {
    /// Connections that were accepted, those whose TLS handshake failed among them.
    #[must_use]
    pub fn accepted(&self) -> u64 {
        self.0.accepted.load(Ordering::Relaxed)
    }

    /// Connections that are open.
    #[must_use]
    pub fn open(&self) -> u64 {
        // An end is read first: whatever ended had been accepted.
        let ended = self.0.ended.load(Ordering::Acquire);
        self.accepted().saturating_sub(ended)
    }

    /// Counts a connection, until what it gives is dropped.
    pub(super) fn count(&self) -> Counted {
        self.0.accepted.fetch_add(1, Ordering::Relaxed);
        Counted(Arc::clone(&self.0))
    }
}

/// A connection that is counted as open.
#[derive(Debug)]
pub(super) struct Counted(Arc<Counts>);

impl Drop for Counted {
    fn drop(&mut self) {
        self.0.ended.fetch_add(1, Ordering::Release);
    }
}
