//! The counters of one method.

use std::sync::Arc;
use std::time::Duration;

use quill_core::{Code, Method, MethodKind};

use super::sharded::Sharded;

/// Upper bounds of the latency histogram's buckets: in nanoseconds, and as
/// Prometheus reads them, in seconds. What took longer is in none of them.
pub(super) const BOUNDS: [(u64, &str); 17] = [
    (50_000, "0.00005"),
    (100_000, "0.0001"),
    (250_000, "0.00025"),
    (500_000, "0.0005"),
    (1_000_000, "0.001"),
    (2_500_000, "0.0025"),
    (5_000_000, "0.005"),
    (10_000_000, "0.01"),
    (25_000_000, "0.025"),
    (50_000_000, "0.05"),
    (100_000_000, "0.1"),
    (250_000_000, "0.25"),
    (500_000_000, "0.5"),
    (1_000_000_000, "1"),
    (2_500_000_000, "2.5"),
    (5_000_000_000, "5"),
    (10_000_000_000, "10"),
];

/// Buckets of a histogram, that of all which took longer among them.
pub(super) const BUCKETS: usize = BOUNDS.len() + 1;

/// The bucket of what took so long.
#[inline]
pub(super) fn bucket(nanos: u64) -> usize {
    BOUNDS.partition_point(|(bound, _)| *bound < nanos)
}

pub(super) fn nanos(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}

// Where each counter of a method is.
const STARTED: usize = 0;
const RECEIVED_MESSAGES: usize = 1;
const RECEIVED_BYTES: usize = 2;
const SENT_MESSAGES: usize = 3;
const SENT_BYTES: usize = 4;
const NANOS: usize = 5;
/// By the number of the code; 0 is a good end.
const ENDED: usize = 6;
const ENDS: usize = Code::ALL.len() + 1;
const TOOK: usize = ENDED + ENDS;
const COUNTERS: usize = TOOK + BUCKETS;

/// The counters of one method, or of all calls that are of none.
#[derive(Debug)]
pub(crate) struct MethodCounts {
    pub(super) name: MethodName,
    counters: Sharded<COUNTERS>,
}

/// What a method is called in labels. It is one of the server's own, never what a
/// caller wrote.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct MethodName {
    pub(super) service: String,
    pub(super) method: String,
    pub(super) kind: &'static str,
}

impl MethodName {
    pub(super) fn of(method: &Method) -> Self {
        Self {
            service: method.service().to_owned(),
            method: method.name().to_owned(),
            kind: match method.kind() {
                MethodKind::Unary => "unary",
                MethodKind::ClientStreaming => "client_stream",
                MethodKind::ServerStreaming => "server_stream",
                MethodKind::BidiStreaming => "bidi_stream",
            },
        }
    }

    /// Of calls that are of no method.
    pub(super) fn unknown() -> Self {
        Self {
            service: "unknown".to_owned(),
            method: "unknown".to_owned(),
            kind: "unknown",
        }
    }
}

impl MethodCounts {
    pub(super) fn new(name: MethodName) -> Self {
        Self {
            name,
            counters: Sharded::new(),
        }
    }

    /// A call has begun.
    #[inline]
    pub(crate) fn started(&self) {
        self.counters.add(STARTED, 1);
    }

    /// A call has ended: well, or with this code.
    #[inline]
    pub(crate) fn ended(&self, failure: Option<Code>) {
        self.counters.add(ENDED + end(failure), 1);
    }

    /// As [`ended`](Self::ended), after so long.
    #[inline]
    pub(crate) fn ended_after(&self, failure: Option<Code>, time: Duration) {
        let nanos = nanos(time);
        let mine = self.counters.mine();
        mine.add(ENDED + end(failure), 1);
        mine.add(NANOS, nanos);
        mine.add(TOOK + bucket(nanos), 1);
    }

    /// A call that no handler saw.
    pub(crate) fn refused(&self, code: Code) {
        self.started();
        self.ended(Some(code));
    }

    /// A message came, of so many bytes before it was compressed.
    #[inline]
    pub(crate) fn received(&self, bytes: usize) {
        let mine = self.counters.mine();
        mine.add(RECEIVED_MESSAGES, 1);
        mine.add(RECEIVED_BYTES, bytes as u64);
    }

    /// Messages go out, of so many bytes together before they are compressed.
    #[inline]
    pub(super) fn sent(&self, messages: u64, bytes: u64) {
        let mine = self.counters.mine();
        mine.add(SENT_MESSAGES, messages);
        mine.add(SENT_BYTES, bytes);
    }

    /// Bytes that are of no message that was counted.
    #[inline]
    pub(super) fn bytes(&self, received: u64, sent: u64) {
        let mine = self.counters.mine();
        mine.add(RECEIVED_BYTES, received);
        mine.add(SENT_BYTES, sent);
    }

