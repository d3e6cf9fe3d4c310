//! The connections to one endpoint: which one an exchange gets, when one more
//! is made, and when one is let go.

use std::pin::pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use hyper::client::conn::http1;
use quill_core::HttpVersion;
use tokio::sync::{Notify, OwnedSemaphorePermit, Semaphore, watch};
use tokio::time::{Instant, sleep_until, timeout, timeout_at};

use super::connection::{Calm, begin_http1};
use super::dial::{dial, took_too_long};
use super::endpoint::Endpoint;
use super::multiplexed::Multiplexed;
use super::options::ClientOptions;
use super::request_body::RequestBody;
use super::tap::StreamSlot;
use crate::error::{TransportError, TransportErrorKind};
use crate::tls::ClientTls;

/// Connections that are made for one exchange, when each is closed before it
/// can be used: by a server that refuses the client's certificate, for one.
const ROUNDS_MAX: usize = 3;

/// How long an HTTP/1.1 connection may take to get over its last exchange,
/// whose bodies have both come to their ends, before another one is taken.
const READY_TIMEOUT: Duration = Duration::from_secs(1);

/// The connections to one endpoint.
pub(super) struct Pool {
    pub(super) endpoint: Endpoint,
    options: ClientOptions,
    tls: Option<ClientTls>,
    calm: Calm,
    state: Mutex<State>,
    http1_permits: Arc<Semaphore>,
    /// Told when there may be room for a stream, or for a connection.
    room: Arc<Notify>,
}

#[derive(Default)]
struct State {
    http2: Vec<Multiplexed>,
    /// The outcome of the connection that is being made for all who wait.
    connecting: Option<Outcome>,
    /// The last connection spoke HTTP/1.1, so each exchange makes its own.
    is_http1: bool,
    idle: Vec<Idle>,
    is_reaping: bool,
}

type Outcome = watch::Receiver<Option<Result<(), TransportError>>>;

/// An HTTP/1.1 connection without an exchange.
struct Idle {
    sender: http1::SendRequest<RequestBody>,
    since: Instant,
}

/// A connection, or a stream of one, for one exchange.
pub(super) enum Held {
    Http1(http1::SendRequest<RequestBody>, OwnedSemaphorePermit),
    Http2(Multiplexed, StreamSlot),
}

/// What there is for an exchange on HTTP/2.
enum Pick {
    Stream(Held),
    /// Every connection is full, and there are as many as there may be.
    Full,
    /// One is being made, beside so many full ones.
    Connecting(Outcome, usize),
}

impl Pool {
    pub(super) fn new(endpoint: Endpoint, options: ClientOptions, tls: Option<ClientTls>) -> Self {
        let http1_permits = Arc::new(Semaphore::new(options.http1_connections_max));
        let state = State {
            is_http1: options.http1,
            ..State::default()
        };
        Self {
            endpoint,
            options,
            tls,
            calm: Calm::default(),
            state: Mutex::new(state),
            http1_permits,
            room: Arc::default(),
        }
    }

    /// What one exchange needs of a connection. A fresh one is none of the
    /// HTTP/1.1 connections kept for later, since they may be broken for the
    /// same reason.
    ///
    /// # Errors
    /// No connection can be made, or the deadline passed before there was one
    /// with room; then the error says what was waited for.
    pub(super) async fn hold(
        self: &Arc<Self>,
        fresh: bool,
        deadline: Option<Instant>,
    ) -> Result<Held, TransportError> {
        for _ in 0..ROUNDS_MAX {
            let is_http1 = self.state().is_http1;
            let held = if is_http1 {
                self.hold_http1(fresh, deadline).await?
            } else {
                self.hold_http2(deadline).await?
            };
            if let Some(held) = held {
                return Ok(held);
            }
        }
        let message = "the server closes every connection as soon as it is made";
        Err(TransportError::new(TransportErrorKind::Closed, message).unprocessed())
    }

    /// A stream of a connection that has room for one now.
    pub(super) fn free_stream(&self) -> Option<Held> {
        let mut state = self.state();
        if state.is_http1 {
            return None;
        }
        state.take_stream(&self.options)
    }

