//! Why a client stopped to send.

use std::sync::{Arc, Mutex, PoisonError};

use quill_core::Error;

/// Why the sending half of a client's call failed: a message over the limit, or
/// one that can't be encoded. The transport knows only that the stream was reset
/// here, so the half that waits for the answer learns it from this.
#[derive(Clone, Debug, Default)]
pub struct GivenUp(Arc<Mutex<Option<Error>>>);

impl GivenUp {
    pub(crate) fn tell(&self, why: Error) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(why);
    }

    /// Why this side gave the call up, if it did; else `error`, with which the
    /// transport ended it.
    #[must_use]
    pub fn or(&self, error: Error) -> Error {
        let why = self.0.lock().unwrap_or_else(PoisonError::into_inner).take();
        why.unwrap_or(error)
    }
}
