//! A request on its way out: its body can be called off from the answer's side, and
//! all of it is given back when it was surely not handled.

use std::pin::Pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};

use bytes::Bytes;
use pin_project_lite::pin_project;
use quill_core::RequestHead;

use crate::body::{Body, Chunk};
use crate::error::{TransportError, TransportErrorKind};

/// What is kept of a body that is under way, to send it again.
const REPLAY_BYTES_MAX: usize = 64 * 1024;
const REPLAY_CHUNKS_MAX: usize = 64;

/// A request's body, as a connection sends it.
pub(super) struct RequestBody {
    /// `None` once it was given back.
    source: Option<Source>,
    handle: Handle,
    is_waiting: bool,
}

/// A request, with what has been sent of its body: small, since it is moved from hand
/// to hand and each future on the way has room for it.
pub(super) struct Source(Pin<Box<Outgoing<dyn Body>>>);

pin_project! {
    struct Outgoing<B: ?Sized> {
        head: RequestHead,
        replay: Replay,
        // The next chunk of the replay to send.
        next: usize,
        #[pin]
        body: B,
    }
}

/// What has been sent, unless it was too much to keep. Most bodies are one chunk.
#[derive(Default)]
struct Replay {
    first: Option<Chunk>,
    more: Vec<Chunk>,
    bytes: usize,
    is_forgotten: bool,
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
    pub(super) fn new(head: RequestHead, body: impl Body + 'static) -> Self {
        Self(Box::pin(Outgoing {
            head,
            replay: Replay::default(),
            next: 0,
            body,
        }))
    }

    pub(super) fn head(&self) -> &RequestHead {
        &self.0.head
    }

    /// A request to send from its beginning, and the hold on it.
    pub(super) fn send(mut self) -> (RequestBody, Handle) {
        *self.0.as_mut().project().next = 0;
        let handle = Handle(Arc::default());
        // A body that is at its end from the start is never polled.
        handle.0.ended.store(self.is_ended(), Ordering::Release);
        let body = RequestBody {
            source: Some(self),
            handle: handle.clone(),
            is_waiting: false,
        };
        (body, handle)
    }

    fn is_ended(&self) -> bool {
        self.0.replay.ahead(self.0.next) == 0 && self.0.body.is_ended()
    }

    fn poll(
        &mut self,
        keep: bool,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Chunk, TransportError>>> {
        let this = self.0.as_mut().project();
        if let Some(chunk) = this.replay.copy(*this.next) {
            *this.next += 1;
            return Poll::Ready(Some(Ok(chunk)));
        }
        let polled = this.body.poll_chunk(cx);
        if !keep {
            this.replay.forget();
        } else if let Poll::Ready(Some(Ok(chunk))) = &polled {
            this.replay.note(chunk);
            *this.next += 1;
        }
        polled
    }
}

impl Replay {
    fn ahead(&self, next: usize) -> usize {
        self.len().saturating_sub(next)
    }

    fn len(&self) -> usize {
        usize::from(self.first.is_some()) + self.more.len()
    }

    fn copy(&self, index: usize) -> Option<Chunk> {
        let chunk = match index.checked_sub(1) {
            None => self.first.as_ref(),
            Some(index) => self.more.get(index),
        };
        chunk.map(copy)
    }

    fn note(&mut self, chunk: &Chunk) {
        if self.is_forgotten {
            return;
        }
        self.bytes += match chunk {
            Chunk::Data(data) => data.len(),
            Chunk::Trailers(headers) => headers.bytes(),
        };
        if self.bytes > REPLAY_BYTES_MAX || self.len() == REPLAY_CHUNKS_MAX {
            self.forget();
        } else if self.first.is_none() {
            self.first = Some(copy(chunk));
        } else {
            self.more.push(copy(chunk));
        }
    }

    fn forget(&mut self) {
        self.first = None;
        self.more = Vec::new();
        self.is_forgotten = true;
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
        if self.is_ended() {
            return;
        }
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

    fn is_called_off(&self) -> bool {
        self.0.called_off.load(Ordering::Acquire)
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

fn given_up() -> TransportError {
    TransportError::new(TransportErrorKind::Canceled, "the exchange was given up")
}

impl RequestBody {
    /// The head of the request that this is the body of; `None` once it was given back.
    pub(super) fn head(&self) -> Option<&RequestHead> {
        self.source.as_ref().map(Source::head)
    }
}

impl Body for RequestBody {
    fn poll_chunk(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Chunk, TransportError>>> {
        let this = &mut *self;
        if this.handle.is_called_off() {
            return Poll::Ready(Some(Err(given_up())));
        }
        let Some(source) = &mut this.source else {
            return Poll::Ready(None);
        };
        let keep = !this.handle.0.answered.load(Ordering::Acquire);
        let Poll::Ready(polled) = source.poll(keep, cx) else {
            this.handle.listen(cx);
            // It may have been called off before that.
            return match this.handle.is_called_off() {
                true => Poll::Ready(Some(Err(given_up()))),
                false => Poll::Pending,
            };
        };
        if matches!(polled, None | Some(Ok(Chunk::Trailers(_)))) || source.is_ended() {
            this.handle.0.ended.store(true, Ordering::Release);
        }
        this.is_waiting = source.0.body.is_waiting();
        if this.is_waiting {
            this.handle.listen(cx);
            this.is_waiting = !this.handle.is_called_off();
        }
        Poll::Ready(polled)
    }

    fn is_waiting(&self) -> bool {
        self.is_waiting
    }

    fn is_ended(&self) -> bool {
        self.source.as_ref().is_none_or(Source::is_ended)
    }

    fn bytes_left(&self) -> Option<u64> {
        let source = self.source.as_ref().filter(|source| source.0.next == 0)?;
        let sent: u64 = source.0.replay.bytes as u64;
        source.0.body.bytes_left()?.checked_add(sent)
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
        let returned = source.filter(|source| !source.0.replay.is_forgotten);
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
