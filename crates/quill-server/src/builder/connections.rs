//! A server's settings that are of its connections.

use std::time::Duration;

use quill_transport::ServerOptions;
use quill_transport::tls::ServerTls;

use super::{ServerBuilder, Settings};
use crate::error::ServeError;

/// Connections and their limits: a line for each that is often set, and
/// [`transport`](ServerBuilder::transport) for all of them.
impl<L> ServerBuilder<L> {
    /// Limits and timeouts of the connections, all at once: in place of what the lines for
    /// single ones said before.
    pub fn transport(mut self, options: ServerOptions) -> Self {
        self.settings.transport = Some(options);
        self
    }

    /// Connections open at a time, 1 or more; 10,000 unless set. See
    /// [`ServerOptions::connections_max`].
    pub fn connections_max(self, connections: usize) -> Self {
        self.option(|options| options.connections_max = connections)
    }

    /// Connections open at a time from one address, 1 or more; any number unless set. An
    /// IPv6 network of 64 bits is one address, and so is a proxy: what it says of whom it
    /// speaks for is not looked at. One more is closed at once.
    pub fn connections_per_ip_max(self, connections: usize) -> Self {
        self.option(|options| options.connections_per_ip_max = Some(connections))
    }

    /// How old a connection may become, give or take a tenth; any age unless set. Then its
    /// peer is told to go (GOAWAY on HTTP/2, `connection: close` on HTTP/1.1), makes
    /// another connection, perhaps to another server, and the calls that are open end on
    /// the old one.
    pub fn max_connection_age(self, age: Duration) -> Self {
        self.option(|options| options.max_connection_age = Some(age))
    }

    /// How long the calls of a connection that is too old may go on before they are cut
    /// with it; as long as they take unless set. A peer on HTTP/1.1 that makes no call
    /// meanwhile is not told, and finds the connection closed.
    pub fn max_connection_age_grace(self, grace: Duration) -> Self {
        self.option(|options| options.max_connection_age_grace = Some(grace))
    }

    /// How long a connection may be without a call before it is closed, over every
    /// version of HTTP; 75 s on HTTP/1.1 and 10 min on HTTP/2 unless set.
    pub fn max_connection_idle(self, idle: Duration) -> Self {
        self.option(|options| {
            options.http1_idle_timeout = Some(idle);
            options.http2_idle_timeout = Some(idle);
        })
    }

    /// Speaks TLS on every socket.
    pub fn tls(mut self, tls: ServerTls) -> Self {
        self.settings.tls = Some(tls);
        self
    }

    /// Looks every so often whether the files of [`tls`](Self::tls) have changed, and
    /// reads them again then; see [`ServerTls::watch`]. Never unless set; without
    /// TLS it is refused.
    pub fn tls_reload_every(mut self, interval: Duration) -> Self {
        self.settings.tls_reload = Some(interval);
        self
    }

    /// Serves on so many threads, each with a runtime and a listening TCP socket of its
    /// own, in place of the runtime that [`bind`](Self::bind) is called in; as many as
    /// `std::thread::available_parallelism` gives are usual. The kernel spreads
    /// connections over them, on Linux evenly, and each stays on its thread. They share
    /// out [`ServerOptions::connections_max`].
    pub fn per_core(mut self, cores: usize) -> Self {
        self.settings.cores = Some(cores);
        self
    }

    fn option(mut self, change: impl FnOnce(&mut ServerOptions)) -> Self {
        change(self.settings.transport.get_or_insert_default());
        self
    }
}

impl Settings {
    /// Whether there are files to be read again.
    pub(super) fn check_reload(&self) -> Result<(), ServeError> {
        if self.tls_reload.is_some() && self.tls.is_none() {
            let wrong = "tls_reload_every has no effect without tls";
            return Err(ServeError::setting(wrong.to_owned()));
        }
        Ok(())
    }
}
