//! The connections to one endpoint, shared by all who call it.

use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use hyper::client::conn::http1;
use quill_core::{HttpVersion, RequestHead, ResponseHead};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, watch};
use tokio::time::{Instant, sleep_until};

use super::connection::{self, Calm, Connection, Failed, Multiplexed};
use super::dial::dial;
use super::endpoint::Endpoint;
use super::options::ClientOptions;
use super::request_body::{Handle, RequestBody, Source};
use crate::body::{Body, RecvBody, Tie};
use crate::bounds::OptionsError;
use crate::error::{TransportError, TransportErrorKind};
use crate::tls::ClientTls;

/// The connections to one endpoint: one that all exchanges share on HTTP/2, a
/// small pool on HTTP/1.1. Made when first needed, and again when lost. Clones
/// share them.
#[derive(Clone)]
pub struct Channel(Arc<Shared>);

struct Shared {
    endpoint: Endpoint,
    options: ClientOptions,
    tls: ClientTls,
    calm: Calm,
    state: Mutex<State>,
    http1_permits: Arc<Semaphore>,
}

#[derive(Default)]
struct State {
    http2: Option<Multiplexed>,
    /// The outcome of the connection that is being made for all who wait.
    connecting: Option<watch::Receiver<Option<Result<(), TransportError>>>>,
    /// The last connection spoke HTTP/1.1, so each exchange makes its own.
    is_http1: bool,
    idle: Vec<Idle>,
    is_reaping: bool,
}

/// An HTTP/1.1 connection without an exchange.
struct Idle {
    sender: http1::SendRequest<RequestBody>,
    since: Instant,
}

/// A connection for one exchange.
enum Lease {
    Http1(http1::SendRequest<RequestBody>, OwnedSemaphorePermit),
    Http2(Multiplexed),
}

/// Connections that are made for one exchange, when each is closed before it
/// can be used: by a server that refuses the client's certificate, for one.
const LEASE_ROUNDS_MAX: usize = 3;

impl Channel {
    /// A channel to this endpoint; connects when it is first used.
    ///
    /// # Errors
    /// An option is out of its bounds.
    pub fn new(
        endpoint: Endpoint,
        options: ClientOptions,
        tls: ClientTls,
    ) -> Result<Self, OptionsError> {
        options.check()?;
        let http1_permits = Arc::new(Semaphore::new(options.http1_connections_max));
        let state = State {
            is_http1: options.http1,
            ..State::default()
        };
        Ok(Self(Arc::new(Shared {
            endpoint,
            options,
            tls,
            calm: Calm::default(),
            state: Mutex::new(state),
            http1_permits,
        })))
    }

    /// Where it leads.
    #[must_use]
    pub fn endpoint(&self) -> &Endpoint {
        &self.0.endpoint
    }

    /// Makes a connection now, if there is none, so that a mistake in the
    /// address shows at once.
    ///
    /// # Errors
    /// No connection can be made.
    pub async fn connect(&self) -> Result<(), TransportError> {
        match self.lease(false).await? {
            Lease::Http2(_) => {}
            Lease::Http1(sender, _) => self.0.give_back(sender),
        }
        Ok(())
    }

    /// Sends a request; resolves with the answer's head, which may come before
    /// the request's body has been sent. An authority that is empty becomes
    /// the endpoint's; the target is put behind the endpoint's prefix.
    ///
    /// Dropping the future, or the answer's body before its end, resets the
    /// exchange; what is left of the request's body is then dropped too. A
    /// request that the server has surely not begun to handle, as on a
    /// connection that it was closing, is sent once more on a new connection,
    /// provided no more than 64 KiB of its body had left.
    ///
    /// # Errors
    /// No connection can be made, or the exchange failed before the head.
    pub async fn send(
        &self,
        mut head: RequestHead,
        body: impl Body + 'static,
    ) -> Result<(ResponseHead, RecvBody), TransportError> {
        let endpoint = &self.0.endpoint;
        if !endpoint.prefix().is_empty() {
            head.target.insert_str(0, endpoint.prefix());
        }
        if head.authority.is_empty() {
            endpoint.authority().clone_into(&mut head.authority);
        }
        let first = self.exchange(&mut head, Source::new(Box::pin(body)), false);
        let failed = match first.await {
            Ok(answer) => return Ok(answer),
            Err(failed) => failed,
        };
        let Some(source) = failed.source else {
            return Err(failed.error);
        };
        tracing::debug!(error = %failed.error, "a request is sent once more");
        let second = self.exchange(&mut head, source, true).await;
        second.map_err(|failed| failed.error)
    }

