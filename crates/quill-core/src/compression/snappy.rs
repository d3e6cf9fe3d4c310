//! Snappy in its framing format (snappy's `framing_format.txt`). The framing is
//! ours, since the library's reader cannot wait for the rest of a chunk.

use std::fmt;

use snap::raw::{Decoder, Encoder};

use super::CompressionError;
use super::decompressor::{Decode, Sink, Stop};
use super::pool::Pool;

thread_local! {
    static ENCODERS: Pool<Encoder> = const { Pool::new() };
}

const IDENTIFIER: &[u8] = b"\xff\x06\0\0sNaPpY";
const CHUNK_COMPRESSED: u8 = 0x00;
const CHUNK_PLAIN: u8 = 0x01;
const CHUNK_IDENTIFIER: u8 = 0xff;
/// Chunks from here on, but for the identifier, are skipped by those who don't
/// know them; those below are not to be.
const CHUNK_SKIPPABLE_MIN: u8 = 0x80;

const HEADER_BYTES: usize = 4;
const CRC_BYTES: usize = 4;
/// Most bytes that a chunk holds once decompressed.
const BLOCK_BYTES_MAX: usize = 65_536;

pub(super) fn compress(input: &[u8]) -> Result<Vec<u8>, CompressionError> {
    let kept = ENCODERS.try_with(Pool::take).ok().flatten();
    let mut encoder = kept.unwrap_or_else(Encoder::new);
    let mut out = Vec::with_capacity(IDENTIFIER.len() + input.len() / 2);
    out.extend_from_slice(IDENTIFIER);
    for block in input.chunks(BLOCK_BYTES_MAX) {
        let small = encoder
            .compress_vec(block)
            .map_err(|_| CompressionError::Failed("snappy refused its input"))?;
        // What saves less than an eighth is not worth the reader's time.
        if small.len() < block.len() - block.len() / 8 {
            put_chunk(CHUNK_COMPRESSED, block, &small, &mut out);
        } else {
            put_chunk(CHUNK_PLAIN, block, block, &mut out);
        }
    }
    let _ = ENCODERS.try_with(|pool| pool.put(encoder));
    Ok(out)
}

fn put_chunk(kind: u8, block: &[u8], data: &[u8], out: &mut Vec<u8>) {
    let [low, middle, high, _] = ((CRC_BYTES + data.len()) as u32).to_le_bytes();
    out.extend_from_slice(&[kind, low, middle, high]);
    out.extend_from_slice(&masked_crc(block).to_le_bytes());
    out.extend_from_slice(data);
}

/// Decompresses one snappy stream.
pub(super) struct Unsnappy {
    decoder: Decoder,
    part: Part,
    /// The header or chunk that is not whole yet.
    held: Vec<u8>,
    is_identified: bool,
}

/// What comes next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Part {
    Header,
    Chunk { kind: u8, bytes: usize },
    Skipped { bytes: usize },
}

impl Unsnappy {
    pub(super) fn new() -> Self {
        Self {
            decoder: Decoder::new(),
            part: Part::Header,
            held: Vec::new(),
            is_identified: false,
        }
    }

    fn header(&mut self, header: &[u8]) -> Result<Part, CompressionError> {
        let &[kind, low, middle, high] = header else {
            return Err(CompressionError::Corrupt("no snappy chunk"));
        };
        let bytes = u32::from_le_bytes([low, middle, high, 0]) as usize;
        if !self.is_identified && kind != CHUNK_IDENTIFIER {
            return Err(CompressionError::Corrupt("no snappy stream identifier"));
        }
        let bytes_max = match kind {
            CHUNK_IDENTIFIER => IDENTIFIER.len() - HEADER_BYTES,
            CHUNK_COMPRESSED => CRC_BYTES + snap::raw::max_compress_len(BLOCK_BYTES_MAX),
            CHUNK_PLAIN => CRC_BYTES + BLOCK_BYTES_MAX,
            CHUNK_SKIPPABLE_MIN.. => return Ok(Part::Skipped { bytes }),
            _ if self.is_identified => return Err(CompressionError::TrailingBytes),
            _ => return Err(CompressionError::Corrupt("unknown snappy chunk")),
        };
        if bytes > bytes_max {
            return Err(CompressionError::Corrupt("snappy chunk is too long"));
        }
        Ok(Part::Chunk { kind, bytes })
    }

