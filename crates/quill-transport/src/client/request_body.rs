//! A request's body on its way out: can be called off from the answer's side,
//! and is given back when the request was surely not handled.

use std::pin::Pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};

use bytes::Bytes;

use crate::body::{Body, BoxBody, Chunk};
use crate::error::{TransportError, TransportErrorKind};

/// What is kept of a body that is under way, to send it again.
const REPLAY_BYTES_MAX: usize = 64 * 1024;
const REPLAY_CHUNKS_MAX: usize = 64;

/// A request's body, as a connection sends it.
pub(super) struct RequestBody {
    /// `None` once it was given back.
    source: Option<Source>,
    handle: Handle,
}

/// The body of a request, with what has been sent of it.
pub(super) struct Source {
    body: BoxBody,
    replay: Replay,
    /// The next chunk of the replay to send.
    next: usize,
}

/// What has been sent; `None` when it was too much to keep.
struct Replay {
    chunks: Option<Vec<Chunk>>,
    bytes: usize,
}

/// The answer's hold on a body that is under way.
#[derive(Clone)]
pub(super) struct Handle(Arc<Shared>);

#[derive(Default)]
struct Shared {
    called_off: AtomicBool,
    /// The answer has begun: the request won't be sent again.
    answered: AtomicBool,
    ended: AtomicBool,
    slot: Mutex<Slot>,
}

#[derive(Default)]
struct Slot {
    sender: Option<Waker>,
    waiting: Option<Waker>,
    gone: bool,
    returned: Option<Source>,
}

impl Source {
    pub(super) fn new(body: BoxBody) -> Self {
        Self {
            body,
            replay: Replay {
                chunks: Some(Vec::new()),
                bytes: 0,
            },
            next: 0,
        }
    }

    /// A body to send from its beginning, and the hold on it.
    pub(super) fn send(mut self) -> (RequestBody, Handle) {
        self.next = 0;
        let handle = Handle(Arc::default());
        // A body that is at its end from the start is never polled.
        handle.0.ended.store(self.is_ended(), Ordering::Release);
        let body = RequestBody {
            source: Some(self),
            handle: handle.clone(),
        };
        (body, handle)
    }

    fn is_ended(&self) -> bool {
        self.replay.ahead(self.next) == 0 && self.body.is_ended()
    }

    fn poll(
        &mut self,
        keep: bool,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Chunk, TransportError>>> {
        if let Some(chunk) = self.replay.copy(self.next) {
            self.next += 1;
            return Poll::Ready(Some(Ok(chunk)));
        }
        let polled = self.body.as_mut().poll_chunk(cx);
        if !keep {
            self.replay.forget();
        } else if let Poll::Ready(Some(Ok(chunk))) = &polled {
            self.replay.note(chunk);
            self.next += 1;
        }
        polled
    }
}

impl Replay {
    fn ahead(&self, next: usize) -> usize {
        let sent = self.chunks.as_ref().map_or(0, Vec::len);
        sent.saturating_sub(next)
    }

    fn copy(&self, index: usize) -> Option<Chunk> {
        self.chunks.as_ref()?.get(index).map(copy)
    }

    fn note(&mut self, chunk: &Chunk) {
        let Some(chunks) = &mut self.chunks else {
            return;
        };
        self.bytes += match chunk {
            Chunk::Data(data) => data.len(),
            Chunk::Trailers(headers) => headers.bytes(),
        };
        if self.bytes > REPLAY_BYTES_MAX || chunks.len() == REPLAY_CHUNKS_MAX {
            self.forget();
            return;
        }
        chunks.push(copy(chunk));
    }

    fn forget(&mut self) {
        self.chunks = None;
    }
}

fn copy(chunk: &Chunk) -> Chunk {
    match chunk {
        Chunk::Data(data) => Chunk::Data(data.clone()),
        Chunk::Trailers(headers) => Chunk::Trailers(headers.clone()),
    }
}

impl Handle {
    /// Ends the body, if it is still under way, by resetting its stream.
    pub(super) fn call_off(&self) {
        self.0.called_off.store(true, Ordering::Release);
        let sender = self.slot().sender.take();
        if let Some(sender) = sender {
            sender.wake();
        }
    }

    /// Notes that the answer has begun.
    pub(super) fn answered(&self) {
        self.0.answered.store(true, Ordering::Release);
    }

    /// Whether all of the body has been handed to the connection.
    pub(super) fn is_ended(&self) -> bool {
        self.0.ended.load(Ordering::Acquire)
    }

    /// Waits until the connection has let go of the body; `None` when it can't
    /// be sent again.
    pub(super) fn poll_returned(&self, cx: &mut Context<'_>) -> Poll<Option<Source>> {
        let mut slot = self.slot();
        if slot.gone {
            return Poll::Ready(slot.returned.take());
        }
        slot.waiting = Some(cx.waker().clone());
        Poll::Pending
    }

    fn slot(&self) -> MutexGuard<'_, Slot> {
        self.0.slot.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn listen(&self, cx: &mut Context<'_>) {
        let mut slot = self.slot();
        match &mut slot.sender {
            Some(waker) => waker.clone_from(cx.waker()),
            none => *none = Some(cx.waker().clone()),
        }
    }
}

impl Body for RequestBody {
    fn poll_chunk(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Chunk, TransportError>>> {
        let this = &mut *self;
        this.handle.listen(cx);
        if this.handle.0.called_off.load(Ordering::Acquire) {
            let message = "the exchange was given up";
            let error = TransportError::new(TransportErrorKind::Canceled, message);
            return Poll::Ready(Some(Err(error)));
        }
        let Some(source) = &mut this.source else {
            return Poll::Ready(None);
        };
        let keep = !this.handle.0.answered.load(Ordering::Acquire);
        let polled = std::task::ready!(source.poll(keep, cx));
        if matches!(polled, None | Some(Ok(Chunk::Trailers(_)))) || source.is_ended() {
            this.handle.0.ended.store(true, Ordering::Release);
        }
        Poll::Ready(polled)
    }

    fn is_ended(&self) -> bool {
        self.source.as_ref().is_none_or(Source::is_ended)
    }

    fn bytes_left(&self) -> Option<u64> {
        let source = self.source.as_ref().filter(|source| source.next == 0)?;
        let sent: u64 = source.replay.bytes as u64;
        source.body.bytes_left()?.checked_add(sent)
    }
}

impl http_body::Body for RequestBody {
    type Data = Bytes;
    type Error = TransportError;

    fn poll_frame(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<http_body::Frame<Bytes>, TransportError>>> {
        let polled = std::task::ready!(self.poll_chunk(cx));
        Poll::Ready(polled.map(|chunk| match chunk {
            Ok(chunk) => Ok(chunk.into_frame()),
            Err(error) => Err(crate::hyper_error::resetting(error)),
        }))
    }

    fn is_end_stream(&self) -> bool {
        self.is_ended()
    }

    fn size_hint(&self) -> http_body::SizeHint {
        self.bytes_left().map_or_else(
            http_body::SizeHint::default,
            http_body::SizeHint::with_exact,
        )
    }
}

impl Drop for RequestBody {
    fn drop(&mut self) {
        let source = self.source.take();
        let returned = source.filter(|source| source.replay.chunks.is_some());
        let mut slot = self.handle.slot();
        slot.gone = true;
        slot.returned = returned;
        let waiting = slot.waiting.take();
        drop(slot);
        if let Some(waiting) = waiting {
            waiting.wake();
        }
    }
}
