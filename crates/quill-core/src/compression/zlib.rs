//! zlib (RFC 1950), which HTTP calls `deflate` (RFC 9110 section 8.4.1.2).

use super::CompressionError;
use super::decompressor::{CHUNK_BYTES, Decode, Sink, Stop};
use super::flate::{self, Frame, Inflate};

pub(super) fn compress(input: &[u8], level: u8) -> Result<Vec<u8>, CompressionError> {
    let mut out = Vec::with_capacity(input.len() / 4 + CHUNK_BYTES);
    flate::deflate(Frame::Zlib, level, input, &mut out)?;
    Ok(out)
}

/// Decompresses one zlib stream.
#[derive(Debug)]
pub(super) struct Unzlib {
    inflate: Inflate,
    part: Part,
}

/// Where in the stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Part {
    Start,
    Inside,
    End,
}

impl Unzlib {
    pub(super) fn new() -> Self {
        Self {
            inflate: Inflate::new(Frame::Zlib),
            part: Part::Start,
        }
    }
}

impl Decode for Unzlib {
    fn push(&mut self, mut input: &[u8], sink: &mut Sink<'_>) -> Result<(), Stop> {
        if input.is_empty() {
            return Ok(());
        }
        if self.part == Part::End {
            return Err(CompressionError::TrailingBytes.into());
        }
        self.part = Part::Inside;
        if self.inflate.push(&mut input, sink, |_| {})? {
            self.part = Part::End;
            return self.push(input, sink);
        }
        Ok(())
    }

    fn is_complete(&self) -> bool {
        self.part != Part::Inside
    }

    fn recycle(self: Box<Self>) {
        self.inflate.recycle();
    }
}
