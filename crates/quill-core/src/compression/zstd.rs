//! zstd (RFC 8878).

use std::fmt;

use zstd::zstd_safe::zstd_sys::{ZSTD_EndDirective, ZSTD_ErrorCode};
use zstd::zstd_safe::{
    self, CCtx, CParameter, DCtx, DParameter, InBuffer, OutBuffer, ResetDirective,
};

use super::CompressionError;
use super::decompressor::{Decode, Sink, Stop};
use super::pool::Pool;

/// 8 MiB: what every decoder should take, and no encoder should exceed (RFC 8878
/// section 3.1.1.1.2). Without a bound a frame header of 6 bytes makes a decoder
/// reserve gigabytes.
const WINDOW_LOG_MAX: u32 = 23;

/// Levels beyond are none of zstd's.
const LEVEL_MAX: u8 = 22;

/// The longest header of a frame (RFC 8878 section 3.1.1.1: magic number,
/// descriptor, window, dictionary, content size).
const HEADER_BYTES_MAX: usize = 18;

/// The largest context that is kept, in bytes.
const CONTEXT_BYTES_MAX: usize = 4 * 1024 * 1024;

thread_local! {
    static COMPRESSORS: Pool<CCtx<'static>> = const { Pool::new() };
    static DECOMPRESSORS: Pool<DCtx<'static>> = const { Pool::new() };
}

pub(super) fn compress(input: &[u8], level: u8) -> Result<Vec<u8>, CompressionError> {
    let kept = COMPRESSORS.try_with(Pool::take).ok().flatten();
    let mut context = match kept {
        Some(context) => context,
        None => {
            CCtx::try_create().ok_or(CompressionError::Failed("no memory for a zstd context"))?
        }
    };
    let done = compress_with(&mut context, input, level)
        .map_err(|code| CompressionError::Failed(zstd_safe::get_error_name(code)));
    if context.sizeof() <= CONTEXT_BYTES_MAX {
        // On a thread that ends there is nothing to keep it in.
        let _ = COMPRESSORS.try_with(|pool| pool.put(context));
    }
    done
}

fn compress_with(
    context: &mut CCtx<'static>,
    input: &[u8],
    level: u8,
) -> Result<Vec<u8>, zstd_safe::ErrorCode> {
    context.reset(ResetDirective::SessionAndParameters)?;
    context.set_parameter(CParameter::CompressionLevel(
        level.clamp(1, LEVEL_MAX).into(),
    ))?;
    if input.len() > 1 << WINDOW_LOG_MAX {
        // Smaller input has a smaller window in any case.
        context.set_parameter(CParameter::WindowLog(WINDOW_LOG_MAX))?;
    }
    // With room for the worst case, one call compresses without a buffer between.
    let mut out = Vec::with_capacity(zstd_safe::compress_bound(input.len()));
    let mut source = InBuffer::around(input);
    loop {
        let end = out.len();
        let mut sink = OutBuffer::around_pos(&mut out, end);
        let left =
            context.compress_stream2(&mut sink, &mut source, ZSTD_EndDirective::ZSTD_e_end)?;
        if left == 0 {
            return Ok(out);
        }
        out.reserve(left);
    }
}

/// Decompresses zstd data: one frame or several.
pub(super) struct Unzstd {
    context: Option<DCtx<'static>>,
    is_inside_frame: bool,
    /// How the frame begins, its header among it, and what came of it so far.
    beginning: Vec<u8>,
    frame_bytes: u64,
    frames: u64,
}

impl Unzstd {
    pub(super) fn new() -> Self {
        let kept = DECOMPRESSORS.try_with(Pool::take).ok().flatten();
        Self {
            context: kept.or_else(new_context),
            is_inside_frame: false,
            beginning: Vec::new(),
            frame_bytes: 0,
            frames: 0,
        }
    }
}

