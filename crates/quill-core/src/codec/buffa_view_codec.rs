//! The codec of views: messages that borrow from the bytes they came in.

use std::fmt;
use std::marker::PhantomData;

use ::buffa::{HasMessageView, Message, OwnedView};
use bytes::{Bytes, BytesMut};
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::buffa_codec::decode_within;
use super::{BuffaCodec, Codec, CodecError, DecodeLimits, Format};

/// The codec of `M`'s owned view: strings, bytes and nested messages are not
/// copied out of what was received.
///
/// JSON has no such bytes to borrow from; it goes through the message itself,
/// at the cost of encoding it once. What nests deeper than six levels is decoded
/// as by [`BuffaCodec`], on a thread with a stack for it.
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
        let bytes = match format {
            Format::Proto => bytes,
            Format::Json => {
                let message: M = BuffaCodec.decode(format, bytes, limits)?;
                message.encode_to_bytes()
            }
        };
        let view = decode_within(limits, |options| {
            OwnedView::decode_with_options(bytes.clone(), options)
        });
        view.map(M::ViewHandle::from)
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
