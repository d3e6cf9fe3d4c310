//! A client's settings from a file and the environment.

mod balance;
mod connections;
mod layers;
mod tls;

use std::collections::BTreeMap;
use std::fmt;
use std::path::{Path, PathBuf};
use std::str::FromStr as _;

pub use quill_config::ConfigError;
use quill_config::{Key, Read, Size, Sources, Time};
use quill_core::compression::Encoding;
use quill_core::{Format, Metadata};
use quill_wire::Protocol;
use serde::Deserialize;

use crate::builder::ClientBuilder;

/// What the names of environment variables begin with.
const PREFIX: &str = "QUILL_CLIENT_";

/// What a deployer sets of a client: where its servers are, and how calls hold out. Read
/// from a YAML file and the environment, and put into a builder by
/// [`ClientBuilder::configure`].
///
/// Variables win over the file: `QUILL_CLIENT_` and the key in capitals, with `__` between
/// nested ones. A program with several clients gives each a prefix
/// ([`load_with`](Self::load_with)). Relative paths are from the file's folder. The guide's
/// page on configuration lists all keys.
///
/// ```no_run
/// use quill_client::{ClientConfig, QuillClient};
///
/// let config = ClientConfig::load("orders-client.yaml")?;
/// let client = QuillClient::builder().configure(&config)?.build()?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone)]
pub struct ClientConfig(Read<Settings>);

/// All keys. What is not said leaves the builder as it is.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct Settings {
    base_url: Option<String>,
    protocol: Option<String>,
    format: Option<Written>,
    timeout: Option<Time>,
    connect_timeout: Option<Time>,
    http1: bool,
    use_get: Option<bool>,
    credits: Option<u32>,
    receive_bytes_max: Option<Size>,
    send_bytes_max: Option<Size>,
    compression: Compression,
    metadata: Sent,
    token_file: Option<PathBuf>,
    tls: Option<tls::Tls>,
    transport: connections::Transport,
    balance: Option<balance::BalanceSection>,
    retry: Option<layers::Retry>,
    hedge: Option<layers::HedgeSection>,
    circuit_breaker: Option<layers::Breaker>,
    rate_limit: Option<layers::Rate>,
}

/// What is sent with each call. Its values may be secrets, and are not shown.
#[derive(Clone, Default, Deserialize)]
#[serde(transparent)]
struct Sent(BTreeMap<String, String>);

impl fmt::Debug for Sent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.0.keys()).finish()
    }
}

#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Written {
    Proto,
    Json,
}

/// Whether and how requests are compressed.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct Compression {
    enabled: Option<bool>,
    level: Option<u8>,
    bytes_min: Option<Size>,
    encodings: Option<Vec<String>>,
}

impl ClientConfig {
    /// Reads a YAML file and the environment.
    ///
    /// # Errors
    /// A file that can't be read, a key that is not known or not well.
    pub fn load(path: impl AsRef<Path>) -> Result<Self, ConfigError> {
        Self::load_with(path, PREFIX)
    }

    /// As [`load`](Self::load), with variables of another prefix, such as `ORDERS_`.
    ///
    /// # Errors
    /// As [`load`](Self::load).
    pub fn load_with(path: impl AsRef<Path>, prefix: &str) -> Result<Self, ConfigError> {
        Self::read(Sources::file(path)?.with_environment(prefix))
    }

    /// Reads YAML without the environment; errors call it `name`.
    ///
    /// # Errors
    /// As [`load`](Self::load).
    pub fn parse(name: &str, yaml: &str) -> Result<Self, ConfigError> {
        Self::read(Sources::text(name, yaml))
    }

    fn read(sources: Sources) -> Result<Self, ConfigError> {
        let config = Self(sources.read()?);
        let read = &config.0;
        if let Some(url) = &read.value.base_url {
            read.without_login("base_url", url)?;
        }
        Ok(config)
    }

