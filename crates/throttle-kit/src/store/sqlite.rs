//! Budgets that survive a restart of the process, in a SQLite file.
//!
//! For limits that are longer than a process lives: 100 an hour should not
//! become 100 a restart. Several processes of one machine may share the file.
//!
//! ```
//! # async fn demo() -> Result<(), throttle_kit::store::sqlite::SqliteStoreError> {
//! use throttle_kit::{Quota, RateLimiter, SqliteBackend};
//!
//! # let directory = std::env::temp_dir().join(format!("throttle-kit-doc-{}", std::process::id()));
//! # std::fs::create_dir_all(&directory).unwrap();
//! # let path = directory.join("limits.db");
//! let limiter = RateLimiter::new(Quota::per_hour(100), SqliteBackend::open(&path)?);
//! assert_eq!(limiter.check("mail to ann").await.remaining(), 99);
//!
//! drop(limiter);
//! let limiter = RateLimiter::new(Quota::per_hour(100), SqliteBackend::open(&path)?);
//! assert_eq!(limiter.check("mail to ann").await.remaining(), 98);
//! # std::fs::remove_dir_all(directory).unwrap();
//! # Ok(())
//! # }
//! # tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(demo()).unwrap();
//! ```
//!
//! The file belongs to one thread of its own, so no async thread ever waits for
//! a disk. Checks that arrive together are one transaction, and are answered
//! after it is committed: what was answered is not forgotten when the process
//! is killed. When the machine loses power, the last moments may be, unless
//! [`survive_power_loss`](SqliteBuilder::survive_power_loss) is set.
//!
//! Time is the machine's wall clock, because nothing else goes on between two
//! runs. A clock that is set back locks nobody out for longer than a burst takes
//! to come back; one that is set forward refills early.
//!
//! A key takes a row while it owes something. Each transaction that writes also
//! looks at some rows in turn and deletes those that are past, so the file stays
//! as large as the keys that are live. At [`bytes_max`](SqliteBuilder::bytes_max)
//! no new key is taken up: the policy for trouble, [`WhenDown`], answers. A key
//! is kept as long as it is: where clients choose keys, bound their length.

mod error;
mod writer;

use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::mpsc::{SyncSender, TrySendError, sync_channel};

use tokio::sync::oneshot;

pub use error::SqliteStoreError;

use self::writer::{Ask, Job, Settings, Writer};
use crate::backend::{Demand, Operation, RateLimitBackend};
use crate::decision::{Decision, JointDecision};
use crate::key::KeyRef;
use crate::quota::Quota;
use crate::store::WhenDown;
use crate::store::when_down::Fallback;

/// Keeps budgets in a SQLite file. See the [module](self).
///
/// A handle: clones share the file. It needs no runtime.
#[derive(Clone)]
pub struct SqliteBackend(Arc<Shared>);

struct Shared {
    jobs: SyncSender<Job>,
    fallback: Fallback,
    waiting_max: usize,
    path: PathBuf,
}

/// The settings of a [`SqliteBackend`]; started by [`SqliteBackend::builder`].
#[derive(Debug, Clone)]
#[must_use = "nothing is opened before `open`"]
pub struct SqliteBuilder {
    settings: Settings,
    when_down: WhenDown,
    waiting_max: usize,
}

impl SqliteBackend {
    /// Opens `path`, or creates it, with the default settings. Blocks shortly.
    ///
    /// # Errors
    ///
    /// If the file cannot be opened, or is not one of this crate.
    pub fn open(path: impl Into<PathBuf>) -> Result<Self, SqliteStoreError> {
        Self::builder(path).open()
    }

    /// Settings for the file at `path`.
    pub fn builder(path: impl Into<PathBuf>) -> SqliteBuilder {
        SqliteBuilder {
            settings: Settings {
                path: path.into(),
                bytes_max: 1 << 30,
                survive_power_loss: false,
            },
            when_down: WhenDown::default(),
            waiting_max: 4096,
        }
    }

    /// [`apply`](RateLimitBackend::apply) with an error where a limiter gets
    /// the policy's answer.
    ///
    /// # Errors
    ///
    /// What kept SQLite from deciding.
    pub async fn try_apply(
        &self,
        key: KeyRef<'_>,
        quota: &Quota,
        n: u32,
        operation: Operation,
    ) -> Result<Decision, SqliteStoreError> {
        let ask = Ask::new(key, quota, n);
        self.send(|reply| Job::One(ask, operation, reply)).await
    }