    /// A stream of a connection; `None` when one was made and it is not there
    /// any more, or speaks HTTP/1.1.
    async fn hold_http2(
        self: &Arc<Self>,
        deadline: Option<Instant>,
    ) -> Result<Option<Held>, TransportError> {
        let mut was_made = false;
        loop {
            // Registered before the look, so that nothing is missed between.
            let mut room = pin!(self.room.notified());
            room.as_mut().enable();
            match self.pick() {
                Pick::Stream(held) => return Ok(Some(held)),
                Pick::Full => {
                    let connections = self.options.http2_connections_max;
                    by(deadline, room, || self.no_stream(connections)).await?;
                }
                Pick::Connecting(_, 0) if was_made => return Ok(None),
                Pick::Connecting(outcome, 0) => {
                    let what = || format!("a connection to {}", self.endpoint);
                    by(deadline, made(outcome), what).await??;
                    was_made = true;
                    if self.state().is_http1 {
                        return Ok(None);
                    }
                }
                Pick::Connecting(outcome, others) => {
                    let more = async {
                        tokio::select! {
                            () = room.as_mut() => return,
                            result = made(outcome) => if result.is_ok() { return },
                        }
                        // The server wants no further connection now.
                        room.await;
                    };
                    by(deadline, more, || self.no_stream(others)).await?;
                }
            }
        }
    }

    fn no_stream(&self, connections: usize) -> String {
        format!(
            "a stream: all that the server and http2_streams_max ({}) allow on {connections} connections to {} are in use (http2_connections_max is {})",
            self.options.http2_streams_max, self.endpoint, self.options.http2_connections_max
        )
    }

    /// A stream that is free; else one more connection, which is made in a task
    /// of its own, so that a caller that gives up does not take it from the
    /// others.
    fn pick(self: &Arc<Self>) -> Pick {
        let mut state = self.state();
        if let Some(held) = state.take_stream(&self.options) {
            return Pick::Stream(held);
        }
        let others = state.http2.len();
        if let Some(outcome) = &state.connecting {
            return Pick::Connecting(outcome.clone(), others);
        }
        if others >= self.options.http2_connections_max {
            return Pick::Full;
        }
        let (tell, outcome) = watch::channel(None);
        state.connecting = Some(outcome.clone());
        let pool = Arc::clone(self);
        tokio::spawn(async move {
            let making = Making(&pool);
            let result = pool.connect_for_all().await;
            drop(making);
            // Nobody may be waiting any more.
            let _ = tell.send(Some(result));
        });
        Pick::Connecting(outcome, others)
    }

