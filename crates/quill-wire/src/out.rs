//! What an encoder hands to the transport.

use std::collections::VecDeque;

use bytes::{Bytes, BytesMut};
use quill_core::{Headers, ResponseHead};

/// Payloads from this size on leave by reference; smaller ones are cheaper to copy.
pub(crate) const BY_REFERENCE_BYTES_MIN: usize = 4096;

/// One side's half of an HTTP exchange, on its way to the transport: a head,
/// body bytes, trailers, the end.
///
/// An encoder appends; the transport drains in the same order. Small messages
/// gather in one buffer and leave in one piece, large ones go by reference.
#[derive(Debug, Default)]
pub struct Out {
    head: Option<ResponseHead>,
    chunks: VecDeque<Bytes>,
    tail: BytesMut,
    trailers: Option<Headers>,
    ended: bool,
}

impl Out {
    /// Nothing to send yet.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets the answer's head; it leaves before any body.
    pub fn put_head(&mut self, head: ResponseHead) {
        self.head = Some(head);
    }

    /// The buffer that body bytes are appended to.
    pub fn buffer(&mut self) -> &mut BytesMut {
        &mut self.tail
    }

    /// Appends body bytes, by reference when that is cheaper than a copy.
    pub fn put_bytes(&mut self, bytes: Bytes) {
        if bytes.len() < BY_REFERENCE_BYTES_MIN {
            self.tail.extend_from_slice(&bytes);
            return;
        }
        self.flush_tail();
        self.chunks.push_back(bytes);
    }

    /// Ends this half, with trailers where the protocol uses them.
    pub fn end(&mut self, trailers: Option<Headers>) {
        self.trailers = trailers;
        self.ended = true;
    }

    /// Takes the head, once.
    pub fn take_head(&mut self) -> Option<ResponseHead> {
        self.head.take()
    }

    /// Takes the next piece of the body.
    pub fn take_chunk(&mut self) -> Option<Bytes> {
        if let Some(chunk) = self.chunks.pop_front() {
            return Some(chunk);
        }
        if self.tail.is_empty() {
            return None;
        }
        // Behind the end nothing is written: the buffer itself leaves.
        let tail = if self.ended {
            std::mem::take(&mut self.tail)
        } else {
            self.tail.split()
        };
        Some(tail.freeze())
    }

    /// Takes the body in one piece, if all of it is here, and in one; as much as this
    /// half has in it.
    pub fn take_whole(&mut self) -> Option<Bytes> {
        let is_one = match self.chunks.len() {
            0 => true,
            1 => self.tail.is_empty(),
            _ => false,
        };
        (self.ended && is_one).then(|| self.take_chunk().unwrap_or_default())
    }

    /// Takes the trailers, once all of the body was taken.
    pub fn take_trailers(&mut self) -> Option<Headers> {
        self.trailers.take()
    }

    /// Whether trailers wait here.
    #[must_use]
    pub fn has_trailers(&self) -> bool {
        self.trailers.is_some()
    }

    /// Bytes of body that wait here.
    #[must_use]
    pub fn body_bytes(&self) -> usize {
        let chunks: usize = self.chunks.iter().map(Bytes::len).sum();
        chunks.saturating_add(self.tail.len())
    }

    /// Whether this half was ended; what waits here still has to leave.
    #[must_use]
    pub fn is_ended(&self) -> bool {
        self.ended
    }

    fn flush_tail(&mut self) {
        if !self.tail.is_empty() {
            let tail = self.tail.split().freeze();
            self.chunks.push_back(tail);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn order_is_kept_between_copies_and_references() {
        let mut out = Out::new();
        out.put_bytes(Bytes::from_static(b"small"));
        let large = Bytes::from(vec![7; BY_REFERENCE_BYTES_MIN]);
        out.put_bytes(large.clone());
        out.buffer().extend_from_slice(b"end");
        assert_eq!(out.body_bytes(), 5 + large.len() + 3);
        assert_eq!(out.take_chunk().as_deref(), Some(&b"small"[..]));
        let by_reference = out.take_chunk().unwrap();
        assert_eq!(by_reference.as_ptr(), large.as_ptr());
        assert_eq!(out.take_chunk().as_deref(), Some(&b"end"[..]));
        assert_eq!(out.take_chunk(), None);
    }

    #[test]
    fn a_half_is_taken_whole_if_it_is_one_piece() {
        let mut out = Out::new();
        out.put_bytes(Bytes::from_static(b"small"));
        assert_eq!(out.take_whole(), None);
        out.end(None);
        assert_eq!(out.take_whole().as_deref(), Some(&b"small"[..]));
        assert_eq!(out.take_whole().as_deref(), Some(&b""[..]));
        let mut out = Out::new();
        out.put_bytes(Bytes::from_static(b"small"));
        out.put_bytes(Bytes::from(vec![7; BY_REFERENCE_BYTES_MIN]));
        out.end(None);
        assert_eq!(out.take_whole(), None);
        assert_eq!(out.take_chunk().as_deref(), Some(&b"small"[..]));
        assert!(
            out.take_whole()
                .is_some_and(|bytes| bytes.len() == BY_REFERENCE_BYTES_MIN)
        );
    }
}
