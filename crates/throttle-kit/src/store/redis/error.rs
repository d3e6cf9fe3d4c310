//! Why Redis did not decide.

use std::fmt;
use std::time::Duration;

/// Why Redis did not decide.
///
/// Limiters never see it: they get an answer by the policy for it. It is for
/// [`RedisBackend::try_apply`](super::RedisBackend::try_apply) and its like,
/// and for the log.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub enum RedisStoreError {
    /// An address, or another setting, that makes no sense.
    Config(String),
    /// No connection, or the server answered with an error.
    Server(String),
    /// No answer in time.
    TimedOut(Duration),
    /// It failed a moment ago, and is not asked again before the pause is over.
    Resting,
    /// More checks wait for an answer than may.
    Overloaded {
        /// How many may.
        waiting_max: usize,
    },
    /// The key holds something that this crate did not write. Another program
    /// uses the same prefix.
    ForeignKey,
    /// The script's reply is not one that it gives.
    Reply(String),
    /// On a Cluster, limits that are checked together must lie in one slot.
    CrossSlot {
        /// Which of the demands lies in another slot than the first.
        demand: usize,
        /// The slot of the first demand.
        expected: u16,
        /// The slot of that demand.
        slot: u16,
    },
    /// Polled outside a tokio runtime.
    NoRuntime,
}

impl fmt::Display for RedisStoreError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Config(what) => f.write_str(what),
            Self::Server(error) => write!(f, "redis: {error}"),
            Self::TimedOut(after) => write!(f, "redis did not answer within {after:?}"),
            Self::Resting => f.write_str("redis failed a moment ago and is not asked again yet"),
            Self::Overloaded { waiting_max } => {
                write!(f, "{waiting_max} checks wait for redis, no more may")
            }
            Self::ForeignKey => f.write_str(
                "the key in redis holds something that is not a rate limit: \
                 another program uses this prefix",
            ),
            Self::Reply(what) => {
                write!(f, "redis gave a reply that the script never gives: {what}")
            }
            Self::CrossSlot {
                demand,
                expected,
                slot,
            } => write!(
                f,
                "demand {demand} lies in slot {slot} of the cluster and demand 0 in {expected}: \
                 limits checked together need keys, or namespaces, with the same {{tag}}"
            ),
            Self::NoRuntime => f.write_str("redis can only be asked inside a tokio runtime"),
        }
    }
}

impl std::error::Error for RedisStoreError {}

impl From<redis::RedisError> for RedisStoreError {
    fn from(error: redis::RedisError) -> Self {
        Self::Server(error.to_string())
    }
}
