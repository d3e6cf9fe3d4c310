//! A server's settings from a file and the environment.
//!
//! Each section is a file here: its keys, and the lines of the builder that they are.

mod access_log;
mod auth;
mod concurrency;
mod connections;
mod credentials;
mod layers;
mod rate_limit;
mod redis;
mod sections;
mod tls;

use std::fmt;
use std::path::Path;

use quill_config::{Key, Read, Sources, Time};
use serde::Deserialize;
use tower_layer::Stack as LayerStack;

pub use layers::ConfiguredLayers;
pub use quill_config::ConfigError;

use crate::builder::ServerBuilder;

/// What the names of environment variables begin with.
const PREFIX: &str = "QUILL_SERVER_";
const LISTEN_DEFAULT: &str = "127.0.0.1:8080";

/// What a deployer sets of a server: read from a YAML file and the environment, and
/// put into a builder by [`ServerBuilder::configure`].
///
/// Variables win over the file: `QUILL_SERVER_` and the key in capitals, with `__`
/// between nested ones, so that `QUILL_SERVER_TLS__KEY` is `tls.key`. What begins with
/// `[` or `{` is YAML, and an empty value takes the key away. Relative paths are from
/// the file's folder. Secrets are never in the settings: keys name the files that hold
/// them. The guide's page on configuration lists all keys.
///
/// ```no_run
/// # async fn example(echo: impl quill_server::Service) -> Result<(), Box<dyn std::error::Error>> {
/// use quill_server::{Server, ServerConfig, shutdown_signal};
///
/// let config = ServerConfig::load("quill-server.yaml")?;
/// Server::builder()
///     .configure(&config)?
///     .service(echo)
///     .bind(config.listen())
///     .await?
///     .serve_until(shutdown_signal())
///     .await?;
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct ServerConfig(Read<Settings>);

/// All keys. What is not said leaves the builder as it is.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct Settings {
    listen: Option<String>,
    per_core: Option<usize>,
    drain_limit: Option<Time>,
    drain_delay: Option<Time>,
    messages: sections::Messages,
    calls: sections::Calls,
    compression: sections::Compression,
    transport: connections::Transport,
    tls: Option<tls::Tls>,
    cors: Option<sections::CorsSection>,
    metrics: Option<sections::Metrics>,
    access_log: Option<access_log::AccessLog>,
    concurrency_limits: Vec<concurrency::ConcurrencyLimit>,
    auth: Option<auth::Auth>,
    rate_limits: Vec<rate_limit::RateLimit>,
    redis: Option<redis::Redis>,
}

impl ServerConfig {
    /// Reads a YAML file and the environment.
    ///
    /// # Errors
    /// A file that can't be read, a key that is not known or not well.
    pub fn load(path: impl AsRef<Path>) -> Result<Self, ConfigError> {
        Self::read(Sources::file(path)?.with_environment(PREFIX))
    }

    /// Reads the environment alone. Relative paths are from the working directory.
    ///
    /// # Errors
    /// As [`load`](Self::load).
    pub fn from_env() -> Result<Self, ConfigError> {
        Self::read(Sources::new().with_environment(PREFIX))
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
        let (read, settings) = (&config.0, &config.0.value);
        if let Some(redis) = &settings.redis {
            redis.check_logins(read)?;
        }
        if let Some(auth) = &settings.auth {
            auth.check_logins(read)?;
        }
        match is_address(config.listen()) {
            true => Ok(config),
            false => {
                let wrong = format!(
                    "{:?} can't be used: allowed is host:port, or unix:/path",
                    config.listen()
                );
                Err(config.0.error("listen", wrong))
            }
        }
    }

    /// The address to bind: `listen`, or `127.0.0.1:8080`.
    #[must_use]
    pub fn listen(&self) -> &str {
        self.0.value.listen.as_deref().unwrap_or(LISTEN_DEFAULT)
    }

    /// All keys that there are, each with the environment variable that sets it; `None`
    /// for what is within a list.
    pub fn keys() -> impl Iterator<Item = (String, Option<String>)> {
        let keys = quill_config::keys::<Settings>().into_iter();
        keys.map(|key: Key| (key.name().to_owned(), key.variable(PREFIX)))
    }
}

impl fmt::Debug for ServerConfig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl<L> ServerBuilder<L> {
    /// Sets what `config` says, over what was set before; what is set after holds over
    /// it. Its layers (limits, authentication) stand where this line stands among the
    /// others; a config without them adds none.
    ///
    /// # Errors
    /// A value out of its bounds, a file that it names and that can't be used. What only
    /// the services can tell, as that a rule names no method, [`bind`](Self::bind) does.
    pub fn configure(
        self,
        config: &ServerConfig,
    ) -> Result<ServerBuilder<LayerStack<ConfiguredLayers, L>>, ConfigError> {
        let read = &config.0;
        let settings = &read.value;
        let mut builder = self;
        if let Some(cores) = read.bounded("per_core", settings.per_core, 1..)? {
            builder = builder.per_core(cores);
        }
        if let Some(limit) = settings.drain_limit {
            builder = builder.drain_limit(limit.duration());
        }
        if let Some(delay) = settings.drain_delay {
            builder = builder.drain_delay(delay.duration());
        }
        builder = settings.messages.apply(builder, read)?;
        builder = settings.calls.apply(builder);
        builder = settings.compression.apply(builder, read)?;
        if settings.transport.is_said() {
            builder = settings.transport.apply(builder, read)?;
        }
        if let Some(tls) = &settings.tls {
            builder = tls.apply(builder, read)?;
        }
        if let Some(cors) = &settings.cors {
            builder = cors.apply(builder, read)?;
        }
        if let Some(log) = &settings.access_log {
            builder = log.apply(builder, read)?;
        }
        let mut collector = None;
        if let Some(metrics) = &settings.metrics {
            collector = Some(builder.collector_or_new());
            builder = metrics.apply(builder, read)?;
        }
        let layers = layers::layers(read, collector.as_ref())?;
        let is_needed = !layers.is_empty();
        Ok(builder.layer_if(is_needed, layers))
    }
}

/// Whether a text may be an address; binding it tells the rest.
fn is_address(text: &str) -> bool {
    let port = text.rsplit_once(':');
    let has_port = port.is_some_and(|(host, port)| !host.is_empty() && port.parse::<u16>().is_ok());
    text.starts_with("unix:") || has_port
}

/// Most bytes of a file with a secret.
const SECRET_BYTES_MAX: usize = 64 * 1024;

/// What is in a file with a secret, without the end of its line.
fn secret(path: &Path) -> Result<Vec<u8>, String> {
    let told = |error| format!("{}: {error}", path.display());
    let mut secret = std::fs::read(path).map_err(|error| told(error.to_string()))?;
    while matches!(secret.last(), Some(b'\n' | b'\r')) {
        secret.pop();
    }
    match secret.len() {
        0 => Err(told("it is empty".to_owned())),
        1..=SECRET_BYTES_MAX => Ok(secret),
        _ => Err(told("it has more than 64 KiB".to_owned())),
    }
}
