//! What messages travel in.

use quill_core::compression::Encoding;
use quill_core::frame::{FrameHeader, FrameKind};

use crate::guess::{self, Check};

/// What messages travel in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Container {
    /// One message as it is.
    Message,
    /// The frames of Quill's own protocol.
    Quill,
    /// The envelopes of gRPC, of gRPC-Web with its trailers, and of Connect's
    /// streams with their end.
    Envelopes,
    /// A document of JSON: problem details, an error of Connect, a message.
    Json,
    /// A body that is compressed as a whole.
    Compressed(Encoding),
}

/// The flags of an envelope that there are.
pub(crate) const ENVELOPE_COMPRESSED: u8 = 0x01;
pub(crate) const ENVELOPE_END: u8 = 0x02;
pub(crate) const ENVELOPE_TRAILERS: u8 = 0x80;
pub(crate) const ENVELOPE_HEADER_BYTES: usize = 5;

impl Container {
    /// What bytes look like; `is_whole` when these are all.
    pub(crate) fn recognise(bytes: &[u8], is_whole: bool) -> Self {
        if let Some(encoding) = encoding_of(bytes) {
            return Self::Compressed(encoding);
        }
        if is_json(bytes) {
            return Self::Json;
        }
        let (quill, envelopes) = (quill_frames(bytes), envelopes(bytes));
        let message = guess::check(bytes);
        if is_whole {
            if quill.is_exact && quill.has_ended {
                Self::Quill
            } else if envelopes.is_exact {
                Self::Envelopes
            } else if message == Check::Valid {
                Self::Message
            } else if quill.is_exact {
                Self::Quill
            } else if envelopes.is_legal {
                Self::Envelopes
            } else if message == Check::Invalid && envelopes.count.max(quill.count) > 0 {
                // What is wrong is behind what is whole.
                if quill.count > envelopes.count {
                    Self::Quill
                } else {
                    Self::Envelopes
                }
            } else {
                Self::Message
            }
        } else if envelopes.is_legal
            && message == Check::Invalid
            // A first length may be anything; many frames are no accident.
            && !(quill.is_legal && quill.count > envelopes.count)
        {
            Self::Envelopes
        } else if quill.is_legal && (message == Check::Invalid || hold_messages(bytes)) {
            // A message of many fields may look like frames, but hardly do its
            // pieces look like messages.
            Self::Quill
        } else {
            Self::Message
        }
    }
}

/// The encoding whose mark bytes begin with. No message begins so.
pub(crate) fn encoding_of(bytes: &[u8]) -> Option<Encoding> {
    if bytes.starts_with(b"\x1f\x8b\x08") {
        Encoding::from_name("gzip")
    } else if bytes.starts_with(b"\x28\xb5\x2f\xfd") {
        Encoding::from_name("zstd")
    } else {
        None
    }
}

fn is_json(bytes: &[u8]) -> bool {
    let mut rest = bytes.iter().filter(|byte| !byte.is_ascii_whitespace());
    rest.next() == Some(&b'{') && matches!(rest.next(), Some(b'"' | b'}'))
}

/// How far bytes are a sequence of something.
#[derive(Clone, Copy, Default)]
struct Walk {
    /// So many are whole.
    count: u64,
    /// Nothing but the last one is cut.
    is_legal: bool,
    /// Not even the last one is.
    is_exact: bool,
    /// The last one says that it is.
    has_ended: bool,
}

/// Whether what is in frames looks like messages, in several of them.
fn hold_messages(mut bytes: &[u8]) -> bool {
    let mut count = 0_u32;
    while let Ok(Some((header, length))) = FrameHeader::decode(bytes) {
        let payload = usize::try_from(header.payload_bytes).unwrap_or(usize::MAX);
        let rest = bytes.get(length..).unwrap_or_default();
        let Some((payload, rest)) = rest.split_at_checked(payload) else {
            break;
        };
        let is_plain = header.flags.is_data() && !header.flags.is_compressed();
        if is_plain && guess::check(payload) != Check::Valid && !is_json(payload) {
            return false;
        }
        count = count.saturating_add(1);
        bytes = rest;
    }
    count > 2
}

