//! The codec of messages that `quill-codegen` generates.

use ::buffa::{DecodeError, DecodeOptions, Message, MessageName};
use bytes::{BufMut, Bytes, BytesMut};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_path_to_error::Track;

use super::any_types;
use super::deep_stack;
use super::json;
use super::json_limits;
use super::{Codec, CodecError, DecodeLimits, Format};
use crate::error::{Detail, Error, ErrorDetail};

/// The codec of `buffa` messages, Quill's default message library.
///
/// JSON follows the ProtoJSON mapping; fields that the schema does not know are
/// ignored, so that a client may be newer than its server. A message that nests
/// deeper than six levels is decoded on a thread with a stack for it.
#[derive(Clone, Copy, Debug, Default)]
pub struct BuffaCodec;

impl<T> Codec<T> for BuffaCodec
where
    T: Message + Serialize + DeserializeOwned + 'static,
{
    fn decode(&self, format: Format, bytes: Bytes, limits: &DecodeLimits) -> Result<T, CodecError> {
        match format {
            Format::Proto => decode_proto(&bytes, limits),
            Format::Json => decode_json(&bytes, limits),
        }
    }

    fn keeps_bytes(&self) -> bool {
        false
    }

    fn encode(&self, format: Format, message: &T, out: &mut BytesMut) -> Result<(), CodecError> {
        match format {
            Format::Proto => message
                .try_encode(out)
                .map_err(|error| CodecError::new(format!("the message can't be encoded: {error}"))),
            Format::Json => encode_json(message, out)
                .map_err(|error| CodecError::new(format!("the message has no JSON form: {error}"))),
        }
    }

    fn encoded_len(&self, format: Format, message: &T) -> Option<usize> {
        match format {
            Format::Proto => message.try_encoded_len().ok().map(|len| len as usize),
            Format::Json => None,
        }
    }
}

fn decode_proto<T: Message>(bytes: &[u8], limits: &DecodeLimits) -> Result<T, CodecError> {
    decode_within(limits, |options| options.decode_from_slice(bytes))
}

/// Decodes with the few levels that fit on any stack, and what nests deeper
/// once more, on a stack for it: how deep a message nests is known only then.
pub(super) fn decode_within<T: Send>(
    limits: &DecodeLimits,
    decode: impl Fn(&DecodeOptions) -> Result<T, DecodeError> + Sync,
) -> Result<T, CodecError> {
    let options = DecodeOptions::new()
        .with_unknown_field_limit(limits.unknown_fields_max)
        .with_element_memory_limit(limits.element_bytes_max);
    let here = limits.depth_max.min(deep_stack::LEVELS_INLINE);
    let mut decoded = decode(&options.clone().with_recursion_limit(here));
    if matches!(decoded, Err(DecodeError::RecursionLimitExceeded)) && here < limits.depth_max {
        let deep = options.with_recursion_limit(limits.depth_max);
        let levels = usize::try_from(limits.depth_max).unwrap_or(usize::MAX);
        decoded = deep_stack::with_levels(levels, || decode(&deep)).map_err(|error| {
            CodecError::new("the message nests too deep for the memory there is").with_source(error)
        })?;
    }
    decoded.map_err(|error| CodecError::new(format!("the message is no valid protobuf: {error}")))
}

fn encode_json<T: Serialize + 'static>(message: &T, out: &mut BytesMut) -> Result<(), String> {
    any_types::register_well_known();
    any_types::check_whole(message)?;
    serde_json::to_writer(out.writer(), message).map_err(|error| error.to_string())
}

fn decode_json<T: DeserializeOwned + Send + 'static>(
    bytes: &[u8],
    limits: &DecodeLimits,
) -> Result<T, CodecError> {
    any_types::register_well_known();
    let levels = json_limits::check(bytes, limits)?;
    let message = deep_stack::with_levels(levels, || parse_json(bytes)).map_err(|error| {
        CodecError::new("the JSON message nests too deep for the memory there is")
            .with_source(error)
    })??;
    any_types::check_whole(&message).map_err(CodecError::new)?;
    Ok(message)
}

fn parse_json<T: DeserializeOwned + 'static>(bytes: &[u8]) -> Result<T, CodecError> {
    let mut deserializer = serde_json::Deserializer::from_slice(bytes);
    let mut track = Track::new();
    let tracked = serde_path_to_error::Deserializer::new(&mut deserializer, &mut track);
    let message = json::read(tracked).map_err(|error| {
        let path = track.path().to_string();
        if path == "." {
            CodecError::new(format!(
                "the message is no valid JSON for its type: {error}"
            ))
        } else {
            CodecError::new(format!("JSON field {path:?}: {error}"))
        }
    })?;
    deserializer
        .end()
        .map_err(|error| CodecError::new(format!("after the JSON message: {error}")))?;
    Ok(message)
}

impl<T: Message + MessageName> ErrorDetail for T {
    fn to_detail(&self) -> Detail {
        Detail {
            type_name: T::FULL_NAME.to_owned(),
            value: self.encode_to_bytes(),
        }
    }
}

impl Error {
    /// The first detail of this type; `None` when there is none, or when its
    /// bytes are no such message.
    #[must_use]
    pub fn detail<T: Message + MessageName>(&self) -> Option<T> {
        let detail = self
            .details()
            .iter()
            .find(|detail| detail.type_name == T::FULL_NAME)?;
        T::decode_from_slice(&detail.value).ok()
    }
}
