//! What is counted, apart from how it is written.

use std::sync::Arc;

use quill_core::Code;
use quill_transport::ConnectionCounts;

use super::concurrency::{self, ConcurrencyCounts};
use super::limiter::LimiterCounts;
use super::method::{BOUNDS, BUCKETS, MethodCounts, MethodName, MethodSums};

/// One metric with all its series, as
/// [`MetricsCollector::families`](crate::metrics::MetricsCollector::families) gives it.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Family {
    /// Its name, which tells the unit: `quill_server_handling_seconds`.
    pub name: &'static str,
    /// What it counts, in a sentence.
    pub help: &'static str,
    /// What kind of numbers it has.
    pub kind: Kind,
    /// Its series.
    pub series: Vec<Series>,
}

/// What kind of numbers a metric has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Numbers that only grow.
    Counter,
    /// Numbers that go up and down.
    Gauge,
    /// Times, by how many took how long.
    Histogram,
}

/// One series of a metric: its labels, and what was counted.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Series {
    /// Names and values.
    pub labels: Vec<(&'static str, String)>,
    /// What was counted.
    pub value: Value,
}

/// What was counted in a series.
#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    /// Of a counter or a gauge.
    Number(u64),
    /// Of a histogram.
    Times(Times),
}

/// How many things took how long.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Times {
    pub(super) buckets: [u64; BUCKETS],
    pub(super) nanos: u64,
}

impl Times {
    /// The upper bounds of all buckets but the last, in seconds, ascending.
    pub fn bounds() -> impl Iterator<Item = f64> {
        BOUNDS.iter().map(|(nanos, _)| *nanos as f64 / 1e9)
    }

    /// How many are in each bucket and in none before it; one bucket more than
    /// there are bounds.
    #[must_use]
    pub fn buckets(&self) -> &[u64] {
        &self.buckets
    }

    /// How many there are.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.buckets.iter().fold(0, |sum, n| sum.wrapping_add(*n))
    }

    /// What they took together, in seconds.
    #[must_use]
    pub fn seconds(&self) -> f64 {
        self.nanos as f64 / 1e9
    }
}

/// All there is to tell.
pub(super) struct All<'a> {
    pub(super) methods: Vec<&'a Arc<MethodCounts>>,
    pub(super) limiters: &'a [Arc<LimiterCounts>],
    pub(super) concurrency: &'a [Arc<ConcurrencyCounts>],
    pub(super) queue: ([u64; BUCKETS], u64),
    pub(super) connections: &'a ConnectionCounts,
}

impl All<'_> {
    pub(super) fn families(&self) -> Vec<Family> {
        let methods: Vec<(&MethodName, MethodSums)> = self
            .methods
            .iter()
            .map(|method| (&method.name, method.sums()))
            .collect();
        let mut families = counts(&methods);
        families.push(handled(&methods));
        families.push(latency(&methods));
        families.push(self.queue());
        families.extend(self.connections());
        families.extend(self.limiters());
        families.extend(concurrency::families(self.concurrency));
        families
    }

    fn queue(&self) -> Family {
        let (buckets, nanos) = self.queue;
        Family {
            name: "quill_server_queue_seconds",
            help: "Time for which calls waited until the layers were ready for them.",
            kind: Kind::Histogram,
            series: vec![Series {
                labels: Vec::new(),
                value: Value::Times(Times { buckets, nanos }),
            }],
        }
    }

    fn connections(&self) -> [Family; 5] {
        let of = self.connections;
        [
            one(
                "quill_server_connections_total",
                "Connections accepted.",
                Kind::Counter,
                of.accepted(),
            ),
            one(
                "quill_server_open_connections",
                "Connections that are open.",
                Kind::Gauge,
                of.open(),
            ),
            one(
                "quill_server_refused_connections_total",
                "Connections closed at once: their address had as many as it may.",
                Kind::Counter,
                of.refused(),
            ),
            one(
                "quill_server_displaced_connections_total",
                "Connections at rest that were cut to make room for others.",
                Kind::Counter,
                of.displaced(),
            ),
            one(
                "quill_server_aged_connections_total",
                "Connections whose peer was told to go for their age.",
                Kind::Counter,
                of.aged(),
            ),
        ]
    }

    fn limiters(&self) -> Vec<Family> {
        if self.limiters.is_empty() {
            return Vec::new();
        }
        let mut decisions = Vec::new();
        let mut degraded = Vec::new();
        for limiter in self.limiters {
            let (allowed, refused, by_policy) = limiter.sums();
            let name = ("limiter", limiter.name.clone());
            for (outcome, count) in [("allowed", allowed), ("refused", refused)] {
                let outcome = ("outcome", outcome.to_owned());
                decisions.push(number(vec![name.clone(), outcome], count));
            }
            degraded.push(number(vec![name], by_policy));
        }
        vec![
            Family {
                name: "quill_server_rate_limit_decisions_total",
                help: "What rate limits decided.",
                kind: Kind::Counter,
                series: decisions,
            },
            Family {
                name: "quill_server_rate_limit_degraded_total",
                help: "Decisions made by the policy for a store that could not be asked.",
                kind: Kind::Counter,
                series: degraded,
            },
        ]
    }
}

