//! What is found out about a call while it goes on.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};

use crate::auth::Identity;
use crate::log::Traffic;
use crate::middleware::watch::Arrivals;

/// What is found out about a call deeper inside, by layers and by who reads its
/// messages. Clones are one; layers find it in the request's extensions.
#[derive(Clone, Debug, Default)]
pub(crate) struct Notes(Arc<Found>);

#[derive(Debug, Default)]
struct Found {
    identity: OnceLock<Identity>,
    messages: AtomicU64,
    bytes: AtomicU64,
}

impl Notes {
    /// Notes who calls; the first word counts.
    pub(crate) fn set_identity(&self, identity: &Identity) {
        let _ = self.0.identity.set(identity.clone());
    }

    pub(super) fn identity(&self) -> Option<&Identity> {
        self.0.identity.get()
    }

    pub(super) fn traffic(&self) -> Traffic {
        Traffic {
            messages: self.0.messages.load(Ordering::Relaxed),
            bytes: self.0.bytes.load(Ordering::Relaxed),
        }
    }
}

impl Arrivals for Notes {
    fn received(&self, bytes: usize) {
        self.0.messages.fetch_add(1, Ordering::Relaxed);
        self.0.bytes.fetch_add(bytes as u64, Ordering::Relaxed);
    }
}
