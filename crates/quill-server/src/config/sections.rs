//! Messages, calls, compression, CORS, metrics.

use std::str::FromStr as _;

use quill_config::{ConfigError, OrOff, Read, Size, Time};
use quill_core::DecodeLimits;
use quill_core::compression::Encoding;
use serde::Deserialize;

use super::Settings;
use super::connections::set;
use crate::builder::ServerBuilder;
use crate::cors::Cors;
use crate::middleware::metrics::{MetricsPage, PATH_FORM};

/// What messages may take.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(super) struct Messages {
    receive_bytes_max: Option<Size>,
    send_bytes_max: Option<Size>,
    held_bytes_max: Option<Size>,
    connection_held_bytes_max: Option<Size>,
    credits: Option<u32>,
    decode: Decode,
}

/// Bounds on decoding.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct Decode {
    depth_max: Option<u32>,
    unknown_fields_max: Option<usize>,
    element_bytes_max: Option<Size>,
}

impl Messages {
    pub(super) fn apply<L>(
        &self,
        mut builder: ServerBuilder<L>,
        read: &Read<Settings>,
    ) -> Result<ServerBuilder<L>, ConfigError> {
        if let Some(size) = self.receive_bytes_max {
            builder = builder.receive_bytes_max(size.bytes());
        }
        if let Some(size) = self.send_bytes_max {
            builder = builder.send_bytes_max(size.bytes());
        }
        // One message alone may have so many bytes.
        let held = builder.receive_bytes_max_so_far()..;
        let bytes = self.held_bytes_max.map(Size::bytes);
        if let Some(bytes) = read.bounded("messages.held_bytes_max", bytes, held.clone())? {
            builder = builder.held_bytes_max(bytes);
        }
        let bytes = self.connection_held_bytes_max.map(Size::bytes);
        let key = "messages.connection_held_bytes_max";
        if let Some(bytes) = read.bounded(key, bytes, held)? {
            builder = builder.connection_held_bytes_max(bytes);
        }
        if let Some(credits) = read.bounded("messages.credits", self.credits, 16..=65_536)? {
            builder = builder.credits(credits);
        }
        let mut limits = DecodeLimits::default();
        set(&mut limits.depth_max, self.decode.depth_max);
        set(
            &mut limits.unknown_fields_max,
            self.decode.unknown_fields_max,
        );
        let elements = self.decode.element_bytes_max.map(Size::bytes);
        set(&mut limits.element_bytes_max, elements);
        let is_said = self.decode.depth_max.is_some()
            || self.decode.unknown_fields_max.is_some()
            || elements.is_some();
        Ok(match is_said {
            true => builder.decode_limits(limits),
            false => builder,
        })
    }
}

/// How long calls may take.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(super) struct Calls {
    receive_timeout: Option<OrOff<Time>>,
    timeout_max: Option<Time>,
}

impl Calls {
    pub(super) fn apply<L>(&self, mut builder: ServerBuilder<L>) -> ServerBuilder<L> {
        if let Some(timeout) = self.receive_timeout {
            builder = builder.receive_timeout(timeout.value().map(Time::duration));
        }
        if let Some(timeout) = self.timeout_max {
            builder = builder.timeout_max(timeout.duration());
        }
        builder
    }
}

/// Whether and how answers are compressed.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(super) struct Compression {
    enabled: Option<bool>,
    level: Option<u8>,
    bytes_min: Option<Size>,
    encodings: Option<Vec<String>>,
    never: Vec<String>,
}

impl Compression {
    pub(super) fn apply<L>(
        &self,
        mut builder: ServerBuilder<L>,
        read: &Read<Settings>,
    ) -> Result<ServerBuilder<L>, ConfigError> {
        if let Some(enabled) = self.enabled {
            builder = builder.enable_compression(enabled);
        }
        if let Some(level) = read.bounded("compression.level", self.level, 1..=22)? {
            builder = builder.compression_level(level);
        }
        if let Some(size) = self.bytes_min {
            builder = builder.compress_bytes_min(size.bytes());
        }
        for path in &self.never {
            builder = builder.without_compression(path);
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

/// Which pages may call from a browser.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(super) struct CorsSection {
    origins: Vec<String>,
    any_origin: bool,
    request_metadata: Vec<String>,
    response_metadata: Vec<String>,
    allow_credentials: bool,
    max_age: Option<Time>,
}

impl CorsSection {
    pub(super) fn apply<L>(
        &self,
        builder: ServerBuilder<L>,
        read: &Read<Settings>,
    ) -> Result<ServerBuilder<L>, ConfigError> {
        let mut cors = match (self.any_origin, self.origins.is_empty()) {
            (true, true) => Cors::any_origin(),
            (false, false) => Cors::origins(&self.origins),
            (true, false) => {
                let wrong = "it can't be true where origins are listed";
                return Err(read.error("cors.any_origin", wrong));
            }
            (false, true) => {
                let wrong = "it lets nobody in: list origins, or set any_origin: true";
                return Err(read.error("cors", wrong));
            }
        };
        cors = cors
            .request_metadata(&self.request_metadata)
            .response_metadata(&self.response_metadata);
        if self.allow_credentials {
            cors = cors.allow_credentials();
        }
        if let Some(age) = self.max_age {
            cors = cors.max_age(age.duration());
        }
        cors.build().map_err(|error| read.error("cors", error))?;
        Ok(builder.cors(cors))
    }
}

/// What is counted, and where it can be read.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(super) struct Metrics {
    listen: Option<String>,
    path: Option<String>,
}

/// In place of an address: on the server's own.
const HERE: &str = "here";

impl Metrics {
    pub(super) fn apply<L>(
        &self,
        builder: ServerBuilder<L>,
        read: &Read<Settings>,
    ) -> Result<ServerBuilder<L>, ConfigError> {
        let page = match (self.listen.as_deref(), &self.path) {
            // Counted, for whoever has the collector.
            (None, None) => return Ok(builder),
            (None, Some(_)) => {
                let wrong = "there is no page: metrics.listen says where";
                return Err(read.error("metrics.path", wrong));
            }
            (Some(HERE), _) => MetricsPage::here(),
            (Some(address), _) => MetricsPage::on_address(address),
        };
        let page = match &self.path {
            Some(path) => page.at(path),
            None => page,
        };
        if !page.has_path() {
            let wrong = format!("{:?} can't be used: {PATH_FORM}", page.path);
            return Err(read.error("metrics.path", wrong));
        }
        Ok(builder.metrics_page(page))
    }
}
