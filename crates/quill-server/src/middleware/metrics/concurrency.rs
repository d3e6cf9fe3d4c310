//! What the limits on concurrent calls show.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use super::family::{Family, Kind, Series, Times, Value, number};
use super::method::QueueTimes;
use super::sharded::Sharded;

/// Why a call was refused.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Shed {
    /// There was no room, and none to wait in.
    Full,
    /// It had waited for as long as it may.
    Waited,
}

const SHED: [(Shed, &str); 2] = [(Shed::Full, "full"), (Shed::Waited, "waited")];

/// What one limit shows.
#[derive(Debug)]
pub(crate) struct ConcurrencyCounts {
    pub(super) name: String,
    /// Empty where the limit is of many.
    pub(super) method: String,
    limit: AtomicUsize,
    in_flight: AtomicUsize,
    queued: AtomicUsize,
    shed: Sharded<{ SHED.len() }>,
    waited: QueueTimes,
}

impl ConcurrencyCounts {
    pub(super) fn new(name: &str, method: &str) -> Self {
        Self {
            name: name.to_owned(),
            method: method.to_owned(),
            limit: AtomicUsize::new(0),
            in_flight: AtomicUsize::new(0),
            queued: AtomicUsize::new(0),
            shed: Sharded::new(),
            waited: QueueTimes::new(),
        }
    }

    /// How it stands now.
    pub(crate) fn show(&self, limit: usize, in_flight: usize, queued: usize) {
        self.limit.store(limit, Ordering::Relaxed);
        self.in_flight.store(in_flight, Ordering::Relaxed);
        self.queued.store(queued, Ordering::Relaxed);
    }

    /// A call was refused.
    pub(crate) fn shed(&self, why: Shed) {
        self.shed.add(why as usize, 1);
    }

    /// A call waited for so long, for its turn or for nothing.
    pub(crate) fn waited(&self, time: Duration) {
        self.waited.add(time);
    }
}

/// A figure of a limit.
type Figure = fn(&ConcurrencyCounts) -> &AtomicUsize;

const FIGURES: [(&str, &str, Figure); 3] = [
    (
        "quill_server_concurrency_limit",
        "Calls that may be under way at once.",
        |counts| &counts.limit,
    ),
    (
        "quill_server_concurrency_in_flight_calls",
        "Calls that are under way and count against the limit.",
        |counts| &counts.in_flight,
    ),
    (
        "quill_server_concurrency_queued_calls",
        "Calls that wait until others have ended.",
        |counts| &counts.queued,
    ),
];

pub(super) fn families(limits: &[Arc<ConcurrencyCounts>]) -> Vec<Family> {
    if limits.is_empty() {
        return Vec::new();
    }
    let gauges = FIGURES.into_iter().map(|(name, help, figure)| {
        let value = |limit: &ConcurrencyCounts| figure(limit).load(Ordering::Relaxed) as u64;
        let series = limits.iter();
        let series = series.map(|limit| number(labels(limit), value(limit)));
        Family {
            name,
            help,
            kind: Kind::Gauge,
            series: series.collect(),
        }
    });
    let mut families: Vec<Family> = gauges.collect();
    families.push(shed(limits));
    families.push(waited(limits));
    families
}

fn shed(limits: &[Arc<ConcurrencyCounts>]) -> Family {
    let series = limits.iter().flat_map(|limit| {
        let sums = limit.shed.sums();
        SHED.iter().zip(sums).map(|((_, reason), sum)| {
            let mut labels = labels(limit);
            labels.push(("reason", (*reason).to_owned()));
            number(labels, sum)
        })
    });
    Family {
        name: "quill_server_concurrency_shed_total",
        help: "Calls that were refused, by why.",
        kind: Kind::Counter,
        series: series.collect(),
    }
}

fn waited(limits: &[Arc<ConcurrencyCounts>]) -> Family {
    let series = limits.iter().map(|limit| {
        let (buckets, nanos) = limit.waited.sums();
        Series {
            labels: labels(limit),
            value: Value::Times(Times { buckets, nanos }),
        }
    });
    Family {
        name: "quill_server_concurrency_queue_seconds",
        help: "How long calls waited that did not find room at once.",
        kind: Kind::Histogram,
        series: series.collect(),
    }
}

fn labels(limit: &ConcurrencyCounts) -> Vec<(&'static str, String)> {
    vec![
        ("limiter", limit.name.clone()),
        ("method", limit.method.clone()),
    ]
}
