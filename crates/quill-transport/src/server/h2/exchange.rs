//! One request of a connection and its answer.

use std::sync::Arc;

use quill_h2::Key;
use tokio::task::JoinHandle;
use tokio::time::Instant;

use crate::body::LINGER_BYTES_MAX;
use crate::error::{TransportError, TransportErrorKind};
use crate::exchange::HttpResponse;
use crate::h2::{Inbox, Sending, StreamTask, Wakes};

/// A stream of a connection that has more to come or to send.
pub(super) struct Exchange<B> {
    pub(super) stream: StreamTask,
    pub(super) request: Request,
    pub(super) answer: Answer<B>,
    /// The end of the answer has been queued.
    pub(super) is_answered: bool,
    /// Since when its answer waits for room in the peer's windows.
    pub(super) blocked_since: Option<Instant>,
}

/// Where a request has got to.
pub(super) enum Request {
    /// The rest goes to its reader.
    Read(Arc<Inbox>),
    /// Its reader is gone; so many bytes more are taken.
    Left(usize),
    /// All of it was handed over.
    Done,
}

/// Where an answer has got to.
pub(super) enum Answer<B> {
    /// Nobody was asked yet, or it is sent.
    None,
    /// It is being made in a task of its own.
    Made(Making<HttpResponse<B>>),
    /// Its body is being sent.
    Sent(Sending<B>),
}

/// A task that ends when nobody waits for it any more.
pub(super) struct Making<T>(pub(super) JoinHandle<T>);

impl<T> Drop for Making<T> {
    fn drop(&mut self) {
        self.0.abort();
    }
}

impl Request {
    /// A request whose reader has gone.
    pub(super) fn left() -> Self {
        Self::Left(LINGER_BYTES_MAX)
    }
}

impl<B> crate::h2::Exchange for Box<Exchange<B>> {
    fn stream(&self) -> &StreamTask {
        &self.stream
    }

    fn stream_mut(&mut self) -> &mut StreamTask {
        &mut self.stream
    }

    fn is_sending(&self) -> bool {
        matches!(self.answer, Answer::Sent(_))
    }
}

impl<B> Exchange<B> {
    /// An exchange whose request was handed over as far as it has come; the rest goes
    /// to this inbox.
    pub(super) fn new(stream: Key, wakes: Arc<Wakes>, inbox: Option<Arc<Inbox>>) -> Self {
        Self {
            stream: StreamTask::new(stream, wakes),
            request: inbox.map_or(Request::Done, Request::Read),
            answer: Answer::None,
            is_answered: false,
            blocked_since: None,
        }
    }

    /// Ends the request's body with an error, unless it has ended.
    pub(super) fn fail(&self, error: TransportError) {
        if let Request::Read(inbox) = &self.request {
            inbox.fail(error);
        }
    }
}

impl<B> Drop for Exchange<B> {
    fn drop(&mut self) {
        if let Request::Read(_) = &self.request {
            let message = "the connection was closed";
            self.fail(TransportError::new(TransportErrorKind::Closed, message));
        }
    }
}
