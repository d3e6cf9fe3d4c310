//! What can go wrong before a server serves.

use std::error::Error as StdError;
use std::fmt;

use quill_transport::{BindError, OptionsError};

/// A server that could not be set up: a setting, or an address.
#[derive(Debug)]
pub struct ServeError(Kind);

#[derive(Debug)]
enum Kind {
    Bind(BindError),
    Options(OptionsError),
    Setting(String),
    #[cfg(feature = "config")]
    Config(quill_config::ConfigError),
}

impl ServeError {
    pub(crate) fn setting(message: String) -> Self {
        Self(Kind::Setting(message))
    }

    /// Whether the address is in use already.
    #[must_use]
    pub fn is_address_in_use(&self) -> bool {
        matches!(&self.0, Kind::Bind(error) if error.is_in_use())
    }

    /// Whether a setting is wrong, and not the address.
    #[must_use]
    pub fn is_setting(&self) -> bool {
        !matches!(&self.0, Kind::Bind(_))
    }
}

impl From<BindError> for ServeError {
    fn from(error: BindError) -> Self {
        Self(Kind::Bind(error))
    }
}

impl From<OptionsError> for ServeError {
    fn from(error: OptionsError) -> Self {
        Self(Kind::Options(error))
    }
}

#[cfg(feature = "config")]
impl From<quill_config::ConfigError> for ServeError {
    fn from(error: quill_config::ConfigError) -> Self {
        Self(Kind::Config(error))
    }
}

impl fmt::Display for ServeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            Kind::Bind(error) => error.fmt(f),
            Kind::Options(error) => error.fmt(f),
            Kind::Setting(message) => f.write_str(message),
            #[cfg(feature = "config")]
            Kind::Config(error) => error.fmt(f),
        }
    }
}

impl StdError for ServeError {
    fn source(&self) -> Option<&(dyn StdError + 'static)> {
        match &self.0 {
            Kind::Bind(error) => error.source(),
            Kind::Options(error) => error.source(),
            Kind::Setting(_) => None,
            #[cfg(feature = "config")]
            Kind::Config(error) => error.source(),
        }
    }
}