    /// All keys that there are, each with the environment variable that sets it; `None`
    /// for what is within a list.
    pub fn keys() -> impl Iterator<Item = (String, Option<String>)> {
        let keys = quill_config::keys::<Settings>().into_iter();
        keys.map(|key: Key| (key.name().to_owned(), key.variable(PREFIX)))
    }
}

impl fmt::Debug for ClientConfig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// Sets what was said.
fn set<T>(target: &mut T, said: Option<impl Into<T>>) {
    if let Some(said) = said {
        *target = said.into();
    }
}

impl ClientBuilder {
    /// Sets what `config` says, over what was set before; what is set after holds over it.
    ///
    /// # Errors
    /// A value out of its bounds, a file that it names and that can't be used.
    pub fn configure(self, config: &ClientConfig) -> Result<Self, ConfigError> {
        let read = &config.0;
        let settings = &read.value;
        let mut builder = settings.calls(self, read)?;
        builder = settings.compression.apply(builder, read)?;
        for (name, value) in &settings.metadata.0 {
            let sent = Metadata::new().append(name, value);
            sent.map_err(|error| read.error("metadata", error))?;
            builder = builder.metadata(name, value);
        }
        if let Some(tls) = &settings.tls {
            builder = builder.tls(tls.build(read)?);
        }
        if settings.transport.is_said() {
            builder = builder.transport(settings.transport.options(read)?);
        }
        if let Some(balance) = &settings.balance {
            builder = builder.balance(balance.balance(read)?);
        }
        if let Some(path) = &settings.token_file {
            builder = builder.tokens(layers::tokens(read.path(path)));
        }
        settings.layers(builder, read)
    }
}

impl Settings {
    fn calls(
        &self,
        mut builder: ClientBuilder,
        read: &Read<Self>,
    ) -> Result<ClientBuilder, ConfigError> {
        if let Some(url) = &self.base_url {
            builder = builder.base_url(url);
        }
        if let Some(name) = &self.protocol {
            let protocol = Protocol::from_name(name).ok_or_else(|| {
                let all: Vec<_> = Protocol::ALL.iter().map(|known| known.name()).collect();
                let wrong = format!(
                    "{name:?} can't be used: allowed is one of {}",
                    all.join(", ")
                );
                read.error("protocol", wrong)
            })?;
            builder = builder.protocol(protocol);
        }
        if let Some(format) = self.format {
            builder = builder.format(match format {
                Written::Proto => Format::Proto,
                Written::Json => Format::Json,
            });
        }
        if let Some(timeout) = self.timeout {
            builder = builder.timeout(timeout.duration());
        }
        if let Some(timeout) = self.connect_timeout {
            builder = builder.connect_timeout(timeout.duration());
        }
        if self.http1 {
            builder = builder.http1();
        }
        if let Some(enabled) = self.use_get {
            builder = builder.use_get(enabled);
        }
        if let Some(messages) = read.bounded("credits", self.credits, 1..)? {
            builder = builder.credits(messages);
        }
        if let Some(size) = self.receive_bytes_max {
            builder = builder.receive_bytes_max(size.bytes());
        }
        if let Some(size) = self.send_bytes_max {
            builder = builder.send_bytes_max(size.bytes());
        }
        Ok(builder)
    }
}

impl Compression {
    fn apply(
        &self,
        mut builder: ClientBuilder,
        read: &Read<Settings>,
    ) -> Result<ClientBuilder, ConfigError> {
        if let Some(enabled) = self.enabled {
            builder = builder.enable_compression(enabled);
        }
        if let Some(level) = read.bounded("compression.level", self.level, 1..=22)? {
            builder = builder.compression_level(level);
        }
        if let Some(size) = self.bytes_min {
            builder = builder.compress_bytes_min(size.bytes());
        }
        if let Some(names) = &self.encodings {
            let named = names.iter().map(|name| {
                let encoding = Encoding::from_str(name);
                encoding.map_err(|unknown| read.error("compression.encodings", unknown))
            });
            builder = builder.encodings(named.collect::<Result<Vec<_>, _>>()?);
        }
        Ok(builder)
    }
}
