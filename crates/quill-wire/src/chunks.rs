//! Received bytes that wait to become something whole.

use std::collections::VecDeque;

use bytes::{Buf, Bytes, BytesMut};

/// A piece is copied out of its chunk when it is under one part in this many of
/// it, so that a small message that is kept does not keep a whole read buffer.
const COPY_RATIO: usize = 4;

/// A chunk under this size that has to wait is copied behind what waits already:
/// a body in single bytes costs its bytes, not a read buffer for each.
const JOIN_BYTES_MAX: usize = 1024;

/// Chunks of a body, taken from the front in pieces of any length. A piece that
/// lies in one chunk is not copied, unless it is a small part of it.
#[derive(Debug, Default)]
pub(crate) struct Chunks {
    /// The first; empty only when there is none. Most bodies are one chunk.
    first: Bytes,
    more: VecDeque<Bytes>,
    /// Small chunks, joined; after all of `more`.
    joined: BytesMut,
    len: usize,
}

impl Chunks {
    pub(crate) fn push(&mut self, chunk: Bytes) {
        if chunk.is_empty() {
            return;
        }
        let is_waiting = self.len > 0;
        self.len = self.len.saturating_add(chunk.len());
        if is_waiting && chunk.len() < JOIN_BYTES_MAX {
            self.joined.extend_from_slice(&chunk);
        } else {
            self.flush_joined();
            self.push_back(chunk);
        }
    }

    /// Bytes held.
    pub(crate) fn len(&self) -> usize {
        self.len
    }

    /// Takes exactly `len` bytes; `None` while there are fewer.
    pub(crate) fn take(&mut self, len: usize) -> Option<Bytes> {
        if self.len < len {
            return None;
        }
        self.len = self.len.saturating_sub(len);
        self.flush_joined();
        let first = &mut self.first;
        let piece = if first.len() < len {
            self.gather(len)
        } else if len.saturating_mul(COPY_RATIO) < first.len() {
            let piece = Bytes::copy_from_slice(first.get(..len).unwrap_or_default());
            first.advance(len);
            piece
        } else {
            first.split_to(len)
        };
        self.fill_first();
        Some(piece)
    }

    /// Takes exactly `N` bytes by copy, which for a few is cheaper than a piece;
    /// `None` while there are fewer.
    pub(crate) fn take_array<const N: usize>(&mut self) -> Option<[u8; N]> {
        if self.first.len() > N {
            let array = *self.first.first_chunk()?;
            self.first.advance(N);
            self.len = self.len.saturating_sub(N);
            return Some(array);
        }
        let piece = self.take(N)?;
        piece.first_chunk().copied()
    }

    /// Takes everything.
    pub(crate) fn take_all(&mut self) -> Bytes {
        self.take(self.len).unwrap_or_default()
    }

    fn flush_joined(&mut self) {
        if !self.joined.is_empty() {
            let joined = self.joined.split().freeze();
            self.push_back(joined);
        }
    }

    fn push_back(&mut self, chunk: Bytes) {
        if self.first.is_empty() {
            self.first = chunk;
        } else {
            self.more.push_back(chunk);
        }
    }

    /// Has the next chunk follow one that was taken.
    fn fill_first(&mut self) {
        if self.first.is_empty() {
            self.first = self.more.pop_front().unwrap_or_default();
        }
    }

    fn gather(&mut self, len: usize) -> Bytes {
        let mut piece = BytesMut::with_capacity(len);
        while piece.len() < len {
            let chunk = &mut self.first;
            if chunk.is_empty() {
                break;
            }
            let part = chunk.len().min(len.saturating_sub(piece.len()));
            piece.extend_from_slice(chunk.get(..part).unwrap_or_default());
            chunk.advance(part);
            self.fill_first();
        }
        piece.freeze()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_span_chunks_and_small_ones_pin_nothing() {
        let mut chunks = Chunks::default();
        chunks.push(Bytes::from_static(b"abc"));
        chunks.push(Bytes::new());
        chunks.push(Bytes::from_static(b"defghijklmnop"));
        assert_eq!(chunks.take(5).as_deref(), Some(&b"abcde"[..]));
        let small = chunks.take(2).unwrap();
        assert_eq!(&small[..], b"fg");
        assert_eq!(chunks.take(10), None);
        assert_eq!(&chunks.take_all()[..], b"hijklmnop");
        assert_eq!(chunks.len(), 0);
        assert_eq!(chunks.take(0).as_deref(), Some(&b""[..]));
    }

    #[test]
    fn small_chunks_that_wait_are_joined() {
        let mut chunks = Chunks::default();
        for _ in 0..2 {
            for byte in 0..200 {
                chunks.push(Bytes::copy_from_slice(&[byte]));
            }
            assert!(chunks.more.is_empty());
            let large = Bytes::from(vec![7; JOIN_BYTES_MAX]);
            chunks.push(large.clone());
            let before: Vec<u8> = (0..200).collect();
            assert_eq!(chunks.take(200).as_deref(), Some(&before[..]));
            let taken = chunks.take(JOIN_BYTES_MAX).unwrap();
            assert_eq!(taken.as_ptr(), large.as_ptr());
        }
        assert_eq!(chunks.len(), 0);
    }

    #[test]
    fn arrays_are_taken_within_and_across_chunks() {
        let mut chunks = Chunks::default();
        for chunk in [&b"ab"[..], b"c", b"defgh"] {
            chunks.push(Bytes::from_static(chunk));
        }
        assert_eq!(chunks.take_array(), Some(*b"ab"));
        assert_eq!(chunks.take_array(), Some(*b"cde"));
        assert_eq!(chunks.take_array::<4>(), None);
        assert_eq!(chunks.len(), 3);
        assert_eq!(chunks.take_array(), Some(*b"fgh"));
        assert_eq!(chunks.take_array::<1>(), None);
    }
}
