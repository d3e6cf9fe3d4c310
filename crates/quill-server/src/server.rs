//! A server, from its address to its end.

use std::fmt;
use std::future::Future;
use std::net::SocketAddr;
use std::time::Duration;

use quill_core::{Budget, Cancellation};
use quill_transport::{Drained, HttpServer, Listener, Running};

use crate::builder::ServerBuilder;
use crate::error::ServeError;
use crate::http_service::Front;
use crate::middleware::metrics::PageService;

/// Where a server begins: [`Server::builder`].
///
/// ```no_run
/// # async fn example(echo: impl quill_server::Service) -> Result<(), quill_server::ServeError> {
/// use quill_server::{Server, shutdown_signal};
///
/// Server::builder()
///     .service(echo)
///     .bind("127.0.0.1:8080")
///     .await?
///     .serve_until(shutdown_signal())
///     .await
/// # }
/// ```
#[derive(Clone, Copy, Debug)]
pub struct Server(());

impl Server {
    /// A server without services, with the default settings.
    pub fn builder() -> ServerBuilder {
        ServerBuilder::new()
    }
}

/// A server whose sockets are bound; it accepts connections once it serves.
pub struct BoundServer {
    http: HttpServer,
    front: Front,
    budget: Budget,
    drain: Drain,
    metrics: Option<(HttpServer, PageService)>,
}

/// How a server ends.
#[derive(Debug)]
pub(crate) struct Drain {
    /// How long calls may go on.
    pub(crate) limit: Duration,
    /// Fires when the drain begins.
    pub(crate) begun: Cancellation,
}

impl BoundServer {
    pub(crate) fn new(http: HttpServer, front: Front, budget: Budget, drain: Drain) -> Self {
        Self {
            http,
            front,
            budget,
            drain,
            metrics: None,
        }
    }

    /// Answers with metrics on an address of its own.
    pub(crate) fn with_metrics_page(mut self, listener: Listener, page: PageService) -> Self {
        self.metrics = Some((HttpServer::new(listener), page));
        self
    }

    /// The address of its first TCP socket, with the port it got; `None` with
    /// Unix sockets alone.
    #[must_use]
    pub fn local_addr(&self) -> Option<SocketAddr> {
        self.http.local_addresses().first().copied()
    }

    /// Serves until `signal` resolves; then it accepts no more, lets the calls
    /// that are under way end, and cuts what is left at the drain limit.
    ///
    /// # Errors
    /// None today: what breaks while serving is a connection's own matter.
    pub async fn serve_until(self, signal: impl Future<Output = ()>) -> Result<(), ServeError> {
        let running = self.start();
        signal.await;
        let drained = running.shutdown().await;
        if drained.cut_connections > 0 {
            tracing::warn!(
                connections = drained.cut_connections,
                "the drain limit passed; connections with open calls were cut"
            );
        }
        Ok(())
    }

    /// Serves until the process ends.
    ///
    /// # Errors
    /// As [`serve_until`](Self::serve_until).
    pub async fn serve(self) -> Result<(), ServeError> {
        self.serve_until(std::future::pending()).await
    }

    /// Serves in a task of its own.
    #[must_use = "a running server that is dropped stops at once"]
    pub fn start(self) -> RunningServer {
        RunningServer {
            running: self.http.start(self.front),
            budget: self.budget,
            drain: self.drain,
            metrics: self.metrics.map(|(http, page)| http.start(page)),
        }
    }
}

impl fmt::Debug for BoundServer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("BoundServer")
            .field("http", &self.http)
            .finish_non_exhaustive()
    }
}

/// A server that serves. Dropped, it cuts its connections.
#[derive(Debug)]
pub struct RunningServer {
    running: Running,
    budget: Budget,
    drain: Drain,
    metrics: Option<Running>,
}

impl RunningServer {
    /// The address of its first TCP socket; `None` with Unix sockets alone.
    #[must_use]
    pub fn local_addr(&self) -> Option<SocketAddr> {
        self.running.local_addr()
    }

    /// Bytes that unfinished messages hold now, of all connections: what
    /// [`ServerBuilder::held_bytes_max`](crate::ServerBuilder::held_bytes_max) bounds.
    #[must_use]
    pub fn held_bytes(&self) -> usize {
        self.budget.held_bytes()
    }

    /// The address of the metrics page, where it has one of its own.
    #[must_use]
    pub fn metrics_addr(&self) -> Option<SocketAddr> {
        self.metrics.as_ref()?.local_addr()
    }

    /// Drains as [`BoundServer::serve_until`] does. Metrics can be read until the
    /// drain is done.
    pub async fn shutdown(self) -> Drained {
        self.drain.begun.cancel();
        let drained = self.running.shutdown(self.drain.limit).await;
        drop(self.metrics);
        drained
    }
}

/// Resolves when the process is asked to end: SIGINT or SIGTERM, Ctrl-C on Windows.
pub async fn shutdown_signal() {
    let interrupt = async {
        if tokio::signal::ctrl_c().await.is_err() {
            // No handler could be set: then no such signal is seen.
            std::future::pending::<()>().await;
        }
    };
    tokio::select! {
        () = interrupt => {}
        () = terminated() => {}
    }
}

#[cfg(unix)]
async fn terminated() {
    use tokio::signal::unix::{SignalKind, signal};
    match signal(SignalKind::terminate()) {
        Ok(mut signals) => {
            signals.recv().await;
        }
        Err(_) => std::future::pending().await,
    }
}

#[cfg(not(unix))]
async fn terminated() {
    std::future::pending().await
}
