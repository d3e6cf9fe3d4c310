//! gzip (RFC 1952) around deflate. The framing is ours, since the deflate
//! contexts of the library are only used again without it.

use std::cell::RefCell;
use std::fmt;

use flate2::{Compress, Compression, Crc, Decompress, FlushCompress, FlushDecompress, Status};

use super::CompressionError;
use super::decompressor::{CHUNK_BYTES, Sink, Stop};
use super::pool::Pool;

thread_local! {
    /// The last used compressor and its level, which it cannot change.
    static DEFLATE: RefCell<Option<(u32, Compress)>> = const { RefCell::new(None) };
    static INFLATE: Pool<Decompress> = const { Pool::new() };
}

const MAGIC: [u8; 2] = [0x1f, 0x8b];
const METHOD_DEFLATE: u8 = 8;
const FLAG_HEADER_CRC: u8 = 0x02;
const FLAG_EXTRA: u8 = 0x04;
const FLAG_NAME: u8 = 0x08;
const FLAG_COMMENT: u8 = 0x10;
const FLAGS_RESERVED: u8 = 0xe0;

pub(super) fn compress(input: &[u8], level: u8) -> Result<Vec<u8>, CompressionError> {
    const OS_UNKNOWN: u8 = 255;
    // No name, no time: the same message gives the same bytes.
    let mut out = Vec::with_capacity(input.len() / 4 + CHUNK_BYTES);
    out.extend_from_slice(&[
        MAGIC[0],
        MAGIC[1],
        METHOD_DEFLATE,
        0,
        0,
        0,
        0,
        0,
        0,
        OS_UNKNOWN,
    ]);

    let level = u32::from(level.clamp(1, 9));
    let kept = DEFLATE
        .try_with(|kept| kept.borrow_mut().take())
        .ok()
        .flatten();
    let mut deflate = match kept {
        Some((kept_level, mut deflate)) if kept_level == level => {
            deflate.reset();
            deflate
        }
        _ => Compress::new(Compression::new(level), false),
    };
    deflate_all(&mut deflate, input, &mut out)?;
    let _ = DEFLATE.try_with(|kept| *kept.borrow_mut() = Some((level, deflate)));

    let mut crc = Crc::new();
    crc.update(input);
    out.extend_from_slice(&crc.sum().to_le_bytes());
    // RFC 1952 section 2.3.1: the length modulo 2^32.
    out.extend_from_slice(&(input.len() as u32).to_le_bytes());
    Ok(out)
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

/// Decompresses one gzip file: one member or several.
pub(super) struct Gunzip {
    inflate: Decompress,
    part: Part,
    crc: Crc,
    members: u64,
}

/// What comes next.
#[derive(Debug, Clone, Copy)]
enum Part {
    Header(Header),
    Body,
    /// The checksum and the length, of which so much is here.
    Trailer {
        bytes: [u8; 8],
        len: usize,
    },
}

impl Gunzip {
    pub(super) fn new() -> Self {
        let kept = INFLATE.try_with(Pool::take).ok().flatten();
        let inflate = kept.map_or_else(
            || Decompress::new(false),
            |mut inflate| {
                inflate.reset(false);
                inflate
            },
        );
        Self {
            inflate,
            part: Part::Header(Header::START),
            crc: Crc::new(),
            members: 0,
        }
    }

    /// Keeps the context for the next.
    pub(super) fn recycle(self) {
        // On a thread that ends there is nothing to keep it in.
        let _ = INFLATE.try_with(|pool| pool.put(self.inflate));
    }

    /// Whether the data may end here: before any of it, or after a member.
    pub(super) fn is_complete(&self) -> bool {
        matches!(self.part, Part::Header(Header::START))
    }

    pub(super) fn push(&mut self, mut input: &[u8], sink: &mut Sink<'_>) -> Result<(), Stop> {
        loop {
            match &mut self.part {
                Part::Body => {
                    if !self.inflate_body(&mut input, sink)? {
                        return Ok(());
                    }
                    self.part = Part::Trailer {
                        bytes: [0; 8],
                        len: 0,
                    };
                }
                Part::Header(header) => {
                    let Some((byte, rest)) = input.split_first() else {
                        return Ok(());
                    };
                    input = rest;
                    match header.take(*byte).map_err(|what| self.wrong_header(what))? {
                        Some(next) => self.part = Part::Header(next),
                        None => {
                            self.inflate.reset(false);
                            self.crc.reset();
                            self.part = Part::Body;
                        }
                    }
                }
                Part::Trailer { bytes, len } => {
                    let Some((byte, rest)) = input.split_first() else {
                        return Ok(());
                    };
                    input = rest;
                    if let Some(slot) = bytes.get_mut(*len) {
                        *slot = *byte;
                        *len += 1;
                    }
                    if *len == bytes.len() {
                        let trailer = u64::from_le_bytes(*bytes);
                        self.check(trailer)?;
                        self.members += 1;
                        self.part = Part::Header(Header::START);
                    }
                }
            }
        }
    }

    /// Whether the body ended; if not, all input is taken.
    fn inflate_body(&mut self, input: &mut &[u8], sink: &mut Sink<'_>) -> Result<bool, Stop> {
        loop {
            sink.make_room()?;
            let (len, total_in) = (sink.out.len(), self.inflate.total_in());
            let status = self
                .inflate
                .decompress_vec(input, sink.out, FlushDecompress::None)
                .map_err(|_| CompressionError::Corrupt("not deflate data"))?;
            let taken = (self.inflate.total_in() - total_in) as usize;
            *input = input.get(taken..).unwrap_or_default();
            let produced = sink.out.get(len..).unwrap_or_default();
            self.crc.update(produced);
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
            if taken == 0 && produced.is_empty() {
                return Err(CompressionError::Corrupt("deflate data without progress").into());
            }
        }
    }

    /// Compares a trailer with what came out.
    fn check(&self, trailer: u64) -> Result<(), CompressionError> {
        if trailer as u32 != self.crc.sum() {
            return Err(CompressionError::Corrupt("gzip checksum does not match"));
        }
        if (trailer >> 32) as u32 != self.inflate.total_out() as u32 {
            return Err(CompressionError::Corrupt("gzip length does not match"));
        }
        Ok(())
    }

    /// What a member's header that is none means: after a member, junk.
    fn wrong_header(&self, what: &'static str) -> CompressionError {
        if what == NO_MAGIC && self.members > 0 {
            return CompressionError::TrailingBytes;
        }
        CompressionError::Corrupt(what)
    }
}

impl fmt::Debug for Gunzip {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Gunzip")
            .field("part", &self.part)
            .finish_non_exhaustive()
    }
}

