//! Brotli (RFC 7932).

use std::fmt;

use brotli::enc::{BrotliEncoderParams, StandardAlloc};
use brotli::{BrotliDecompressStream, BrotliResult, BrotliState};

use super::CompressionError;
use super::decompressor::{Decode, Sink, Stop};

/// Levels beyond are none of brotli's.
const LEVEL_MAX: u8 = 11;

/// Windows that we write have 1 KiB to 4 MiB, and no more than the input needs.
const WINDOW_LOGS: std::ops::RangeInclusive<u32> = 10..=22;

/// Most output at once. The library wants its memory filled beforehand.
const STEP_BYTES: usize = 16 * 1024;

pub(super) fn compress(mut input: &[u8], level: u8) -> Result<Vec<u8>, CompressionError> {
    let window_log =
        (usize::BITS - input.len().leading_zeros()).clamp(*WINDOW_LOGS.start(), *WINDOW_LOGS.end());
    let params = BrotliEncoderParams {
        quality: level.clamp(1, LEVEL_MAX).into(),
        lgwin: window_log.cast_signed(),
        size_hint: input.len(),
        ..BrotliEncoderParams::default()
    };
    let mut out = Vec::new();
    brotli::BrotliCompress(&mut input, &mut out, &params)
        .map_err(|_| CompressionError::Failed("brotli refused its input"))?;
    Ok(out)
}

/// Decompresses one brotli stream.
pub(super) struct Unbrotli {
    state: BrotliState<StandardAlloc, StandardAlloc, StandardAlloc>,
    part: Part,
}

/// Where in the stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Part {
    Start,
    Inside,
    End,
}

impl Unbrotli {
    pub(super) fn new() -> Self {
        let alloc = StandardAlloc::default;
        Self {
            // Strict: windows of at most 16 MiB. An extension that is not in the
            // RFC has some of a gigabyte.
            state: BrotliState::new_strict(alloc(), alloc(), alloc()),
            part: Part::Start,
        }
    }
}

impl Decode for Unbrotli {
    fn push(&mut self, input: &[u8], sink: &mut Sink<'_>) -> Result<(), Stop> {
        let mut left = input.len();
        let mut at = 0;
        if left > 0 && self.part == Part::Start {
            self.part = Part::Inside;
        }
        while self.part == Part::Inside {
            sink.make_room()?;
            let before = sink.out.len();
            let step = (sink.out.capacity() - before).min(STEP_BYTES);
            sink.out.resize(before + step, 0);
            let mut room = step;
            let mut produced = 0;
            let result = BrotliDecompressStream(
                &mut left,
                &mut at,
                input,
                &mut room,
                &mut produced,
                sink.out.get_mut(before..).unwrap_or_default(),
                &mut 0,
                &mut self.state,
            );
            sink.out.truncate(before + produced);
            if sink.is_over() {
                return Err(Stop::Full);
            }
            match result {
                BrotliResult::ResultSuccess => self.part = Part::End,
                BrotliResult::NeedsMoreInput => return Ok(()),
                BrotliResult::NeedsMoreOutput => {}
                BrotliResult::ResultFailure => {
                    return Err(CompressionError::Corrupt("not brotli data").into());
                }
            }
        }
        if left > 0 {
            return Err(CompressionError::TrailingBytes.into());
        }
        Ok(())
    }

    fn is_complete(&self) -> bool {
        self.part != Part::Inside
    }

    fn recycle(self: Box<Self>) {}
}

impl fmt::Debug for Unbrotli {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Unbrotli")
            .field("part", &self.part)
            .finish_non_exhaustive()
    }
}
