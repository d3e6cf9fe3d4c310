//! Telling calls that their server is about to end.

use std::sync::Arc;

use crate::Cancellation;

/// How far the end of a server has come. Clones are of one server.
#[derive(Clone, Debug, Default)]
pub struct Draining(Arc<Phases>);

#[derive(Debug, Default)]
struct Phases {
    asked: Cancellation,
    begun: Cancellation,
}

impl Draining {
    /// Of a server that goes on.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Fires when the server is asked to end: it is not ready any more, but takes
    /// connections and calls until its drain begins.
    #[must_use]
    pub fn asked(&self) -> &Cancellation {
        &self.0.asked
    }

    /// Fires when the drain begins: who calls again finds another server, or none.
    #[must_use]
    pub fn begun(&self) -> &Cancellation {
        &self.0.begun
    }
}