    pub(super) fn sums(&self) -> MethodSums {
        MethodSums(self.counters.sums())
    }
}

/// Which of the ends a call had.
#[inline]
fn end(failure: Option<Code>) -> usize {
    failure.map_or(0, |code| code.number() as usize)
}

/// What the counters of a method came to.
pub(super) struct MethodSums([u64; COUNTERS]);

impl MethodSums {
    fn at(&self, counter: usize) -> u64 {
        self.0.get(counter).copied().unwrap_or_default()
    }

    pub(super) fn started(&self) -> u64 {
        self.at(STARTED)
    }

    /// Calls that ended well, or with this code.
    pub(super) fn ended(&self, failure: Option<Code>) -> u64 {
        self.at(ENDED + end(failure))
    }

    pub(super) fn ended_in_all(&self) -> u64 {
        self.0.iter().skip(ENDED).take(ENDS).sum()
    }

    /// Calls that are under way. A call may end while the counters are read.
    pub(super) fn in_flight(&self) -> u64 {
        self.started().saturating_sub(self.ended_in_all())
    }

    pub(super) fn received_messages(&self) -> u64 {
        self.at(RECEIVED_MESSAGES)
    }

    pub(super) fn received_bytes(&self) -> u64 {
        self.at(RECEIVED_BYTES)
    }

    pub(super) fn sent_messages(&self) -> u64 {
        self.at(SENT_MESSAGES)
    }

    pub(super) fn sent_bytes(&self) -> u64 {
        self.at(SENT_BYTES)
    }

    pub(super) fn nanos(&self) -> u64 {
        self.at(NANOS)
    }

    /// How many calls are in each bucket.
    pub(super) fn took(&self) -> [u64; BUCKETS] {
        let took = self.0.get(TOOK..).unwrap_or_default();
        took.first_chunk().copied().unwrap_or([0; BUCKETS])
    }
}

/// How long calls waited for the layers to be ready for them.
#[derive(Debug)]
pub(super) struct QueueTimes(Sharded<{ BUCKETS + 1 }>);

impl QueueTimes {
    pub(super) fn new() -> Self {
        Self(Sharded::new())
    }

    #[inline]
    pub(super) fn add(&self, time: Duration) {
        let nanos = nanos(time);
        let mine = self.0.mine();
        mine.add(bucket(nanos), 1);
        mine.add(BUCKETS, nanos);
    }

    /// How many calls are in each bucket, and their nanoseconds together.
    pub(super) fn sums(&self) -> ([u64; BUCKETS], u64) {
        let sums = self.0.sums();
        let mut took = [0; BUCKETS];
        for (bucket, sum) in took.iter_mut().zip(sums) {
            *bucket = sum;
        }
        (took, sums.last().copied().unwrap_or_default())
    }
}

/// The counters of a server's methods, by the number of their route, and of all
/// else.
#[derive(Clone, Debug)]
pub(crate) struct KnownMethods(pub(super) Arc<Known>);

#[derive(Debug)]
pub(super) struct Known {
    pub(super) methods: Vec<Arc<MethodCounts>>,
    pub(super) unknown: Arc<MethodCounts>,
    pub(super) queue: Arc<QueueTimes>,
    /// Most bytes of a sent message: a larger one is not sent.
    pub(super) send_bytes_max: usize,
}

impl KnownMethods {
    /// The counters of the method of a route; `None` is no method.
    #[inline]
    pub(crate) fn of(&self, route: Option<usize>) -> &MethodCounts {
        let known = route.and_then(|route| self.0.methods.get(route));
        known.unwrap_or(&self.0.unknown)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bounds_ascend_are_what_they_are_written_as_and_belong_to_their_bucket() {
        for (index, (bound, text)) in BOUNDS.iter().enumerate() {
            let seconds: f64 = text.parse().unwrap();
            assert_eq!((seconds * 1e9).round() as u64, *bound, "{text}");
            assert_eq!(bucket(*bound), index, "{text}");
            assert_eq!(bucket(*bound + 1), index + 1, "{text}");
        }
        assert_eq!(bucket(0), 0);
        assert_eq!(bucket(u64::MAX), BUCKETS - 1);
    }

    #[test]
    fn ends_are_counted_by_their_code() {
        let counts = MethodCounts::new(MethodName::unknown());
        for _ in 0..20 {
            counts.started();
        }
        counts.ended(None);
        for code in Code::ALL {
            counts.ended_after(Some(code), Duration::from_millis(1));
        }
        let sums = counts.sums();
        for code in Code::ALL {
            assert_eq!(sums.ended(Some(code)), 1, "{code}");
        }
        assert_eq!(sums.ended_in_all(), 17);
        assert_eq!(sums.in_flight(), 3);
        assert_eq!(sums.nanos(), 16_000_000);
        assert_eq!(sums.took().iter().sum::<u64>(), 16);
        assert_eq!(sums.took()[4], 16);
    }
}
