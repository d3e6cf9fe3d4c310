//! gzip (RFC 1952) around deflate. The framing is ours, since the deflate
//! contexts of the library are only used again without it.

use flate2::Crc;

use super::CompressionError;
use super::decompressor::{CHUNK_BYTES, Decode, Sink, Stop};
use super::flate::{self, Frame, Inflate};

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

    flate::deflate(Frame::Bare, level, input, &mut out)?;

    let mut crc = Crc::new();
    crc.update(input);
    out.extend_from_slice(&crc.sum().to_le_bytes());
    // RFC 1952 section 2.3.1: the length modulo 2^32.
    out.extend_from_slice(&(input.len() as u32).to_le_bytes());
    Ok(out)
}

/// Decompresses one gzip file: one member or several.
#[derive(Debug)]
pub(super) struct Gunzip {
    inflate: Inflate,
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
        Self {
            inflate: Inflate::new(Frame::Bare),
            part: Part::Header(Header::START),
            crc: Crc::new(),
            members: 0,
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

impl Decode for Gunzip {
    fn push(&mut self, mut input: &[u8], sink: &mut Sink<'_>) -> Result<(), Stop> {
        loop {
            match &mut self.part {
                Part::Body => {
                    let crc = &mut self.crc;
                    let ended = self
                        .inflate
                        .push(&mut input, sink, |produced| crc.update(produced))?;
                    if !ended {
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
                            self.inflate.reset();
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

    fn is_complete(&self) -> bool {
        matches!(self.part, Part::Header(Header::START))
    }

    fn recycle(self: Box<Self>) {
        self.inflate.recycle();
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
