//! What stands before a frame's payload.

use bytes::BytesMut;

use super::{Flags, FrameError};
use crate::varint;

/// The start of a frame: the length of its payload and its flags.
///
/// A sender that encodes a message straight into its output writes the header
/// first, from the message's encoded length; see [`Frame`](super::Frame) for
/// payloads that exist already.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FrameHeader {
    /// What the frame is.
    pub flags: Flags,
    /// The length of the payload that follows, in bytes.
    pub payload_bytes: u32,
}

impl FrameHeader {
    /// The longest header, in bytes.
    pub const BYTES_MAX: usize = varint::BYTES_MAX + 1;

    /// Appends the header to `out`: 2 to [`Self::BYTES_MAX`] bytes.
    #[inline]
    pub fn encode(self, out: &mut BytesMut) {
        let flags = self.flags.bits();
        let len = self.payload_bytes;
        // Most messages are short. Bytes of a known number are a few stores,
        // where a slice of unknown length is a call.
        if len < 1 << 7 {
            out.extend_from_slice(&[len as u8, flags]);
        } else if len < 1 << 14 {
            out.extend_from_slice(&[len as u8 | 0x80, (len >> 7) as u8, flags]);
        } else {
            let mut length = [0; varint::BYTES_MAX];
            let prefix = varint::encode(len, &mut length);
            let end = out.len() + prefix;
            out.extend_from_slice(&length);
            out.truncate(end);
            out.extend_from_slice(&[flags]);
        }
    }

    /// Reads the header at the front of `bytes` and says how many bytes it takes.
    /// `Ok(None)`: more bytes are needed, which never happens once
    /// [`Self::BYTES_MAX`] are there. The payload's length is not judged.
    ///
    /// # Errors
    /// [`FrameError::Length`] and [`FrameError::Flags`].
    #[inline]
    pub fn decode(bytes: &[u8]) -> Result<Option<(Self, usize)>, FrameError> {
        let Some((payload_bytes, len)) = varint::decode(bytes).map_err(FrameError::Length)? else {
            return Ok(None);
        };
        let Some(&bits) = bytes.get(len) else {
            return Ok(None);
        };
        let flags = Flags::from_bits(bits).ok_or(FrameError::Flags { bits })?;
        Ok(Some((
            Self {
                flags,
                payload_bytes,
            },
            len + 1,
        )))
    }
}
