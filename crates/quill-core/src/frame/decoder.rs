//! Bytes to frames.

use std::mem;

use bytes::{Buf, Bytes};

use super::{
    FRAME_BYTES_MAX, Flags, Frame, FrameError, FrameHeader, FrameKind, IDLE_FRAMES_MAX,
    METADATA_BYTES_MAX, check_control,
};
use crate::varint;

/// Reads the frames of one direction of one stream from bytes cut anywhere.
///
/// [`decode`](Self::decode) takes frames off the front of what arrived until it
/// has none, and [`finish`](Self::finish) says whether the body may end there.
/// The same bytes give the same frames and the same error however they are cut.
///
/// A payload that lies whole in one piece of input shares its memory. Any other
/// is put together in a buffer that grows with what has arrived, never with what
/// was announced, and never beyond the payload. A header is judged before any of
/// its payload is held.
#[derive(Debug)]
pub struct FrameDecoder {
    payload_bytes_max: usize,
    /// The front of a header that ended with its input.
    prefix: [u8; FrameHeader::BYTES_MAX],
    prefix_len: usize,
    /// A header whose payload is not all here, and the part that is.
    header: Option<FrameHeader>,
    partial: Vec<u8>,
    phase: Phase,
    metadata_bytes: usize,
    idle_frames: u32,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Phase {
    Open,
    /// After END_STREAM.
    Ended,
    /// After CANCEL: what follows has no meaning and is dropped.
    Canceled,
    /// After an error, which is final.
    Failed(FrameError),
}

impl Default for FrameDecoder {
    /// Accepts payloads of up to [`FRAME_BYTES_MAX`].
    fn default() -> Self {
        Self::new(FRAME_BYTES_MAX)
    }
}

impl FrameDecoder {
    /// Accepts payloads of up to `payload_bytes_max` bytes.
    #[must_use]
    pub fn new(payload_bytes_max: usize) -> Self {
        Self {
            payload_bytes_max,
            prefix: [0; FrameHeader::BYTES_MAX],
            prefix_len: 0,
            header: None,
            partial: Vec::new(),
            phase: Phase::Open,
            metadata_bytes: 0,
            idle_frames: 0,
        }
    }

    /// Takes the next frame off the front of `input`. `None`: all of `input` was
    /// taken and the frame goes on in the next one. After CANCEL there are no
    /// frames, and all input is dropped.
    ///
    /// # Errors
    /// What is wrong with the bytes; every later call says the same.
    #[inline]
    pub fn decode(&mut self, input: &mut Bytes) -> Result<Option<Frame>, FrameError> {
        // The common case: an open stream, and a message that lies whole in the
        // input. `decode_checked` would give the same answer.
        if self.is_plain()
            && let Ok(Some((header, len))) = FrameHeader::decode(input)
            && header.flags.is_data()
            && header.payload_bytes > 0
            && header.payload_bytes as usize <= self.payload_bytes_max
            && header.payload_bytes as usize <= input.len() - len
        {
            let frame_bytes = len + header.payload_bytes as usize;
            let mut payload = if frame_bytes == input.len() {
                mem::take(input)
            } else {
                input.split_to(frame_bytes)
            };
            payload.advance(len);
            self.idle_frames = 0;
            if header.flags.ends_stream() {
                self.phase = Phase::Ended;
            }
            return Ok(Some(Frame {
                flags: header.flags,
                payload,
            }));
        }
        self.decode_checked(input)
    }

    /// Says that the call went on in a way these bytes do not show: a message
    /// was sent the other way, or the application took one. Frames that bring a
    /// call no further are counted from here anew; without this, a long answer
    /// for which a client sends nothing but CREDIT would look like a flood, and
    /// so would a long stream of empty messages.
    #[inline]
    pub fn progressed(&mut self) {
        self.idle_frames = 0;
    }

    /// Checks that the bytes may end here, with all input taken.
    ///
    /// # Errors
    /// [`FrameError::Truncated`] inside a frame, [`FrameError::NoEnd`] where
    /// neither END_STREAM nor CANCEL came before; or what was wrong already.
    pub fn finish(&self) -> Result<(), FrameError> {
        match self.phase {
            Phase::Failed(error) => Err(error),
            Phase::Canceled => Ok(()),
            _ if !self.is_between_frames() => Err(FrameError::Truncated),
            Phase::Ended => Ok(()),
            Phase::Open => Err(FrameError::NoEnd),
        }
    }

    /// Memory that an unfinished frame takes, in bytes, which is never 0: less than
    /// twice what has come, and no more than the payload will be. 0 between frames.
    #[must_use]
    pub fn held_bytes(&self) -> usize {
        self.partial
            .capacity()
            .max((!self.is_between_frames()).into())
    }

    /// Whether no part of a frame is held.
    #[inline]
    fn is_between_frames(&self) -> bool {
        self.prefix_len == 0 && self.header.is_none()
    }

    /// Whether a message may come next, from its first byte on.
    #[inline]
    fn is_plain(&self) -> bool {
        matches!(self.phase, Phase::Open) && self.is_between_frames()
    }

