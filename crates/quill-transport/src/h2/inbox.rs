//! A body that comes in on one task and is read on another.

use std::collections::VecDeque;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};

use bytes::Bytes;
use quill_core::Headers;
use quill_h2::Key;

use super::wakes::Wakes;
use crate::body::{Body, Chunk};
use crate::error::TransportError;

/// The parts of a body that have come and were not read. The stream's window bounds
/// them: its room is given again for what was read.
#[derive(Debug)]
pub(crate) struct Inbox {
    stream: Key,
    wakes: Arc<Wakes>,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    parts: VecDeque<Bytes>,
    trailers: Option<Headers>,
    /// How the body ended; what came before it is read first.
    end: Option<Result<(), TransportError>>,
    /// Bytes that are still to come, where the head said how many.
    bytes_left: Option<u64>,
    /// Bytes that were read since the connection last looked.
    read_bytes: u32,
    reader: Option<Waker>,
    is_posted: bool,
    is_left: bool,
}

/// What a connection learns of a body's reader.
#[derive(Debug)]
pub(crate) struct Reading {
    /// Bytes that it has read since.
    pub(crate) bytes: u32,
    /// It is gone; these bytes were never read.
    pub(crate) left: Option<u32>,
}

impl Inbox {
    /// An inbox and its reader.
    pub(crate) fn new(
        stream: Key,
        wakes: Arc<Wakes>,
        bytes_left: Option<u64>,
    ) -> (Arc<Self>, InboxBody) {
        let inbox = Arc::new(Self {
            stream,
            wakes,
            state: Mutex::new(State {
                bytes_left,
                ..State::default()
            }),
        });
        (inbox.clone(), InboxBody(inbox))
    }

    /// Puts a part in.
    pub(crate) fn put(&self, part: Bytes, end: bool) {
        let mut state = self.lock();
        if !part.is_empty() {
            state.parts.push_back(part);
        }
        if end {
            state.end = Some(Ok(()));
        }
        state.wake();
    }

    /// Puts the end in, with trailers.
    pub(crate) fn put_trailers(&self, trailers: Headers) {
        let mut state = self.lock();
        state.trailers = Some(trailers);
        state.end = Some(Ok(()));
        state.wake();
    }

    /// Ends it with an error, unless it has ended; what has come can't be read any more.
    pub(crate) fn fail(&self, error: TransportError) {
        let mut state = self.lock();
        if state.end.is_none() {
            state.parts.clear();
            state.end = Some(Err(error));
            state.wake();
        }
    }

    /// What the reader has done.
    pub(crate) fn look(&self) -> Reading {
        let mut state = self.lock();
        state.is_posted = false;
        let bytes = std::mem::take(&mut state.read_bytes);
        let left = state.is_left.then(|| {
            let unread: usize = state.parts.iter().map(Bytes::len).sum();
            state.parts.clear();
            u32::try_from(unread).unwrap_or(u32::MAX)
        });
        Reading { bytes, left }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn wake(&mut self) {
        self.reader.take().into_iter().for_each(Waker::wake);
    }

    fn is_read(&self) -> bool {
        self.parts.is_empty() && self.trailers.is_none() && matches!(self.end, Some(Ok(())))
    }
}

/// The reader of an [`Inbox`]. Dropped, it tells the connection that nobody reads on.
#[derive(Debug)]
pub(crate) struct InboxBody(Arc<Inbox>);

impl Body for InboxBody {
    fn poll_chunk(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Chunk, TransportError>>> {
        let inbox = &self.0;
        let mut state = inbox.lock();
        let Some(part) = state.parts.pop_front() else {
            if let Some(trailers) = state.trailers.take() {
                return Poll::Ready(Some(Ok(Chunk::Trailers(trailers))));
            }
            return match &state.end {
                Some(Ok(())) => Poll::Ready(None),
                Some(Err(error)) => {
                    let error = error.clone();
                    Poll::Ready(Some(Err(error)))
                }
                None => {
                    match &mut state.reader {
                        Some(reader) => reader.clone_from(cx.waker()),
                        none => *none = Some(cx.waker().clone()),
                    }
                    Poll::Pending
                }
            };
        };
        let bytes = u32::try_from(part.len()).unwrap_or(u32::MAX);
        state.bytes_left = state
            .bytes_left
            .map(|left| left.saturating_sub(bytes.into()));
        state.read_bytes = state.read_bytes.saturating_add(bytes);
        // The last that is read of a body is told too: its room is the connection's.
        let is_last = state.end.is_some() && state.parts.is_empty();
        let is_much = is_last || state.read_bytes >= inbox.wakes.report_bytes();
        let posts = is_much && !state.is_posted;
        state.is_posted |= posts;
        drop(state);
        if posts {
            inbox.wakes.post(inbox.stream);
        } else {
            inbox.wakes.note_read(bytes);
        }
        Poll::Ready(Some(Ok(Chunk::Data(part))))
    }

    fn is_ended(&self) -> bool {
        self.0.lock().is_read()
    }

    fn bytes_left(&self) -> Option<u64> {
        let state = self.0.lock();
        match (&state.end, &state.trailers) {
            (Some(Ok(())), None) => Some(state.parts.iter().map(|part| part.len() as u64).sum()),
            (None, _) => state.bytes_left,
            _ => None,
        }
    }
}

impl Drop for InboxBody {
    fn drop(&mut self) {
        let mut state = self.0.lock();
        state.is_left = true;
        state.reader = None;
        let is_news = state.end.is_none() || !state.parts.is_empty();
        let posts = is_news && !state.is_posted;
        state.is_posted |= posts;
        drop(state);
        if posts {
            self.0.wakes.post(self.0.stream);
        }
    }
}
