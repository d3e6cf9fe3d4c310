//! A message type that is known at run time only, and the codec of its messages.

use std::fmt;
use std::sync::Arc;

use buffa::DecodeOptions;
use buffa_descriptor::{DescriptorPool, DynamicMessage, DynamicMessageSeed, MessageIndex};
use bytes::{BufMut, Bytes, BytesMut};
use quill::{Codec, CodecError, DecodeLimits, Format};
use serde::de::DeserializeSeed;
use serde_path_to_error::Track;

use crate::json_check::MessageCheck;

use crate::output::template;

/// A message type of a schema.
#[derive(Clone)]
pub(crate) struct MessageType {
    pool: Arc<DescriptorPool>,
    index: MessageIndex,
}

impl MessageType {
    pub(crate) fn new(pool: Arc<DescriptorPool>, index: MessageIndex) -> Self {
        Self { pool, index }
    }

    /// The type with this full name.
    pub(crate) fn named(pool: &Arc<DescriptorPool>, full_name: &str) -> Option<Self> {
        let index = pool.message_index(full_name)?;
        Some(Self::new(Arc::clone(pool), index))
    }

    /// Its JSON with all fields, to be filled in.
    pub(crate) fn template(&self) -> serde_json::Value {
        template(&self.pool, self.index)
    }

    pub(crate) fn full_name(&self) -> &str {
        self.pool.message(self.index).full_name()
    }

    /// Reads one message of JSON. The error names the field's path. Fields that
    /// the type does not have are errors unless they are to be ignored.
    pub(crate) fn read_json(
        &self,
        json: &[u8],
        ignore_unknown: bool,
    ) -> Result<DynamicMessage, CodecError> {
        let check = MessageCheck {
            pool: &self.pool,
            index: self.index,
        };
        read_whole(check, json)?;
        let seed = DynamicMessageSeed::new(Arc::clone(&self.pool), self.index)
            .ignore_unknown_fields(ignore_unknown);
        read_whole(seed, json)
    }

    /// Reads one message in the binary format.
    pub(crate) fn read_bytes(
        &self,
        bytes: &[u8],
        limits: &DecodeLimits,
    ) -> Result<DynamicMessage, CodecError> {
        let options = DecodeOptions::new()
            .with_recursion_limit(limits.depth_max)
            .with_unknown_field_limit(limits.unknown_fields_max)
            .with_element_memory_limit(limits.element_bytes_max);
        DynamicMessage::decode_with_options(Arc::clone(&self.pool), self.index, bytes, &options)
            .map_err(|error| {
                let name = self.full_name();
                CodecError::new(format!("the message is no valid {name}: {error}"))
            })
    }
}

/// Reads a text of JSON to its end. The error names the field's path.
fn read_whole<'de, S: DeserializeSeed<'de>>(
    seed: S,
    json: &'de [u8],
) -> Result<S::Value, CodecError> {
    let mut json = serde_json::Deserializer::from_slice(json);
    let mut track = Track::new();
    let tracked = serde_path_to_error::Deserializer::new(&mut json, &mut track);
    let read = seed.deserialize(tracked).map_err(|error| {
        let path = track.path().to_string();
        CodecError::new(if path == "." {
            error.to_string()
        } else {
            format!("field {path:?}: {error}")
        })
    })?;
    json.end()
        .map_err(|error| CodecError::new(format!("after the message: {error}")))?;
    Ok(read)
}

impl Codec<DynamicMessage> for MessageType {
    fn decode(
        &self,
        format: Format,
        bytes: Bytes,
        limits: &DecodeLimits,
    ) -> Result<DynamicMessage, CodecError> {
        match format {
            Format::Proto => self.read_bytes(&bytes, limits),
            Format::Json => self.read_json(&bytes, true),
        }
    }

    fn encode(
        &self,
        format: Format,
        message: &DynamicMessage,
        out: &mut BytesMut,
    ) -> Result<(), CodecError> {
        match format {
            Format::Proto => message
                .try_encode(out)
                .map_err(|error| CodecError::new(format!("the message can't be encoded: {error}"))),
            Format::Json => serde_json::to_writer(out.writer(), message)
                .map_err(|error| CodecError::new(format!("the message has no JSON form: {error}"))),
        }
    }

    fn encoded_len(&self, format: Format, message: &DynamicMessage) -> Option<usize> {
        match format {
            Format::Proto => Some(message.encoded_len()),
            Format::Json => None,
        }
    }
}

impl fmt::Debug for MessageType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("MessageType")
            .field(&self.full_name())
            .finish()
    }
}
