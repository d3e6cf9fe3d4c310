//! The server's half: from bound sockets to a [`Service`] and back.

mod activity;
mod age;
mod connection;
mod core;
mod counts;
mod crowd;
mod delivery;
mod h2;
mod options;
mod per_ip;
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

use self::core::Core;
use crate::bounds::OptionsError;
use crate::exchange::Service;
use crate::io::Socket;
use crate::listener::{BindError, Listener, ShareableListener};
use crate::tls::ServerTls;
use activity::Activity;
use connection::Connection;
use crowd::Crowd;
use per_ip::{PerIp, Place};

/// What errors call the bound of a connection's budget.
pub const CONNECTION_HELD_BYTES_MAX: &str = "connection_held_bytes_max";

/// The pause when there is no place for a connection, no file descriptor or no
/// memory, and none can be freed: some connections end meanwhile, or come to rest.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// A server that is set up and not yet running.
#[derive(Debug)]
pub struct HttpServer {
    /// The first, and those that share its port on other cores.
    shares: Vec<Share>,
    settings: Settings,
}

/// Sockets, and where their connections are served: on the runtime of whoever starts
/// the server, or on a core's own.
#[derive(Debug)]
struct Share {
    listener: Listener,
    core: Option<Core>,
}

/// What all connections have in common.
#[derive(Clone, Debug)]
struct Settings {
    options: ServerOptions,
    tls: Option<ServerTls>,
    budget: Option<Budget>,
    connection_bytes_max: usize,
    counts: Option<ConnectionCounts>,
    /// `None` where addresses have as many as they like.
    per_ip: Option<PerIp>,
}

impl HttpServer {
    /// A server on these sockets, without TLS, with the default options.
    #[must_use]
    pub fn new(listener: Listener) -> Self {
        let core = None;
        Self::on(vec![Share { listener, core }])
    }

    /// A server on this address, served by so many threads (one at least), each with a
    /// runtime and sockets of its own; the kernel spreads connections over them
    /// (`SO_REUSEPORT`). What a connection asks for stays on its thread. The most
    /// connections are shared out evenly among them.
    ///
    /// # Errors
    /// The address can't be bound, or not by several: a Unix socket, or a system
    /// without that option. A thread can't be started.
    pub async fn per_core(address: &str, cores: usize) -> Result<Self, BindError> {
        let mut shares = Vec::new();
        for listener in ShareableListener::bind(address, cores.max(1)).await? {
            let name = format!("quill-core-{}", shares.len());
            let share = Core::start(name).and_then(|core| {
                let listener = {
                    let _runtime = core.enter();
                    listener.register()?
                };
                let core = Some(core);
                Ok(Share { listener, core })
            });
            shares.push(share.map_err(|error| BindError::new(address, error))?);
        }
        Ok(Self::on(shares))
    }

    fn on(shares: Vec<Share>) -> Self {
        Self {
            shares,
            settings: Settings {
                options: ServerOptions::default(),
                tls: None,
                budget: None,
                connection_bytes_max: usize::MAX,
                counts: None,
                per_ip: None,
            },
        }
    }

    /// Uses these options.
    ///
    /// # Errors
    /// One of them is out of its bounds.
    pub fn with_options(mut self, options: ServerOptions) -> Result<Self, OptionsError> {
        options.check()?;
        self.settings.per_ip = options.connections_per_ip_max.map(PerIp::new);
        self.settings.options = options;
        Ok(self)
    }

    /// Speaks TLS on every socket.
    #[must_use]
    pub fn with_tls(mut self, tls: ServerTls) -> Self {
        self.settings.tls = Some(tls);
        self
    }

    /// Gives every connection a budget of `connection_bytes_max` bytes within
    /// this one, and its requests the connection's.
    #[must_use]
    pub fn with_budget(mut self, budget: Budget, connection_bytes_max: usize) -> Self {
        self.settings.budget = Some(budget);
        self.settings.connection_bytes_max = connection_bytes_max;
        self
    }

    /// Counts the connections in `counts`.
    #[must_use]
    pub fn with_counts(mut self, counts: ConnectionCounts) -> Self {
        self.settings.counts = Some(counts);
        self
    }

