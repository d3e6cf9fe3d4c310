//! A server's settings that are of its end.

use std::time::Duration;

use super::ServerBuilder;

impl<L> ServerBuilder<L> {
    /// How long calls may go on once the server drains; 10 s unless set.
    pub fn drain_limit(mut self, limit: Duration) -> Self {
        self.settings.drain_limit = Some(limit);
        self
    }

    /// How long a server that is asked to end still takes connections and calls; not at
    /// all unless set. Meanwhile its health is `NOT_SERVING`, so that load balancers look
    /// elsewhere before anything is refused: give them the time of two of their checks.
    pub fn drain_delay(mut self, delay: Duration) -> Self {
        self.settings.drain_delay = Some(delay);
        self
    }

    /// Waits for this once the last call has ended, before
    /// [`serve_until`](crate::BoundServer::serve_until) returns: the place to flush
    /// telemetry, which then has all of it. Several are waited for in the order they were
    /// added, 5 s at most for each.
    pub fn on_shutdown(mut self, flush: impl Future<Output = ()> + Send + 'static) -> Self {
        self.settings.flushes.push(flush);
        self
    }
}