    /// [`apply_all`](RateLimitBackend::apply_all) with an error where a limiter
    /// gets the policy's answer.
    ///
    /// # Errors
    ///
    /// What kept SQLite from deciding.
    pub async fn try_apply_all(
        &self,
        demands: &[Demand<'_>],
    ) -> Result<JointDecision, SqliteStoreError> {
        let asks = demands
            .iter()
            .map(|demand| Ask::new(demand.key(), demand.quota(), demand.n()))
            .collect();
        self.send(|reply| Job::All(asks, reply)).await
    }

    async fn send<T>(
        &self,
        job: impl FnOnce(writer::Reply<T>) -> Job,
    ) -> Result<T, SqliteStoreError> {
        let (reply, answer) = oneshot::channel();
        self.0
            .jobs
            .try_send(job(reply))
            .map_err(|error| match error {
                TrySendError::Full(_) => SqliteStoreError::Overloaded {
                    waiting_max: self.0.waiting_max,
                },
                TrySendError::Disconnected(_) => SqliteStoreError::Closed,
            })?;
        answer.await.unwrap_or(Err(SqliteStoreError::Closed))
    }
}

impl SqliteBuilder {
    /// What to answer when the file cannot be read or written;
    /// [`WhenDown::Local`] unless set.
    pub const fn when_down(mut self, policy: WhenDown) -> Self {
        self.when_down = policy;
        self
    }

    /// The most checks that wait for the disk; the policy answers those
    /// beyond. 4096 unless set.
    pub const fn waiting_max(mut self, checks: usize) -> Self {
        self.waiting_max = checks;
        self
    }

    /// How large the file may grow, besides its log of a few MiB; 1 GiB unless
    /// set, at least 64 KiB. A key takes about 60 bytes besides its name.
    pub const fn bytes_max(mut self, bytes: u64) -> Self {
        self.settings.bytes_max = bytes;
        self
    }

    /// Waits for the disk at every transaction, so that not even a loss of
    /// power forgets an answer; off unless set. Costs milliseconds.
    pub const fn survive_power_loss(mut self, yes: bool) -> Self {
        self.settings.survive_power_loss = yes;
        self
    }

    /// Opens the file, or creates it, and starts the thread that owns it. The
    /// thread ends when the last clone of the backend is dropped.
    ///
    /// # Errors
    ///
    /// If the file cannot be opened, or is not one of this crate.
    pub fn open(self) -> Result<SqliteBackend, SqliteStoreError> {
        if self.waiting_max == 0 {
            return Err(SqliteStoreError::Config("waiting_max must be at least 1"));
        }
        if self.settings.bytes_max < 64 << 10 {
            return Err(SqliteStoreError::Config(
                "bytes_max must be at least 64 KiB",
            ));
        }
        let writer = Writer::open(&self.settings)?;
        let (jobs, queue) = sync_channel(self.waiting_max);
        std::thread::Builder::new()
            .name("throttle-sqlite".to_owned())
            .spawn(move || writer.run(&queue))
            .map_err(|error| SqliteStoreError::Failed(format!("no thread: {error}")))?;
        Ok(SqliteBackend(Arc::new(Shared {
            jobs,
            fallback: Fallback::new("sqlite", self.when_down),
            waiting_max: self.waiting_max,
            path: self.settings.path,
        })))
    }
}

impl RateLimitBackend for SqliteBackend {
    async fn apply(
        &self,
        key: KeyRef<'_>,
        quota: &Quota,
        n: u32,
        operation: Operation,
    ) -> Decision {
        match self.try_apply(key, quota, n, operation).await {
            Ok(decision) => {
                self.0.fallback.log_up();
                decision
            }
            Err(error) => {
                self.0.fallback.log_down(&error);
                self.0.fallback.apply(key, quota, n, operation)
            }
        }
    }

    async fn apply_all(&self, demands: &[Demand<'_>]) -> JointDecision {
        match self.try_apply_all(demands).await {
            Ok(decision) => {
                self.0.fallback.log_up();
                decision
            }
            Err(error) => {
                self.0.fallback.log_down(&error);
                self.0.fallback.apply_all(demands)
            }
        }
    }
}

impl fmt::Debug for SqliteBackend {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SqliteBackend")
            .field("path", &self.0.path)
            .finish_non_exhaustive()
    }
}
