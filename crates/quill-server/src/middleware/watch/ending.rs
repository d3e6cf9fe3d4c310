//! The one end of a call.

use std::time::Instant;

use quill_core::{Code, Deadline};

/// Whether a call has ended, and what came of one that was dropped before.
#[derive(Debug)]
pub(crate) struct Ending {
    deadline: Option<Deadline>,
    /// Something of the user's runs; where that panics, it is still set when the
    /// call is dropped.
    is_running: bool,
    has_come: bool,
}

impl Ending {
    pub(crate) fn new(deadline: Option<Deadline>) -> Self {
        Self {
            deadline,
            is_running: false,
            has_come: false,
        }
    }

    /// Runs what may panic.
    pub(crate) fn run<T>(&mut self, f: impl FnOnce() -> T) -> T {
        self.is_running = true;
        let done = f();
        self.is_running = false;
        done
    }

    pub(crate) fn has_come(&self) -> bool {
        self.has_come
    }

    /// The end has come; whether it had not before.
    pub(crate) fn come(&mut self) -> bool {
        !std::mem::replace(&mut self.has_come, true)
    }

    /// What came of a call that is dropped: `None` where it had ended.
    pub(crate) fn at_drop(&self) -> Option<Code> {
        if self.has_come {
            None
        } else if self.is_running {
            Some(Code::Internal)
        } else {
            Some(unfinished(self.deadline))
        }
    }
}

/// Why a call was dropped that had not ended.
pub(crate) fn unfinished(deadline: Option<Deadline>) -> Code {
    let is_late = |deadline: Deadline| deadline.instant() <= Instant::now();
    if deadline.is_some_and(is_late) {
        Code::DeadlineExceeded
    } else {
        Code::Canceled
    }
}
