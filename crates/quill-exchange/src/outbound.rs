//! Messages to send, out of what applications make.

use std::pin::Pin;
use std::task::{Context, Poll, ready};

use futures_core::Stream;
use quill_core::{Codec, Encodable, Error, MessageSink, Outbound, Outgoing};

/// The messages of a stream of results, each encoded as soon as it is made.
pub struct StreamOutbound<S, C> {
    stream: Pin<Box<S>>,
    codec: C,
}

impl<S, C> StreamOutbound<S, C> {
    /// The messages of `stream`, written by `codec`.
    pub fn new(stream: S, codec: C) -> Self {
        Self {
            stream: Box::pin(stream),
            codec,
        }
    }
}

/// The stream has a place of its own, and nothing else is ever pinned.
impl<S, C> Unpin for StreamOutbound<S, C> {}

impl<T, S, C> Outbound for StreamOutbound<S, C>
where
    T: Send,
    S: Stream<Item = Result<T, Error>> + Send,
    C: Codec<T>,
{
    fn poll_messages(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        sink: &mut dyn MessageSink,
    ) -> Poll<Option<Result<(), Error>>> {
        loop {
            let message = match ready!(self.stream.as_mut().poll_next(cx)) {
                Some(Ok(message)) => message,
                Some(Err(error)) => return Poll::Ready(Some(Err(error))),
                None => return Poll::Ready(None),
            };
            let codec = self.codec.clone();
            match sink.message(&Encodable { message, codec }) {
                Ok(true) => {}
                Ok(false) => return Poll::Ready(Some(Ok(()))),
                Err(error) => return Poll::Ready(Some(Err(error))),
            }
        }
    }
}

/// One message, for a half whose kind has one.
pub struct UnaryOutbound(Option<Box<dyn Outgoing + Send>>);

impl UnaryOutbound {
    /// This message alone.
    #[must_use]
    pub fn new(message: Box<dyn Outgoing + Send>) -> Self {
        Self(Some(message))
    }
}

impl Outbound for UnaryOutbound {
    fn poll_messages(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
        sink: &mut dyn MessageSink,
    ) -> Poll<Option<Result<(), Error>>> {
        let message = self.0.take();
        Poll::Ready(message.map(|message| sink.message(message.as_ref()).map(drop)))
    }
}
