//! What the keeper knows of each server.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use quill_core::Error;
use quill_exchange::from_transport;
use quill_transport::{TransportError, TransportErrorKind};
use quill_wire::Side;
use tokio::sync::mpsc;
use tokio::time::Instant;

use super::backend::Backend;
use super::health::{Checking, HealthCheck};
use super::keeper::Event;
use super::outlier::Outliers;
use super::settings::Balance;

/// A connection that ends sooner counts as an attempt that has failed.
const LASTING: Duration = Duration::from_secs(1);

/// Why a server can't be called; the source of a call's error for which there
/// was none.
#[derive(Clone, Debug)]
pub(crate) enum Failure {
    Transport(TransportError),
    /// It says that it takes no calls.
    NotServing,
    /// It did not say whether it takes any.
    Unchecked(Arc<Error>),
}

impl Failure {
    pub(super) fn to_error(&self) -> Error {
        let error = match self {
            Self::Transport(error) => from_transport(error.clone(), Side::Client),
            Self::NotServing | Self::Unchecked(_) => {
                Error::unavailable(self.to_string()).unprocessed()
            }
        };
        error.with_source(self.clone())
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Transport(error) => error.fmt(f),
            Self::NotServing => f.write_str("the server says that it takes no calls now"),
            Self::Unchecked(error) => write!(f, "the server's health check failed: {error}"),
        }
    }
}

impl std::error::Error for Failure {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Transport(error) => Some(error),
            Self::NotServing => None,
            Self::Unchecked(error) => Some(&**error),
        }
    }
}

/// A server and how it is.
#[derive(Debug)]
pub(super) struct Kept {
    pub(super) backend: Arc<Backend>,
    pub(super) link: Link,
    /// Attempts to connect that have failed since it was last connected for a
    /// while.
    failures: u32,
    /// When it was connected.
    since: Instant,
    pub(super) failure: Option<Failure>,
    ejected: Option<Instant>,
    ejections: u32,
    /// What it says of itself; `None` while it was not asked.
    health: Option<bool>,
    checking: Option<Checking>,
}

/// The connection to a server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Link {
    /// There is none, and nothing is in the way of making one.
    Idle,
    Connecting,
    Ready,
    /// None can be made; it is tried again then.
    Failed(Instant),
}

impl Kept {
    pub(super) fn new(backend: Arc<Backend>) -> Self {
        Self {
            backend,
            link: Link::Idle,
            failures: 0,
            since: Instant::now(),
            failure: None,
            ejected: None,
            ejections: 0,
            health: None,
            checking: None,
        }
    }

    /// Makes a connection, in a task of its own.
    pub(super) fn connect(&mut self, tell: &mpsc::Sender<Event>) {
        self.link = Link::Connecting;
        let (backend, tell) = (Arc::clone(&self.backend), tell.clone());
        tokio::spawn(async move {
            let result = match backend.client.channel() {
                Ok(channel) => channel.connect().await,
                // A backend is made with a channel.
                Err(_) => return,
            };
            // Without its keeper nobody waits for the connection.
            let _ = tell.send(Event::Connected(backend.id, result)).await;
        });
    }

    pub(super) fn connected(&mut self, check: Option<&HealthCheck>, tell: &mpsc::Sender<Event>) {
        self.link = Link::Ready;
        self.since = Instant::now();
        self.failure = None;
        self.health = None;
        self.checking =
            check.map(|check| check.start(self.backend.id, &self.backend.client, tell.clone()));
    }

    pub(super) fn failed(&mut self, error: TransportError, balance: &Balance, now: Instant) {
        self.failures = self.failures.saturating_add(1);
        self.link = Link::Failed(now + balance.reconnect.delay(self.failures));
        self.failure = Some(Failure::Transport(error));
        self.checking = None;
    }

    /// Its connection has gone. The next is made at once, unless this one was so
    /// short that it was none.
    pub(super) fn lost(&mut self, balance: &Balance, now: Instant) {
        if self.link != Link::Ready {
            return;
        }
        self.checking = None;
        if now.saturating_duration_since(self.since) >= LASTING {
            self.failures = 0;
            self.link = Link::Idle;
        } else {
            let message = format!(
                "the server at {} closed the connection as soon as it was made",
                self.backend.endpoint
            );
            let closed = TransportError::new(TransportErrorKind::Closed, message);
            self.failed(closed.unprocessed(), balance, now);
        }
    }

    pub(super) fn told(&mut self, health: Result<(), Failure>) {
        if self.checking.is_some() {
            self.health = Some(health.is_ok());
            self.failure = health.err();
        }
    }

    pub(super) fn eject(&mut self, outliers: &Outliers, now: Instant) {
        let time = outliers.time_after(self.ejections);
        tracing::info!(server = ?self.backend, ?time, "a server is left out, since its calls failed");
        self.ejected = Some(now + time);
        self.ejections = self.ejections.saturating_add(1);
    }

    pub(super) fn is_ejected(&self) -> bool {
        self.ejected.is_some()
    }

    /// Ends an ejection whose time is over; the time of one that goes on.
    pub(super) fn ejected_until(&mut self, now: Instant) -> Option<Instant> {
        if self.ejected.is_some_and(|until| until <= now) {
            self.ejected = None;
            self.backend.record.forget();
        }
        self.ejected
    }

    /// An interval has passed in which it was no outlier.
    pub(super) fn behaved(&mut self) {
        if self.ejected.is_none() {
            self.ejections = self.ejections.saturating_sub(1);
        }
    }

    /// Whether it takes calls, or may do so soon: else another is needed.
    pub(super) fn is_of_use(&self) -> bool {
        match self.link {
            Link::Connecting => true,
            Link::Ready => self.health != Some(false) && !self.is_ejected(),
            Link::Idle | Link::Failed(_) => false,
        }
    }

    /// Whether it is connected, and says that it takes calls where it is asked.
    pub(super) fn takes_calls(&self) -> bool {
        self.link == Link::Ready && (self.checking.is_none() || self.health == Some(true))
    }
}
