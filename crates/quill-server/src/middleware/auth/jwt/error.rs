//! Validators of tokens that can't be.

use std::error::Error as StdError;
use std::fmt;

/// A validator of tokens that can't be: a setting, or keys that can't be read.
#[derive(Debug)]
pub struct JwtError(String);

impl JwtError {
    pub(super) fn new(what: impl Into<String>) -> Self {
        Self(what.into())
    }
}

impl fmt::Display for JwtError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl StdError for JwtError {}