    /// An HTTP/1.1 connection; `None` when the one that was made speaks HTTP/2.
    async fn hold_http1(
        self: &Arc<Self>,
        fresh: bool,
        deadline: Option<Instant>,
    ) -> Result<Option<Held>, TransportError> {
        let what = || {
            let connections = self.options.http1_connections_max;
            format!(
                "one of the {connections} HTTP/1.1 connections to {} (http1_connections_max)",
                self.endpoint
            )
        };
        let permits = Arc::clone(&self.http1_permits);
        let permit = by(deadline, permits.acquire_owned(), what).await?;
        let permit = permit.map_err(|error| {
            TransportError::new(TransportErrorKind::Canceled, "the channel is closed")
                .unprocessed()
                .with_source(error)
        })?;
        if fresh {
            self.state().idle.clear();
        }
        while let Some(mut sender) = self.idle() {
            if let Ok(Ok(())) = timeout(READY_TIMEOUT, sender.ready()).await {
                return Ok(Some(Held::Http1(sender, permit)));
            }
        }
        let what = || format!("a connection to {}", self.endpoint);
        let made = by(deadline, self.connect(), what).await??;
        Ok(match made {
            Connection::Http1(sender) => Some(Held::Http1(sender, permit)),
            Connection::Http2(connection) => {
                self.keep_http2(connection);
                None
            }
        })
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether there is a connection, or each exchange makes its own.
    pub(super) fn is_connected(&self) -> bool {
        let state = self.state();
        state.is_http1 || state.http2.iter().any(Multiplexed::is_usable)
    }

    /// Lets no further exchange have this connection.
    pub(super) fn forget(&self, failed: &Multiplexed) {
        self.state().http2.retain(|kept| !kept.is_same(failed));
        self.room.notify_waiters();
    }

    fn keep_http2(self: &Arc<Self>, connection: Multiplexed) {
        let mut state = self.state();
        state.http2.push(connection);
        state.is_http1 = self.options.http1;
        if state.http2.len() > 1 {
            self.reap_later(&mut state);
        }
        self.room.notify_waiters();
    }

    async fn connect(&self) -> Result<Connection, TransportError> {
        let limit = self.options.connect_timeout;
        let connecting = async {
            let dialed = dial(&self.endpoint, &self.options, self.tls.as_ref()).await?;
            if dialed.version == HttpVersion::Http1 {
                let sender = begin_http1(dialed.io, &self.options).await?;
                return Ok(Connection::Http1(sender));
            }
            let room = Arc::clone(&self.room);
            let (endpoint, options) = (&self.endpoint, &self.options);
            Multiplexed::begin(dialed.io, endpoint, options, &self.calm, room)
                .await
                .map(Connection::Http2)
        };
        timeout(limit, connecting)
            .await
            .unwrap_or_else(|_| Err(took_too_long(&self.endpoint, limit)))
    }

    async fn connect_for_all(self: &Arc<Self>) -> Result<(), TransportError> {
        match self.connect().await? {
            Connection::Http2(connection) => self.keep_http2(connection),
            Connection::Http1(sender) => {
                self.state().is_http1 = true;
                self.give_back(sender);
            }
        }
        Ok(())
    }

    /// The idle connection that was used last.
    fn idle(&self) -> Option<http1::SendRequest<RequestBody>> {
        let mut state = self.state();
        loop {
            let idle = state.idle.pop()?;
            let is_fresh = idle.since.elapsed() < self.options.idle_timeout;
            if is_fresh && !idle.sender.is_closed() {
                return Some(idle.sender);
            }
        }
    }

    /// Keeps an HTTP/1.1 connection for a later exchange.
    pub(super) fn give_back(self: &Arc<Self>, sender: http1::SendRequest<RequestBody>) {
        let mut state = self.state();
        if sender.is_closed() || state.idle.len() >= self.options.http1_idle_connections_max {
            return;
        }
        let since = Instant::now();
        state.idle.push(Idle { sender, since });
        self.reap_later(&mut state);
    }

    fn reap_later(self: &Arc<Self>, state: &mut State) {
        // A body may be dropped outside of a runtime; then the next lease reaps.
        let Ok(runtime) = tokio::runtime::Handle::try_current() else {
            return;
        };
        if !std::mem::replace(&mut state.is_reaping, true) {
            let due = Instant::now() + self.options.idle_timeout;
            runtime.spawn(reap(Arc::downgrade(self), due));
        }
    }

    /// Closes what has been idle for too long, but for the first connection of
    /// HTTP/2; when to look again.
    fn reap(&self) -> Option<Instant> {
        let mut state = self.state();
        let timeout = self.options.idle_timeout;
        state
            .idle
            .retain(|idle| idle.since.elapsed() < timeout && !idle.sender.is_closed());
        let now = Instant::now();
        let mut next = state.idle.iter().map(|idle| idle.since + timeout).min();
        let mut is_first = true;
        state.http2.retain(|connection| {
            if !connection.is_usable() {
                return false;
            }
            if std::mem::take(&mut is_first) {
                return true;
            }
            let due = connection.peer().idle_since().unwrap_or(now) + timeout;
            let is_kept = due > now;
            if is_kept {
                next = Some(next.map_or(due, |next| next.min(due)));
            }
            is_kept
        });
        state.is_reaping = next.is_some();
        next
    }
}

impl State {
    /// A stream of the first connection with room, so that those further back
    /// come to rest.
    fn take_stream(&mut self, options: &ClientOptions) -> Option<Held> {
        self.http2.retain(Multiplexed::is_usable);
        self.http2.iter().find_map(|connection| {
            let slot = connection.peer().take_stream(options.http2_streams_max)?;
            Some(Held::Http2(connection.clone(), slot))
        })
    }
}

/// A connection that was just made.
enum Connection {
    Http1(http1::SendRequest<RequestBody>),
    Http2(Multiplexed),
}

/// Marks the connection that is being made; gone when that is done, or its task is.
struct Making<'a>(&'a Pool);

impl Drop for Making<'_> {
    fn drop(&mut self) {
        self.0.state().connecting = None;
    }
}

/// Waits for the connection that is made for all.
async fn made(mut outcome: Outcome) -> Result<(), TransportError> {
    let result = outcome.wait_for(Option::is_some).await;
    match result.as_deref() {
        Ok(Some(result)) => result.clone(),
        _ => {
            let message = "the runtime is shutting down";
            Err(TransportError::new(TransportErrorKind::Canceled, message).unprocessed())
        }
    }
}

/// Waits until the deadline at most; then says for what.
async fn by<T>(
    deadline: Option<Instant>,
    work: impl Future<Output = T>,
    what: impl FnOnce() -> String,
) -> Result<T, TransportError> {
    let Some(deadline) = deadline else {
        return Ok(work.await);
    };
    timeout_at(deadline, work).await.map_err(|_| {
        let message = format!("the deadline passed while waiting for {}", what());
        TransportError::new(TransportErrorKind::Timeout, message).unprocessed()
    })
}

async fn reap(pool: Weak<Pool>, mut due: Instant) {
    loop {
        sleep_until(due).await;
        let Some(pool) = pool.upgrade() else {
            return;
        };
        let Some(next) = pool.reap() else { return };
        due = next;
    }
}
