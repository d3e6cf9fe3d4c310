//! What a frame is: its flags byte.

use std::fmt;

/// The flags of a frame: one of the nine sets that docs/protocol.md ("Frames")
/// allows. Other sets cannot be built.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Flags(u8);

/// What a frame does, one kind for each legal family of flags.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum FrameKind {
    /// One message; see [`Flags::is_compressed`] and [`Flags::ends_stream`].
    Data,
    /// No more messages from the sender. The payload is empty.
    EndStream,
    /// The stream failed; the payload is a Problem Details document (JSON).
    Problem,
    /// The sender gives the stream up. The payload is empty.
    Cancel,
    /// The sender takes so many more messages; the payload is a varint.
    Credit,
    /// Trailing metadata, as [`MetadataBlock`](super::MetadataBlock) reads it.
    Metadata,
}

const DATA: u8 = 0x01;
const END_STREAM: u8 = 0x02;
const CANCEL: u8 = 0x04;
const CREDIT: u8 = 0x08;
const PROBLEM: u8 = 0x10;
const METADATA: u8 = 0x20;
const COMPRESSED: u8 = 0x40;

impl Flags {
    /// One message.
    pub const DATA: Self = Self(DATA);
    /// One message, the sender's last.
    pub const DATA_END: Self = Self(DATA | END_STREAM);
    /// One message, compressed with the stream's encoding.
    pub const COMPRESSED: Self = Self(DATA | COMPRESSED);
    /// One compressed message, the sender's last.
    pub const COMPRESSED_END: Self = Self(DATA | COMPRESSED | END_STREAM);
    /// The end of the sender's messages.
    pub const END_STREAM: Self = Self(END_STREAM);
    /// The end of the stream by an error.
    pub const PROBLEM: Self = Self(END_STREAM | PROBLEM);
    /// The sender gives up.
    pub const CANCEL: Self = Self(CANCEL);
    /// More messages may be sent to the sender of this.
    pub const CREDIT: Self = Self(CREDIT);
    /// Trailing metadata.
    pub const METADATA: Self = Self(METADATA);

    /// Every legal set.
    pub const ALL: [Self; 9] = [
        Self::DATA,
        Self::DATA_END,
        Self::COMPRESSED,
        Self::COMPRESSED_END,
        Self::END_STREAM,
        Self::PROBLEM,
        Self::CANCEL,
        Self::CREDIT,
        Self::METADATA,
    ];

    /// The flags of a message frame.
    #[must_use]
    pub const fn data(compressed: bool, end_stream: bool) -> Self {
        match (compressed, end_stream) {
            (false, false) => Self::DATA,
            (false, true) => Self::DATA_END,
            (true, false) => Self::COMPRESSED,
            (true, true) => Self::COMPRESSED_END,
        }
    }

    /// The set with these bits, if it is a legal one.
    #[must_use]
    #[inline]
    pub const fn from_bits(bits: u8) -> Option<Self> {
        // Bit n is set when the flags byte n is legal, so that the check is one
        // shift on a path that every frame takes.
        const LEGAL: [u64; 4] = {
            let mut legal = [0; 4];
            let mut i = 0;
            while i < Flags::ALL.len() {
                let bits = Flags::ALL[i].0;
                legal[bits as usize / 64] |= 1 << (bits % 64);
                i += 1;
            }
            legal
        };
        if LEGAL[bits as usize / 64] >> (bits % 64) & 1 == 1 {
            Some(Self(bits))
        } else {
            None
        }
    }

    /// The byte that travels.
    #[must_use]
    #[inline]
    pub const fn bits(self) -> u8 {
        self.0
    }

    /// What the frame does.
    #[must_use]
    #[inline]
    pub const fn kind(self) -> FrameKind {
        if self.is_data() {
            return FrameKind::Data;
        }
        match self {
            Self::CANCEL => FrameKind::Cancel,
            Self::CREDIT => FrameKind::Credit,
            Self::METADATA => FrameKind::Metadata,
            Self::PROBLEM => FrameKind::Problem,
            // The only set left that has no DATA.
            _ => FrameKind::EndStream,
        }
    }

    /// Whether the payload is a message.
    #[must_use]
    #[inline]
    pub const fn is_data(self) -> bool {
        self.0 & DATA != 0
    }

    /// Whether the sender sends no message after this frame.
    #[must_use]
    #[inline]
    pub const fn ends_stream(self) -> bool {
        self.0 & END_STREAM != 0
    }

    /// Whether the payload is compressed with the stream's encoding.
    #[must_use]
    #[inline]
    pub const fn is_compressed(self) -> bool {
        self.0 & COMPRESSED != 0
    }
}

/// The names of the protocol's table, joined by `|`.
impl fmt::Display for Flags {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const NAMES: [(u8, &str); 7] = [
            (DATA, "DATA"),
            (END_STREAM, "END_STREAM"),
            (CANCEL, "CANCEL"),
            (CREDIT, "CREDIT"),
            (PROBLEM, "PROBLEM"),
            (METADATA, "METADATA"),
            (COMPRESSED, "COMPRESSED"),
        ];
        let mut separator = "";
        for (bit, name) in NAMES {
            if self.0 & bit != 0 {
                write!(f, "{separator}{name}")?;
                separator = "|";
            }
        }
        Ok(())
    }
}

impl fmt::Debug for Flags {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn exactly_the_nine_sets_of_the_protocol_are_legal() {
        let legal: Vec<u8> = (0..=u8::MAX)
            .filter(|bits| Flags::from_bits(*bits).is_some())
            .collect();
        assert_eq!(
            legal,
            [0x01, 0x02, 0x03, 0x04, 0x08, 0x12, 0x20, 0x41, 0x43]
        );
    }

    #[test]
    fn bits_survive_the_round_trip() {
        for flags in Flags::ALL {
            assert_eq!(Flags::from_bits(flags.bits()), Some(flags));
        }
    }

    #[test]
    fn each_set_has_its_kind() {
        let kinds = Flags::ALL.map(Flags::kind);
        assert_eq!(kinds[..4], [FrameKind::Data; 4]);
        assert_eq!(
            kinds[4..],
            [
                FrameKind::EndStream,
                FrameKind::Problem,
                FrameKind::Cancel,
                FrameKind::Credit,
                FrameKind::Metadata
            ]
        );
        for (compressed, end) in [(false, false), (false, true), (true, false), (true, true)] {
            let flags = Flags::data(compressed, end);
            assert_eq!(
                (flags.is_data(), flags.is_compressed(), flags.ends_stream()),
                (true, compressed, end)
            );
        }
    }

    #[test]
    fn names_are_the_protocols() {
        assert_eq!(
            Flags::COMPRESSED_END.to_string(),
            "DATA|END_STREAM|COMPRESSED"
        );
        assert_eq!(format!("{:?}", Flags::PROBLEM), "END_STREAM|PROBLEM");
    }
}
