//! Received bytes that wait to become something whole.

use std::collections::VecDeque;
use std::mem;

use bytes::{Buf, Bytes};

/// A piece is copied out of its chunk when it is under one part in this many of
/// it, so that a small message that is kept does not keep a whole read buffer.
const COPY_RATIO: usize = 4;

/// A chunk under this size that has to wait is held at once: a body in single
/// bytes costs its bytes, not an allocation for each.
const JOIN_BYTES_MAX: usize = 1024;

/// What memory for held bytes begins with, where the piece may be as long.
const GROWTH_BYTES_MIN: usize = 1024;

/// Chunks of a body, taken from the front in pieces of any length. A piece that
/// lies in one chunk is not copied, unless it is a small part of it.
///
/// A chunk keeps all of the buffer alive that it was read into, of which it may be a
/// small part. So what has to wait for more is to be [held](Self::hold), in memory of
/// its own that doubles as bytes come and ends at the length of the piece.
#[derive(Debug, Default)]
pub(crate) struct Chunks {
    /// What is held; before all chunks.
    held: Vec<u8>,
    /// The first chunk; empty only when there is none. Most bodies are one chunk.
    first: Bytes,
    more: VecDeque<Bytes>,
    len: usize,
    /// Small pieces are not copied.
    is_shared: bool,
    /// How long the piece is that is awaited, at most.
    piece_bytes_max: usize,
}

impl Chunks {
    /// Chunks that are taken all at once, this many bytes at most.
    pub(crate) fn whole(bytes_max: usize) -> Self {
        Self {
            piece_bytes_max: bytes_max,
            ..Self::default()
        }
    }

    /// Copies no small pieces any more: they are not kept.
    pub(crate) fn share_memory(&mut self) {
        self.is_shared = true;
    }

    pub(crate) fn push(&mut self, chunk: Bytes) {
        if chunk.is_empty() {
            return;
        }
        let joins = self.len > 0 && chunk.len() < JOIN_BYTES_MAX;
        self.len = self.len.saturating_add(chunk.len());
        if self.first.is_empty() {
            self.first = chunk;
        } else {
            self.more.push_back(chunk);
        }
        if joins {
            self.hold();
        }
    }

    /// Bytes that wait.
    pub(crate) fn len(&self) -> usize {
        self.len
    }

    /// Puts all that waits into memory of its own.
    pub(crate) fn hold(&mut self) {
        if self.first.is_empty() {
            return;
        }
        let capacity = self.held.capacity();
        if self.len > capacity {
            let grown = capacity.saturating_mul(2).max(GROWTH_BYTES_MIN);
            let wanted = grown.min(self.piece_bytes_max).max(self.len);
            self.held
                .reserve_exact(wanted.saturating_sub(self.held.len()));
        }
        self.held.extend_from_slice(&mem::take(&mut self.first));
        for chunk in mem::take(&mut self.more) {
            self.held.extend_from_slice(&chunk);
        }
    }

    /// Memory of what waits, in bytes, but for what chunks keep alive beside themselves.
    pub(crate) fn held_bytes(&self) -> usize {
        let chunks = self.len.saturating_sub(self.held.len());
        self.held.capacity().saturating_add(chunks)
    }

    /// Takes exactly `len` bytes; `None` while there are fewer.
    pub(crate) fn take(&mut self, len: usize) -> Option<Bytes> {
        if self.len < len {
            self.piece_bytes_max = len;
            return None;
        }
        if self.held.len() > len {
            self.release();
        }
        self.len = self.len.saturating_sub(len);
        let first = &mut self.first;
        let piece = if !self.held.is_empty() || first.len() < len {
            self.gather(len)
        } else if !self.is_shared && len.saturating_mul(COPY_RATIO) < first.len() {
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
        if self.held.is_empty() && self.first.len() > N {
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

    /// Makes a chunk of what is held.
    fn release(&mut self) {
        let held = Bytes::from(mem::take(&mut self.held));
        let second = mem::replace(&mut self.first, held);
        if !second.is_empty() {
            self.more.push_front(second);
        }
    }

    /// Has the next chunk follow one that was taken.
    fn fill_first(&mut self) {
        if self.first.is_empty() {
            self.first = self.more.pop_front().unwrap_or_default();
        }
    }

    /// Completes what is held to `len` bytes, and takes it.
    fn gather(&mut self, len: usize) -> Bytes {
        let mut piece = mem::take(&mut self.held);
        piece.reserve_exact(len.saturating_sub(piece.len()));
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
        piece.into()
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
    fn small_pieces_share_their_chunk_where_they_may() {
        let chunk = Bytes::from(vec![7; 100]);
        for is_shared in [false, true] {
            let mut chunks = Chunks::default();
            if is_shared {
                chunks.share_memory();
            }
            chunks.push(chunk.clone());
            let piece = chunks.take(2).unwrap();
            assert_eq!(piece.as_ptr() == chunk.as_ptr(), is_shared);
        }
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
    fn what_is_held_keeps_no_buffer_and_grows_to_the_piece_alone() {
        const PIECE: usize = 100_000;
        let mut buffer = bytes::BytesMut::from(&vec![7; PIECE][..]);
        let mut chunks = Chunks::default();
        for _ in 0..40 {
            assert_eq!(chunks.take(PIECE), None);
            chunks.push(buffer.split_to(PIECE / 40).freeze());
            chunks.hold();
            let (len, held) = (chunks.len(), chunks.held_bytes());
            assert!(
                held <= PIECE && held < 2 * len.max(GROWTH_BYTES_MIN),
                "{held}"
            );
        }
        // Nothing holds on to what was read.
        assert!(buffer.try_reclaim(PIECE));
        let place = chunks.held.as_ptr();
        let piece = chunks.take(PIECE).unwrap();
        assert_eq!((piece.as_ptr(), piece.len()), (place, PIECE));
        assert_eq!(chunks.held_bytes(), 0);
    }

    #[test]
    fn pieces_are_the_same_whatever_was_held() {
        let bytes: Vec<u8> = (0..=255).collect();
        for held in 0..8 {
            let mut chunks = Chunks::default();
            for (n, part) in bytes.chunks(50).enumerate() {
                chunks.push(Bytes::copy_from_slice(part));
                if held & 1 << n != 0 {
                    chunks.hold();
                }
            }
            let mut taken = Vec::new();
            for len in [1, 60, 0, 5, 100, 90] {
                taken.extend(chunks.take(len).unwrap());
            }
            assert_eq!((taken, chunks.len()), (bytes.clone(), 0), "{held}");
        }
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
