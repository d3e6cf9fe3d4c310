//! How much callers may ask for.

use std::collections::BTreeMap;

use http::HeaderName;
use quill_config::{ConfigError, Read};
use serde::Deserialize;
use throttle_kit::{ClientIpConfig, IpNet};

use super::Settings;
use super::redis::Store;
use crate::middleware::metrics::MetricsCollector;
use crate::middleware::rate_limit::{RateLimitLayer, quota};

/// One limit.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct RateLimit {
    name: String,
    rate: f64,
    burst: f64,
    #[serde(default)]
    per: Vec<Per>,
    #[serde(default)]
    methods: BTreeMap<String, Rate>,
    #[serde(default)]
    shared: bool,
    #[serde(default)]
    trusted_proxies: Vec<String>,
    trusted_hops: Option<usize>,
    trusted_header: Option<String>,
}

/// Whose budget it is.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "lowercase")]
enum Per {
    Client,
    Identity,
    Method,
}

/// What one method has in place of the others' quota.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Rate {
    rate: f64,
    burst: f64,
}

impl RateLimit {
    /// Whether it has to know who calls.
    pub(super) fn is_of_identities(&self) -> bool {
        self.per.contains(&Per::Identity)
    }

    pub(super) fn is_shared(&self) -> bool {
        self.shared
    }

    /// `at` is its key.
    pub(super) fn layer(
        &self,
        at: &str,
        read: &Read<Settings>,
        store: Option<&Store>,
        metrics: Option<&MetricsCollector>,
    ) -> Result<RateLimitLayer, ConfigError> {
        let wrong =
            |key: &str, error: &dyn std::fmt::Display| read.error(&format!("{at}.{key}"), error);
        let of = quota(self.rate, self.burst).map_err(|error| wrong("rate", &error))?;
        let mut layer = RateLimitLayer::of(of).named(&self.name);
        let clients = self.clients(&wrong)?;
        for per in &self.per {
            layer = match per {
                Per::Client => layer.per_client(clients.clone()),
                Per::Identity => layer.per_identity(clients.clone()),
                Per::Method => layer.per_method(),
            };
        }
        for (path, Rate { rate, burst }) in &self.methods {
            quota(*rate, *burst).map_err(|error| wrong("methods", &format!("{path}: {error}")))?;
            layer = layer.method(path, *rate, *burst);
        }
        if self.shared {
            let store = store.ok_or_else(|| wrong("shared", &"it needs a redis section"))?;
            layer = store.hold(layer);
        }
        Ok(match metrics {
            Some(metrics) => layer.metrics(metrics),
            None => layer,
        })
    }

    fn clients(
        &self,
        wrong: &dyn Fn(&str, &dyn std::fmt::Display) -> ConfigError,
    ) -> Result<ClientIpConfig, ConfigError> {
        let nets = self.trusted_proxies.iter();
        let nets = nets.map(|net| IpNet::parse(net).map_err(|e| wrong("trusted_proxies", &e)));
        let header = self.trusted_header.as_deref().map(str::parse::<HeaderName>);
        Ok(ClientIpConfig {
            trusted_proxies: nets.collect::<Result<_, _>>()?,
            num_trusted_hops: self.trusted_hops.unwrap_or(0),
            trusted_header: header
                .transpose()
                .map_err(|error| wrong("trusted_header", &error))?,
        })
    }
}
