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
    refused: AtomicU64,
    displaced: AtomicU64,
    aged: AtomicU64,
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

    /// Connections that were closed at once, since there were as many of their address
    /// as there may be. They are not among those that were accepted.
    #[must_use]
    pub fn refused(&self) -> u64 {
        self.0.refused.load(Ordering::Relaxed)
    }

    /// Connections at rest that were cut to make room for others.
    #[must_use]
    pub fn displaced(&self) -> u64 {
        self.0.displaced.load(Ordering::Relaxed)
    }

    /// Connections whose peer was told to go for their age.
    #[must_use]
    pub fn aged(&self) -> u64 {
        self.0.aged.load(Ordering::Relaxed)
    }

    pub(super) fn note_refused(&self) {
        self.0.refused.fetch_add(1, Ordering::Relaxed);
    }

    pub(super) fn note_displaced(&self) {
        self.0.displaced.fetch_add(1, Ordering::Relaxed);
    }

    pub(super) fn note_aged(&self) {
        self.0.aged.fetch_add(1, Ordering::Relaxed);
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