impl Decode for Unzstd {
    fn push(&mut self, mut input: &[u8], sink: &mut Sink<'_>) -> Result<(), Stop> {
        let Some(context) = &mut self.context else {
            return Err(CompressionError::Failed("no memory for a zstd context").into());
        };
        while !input.is_empty() || (self.is_inside_frame && sink.is_full()) {
            if !self.is_inside_frame {
                // With room for all of it, a frame is decoded straight into its
                // place; and a frame that says it is too large is not begun.
                if let Ok(Some(content_bytes)) = zstd_safe::get_frame_content_size(input) {
                    sink.make_room_for(content_bytes)?;
                }
            }
            sink.make_room()?;
            let before = sink.out.len();
            let mut source = InBuffer::around(input);
            let mut target = OutBuffer::around_pos(sink.out, before);
            let hint = context.decompress_stream(&mut target, &mut source);
            let taken = source.pos();
            let hint = hint.map_err(|code| wrong(code, self.frames))?;
            let wanted = HEADER_BYTES_MAX - self.beginning.len();
            let begun = input.iter().take(taken.min(wanted));
            self.beginning.extend(begun);
            self.frame_bytes += (sink.out.len() - before) as u64;
            input = input.get(taken..).unwrap_or_default();
            if sink.is_over() {
                return Err(Stop::Full);
            }
            self.is_inside_frame = hint != 0;
            if hint == 0 {
                end_frame(&mut self.beginning, &mut self.frame_bytes)?;
                self.frames += 1;
            } else if taken == 0 && sink.out.len() == before {
                return if input.is_empty() {
                    Ok(())
                } else {
                    Err(CompressionError::Corrupt("zstd data without progress").into())
                };
            }
        }
        Ok(())
    }

    fn is_complete(&self) -> bool {
        !self.is_inside_frame
    }

    fn recycle(self: Box<Self>) {
        // A large window makes a context large: such a one is not kept.
        let kept = self.context.and_then(|mut context| {
            let is_clean = context.reset(ResetDirective::SessionOnly).is_ok();
            (is_clean && context.sizeof() <= CONTEXT_BYTES_MAX).then_some(context)
        });
        if let Some(context) = kept {
            let _ = DECOMPRESSORS.try_with(|pool| pool.put(context));
        }
    }
}

/// Holds a frame that has ended to the size that it said it has. The library
/// does that where it gets a frame whole, and not always where it comes in pieces.
fn end_frame(beginning: &mut Vec<u8>, frame_bytes: &mut u64) -> Result<(), CompressionError> {
    let said = zstd_safe::get_frame_content_size(beginning).ok().flatten();
    let came = std::mem::take(frame_bytes);
    beginning.clear();
    if said.is_some_and(|said| said != came) {
        return Err(CompressionError::Corrupt(
            "a zstd frame of another size than it says",
        ));
    }
    Ok(())
}

fn new_context() -> Option<DCtx<'static>> {
    let mut context = DCtx::try_create()?;
    context
        .set_parameter(DParameter::WindowLogMax(WINDOW_LOG_MAX))
        .ok()?;
    Some(context)
}

/// What the library's error means after so many whole frames.
fn wrong(code: zstd_safe::ErrorCode, frames: u64) -> CompressionError {
    // The library returns its error numbers negated.
    let is = |error: ZSTD_ErrorCode| code == (error as usize).wrapping_neg();
    if is(ZSTD_ErrorCode::ZSTD_error_frameParameter_windowTooLarge) {
        return CompressionError::WindowTooLarge(1 << WINDOW_LOG_MAX);
    }
    if is(ZSTD_ErrorCode::ZSTD_error_prefix_unknown) && frames > 0 {
        return CompressionError::TrailingBytes;
    }
    CompressionError::Corrupt(zstd_safe::get_error_name(code))
}

impl fmt::Debug for Unzstd {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Unzstd")
            .field("is_inside_frame", &self.is_inside_frame)
            .field("frames", &self.frames)
            .finish_non_exhaustive()
    }
}
