//! What happened to a connection's streams outside of its task.

use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Wake, Waker};

use quill_h2::Key;

/// The streams of one connection that want to be looked at, and its task's waker.
/// A stream is here at most twice: for its answer, and for its request's body.
#[derive(Debug)]
pub(crate) struct Wakes {
    state: Mutex<State>,
    /// Bytes that readers have taken without a word to the connection.
    unreported: AtomicU32,
    unreported_max: u32,
    report_bytes: u32,
}

/// A reader reports what it has read when it is so much, or a quarter of its
/// stream's first window.
const REPORT_BYTES_MAX: u32 = 8 * 1024;

#[derive(Debug, Default)]
struct State {
    streams: Vec<Key>,
    /// Every stream wants to be looked at.
    all: bool,
    /// Something else happened.
    called: bool,
    waker: Option<Waker>,
}

/// What happened beside the streams that were posted.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Taken {
    /// Every stream is to be looked at.
    pub(crate) all: bool,
    /// The connection was woken for something else.
    pub(crate) called: bool,
}

impl Wakes {
    /// For a connection with a receive window of this size, and streams with these.
    pub(crate) fn new(window_bytes: u32, stream_window_bytes: u32) -> Arc<Self> {
        Arc::new(Self {
            state: Mutex::default(),
            unreported: AtomicU32::new(0),
            unreported_max: window_bytes / 8,
            report_bytes: (stream_window_bytes / 4).clamp(1, REPORT_BYTES_MAX),
        })
    }

    /// Has the connection look at a stream.
    pub(crate) fn post(&self, stream: Key) {
        let mut state = self.lock();
        state.streams.push(stream);
        let waker = state.waker.take();
        drop(state);
        waker.into_iter().for_each(Waker::wake);
    }

    /// How many read bytes are worth a post.
    pub(crate) fn report_bytes(&self) -> u32 {
        self.report_bytes
    }

    /// Notes bytes that a reader took and keeps to itself, since they are few. Of
    /// many readers these are many: then the connection looks at all of them.
    pub(crate) fn note_read(&self, bytes: u32) {
        let before = self.unreported.fetch_add(bytes, Ordering::Relaxed);
        if before.saturating_add(bytes) < self.unreported_max.max(1) {
            return;
        }
        self.unreported.store(0, Ordering::Relaxed);
        let mut state = self.lock();
        state.all = true;
        let waker = state.waker.take();
        drop(state);
        waker.into_iter().for_each(Waker::wake);
    }

    /// Has the connection look at whatever is not a stream's.
    pub(crate) fn wake(&self) {
        let mut state = self.lock();
        state.called = true;
        let waker = state.waker.take();
        drop(state);
        waker.into_iter().for_each(Waker::wake);
    }

    /// Moves the streams that were posted to `streams`, which is empty. Where nothing
    /// happened, `waker` is kept for when something does.
    pub(crate) fn take(&self, streams: &mut Vec<Key>, waker: &Waker) -> Taken {
        let mut state = self.lock();
        std::mem::swap(&mut state.streams, streams);
        let all = std::mem::take(&mut state.all);
        let called = std::mem::take(&mut state.called);
        if streams.is_empty() && !all && !called {
            match &mut state.waker {
                Some(kept) => kept.clone_from(waker),
                none => *none = Some(waker.clone()),
            }
        }
        Taken { all, called }
    }

    /// Gives memory back while nothing happens.
    pub(crate) fn shrink(&self) {
        let mut state = self.lock();
        if state.streams.is_empty() {
            state.streams = Vec::new();
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Wakes a connection for one of its streams.
#[derive(Debug)]
pub(crate) struct StreamWaker {
    stream: Key,
    wakes: Arc<Wakes>,
    is_posted: AtomicBool,
}

impl StreamWaker {
    pub(crate) fn new(stream: Key, wakes: Arc<Wakes>) -> Arc<Self> {
        Arc::new(Self {
            stream,
            wakes,
            is_posted: AtomicBool::new(false),
        })
    }

    /// The connection looks at the stream now: a later wake counts again.
    pub(crate) fn reset(&self) {
        self.is_posted.store(false, Ordering::Release);
    }
}

impl Wake for StreamWaker {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        if !self.is_posted.swap(true, Ordering::AcqRel) {
            self.wakes.post(self.stream);
        }
    }
}
