//! What is wrong with settings.

use std::error::Error as StdError;
use std::fmt;

/// A setting that can't be used: where it stands, its key, and what is wrong.
///
/// Its text is `FILE:LINE: KEY: what is wrong`, or with the variable's name in place of
/// file and line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConfigError {
    place: String,
    key: String,
    message: String,
}

impl ConfigError {
    /// An error about a key; either text is empty where there is none.
    pub(crate) fn new(place: String, key: String, message: String) -> Self {
        Self {
            place,
            key,
            message,
        }
    }

    /// The key, such as `limits.receive_bytes_max`; empty where the whole file is meant.
    #[must_use]
    pub fn key(&self) -> &str {
        &self.key
    }

    /// What is wrong, and what is allowed.
    #[must_use]
    pub fn message(&self) -> &str {
        &self.message
    }
}

impl fmt::Display for ConfigError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let parts = [&self.place, &self.key, &self.message];
        let mut parts = parts.into_iter().filter(|part| !part.is_empty());
        if let Some(first) = parts.next() {
            f.write_str(first)?;
        }
        parts.try_for_each(|part| write!(f, ": {part}"))
    }
}

impl StdError for ConfigError {}
