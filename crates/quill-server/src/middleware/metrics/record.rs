//! One call, from its beginning to its one end.

use std::time::Instant;

use quill_core::{Code, Deadline, RequestParts};

use super::method::{KnownMethods, MethodCounts};

/// Counts the end of a call, also of one that is dropped before it has one.
#[derive(Debug)]
pub(super) struct CallRecord {
    known: KnownMethods,
    route: usize,
    begun: Instant,
    deadline: Option<Deadline>,
    /// Something of the user's runs; where that panics, it is still set when the
    /// call is dropped.
    is_running: bool,
    has_ended: bool,
}

impl CallRecord {
    pub(super) fn begin(known: &KnownMethods, parts: &RequestParts) -> Self {
        known.of(Some(parts.route)).started();
        Self {
            known: known.clone(),
            route: parts.route,
            begun: Instant::now(),
            deadline: parts.deadline,
            is_running: false,
            has_ended: false,
        }
    }

    pub(super) fn route(&self) -> usize {
        self.route
    }

    pub(super) fn has_ended(&self) -> bool {
        self.has_ended
    }

    /// What an answer may have at most.
    pub(super) fn send_bytes_max(&self) -> usize {
        self.known.0.send_bytes_max
    }

    #[inline]
    pub(super) fn counts(&self) -> &MethodCounts {
        self.known.of(Some(self.route))
    }

    /// Runs what may panic.
    pub(super) fn run<T>(&mut self, f: impl FnOnce() -> T) -> T {
        self.is_running = true;
        let done = f();
        self.is_running = false;
        done
    }

    /// The call ended well, or with this code. Only the first end counts.
    pub(super) fn end(&mut self, failure: Option<Code>) {
        if !std::mem::replace(&mut self.has_ended, true) {
            self.counts().ended_after(failure, self.begun.elapsed());
        }
    }
}

impl Drop for CallRecord {
    fn drop(&mut self) {
        if self.has_ended {
            return;
        }
        self.end(Some(if self.is_running {
            Code::Internal
        } else {
            unfinished(self.deadline)
        }));
    }
}

/// Why a call was dropped that had not ended.
pub(super) fn unfinished(deadline: Option<Deadline>) -> Code {
    let is_late = |deadline: Deadline| deadline.instant() <= Instant::now();
    if deadline.is_some_and(is_late) {
        Code::DeadlineExceeded
    } else {
        Code::Canceled
    }
}
