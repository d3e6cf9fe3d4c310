//! What can go wrong before the first call.

use std::fmt;

use quill_core::Error;
use quill_transport::tls::TlsError;
use quill_transport::{OptionsError, TransportError};

/// A client that could not be set up: its URL, its settings, its connection.
#[derive(Debug)]
pub struct ConnectError(Kind);

#[derive(Debug)]
enum Kind {
    Transport(TransportError),
    Settings(String),
    /// No server takes calls.
    NotReady(Error),
}

impl ConnectError {
    pub(crate) fn setting(message: impl Into<String>) -> Self {
        Self(Kind::Settings(message.into()))
    }
}

impl From<TransportError> for ConnectError {
    fn from(error: TransportError) -> Self {
        Self(Kind::Transport(error))
    }
}

impl From<Error> for ConnectError {
    fn from(error: Error) -> Self {
        Self(Kind::NotReady(error))
    }
}

impl From<TlsError> for ConnectError {
    fn from(error: TlsError) -> Self {
        Self(Kind::Settings(error.to_string()))
    }
}

impl From<OptionsError> for ConnectError {
    fn from(error: OptionsError) -> Self {
        Self(Kind::Settings(error.to_string()))
    }
}

#[cfg(feature = "config")]
impl From<quill_config::ConfigError> for ConnectError {
    fn from(error: quill_config::ConfigError) -> Self {
        Self(Kind::Settings(error.to_string()))
    }
}

impl fmt::Display for ConnectError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            Kind::Transport(error) => error.fmt(f),
            Kind::Settings(message) => f.write_str(message),
            Kind::NotReady(error) => f.write_str(error.message()),
        }
    }
}

impl std::error::Error for ConnectError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match &self.0 {
            Kind::Transport(error) => error.source(),
            Kind::Settings(_) => None,
            Kind::NotReady(error) => error.source(),
        }
    }
}
