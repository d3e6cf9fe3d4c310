//! The nine bytes that every frame begins with (RFC 9113, section 4.1).

/// Bytes of a frame's header.
pub(crate) const HEADER_BYTES: usize = 9;

/// The largest payload that needs no agreement (RFC 9113, section 6.5.2).
pub(crate) const PAYLOAD_BYTES_DEFAULT: u32 = 16_384;

/// Types of frames (RFC 9113, section 6). Others are ignored.
pub(crate) mod kind {
    pub(crate) const DATA: u8 = 0;
    pub(crate) const HEADERS: u8 = 1;
    pub(crate) const PRIORITY: u8 = 2;
    pub(crate) const RST_STREAM: u8 = 3;
    pub(crate) const SETTINGS: u8 = 4;
    pub(crate) const PUSH_PROMISE: u8 = 5;
    pub(crate) const PING: u8 = 6;
    pub(crate) const GOAWAY: u8 = 7;
    pub(crate) const WINDOW_UPDATE: u8 = 8;
    pub(crate) const CONTINUATION: u8 = 9;
}

/// Flags of frames; ACK and END_STREAM share a bit on different types.
pub(crate) mod flag {
    pub(crate) const ACK: u8 = 0x1;
    pub(crate) const END_STREAM: u8 = 0x1;
    pub(crate) const END_HEADERS: u8 = 0x4;
    pub(crate) const PADDED: u8 = 0x8;
    pub(crate) const PRIORITY: u8 = 0x20;
}

/// A frame's header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct FrameHeader {
    pub(crate) length: u32,
    pub(crate) kind: u8,
    pub(crate) flags: u8,
    pub(crate) stream: u32,
}

impl FrameHeader {
    /// Reads a header; the reserved bit is ignored.
    pub(crate) fn read(bytes: [u8; HEADER_BYTES]) -> Self {
        let [a, b, c, kind, flags, s0, s1, s2, s3] = bytes;
        Self {
            length: u32::from_be_bytes([0, a, b, c]),
            kind,
            flags,
            stream: u32::from_be_bytes([s0, s1, s2, s3]) & 0x7fff_ffff,
        }
    }

    pub(crate) fn bytes(self) -> [u8; HEADER_BYTES] {
        let [_, a, b, c] = self.length.to_be_bytes();
        let [s0, s1, s2, s3] = self.stream.to_be_bytes();
        [a, b, c, self.kind, self.flags, s0, s1, s2, s3]
    }

    pub(crate) fn has(self, flag: u8) -> bool {
        self.flags & flag != 0
    }
}

/// A payload without its padding; `None` when the padding is longer than what
/// it pads (RFC 9113, section 6.1).
pub(crate) fn unpadded(header: FrameHeader, payload: &[u8]) -> Option<&[u8]> {
    if !header.has(flag::PADDED) {
        return Some(payload);
    }
    let (padding, rest) = payload.split_first()?;
    let end = rest.len().checked_sub(usize::from(*padding))?;
    rest.get(..end)
}

/// The big-endian number that a payload begins with.
pub(crate) fn number(payload: &[u8]) -> Option<u32> {
    payload
        .first_chunk()
        .map(|bytes| u32::from_be_bytes(*bytes))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headers_come_back_as_they_went() {
        let header = FrameHeader {
            length: 0x00ab_cdef,
            kind: kind::PING,
            flags: flag::ACK,
            stream: 0x7fff_fffe,
        };
        assert_eq!(FrameHeader::read(header.bytes()), header);
        let mut bytes = header.bytes();
        bytes[5] |= 0x80;
        assert_eq!(FrameHeader::read(bytes), header);
    }

    #[test]
    fn padding_is_taken_off_and_never_longer_than_the_payload() {
        let header = FrameHeader {
            length: 0,
            kind: kind::DATA,
            flags: flag::PADDED,
            stream: 1,
        };
        assert_eq!(unpadded(header, &[2, 7, 0, 0]), Some(&[7][..]));
        assert_eq!(unpadded(header, &[3, 7, 0, 0]), Some(&[][..]));
        assert_eq!(unpadded(header, &[4, 7, 0, 0]), None);
        assert_eq!(unpadded(header, &[]), None);
    }
}
