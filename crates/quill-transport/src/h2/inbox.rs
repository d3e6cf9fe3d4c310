//! A body that comes in on one task and is read on another.

use std::collections::VecDeque;
use std::mem;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};

use bytes::{Bytes, BytesMut};
use quill_core::Headers;
use quill_h2::Key;

use super::wakes::Wakes;
use crate::body::{Body, Chunk};
use crate::error::TransportError;

/// Parts under this size are joined behind others: a body in single bytes costs its
/// bytes, not an allocation for each.
const JOIN_BYTES_MAX: usize = 1024;

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
    /// Small parts behind those.
    joined: BytesMut,
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
        state.push(part);
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
            state.take_unread();
            state.end = Some(Err(error));
            state.wake();
        }
    }

    /// What the reader has done.
    pub(crate) fn look(&self) -> Reading {
        let mut state = self.lock();
        state.is_posted = false;
        let bytes = mem::take(&mut state.read_bytes);
        let left = state.is_left.then(|| state.take_unread());
        let left = left.map(|unread| u32::try_from(unread).unwrap_or(u32::MAX));
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

    fn push(&mut self, part: Bytes) {
        if self.has_unread() && part.len() < JOIN_BYTES_MAX {
            self.joined.extend_from_slice(&part);
        } else if !part.is_empty() {
            self.flush_joined();
            self.parts.push_back(part);
        }
    }

    fn pop(&mut self) -> Option<Bytes> {
        if self.parts.is_empty() {
            self.flush_joined();
        }
        self.parts.pop_front()
    }

    fn flush_joined(&mut self) {
        if !self.joined.is_empty() {
            self.parts.push_back(mem::take(&mut self.joined).freeze());
        }
    }

    fn has_unread(&self) -> bool {
        !self.parts.is_empty() || !self.joined.is_empty()
    }

    fn unread_bytes(&self) -> usize {
        let parts: usize = self.parts.iter().map(Bytes::len).sum();
        parts + self.joined.len()
    }

    /// Lets go of what was not read; how many bytes that were.
    fn take_unread(&mut self) -> usize {
        let bytes = self.unread_bytes();
        self.parts = VecDeque::new();
        self.joined = BytesMut::new();
        bytes
    }

    fn is_read(&self) -> bool {
        !self.has_unread() && self.trailers.is_none() && matches!(self.end, Some(Ok(())))
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
        let Some(part) = state.pop() else {
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
        let is_last = state.end.is_some() && !state.has_unread();
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
            (Some(Ok(())), None) => Some(state.unread_bytes() as u64),
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
        let is_news = state.end.is_none() || state.has_unread();
        let posts = is_news && !state.is_posted;
        state.is_posted |= posts;
        drop(state);
        if posts {
            self.0.wakes.post(self.0.stream);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn small_parts_are_joined_and_all_come_in_their_order() {
        let mut engine = quill_h2::Connection::client(quill_h2::Config::default());
        let head = quill_core::RequestHead::post("/a.B/C");
        let stream = engine.open("http", &head, &[], false).unwrap();
        let (inbox, mut body) = Inbox::new(stream, Wakes::new(65_535, 65_535), None);
        let large = Bytes::from(vec![8; JOIN_BYTES_MAX]);
        for _ in 0..2 {
            for byte in 0..100 {
                inbox.put(Bytes::copy_from_slice(&[byte]), false);
            }
            inbox.put(large.clone(), false);
        }
        inbox.put(Bytes::from_static(b"end"), true);
        assert_eq!(body.bytes_left(), Some(2 * 1124 + 3));
        let mut parts = Vec::new();
        let mut cx = Context::from_waker(Waker::noop());
        while let Poll::Ready(Some(Ok(Chunk::Data(part)))) = Pin::new(&mut body).poll_chunk(&mut cx)
        {
            parts.push(part);
        }
        let lens: Vec<usize> = parts.iter().map(Bytes::len).collect();
        assert_eq!(lens, [1, 99, JOIN_BYTES_MAX, 100, JOIN_BYTES_MAX, 3]);
        let small: Vec<u8> = (0..100).collect();
        let end = &b"end"[..];
        assert_eq!(
            parts.concat(),
            [&small, &large[..], &small, &large, end].concat()
        );
        assert!(body.is_ended());
    }
}
