//! Writing frames into what leaves (docs/protocol.md, "Frames").

use std::num::NonZeroU32;

use bytes::{BufMut, Bytes, BytesMut};
use quill_core::frame::{Flags, FrameHeader, MetadataBlock};
use quill_core::varint;
use quill_core::{Error, Outgoing};

use super::squeeze;
use crate::message::{self, Packing};
use crate::out::{BY_REFERENCE_BYTES_MIN, Out};

/// Writes one message in a frame, compressed where that is asked for and worth
/// it. On an error nothing was written.
pub(super) fn put_message(
    packing: &Packing,
    message: &dyn Outgoing,
    is_last: bool,
    out: &mut Out,
) -> Result<(), Error> {
    let len = message.encoded_len(packing.format);
    if packing.may_compress() && len.is_none_or(|len| len >= packing.compress_bytes_min) {
        let packed = squeeze::pack(packing, message)?;
        let flags = Flags::data(packed.compressed, is_last);
        put_payload(flags, packed.bytes, out);
        return Ok(());
    }
    let flags = Flags::data(false, is_last);
    if let Some(bytes) = message.encoded(packing.format) {
        message::check_send_size(bytes.len(), packing.bytes_max)?;
        put_payload(flags, bytes, out);
        return Ok(());
    }
    match len {
        Some(len) if len >= BY_REFERENCE_BYTES_MIN => {
            message::check_send_size(len, packing.bytes_max)?;
            let mut bytes = BytesMut::with_capacity(len);
            message::encode(packing.format, message, &mut bytes)?;
            put_payload(flags, bytes.freeze(), out);
            Ok(())
        }
        _ => put_in_place(packing, message, flags, out.buffer()),
    }
}

/// Encodes straight into the buffer, and then moves the header before it.
fn put_in_place(
    packing: &Packing,
    message: &dyn Outgoing,
    flags: Flags,
    buffer: &mut BytesMut,
) -> Result<(), Error> {
    let start = buffer.len();
    let encoded = message::encode(packing.format, message, buffer).and_then(|()| {
        let len = buffer.len().saturating_sub(start);
        message::check_send_size(len, packing.bytes_max)?;
        u32::try_from(len).map_err(|_| message::too_large_to_send(len, u32::MAX as usize))
    });
    let payload_bytes = match encoded {
        Ok(len) => len,
        Err(error) => {
            buffer.truncate(start);
            return Err(error);
        }
    };
    let end = buffer.len();
    put_header(flags, payload_bytes, buffer);
    let header_bytes = buffer.len().saturating_sub(end);
    if let Some(frame) = buffer.get_mut(start..) {
        frame.rotate_right(header_bytes);
    }
    Ok(())
}

fn put_header(flags: Flags, payload_bytes: u32, out: &mut BytesMut) {
    FrameHeader {
        flags,
        payload_bytes,
    }
    .encode(out);
}

/// Writes a frame around bytes that are there already.
fn put_payload(flags: Flags, payload: Bytes, out: &mut Out) {
    // What is sent is bounded far below 4 GiB before it comes here.
    let payload_bytes = u32::try_from(payload.len()).unwrap_or(u32::MAX);
    put_header(flags, payload_bytes, out.buffer());
    out.put_bytes(payload);
}

pub(super) fn put_end(out: &mut Out) {
    put_header(Flags::END_STREAM, 0, out.buffer());
}

pub(super) fn put_cancel(out: &mut Out) {
    put_header(Flags::CANCEL, 0, out.buffer());
}

pub(super) fn put_problem(document: Vec<u8>, out: &mut Out) {
    put_payload(Flags::PROBLEM, document.into(), out);
}

/// Writes trailing metadata; nothing where there is none.
pub(super) fn put_metadata(block: MetadataBlock, out: &mut Out) {
    if !block.is_empty() {
        put_payload(Flags::METADATA, block.into_payload(), out);
    }
}

pub(super) fn put_credit(messages: NonZeroU32, out: &mut Out) {
    let mut payload = [0; varint::BYTES_MAX];
    let len = varint::encode(messages.get(), &mut payload);
    let payload = payload.get(..len).unwrap_or_default();
    put_header(Flags::CREDIT, payload.len() as u32, out.buffer());
    out.buffer().put_slice(payload);
}

/// Writes the one message of a bare body.
pub(super) fn put_bare(
    packing: &Packing,
    message: &dyn Outgoing,
    out: &mut Out,
) -> Result<(), Error> {
    if let Some(bytes) = message.encoded(packing.format) {
        message::check_send_size(bytes.len(), packing.bytes_max)?;
        out.put_bytes(bytes);
        return Ok(());
    }
    if let Some(len) = message.encoded_len(packing.format)
        && len >= BY_REFERENCE_BYTES_MIN
    {
        message::check_send_size(len, packing.bytes_max)?;
        let mut bytes = BytesMut::with_capacity(len);
        message::encode(packing.format, message, &mut bytes)?;
        out.put_bytes(bytes.freeze());
        return Ok(());
    }
    let buffer = out.buffer();
    let start = buffer.len();
    let encoded = message::encode(packing.format, message, buffer).and_then(|()| {
        message::check_send_size(buffer.len().saturating_sub(start), packing.bytes_max)
    });
    if encoded.is_err() {
        buffer.truncate(start);
    }
    encoded
}

/// The frame of bytes that a test writes by hand.
#[cfg(test)]
pub(super) fn frame(flags: Flags, payload: &[u8]) -> Vec<u8> {
    let frame = quill_core::frame::Frame::new(flags, Bytes::copy_from_slice(payload)).unwrap();
    let mut out = BytesMut::new();
    if let Some(rest) = frame.encode(&mut out) {
        out.extend_from_slice(rest);
    }
    out.to_vec()
}