    async fn exchange(
        &self,
        head: &mut RequestHead,
        source: Source,
        fresh: bool,
    ) -> Result<(ResponseHead, RecvBody), Failed> {
        let lease = self.lease(fresh).await.map_err(|error| Failed {
            error,
            source: None,
        })?;
        match lease {
            Lease::Http2(mut connection) => {
                head.version = HttpVersion::Http2;
                let sent = connection.send(&self.0.endpoint, head, source).await;
                let (head, body, handle) = sent.inspect_err(|failed| {
                    // A reset ends one stream, a head that can't be sent nothing,
                    // anything else the connection.
                    use TransportErrorKind::{Reset, Url};
                    if !matches!(failed.error.kind(), Reset(_) | Url) {
                        self.0.forget(&connection);
                    }
                })?;
                let tie = AnswerTie {
                    handle,
                    http1: None,
                };
                Ok((head, body.tied(Box::new(tie))))
            }
            Lease::Http1(mut sender, permit) => {
                head.version = HttpVersion::Http1;
                let sent = connection::send_http1(&mut sender, head, source).await;
                let (head, body, handle) = sent?;
                let http1 = Some(Http1Tie {
                    sender,
                    channel: Arc::downgrade(&self.0),
                    has_ended: false,
                    _permit: permit,
                });
                Ok((head, body.tied(Box::new(AnswerTie { handle, http1 }))))
            }
        }
    }

    /// A connection for one exchange; a fresh one is none of the HTTP/1.1
    /// connections kept for later, since they may be broken for the same reason.
    async fn lease(&self, fresh: bool) -> Result<Lease, TransportError> {
        for _ in 0..LEASE_ROUNDS_MAX {
            if !self.0.state().is_http1 {
                if let Some(connection) = self.0.http2() {
                    return Ok(Lease::Http2(connection));
                }
                self.connected().await?;
                continue;
            }
            let permit = self.permit().await?;
            if fresh {
                self.0.state().idle.clear();
            }
            while let Some(mut sender) = self.0.idle() {
                if sender.ready().await.is_ok() {
                    return Ok(Lease::Http1(sender, permit));
                }
            }
            match self.0.connect().await? {
                Connection::Http1(sender) => return Ok(Lease::Http1(sender, permit)),
                Connection::Http2(connection) => {
                    self.0.keep_http2(connection.clone());
                    return Ok(Lease::Http2(connection));
                }
            }
        }
        let message = "the server closes every connection as soon as it is made";
        Err(TransportError::new(TransportErrorKind::Closed, message).unprocessed())
    }

    async fn permit(&self) -> Result<OwnedSemaphorePermit, TransportError> {
        let permits = self.0.http1_permits.clone();
        permits.acquire_owned().await.map_err(|error| {
            TransportError::new(TransportErrorKind::Canceled, "the channel is closed")
                .unprocessed()
                .with_source(error)
        })
    }

    /// Waits for the connection that is made for all; begins to make it if
    /// nobody has. It is made in a task of its own, so that a caller that gives
    /// up does not take it from the others.
    async fn connected(&self) -> Result<(), TransportError> {
        let mut outcome = {
            let mut state = self.0.state();
            if let Some(outcome) = &state.connecting {
                outcome.clone()
            } else {
                let (tell, outcome) = watch::channel(None);
                state.connecting = Some(outcome.clone());
                let shared = self.0.clone();
                tokio::spawn(async move {
                    let made = Making(&shared);
                    let result = shared.connect_for_all().await;
                    drop(made);
                    // Nobody may be waiting any more.
                    let _ = tell.send(Some(result));
                });
                outcome
            }
        };
        let result = outcome.wait_for(Option::is_some).await;
        match result.as_deref() {
            Ok(Some(result)) => result.clone(),
            _ => {
                let message = "the runtime is shutting down";
                Err(TransportError::new(TransportErrorKind::Canceled, message).unprocessed())
            }
        }
    }
}

