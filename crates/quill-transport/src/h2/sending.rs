//! A body on its way to the engine.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use bytes::Bytes;
use quill_h2::{Connection, ErrorCode, Key, Sent};

use super::{StreamWaker, Wakes};
use crate::body::{Body, Chunk};
use crate::error::{TransportError, TransportErrorKind};

/// Parts that one body sends before others have their turn.
const PARTS_MAX: usize = 32;

/// A body that is being sent, and the part of it that the windows cut off.
pub(crate) struct Sending<B> {
    body: B,
    cut: Bytes,
    /// Nothing follows what was cut off.
    is_last: bool,
}

/// How far a body got.
#[derive(Debug)]
pub(crate) enum Progress {
    /// Its end is queued.
    Ended,
    /// It has more, and others have their turn first.
    Queued,
    /// It waits for its maker.
    Waiting,
    /// It waits for a window.
    Blocked,
    /// It broke: its stream is to be reset with this.
    Broken(ErrorCode),
}

impl<B: Body + Unpin> Sending<B> {
    pub(crate) fn new(body: B) -> Self {
        Self {
            body,
            cut: Bytes::new(),
            is_last: false,
        }
    }

    /// Moves the body into the engine as far as windows and `room` allow. Nothing is
    /// asked of its maker while there is no room. One part is, where a window is shut:
    /// an end and trailers need none (RFC 9113, section 6.9).
    pub(crate) fn pump(
        &mut self,
        engine: &mut Connection,
        stream: &mut StreamTask,
        room: usize,
        cx: &mut Context<'_>,
    ) -> Progress {
        let waiting = engine.output().len();
        // Of what is polled here alone: a wake that came earlier has been used up.
        let mut is_waiting = false;
        for _ in 0..PARTS_MAX {
            let room = (room + waiting).saturating_sub(engine.output().len());
            if !self.cut.is_empty() {
                match engine.send_data(stream.key, &mut self.cut, self.is_last, room) {
                    Sent::All if self.is_last => return Progress::Ended,
                    Sent::All if is_waiting => return Progress::Waiting,
                    Sent::All => {}
                    Sent::Full => return Progress::Queued,
                    // The engine tells when a window opens.
                    Sent::StreamBlocked | Sent::ConnectionBlocked => return Progress::Blocked,
                }
                continue;
            }
            if room == 0 {
                return Progress::Queued;
            }
            let Some(polled) = stream.poll(&mut self.body, cx) else {
                tracing::error!("a body panicked");
                return Progress::Broken(ErrorCode::INTERNAL_ERROR);
            };
            match polled {
                Poll::Pending => return Progress::Waiting,
                Poll::Ready(Some(Ok(Chunk::Data(bytes)))) => {
                    self.cut = bytes;
                    self.is_last = self.body.is_ended();
                    is_waiting = stream.has_waker() && self.body.is_waiting();
                    if !self.is_last || !self.cut.is_empty() {
                        continue;
                    }
                }
                Poll::Ready(Some(Ok(Chunk::Trailers(trailers)))) => {
                    engine.send_trailers(stream.key, &trailers);
                    return Progress::Ended;
                }
                Poll::Ready(Some(Err(error))) => return Progress::Broken(reset_code(&error)),
                Poll::Ready(None) => {}
            }
            engine.send_data(stream.key, &mut Bytes::new(), true, 0);
            return Progress::Ended;
        }
        Progress::Queued
    }
}

/// A stream, and the waker that has its connection look at it.
pub(crate) struct StreamTask {
    pub(crate) key: Key,
    /// It waits for its turn to send.
    pub(super) is_queued: bool,
    wakes: Arc<Wakes>,
    waker: Option<(Arc<StreamWaker>, Waker)>,
}

impl StreamTask {
    pub(crate) fn new(key: Key, wakes: Arc<Wakes>) -> Self {
        Self {
            key,
            is_queued: false,
            wakes,
            waker: None,
        }
    }

    /// The waker of this stream, for this look at it.
    pub(crate) fn waker(&mut self) -> &Waker {
        let (key, wakes) = (self.key, &self.wakes);
        let (shared, waker) = self.waker.get_or_insert_with(|| {
            let shared = StreamWaker::new(key, wakes.clone());
            (shared.clone(), Waker::from(shared))
        });
        shared.reset();
        waker
    }

    /// Whether bodies are polled with this stream's own waker.
    fn has_waker(&self) -> bool {
        self.waker.is_some()
    }

    /// Polls a body; `None` when it panicked. Most have all they need: a waker is made
    /// for those that wait.
    fn poll<B: Body + Unpin>(
        &mut self,
        body: &mut B,
        cx: &mut Context<'_>,
    ) -> Option<Poll<Option<Result<Chunk, TransportError>>>> {
        let mut poll = |cx: &mut Context<'_>| {
            catch_unwind(AssertUnwindSafe(|| Pin::new(&mut *body).poll_chunk(cx))).ok()
        };
        if self.waker.is_none() {
            let polled = poll(cx)?;
            if polled.is_ready() {
                return Some(polled);
            }
        }
        poll(&mut Context::from_waker(self.waker()))
    }
}

/// The code that a body's own error resets its stream with.
fn reset_code(error: &TransportError) -> ErrorCode {
    match error.kind() {
        TransportErrorKind::Canceled => ErrorCode::CANCEL,
        TransportErrorKind::Reset(code) => ErrorCode(code),
        _ => ErrorCode::INTERNAL_ERROR,
    }
}
