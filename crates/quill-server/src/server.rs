//! A server, from its address to its end.

use std::fmt;
use std::future::Future;
use std::net::SocketAddr;
use std::time::Duration;

use quill_core::Budget;
use quill_transport::tls::ServerTls;
use quill_transport::{Drained, HttpServer, Listener, Running};
use tokio::task::JoinHandle;

use crate::builder::ServerBuilder;
use crate::ending::Drain;
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
    tls_reload: Option<(ServerTls, Duration)>,
}

impl BoundServer {
    pub(crate) fn new(http: HttpServer, front: Front, budget: Budget, drain: Drain) -> Self {
        Self {
            http,
            front,
            budget,
            drain,
            metrics: None,
            tls_reload: None,
        }
    }

    /// Looks every so often for new certificates.
    pub(crate) fn with_tls_reload(mut self, reload: Option<(ServerTls, Duration)>) -> Self {
        self.tls_reload = reload;
        self
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

    /// Serves until `signal` resolves, and then ends well: its health becomes
    /// `NOT_SERVING`, the [delay](ServerBuilder::drain_delay) passes, it accepts no more,
    /// tells its peers to go, lets the calls that are under way end, cuts what is left at
    /// the [limit](ServerBuilder::drain_limit), and
    /// [flushes](ServerBuilder::on_shutdown).
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
            _tls_reload: self.tls_reload.map(|(tls, interval)| {
                EndedWhenDropped(tokio::spawn(async move { tls.watch(interval).await }))
            }),
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
    _tls_reload: Option<EndedWhenDropped>,
}

/// A task that goes with whom it works for.
#[derive(Debug)]
struct EndedWhenDropped(JoinHandle<()>);

impl Drop for EndedWhenDropped {
    fn drop(&mut self) {
        self.0.abort();
    }
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

    /// Drains as [`BoundServer::serve_until`] does. Metrics can be read until all
    /// is done.
    pub async fn shutdown(self) -> Drained {
        self.drain.begin().await;
        let drained = self.running.shutdown(self.drain.limit).await;
        self.drain.flushes.run().await;
        drop(self.metrics);
        drained
    }
}
