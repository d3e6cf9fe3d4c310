//! The five-byte envelope around each message of gRPC, gRPC-Web and Connect
//! streams: one byte of flags, four of big-endian length, the payload.

use bytes::{BufMut, Bytes, BytesMut};
use quill_core::{Error, Outgoing};

use crate::chunks::Chunks;
use crate::message::{self, Packing};
use crate::out::{BY_REFERENCE_BYTES_MIN, Out};

pub(crate) const HEADER_BYTES: usize = 5;
/// Bit 0 in all three protocols: the payload is compressed.
pub(crate) const FLAG_COMPRESSED: u8 = 0x01;

/// Writes one message in an envelope, compressed where that is asked for and
/// worth it. On an error nothing was written.
pub(crate) fn put_message(
    packing: &Packing,
    message: &dyn Outgoing,
    out: &mut Out,
) -> Result<(), Error> {
    if packing.may_compress() {
        let packed = message::pack(packing, message)?;
        let flags = if packed.compressed {
            FLAG_COMPRESSED
        } else {
            0
        };
        put_header(out.buffer(), flags, packed.bytes.len());
        out.put_bytes(packed.bytes);
        return Ok(());
    }
    if let Some(bytes) = message.encoded(packing.format) {
        message::check_send_size(bytes.len(), packing.bytes_max)?;
        put_header(out.buffer(), 0, bytes.len());
        out.put_bytes(bytes);
        return Ok(());
    }
    match message.encoded_len(packing.format) {
        Some(len) if len >= BY_REFERENCE_BYTES_MIN => {
            message::check_send_size(len, packing.bytes_max)?;
            let mut bytes = BytesMut::with_capacity(len);
            message::encode(packing.format, message, &mut bytes)?;
            put_header(out.buffer(), 0, bytes.len());
            out.put_bytes(bytes.freeze());
            Ok(())
        }
        len => put_in_place(packing, message, len, out.buffer()),
    }
}

/// Encodes right behind a header whose length is filled in afterwards; `expected` is
/// what it will be, where that is known: then a buffer gets no more room than it needs.
fn put_in_place(
    packing: &Packing,
    message: &dyn Outgoing,
    expected: Option<usize>,
    buffer: &mut BytesMut,
) -> Result<(), Error> {
    let start = buffer.len();
    let payload_start = start.saturating_add(HEADER_BYTES);
    put_header(buffer, 0, expected.unwrap_or_default());
    let encoded = message::encode(packing.format, message, buffer).and_then(|()| {
        let len = buffer.len().saturating_sub(payload_start);
        message::check_send_size(len, packing.bytes_max)?;
        u32::try_from(len).map_err(|_| message::too_large_to_send(len, u32::MAX as usize))
    });
    match encoded {
        Ok(len) => {
            if let Some([_flags, header @ ..]) = buffer.get_mut(start..payload_start) {
                header.copy_from_slice(&len.to_be_bytes());
            }
            Ok(())
        }
        Err(error) => {
            buffer.truncate(start);
            Err(error)
        }
    }
}

/// Writes an envelope around bytes that are no message: trailers, an end of stream.
pub(crate) fn put_bytes(flags: u8, bytes: &[u8], out: &mut BytesMut) {
    put_header(out, flags, bytes.len());
    out.extend_from_slice(bytes);
}

fn put_header(out: &mut BytesMut, flags: u8, len: usize) {
    let small = len.min(BY_REFERENCE_BYTES_MIN);
    out.reserve(HEADER_BYTES.saturating_add(small));
    out.put_u8(flags);
    // Send limits are far below 4 GiB; a length that did not fit was refused before.
    out.put_u32(u32::try_from(len).unwrap_or(u32::MAX));
}

/// Where the payload begins of the one envelope that a body is, uncompressed.
pub(crate) fn plain_payload_at(body: &[u8]) -> Option<usize> {
    let (head, payload) = body.split_first_chunk::<HEADER_BYTES>()?;
    let [flags, len @ ..] = *head;
    let is_plain = flags == 0 && u32::from_be_bytes(len) as usize == payload.len();
    is_plain.then_some(HEADER_BYTES)
}

/// One envelope, its payload as it was sent.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Envelope {
    pub(crate) flags: u8,
    pub(crate) payload: Bytes,
}