fn quill_frames(bytes: &[u8]) -> Walk {
    walk(bytes, |bytes| match FrameHeader::decode(bytes) {
        Err(_) => None,
        Ok(None) => Some((bytes.len().saturating_add(1), false)),
        Ok(Some((header, length))) => {
            let payload = usize::try_from(header.payload_bytes).ok()?;
            let ends = header.flags.ends_stream() || header.flags.kind() == FrameKind::Cancel;
            Some((length.saturating_add(payload), ends))
        }
    })
}

fn envelopes(bytes: &[u8]) -> Walk {
    walk(bytes, |bytes| {
        let (flags, rest) = bytes.split_first()?;
        let is_known = matches!(flags, 0..=3 | 0x80 | 0x81);
        let length = match rest.first_chunk() {
            Some(length) => u32::from_be_bytes(*length),
            None => u32::MAX,
        };
        let length = usize::try_from(length).ok()?;
        let ends = flags & (ENVELOPE_END | ENVELOPE_TRAILERS) != 0;
        is_known.then_some((length.saturating_add(ENVELOPE_HEADER_BYTES), ends))
    })
}

/// Follows items of which each says its length, and whether it is the last.
fn walk(mut bytes: &[u8], item: impl Fn(&[u8]) -> Option<(usize, bool)>) -> Walk {
    let mut walk = Walk::default();
    while !bytes.is_empty() {
        let Some((length, ends)) = item(bytes) else {
            walk.is_legal = false;
            return walk;
        };
        walk.is_legal = true;
        walk.has_ended = ends;
        match bytes.get(length..) {
            Some(rest) => bytes = rest,
            None => return walk,
        }
        walk.count = walk.count.saturating_add(1);
    }
    walk.is_exact = walk.count > 0;
    walk
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_messages_travel_in_is_recognised() {
        for (bytes, is) in [
            (&b""[..], Container::Message),
            (b"\x0a\x02hi", Container::Message),
            (b"\x08\x01", Container::Message),
            (b"\x04\x01\x0a\x02hi\x00\x02", Container::Quill),
            (b"\x04\x03\x0a\x02hi", Container::Quill),
            (b"\x05\x01hello", Container::Quill),
            (b"\x00\x04", Container::Quill),
            (b"\x02\x08\xac\x02\x00\x02", Container::Quill),
            (
                b"\x03\x01\x0a\x01a\x03\x01\x0a\x01b\x00\x02",
                Container::Quill,
            ),
            (b"\x00\x00\x00\x00\x04\x0a\x02hi", Container::Envelopes),
            (b"\x00\x00\x00\x00\x00", Container::Envelopes),
            (
                b"\x00\x00\x00\x00\x04\x0a\x02hi\x02\x00\x00\x00\x02{}",
                Container::Envelopes,
            ),
            (
                b"\x80\x00\x00\x00\x10grpc-status: 0\r\n",
                Container::Envelopes,
            ),
            (b"\x00\x00\x00\x00\x09\x0a\x02hi", Container::Envelopes),
            (b" {\"code\": \"internal\"}", Container::Json),
            (b"{}", Container::Json),
        ] {
            assert_eq!(Container::recognise(bytes, true), is, "{bytes:?}");
        }
        let message = [0x0a, 0x01, b'a'].repeat(1000);
        assert_eq!(
            Container::recognise(&message[..2999], false),
            Container::Message
        );
        let quill = b"\x03\x01\x0a\x01a".repeat(1000);
        assert_eq!(
            Container::recognise(&quill[..4999], false),
            Container::Quill
        );
        let envelopes = b"\x00\x00\x00\x00\x03\x0a\x01a".repeat(1000);
        assert_eq!(
            Container::recognise(&envelopes[..7999], false),
            Container::Envelopes
        );
    }
}
