//! The frame written plainly: the same bytes, each frame copied into memory of
//! its own. What a frame costs when nobody thought about it.
//!
//! A payload is copied once into the encoder's output, and into the decoder's
//! buffer and out of it again.

use bytes::{Buf, BufMut, Bytes, BytesMut};

pub const DATA: u8 = 0x01;

pub struct Frame {
    pub flags: u8,
    pub payload: Bytes,
}

impl Frame {
    pub fn encode(&self) -> Bytes {
        let mut out = BytesMut::with_capacity(10 + 1 + self.payload.len());
        encode_varint(self.payload.len() as u64, &mut out);
        out.put_u8(self.flags);
        out.extend_from_slice(&self.payload);
        out.freeze()
    }
}

#[derive(Default)]
pub struct Decoder {
    buffer: BytesMut,
}

impl Decoder {
    pub fn feed(&mut self, bytes: &[u8]) {
        self.buffer.extend_from_slice(bytes);
    }

    pub fn decode(&mut self) -> Option<Frame> {
        let (len, prefix) = decode_varint(&self.buffer)?;
        let flags = *self.buffer.get(prefix)?;
        if self.buffer.len() < prefix + 1 + len as usize {
            return None;
        }
        self.buffer.advance(prefix + 1);
        Some(Frame {
            flags,
            payload: self.buffer.split_to(len as usize).freeze(),
        })
    }
}

fn encode_varint(mut value: u64, out: &mut BytesMut) {
    while value >= 0x80 {
        out.put_u8(value as u8 | 0x80);
        value >>= 7;
    }
    out.put_u8(value as u8);
}

fn decode_varint(bytes: &[u8]) -> Option<(u64, usize)> {
    let mut value = 0;
    for (i, byte) in bytes.iter().take(10).enumerate() {
        value |= u64::from(byte & 0x7f) << (7 * i);
        if byte & 0x80 == 0 {
            return Some((value, i + 1));
        }
    }
    None
}
