//! The server's half: from bound sockets to a [`Service`] and back.

mod activity;
mod connection;
mod counts;
mod crowd;
mod delivery;
mod h2;
mod options;
mod responder;
mod unread;

pub use counts::ConnectionCounts;
pub use options::{HttpVersions, ServerOptions};

use std::fmt;
use std::future::{Future, poll_fn};
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use quill_core::Budget;
use tokio::sync::{oneshot, watch};
use tokio::task::JoinHandle;
use tokio::time::{Instant, sleep_until};

use crate::bounds::OptionsError;
use crate::exchange::Service;
use crate::io::Socket;
use crate::listener::Listener;
use crate::tls::ServerTls;
use activity::Activity;
use connection::Connection;
use crowd::Crowd;

/// What errors call the bound of a connection's budget.
pub const CONNECTION_HELD_BYTES_MAX: &str = "connection_held_bytes_max";

/// The pause when there is no place for a connection, no file descriptor or no
/// memory, and none can be freed: some connections end meanwhile, or come to rest.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// A server that is set up and not yet running.
#[derive(Debug)]
pub struct HttpServer {
    listener: Listener,
    options: ServerOptions,
    tls: Option<ServerTls>,
    budget: Option<Budget>,
    connection_bytes_max: usize,
    counts: Option<ConnectionCounts>,
}

impl HttpServer {
    /// A server on these sockets, without TLS, with the default options.
    #[must_use]
    pub fn new(listener: Listener) -> Self {
        Self {
            listener,
            options: ServerOptions::default(),
            tls: None,
            budget: None,
            connection_bytes_max: usize::MAX,
            counts: None,
        }
    }

    /// Uses these options.
    ///
    /// # Errors
    /// One of them is out of its bounds.
    pub fn with_options(mut self, options: ServerOptions) -> Result<Self, OptionsError> {
        options.check()?;
        self.options = options;
        Ok(self)
    }

    /// Speaks TLS on every socket.
    #[must_use]
    pub fn with_tls(mut self, tls: ServerTls) -> Self {
        self.tls = Some(tls);
        self
    }

    /// Gives every connection a budget of `connection_bytes_max` bytes within
    /// this one, and its requests the connection's.
    #[must_use]
    pub fn with_budget(mut self, budget: Budget, connection_bytes_max: usize) -> Self {
        self.budget = Some(budget);
        self.connection_bytes_max = connection_bytes_max;
        self
    }

    /// Counts the connections in `counts`.
    #[must_use]
    pub fn with_counts(mut self, counts: ConnectionCounts) -> Self {
        self.counts = Some(counts);
        self
    }

    /// The bound sockets.
    #[must_use]
    pub fn listener(&self) -> &Listener {
        &self.listener
    }

    /// Starts to accept connections, in tasks of the current tokio runtime.
    ///
    /// # Panics
    /// Outside of a tokio runtime.
    pub fn start<S: Service>(self, service: S) -> Running {
        let addresses = self.listener.local_addresses();
        let (stop, stopped) = oneshot::channel();
        let task = tokio::spawn(self.run(service, stopped));
        Running {
            addresses,
            stop: Some(stop),
            task,
        }
    }

    /// Runs until `signal` resolves, then drains as [`Running::shutdown`] does.
    pub async fn serve_until<S: Service>(
        self,
        service: S,
        signal: impl Future<Output = ()>,
        drain_limit: Duration,
    ) -> Drained {
        let running = self.start(service);
        signal.await;
        running.shutdown(drain_limit).await
    }

    async fn run<S: Service>(self, service: S, mut stop: oneshot::Receiver<Duration>) -> Drained {
        let (drain, draining) = watch::channel(false);
        let connections_max = self.options.connections_max;
        let template = Connection {
            service,
            tls: self.tls,
            options: Arc::new(self.options),
            budget: self.budget,
            connection_bytes_max: self.connection_bytes_max,
            drain: draining,
            activity: Activity::new(),
            counts: self.counts,
        };
        let mut crowd = Crowd::default();
        // A connection that there is no room for yet.
        let mut waiting: Option<Socket> = None;
        let (mut paused, mut turn) = (None::<Instant>, 0_usize);
        let limit = loop {
            if paused.is_none()
                && let Some(socket) = waiting.take()
            {
                if crowd.len() < connections_max {
                    let mut connection = template.clone();
                    connection.activity = Activity::new();
                    crowd.admit(connection.activity.clone(), connection.serve(socket));
                } else {
                    waiting = Some(socket);
                    if !crowd.make_room() {
                        paused = Some(Instant::now() + ACCEPT_PAUSE);
                    }
                }
            }
            let may_accept = paused.is_none() && waiting.is_none() && !crowd.is_making_room();
            tokio::select! {
                limit = &mut stop => break limit.unwrap_or_default(),
                true = crowd.ended() => {
                    // Who waits has its place.
                    if waiting.is_some() {
                        paused = None;
                    }
                }
                () = sleep_until(paused.unwrap_or_else(Instant::now)), if paused.is_some() => paused = None,
                accepted = poll_fn(|cx| self.listener.poll_accept(turn, cx)), if may_accept => match accepted {
                    Ok(socket) => {
                        turn = turn.wrapping_add(1);
                        waiting = Some(socket);
                    }
                    Err(error) if is_of_the_peer(&error) => {}
                    Err(error) => {
                        if !crowd.make_room() {
                            tracing::warn!(%error, "accepting connections pauses");
                            paused = Some(Instant::now() + ACCEPT_PAUSE);
                        }
                    }
                },
            }
        };
        drop((self.listener, waiting, template));
        // No receiver means no connection.
        let _ = drain.send(true);
        Drained {
            cut_connections: crowd.drain(limit).await,
        }
    }
}

/// Whether the connection that was to be accepted failed, not the accepting.
fn is_of_the_peer(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::ConnectionRefused
            | io::ErrorKind::ConnectionAborted
            | io::ErrorKind::ConnectionReset
            | io::ErrorKind::Interrupted
    )
}

/// A server that accepts connections. Dropped, it cuts them all.
pub struct Running {
    addresses: Vec<SocketAddr>,
    stop: Option<oneshot::Sender<Duration>>,
    task: JoinHandle<Drained>,
}

impl Running {
    /// The addresses of the TCP sockets, with the ports they got.
    #[must_use]
    pub fn local_addresses(&self) -> &[SocketAddr] {
        &self.addresses
    }

    /// The address of the first TCP socket; `None` with Unix sockets alone.
    #[must_use]
    pub fn local_addr(&self) -> Option<SocketAddr> {
        self.addresses.first().copied()
    }

    /// Stops accepting, tells every peer (GOAWAY on HTTP/2, `connection: close`
    /// on HTTP/1.1), waits for the open exchanges and cuts what is left when
    /// `limit` has passed.
    pub async fn shutdown(mut self, limit: Duration) -> Drained {
        if let Some(stop) = self.stop.take() {
            let _ = stop.send(limit);
        }
        (&mut self.task).await.unwrap_or_default()
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl fmt::Debug for Running {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Running")
            .field("addresses", &self.addresses)
            .finish_non_exhaustive()
    }
}

/// How a server's connections came to their end.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Drained {
    /// Connections that were cut because the limit had passed.
    pub cut_connections: usize,
}
