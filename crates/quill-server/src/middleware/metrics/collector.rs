//! The counters of a process.

use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::SystemTime;

use quill_core::{Code, Method};
use quill_transport::ConnectionCounts;

use super::concurrency::ConcurrencyCounts;
use super::family::{All, Family};
use super::limiter::LimiterCounts;
use super::method::{Known, KnownMethods, MethodCounts, MethodName, QueueTimes};
use super::prometheus;

/// Counts what servers do. Clones are one collector.
///
/// [`ServerBuilder::metrics`](crate::ServerBuilder::metrics) feeds it. Calls of
/// other kinds (a gateway's, a queue's) are counted by hand with the `record_`
/// methods; they are of no method and have the labels `unknown`, as have requests
/// whose path no service has.
///
/// ```
/// use quill_core::Code;
/// use quill_server::metrics::MetricsCollector;
///
/// let metrics = MetricsCollector::new();
/// metrics.record_request();
/// metrics.record_bytes(100, 0);
/// metrics.record_failure(Code::NotFound);
///
/// let snapshot = metrics.snapshot();
/// assert_eq!((snapshot.requests, snapshot.failures), (1, 1));
/// assert!(metrics.prometheus().contains("code=\"not_found\"} 1"));
/// ```
#[derive(Clone)]
pub struct MetricsCollector(Arc<Shared>);

struct Shared {
    since: SystemTime,
    unknown: Arc<MethodCounts>,
    queue: Arc<QueueTimes>,
    connections: ConnectionCounts,
    /// What was registered, in that order.
    registered: Mutex<Registered>,
}

#[derive(Clone, Default)]
struct Registered {
    methods: Vec<Arc<MethodCounts>>,
    limiters: Vec<Arc<LimiterCounts>>,
    concurrency: Vec<Arc<ConcurrencyCounts>>,
}

/// What a collector had counted at one moment, over all methods.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct MetricsSnapshot {
    /// Calls that began.
    pub requests: u64,
    /// Calls that ended well.
    pub successes: u64,
    /// Calls that ended with an error.
    pub failures: u64,
    /// Calls that are under way.
    pub in_flight: u64,
    /// Messages received.
    pub received_messages: u64,
    /// Their bytes, before compression.
    pub received_bytes: u64,
    /// Messages sent.
    pub sent_messages: u64,
    /// Their bytes, before compression.
    pub sent_bytes: u64,
}

impl MetricsCollector {
    /// A collector that has counted nothing.
    #[must_use]
    pub fn new() -> Self {
        Self(Arc::new(Shared {
            since: SystemTime::now(),
            unknown: Arc::new(MethodCounts::new(MethodName::unknown())),
            queue: Arc::new(QueueTimes::new()),
            connections: ConnectionCounts::default(),
            registered: Mutex::default(),
        }))
    }

    /// Counts a call that begins; one of the two below ends it.
    #[inline]
    pub fn record_request(&self) {
        self.0.unknown.started();
    }

    /// Counts a call that ended well.
    #[inline]
    pub fn record_success(&self) {
        self.0.unknown.ended(None);
    }

    /// Counts a call that ended with this code.
    #[inline]
    pub fn record_failure(&self, code: Code) {
        self.0.unknown.ended(Some(code));
    }

    /// Counts bytes that a call received and sent.
    #[inline]
    pub fn record_bytes(&self, received: u64, sent: u64) {
        self.0.unknown.bytes(received, sent);
    }

    /// What was counted so far, over all methods. Calls go on meanwhile, so that
    /// the figures may be of slightly different moments.
    #[must_use]
    pub fn snapshot(&self) -> MetricsSnapshot {
        let mut snapshot = MetricsSnapshot::default();
        let registered = self.registered();
        for method in registered.methods.iter().chain([&self.0.unknown]) {
            let sums = method.sums();
            let (ended, successes) = (sums.ended_in_all(), sums.ended(None));
            snapshot.requests += sums.started();
            snapshot.successes += successes;
            snapshot.failures += ended.saturating_sub(successes);
            snapshot.in_flight += sums.in_flight();
            snapshot.received_messages += sums.received_messages();
            snapshot.received_bytes += sums.received_bytes();
            snapshot.sent_messages += sums.sent_messages();
            snapshot.sent_bytes += sums.sent_bytes();
        }
        snapshot
    }

    /// Everything in Prometheus' text format, version 0.0.4.
    #[must_use]
    pub fn prometheus(&self) -> String {
        prometheus::text(&self.families())
    }

