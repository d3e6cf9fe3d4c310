//! The contexts of deflate (RFC 1951), bare for gzip and within zlib's frame.

use std::cell::RefCell;
use std::fmt;

use flate2::{Compress, Compression, Decompress, FlushCompress, FlushDecompress, Status};

use super::CompressionError;
use super::decompressor::{CHUNK_BYTES, Sink, Stop};
use super::pool::Pool;

/// What is around deflate's data.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Frame {
    #[cfg(feature = "gzip")]
    Bare,
    /// RFC 1950.
    #[cfg(feature = "deflate")]
    Zlib,
}

impl Frame {
    fn is_zlib(self) -> bool {
        match self {
            #[cfg(feature = "gzip")]
            Self::Bare => false,
            #[cfg(feature = "deflate")]
            Self::Zlib => true,
        }
    }
}

thread_local! {
    /// The last used compressor with its frame and level, which it cannot change.
    static DEFLATE: RefCell<Option<(Frame, u32, Compress)>> = const { RefCell::new(None) };
    static INFLATE: Pool<Decompress> = const { Pool::new() };
}

/// Appends all of `input`, compressed, to `out`. Levels beyond 9 are 9.
pub(super) fn deflate(
    frame: Frame,
    level: u8,
    input: &[u8],
    out: &mut Vec<u8>,
) -> Result<(), CompressionError> {
    let level = u32::from(level.clamp(1, 9));
    let kept = DEFLATE
        .try_with(|kept| kept.borrow_mut().take())
        .ok()
        .flatten();
    let mut context = match kept {
        Some((kept_frame, kept_level, mut context))
            if (kept_frame, kept_level) == (frame, level) =>
        {
            context.reset();
            context
        }
        _ => Compress::new(Compression::new(level), frame.is_zlib()),
    };
    deflate_all(&mut context, input, out)?;
    let _ = DEFLATE.try_with(|kept| *kept.borrow_mut() = Some((frame, level, context)));
    Ok(())
}

fn deflate_all(
    deflate: &mut Compress,
    input: &[u8],
    out: &mut Vec<u8>,
) -> Result<(), CompressionError> {
    let mut taken = 0;
    loop {
        out.reserve((input.len() / 4).max(CHUNK_BYTES));
        let rest = input.get(taken..).unwrap_or_default();
        let before = deflate.total_in();
        let status = deflate
            .compress_vec(rest, out, FlushCompress::Finish)
            .map_err(|_| CompressionError::Failed("deflate refused its input"))?;
        taken += (deflate.total_in() - before) as usize;
        if status == Status::StreamEnd {
            return Ok(());
        }
    }
}

/// Decompresses deflate data in its frame.
pub(super) struct Inflate {
    context: Decompress,
    frame: Frame,
}

impl Inflate {
    pub(super) fn new(frame: Frame) -> Self {
        let kept = INFLATE.try_with(Pool::take).ok().flatten();
        let mut inflate = Self {
            context: kept.unwrap_or_else(|| Decompress::new(frame.is_zlib())),
            frame,
        };
        inflate.reset();
        inflate
    }

    /// Makes it ready for other data.
    pub(super) fn reset(&mut self) {
        self.context.reset(self.frame.is_zlib());
    }

    /// Keeps the context for the next.
    pub(super) fn recycle(self) {
        // On a thread that ends there is nothing to keep it in.
        let _ = INFLATE.try_with(|pool| pool.put(self.context));
    }

    /// How much came out since the last reset.
    #[cfg(feature = "gzip")]
    pub(super) fn total_out(&self) -> u64 {
        self.context.total_out()
    }

    /// Takes from `input` what belongs to the data, and says whether that ended;
    /// if not, all input is taken. `seen` is shown what comes out.
    pub(super) fn push(
        &mut self,
        input: &mut &[u8],
        sink: &mut Sink<'_>,
        mut seen: impl FnMut(&[u8]),
    ) -> Result<bool, Stop> {
        loop {
            sink.make_room()?;
            let (len, total_in) = (sink.out.len(), self.context.total_in());
            let status = self
                .context
                .decompress_vec(input, sink.out, FlushDecompress::None)
                .map_err(|_| CompressionError::Corrupt("not deflate data"))?;
            let taken = (self.context.total_in() - total_in) as usize;
            *input = input.get(taken..).unwrap_or_default();
            let produced = sink.out.get(len..).unwrap_or_default();
            seen(produced);
            let is_idle = taken == 0 && produced.is_empty();
            if sink.is_over() {
                return Err(Stop::Full);
            }
            if status == Status::StreamEnd {
                return Ok(true);
            }
            // Output that filled its memory may not be all there is.
            if input.is_empty() && !sink.is_full() {
                return Ok(false);
            }
            if is_idle {
                return Err(CompressionError::Corrupt("deflate data without progress").into());
            }
        }
    }
}

impl fmt::Debug for Inflate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Inflate")
            .field("frame", &self.frame)
            .finish_non_exhaustive()
    }
}
