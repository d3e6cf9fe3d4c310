//! The messages of a watched call.

use std::cell::{Cell, RefCell};
use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::{Bytes, BytesMut};
use quill_core::{
    Code, CodecError, Error, Format, Inbound, MessageSink, Metadata, Outbound, Outgoing,
};

use super::{Arrivals, CallWatch};

/// Tells of what a caller sends.
pub(crate) struct WatchedInbound<A> {
    inner: Pin<Box<dyn Inbound>>,
    arrivals: A,
}

impl<A> WatchedInbound<A> {
    pub(crate) fn new(inner: Pin<Box<dyn Inbound>>, arrivals: A) -> Self {
        Self { inner, arrivals }
    }
}

impl<A: Arrivals> Inbound for WatchedInbound<A> {
    fn poll_message(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Bytes, Error>>> {
        let polled = self.inner.as_mut().poll_message(cx);
        if let Poll::Ready(Some(Ok(message))) = &polled {
            self.arrivals.received(message.len());
        }
        polled
    }

    fn share_memory(mut self: Pin<&mut Self>) {
        self.inner.as_mut().share_memory();
    }

    fn take_trailers(mut self: Pin<&mut Self>) -> Metadata {
        self.inner.as_mut().take_trailers()
    }
}

/// Tells of the messages of an answer; its end is that of the call.
pub(super) struct WatchedOutbound<W> {
    inner: Pin<Box<dyn Outbound>>,
    watch: W,
}

impl<W> WatchedOutbound<W> {
    pub(super) fn new(inner: Pin<Box<dyn Outbound>>, watch: W) -> Self {
        Self { inner, watch }
    }
}

impl<W: CallWatch> Outbound for WatchedOutbound<W> {
    fn poll_messages(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        sink: &mut dyn MessageSink,
    ) -> Poll<Option<Result<(), Error>>> {
        let Self { inner, watch } = &mut *self;
        let mut counting = CountingSink {
            sink,
            messages: 0,
            bytes: 0,
        };
        let polled = watch.run(|| inner.as_mut().poll_messages(cx, &mut counting));
        if counting.messages > 0 {
            watch.sent(counting.messages, counting.bytes);
        }
        match &polled {
            Poll::Ready(None) => watch.end(None),
            Poll::Ready(Some(Err(error))) => watch.fail(error),
            Poll::Ready(Some(Ok(()))) | Poll::Pending => {}
        }
        polled
    }
}

/// Notes how many messages were written, and how large they were.
struct CountingSink<'a> {
    sink: &'a mut dyn MessageSink,
    messages: u64,
    bytes: u64,
}

impl MessageSink for CountingSink<'_> {
    fn message(&mut self, message: &dyn Outgoing) -> Result<bool, Error> {
        let measured = Measured {
            message,
            bytes: Cell::new(None),
        };
        let has_room = self.sink.message(&measured)?;
        if let Some(bytes) = measured.bytes.get() {
            self.messages += 1;
            self.bytes += bytes as u64;
        }
        Ok(has_room)
    }
}

/// A message that notes its size when it is written.
struct Measured<'a> {
    message: &'a dyn Outgoing,
    bytes: Cell<Option<usize>>,
}

impl Outgoing for Measured<'_> {
    fn encode(&self, format: Format, out: &mut BytesMut) -> Result<(), CodecError> {
        let before = out.len();
        self.message.encode(format, out)?;
        self.bytes.set(Some(out.len().saturating_sub(before)));
        Ok(())
    }

    fn encoded_len(&self, format: Format) -> Option<usize> {
        self.message.encoded_len(format)
    }

    fn encoded(&self, format: Format) -> Option<Bytes> {
        let encoded = self.message.encoded(format)?;
        self.bytes.set(Some(encoded.len()));
        Some(encoded)
    }

    fn may_compress(&self) -> bool {
        self.message.may_compress()
    }
}

/// An answer's one message; the call ends when it is written.
pub(super) struct WatchedOutgoing<W> {
    inner: Box<dyn Outgoing + Send>,
    watch: RefCell<W>,
}

impl<W: CallWatch> WatchedOutgoing<W> {
    pub(super) fn new(inner: Box<dyn Outgoing + Send>, watch: W) -> Self {
        Self {
            inner,
            watch: RefCell::new(watch),
        }
    }

    /// Tells of it; that it was asked for twice, once.
    fn written(&self, bytes: usize) {
        let mut watch = self.watch.borrow_mut();
        if watch.has_ended() {
            return;
        }
        if bytes > watch.send_bytes_max() {
            // The encoder is about to answer with that in its place.
            watch.end(Some(Code::ResourceExhausted));
        } else {
            watch.sent(1, bytes as u64);
            watch.end(None);
        }
    }
}

impl<W: CallWatch> Outgoing for WatchedOutgoing<W> {
    fn encode(&self, format: Format, out: &mut BytesMut) -> Result<(), CodecError> {
        let before = out.len();
        let encoded = self.inner.encode(format, out);
        match &encoded {
            Ok(()) => self.written(out.len().saturating_sub(before)),
            Err(_) => self.watch.borrow_mut().end(Some(Code::Internal)),
        }
        encoded
    }

    fn encoded_len(&self, format: Format) -> Option<usize> {
        self.inner.encoded_len(format)
    }

    fn encoded(&self, format: Format) -> Option<Bytes> {
        let encoded = self.inner.encoded(format)?;
        self.written(encoded.len());
        Some(encoded)
    }

    fn may_compress(&self) -> bool {
        self.inner.may_compress()
    }
}