    /// The next frame of any kind, from one input or many.
    fn decode_checked(&mut self, input: &mut Bytes) -> Result<Option<Frame>, FrameError> {
        match self.phase {
            Phase::Open | Phase::Ended => {}
            Phase::Failed(error) => return Err(error),
            Phase::Canceled => {
                input.clear();
                return Ok(None);
            }
        }
        let next = self.read_frame(input);
        if let Err(error) = next {
            self.phase = Phase::Failed(error);
            self.prefix_len = 0;
            self.header = None;
            self.partial = Vec::new();
        }
        next
    }

    fn read_frame(&mut self, input: &mut Bytes) -> Result<Option<Frame>, FrameError> {
        let Some(header) = self.read_header(input)? else {
            return Ok(None);
        };
        let Some(payload) = self.read_payload(header, input) else {
            return Ok(None);
        };
        self.header = None;
        self.deliver(header, payload).map(Some)
    }

    /// The header of the frame being read, once it is whole and admitted.
    fn read_header(&mut self, input: &mut Bytes) -> Result<Option<FrameHeader>, FrameError> {
        while self.header.is_none() {
            let Ok(byte) = input.try_get_u8() else {
                return Ok(None);
            };
            // A full prefix is a header or an error, so there is always a slot.
            if let Some(slot) = self.prefix.get_mut(self.prefix_len) {
                *slot = byte;
                self.prefix_len += 1;
            }
            if let Some((header, _)) = FrameHeader::decode(&self.prefix[..self.prefix_len])? {
                self.admit(header)?;
                self.header = Some(header);
                self.prefix_len = 0;
            }
        }
        Ok(self.header)
    }

    /// The payload of the frame being read, once it is all here.
    fn read_payload(&mut self, header: FrameHeader, input: &mut Bytes) -> Option<Bytes> {
        let payload_bytes = header.payload_bytes as usize;
        let wanted = payload_bytes - self.partial.len();
        let part = input.split_to(wanted.min(input.len()));
        if part.len() == payload_bytes {
            return Some(part);
        }
        self.append(&part, payload_bytes);
        (self.partial.len() == payload_bytes).then(|| Bytes::from(mem::take(&mut self.partial)))
    }

    /// Appends to the partial payload, whose memory doubles with what is there
    /// and stops at the length of the whole.
    fn append(&mut self, part: &[u8], payload_bytes: usize) {
        const GROWTH_BYTES_MIN: usize = 4096;
        let len = self.partial.len() + part.len();
        if len > self.partial.capacity() {
            let capacity = len.max(2 * self.partial.capacity()).max(GROWTH_BYTES_MIN);
            self.partial
                .reserve_exact(capacity.min(payload_bytes) - self.partial.len());
        }
        self.partial.extend_from_slice(part);
    }

    /// Judges a frame by its header, before its payload is held.
    fn admit(&self, header: FrameHeader) -> Result<(), FrameError> {
        let FrameHeader {
            flags,
            payload_bytes,
        } = header;
        if payload_bytes as usize > self.payload_bytes_max {
            return Err(FrameError::TooLarge {
                payload_bytes: payload_bytes.into(),
                payload_bytes_max: self.payload_bytes_max as u64,
            });
        }
        if self.phase == Phase::Ended && !matches!(flags, Flags::CREDIT | Flags::CANCEL) {
            return Err(FrameError::AfterEnd { flags });
        }
        match flags.kind() {
            FrameKind::Data | FrameKind::Problem => Ok(()),
            FrameKind::EndStream | FrameKind::Cancel if payload_bytes > 0 => {
                Err(FrameError::NotEmpty {
                    flags,
                    payload_bytes,
                })
            }
            FrameKind::EndStream | FrameKind::Cancel => Ok(()),
            FrameKind::Credit => match payload_bytes as usize {
                1..=varint::BYTES_MAX => Ok(()),
                _ => Err(FrameError::Credit),
            },
            FrameKind::Metadata => {
                let room = METADATA_BYTES_MAX - self.metadata_bytes;
                if payload_bytes as usize > room {
                    return Err(FrameError::MetadataTooLarge);
                }
                Ok(())
            }
        }
    }

    /// Judges what an admitted frame carries and keeps the books of the stream.
    fn deliver(&mut self, header: FrameHeader, payload: Bytes) -> Result<Frame, FrameError> {
        let flags = header.flags;
        if !flags.is_data() {
            check_control(flags, &payload)?;
        }
        match flags.kind() {
            FrameKind::Data if !payload.is_empty() => self.idle_frames = 0,
            FrameKind::Data | FrameKind::Credit | FrameKind::Metadata => {
                self.idle_frames += 1;
                if self.idle_frames > IDLE_FRAMES_MAX {
                    return Err(FrameError::Flood);
                }
            }
            FrameKind::EndStream | FrameKind::Problem => {}
            FrameKind::Cancel => self.phase = Phase::Canceled,
        }
        if flags == Flags::METADATA {
            self.metadata_bytes += payload.len();
        }
        if flags.ends_stream() {
            self.phase = Phase::Ended;
        }
        Ok(Frame { flags, payload })
    }
}