type Methods<'a> = [(&'a MethodName, MethodSums)];
/// A figure of a method.
type Figure = fn(&MethodSums) -> u64;

/// What each method has one figure of: its name, kind, help, and the figure.
const FIGURES: [(&str, Kind, &str, Figure); 6] = [
    (
        "quill_server_started_total",
        Kind::Counter,
        "Calls that began.",
        MethodSums::started,
    ),
    (
        "quill_server_in_flight_calls",
        Kind::Gauge,
        "Calls that are under way; of a streaming kind, open streams.",
        MethodSums::in_flight,
    ),
    (
        "quill_server_received_messages_total",
        Kind::Counter,
        "Messages received.",
        MethodSums::received_messages,
    ),
    (
        "quill_server_received_bytes_total",
        Kind::Counter,
        "Bytes of messages received, before compression.",
        MethodSums::received_bytes,
    ),
    (
        "quill_server_sent_messages_total",
        Kind::Counter,
        "Messages sent.",
        MethodSums::sent_messages,
    ),
    (
        "quill_server_sent_bytes_total",
        Kind::Counter,
        "Bytes of messages sent, before compression.",
        MethodSums::sent_bytes,
    ),
];

fn counts(methods: &Methods<'_>) -> Vec<Family> {
    let families = FIGURES.into_iter().map(|(name, kind, help, figure)| {
        let series = methods.iter();
        let series = series.map(|(method, sums)| number(labels(method), figure(sums)));
        Family {
            name,
            help,
            kind,
            series: series.collect(),
        }
    });
    families.collect()
}

fn handled(methods: &Methods<'_>) -> Family {
    let mut series = Vec::new();
    for (method, sums) in methods {
        let codes = Code::ALL.into_iter().map(Some);
        for failure in std::iter::once(None).chain(codes) {
            let count = sums.ended(failure);
            // A good end is always there, so that a rate has a zero to begin at.
            if count > 0 || failure.is_none() {
                let mut labels = labels(method);
                let code = failure.map_or("ok", Code::name);
                labels.push(("code", code.to_owned()));
                series.push(number(labels, count));
            }
        }
    }
    Family {
        name: "quill_server_handled_total",
        help: "Calls that ended, by their code.",
        kind: Kind::Counter,
        series,
    }
}

fn latency(methods: &Methods<'_>) -> Family {
    let begun = methods.iter().filter(|(_, sums)| sums.started() > 0);
    let series = begun.map(|(method, sums)| Series {
        labels: labels(method),
        value: Value::Times(Times {
            buckets: sums.took(),
            nanos: sums.nanos(),
        }),
    });
    Family {
        name: "quill_server_handling_seconds",
        help: "Time from a call's first message, or its head if it sends a stream, to its end.",
        kind: Kind::Histogram,
        series: series.collect(),
    }
}

/// A metric of one series, without labels.
fn one(name: &'static str, help: &'static str, kind: Kind, value: u64) -> Family {
    Family {
        name,
        help,
        kind,
        series: vec![number(Vec::new(), value)],
    }
}

pub(super) fn number(labels: Vec<(&'static str, String)>, value: u64) -> Series {
    Series {
        labels,
        value: Value::Number(value),
    }
}

fn labels(method: &MethodName) -> Vec<(&'static str, String)> {
    vec![
        ("service", method.service.clone()),
        ("method", method.method.clone()),
        ("kind", method.kind.to_owned()),
    ]
}
