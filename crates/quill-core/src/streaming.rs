//! A stream of messages from the peer.

use std::fmt;
use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::Bytes;
use futures_core::Stream;

use crate::call::{Inbound, MessageEncoding};
use crate::codec::{Codec, CodecError};
use crate::error::Error;
use crate::metadata::Metadata;

/// The messages a peer sends, decoded as they are taken.
///
/// It is a [`Stream`] and has [`message`](Self::message) for loops. Messages
/// that are not taken hold the sender back. After an error it ends.
pub struct Streaming<T> {
    inbound: Pin<Box<dyn Inbound>>,
    decode: Box<dyn Fn(Bytes) -> Result<T, Error> + Send + Sync>,
    trailers: Metadata,
    ended: bool,
}

impl<T> Streaming<T> {
    /// Decodes what `inbound` yields. `on_malformed` says whose fault a message
    /// is that does not decode: the caller's on a server, the server's on a client.
    pub fn new<C: Codec<T>>(
        mut inbound: Pin<Box<dyn Inbound>>,
        codec: C,
        encoding: MessageEncoding,
        on_malformed: fn(CodecError) -> Error,
    ) -> Self {
        if !codec.keeps_bytes() {
            inbound.as_mut().share_memory();
        }
        let decode = move |bytes| {
            codec
                .decode(encoding.format, bytes, &encoding.limits)
                .map_err(on_malformed)
        };
        Self {
            inbound,
            decode: Box::new(decode),
            trailers: Metadata::new(),
            ended: false,
        }
    }

    /// The next message; `None` once the peer has ended the stream well.
    ///
    /// # Errors
    /// The call failed, or a message did not decode.
    pub async fn message(&mut self) -> Result<Option<T>, Error> {
        std::future::poll_fn(|cx| self.poll_message(cx))
            .await
            .transpose()
    }

    /// The trailing metadata: empty until the stream has ended well. A failed
    /// stream's is in its error.
    #[must_use]
    pub fn trailers(&self) -> &Metadata {
        &self.trailers
    }

    fn poll_message(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<T, Error>>> {
        if self.ended {
            return Poll::Ready(None);
        }
        let decoded = match std::task::ready!(self.inbound.as_mut().poll_message(cx)) {
            Some(Ok(bytes)) => (self.decode)(bytes),
            Some(Err(error)) => Err(error),
            None => {
                self.ended = true;
                self.trailers = self.inbound.as_mut().take_trailers();
                return Poll::Ready(None);
            }
        };
        self.ended = decoded.is_err();
        Poll::Ready(Some(decoded))
    }
}

impl<T> Stream for Streaming<T> {
    type Item = Result<T, Error>;

    fn poll_next(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<T, Error>>> {
        self.get_mut().poll_message(cx)
    }
}

impl<T> fmt::Debug for Streaming<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Streaming")
            .field("ended", &self.ended)
            .finish_non_exhaustive()
    }
}
