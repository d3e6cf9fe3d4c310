//! How a server ends.

use std::fmt;
use std::pin::Pin;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use quill_core::Draining;

/// How long one thing that is waited for at the end may take.
const FLUSH_LIMIT: Duration = Duration::from_secs(5);

/// How a server ends.
#[derive(Debug)]
pub(crate) struct Drain {
    /// How long it goes on as before, but for its health.
    pub(crate) delay: Duration,
    /// How long calls may go on after that.
    pub(crate) limit: Duration,
    /// What calls are told of it.
    pub(crate) phases: Draining,
    /// What is waited for when all calls have ended.
    pub(crate) flushes: Flushes,
}

impl Drain {
    /// Says that the server is about to end, goes on for the delay, and says that it ends.
    pub(crate) async fn begin(&self) {
        self.phases.asked().cancel();
        if !self.delay.is_zero() {
            tokio::time::sleep(self.delay).await;
        }
        self.phases.begun().cancel();
    }
}

type Flush = Pin<Box<dyn Future<Output = ()> + Send>>;

/// What is waited for at the end, in order. The lock is never waited for: it makes
/// futures, which one thread at a time may have, part of what many may see.
#[derive(Default)]
pub(crate) struct Flushes(Mutex<Vec<Flush>>);

impl Flushes {
    pub(crate) fn push(&mut self, flush: impl Future<Output = ()> + Send + 'static) {
        let flushes = self.0.get_mut().unwrap_or_else(PoisonError::into_inner);
        flushes.push(Box::pin(flush));
    }

    pub(crate) fn is_empty(&mut self) -> bool {
        let flushes = self.0.get_mut().unwrap_or_else(PoisonError::into_inner);
        flushes.is_empty()
    }

    pub(crate) async fn run(self) {
        let flushes = self.0.into_inner().unwrap_or_else(PoisonError::into_inner);
        for flush in flushes {
            if tokio::time::timeout(FLUSH_LIMIT, flush).await.is_err() {
                tracing::warn!("what on_shutdown waits for took over {FLUSH_LIMIT:?}, and is left");
            }
        }
    }
}

impl fmt::Debug for Flushes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Flushes")
    }
}

/// Resolves when the process is asked to end: SIGINT or SIGTERM, Ctrl-C on Windows.
/// On Unix it listens from the moment it is made, so that a signal is heard which comes
/// before anyone waits.
///
/// # Panics
/// Outside of a tokio runtime.
pub fn shutdown_signal() -> impl Future<Output = ()> + Send {
    let (interrupt, terminate) = (interrupt(), terminate());
    async {
        tokio::select! {
            () = interrupt => {}
            () = terminate => {}
        }
    }
}

#[cfg(unix)]
fn interrupt() -> impl Future<Output = ()> + Send {
    unix(tokio::signal::unix::SignalKind::interrupt())
}

#[cfg(unix)]
fn terminate() -> impl Future<Output = ()> + Send {
    unix(tokio::signal::unix::SignalKind::terminate())
}

#[cfg(unix)]
fn unix(kind: tokio::signal::unix::SignalKind) -> impl Future<Output = ()> + Send {
    let signals = tokio::signal::unix::signal(kind);
    async {
        match signals {
            Ok(mut signals) => {
                signals.recv().await;
            }
            // No handler could be set: then no such signal is seen.
            Err(_) => std::future::pending().await,
        }
    }
}

#[cfg(not(unix))]
async fn interrupt() {
    if tokio::signal::ctrl_c().await.is_err() {
        // No handler could be set: then no such signal is seen.
        std::future::pending::<()>().await;
    }
}

#[cfg(not(unix))]
async fn terminate() {
    std::future::pending().await
}
