//! Why SQLite did not decide.

use std::fmt;
use std::path::PathBuf;

/// Why SQLite did not decide, or the file could not be opened.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub enum SqliteStoreError {
    /// A setting that makes no sense.
    Config(&'static str),
    /// The file cannot be opened or is not ours.
    Open {
        /// Which file.
        path: PathBuf,
        /// Why.
        why: String,
    },
    /// A read or a write failed: the disk is full, the file has reached its
    /// bound, another process holds it for too long.
    Failed(String),
    /// More checks wait for the disk than may.
    Overloaded {
        /// How many may.
        waiting_max: usize,
    },
    /// The thread that owns the file is gone.
    Closed,
}

impl fmt::Display for SqliteStoreError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Config(what) => f.write_str(what),
            Self::Open { path, why } => {
                write!(f, "rate limits cannot be kept in {}: {why}", path.display())
            }
            Self::Failed(why) => write!(f, "sqlite: {why}"),
            Self::Overloaded { waiting_max } => {
                write!(f, "{waiting_max} checks wait for the disk, no more may")
            }
            Self::Closed => f.write_str("the thread that keeps rate limits in sqlite has ended"),
        }
    }
}

impl std::error::Error for SqliteStoreError {}

impl From<rusqlite::Error> for SqliteStoreError {
    fn from(error: rusqlite::Error) -> Self {
        Self::Failed(error.to_string())
    }
}
