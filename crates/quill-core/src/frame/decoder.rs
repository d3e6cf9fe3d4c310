//! Bytes to frames.

use std::collections::VecDeque;
use std::mem;

use bytes::{Buf, Bytes};

use super::{
    FRAME_BYTES_MAX, Flags, Frame, FrameError, FrameHeader, FrameKind, IDLE_FRAMES_MAX,
    METADATA_BYTES_MAX, check_control,
};
use crate::varint;

/// Reads the frames of one direction of one stream from bytes cut anywhere.
///
/// [`feed`](Self::feed) what arrived, take [`next_frame`](Self::next_frame)
/// until it has none, and [`finish`](Self::finish) when the body ends. The same
/// bytes give the same frames and the same error however they are cut.
///
/// A frame that lies whole in what was fed shares its memory. One that does not
/// is put together in a buffer that grows with what has arrived, never with what
/// was announced, and never beyond the frame. A header is judged before any of
/// its payload is held.
#[derive(Debug)]
pub struct FrameDecoder {
    payload_bytes_max: usize,
    /// What is read now, and what was fed after it.
    chunk: Bytes,
    queue: VecDeque<Bytes>,
    /// The front of a header that ended with its chunk.
    prefix: [u8; FrameHeader::BYTES_MAX],
    prefix_len: usize,
    /// A header whose payload is not all here, and the part that is, if it had
    /// to be moved out of its chunk.
    header: Option<FrameHeader>,
    partial: Vec<u8>,
    phase: Phase,
    metadata_bytes: usize,
    idle_frames: u32,
    failed: Option<FrameError>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Phase {
    Open,
    /// After END_STREAM.
    Ended,
    /// After CANCEL: what follows has no meaning and is dropped.
    Canceled,
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
            chunk: Bytes::new(),
            queue: VecDeque::new(),
            prefix: [0; FrameHeader::BYTES_MAX],
            prefix_len: 0,
            header: None,
            partial: Vec::new(),
            phase: Phase::Open,
            metadata_bytes: 0,
            idle_frames: 0,
            failed: None,
        }
    }

    /// Takes the bytes that came next.
    #[inline]
    pub fn feed(&mut self, bytes: Bytes) {
        if self.chunk.is_empty() && self.queue.is_empty() {
            self.chunk = bytes;
        } else {
            self.queue.push_back(bytes);
        }
    }

    /// The next whole frame, or `None` until more is fed. After CANCEL there is
    /// none, whatever is fed.
    ///
    /// # Errors
    /// What is wrong with the bytes; every later call says the same.
    #[inline]
    pub fn next_frame(&mut self) -> Result<Option<Frame>, FrameError> {
        if let Some(error) = self.failed {
            return Err(error);
        }
        // What the common frame takes: all of it lies in the chunk.
        if self.is_between_frames() && self.phase == Phase::Open {
            match FrameHeader::decode(&self.chunk) {
                Ok(Some((header, len))) if self.is_whole_message(header, len) => {
                    self.idle_frames = 0;
                    self.chunk.advance(len);
                    let payload = self.chunk.split_to(header.payload_bytes as usize);
                    if header.flags.ends_stream() {
                        self.phase = Phase::Ended;
                    }
                    return Ok(Some(Frame {
                        flags: header.flags,
                        payload,
                    }));
                }
                _ => {}
            }
        }
        let next = self.next_checked();
        if let Err(error) = next {
            self.failed = Some(error);
            self.release();
        }
        next
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

    /// Checks that the bytes may end here. To be called once
    /// [`next_frame`](Self::next_frame) has no frame left.
    ///
    /// # Errors
    /// [`FrameError::Truncated`] inside a frame, [`FrameError::NoEnd`] where
    /// neither END_STREAM nor CANCEL came before; or what was wrong already.
    pub fn finish(&self) -> Result<(), FrameError> {
        if let Some(error) = self.failed {
            return Err(error);
        }
        match self.phase {
            Phase::Canceled => Ok(()),
            _ if !self.is_between_frames() || self.held_bytes() > 0 => Err(FrameError::Truncated),
            Phase::Ended => Ok(()),
            Phase::Open => Err(FrameError::NoEnd),
        }
    }

    /// The bytes fed and not yet given out, in bytes.
    #[must_use]
    pub fn held_bytes(&self) -> usize {
        let queued: usize = self.queue.iter().map(Bytes::len).sum();
        self.prefix_len + self.partial.len() + self.chunk.len() + queued
    }

    /// Whether no part of a frame was moved out of its chunk.
    #[inline]
    fn is_between_frames(&self) -> bool {
        self.prefix_len == 0 && self.header.is_none()
    }

    /// Whether the chunk holds all of a message with something in it: what may
    /// be given out with no further check while the stream is open.
    #[inline]
    fn is_whole_message(&self, header: FrameHeader, header_len: usize) -> bool {
        let payload_bytes = header.payload_bytes as usize;
        header.flags.is_data()
            && payload_bytes > 0
            && payload_bytes <= self.payload_bytes_max
            && payload_bytes <= self.chunk.len() - header_len
    }

    /// The next frame of any kind, from one chunk or many.
    fn next_checked(&mut self) -> Result<Option<Frame>, FrameError> {
        loop {
            if self.phase == Phase::Canceled {
                self.release();
                return Ok(None);
            }
            if let Some(header) = self.read_header()?
                && let Some(payload) = self.read_payload(header)
            {
                self.header = None;
                return self.deliver(header, payload).map(Some);
            }
            match self.queue.pop_front() {
                Some(chunk) => self.chunk = chunk,
                None => return Ok(None),
            }
        }
    }

    /// The header of the frame being read, once it is whole and admitted.
    fn read_header(&mut self) -> Result<Option<FrameHeader>, FrameError> {
        while self.header.is_none() {
            let Ok(byte) = self.chunk.try_get_u8() else {
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
    fn read_payload(&mut self, header: FrameHeader) -> Option<Bytes> {
        let payload_bytes = header.payload_bytes as usize;
        let wanted = payload_bytes - self.partial.len();
        let part = self.chunk.split_to(wanted.min(self.chunk.len()));
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

    /// Lets go of bytes that nobody will read.
    fn release(&mut self) {
        self.chunk = Bytes::new();
        self.queue = VecDeque::new();
        self.prefix_len = 0;
        self.header = None;
        self.partial = Vec::new();
    }

    #[cfg(test)]
    pub(super) fn partial_capacity(&self) -> usize {
        self.partial.capacity()
    }
}
