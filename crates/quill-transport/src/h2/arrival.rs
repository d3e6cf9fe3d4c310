//! A head that came, and what came behind it in the same read.

use std::sync::Arc;

use bytes::Bytes;
use quill_core::Headers;
use quill_h2::Key;

use super::{Inbox, Wakes};
use crate::body::{Came, RecvBody};
use crate::error::TransportError;

/// A request or an answer that was not handed over yet. Most are short, and whole at
/// the end of the read that brought them: these need nothing that is shared.
pub(crate) struct Arrival<H> {
    pub(crate) stream: Key,
    pub(crate) head: H,
    content_length: Option<u64>,
    body: Came,
    bytes: usize,
    ended: bool,
    /// Its stream broke behind what has come.
    failed: Option<TransportError>,
}

/// What an arrival became.
pub(crate) struct Split<H> {
    pub(crate) head: H,
    pub(crate) body: RecvBody,
    /// Where the rest goes, if more is to come.
    pub(crate) inbox: Option<Arc<Inbox>>,
    /// Bytes that were handed over for good.
    pub(crate) bytes: u32,
}

impl<H> Arrival<H> {
    pub(crate) fn new(stream: Key, head: H, content_length: Option<u64>, ended: bool) -> Self {
        Self {
            stream,
            head,
            content_length,
            body: Came::default(),
            bytes: 0,
            ended,
            failed: None,
        }
    }

    /// Breaks what is not whole: its reader learns of it behind the head.
    pub(crate) fn fail(&mut self, error: TransportError) {
        if !self.ended {
            self.failed = Some(error);
        }
    }

    pub(crate) fn put(&mut self, data: Bytes, end: bool) {
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

    pub(crate) fn put_trailers(&mut self, trailers: Headers) {
        self.body.trailers = Some(trailers);
        self.ended = true;
    }

    /// The head and the body for their reader.
    pub(crate) fn split(self, wakes: &Arc<Wakes>) -> Split<H> {
        if self.ended {
            return Split {
                head: self.head,
                body: RecvBody::whole(self.body),
                inbox: None,
                bytes: u32::try_from(self.bytes).unwrap_or(u32::MAX),
            };
        }
        let (inbox, body) = Inbox::new(self.stream, wakes.clone(), self.content_length);
        for part in std::iter::once(self.body.data).chain(self.body.more) {
            inbox.put(part, false);
        }
        if let Some(error) = self.failed {
            inbox.fail(error);
        }
        Split {
            head: self.head,
            body: RecvBody::inbox(body),
            inbox: Some(inbox),
            bytes: 0,
        }
    }
}
