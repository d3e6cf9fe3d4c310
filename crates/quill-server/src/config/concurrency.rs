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
            (None, Some(adaptive)) => ConcurrencyLimitLayer::adaptive(adaptive.limit()),
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
    fn limit(self) -> AdaptiveLimit {
        let mut limit = AdaptiveLimit::default();
        set(&mut limit.initial, self.initial);
        set(&mut limit.least, self.least);
        set(&mut limit.most, self.most);
        set(&mut limit.tolerance, self.tolerance);
        limit
    }
}
