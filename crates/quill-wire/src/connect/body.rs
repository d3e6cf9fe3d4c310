//! A unary body: one message without any framing.

use quill_core::{Error, Outgoing};

use crate::message::{self, Packing};
use crate::out::{BY_REFERENCE_BYTES_MIN, Out};

/// Writes one message as a body; returns whether it was compressed. On an error
/// nothing was written.
pub(crate) fn put(packing: &Packing, message: &dyn Outgoing, out: &mut Out) -> Result<bool, Error> {
    if !packing.may_compress() && message.encoded(packing.format).is_none() {
        let len = message.encoded_len(packing.format).unwrap_or_default();
        if len < BY_REFERENCE_BYTES_MIN {
            put_in_place(packing, message, out)?;
            return Ok(false);
        }
    }
    let packed = message::pack(packing, message)?;
    out.put_bytes(packed.bytes);
    Ok(packed.compressed)
}

fn put_in_place(packing: &Packing, message: &dyn Outgoing, out: &mut Out) -> Result<(), Error> {
    let buffer = out.buffer();
    let start = buffer.len();
    let put = message::encode(packing.format, message, buffer).and_then(|()| {
        let len = buffer.len().saturating_sub(start);
        message::check_send_size(len, packing.bytes_max)
    });
    if put.is_err() {
        buffer.truncate(start);
    }
    put
}
