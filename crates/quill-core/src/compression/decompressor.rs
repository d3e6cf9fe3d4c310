//! Decompression of data that arrives in pieces.

use std::fmt;

use super::{CompressionError, Encoding};

/// Decompresses one message or body that arrives in pieces of any size.
///
/// [`push`](Self::push) each piece, then [`finish`](Self::finish). After an error
/// the data is lost: drop the decompressor, and what it appended.
#[derive(Debug)]
pub struct Decompressor {
    decoder: Box<dyn Decode>,
    bytes_max: usize,
    produced_bytes: usize,
}

/// What an encoding's decoder is to a [`Decompressor`].
pub(super) trait Decode: fmt::Debug + Send + Sync {
    /// Takes the next piece, all of it, and appends what comes of it.
    fn push(&mut self, input: &[u8], sink: &mut Sink<'_>) -> Result<(), Stop>;

    /// Whether the data may end here: before any of it, or after a whole.
    fn is_complete(&self) -> bool;

    /// Keeps what can be used again for the next.
    fn recycle(self: Box<Self>);
}

/// What is not compressed.
#[derive(Debug)]
pub(super) struct Identity;

impl Decode for Identity {
    fn push(&mut self, input: &[u8], sink: &mut Sink<'_>) -> Result<(), Stop> {
        sink.append(input)
    }

    fn is_complete(&self) -> bool {
        true
    }

    fn recycle(self: Box<Self>) {}
}

impl Decompressor {
    /// A decompressor that gives out `bytes_max` bytes in all, at most.
    #[must_use]
    pub fn new(encoding: Encoding, bytes_max: usize) -> Self {
        Self {
            decoder: encoding.decoder(),
            bytes_max,
            produced_bytes: 0,
        }
    }

    /// Takes the next piece and appends to `out` what comes of it.
    ///
    /// # Errors
    /// [`CompressionError`] says what is wrong with the data so far.
    pub fn push(&mut self, input: &[u8], out: &mut Vec<u8>) -> Result<(), CompressionError> {
        let bytes_max = self.bytes_max;
        let mut sink = Sink {
            start: out.len(),
            room: bytes_max - self.produced_bytes,
            out,
        };
        let pushed = self.decoder.push(input, &mut sink);
        match pushed {
            Err(Stop::Full) => Err(CompressionError::TooLarge(bytes_max)),
            Err(Stop::Wrong(error)) => Err(error),
            Ok(()) if sink.is_over() => Err(CompressionError::TooLarge(bytes_max)),
            Ok(()) => {
                self.produced_bytes += sink.produced();
                Ok(())
            }
        }
    }

    /// Checks that the data may end here.
    ///
    /// # Errors
    /// [`CompressionError::Truncated`].
    pub fn finish(self) -> Result<(), CompressionError> {
        let is_complete = self.decoder.is_complete();
        self.recycle();
        if is_complete {
            Ok(())
        } else {
            Err(CompressionError::Truncated)
        }
    }

    /// Keeps the context for the next message; `finish` does that too.
    pub(super) fn recycle(self) {
        self.decoder.recycle();
    }
}

/// By how much memory for output grows at least, in bytes.
pub(super) const CHUNK_BYTES: usize = 4096;

/// Why decoding stopped.
pub(super) enum Stop {
    /// The output's bound is passed.
    Full,
    Wrong(CompressionError),
}

impl From<CompressionError> for Stop {
    fn from(error: CompressionError) -> Self {
        Self::Wrong(error)
    }
}

/// Where decompressed bytes go, and how many more may.
pub(super) struct Sink<'a> {
    pub(super) out: &'a mut Vec<u8>,
    start: usize,
    room: usize,
}

#[cfg_attr(
    not(all(feature = "gzip", feature = "snappy", feature = "zstd")),
    allow(dead_code)
)]
impl Sink<'_> {
    fn produced(&self) -> usize {
        self.out.len() - self.start
    }

    /// Whether more came out than may.
    pub(super) fn is_over(&self) -> bool {
        self.produced() > self.room
    }

    /// Whether all memory for output is used.
    pub(super) fn is_full(&self) -> bool {
        self.out.len() == self.out.capacity()
    }

    /// Makes sure that there is memory for some more output: as much again as
    /// came out already, but not more than may come, and one byte, which tells
    /// a message at its bound from one beyond it.
    pub(super) fn make_room(&mut self) -> Result<(), Stop> {
        if self.is_over() {
            return Err(Stop::Full);
        }
        if self.is_full() {
            let growth = self.produced().max(CHUNK_BYTES);
            self.out
                .reserve_exact(growth.min(self.room - self.produced() + 1));
        }
        Ok(())
    }

    /// Makes sure that there is memory for `bytes` more, if so many may come.
    pub(super) fn make_room_for(&mut self, bytes: u64) -> Result<(), Stop> {
        let room = self.room.saturating_sub(self.produced());
        match usize::try_from(bytes) {
            Ok(bytes) if bytes <= room => {
                self.out.reserve_exact(bytes);
                Ok(())
            }
            _ => Err(Stop::Full),
        }
    }

    /// Makes sure that there is memory for `bytes` more, if so many may come; it
    /// grows in steps, so that many small pieces do not each move what is there.
    pub(super) fn make_room_step(&mut self, bytes: usize) -> Result<(), Stop> {
        let room = self.room.saturating_sub(self.produced());
        if bytes > room {
            return Err(Stop::Full);
        }
        if self.out.capacity() - self.out.len() < bytes {
            let growth = self.produced().max(CHUNK_BYTES).min(room).max(bytes);
            self.out.reserve_exact(growth);
        }
        Ok(())
    }

    fn append(&mut self, bytes: &[u8]) -> Result<(), Stop> {
        self.make_room_for(bytes.len() as u64)?;
        self.out.extend_from_slice(bytes);
        Ok(())
    }
}
