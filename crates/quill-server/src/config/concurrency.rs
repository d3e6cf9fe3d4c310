//! How many calls run at once.

use std::collections::BTreeMap;

use quill_config::{ConfigError, Read, Time};
use serde::Deserialize;

use super::Settings;
use super::connections::set;
use crate::middleware::concurrency::{AdaptiveLimit, ConcurrencyLimitLayer};
use crate::middleware::metrics::MetricsCollector;

/// One limit, fixed or adaptive.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct ConcurrencyLimit {
    name: String,
    most: Option<usize>,
    adaptive: Option<Adaptive>,
    #[serde(default)]
    per_method: bool,
    #[serde(default)]
    methods: BTreeMap<String, usize>,
    #[serde(default)]
    exempt: Vec<String>,
    queue: Option<Queue>,
    retry_after: Option<Time>,
}

/// As [`AdaptiveLimit`] has them.
#[derive(Clone, Copy, Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct Adaptive {
    initial: Option<usize>,
    least: Option<usize>,
    most: Option<usize>,
    tolerance: Option<f64>,
}

/// How many calls may wait, and for how long.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Queue {
    length: usize,
    wait_max: Time,
}

impl ConcurrencyLimit {
    /// `at` is its key.
    pub(super) fn layer(
        &self,
        at: &str,
        read: &Read<Settings>,
        metrics: Option<&MetricsCollector>,
    ) -> Result<ConcurrencyLimitLayer, ConfigError> {
        let mut layer = match (self.most, self.adaptive) {
            (Some(most), None) => ConcurrencyLimitLayer::new(most),
            (None, Some(adaptive)) => {
                let limit = adaptive.limit(&format!("{at}.adaptive"), read)?;
                ConcurrencyLimitLayer::adaptive(limit)
            }
            _ => return Err(read.error(at, "set one of most and adaptive")),
        };
        layer = layer.named(&self.name);
        if self.per_method {
            layer = layer.per_method();
        }
        for (path, most) in &self.methods {
            layer = layer.method(path, *most);
        }
        for path in &self.exempt {
            layer = layer.exempt(path);
        }
        if let Some(queue) = self.queue {
            layer = layer.queue(queue.length, queue.wait_max.duration());
        }
        if let Some(time) = self.retry_after {
            layer = layer.retry_after(time.duration());
        }
        Ok(match metrics {
            Some(metrics) => layer.metrics(metrics),
            None => layer,
        })
    }
}

impl Adaptive {
    /// `at` is its key.
    fn limit(self, at: &str, read: &Read<Settings>) -> Result<AdaptiveLimit, ConfigError> {
        let mut limit = AdaptiveLimit::default();
        let key = |name: &str| format!("{at}.{name}");
        set(
            &mut limit.least,
            read.bounded(&key("least"), self.least, 1..)?,
        );
        set(&mut limit.most, self.most);
        // Also where one of them is as it is unless said.
        read.bounded(&key("most"), Some(limit.most), limit.least..)?;
        let initial = read.bounded(&key("initial"), self.initial, limit.least..=limit.most)?;
        set(&mut limit.initial, initial);
        let tolerance = read.bounded(&key("tolerance"), self.tolerance, 1.0..)?;
        set(&mut limit.tolerance, tolerance);
        Ok(limit)
    }
}
