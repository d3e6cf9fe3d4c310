//! Compressing a message where that makes it smaller.

use bytes::BytesMut;
use quill_core::compression::{self, Encoding};
use quill_core::{Error, Outgoing};

use crate::message::{self, Packed, Packing};

/// Encodes a message, and compresses it where that is asked for, worth it and
/// makes it smaller: bytes that only grow could even exceed the peer's limit.
pub(super) fn pack(packing: &Packing, message: &dyn Outgoing) -> Result<Packed, Error> {
    let plain = Packing {
        encoding: Encoding::Identity,
        ..*packing
    };
    let mut packed = message::pack(&plain, message)?;
    let is_worth_it = packed.bytes.len() >= packing.compress_bytes_min;
    if !packing.may_compress() || !is_worth_it || !message.may_compress() {
        return Ok(packed);
    }
    let mut bytes = BytesMut::new();
    compression::compress(packing.encoding, packing.level, &packed.bytes, &mut bytes)
        .map_err(|error| Error::internal("the message can't be compressed").with_source(error))?;
    if bytes.len() < packed.bytes.len() {
        packed = Packed {
            bytes: bytes.freeze(),
            compressed: true,
        };
    }
    Ok(packed)
}
