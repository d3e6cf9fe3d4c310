//! The connection: made when needed, thrown away when it failed.

use std::sync::Arc;
use std::time::Duration;

use redis::aio::MultiplexedConnection;
use redis::cluster::ClusterClient;
use redis::cluster_async::ClusterConnection;
use redis::sentinel::SentinelClient;
use redis::{AsyncConnectionConfig, Client, Cmd, ErrorKind, RedisError, ServerErrorKind};
use tokio::sync::{Mutex, OwnedMutexGuard};
use tokio::task::JoinHandle;

use super::error::RedisStoreError;
use super::script::{self, Answer, Mode, Request};

/// How long a connection may take to be made, if checks may not take longer.
pub(super) const CONNECT_TIMEOUT: Duration = Duration::from_secs(1);

/// Whom to connect to.
pub(super) enum Target {
    Single(Client),
    Sentinel(Box<SentinelClient>),
    Cluster(Box<ClusterClient>),
}

/// One connection that all calls share: it is multiplexed.
pub(super) struct Link {
    established: Arc<Mutex<Slot>>,
    timeout: Duration,
}

struct Slot {
    target: Target,
    /// Counts connections, so that a late failure of an old one does not throw
    /// away its successor.
    generation: u64,
    connection: Option<Established>,
}

struct Established {
    connection: Connection,
    /// A task that does nothing and ends with the runtime that drives the
    /// connection; without it the connection is dead.
    runtime: JoinHandle<()>,
}

impl Drop for Established {
    fn drop(&mut self) {
        self.runtime.abort();
    }
}

#[derive(Clone)]
enum Connection {
    Plain(MultiplexedConnection),
    Cluster(ClusterConnection),
}

impl Connection {
    async fn send(&mut self, cmd: &Cmd) -> Result<Vec<i64>, RedisError> {
        match self {
            Self::Plain(connection) => cmd.query_async(connection).await,
            Self::Cluster(connection) => cmd.query_async(connection).await,
        }
    }
}

impl Link {
    pub(super) fn new(target: Target, timeout: Duration) -> Self {
        Self {
            established: Arc::new(Mutex::new(Slot {
                target,
                generation: 0,
                connection: None,
            })),
            timeout,
        }
    }

    /// One call of the script. Its keys must lie in one slot.
    pub(super) async fn call(
        &self,
        mode: Mode,
        requests: &[Request],
    ) -> Result<Vec<Result<Answer, RedisStoreError>>, RedisStoreError> {
        let mut used = None;
        let called = tokio::time::timeout(self.timeout, async {
            let (generation, mut connection) = self.connection().await?;
            used = Some(generation);
            let reply = connection.send(&script::by_hash(mode, requests)).await;
            match reply {
                Err(error) if error.kind() == ErrorKind::Server(ServerErrorKind::NoScript) => {
                    connection.send(&script::by_source(mode, requests)).await
                }
                reply => reply,
            }
        })
        .await;
        match called {
            Ok(Ok(reply)) => script::answers(&reply, requests.len()),
            Ok(Err(error)) => {
                if is_spoilt(&error) {
                    self.discard(used);
                }
                Err(error.into())
            }
            // The other end may be gone without a word: try another connection.
            Err(_) => {
                self.discard(used);
                Err(RedisStoreError::TimedOut(self.timeout))
            }
        }
    }

    async fn connection(&self) -> Result<(u64, Connection), RedisError> {
        let slot = Arc::clone(&self.established).lock_owned().await;
        if let Some(established) = &slot.connection
            && !established.runtime.is_finished()
        {
            return Ok((slot.generation, established.connection.clone()));
        }
        // In a task of its own: it goes on when this call has timed out, so
        // that the next one finds a connection that took longer to make.
        let timeout = self.timeout.max(CONNECT_TIMEOUT);
        tokio::spawn(establish(slot, timeout))
            .await
            .unwrap_or_else(|_| Err(std::io::Error::from(std::io::ErrorKind::Interrupted).into()))
    }

    fn discard(&self, used: Option<u64>) {
        // Who holds the lock is making another connection already.
        if let Ok(mut slot) = self.established.try_lock()
            && used == Some(slot.generation)
            // A cluster's connection is many, and mends each of them by itself.
            && !matches!(slot.target, Target::Cluster(_))
        {
            slot.connection = None;
        }
    }
}

async fn establish(
    mut slot: OwnedMutexGuard<Slot>,
    timeout: Duration,
) -> Result<(u64, Connection), RedisError> {
    slot.connection = None;
    let connection = tokio::time::timeout(timeout, slot.target.connect(timeout))
        .await
        .unwrap_or_else(|_| Err(std::io::Error::from(std::io::ErrorKind::TimedOut).into()))?;
    slot.generation += 1;
    slot.connection = Some(Established {
        connection: connection.clone(),
        runtime: tokio::spawn(std::future::pending()),
    });
    Ok((slot.generation, connection))
}

impl Target {
    async fn connect(&mut self, timeout: Duration) -> Result<Connection, RedisError> {
        let config = AsyncConnectionConfig::new()
            .set_connection_timeout(Some(timeout))
            // Each call has its own.
            .set_response_timeout(None);
        Ok(match self {
            Self::Single(client) => Connection::Plain(
                client
                    .get_multiplexed_async_connection_with_config(&config)
                    .await?,
            ),
            Self::Sentinel(client) => {
                Connection::Plain(client.get_async_connection_with_config(&config).await?)
            }
            Self::Cluster(client) => Connection::Cluster(client.get_async_connection().await?),
        })
    }
}

/// Whether the connection, or the node at its other end, is of no use any more.
fn is_spoilt(error: &RedisError) -> bool {
    error.is_unrecoverable_error()
        || error.is_io_error()
        || matches!(
            error.kind(),
            ErrorKind::Server(ServerErrorKind::ReadOnly | ServerErrorKind::MasterDown)
        )
}