    fn chunk(&mut self, kind: u8, chunk: &[u8], sink: &mut Sink<'_>) -> Result<(), Stop> {
        if kind == CHUNK_IDENTIFIER {
            if IDENTIFIER.get(HEADER_BYTES..) != Some(chunk) {
                return Err(CompressionError::Corrupt("no snappy stream identifier").into());
            }
            self.is_identified = true;
            return Ok(());
        }
        let Some((crc, data)) = chunk.split_first_chunk::<CRC_BYTES>() else {
            return Err(CompressionError::Corrupt("snappy chunk is too short").into());
        };
        let before = sink.out.len();
        if kind == CHUNK_PLAIN {
            sink.make_room_step(data.len())?;
            sink.out.extend_from_slice(data);
        } else {
            self.decompress(data, sink)?;
        }
        let block = sink.out.get(before..).unwrap_or_default();
        if masked_crc(block) != u32::from_le_bytes(*crc) {
            return Err(CompressionError::Corrupt("snappy checksum does not match").into());
        }
        Ok(())
    }

    fn decompress(&mut self, data: &[u8], sink: &mut Sink<'_>) -> Result<(), Stop> {
        let wrong = |_| CompressionError::Corrupt("not snappy data");
        let bytes = snap::raw::decompress_len(data).map_err(wrong)?;
        if bytes > BLOCK_BYTES_MAX {
            return Err(CompressionError::Corrupt("snappy chunk holds too much").into());
        }
        sink.make_room_step(bytes)?;
        let before = sink.out.len();
        sink.out.resize(before + bytes, 0);
        let target = sink.out.get_mut(before..).unwrap_or_default();
        self.decoder.decompress(data, target).map_err(wrong)?;
        Ok(())
    }
}

impl Decode for Unsnappy {
    fn push(&mut self, mut input: &[u8], sink: &mut Sink<'_>) -> Result<(), Stop> {
        loop {
            let wanted = match self.part {
                Part::Header => HEADER_BYTES,
                Part::Chunk { bytes, .. } => bytes,
                Part::Skipped { bytes } => {
                    let skipped = bytes.min(input.len());
                    input = input.get(skipped..).unwrap_or_default();
                    self.part = Part::Skipped {
                        bytes: bytes - skipped,
                    };
                    if bytes > skipped {
                        return Ok(());
                    }
                    self.part = Part::Header;
                    continue;
                }
            };
            let missing = wanted - self.held.len();
            let Some((now, rest)) = input.split_at_checked(missing) else {
                self.held.extend_from_slice(input);
                return Ok(());
            };
            if now.is_empty() && self.part == Part::Header {
                return Ok(());
            }
            input = rest;
            // A chunk that is whole in the input is not copied.
            let mut held = std::mem::take(&mut self.held);
            let whole = if held.is_empty() {
                now
            } else {
                held.extend_from_slice(now);
                &held
            };
            self.part = match self.part {
                Part::Chunk { kind, .. } => {
                    self.chunk(kind, whole, sink)?;
                    Part::Header
                }
                _ => self.header(whole)?,
            };
            held.clear();
            self.held = held;
        }
    }

    fn is_complete(&self) -> bool {
        self.part == Part::Header && self.held.is_empty()
    }

    fn recycle(self: Box<Self>) {}
}

impl fmt::Debug for Unsnappy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Unsnappy")
            .field("part", &self.part)
            .field("held_bytes", &self.held.len())
            .finish_non_exhaustive()
    }
}

/// The checksum of a chunk: CRC-32C, turned so that data which holds checksums
/// of its own keeps a useful one (framing format, section 3).
fn masked_crc(bytes: &[u8]) -> u32 {
    let crc = bytes.iter().fold(!0_u32, |crc, byte| {
        let index = (crc as u8) ^ byte;
        CRC_TABLE[usize::from(index)] ^ (crc >> 8)
    });
    (!crc).rotate_right(15).wrapping_add(0xa282_ead8)
}

/// CRC-32C (Castagnoli), reflected.
static CRC_TABLE: [u32; 256] = crc_table();

const fn crc_table() -> [u32; 256] {
    const POLYNOMIAL: u32 = 0x82f6_3b78;
    let mut table = [0; 256];
    let mut index = 0;
    while index < table.len() {
        let mut crc = index as u32;
        let mut bit = 0;
        while bit < 8 {
            crc = (crc >> 1) ^ (POLYNOMIAL * (crc & 1));
            bit += 1;
        }
        table[index] = crc;
        index += 1;
    }
    table
}
