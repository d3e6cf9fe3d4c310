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

#[cfg(test)]
mod tests {
    use std::task::Waker;

    use bytes::Bytes;
    use quill_core::RawCodec;

    use super::*;

    /// So many messages, of which each third is not there at first.
    struct Halting {
        left: usize,
        has_halted: bool,
    }

    impl Stream for Halting {
        type Item = Result<Bytes, Error>;

        fn poll_next(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Option<Self::Item>> {
            if self.left.is_multiple_of(3) && !std::mem::replace(&mut self.has_halted, true) {
                return Poll::Pending;
            }
            self.has_halted = false;
            let Some(left) = self.left.checked_sub(1) else {
                return Poll::Ready(None);
            };
            self.left = left;
            Poll::Ready(Some(Ok(Bytes::new())))
        }
    }

    /// Has room for two messages at a time.
    #[derive(Default)]
    struct Narrow(usize);

    impl MessageSink for Narrow {
        fn message(&mut self, _: &dyn Outgoing) -> Result<bool, Error> {
            self.0 += 1;
            assert!(self.0 <= 2, "a message came without room for it");
            Ok(self.0 < 2)
        }
    }

    #[test]
    fn what_is_there_is_written_as_far_as_there_is_room() {
        let stream = Halting {
            left: 5,
            has_halted: false,
        };
        let mut outbound = StreamOutbound::new(stream, RawCodec);
        let mut poll = || {
            let mut sink = Narrow::default();
            let mut cx = Context::from_waker(Waker::noop());
            let polled = Pin::new(&mut outbound).poll_messages(&mut cx, &mut sink);
            let result = polled.map(|result| result.transpose().expect("no error").is_some());
            (sink.0, result)
        };
        assert_eq!(poll(), (2, Poll::Ready(true)));
        assert_eq!(poll(), (0, Poll::Pending));
        assert_eq!(poll(), (2, Poll::Ready(true)));
        assert_eq!(poll(), (1, Poll::Pending));
        assert_eq!(poll(), (0, Poll::Ready(false)));
    }
}
