//! The messages of a counted call.

use std::cell::{Cell, RefCell};
use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::{Bytes, BytesMut};
use quill_core::{
    Code, CodecError, Error, Format, Inbound, MessageSink, Metadata, Outbound, Outgoing,
};

use super::method::KnownMethods;
use super::record::CallRecord;

/// Counts what a caller sends.
pub(super) struct CountedInbound {
    inner: Pin<Box<dyn Inbound>>,
    known: KnownMethods,
    route: usize,
}

impl CountedInbound {
    pub(super) fn new(inner: Pin<Box<dyn Inbound>>, known: KnownMethods, route: usize) -> Self {
        Self {
            inner,
            known,
            route,
        }
    }
}

impl Inbound for CountedInbound {
    fn poll_message(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Bytes, Error>>> {
        let polled = self.inner.as_mut().poll_message(cx);
        if let Poll::Ready(Some(Ok(message))) = &polled {
            self.known.of(Some(self.route)).received(message.len());
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

/// Counts the messages of an answer; its end is that of the call.
pub(super) struct CountedOutbound {
    inner: Pin<Box<dyn Outbound>>,
    record: CallRecord,
}

impl CountedOutbound {
    pub(super) fn new(inner: Pin<Box<dyn Outbound>>, record: CallRecord) -> Self {
        Self { inner, record }
    }
}

impl Outbound for CountedOutbound {
    fn poll_messages(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        sink: &mut dyn MessageSink,
    ) -> Poll<Option<Result<(), Error>>> {
        let Self { inner, record } = &mut *self;
        let mut counted = CountedSink {
            sink,
            messages: 0,
            bytes: 0,
        };
        let polled = record.run(|| inner.as_mut().poll_messages(cx, &mut counted));
        if counted.messages > 0 {
            record.counts().sent_all(counted.messages, counted.bytes);
        }
        match &polled {
            Poll::Ready(None) => record.end(None),
            Poll::Ready(Some(Err(error))) => record.end(Some(error.code())),
            Poll::Ready(Some(Ok(()))) | Poll::Pending => {}
        }
        polled
    }
}

/// Notes how many messages were written, and how large they were.
struct CountedSink<'a> {
    sink: &'a mut dyn MessageSink,
    messages: u64,
    bytes: u64,
}

impl MessageSink for CountedSink<'_> {
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
}

/// An answer's one message; the call ends when it is written.
pub(super) struct CountedOutgoing {
    inner: Box<dyn Outgoing + Send>,
    record: RefCell<CallRecord>,
}

impl CountedOutgoing {
    pub(super) fn new(inner: Box<dyn Outgoing + Send>, record: CallRecord) -> Self {
        Self {
            inner,
            record: RefCell::new(record),
        }
    }

    /// Counts it; that it was asked for twice, once.
    fn written(&self, bytes: usize) {
        let mut record = self.record.borrow_mut();
        if record.has_ended() {
            return;
        }
        if bytes > record.send_bytes_max() {
            // The encoder is about to answer with that in its place.
            record.end(Some(Code::ResourceExhausted));
        } else {
            record.counts().sent(bytes);
            record.end(None);
        }
    }
}

impl Outgoing for CountedOutgoing {
    fn encode(&self, format: Format, out: &mut BytesMut) -> Result<(), CodecError> {
        let before = out.len();
        let encoded = self.inner.encode(format, out);
        match &encoded {
            Ok(()) => self.written(out.len().saturating_sub(before)),
            Err(_) => self.record.borrow_mut().end(Some(Code::Internal)),
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
}
