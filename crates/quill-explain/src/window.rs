//! A view of a stream that moves forward.

use std::io::{self, Read};

use crate::failed::Failed;

/// Bytes that are read at once, at most.
const CHUNK_BYTES: usize = 64 * 1024;

/// The bytes at hand, and where they are in the stream.
pub(crate) struct Window<'a> {
    source: &'a mut dyn Read,
    buffer: Vec<u8>,
    /// Where in the buffer the window begins.
    start: usize,
    offset: u64,
    has_ended: bool,
}

impl<'a> Window<'a> {
    pub(crate) fn new(source: &'a mut dyn Read) -> Self {
        Self {
            source,
            buffer: Vec::new(),
            start: 0,
            offset: 0,
            has_ended: false,
        }
    }

    /// How far the window is from the stream's beginning.
    pub(crate) fn offset(&self) -> u64 {
        self.offset
    }

    fn held(&self) -> &[u8] {
        self.buffer.get(self.start..).unwrap_or_default()
    }

    /// The next bytes: so many, or fewer at the stream's end.
    pub(crate) fn peek(&mut self, count: usize) -> Result<&[u8], Failed> {
        if self.held().len() < count && !self.has_ended {
            self.fill(count)?;
        }
        let held = self.held();
        Ok(held.get(..count).unwrap_or(held))
    }

    fn fill(&mut self, count: usize) -> Result<(), Failed> {
        self.buffer.drain(..self.start);
        self.start = 0;
        while self.buffer.len() < count {
            // No more room than bytes come: a length may promise anything.
            let filled = self.buffer.len();
            self.buffer.resize(filled.saturating_add(CHUNK_BYTES), 0);
            let room = self.buffer.get_mut(filled..).unwrap_or_default();
            let read = self.source.read(room);
            let came = read.as_ref().map_or(0, |came| *came);
            self.buffer.truncate(filled.saturating_add(came));
            match read {
                Ok(0) => {
                    self.has_ended = true;
                    break;
                }
                Ok(_) => {}
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(Failed::Read(error)),
            }
        }
        Ok(())
    }

    /// Moves over bytes that were peeked at.
    pub(crate) fn advance(&mut self, count: usize) {
        let count = count.min(self.held().len());
        self.start = self.start.saturating_add(count);
        self.offset = self.offset.saturating_add(count as u64);
    }

    /// Moves on, over fewer bytes at the stream's end; says over how many.
    pub(crate) fn skip(&mut self, count: u64) -> Result<u64, Failed> {
        let mut left = count;
        while left > 0 {
            let some = usize::try_from(left).unwrap_or(usize::MAX).min(CHUNK_BYTES);
            let came = self.peek(some)?.len();
            if came == 0 {
                break;
            }
            self.advance(came);
            left = left.saturating_sub(came as u64);
        }
        Ok(count.saturating_sub(left))
    }

    /// Moves to a place ahead.
    pub(crate) fn skip_to(&mut self, offset: u64) -> Result<(), Failed> {
        self.skip(offset.saturating_sub(self.offset)).map(|_| ())
    }

    pub(crate) fn is_at_end(&mut self) -> Result<bool, Failed> {
        Ok(self.peek(1)?.is_empty())
    }
}