const NO_MAGIC: &str = "no gzip header";

/// How far a member's header is read. None of it is kept but its flags.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Header {
    flags: u8,
    field: Field,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Field {
    /// The ten bytes that every header has, of which so many are here.
    Fixed(u8),
    ExtraLength,
    /// The low byte of the length is here.
    ExtraLengthHigh(u8),
    /// So many bytes to go.
    Extra(u16),
    Name,
    Comment,
    /// So many bytes to go.
    Checksum(u8),
}

impl Header {
    const START: Self = Self {
        flags: 0,
        field: Field::Fixed(0),
    };

    /// The header after one more byte; `None` when that was its last.
    fn take(self, byte: u8) -> Result<Option<Self>, &'static str> {
        let mut flags = self.flags;
        let field = match self.field {
            Field::Fixed(at) => {
                match at {
                    0 | 1 if byte != MAGIC[usize::from(at)] => return Err(NO_MAGIC),
                    2 if byte != METHOD_DEFLATE => return Err("gzip method is not deflate"),
                    3 if byte & FLAGS_RESERVED != 0 => return Err("reserved gzip flags are set"),
                    3 => flags = byte,
                    _ => {}
                }
                if at < 9 {
                    Some(Field::Fixed(at + 1))
                } else {
                    after(flags, FLAG_EXTRA)
                }
            }
            Field::ExtraLength => Some(Field::ExtraLengthHigh(byte)),
            Field::ExtraLengthHigh(low) => match u16::from_le_bytes([low, byte]) {
                0 => after(flags, FLAG_NAME),
                len => Some(Field::Extra(len)),
            },
            Field::Extra(1) => after(flags, FLAG_NAME),
            Field::Extra(len) => Some(Field::Extra(len - 1)),
            Field::Name if byte == 0 => after(flags, FLAG_COMMENT),
            Field::Comment if byte == 0 => after(flags, FLAG_HEADER_CRC),
            Field::Name | Field::Comment => Some(self.field),
            Field::Checksum(2) => Some(Field::Checksum(1)),
            Field::Checksum(_) => None,
        };
        Ok(field.map(|field| Self { flags, field }))
    }
}

/// The next field there is, from the one of the flag `first` on.
fn after(flags: u8, first: u8) -> Option<Field> {
    [
        (FLAG_EXTRA, Field::ExtraLength),
        (FLAG_NAME, Field::Name),
        (FLAG_COMMENT, Field::Comment),
        (FLAG_HEADER_CRC, Field::Checksum(2)),
    ]
    .into_iter()
    .skip_while(|(flag, _)| *flag != first)
    .find(|(flag, _)| flags & flag != 0)
    .map(|(_, field)| field)
}
