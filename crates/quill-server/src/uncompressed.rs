//! Answers that are not compressed.

use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::{Bytes, BytesMut};
use quill_core::{CodecError, Error, Format, MessageSink, Outbound, Outgoing, Reply, Response};

/// The messages of an answer, which are not compressed where it says so.
#[inline]
pub(crate) fn heed(response: Response<Reply>) -> Response<Reply> {
    if response.is_uncompressed() {
        return wrapped(response);
    }
    response
}

#[cold]
fn wrapped(response: Response<Reply>) -> Response<Reply> {
    response.map(|reply| match reply {
        Reply::One(message) => Reply::One(Box::new(One(message))),
        Reply::Many(messages) => Reply::Many(Box::pin(Many(messages))),
    })
}

/// An answer's one message.
struct One(Box<dyn Outgoing + Send>);

/// Its messages.
struct Many(Pin<Box<dyn Outbound>>);

/// Where they are written.
struct Sink<'a>(&'a mut dyn MessageSink);

/// One of them.
struct Each<'a>(&'a dyn Outgoing);

impl Outbound for Many {
    fn poll_messages(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        sink: &mut dyn MessageSink,
    ) -> Poll<Option<Result<(), Error>>> {
        self.0.as_mut().poll_messages(cx, &mut Sink(sink))
    }
}

impl MessageSink for Sink<'_> {
    fn message(&mut self, message: &dyn Outgoing) -> Result<bool, Error> {
        self.0.message(&Each(message))
    }
}

macro_rules! uncompressed {
    ($($of:ty),*) => {$(
        impl Outgoing for $of {
            fn encode(&self, format: Format, out: &mut BytesMut) -> Result<(), CodecError> {
                self.0.encode(format, out)
            }

            fn encoded_len(&self, format: Format) -> Option<usize> {
                self.0.encoded_len(format)
            }

            fn encoded(&self, format: Format) -> Option<Bytes> {
                self.0.encoded(format)
            }

            fn may_compress(&self) -> bool {
                false
            }
        }
    )*};
}

uncompressed!(One, Each<'_>);
