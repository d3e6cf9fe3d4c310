//! The codec of views: messages that borrow from the bytes they came in.

use std::fmt;
use std::marker::PhantomData;

use ::buffa::{DecodeOptions, HasMessageView, Message, OwnedView};
use bytes::{Bytes, BytesMut};
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::{BuffaCodec, Codec, CodecError, DecodeLimits, Format};

/// The codec of `M`'s owned view: strings, bytes and nested messages are not
/// copied out of what was received.
///
/// JSON has no such bytes to borrow from; it goes through the message itself,
/// at the cost of encoding it once.
pub struct BuffaViewCodec<M>(PhantomData<fn() -> M>);

impl<M> BuffaViewCodec<M> {
    /// The codec.
    #[must_use]
    pub const fn new() -> Self {
        Self(PhantomData)
    }
}

impl<M> Codec<M::ViewHandle> for BuffaViewCodec<M>
where
    M: HasMessageView + Message + Serialize + DeserializeOwned + 'static,
{
    fn decode(
        &self,
        format: Format,
        bytes: Bytes,
        limits: &DecodeLimits,
    ) -> Result<M::ViewHandle, CodecError> {
        let view = match format {
            Format::Proto => {
                let options = DecodeOptions::new()
                    .with_recursion_limit(limits.depth_max)
                    .with_unknown_field_limit(limits.unknown_fields_max)
                    .with_element_memory_limit(limits.element_bytes_max);
                OwnedView::decode_with_options(bytes, &options)
            }
            Format::Json => {
                let message: M = BuffaCodec.decode(format, bytes, limits)?;
                OwnedView::from_owned(&message)
            }
        };
        view.map(M::ViewHandle::from)
            .map_err(|error| CodecError::new(format!("the message is no valid protobuf: {error}")))
    }

    fn encode(
        &self,
        format: Format,
        message: &M::ViewHandle,
        out: &mut BytesMut,
    ) -> Result<(), CodecError> {
        match format {
            Format::Proto => {
                out.extend_from_slice(message.as_ref().bytes());
                Ok(())
            }
            Format::Json => {
                let message: M = message.as_ref().to_owned_message();
                BuffaCodec.encode(format, &message, out)
            }
        }
    }

    fn encoded_len(&self, format: Format, message: &M::ViewHandle) -> Option<usize> {
        self.encoded(format, message).map(|bytes| bytes.len())
    }

    fn encoded(&self, format: Format, message: &M::ViewHandle) -> Option<Bytes> {
        match format {
            Format::Proto => Some(message.as_ref().bytes().clone()),
            Format::Json => None,
        }
    }
}

impl<M> Clone for BuffaViewCodec<M> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<M> Copy for BuffaViewCodec<M> {}

impl<M> Default for BuffaViewCodec<M> {
    fn default() -> Self {
        Self::new()
    }
}

impl<M> fmt::Debug for BuffaViewCodec<M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("BuffaViewCodec")
    }
}
