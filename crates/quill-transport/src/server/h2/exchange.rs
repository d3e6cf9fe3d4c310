//! One request of a connection and its answer.

use std::collections::VecDeque;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use bytes::Bytes;
use quill_core::{Headers, RequestHead};
use quill_h2::Key;
use tokio::task::JoinHandle;

use crate::body::{Body, Chunk, LINGER_BYTES_MAX, RecvBody, Whole};
use crate::error::{TransportError, TransportErrorKind};
use crate::exchange::HttpResponse;
use crate::h2::{Inbox, StreamWaker, Wakes};

/// A stream of a connection, as long as it is open.
pub(super) struct Exchange<B> {
    pub(super) stream: Key,
    pub(super) request: Request,
    pub(super) answer: Answer<B>,
    /// The end of the answer has been queued.
    pub(super) is_answered: bool,
    /// It waits for its turn to send.
    pub(super) is_queued: bool,
    waker: Option<(Arc<StreamWaker>, Waker)>,
}

/// Where a request has got to.
pub(super) enum Request {
    /// Its head came in this turn, and what more comes in it is gathered there, so that
    /// a short request is whole before it is handled.
    Arriving(usize),
    /// The rest goes to its reader.
    Read(Arc<Inbox>),
    /// Its reader is gone; so many bytes more are taken.
    Left(usize),
    /// All of it was handed over.
    Done,
}

/// A request that was not handed over yet.
pub(super) struct Arrival {
    pub(super) stream: Key,
    pub(super) head: RequestHead,
    pub(super) content_length: Option<u64>,
    pub(super) body: Whole,
    pub(super) bytes: usize,
    pub(super) ended: bool,
}

/// Where an answer has got to.
pub(super) enum Answer<B> {
    /// Nobody was asked yet, or it is sent.
    None,
    /// It is being made in a task of its own.
    Made(Making<HttpResponse<B>>),
    /// It is being sent: its body, and the part of it that the windows cut off.
    Sent(B, Cut),
}

/// A part of a body that is still to be sent, and whether it is the last.
#[derive(Default)]
pub(super) struct Cut {
    pub(super) bytes: Bytes,
    pub(super) end: bool,
}

/// A task that ends when nobody waits for it any more.
pub(super) struct Making<T>(pub(super) JoinHandle<T>);

impl<T> Drop for Making<T> {
    fn drop(&mut self) {
        self.0.abort();
    }
}

impl<B> Exchange<B> {
    /// An exchange whose request is the arrival with this index.
    pub(super) fn new(stream: Key, arrival: usize) -> Self {
        Self {
            stream,
            request: Request::Arriving(arrival),
            answer: Answer::None,
            is_answered: false,
            is_queued: false,
            waker: None,
        }
    }

    /// The waker of this stream's answer, for this look at it.
    pub(super) fn waker(&mut self, wakes: &Arc<Wakes>) -> Waker {
        let stream = self.stream;
        let (shared, waker) = self.waker.get_or_insert_with(|| {
            let shared = StreamWaker::new(stream, wakes.clone());
            (shared.clone(), Waker::from(shared))
        });
        shared.reset();
        waker.clone()
    }

    pub(super) fn has_waker(&self) -> bool {
        self.waker.is_some()
    }

    /// Ends the request's body with an error, where it is still read.
    pub(super) fn fail(&self, error: TransportError) {
        if let Request::Read(inbox) = &self.request {
            inbox.fail(error);
        }
    }
}

impl<B> Drop for Exchange<B> {
    fn drop(&mut self) {
        // Unless its end has come already.
        if let Request::Read(inbox) = &self.request {
            let message = "the connection was closed";
            inbox.fail(TransportError::new(TransportErrorKind::Closed, message));
        }
    }
}

impl Arrival {
    pub(super) fn put(&mut self, data: Bytes, end: bool) {
        self.bytes += data.len();
        self.ended = end;
        if data.is_empty() {
            return;
        }
        if self.body.data.is_empty() {
            self.body.data = data;
        } else {
            self.body.more.push_back(data);
        }
    }

    pub(super) fn put_trailers(&mut self, trailers: Headers) {
        self.body.trailers = Some(trailers);
        self.ended = true;
    }

    /// The request's body for its reader, and where the rest of it goes.
    pub(super) fn split(self, wakes: &Arc<Wakes>) -> (RequestHead, RecvBody, Request) {
        if self.ended {
            return (self.head, RecvBody::whole(self.body), Request::Done);
        }
        let (inbox, body) = Inbox::new(self.stream, wakes.clone(), self.content_length);
        let parts: VecDeque<Bytes> = self.body.more;
        for part in std::iter::once(self.body.data).chain(parts) {
            inbox.put(part, false);
        }
        (self.head, RecvBody::inbox(body), Request::Read(inbox))
    }
}

impl Request {
    /// A request whose reader has gone.
    pub(super) fn left() -> Self {
        Self::Left(LINGER_BYTES_MAX)
    }
}

/// The next part of a body that is polled in place, where it says that it is pinned
/// by what it holds.
pub(super) fn poll_body<B: Body + Unpin>(
    body: &mut B,
    cx: &mut Context<'_>,
) -> Poll<Option<Result<Chunk, TransportError>>> {
    Pin::new(body).poll_chunk(cx)
}
