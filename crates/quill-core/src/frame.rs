//! The Quill frame (docs/protocol.md, "Frames"):
//! `length (varint, of the payload) | flags (1 byte) | payload`.
//!
//! Neither direction copies a large payload: a [`Frame`] holds it as [`Bytes`],
//! encoding hands it back to be written by reference, and [`FrameDecoder`] cuts
//! it out of the bytes it was fed.
//!
//! ```
//! use bytes::{Bytes, BytesMut};
//! use quill_core::frame::{Flags, Frame, FrameDecoder};
//!
//! # fn main() -> Result<(), quill_core::frame::FrameError> {
//! let mut out = BytesMut::new();
//! let message = Frame::new(Flags::DATA_END, Bytes::from_static(b"hello"))?;
//! // A short payload is in `out` already; a long one would be returned.
//! assert_eq!(message.encode(&mut out), None);
//! assert_eq!(out, &b"\x05\x03hello"[..]);
//!
//! let mut input = out.freeze();
//! let mut decoder = FrameDecoder::default();
//! let frame = decoder.decode(&mut input)?.expect("a whole frame is there");
//! assert!(frame.flags().ends_stream());
//! assert_eq!(frame.payload(), &b"hello"[..]);
//! decoder.finish()?;
//! # Ok(())
//! # }
//! ```

mod decoder;
mod error;
mod flags;
mod header;
mod metadata;

use std::num::NonZeroU32;

use bytes::{Bytes, BytesMut};

pub use self::decoder::FrameDecoder;
pub use self::error::{FrameError, FrameErrorKind};
pub use self::flags::{Flags, FrameKind};
pub use self::header::FrameHeader;
pub use self::metadata::{MetadataBlock, MetadataEntries};
use crate::varint;

/// The largest payload a decoder accepts unless told otherwise, in bytes.
pub const FRAME_BYTES_MAX: usize = 4 * 1024 * 1024;

/// The most METADATA a stream may carry, in bytes of its frames' payloads.
pub const METADATA_BYTES_MAX: usize = 8 * 1024;

/// How many frames in a row may bring a call no further: CREDIT, METADATA and
/// empty DATA frames with no progress between them.
pub const IDLE_FRAMES_MAX: u32 = 1024;

/// The longest payload that [`Frame::encode`] copies, in bytes. Up to here
/// copying into a buffer that is reused costs less than sharing the payload and
/// writing it as a piece of its own.
pub const COPY_BYTES_MAX: usize = 512;

/// One frame: legal flags and a payload that fits them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Frame {
    flags: Flags,
    payload: Bytes,
}

impl Frame {
    /// A frame of these flags and this payload.
    ///
    /// # Errors
    /// The payload must fit the flags: [`FrameError::NotEmpty`] where END_STREAM
    /// or CANCEL stand alone, [`FrameError::Credit`] and
    /// [`FrameError::CreditOfZero`] where it is no grant,
    /// [`FrameError::MetadataTooLarge`], and [`FrameError::TooLarge`] beyond
    /// `u32::MAX` bytes, the most a frame can say.
    #[inline]
    pub fn new(flags: Flags, payload: Bytes) -> Result<Self, FrameError> {
        if !flags.is_data() {
            check_control(flags, &payload)?;
        }
        match u32::try_from(payload.len()) {
            Ok(_) => Ok(Self { flags, payload }),
            Err(_) => Err(FrameError::TooLarge {
                payload_bytes: payload.len() as u64,
                payload_bytes_max: u32::MAX.into(),
            }),
        }
    }

    /// The end of the sender's messages.
    #[must_use]
    pub const fn end_stream() -> Self {
        Self {
            flags: Flags::END_STREAM,
            payload: Bytes::new(),
        }
    }

    /// The sender gives the stream up.
    #[must_use]
    pub const fn cancel() -> Self {
        Self {
            flags: Flags::CANCEL,
            payload: Bytes::new(),
        }
    }

    /// The sender takes so many more messages.
    #[must_use]
    pub fn credit(messages: NonZeroU32) -> Self {
        let mut payload = [0; varint::BYTES_MAX];
        let len = varint::encode(messages.get(), &mut payload);
        Self {
            flags: Flags::CREDIT,
            payload: Bytes::copy_from_slice(&payload[..len]),
        }
    }

    /// What the frame is.
    #[must_use]
    #[inline]
    pub const fn flags(&self) -> Flags {
        self.flags
    }

    /// What the frame carries.
    #[must_use]
    #[inline]
    pub const fn payload(&self) -> &Bytes {
        &self.payload
    }

    /// What the frame carries.
    #[must_use]
    #[inline]
    pub fn into_payload(self) -> Bytes {
        self.payload
    }

    /// How many messages a CREDIT grants; `None` for other frames.
    #[must_use]
    pub fn credits(&self) -> Option<NonZeroU32> {
        match self.flags.kind() {
            FrameKind::Credit => granted(&self.payload).ok(),
            _ => None,
        }
    }

    /// Appends the frame to `out`, without its payload if that is longer than
    /// [`COPY_BYTES_MAX`]: then the payload is returned, to be written right
    /// after `out`, from where it is. A sender that queues it moves it out with
    /// [`into_payload`](Self::into_payload).
    #[inline]
    #[must_use = "a returned payload has to be written after `out`"]
    pub fn encode(&self, out: &mut BytesMut) -> Option<&Bytes> {
        // `new` and the decoder let no longer payload into a frame.
        let payload_bytes = self.payload.len() as u32;
        FrameHeader {
            flags: self.flags,
            payload_bytes,
        }
        .encode(out);
        if self.payload.len() > COPY_BYTES_MAX {
            return Some(&self.payload);
        }
        out.extend_from_slice(&self.payload);
        None
    }
}

/// Whether the payload of a frame that is no message fits its flags. Its length
/// alone was judged by then where it came from outside.
fn check_control(flags: Flags, payload: &[u8]) -> Result<(), FrameError> {
    match flags.kind() {
        FrameKind::EndStream | FrameKind::Cancel if !payload.is_empty() => {
            let payload_bytes = u32::try_from(payload.len()).unwrap_or(u32::MAX);
            Err(FrameError::NotEmpty {
                flags,
                payload_bytes,
            })
        }
        FrameKind::Credit => granted(payload).map(|_| ()),
        FrameKind::Metadata if payload.len() > METADATA_BYTES_MAX => {
            Err(FrameError::MetadataTooLarge)
        }
        _ => Ok(()),
    }
}

/// The grant in a CREDIT's payload.
fn granted(payload: &[u8]) -> Result<NonZeroU32, FrameError> {
    match varint::decode(payload) {
        Ok(Some((messages, len))) if len == payload.len() => {
            NonZeroU32::new(messages).ok_or(FrameError::CreditOfZero)
        }
        _ => Err(FrameError::Credit),
    }
}

#[cfg(test)]
mod tests;
