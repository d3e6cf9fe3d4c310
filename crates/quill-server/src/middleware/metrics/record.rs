//! One call, from its beginning to its one end.

use std::time::Instant;

use quill_core::{Code, RequestParts};

use super::method::{KnownMethods, MethodCounts};
use crate::middleware::watch::{Arrivals, CallWatch, Ending};

/// Counts the end of a call, also of one that is dropped before it has one.
#[derive(Debug)]
pub(crate) struct CallRecord {
    known: KnownMethods,
    route: usize,
    begun: Instant,
    ending: Ending,
}

impl CallRecord {
    pub(super) fn begin(known: &KnownMethods, parts: &RequestParts) -> Self {
        known.of(Some(parts.route)).started();
        Self {
            known: known.clone(),
            route: parts.route,
            begun: Instant::now(),
            ending: Ending::new(parts.deadline),
        }
    }

    #[inline]
    pub(super) fn counts(&self) -> &MethodCounts {
        self.known.of(Some(self.route))
    }
}

impl CallWatch for CallRecord {
    fn run<T>(&mut self, f: impl FnOnce() -> T) -> T {
        self.ending.run(f)
    }

    fn sent(&mut self, messages: u64, bytes: u64) {
        self.counts().sent(messages, bytes);
    }

    fn send_bytes_max(&self) -> usize {
        self.known.0.send_bytes_max
    }

    fn has_ended(&self) -> bool {
        self.ending.has_come()
    }

    fn end(&mut self, failure: Option<Code>) {
        if self.ending.come() {
            self.counts().ended_after(failure, self.begun.elapsed());
        }
    }
}

impl Drop for CallRecord {
    fn drop(&mut self) {
        if let Some(code) = self.ending.at_drop() {
            self.end(Some(code));
        }
    }
}

/// Counts what the caller of a call sends.
pub(super) struct CountedArrivals {
    known: KnownMethods,
    route: usize,
}

impl CountedArrivals {
    pub(super) fn of(record: &CallRecord) -> Self {
        Self {
            known: record.known.clone(),
            route: record.route,
        }
    }
}

impl Arrivals for CountedArrivals {
    fn received(&self, bytes: usize) {
        self.known.of(Some(self.route)).received(bytes);
    }
}
