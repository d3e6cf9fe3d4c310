//! What the limits on concurrent calls show.

use std::fmt::{self, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use super::method::QueueTimes;
use super::prometheus::{Escaped, head, histogram};
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

pub(super) fn write(out: &mut String, limits: &[Arc<ConcurrencyCounts>]) -> fmt::Result {
    if limits.is_empty() {
        return Ok(());
    }
    for (name, help, figure) in FIGURES {
        head(out, name, "gauge", help)?;
        for limit in limits {
            let value = figure(limit).load(Ordering::Relaxed);
            writeln!(out, "{name}{{{}}} {value}", Labels(limit))?;
        }
    }
    let name = "quill_server_concurrency_shed_total";
    head(out, name, "counter", "Calls that were refused, by why.")?;
    for limit in limits {
        let sums = limit.shed.sums();
        for ((_, reason), sum) in SHED.iter().zip(sums) {
            writeln!(out, "{name}{{{},reason=\"{reason}\"}} {sum}", Labels(limit))?;
        }
    }
    let name = "quill_server_concurrency_queue_seconds";
    let help = "How long calls waited that did not find room at once.";
    head(out, name, "histogram", help)?;
    for limit in limits {
        let (waited, nanos) = limit.waited.sums();
        histogram(out, name, &Labels(limit).to_string(), &waited, nanos)?;
    }
    Ok(())
}

struct Labels<'a>(&'a ConcurrencyCounts);

impl fmt::Display for Labels<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (name, method) = (Escaped(&self.0.name), Escaped(&self.0.method));
        write!(f, "limiter=\"{name}\",method=\"{method}\"")
    }
}
