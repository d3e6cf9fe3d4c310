//! One message on its way through limits and compression, the same for every
//! protocol.

use bytes::{Bytes, BytesMut};
use quill_core::compression::{self, CompressionError, Encoding};
use quill_core::{Error, Format, Outgoing};

use crate::protocol::Call;

/// How a side packs what it sends in one call.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Packing {
    pub(crate) format: Format,
    pub(crate) encoding: Encoding,
    pub(crate) level: u8,
    pub(crate) compress_bytes_min: usize,
    pub(crate) bytes_max: usize,
}

impl Packing {
    pub(crate) fn of(call: &Call) -> Self {
        Self {
            format: call.format,
            encoding: call.send,
            level: call.options.compression_level,
            compress_bytes_min: call.options.compress_bytes_min,
            bytes_max: call.options.send_bytes_max,
        }
    }

    pub(crate) fn may_compress(&self) -> bool {
        self.encoding != Encoding::Identity
    }
}

/// A message's bytes, compressed or not.
#[derive(Debug)]
pub(crate) struct Packed {
    pub(crate) bytes: Bytes,
    pub(crate) compressed: bool,
}

/// Encodes a message, and compresses it where that is asked for and worth it.
pub(crate) fn pack(packing: &Packing, message: &dyn Outgoing) -> Result<Packed, Error> {
    let plain = match message.encoded(packing.format) {
        Some(bytes) => bytes,
        None => {
            let len = message.encoded_len(packing.format).unwrap_or_default();
            let mut bytes = BytesMut::with_capacity(len);
            encode(packing.format, message, &mut bytes)?;
            bytes.freeze()
        }
    };
    check_send_size(plain.len(), packing.bytes_max)?;
    let is_worth_it = plain.len() >= packing.compress_bytes_min;
    if !packing.may_compress() || !is_worth_it || !message.may_compress() {
        return Ok(Packed {
            bytes: plain,
            compressed: false,
        });
    }
    let mut bytes = BytesMut::new();
    compression::compress(packing.encoding, packing.level, &plain, &mut bytes)
        .map_err(|error| Error::internal("the message can't be compressed").with_source(error))?;
    Ok(Packed {
        bytes: bytes.freeze(),
        compressed: true,
    })
}

/// Decompresses a received message; `at_fault` makes the error for bytes that
/// are not what their encoding says.
pub(crate) fn unpack(
    encoding: Encoding,
    payload: &Bytes,
    bytes_max: usize,
    at_fault: fn(String) -> Error,
) -> Result<Bytes, Error> {
    match compression::decompress(encoding, payload, bytes_max) {
        Ok(bytes) => Ok(bytes),
        Err(error @ CompressionError::TooLarge(_)) => Err(Error::resource_exhausted(format!(
            "a message is over the limit: {error}"
        ))),
        Err(error) => Err(at_fault(format!(
            "a compressed message can't be read: {error}"
        ))),
    }
}

/// Appends the encoded message to `out`; a message that can't be encoded is the
/// sender's bug.
pub(crate) fn encode(
    format: Format,
    message: &dyn Outgoing,
    out: &mut BytesMut,
) -> Result<(), Error> {
    message
        .encode(format, out)
        .map_err(|error| Error::internal(error.to_string()).with_source(error))
}

pub(crate) fn check_send_size(bytes: usize, bytes_max: usize) -> Result<(), Error> {
    if bytes > bytes_max {
        return Err(too_large_to_send(bytes, bytes_max));
    }
    Ok(())
}

pub(crate) fn too_large_to_send(bytes: usize, bytes_max: usize) -> Error {
    Error::resource_exhausted(format!(
        "a message of {bytes} bytes is over the send limit of {bytes_max} bytes"
    ))
}

pub(crate) fn too_large_to_receive(bytes: usize, bytes_max: usize) -> Error {
    Error::resource_exhausted(format!(
        "a message of {bytes} bytes is over the receive limit of {bytes_max} bytes"
    ))
}
