//! What can be wrong with frames.

use std::fmt;

use super::{Flags, IDLE_FRAMES_MAX, METADATA_BYTES_MAX};
use crate::varint::VarintError;

/// Why bytes are no Quill frames. The text says what was wrong and what is
/// allowed; [`kind`](Self::kind) is what a wire layer maps to a code.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum FrameError {
    /// The length of a frame is no varint.
    Length(VarintError),
    /// The flags byte is none of [`Flags::ALL`].
    Flags {
        /// The byte received.
        bits: u8,
    },
    /// A frame that must be empty has a payload.
    NotEmpty {
        /// The frame's flags.
        flags: Flags,
        /// The announced payload, in bytes.
        payload_bytes: u32,
    },
    /// The payload is longer than this side accepts (or, when encoding, than a
    /// frame can carry).
    TooLarge {
        /// The announced payload, in bytes.
        payload_bytes: u64,
        /// The most that is accepted, in bytes.
        payload_bytes_max: u64,
    },
    /// The payload of a CREDIT is no varint, or something follows it.
    Credit,
    /// A CREDIT of 0 messages.
    CreditOfZero,
    /// The METADATA of a stream exceeds [`METADATA_BYTES_MAX`].
    MetadataTooLarge,
    /// A METADATA payload is not a list of name and value with their lengths.
    Metadata,
    /// A frame followed the sender's END_STREAM, where only CREDIT and CANCEL may.
    AfterEnd {
        /// The late frame's flags.
        flags: Flags,
    },
    /// More than [`IDLE_FRAMES_MAX`] frames in a row brought the call no further.
    Flood,
    /// The bytes stopped inside a frame.
    Truncated,
    /// The bytes stopped between frames, before END_STREAM or CANCEL.
    NoEnd,
}

/// The three ways frames go wrong.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum FrameErrorKind {
    /// Bytes no correct peer sends.
    Malformed,
    /// Well-formed, but more than this side accepts.
    TooMuch,
    /// The bytes ended too early.
    Incomplete,
}

impl FrameError {
    /// Which of the three ways it went wrong.
    #[must_use]
    pub const fn kind(&self) -> FrameErrorKind {
        match self {
            Self::Length(_)
            | Self::Flags { .. }
            | Self::NotEmpty { .. }
            | Self::Credit
            | Self::CreditOfZero
            | Self::Metadata
            | Self::AfterEnd { .. } => FrameErrorKind::Malformed,
            Self::TooLarge { .. } | Self::MetadataTooLarge | Self::Flood => FrameErrorKind::TooMuch,
            Self::Truncated | Self::NoEnd => FrameErrorKind::Incomplete,
        }
    }
}

impl fmt::Display for FrameError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Length(error) => write!(f, "frame length: {error}"),
            Self::Flags { bits } => {
                write!(f, "frame flags 0x{bits:02x} are not allowed; allowed are")?;
                let mut separator = " ";
                for flags in Flags::ALL {
                    write!(f, "{separator}{flags}")?;
                    separator = ", ";
                }
                Ok(())
            }
            Self::NotEmpty {
                flags,
                payload_bytes,
            } => {
                write!(
                    f,
                    "{flags} frame with a payload of {payload_bytes} bytes; it must be empty"
                )
            }
            Self::TooLarge {
                payload_bytes,
                payload_bytes_max,
            } => {
                write!(
                    f,
                    "frame of {payload_bytes} bytes; at most {payload_bytes_max} are allowed"
                )
            }
            Self::Credit => f.write_str("CREDIT payload must be one varint of 1 to 5 bytes"),
            Self::CreditOfZero => f.write_str("CREDIT of 0 messages; at least 1 must be granted"),
            Self::MetadataTooLarge => {
                write!(
                    f,
                    "METADATA over {METADATA_BYTES_MAX} bytes, the most a stream may carry"
                )
            }
            Self::Metadata => f.write_str(
                "METADATA payload must repeat: varint length, name, varint length, value",
            ),
            Self::AfterEnd { flags } => {
                write!(
                    f,
                    "{flags} frame after END_STREAM; only CREDIT and CANCEL may follow it"
                )
            }
            Self::Flood => write!(
                f,
                "more than {IDLE_FRAMES_MAX} CREDIT, METADATA or empty DATA frames without progress"
            ),
            Self::Truncated => f.write_str("the stream stopped inside a frame"),
            Self::NoEnd => f.write_str("the stream stopped without END_STREAM"),
        }
    }
}

impl std::error::Error for FrameError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Length(error) => Some(error),
            _ => None,
        }
    }
}