/// Cuts a body into envelopes, however its bytes arrive.
#[derive(Debug, Default)]
pub(crate) struct EnvelopeDecoder {
    chunks: Chunks,
    header: Option<(u8, usize)>,
}

impl EnvelopeDecoder {
    pub(crate) fn feed(&mut self, bytes: Bytes) {
        self.chunks.push(bytes);
    }

    /// Does not copy small payloads out of what they came in any more.
    pub(crate) fn share_memory(&mut self) {
        self.chunks.share_memory();
    }

    /// The next whole envelope. A length over what `bytes_max` says for its flags
    /// is an error as soon as the header is there, before any of the payload is held.
    pub(crate) fn next_by(
        &mut self,
        bytes_max: impl FnOnce(u8) -> usize,
    ) -> Result<Option<Envelope>, Error> {
        let (flags, len) = match self.header {
            Some(header) => header,
            None => {
                let Some([flags, len @ ..]) = self.chunks.take_array::<HEADER_BYTES>() else {
                    return Ok(None);
                };
                let len = u32::from_be_bytes(len) as usize;
                let bytes_max = bytes_max(flags);
                if len > bytes_max {
                    return Err(message::too_large_to_receive(len, bytes_max));
                }
                self.header = Some((flags, len));
                (flags, len)
            }
        };
        let Some(payload) = self.chunks.take(len) else {
            return Ok(None);
        };
        self.header = None;
        Ok(Some(Envelope { flags, payload }))
    }

    /// Whether the bytes so far end inside an envelope.
    pub(crate) fn is_partial(&self) -> bool {
        self.header.is_some() || self.chunks.len() > 0
    }

    /// Puts what waits into memory of its own.
    pub(crate) fn hold(&mut self) {
        self.chunks.hold();
    }

    /// Memory of an unfinished envelope, in bytes; 0 between them, and never 0 within.
    pub(crate) fn held_bytes(&self) -> usize {
        self.chunks.held_bytes().max(self.header.is_some().into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn decode_all(pieces: &[&[u8]]) -> Vec<Envelope> {
        let mut decoder = EnvelopeDecoder::default();
        let mut found = Vec::new();
        for piece in pieces {
            decoder.feed(Bytes::copy_from_slice(piece));
            while let Some(envelope) = decoder.next_by(|_| 1000).unwrap() {
                found.push(envelope);
            }
        }
        assert!(!decoder.is_partial());
        found
    }

    proptest! {
        #[test]
        fn envelopes_are_the_same_however_they_are_cut(
            payloads in prop::collection::vec((any::<u8>(), prop::collection::vec(any::<u8>(), 0..40)), 0..6),
            cuts in prop::collection::vec(any::<prop::sample::Index>(), 0..8),
        ) {
            let mut bytes = BytesMut::new();
            for (flags, payload) in &payloads {
                put_bytes(*flags, payload, &mut bytes);
            }
            let mut places: Vec<usize> = cuts.iter().map(|cut| cut.index(bytes.len() + 1)).collect();
            places.sort_unstable();
            let mut pieces = Vec::new();
            let mut from = 0;
            for place in places {
                pieces.push(&bytes[from..place]);
                from = place;
            }
            pieces.push(&bytes[from..]);
            let found = decode_all(&pieces);
            let expected: Vec<Envelope> = payloads
                .into_iter()
                .map(|(flags, payload)| Envelope { flags, payload: payload.into() })
                .collect();
            prop_assert_eq!(found, expected);
        }
    }

    #[test]
    fn a_lying_length_is_refused_from_the_header() {
        let mut decoder = EnvelopeDecoder::default();
        decoder.feed(Bytes::from_static(&[
            0, 0xff, 0xff, 0xff, 0xff, 1, 2, 3, 4, 5,
        ]));
        let error = decoder.next_by(|_| 4096).unwrap_err();
        assert_eq!(error.code(), quill_core::Code::ResourceExhausted);
    }

    #[test]
    fn the_limit_itself_is_allowed() {
        for (len, allowed) in [(10, true), (11, false)] {
            let mut bytes = BytesMut::new();
            put_bytes(0, &vec![0; len], &mut bytes);
            let mut decoder = EnvelopeDecoder::default();
            decoder.feed(bytes.freeze());
            assert_eq!(decoder.next_by(|_| 10).is_ok(), allowed);
        }
    }
}