    /// The addresses of the TCP sockets, with the ports they got.
    #[must_use]
    pub fn local_addresses(&self) -> Vec<SocketAddr> {
        let first = self.shares.first();
        first.map_or_else(Vec::new, |share| share.listener.local_addresses())
    }

    /// Starts to accept connections, in tasks of the current tokio runtime or on the
    /// server's own threads.
    ///
    /// # Panics
    /// Outside of a tokio runtime.
    pub fn start<S: Service>(self, service: S) -> Running {
        let addresses = self.local_addresses();
        let Self {
            shares,
            mut settings,
        } = self;
        let connections_max = settings.options.connections_max;
        settings.options.connections_max = connections_max.div_ceil(shares.len().max(1));
        let start = |Share { listener, core }| {
            let (stop, stopped) = oneshot::channel();
            let run = settings.clone().run(listener, service.clone(), stopped);
            RunningShare {
                stop: Some(stop),
                task: match core {
                    None => tokio::spawn(run),
                    Some(core) => core.spawn(run),
                },
            }
        };
        let shares = shares.into_iter().map(start).collect();
        drop(service);
        Running { addresses, shares }
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
}

impl Settings {
    /// What every connection starts from.
    fn connection<S: Service>(&self, service: S, drain: watch::Receiver<bool>) -> Connection<S> {
        Connection {
            service,
            tls: self.tls.clone(),
            http2: Arc::new(h2::config(&self.options)),
            options: Arc::new(self.options.clone()),
            budget: self.budget.clone(),
            connection_bytes_max: self.connection_bytes_max,
            drain,
            activity: Activity::new(),
            counts: self.counts.clone(),
            place: None,
        }
    }

    /// Its place among those of its address, where these are counted; `Err` when it may
    /// not have one.
    fn place(&self, socket: &Socket) -> Result<Option<Arc<Place>>, ()> {
        let (Some(per_ip), Some(address)) = (&self.per_ip, socket.peer_address()) else {
            return Ok(None);
        };
        match per_ip.admit(address) {
            Some(place) => Ok(Some(Arc::new(place))),
            None => {
                tracing::debug!(%address, "an address has as many connections as it may");
                if let Some(counts) = &self.counts {
                    counts.note_refused();
                }
                Err(())
            }
        }
    }

    async fn run<S: Service>(
        self,
        listener: Listener,
        service: S,
        mut stop: oneshot::Receiver<Duration>,
    ) -> Drained {
        let (drain, draining) = watch::channel(false);
        let connections_max = self.options.connections_max;
        let template = self.connection(service, draining);
        let mut crowd = Crowd::new(self.counts.clone());
        // A connection that there is no room for yet.
        let mut waiting: Option<(Socket, Option<Arc<Place>>)> = None;
        let mut paused: Option<Instant> = None;
        let mut turn: usize = 0;
        let limit = loop {
            if paused.is_none()
                && let Some((socket, place)) = waiting.take()
            {
                if crowd.len() < connections_max {
                    let mut connection = Box::new(template.clone());
                    connection.activity = Activity::new();
                    connection.place = place;
                    crowd.admit(connection.activity.clone(), connection.serve(socket));
                } else {
                    waiting = Some((socket, place));
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
                accepted = poll_fn(|cx| listener.poll_accept(turn, cx)), if may_accept => match accepted {
                    Ok(socket) => {
                        turn = turn.wrapping_add(1);
                        // Who may not have one more is gone with its socket.
                        waiting = self.place(&socket).ok().map(|place| (socket, place));
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
        drop(listener);
        drop(waiting);
        drop(template);
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
    shares: Vec<RunningShare>,
}

/// The connections of one listener. Dropped, it cuts them.
struct RunningShare {
    stop: Option<oneshot::Sender<Duration>>,
    task: JoinHandle<Drained>,
}

impl Drop for RunningShare {
    fn drop(&mut self) {
        self.task.abort();
    }
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
        for share in &mut self.shares {
            if let Some(stop) = share.stop.take() {
                let _ = stop.send(limit);
            }
        }
        let mut drained = Drained::default();
        for share in &mut self.shares {
            let of_share = (&mut share.task).await.unwrap_or_default();
            drained.cut_connections += of_share.cut_connections;
        }
        drained
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