impl fmt::Debug for Channel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Channel")
            .field("endpoint", &self.0.endpoint)
            .finish_non_exhaustive()
    }
}

/// Marks the connection that is being made; gone when that is done, or its task is.
struct Making<'a>(&'a Shared);

impl Drop for Making<'_> {
    fn drop(&mut self) {
        self.0.state().connecting = None;
    }
}

impl Shared {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The shared connection, if it can still be used.
    fn http2(&self) -> Option<Multiplexed> {
        let mut state = self.state();
        state.http2.take_if(|connection| connection.is_closed());
        state.http2.clone()
    }

    fn forget(&self, failed: &Multiplexed) {
        let mut state = self.state();
        state.http2.take_if(|current| current.is_same(failed));
    }

    fn keep_http2(&self, connection: Multiplexed) {
        let mut state = self.state();
        state.http2 = Some(connection);
        state.is_http1 = self.options.http1;
    }

    async fn connect(&self) -> Result<Connection, TransportError> {
        let dialed = dial(&self.endpoint, &self.options, &self.tls).await?;
        Connection::begin(dialed, &self.options, &self.calm).await
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
            let is_fresh = idle.since.elapsed() < self.options.http1_idle_timeout;
            if is_fresh && !idle.sender.is_closed() {
                return Some(idle.sender);
            }
        }
    }

    /// Keeps a connection for a later exchange.
    fn give_back(self: &Arc<Self>, sender: http1::SendRequest<RequestBody>) {
        let mut state = self.state();
        if sender.is_closed() || state.idle.len() >= self.options.http1_idle_connections_max {
            return;
        }
        let since = Instant::now();
        state.idle.push(Idle { sender, since });
        // A body may be dropped outside of a runtime; then the next lease reaps.
        let Ok(runtime) = tokio::runtime::Handle::try_current() else {
            return;
        };
        if !std::mem::replace(&mut state.is_reaping, true) {
            let due = since + self.options.http1_idle_timeout;
            runtime.spawn(reap(Arc::downgrade(self), due));
        }
    }

    /// Closes what has been idle for too long; when to look again.
    fn reap(&self) -> Option<Instant> {
        let mut state = self.state();
        let timeout = self.options.http1_idle_timeout;
        state
            .idle
            .retain(|idle| idle.since.elapsed() < timeout && !idle.sender.is_closed());
        let next = state.idle.iter().map(|idle| idle.since + timeout).min();
        state.is_reaping = next.is_some();
        next
    }
}

async fn reap(channel: Weak<Shared>, mut due: Instant) {
    loop {
        sleep_until(due).await;
        let Some(channel) = channel.upgrade() else {
            return;
        };
        let Some(next) = channel.reap() else { return };
        due = next;
    }
}

/// What an answer's body holds on to.
struct AnswerTie {
    handle: Handle,
    http1: Option<Http1Tie>,
}

struct Http1Tie {
    sender: http1::SendRequest<RequestBody>,
    channel: Weak<Shared>,
    has_ended: bool,
    _permit: OwnedSemaphorePermit,
}

impl Tie for AnswerTie {
    fn ended(&mut self) {
        if let Some(http1) = &mut self.http1 {
            http1.has_ended = true;
        }
        // Both bodies are done: the connection is free already.
        if self.handle.is_ended() {
            self.free();
        }
    }
}

impl AnswerTie {
    fn free(&mut self) {
        if let Some(http1) = self.http1.take()
            && http1.has_ended
            && let Some(channel) = http1.channel.upgrade()
        {
            channel.give_back(http1.sender);
        }
    }
}

impl Drop for AnswerTie {
    fn drop(&mut self) {
        if self.handle.is_ended() {
            self.free();
        }
        self.handle.call_off();
    }
}