    /// Everything, for who writes it in another format.
    #[must_use]
    pub fn families(&self) -> Vec<Family> {
        let Registered {
            methods,
            limiters,
            concurrency,
        } = self.registered().clone();
        let all = All {
            methods: methods.iter().chain([&self.0.unknown]).collect(),
            limiters: &limiters,
            concurrency: &concurrency,
            queue: self.0.queue.sums(),
            connections: &self.0.connections,
        };
        all.families()
    }

    /// When it was made: what it has counted, it has counted since.
    #[must_use]
    pub fn since(&self) -> SystemTime {
        self.0.since
    }

    /// The counters for the methods of a server, in this order. A method that
    /// another server has too is counted with it.
    pub(crate) fn methods<'a>(
        &self,
        methods: impl Iterator<Item = &'a Method>,
        send_bytes_max: usize,
    ) -> KnownMethods {
        let mut registered = self.registered();
        let methods = methods.map(|method| {
            let name = MethodName::of(method);
            let known = registered.methods.iter().find(|known| known.name == name);
            if let Some(known) = known {
                return Arc::clone(known);
            }
            let new = Arc::new(MethodCounts::new(name));
            registered.methods.push(Arc::clone(&new));
            new
        });
        KnownMethods(Arc::new(Known {
            methods: methods.collect(),
            unknown: Arc::clone(&self.0.unknown),
            queue: Arc::clone(&self.0.queue),
            send_bytes_max,
        }))
    }

    /// The counters for a limiter; limiters of one name are counted together.
    pub(crate) fn limiter(&self, name: &str) -> Arc<LimiterCounts> {
        let mut registered = self.registered();
        let known = registered.limiters.iter().find(|known| known.name == name);
        if let Some(known) = known {
            return Arc::clone(known);
        }
        let new = Arc::new(LimiterCounts::new(name.to_owned()));
        registered.limiters.push(Arc::clone(&new));
        new
    }

    /// What a limit on concurrent calls shows: that of a method, or of many; those of one
    /// name show what the last of them did.
    pub(crate) fn concurrency(&self, name: &str, method: &str) -> Arc<ConcurrencyCounts> {
        let mut registered = self.registered();
        let is_it = |c: &&Arc<ConcurrencyCounts>| c.name == name && c.method == method;
        if let Some(known) = registered.concurrency.iter().find(is_it) {
            return Arc::clone(known);
        }
        let new = Arc::new(ConcurrencyCounts::new(name, method));
        registered.concurrency.push(Arc::clone(&new));
        new
    }

    /// The counters for a server's connections.
    pub(crate) fn connections(&self) -> ConnectionCounts {
        self.0.connections.clone()
    }

    fn registered(&self) -> MutexGuard<'_, Registered> {
        let registered = self.0.registered.lock();
        registered.unwrap_or_else(PoisonError::into_inner)
    }
}

impl Default for MetricsCollector {
    fn default() -> Self {
        Self::new()
    }
}

impl fmt::Debug for MetricsCollector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("MetricsCollector")
            .field(&self.snapshot())
            .finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use quill_core::MethodKind;

    #[test]
    fn a_method_of_two_servers_is_counted_once_and_others_are_unknown() {
        let collector = MetricsCollector::new();
        let one = Method::new("/a.B/C", MethodKind::Unary);
        let other = Method::new("/a.B/D", MethodKind::Unary);
        let first = collector.methods([&one, &other].into_iter(), 1);
        let second = collector.methods([&other].into_iter(), 1);
        first.of(Some(1)).refused(Code::NotFound);
        second.of(Some(0)).refused(Code::NotFound);
        second.of(Some(7)).refused(Code::Unimplemented);
        second.of(None).refused(Code::Unimplemented);
        let text = collector.prometheus();
        let handled = |labels: &str| format!("quill_server_handled_total{{{labels}}} 2\n");
        let of_d = "service=\"a.B\",method=\"D\",kind=\"unary\",code=\"not_found\"";
        assert!(text.contains(&handled(of_d)), "{text}");
        let of_none =
            "service=\"unknown\",method=\"unknown\",kind=\"unknown\",code=\"unimplemented\"";
        assert!(text.contains(&handled(of_none)), "{text}");
        assert_eq!(collector.snapshot().requests, 4);
        assert_eq!(collector.snapshot().in_flight, 0);
    }

    #[test]
    fn what_is_recorded_by_hand_is_in_the_snapshot() {
        let collector = MetricsCollector::new();
        collector.record_request();
        collector.record_request();
        collector.record_request();
        collector.record_success();
        collector.record_failure(Code::Internal);
        collector.record_bytes(3, 4);
        let expected = MetricsSnapshot {
            requests: 3,
            successes: 1,
            failures: 1,
            in_flight: 1,
            received_bytes: 3,
            sent_bytes: 4,
            ..MetricsSnapshot::default()
        };
        assert_eq!(collector.clone().snapshot(), expected);
    }
}
